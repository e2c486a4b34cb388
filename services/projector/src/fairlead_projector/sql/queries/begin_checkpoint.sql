-- Creates the checkpoint of a shard that nobody has projected yet.
INSERT INTO projection.checkpoint (shard)
VALUES (%(shard)s)
    ON CONFLICT (shard) DO NOTHING;
