"""File snapshots: the files of a location at one moment, as git trees of a repository of our own."""
