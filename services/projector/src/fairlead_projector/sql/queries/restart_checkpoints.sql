-- Moves every checkpoint back to the beginning of a restored log, once. This fences all writers.
UPDATE projection.checkpoint
   SET position = 0,
       incarnation = %(incarnation)s,
       digest = NULL
 WHERE incarnation IS DISTINCT FROM %(incarnation)s;
