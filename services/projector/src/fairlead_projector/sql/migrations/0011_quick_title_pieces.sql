-- The same pieces of a title in less time, because each new session pays for them. The index makes
-- repeated pieces one, so the function does not.
CREATE OR REPLACE FUNCTION read.title_pieces(tenant text, title text, shortest integer) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    lowered text := left(lower(title), 256);
    prefix text := tenant || chr(10);
    pieces text[] := '{}';
BEGIN
    FOR size IN shortest..3 LOOP
        FOR place IN 1..length(lowered) - size + 1 LOOP
            pieces := array_append(pieces, prefix || substr(lowered, place, size));
        END LOOP;
    END LOOP;
    RETURN pieces;
END $$;
