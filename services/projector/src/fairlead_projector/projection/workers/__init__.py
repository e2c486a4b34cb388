"""The processes of a rebuild: each replays a part of the shards."""
