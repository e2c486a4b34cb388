-- Changes nothing. Its commit waits for the disk, and so for all transactions before it.
UPDATE projection.checkpoint SET position = position;
