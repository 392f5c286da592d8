"""Costs, groups and coordinates of a fabric, as fabricd publishes them: libpmixfab for Python.

    import pmixfab

    with pmixfab.open_rundir() as plane:            # the default plane of this host's fabricd
        print(plane.cost("node1", "node2"))         # by name, or by index
        for device in plane.devices():
            print(device.host, device.name, device.state.name)
        costs = plane.matrix()                      # numpy.uint16, all devices by all devices

A Plane is one published snapshot, which never changes. pmixfab.watch() reports each new one.

The library's messages go to the logger "pmixfab" of the module logging, and into the text of exceptions. Any number of
threads may use one Plane. pmixfab(3) describes the library's functions, which this package calls.
"""
from pmixfab._library import NO_PATH, VERSION, VERSION_NUMBER, Error, InvalidArgument, NotFound
from pmixfab._plane import (Plane, list_pmix, list_rundir, open_file, open_memory, open_pmix, open_rundir,
                            stale_pmix, stale_rundir)
from pmixfab._types import (Change, ChangeKind, Device, End, EndKind, ErrorCode, Fact, Group, Host, Link, Misplaced,
                            Nearest, Objective, Pattern, Placement, PlaneInfo, Seen, Sharing, Spread, State,
                            Switch, Traffic, View)
from pmixfab._watch import Watch, watch

__version__ = VERSION
__all__ = ["NO_PATH", "VERSION", "VERSION_NUMBER", "Change", "ChangeKind", "Device", "End", "EndKind", "Error",
           "ErrorCode", "Fact", "Group", "Host", "InvalidArgument", "Link", "Misplaced", "Nearest", "NotFound",
           "Objective", "Pattern", "Placement", "Plane", "PlaneInfo", "Seen", "Sharing", "Spread", "State",
           "Switch", "Traffic", "View", "Watch", "list_pmix", "list_rundir", "open_file", "open_memory", "open_pmix",
           "open_rundir", "stale_pmix", "stale_rundir", "watch"]
