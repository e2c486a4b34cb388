"""Errors that stop a task of the projector.

ProjectorError
├── ShardFenced        another writer moved the shard's checkpoint: the task starts again
├── LogRestored        the log was restored from a backup: the task starts again where it can
├── FeedFull           too many sessions cannot be read: upgrade, or purge them
├── MigrationGap       a number is missing among the files or in the database: repair the release
├── MigrationEdited    the file of an applied migration was changed: restore it and add a new one
├── DatabaseAhead      a newer release migrated this database: upgrade this process
├── MigrationRunning   another process migrates: wait for it
├── NotMigrated        migrations are missing and this role may not apply them: run `fairlead migrate`
├── UnusableRole       a role cannot serve a service: correct its address
└── WorkerDied         a process of a rebuild has ended: run `fairlead rebuild` again
"""


class ProjectorError(Exception):
    """A task of the projector cannot continue."""


class ShardFenced(ProjectorError):
    def __init__(self, shard: int, position: int) -> None:
        super().__init__(f"shard {shard} is no longer at {position}")
        self.shard = shard
        self.position = position


class LogRestored(ProjectorError):
    def __init__(self, shard: int) -> None:
        super().__init__(f"the log of shard {shard} was restored from a backup")


class FeedFull(ProjectorError):
    def __init__(self, shard: int, limit: int) -> None:
        super().__init__(
            f"the feed of shard {shard} holds {limit} sessions that this release cannot read,"
            " and waits: upgrade the projector, or purge the sessions"
        )


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


class NotMigrated(ProjectorError):
    def __init__(self, role: str) -> None:
        super().__init__(
            f"the database misses migrations, and the role {role} may not apply them:"
            " run `fairlead migrate` with the migrator's address"
        )
        self.role = role


class MigrationRunning(ProjectorError):
    def __init__(self) -> None:
        super().__init__("another process migrates the database: this one waits for it")


class UnusableRole(ProjectorError):
    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the role {name} of Postgres cannot be used: {reason}")
        self.name = name


class WorkerDied(ProjectorError):
    def __init__(self, pid: int, end: str) -> None:
        super().__init__(
            f"the rebuild is not complete: its worker process {pid} {end}; run it again"
        )
        self.pid = pid
