"""Ways the projector can be stopped.

ProjectorError
├── Fenced             another writer moved the shard's checkpoint: forget everything, start again
├── MigrationGap       the numbered files or the database's record have a hole: mend the release
├── MigrationEdited    an applied migration's file was changed: restore it, add a new one
└── DatabaseAhead      a newer release migrated this database: upgrade this process
"""


class ProjectorError(Exception):
    """The projector cannot go on as it is."""


class Fenced(ProjectorError):
    def __init__(self, shard: int, position: int) -> None:
        super().__init__(f"shard {shard} is no longer at {position}")
        self.shard = shard
        self.position = position


class MigrationGap(ProjectorError):
    def __init__(self, expected: int, found: str) -> None:
        super().__init__(f"expected migration {expected:04}, found {found}")
        self.expected = expected


class MigrationEdited(ProjectorError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was applied with other content")
        self.name = name


class DatabaseAhead(ProjectorError):
    def __init__(self, name: str) -> None:
        super().__init__(f"the database has {name}, which this release does not know")
        self.name = name
