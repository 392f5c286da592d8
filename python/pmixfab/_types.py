"""_types.py - results of the library: named tuples with the names of the C structs' members.

C's UINT32_MAX, "none", is None here, and numbers of an enumeration are its members. A member `index` hides the method
of tuples with that name.
"""
import enum
from typing import NamedTuple, Optional, Tuple

import numpy


class ErrorCode(enum.IntEnum):
    """Cause of a failed call: Error.code."""
    INVAL = -1
    NOMEM = -2
    IO = -3
    NOTFOUND = -4
    SYNTAX = -5
    CONFLICT = -6
    RANGE = -7
    TRUNCATED = -8
    FOREIGN = -9
    OLDER = -10
    NEWER = -11
    CORRUPT = -12
    BUSY = -13
    PERM = -14
    TIMEOUT = -15
    UNREACH = -16
    PARTIAL = -17
    UNSUPPORTED = -18


class State(enum.IntEnum):
    """State of a device's port."""
    UNKNOWN = 0
    DOWN = 1
    UP = 2


class Seen(enum.IntFlag):
    """Sources that see a device: its subnet, its node. MISSING: not seen now, its place is kept."""
    SUBNET = 1
    NODE = 2
    MISSING = 4


class View(enum.IntEnum):
    """Kind of coordinates."""
    LOGICAL = 1
    PHYSICAL = 2


class EndKind(enum.IntEnum):
    """Object at the end of a cable."""
    OTHER = 0
    DEVICE = 1
    SWITCH = 2
    ROUTER = 3
    AGGREGATION = 4


class ChangeKind(enum.IntEnum):
    """Kind of a change that a watch reports."""
    PUBLISHED = 1
    GONE = 2
    STALE = 3
    CURRENT = 4


class Objective(enum.IntEnum):
    """Value that a placement minimizes; among equal ones it minimizes the sum of the costs."""
    SUM = 0
    MAX = 1
    SWITCHES = 2


class Pattern(enum.IntEnum):
    """Communication pattern of a job's processes. The last two are for traffic() and place_for() only."""
    ALL_TO_ALL = 0
    RING = 1
    DOUBLING = 2
    NEIGHBOURS = 4
    ANY_PATTERN = 5


class Sharing(enum.IntEnum):
    """Load on the fabric besides the given jobs."""
    ALONE = 0
    SHARED = 1


class PlaneInfo(NamedTuple):
    """The plane as a whole."""
    generation: int
    published: int
    index: int  # type: ignore[assignment]
    is_default: bool
    name: str
    vendor: str
    identifier: str
    kind: str
    n_devices: int
    n_hosts: int
    n_switches: int
    n_links: int
    n_groups: int
    n_unnamed: int
    dims: int
    shape: Tuple[int, ...]
    physical_dims: int
    physical_shape: Tuple[int, ...]
    fastest_mbps: int


class Device(NamedTuple):
    """A cabled port of an HCA, or a network interface."""
    index: int  # type: ignore[assignment]
    host_index: int
    switch_index: Optional[int]
    switch_port: int
    port: int
    state: State
    node_guid: int
    port_guid: int
    system_guid: int
    mbps: int
    host: str
    name: str
    rail: Optional[int]
    seen: Seen
    id: str


class Fact(NamedTuple):
    """A further fact of a device. `sources`: the names of its sources."""
    kind: str
    text: str
    sources: Tuple[str, ...]
    chosen: bool
    conflict: bool
    estimate: bool
    software: bool
    yielded: bool


class Host(NamedTuple):
    """A host. `devices`: the indices of its devices."""
    index: int  # type: ignore[assignment]
    name: str
    devices: range


class Switch(NamedTuple):
    """A switch."""
    index: int  # type: ignore[assignment]
    level: int
    n_ports: int
    n_hosts: int
    guid: int
    name: str
    missing: bool
    unit: Optional[int]
    rail: Optional[int]
    id: str


class End(NamedTuple):
    """An end of a cable: a switch or a device, by its index; or something else."""
    is_switch: bool
    index: Optional[int]  # type: ignore[assignment]
    port: int
    guid: int
    kind: EndKind


class Link(NamedTuple):
    """A cable."""
    a: End
    b: End
    mbps: int
    cost: int
    missing: bool


class Group(NamedTuple):
    """A group of hosts: their indices, and their only switch, if they have one."""
    index: int  # type: ignore[assignment]
    name: str
    hosts: "numpy.ndarray"
    switch: Optional[int]


class Misplaced(NamedTuple):
    """A device that is cabled to another leaf than the devices of its name in its unit; `switch` is their leaf."""
    device: int
    switch: Optional[int]
    unit: int


class Nearest(NamedTuple):
    """The device for a process; `why` is the reason in words."""
    device: Optional[int]
    distance: Optional[int]
    equal: int
    nearer: Optional[int]
    why: str


class Placement(NamedTuple):
    """The hosts for a job, by index and name, in the order of its ranks. No other hosts have a value below `bound`."""
    hosts: Tuple[int, ...]
    names: Tuple[str, ...]
    value: int
    bound: int
    n_usable: int
    n_down: int


class Spread(NamedTuple):
    """The costs of a job on its hosts. The last two are shares of its messages, one for each Pattern."""
    cost: int
    ring_cost: int
    worst: int
    worst_a: Optional[int]
    worst_b: Optional[int]
    worst_switches: int
    n_switches: int
    n_units: int
    past_leaf: Tuple[float, ...]
    past_unit: Tuple[float, ...]


class Traffic(NamedTuple):
    """The expected time of a communication pattern. `link` is a most loaded cable between switches, from b to a if
    `b_to_a`, and `n_links` the number of them; without such a cable the ports of the hosts limit the time."""
    seconds: float
    least: float
    share: float
    pattern: Pattern
    n_leaves: int
    link: Optional[int]
    b_to_a: bool
    n_links: int


class Change(NamedTuple):
    """A change of a run directory."""
    generation: int
    kind: ChangeKind
    plane: str
