"""_watch.py - changes of a run directory, as they come."""
import collections
import select
import time
from typing import Any, Deque, Iterator, List, Optional

from pmixfab._library import NotFound, bytes_of, call, ffi, filled, lib, struct_of
from pmixfab._types import Change


class Watch:
    """Changes of a run directory since the watch was opened; so open it first and the planes after it.

        for change in pmixfab.watch():
            print(change.kind.name, change.plane, change.generation)

    For a loop of one's own, as of asyncio or select: when fileno() can be read, changes() may have some. One thread
    at a time uses a watch.
    """

    def __init__(self, handle: Any):
        self._handle = handle
        self._untold: Deque[Change] = collections.deque()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends it; its descriptor is closed."""
        if self._handle is not None:
            ffi.release(self._handle)
        self._handle = None

    def _open(self) -> Any:
        if self._handle is None:
            raise ValueError("the watch is closed")
        return self._handle

    def fileno(self) -> int:
        """The descriptor to poll; not to be read. When it can be, take all that changes() has: a rest wakes nobody."""
        return lib.pmixfab_watch_fd(self._open())

    def _take(self) -> None:
        """All that the library has to tell, since what stays there makes the descriptor readable no more."""
        while True:
            try:
                raw = filled("pmixfab_change", lib.pmixfab_watch_next_sized, self._open())
            except NotFound:
                return
            self._untold.append(struct_of(raw, Change))

    def _await(self, timeout: Optional[float]) -> None:
        """Until there is something untold, or the time is over."""
        end = None if timeout is None else time.monotonic() + timeout
        poll = select.poll()  # select() takes no descriptor above 1023
        poll.register(self, select.POLLIN)
        while True:
            self._take()
            left = None if end is None else 1000 * max(0.0, end - time.monotonic())
            if self._untold or left == 0:
                return
            poll.poll(left)  # wakes for other things in the parent folder, too

    def changes(self) -> Iterator[Change]:
        """What has changed since the last time, without waiting. What is not taken is told the next time."""
        self._take()
        while self._untold:
            yield self._untold.popleft()

    def wait(self, timeout: Optional[float] = None) -> List[Change]:
        """What has changed, as soon as something has; after `timeout` seconds, which may be nothing.

        Nothing wakes who waits when a fabricd is killed; a timeout does.
        """
        self._await(timeout)
        told = list(self._untold)
        self._untold.clear()
        return told

    def __iter__(self) -> Iterator[Change]:
        """One change after the other, for ever."""
        while True:
            if not self._untold:
                self._await(None)
            yield self._untold.popleft()


def watch(rundir: Optional[str] = None) -> Watch:
    """A watch of a run directory (/run/fabricd), which need not be there yet."""
    out = ffi.new("struct pmixfab_watch **")
    call(lib.pmixfab_watch_open, bytes_of(rundir), out)
    return Watch(ffi.gc(out[0], lib.pmixfab_watch_close))
