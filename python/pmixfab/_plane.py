"""_plane.py - one snapshot of one plane, and the functions that open it."""
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

import numpy

from pmixfab._library import (NONE, NotFound, array_of, bytes_of, call, cells_of, ffi, filled, lib, libc, struct_of,
                              text_of)
from pmixfab._types import (Device, Fact, Group, Host, Link, Misplaced, Nearest, Objective, Pattern, Placement,
                            PlaneInfo, Sharing, Spread, Switch, Traffic, View)

Which = Union[int, str]
Item = TypeVar("Item")


def or_none(number: int) -> Optional[int]:
    """Return None for C's UINT32_MAX."""
    return None if number == NONE else number


def listed(which: Iterable[Item]) -> List[Item]:
    """Return the items as a list. A single text is rejected: its letters would become the items."""
    if isinstance(which, (str, bytes)):
        raise TypeError(f"not a list: give [{which!r}]")
    return list(which)


class Plane:
    """A published snapshot. It never changes: when the fabric does, open the next one.

    Devices, hosts and switches are given by their index or by a name: for a device a name of pmixfab_find() ("node1",
    "node1:mlx5_0", "node1:mlx5_0:1", an id, a GUID), for a host its name, for a switch its name or GUID.

    Read-only arrays are the snapshot's own memory. They keep the snapshot open, also after close().
    """

    info: PlaneInfo
    """The plane as a whole: name, kind, generation, counts."""

    def __init__(self, handle: Any):
        self._handle = ffi.gc(handle, lib.pmixfab_close)
        info = struct_of(filled("pmixfab_plane", lib.pmixfab_plane_sized, self._handle), PlaneInfo)
        self.info = info._replace(shape=info.shape[:info.dims], physical_shape=info.physical_shape[:info.physical_dims])

    def __enter__(self) -> "Plane":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<pmixfab.Plane {self.info.name}, {self.info.kind}, generation {self.info.generation}>"

    def close(self) -> None:
        """Release the snapshot. The library closes it when its last array is gone, too."""
        self._handle = None

    def _open(self) -> Any:
        if self._handle is None:
            raise ValueError("the plane is closed")
        return self._handle

    # ---- names ----

    def _number(self, which: Which, what: str, find: Any) -> int:
        if not isinstance(which, str):
            return int(which)
        out = ffi.new("uint32_t *")
        try:
            call(find, self._open(), bytes_of(which), out)
        except NotFound as error:
            raise NotFound(error.code, f"plane {self.info.name} has no {what} {which!r}") from None
        return out[0]

    @staticmethod
    def _numbers(which: Iterable[Which], find: Any) -> Any:
        return ffi.new("uint32_t[]", [find(one) for one in listed(which)])

    def find(self, what: Which) -> int:
        """Return the index of a device."""
        return self._number(what, "device", lib.pmixfab_find)

    def find_host(self, name: Which) -> int:
        """Return the index of a host."""
        return self._number(name, "host", lib.pmixfab_find_host)

    def find_switch(self, what: Which) -> int:
        """Return the index of a switch; raise an Error with CONFLICT if several have the name."""
        return self._number(what, "switch", lib.pmixfab_find_switch)

    # ---- costs ----

    def cost(self, a: Which, b: Which) -> int:
        """Return the cost between two devices; NO_PATH if there is no path."""
        out = ffi.new("uint16_t *")
        call(lib.pmixfab_cost, self._open(), self.find(a), self.find(b), out)
        return out[0]

    def host_cost(self, a: Which, b: Which) -> int:
        """Return the cost between two hosts: the lowest one of their devices."""
        out = ffi.new("uint16_t *")
        call(lib.pmixfab_host_cost, self._open(), self.find_host(a), self.find_host(b), out)
        return out[0]

    def row(self, a: Which) -> numpy.ndarray:
        """Return the costs from one device to all: numpy.uint16, n_devices numbers."""
        row = numpy.empty(self.info.n_devices, numpy.uint16)
        call(lib.pmixfab_row, self._open(), self.find(a), cells_of(row), len(row))
        return row

    def matrix(self, threads: int = 0) -> numpy.ndarray:
        """Return all costs: a writable array of numpy.uint16, n_devices by n_devices, in memory of the library."""
        n, cells = self.info.n_devices, ffi.new("uint16_t **")
        call(lib.pmixfab_matrix_alloc, self._open(), threads, cells)
        owner = cells[0] if n == 0 else ffi.gc(cells[0], lambda memory: lib.pmixfab_matrix_free(memory, n), 2 * n * n)
        return array_of(cells[0], (n, n), "uint16", owner, writable=True)

    def fill_matrix(self, cells: numpy.ndarray, threads: int = 0) -> None:
        """Write all costs into your own array: numpy.uint16, n_devices by n_devices, row after row."""
        self._check_cells(cells, self.info.n_devices)
        call(lib.pmixfab_matrix, self._open(), cells_of(cells), cells.size, threads)

    def update_matrix(self, before: "Plane", cells: numpy.ndarray, threads: int = 0) -> numpy.ndarray:
        """Return the matrix of this snapshot; `cells` is the matrix of `before`, another generation of the plane.

        If both have the same number of devices, the result is `cells`, changed in place: after a small change that is
        much faster than matrix(). Else it is a new array.
        """
        if before.info.n_devices != self.info.n_devices or cells.size == 0:
            return self.matrix(threads)
        self._check_cells(cells, self.info.n_devices)
        pointer = ffi.new("uint16_t **", ffi.cast("uint16_t *", cells_of(cells)))
        call(lib.pmixfab_matrix_update, before._open(), self._open(), threads, pointer)
        return cells

    @staticmethod
    def _check_cells(cells: numpy.ndarray, n: int) -> None:
        flags = cells.flags
        if cells.dtype != numpy.uint16 or cells.shape != (n, n) or not (flags.c_contiguous and flags.writeable):
            raise ValueError(f"not a matrix of this plane: give {n} by {n} numpy.uint16, writable, in C order")

    def _among(self, which: Iterable[Which], find: Any, function: Any) -> numpy.ndarray:
        numbers = self._numbers(which, find)
        cells = numpy.empty((len(numbers), len(numbers)), numpy.uint16)
        call(function, self._open(), numbers, len(numbers), cells_of(cells))
        return cells

    def device_costs(self, devices: Iterable[Which]) -> numpy.ndarray:
        """Return the costs between these devices, in their order: a square array of numpy.uint16."""
        return self._among(devices, self.find, lib.pmixfab_device_costs)

    def host_costs(self, hosts: Iterable[Which]) -> numpy.ndarray:
        """Return the costs between these hosts, in their order: a square array of numpy.uint16."""
        return self._among(hosts, self.find_host, lib.pmixfab_host_costs)

    def path(self, a: Which, b: Which) -> List[int]:
        """Return the switches on one of the cheapest paths between two devices, in order; none within a host."""
        room, n = ffi.new("uint32_t[]", self.info.n_switches), ffi.new("uint32_t *")
        call(lib.pmixfab_path, self._open(), self.find(a), self.find(b), room, len(room), n)
        return list(room[0:n[0]])

    # ---- placement ----

    def _hosts(self, hosts: Iterable[Which]) -> Any:
        return self._numbers(hosts, self.find_host)

    def place(self, n: int, among: Optional[Iterable[Which]] = None,
              objective: Objective = Objective.SUM) -> Placement:
        """Return the best n hosts for a job, out of the given ones (each once) or of all.

        Raise NotFound if fewer than n of them are up and reach each other."""
        given = ffi.NULL if among is None else self._hosts(among)
        chosen, out = ffi.new("uint32_t[]", n), ffi.new("struct pmixfab_placement *")
        try:
            call(lib.pmixfab_place_sized, self._open(), given, 0 if among is None else len(given), n, objective, chosen,
                 out, ffi.sizeof(out[0]))
        except NotFound as error:
            raise NotFound(error.code, f"no {n} hosts reach each other: {out.n_usable} of the given hosts are up, "
                           f"{out.n_down} are down") from None
        return struct_of(out, Placement, hosts=tuple(chosen), names=tuple(self.host(host).name for host in chosen))

    def order(self, hosts: Iterable[Which]) -> List[int]:
        """Return the indices of these hosts, each given once, in an order in which neighbours are near each other."""
        numbers = self._hosts(hosts)
        call(lib.pmixfab_order, self._open(), numbers, len(numbers))
        return list(numbers)

    def spread(self, hosts: Iterable[Which]) -> Spread:
        """Return the costs of a job on these hosts, each given once, in the order of its ranks."""
        numbers = self._hosts(hosts)
        raw = filled("pmixfab_spread", lib.pmixfab_spread_sized, self._open(), numbers, len(numbers))
        return struct_of(raw, Spread)

    def traffic(self, jobs: Iterable[Tuple[Iterable[Which], Pattern]], sharing: Sharing = Sharing.ALONE,
                size: int = 0) -> Traffic:
        """Return the expected time of the first of these jobs, while the others run, too.

        A job is its hosts, each once, in the order of its ranks, and a pattern. size: bytes of a message; 0: 1 MiB."""
        kept = [(self._hosts(hosts), pattern) for hosts, pattern in listed(jobs)]
        raw = ffi.new("struct pmixfab_job[]", len(kept))
        for job, (numbers, pattern) in zip(raw, kept):
            job.hosts, job.n, job.bytes, job.pattern = numbers, len(numbers), size, pattern
        return struct_of(filled("pmixfab_traffic", lib.pmixfab_traffic_sized, self._open(), raw, len(kept), sharing),
                         Traffic)

    def place_for(self, pattern: Pattern, n: int, among: Optional[Iterable[Which]] = None,
                  sharing: Sharing = Sharing.ALONE) -> Tuple[List[int], Traffic]:
        """Return n hosts, out of the given ones or of all, on which the pattern is fast, and its expected time."""
        given = ffi.NULL if among is None else self._hosts(among)
        chosen = ffi.new("uint32_t[]", n)
        raw = filled("pmixfab_traffic", lib.pmixfab_place_for_sized, self._open(), given,
                     0 if among is None else len(given), n, pattern, sharing, chosen)
        return list(chosen), struct_of(raw, Traffic)

    # ---- objects of the plane ----

    def device(self, which: Which) -> Device:
        """Return a device."""
        return struct_of(filled("pmixfab_device", lib.pmixfab_device_sized, self._open(), self.find(which)), Device)

    def devices(self) -> Iterator[Device]:
        """Return all devices, by index."""
        return map(self.device, range(self.info.n_devices))

    def facts(self, which: Which) -> Iterator[Fact]:
        """Return the facts of a device: facts of one kind follow each other, the chosen one first."""
        index, i = self.find(which), 0
        while True:
            try:
                raw = filled("pmixfab_fact", lib.pmixfab_fact_sized, self._open(), index, i)
            except NotFound:
                return
            yield struct_of(raw, Fact, sources=sources_of(raw.sources))
            i += 1

    def fact_text(self, which: Which, kind: str) -> Optional[str]:
        """Return the text of the chosen fact of a kind; None without such a fact."""
        found = lib.pmixfab_fact_text(self._open(), self.find(which), bytes_of(kind))
        return text_of(found) if found else None

    def coords(self, which: Which, view: View = View.LOGICAL) -> numpy.ndarray:
        """Return the coordinates of a device, a read-only array."""
        out, dims = ffi.new("uint32_t **"), ffi.new("uint32_t *")
        call(lib.pmixfab_coords, self._open(), self.find(which), view, out, dims)
        return array_of(out[0], (dims[0],), "uint32", self._handle)

    def host(self, which: Which) -> Host:
        """Return a host."""
        name, first, n = ffi.new("char **"), ffi.new("uint32_t *"), ffi.new("uint32_t *")
        index = self.find_host(which)
        call(lib.pmixfab_host, self._open(), index, name, first, n)
        return Host(index, text_of(name[0]), range(first[0], first[0] + n[0]))

    def hosts(self) -> Iterator[Host]:
        """Return all hosts, by index."""
        return map(self.host, range(self.info.n_hosts))

    def switch(self, which: Which) -> Switch:
        """Return a switch."""
        return struct_of(filled("pmixfab_switch", lib.pmixfab_switch_sized, self._open(), self.find_switch(which)),
                         Switch)

    def switches(self) -> Iterator[Switch]:
        """Return all switches, by index."""
        return map(self.switch, range(self.info.n_switches))

    def link(self, index: int) -> Link:
        """Return a cable."""
        return struct_of(filled("pmixfab_link", lib.pmixfab_link_sized, self._open(), index), Link)

    def links(self) -> Iterator[Link]:
        """Return all cables."""
        return map(self.link, range(self.info.n_links))

    def group(self, index: int) -> Group:
        """Return a group; its hosts are a read-only array."""
        hosts, n, sw = ffi.new("uint32_t **"), ffi.new("uint32_t *"), ffi.new("uint32_t *")
        call(lib.pmixfab_group, self._open(), index, hosts, n)
        call(lib.pmixfab_group_switch, self._open(), index, sw)
        return Group(index, text_of(lib.pmixfab_group_name(self._open(), index)),
                     array_of(hosts[0], (n[0],), "uint32", self._handle), or_none(sw[0]))

    def groups(self) -> Iterator[Group]:
        """Return all groups."""
        return map(self.group, range(self.info.n_groups))

    def misplaced(self) -> Iterator[Misplaced]:
        """Return the devices of a rail-optimised fabric that are cabled to the wrong leaf."""
        device, sw, unit, i = ffi.new("uint32_t *"), ffi.new("uint32_t *"), ffi.new("uint32_t *"), 0
        while True:
            try:
                call(lib.pmixfab_misplaced, self._open(), i, device, sw, unit)
            except NotFound:
                return
            yield Misplaced(device[0], or_none(sw[0]), unit[0])
            i += 1

    def groups_string(self) -> str:
        """Return all groups in the format of the standard's PMIX_FABRIC_GROUPS."""
        out = ffi.new("char **")
        call(lib.pmixfab_groups_string, self._open(), out)
        return text_of(ffi.gc(out[0], libc.free))

    def shape_string(self, view: View = View.LOGICAL) -> str:
        """Return the shape of the coordinates, for example "4x18x36"."""
        room = ffi.new("char[]", 64)
        call(lib.pmixfab_shape_string, self._open(), view, room, len(room))
        return text_of(room)

    def bytes(self) -> memoryview:
        """Return the bytes of the snapshot, read only; open_memory() reads them."""
        out, size = ffi.new("void **"), ffi.new("size_t *")
        call(lib.pmixfab_bytes, self._open(), out, size)
        array: Any = array_of(out[0], (size[0],), "uint8", self._handle)
        return memoryview(array)

    # ---- nearest device ----

    def nearest(self, host: Which, processes: Union[int, Sequence[Optional[str]]],
                first_rank: int = 0) -> List[Nearest]:
        """Return for each process on a host the nearest device that is up.

        `processes` is their number, or for each its processors ("0-11,24-35"), None for a process that is not bound."""
        bound: List[Optional[str]] = [None] * processes if isinstance(processes, int) else listed(processes)
        texts = [ffi.NULL if cpus is None else ffi.new("char[]", bytes_of(cpus)) for cpus in bound]
        out = ffi.new("struct pmixfab_nearest[]", len(bound))
        call(lib.pmixfab_nearest_sized, self._open(), self.find_host(host), first_rank, ffi.new("char *[]", texts),
             len(bound), out, ffi.sizeof("struct pmixfab_nearest"))
        return [struct_of(choice, Nearest, why=self._why(choice)) for choice in out]

    def _why(self, choice: Any) -> str:
        room = ffi.new("char[]", 256)
        call(lib.pmixfab_nearest_text, self._open(), ffi.addressof(choice), room, len(room))
        return text_of(room)


