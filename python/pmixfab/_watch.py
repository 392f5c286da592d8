"""_watch.py - changes of a run directory, as they come."""
import collections
import select
import time
from typing import Any, Deque, Iterator, List, Optional

from pmixfab._library import NotFound, bytes_of, call, ffi, filled, lib, struct_of
from pmixfab._types import Change


class Watch:
    """Changes of a run directory since the watch was opened: open the watch first, then the planes.

        for change in pmixfab.watch():
            print(change.kind.name, change.plane, change.generation)

    For your own loop (asyncio, select): when fileno() is readable, changes() may return some. Only one thread may use a
    watch at a time.
    """

    def __init__(self, handle: Any):
        self._handle = handle
        self._untold: Deque[Change] = collections.deque()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """End the watch, and close its descriptor."""
        if self._handle is not None:
            ffi.release(self._handle)
        self._handle = None

    def _open(self) -> Any:
        if self._handle is None:
            raise ValueError("the watch is closed")
        return self._handle

    def fileno(self) -> int:
        """Return the descriptor to poll; do not read it.

        When it is readable, take all of changes(): the rest does not make it readable again."""
        return lib.pmixfab_watch_fd(self._open())

    def _take(self) -> None:
        """Take all changes out of the library: the rest would not make the descriptor readable again."""
        while True:
            try:
                raw = filled("pmixfab_change", lib.pmixfab_watch_next_sized, self._open())
            except NotFound:
                return
            self._untold.append(struct_of(raw, Change))

    def _await(self, timeout: Optional[float]) -> None:
        """Wait until there is a change, or the time is over."""
        end = None if timeout is None else time.monotonic() + timeout
        poll = select.poll()  # select() accepts no descriptor above 1023
        poll.register(self, select.POLLIN)
        while True:
            self._take()
            left = None if end is None else 1000 * max(0.0, end - time.monotonic())
            if self._untold or left == 0:
                return
            poll.poll(left)  # wakes for other changes in the parent folder, too

    def changes(self) -> Iterator[Change]:
        """Return the changes since the last call, without waiting; the next call returns the ones not taken."""
        self._take()
        while self._untold:
            yield self._untold.popleft()

    def wait(self, timeout: Optional[float] = None) -> List[Change]:
        """Return the changes as soon as there is one; after `timeout` seconds the list may be empty.

        A fabricd that is killed does not wake the caller; a timeout does.
        """
        self._await(timeout)
        told = list(self._untold)
        self._untold.clear()
        return told

    def __iter__(self) -> Iterator[Change]:
        """Return one change after the other, without an end."""
        while True:
            if not self._untold:
                self._await(None)
            yield self._untold.popleft()


def watch(rundir: Optional[str] = None) -> Watch:
    """Open a watch of a run directory (/run/fabricd), which need not exist yet."""
    out = ffi.new("struct pmixfab_watch **")
    call(lib.pmixfab_watch_open, bytes_of(rundir), out)
    return Watch(ffi.gc(out[0], lib.pmixfab_watch_close))
