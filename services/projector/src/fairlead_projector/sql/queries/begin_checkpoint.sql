-- Makes the checkpoint of a shard that was never projected.
INSERT INTO projection.checkpoint (shard)
VALUES (%(shard)s)
    ON CONFLICT (shard) DO NOTHING;