def sources_of(bits: int) -> tuple:
    """Return the names of the sources."""
    return tuple(text_of(lib.pmixfab_source_name(i)) for i in range(bits.bit_length()) if bits >> i & 1)


# ---- opening -----------------------------------------------------------------------------------------

def _opened(function: Any, *args: Any) -> Plane:
    out = ffi.new("struct pmixfab **")
    call(function, *args, out)
    return Plane(out[0])


def open_rundir(rundir: Optional[str] = None, plane: Optional[str] = None) -> Plane:
    """Open a plane (the default one) from the run directory of a fabricd on this host (/run/fabricd)."""
    return _opened(lib.pmixfab_open_rundir, bytes_of(rundir), bytes_of(plane))


def open_file(path: str) -> Plane:
    """Open the file of a snapshot."""
    return _opened(lib.pmixfab_open_file, bytes_of(path))


def open_memory(data: Any) -> Plane:
    """Open a copy of a snapshot's bytes."""
    memory = ffi.from_buffer(data)
    return _opened(lib.pmixfab_open_memory, memory, len(memory))


def open_pmix() -> Plane:
    """Open the default plane from the PMIx server to which this process is connected."""
    return _opened(lib.pmixfab_open_pmix, ffi.NULL, 0)


def _listed(function: Any, *args: Any) -> List[str]:
    names, n = ffi.new("char ***"), ffi.new("size_t *")
    call(function, *args, names, n)
    try:
        return [text_of(names[0][i]) for i in range(n[0])]
    finally:
        lib.pmixfab_list_free(names[0], n[0])


def list_rundir(rundir: Optional[str] = None) -> List[str]:
    """Return the names of the planes in a run directory, the default plane first."""
    return _listed(lib.pmixfab_list_rundir, bytes_of(rundir))


def list_pmix() -> List[str]:
    """Return the names of the planes that the connected PMIx server serves."""
    return _listed(lib.pmixfab_list_pmix)


def _stale(function: Any, *args: Any) -> bool:
    out = ffi.new("int *")
    call(function, *args, out)
    return out[0] != 0


def stale_rundir(rundir: Optional[str] = None) -> bool:
    """Return whether a run directory is stale: the last sweep failed, a node has no scheduler, or no fabricd runs."""
    return _stale(lib.pmixfab_stale_rundir, bytes_of(rundir))


def stale_pmix() -> bool:
    """Return whether the snapshots of the connected PMIx server are stale."""
    return _stale(lib.pmixfab_stale_pmix)
