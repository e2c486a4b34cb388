-- Moves a shard's checkpoint; no row moves when another writer was here, and the caller is fenced.
UPDATE projection.checkpoint
   SET position = %(position)s
 WHERE shard = %(shard)s
   AND position = %(after)s;
