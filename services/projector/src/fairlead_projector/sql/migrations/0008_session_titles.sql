-- The titles of sessions in a table of their own. A title never changes, but the row of a session
-- changes with every turn, and each change would enter the whole title into the index of titles again.
CREATE TABLE projection.session_title (
    tenant     text   NOT NULL,
    session_id text   NOT NULL,
    created_at bigint NOT NULL,
    title      text   NOT NULL,
    PRIMARY KEY (tenant, session_id),
    FOREIGN KEY (tenant, session_id) REFERENCES projection.session ON DELETE CASCADE
);

-- Triggers keep the titles, because projectors of an earlier release write sessions too for a while.
CREATE FUNCTION projection.keep_title() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO projection.session_title (tenant, session_id, created_at, title)
    VALUES (NEW.tenant, NEW.session_id, NEW.created_at, NEW.title)
        ON CONFLICT (tenant, session_id) DO UPDATE
       SET created_at = excluded.created_at, title = excluded.title;
    RETURN NULL;
END $$;

CREATE TRIGGER session_created AFTER INSERT ON projection.session
   FOR EACH ROW EXECUTE FUNCTION projection.keep_title();
CREATE TRIGGER session_renamed AFTER UPDATE ON projection.session
   FOR EACH ROW
  WHEN ((OLD.title, OLD.created_at) IS DISTINCT FROM (NEW.title, NEW.created_at))
       EXECUTE FUNCTION projection.keep_title();

-- The pieces of a title, from `shortest` to three characters long, each after its tenant. A title
-- contains a text only if it has every piece of the text. No extension of Postgres is needed.
CREATE FUNCTION read.title_pieces(tenant text, title text, shortest integer) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(array_agg(DISTINCT tenant || chr(10) || substr(lowered, place, size)), '{}')
      FROM (SELECT left(lower(title), 256) AS lowered) AS begin,
           generate_series(shortest, 3) AS size,
           generate_series(1, length(lowered) - size + 1) AS place
$$;

CREATE VIEW read.session_title AS
SELECT tenant, session_id, created_at, title, read.title_pieces(tenant, title, 1) AS pieces
  FROM projection.session_title;
