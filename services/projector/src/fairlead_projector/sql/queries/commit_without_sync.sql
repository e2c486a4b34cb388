-- The transactions of this connection do not wait for the disk. A crash of the server loses the last of
-- them in order, each with its checkpoint.
SET synchronous_commit = off;
