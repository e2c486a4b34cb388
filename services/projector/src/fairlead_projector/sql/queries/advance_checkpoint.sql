-- Moves the checkpoint of a shard. If another writer moved it, no row changes: the caller is fenced.
UPDATE projection.checkpoint
   SET position = %(position)s,
       incarnation = %(incarnation)s,
       digest = %(digest)s
 WHERE shard = %(shard)s
   AND position = %(after)s;
