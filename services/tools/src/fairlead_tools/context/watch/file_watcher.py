"""Watches files with inotify. The kernel queues a change before the write returns, so a look misses none."""

import errno
import logging
import threading
from collections.abc import Iterable
from typing import Final

from inotify_simple import INotify, flags

from fairlead_tools.context.watch.interests import interests
from fairlead_tools.context.watch.local_disks import is_local
from fairlead_tools.context.watch.looked_paths import LookedPath

log = logging.getLogger(__name__)

LOCATION_WATCHES_MAX: Final = 1024
LOCK_S: Final = 0.1
_OF_NAMES: Final = (
    flags.CREATE
    | flags.DELETE
    | flags.MOVED_FROM
    | flags.MOVED_TO
    | flags.ATTRIB
    | flags.DELETE_SELF
    | flags.MOVE_SELF
    | flags.MASK_ADD
)
_OF_CONTENT: Final = _OF_NAMES | flags.MODIFY
_SELF_GONE: Final = flags.DELETE_SELF | flags.MOVE_SELF | flags.IGNORED | flags.UNMOUNT


class CannotWatch(Exception):
    """These paths cannot be watched. The caller reads them each time."""


class Watch:
    """A set of watched paths. Once something of them changed, it stays changed."""

    def __init__(self, paths: frozenset[LookedPath]) -> None:
        self.paths = paths
        self.descriptors: tuple[tuple[int, str | None], ...] = ()
        self.changed = False
        self.ended = False


class FileWatcher:
    """The watches of one process. `drain` is for one thread, and never waits for a disk."""

    def __init__(self, watches_max: int) -> None:
        """Raises CannotWatch where inotify is missing, or too many processes use it."""
        try:
            self._inotify = INotify(nonblocking=True)
        except (OSError, AttributeError) as error:  # Only Linux has the functions.
            raise CannotWatch(f"no inotify: {error}") from error
        self._watches_max = watches_max
        # Adding a watch asks the disk, which may hang. So `drain` never takes this lock.
        self._changing = threading.Lock()
        self._table = threading.Lock()
        self._watches: dict[int, dict[str | None, set[Watch]]] = {}

    @property
    def count(self) -> int:
        """How many watches the kernel holds for this process."""
        return len(self._watches)

    def watch(self, paths: Iterable[LookedPath]) -> Watch:
        """Watch some paths. Only what changes after the return is sure to be seen.

        Raises CannotWatch.
        """
        if not self._changing.acquire(timeout=LOCK_S):
            raise CannotWatch("another location is being watched and its disk is slow")
        try:
            return self._watch(frozenset(paths))
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EMFILE, errno.ENOMEM}:
                reason = "the machine's limit of watches is reached (fs.inotify.max_user_watches)"
                raise CannotWatch(reason) from error
            raise CannotWatch(error.strerror or type(error).__name__) from error
        finally:
            self._changing.release()

    def _watch(self, paths: frozenset[LookedPath]) -> Watch:
        watch, wanted = Watch(paths), interests(paths)
        places = {interest.place for interest in wanted}
        if len(places) > LOCATION_WATCHES_MAX:
            raise CannotWatch(f"more than {LOCATION_WATCHES_MAX} places")
        if self.count + len(places) > self._watches_max:
            raise CannotWatch(f"context.watches_max is {self._watches_max}")
        directories = {interest.place for interest in wanted if not interest.is_file}
        if (
            away := next((place for place in directories if not is_local(place)), None)
        ) is not None:
            raise CannotWatch(f"{away} is on no disk of this machine")
        try:
            for interest in wanted:
                mask = _OF_CONTENT if interest.is_file else _OF_NAMES
                descriptor = self._inotify.add_watch(interest.place, mask)
                self._note(watch, descriptor, interest.name)
        except BaseException:
            self._remove(watch)
            raise
        return watch

    def unwatch(self, watch: Watch) -> bool:
        """End a watch. False: another thread is changing watches, so try again later."""
        if not self._changing.acquire(blocking=False):
            return False
        try:
            self._remove(watch)
        finally:
            self._changing.release()
        return True

    def drain(self) -> None:
        """Mark every watch of which something has changed until now. It never waits."""
        try:
            events = list(self._inotify.read(timeout=0))
        except BlockingIOError:
            return
        if not events:
            return
        with self._table:
            for event in events:
                if event.mask & flags.Q_OVERFLOW:
                    log.warning("the kernel dropped news of files: every location is read again")
                    for names in self._watches.values():
                        _mark(*names.values())
                    continue
                names = self._watches.get(event.wd, {})
                if event.mask & _SELF_GONE:
                    _mark(*names.values())
                    if event.mask & flags.IGNORED:
                        self._watches.pop(event.wd, None)
                    continue
                _mark(names.get(event.name or None, set()), names.get(None, set()))

    def close(self) -> None:
        """End all watches."""
        self._inotify.close()

    def _note(self, watch: Watch, descriptor: int, name: str | None) -> None:
        with self._table:
            self._watches.setdefault(descriptor, {}).setdefault(name, set()).add(watch)
            watch.descriptors = (*watch.descriptors, (descriptor, name))

    def _remove(self, watch: Watch) -> None:
        unused: list[int] = []
        with self._table:
            for descriptor, name in watch.descriptors:
                names = self._watches.get(descriptor, {})
                names.get(name, set()).discard(watch)
                if not names.get(name, True):
                    del names[name]
                if not names and self._watches.pop(descriptor, None) is not None:
                    unused.append(descriptor)
            watch.descriptors, watch.ended = (), True
        for descriptor in unused:
            try:
                self._inotify.rm_watch(descriptor)
            except OSError as error:
                if error.errno != errno.EINVAL:  # The file is gone, and its watch with it.
                    raise


def _mark(*watches: set[Watch]) -> None:
    for group in watches:
        for watch in group:
            watch.changed = True
