"""_watch.py - changes of a run directory, as they come."""
import select
from typing import Any, Iterator, List, Optional

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
        """The descriptor to poll; not to be read."""
        return lib.pmixfab_watch_fd(self._open())

    def changes(self) -> Iterator[Change]:
        """What has changed since the last time, without waiting."""
        while True:
            try:
                raw = filled("pmixfab_change", lib.pmixfab_watch_next_sized, self._open())
            except NotFound:
                return
            yield struct_of(raw, Change)

    def wait(self, timeout: Optional[float] = None) -> List[Change]:
        """What has changed, as soon as something has; after `timeout` seconds, which may be nothing.

        Nothing wakes who waits when a fabricd is killed; a timeout does.
        """
        select.select([self], [], [], timeout)
        return list(self.changes())

    def __iter__(self) -> Iterator[Change]:
        """One change after the other, for ever."""
        while True:
            yield from self.wait()


def watch(rundir: Optional[str] = None) -> Watch:
    """A watch of a run directory (/run/fabricd), which need not be there yet."""
    out = ffi.new("struct pmixfab_watch **")
    call(lib.pmixfab_watch_open, bytes_of(rundir), out)
    return Watch(ffi.gc(out[0], lib.pmixfab_watch_close))
