"""The Python package pmixfab: each public function of the C library through it, against what fabricctl says of the same
snapshots, and against plain computations."""
import csv
import ctypes
import enum
import gc
import heapq
import inspect
import io
import itertools
import json
import logging
import os
import pickle
import re
import resource
import shutil
import sys
import threading
import typing
import unittest

import fabric_text
import lab

PACKAGE = os.path.join(lab.BUILD, "python")
LIBRARY = os.path.join(lab.BUILD, "lib", "libpmixfab.so.0")
WHY_NOT = ("the interpreter has no sanitizers, the library does" if lab.SANITIZE else
           "the Python package is not built (Debian: python3-cffi)"
           if not os.path.exists(os.path.join(PACKAGE, "pmixfab", "_header.py")) else None)
if WHY_NOT is None:
    ctypes.CDLL(LIBRARY)  # whose soname is then taken for what is loaded
    sys.path.insert(0, PACKAGE)
    import numpy
    import pmixfab
    from pmixfab import _library

FABRICS = ("fattree2:4,2,4", "fattree3:4", "dragonfly:2,3,1", "torus:3,4:2", "mesh:2,3,4:1", "random:12,40,20:7",
           "random:30,100,40:11")
# Of PMIx servers written in C, and what Python has in another form.
NOT_BOUND = {"pmixfab_register", "pmixfab_update", "pmixfab_deregister", "pmixfab_of", "pmixfab_relay_open",
             "pmixfab_relay_deadline", "pmixfab_relay_close", "pmixfab_tell_job", "pmixfab_server_fabric",
             "pmixfab_server_query"}


def setUpModule():
    if WHY_NOT is not None:
        raise unittest.SkipTest(WHY_NOT)


def read(*path):
    with open(os.path.join(lab.ROOT, *path), encoding="utf-8") as file:
        return file.read()


def snapshot(fabric, *more):
    """A run directory with one plane."""
    rundir = lab.tmpdir()
    done = lab.run([lab.program("mksnap"), "--facts", fabric, rundir, *more])
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return rundir


def ctl(rundir, *args, form="json"):
    done = lab.run([lab.program("fabricctl"), "--rundir", rundir, "--format", form, *args])
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout) if form == "json" else list(csv.DictReader(io.StringIO(done.stdout)))


class Header(unittest.TestCase):
    """What Python says is what pmixfab.h says."""

    def test_every_function_is_bound(self):
        header = re.sub(r"/\*.*?\*/", "", read("libpmixfab", "pmixfab.h"), flags=re.DOTALL)
        declared = set(re.findall(r"\b(pmixfab_\w+)\(", header))
        declared -= set(re.findall(r"(?m)^static inline [^;{(]*?(pmixfab_\w+)\(", header))
        folder = os.path.join(lab.ROOT, "python", "pmixfab")
        text = "".join(read(folder, name) for name in os.listdir(folder) if name.endswith(".py"))
        self.assertEqual(declared - set(re.findall(r"\blib\.(pmixfab_\w+)", text)), NOT_BOUND)

    def test_tuples_have_the_members_of_structs(self):
        for name, own in (("plane", pmixfab.PlaneInfo), ("device", pmixfab.Device), ("fact", pmixfab.Fact),
                          ("switch", pmixfab.Switch), ("end", pmixfab.End), ("link", pmixfab.Link),
                          ("change", pmixfab.Change), ("spread", pmixfab.Spread), ("traffic", pmixfab.Traffic)):
            members = {member for member, _ in _library.ffi.typeof(f"struct pmixfab_{name}").fields} - {"reserved"}
            self.assertEqual(set(own._fields), members, name)
            if name != "end":  # which is in others, so that it cannot grow
                struct = _library.ffi.typeof(f"struct pmixfab_{name}")
                last = struct.fields[-1][1]
                self.assertEqual(last.offset + _library.ffi.sizeof(last.type), _library.ffi.sizeof(struct),
                                 f"{name}: a hole at its end")
        members = [member for member, _ in _library.ffi.typeof("struct pmixfab_nearest").fields]
        self.assertEqual(list(pmixfab.Nearest._fields), [*members, "why"])
        members = [member for member, _ in _library.ffi.typeof("struct pmixfab_placement").fields]
        self.assertEqual(list(pmixfab.Placement._fields), ["hosts", "names", *members])

    def test_enumerations(self):
        for name, prefix, own in (("err", "ERR_", pmixfab.ErrorCode), ("state", "STATE_", pmixfab.State),
                                  ("seen", "SEEN_", pmixfab.Seen), ("view", "", pmixfab.View),
                                  ("end_kind", "END_", pmixfab.EndKind), ("change_kind", "CHANGE_", pmixfab.ChangeKind),
                                  ("objective", "PLACE_", pmixfab.Objective), ("pattern", "", pmixfab.Pattern),
                                  ("sharing", "", pmixfab.Sharing)):
            said = {text: number for number, text in _library.ffi.typeof(f"enum pmixfab_{name}").elements.items()}
            for none in ("PMIXFAB_OK", "PMIXFAB_PATTERNS"):
                said.pop(none, None)
            self.assertEqual({f"PMIXFAB_{prefix}{one.name}": one.value for one in own}, said)

    def test_version(self):
        self.assertEqual(pmixfab.VERSION, re.search(r'PMIXFAB_VERSION +"(.*)"', read("libpmixfab", "pmixfab.h")).group(1))
        parts = [pmixfab.VERSION_NUMBER >> shift & 255 for shift in (16, 8, 0)]
        self.assertEqual(".".join(map(str, parts)), pmixfab.VERSION)
        self.assertEqual(pmixfab.NO_PATH, 65535)

    def test_all_of_it_is_described_and_typed(self):
        for name in pmixfab.__all__:
            thing = getattr(pmixfab, name)
            if not inspect.isclass(thing) and not inspect.isfunction(thing):
                continue
            self.assertTrue(thing.__doc__, name)
            parts = [thing] if inspect.isfunction(thing) else [
                part.__func__ if isinstance(part, staticmethod) else part for key, part in vars(thing).items()
                if inspect.isfunction(part) and thing.__module__.startswith("pmixfab") and
                not issubclass(thing, (tuple, enum.Enum)) and (not key.startswith("_"))]
            for part in parts:
                self.assertTrue(part.__doc__, part.__qualname__)
                hints = typing.get_type_hints(part)
                self.assertIn("return", hints, part.__qualname__)
                self.assertEqual([key for key in inspect.signature(part).parameters if key not in ("self", *hints)], [],
                                 part.__qualname__)
        self.assertTrue(os.path.exists(os.path.join(PACKAGE, "pmixfab", "py.typed")))


class Snapshots(unittest.TestCase):
    def test_as_fabricctl_says(self):
        for fabric in FABRICS:
            rundir = snapshot(fabric)
            with self.subTest(fabric), pmixfab.open_rundir(rundir) as plane:
                for check in (self.planes, self.devices_and_hosts, self.facts, self.switches_links_and_groups, self.costs, self.paths,
                              self.from_a_file_and_from_memory):
                    check(rundir, plane)

    def planes(self, rundir, plane):
        said, info = ctl(rundir, "planes")[0], plane.info
        self.assertEqual([info.name, info.vendor, info.identifier, info.kind, info.n_devices, info.n_hosts,
                          info.n_switches, info.n_links, info.n_groups, list(info.shape), info.dims, info.generation,
                          info.is_default, info.index, list(info.physical_shape)],
                         [said[key] for key in ("name", "vendor", "identifier", "kind", "devices", "hosts", "switches",
                                                "links", "groups", "shape", "dims", "generation", "default", "index",
                                                "physical_shape")])
        self.assertEqual(plane.shape_string(), "x".join(map(str, said["shape"])))
        self.assertEqual(pmixfab.list_rundir(rundir), ["ib0"])

    def devices_and_hosts(self, rundir, plane):
        switches = list(plane.switches())
        said = ctl(rundir, "devices")
        for one, device in zip(said, plane.devices(), strict=True):
            at = None if device.switch_index is None else switches[device.switch_index].name
            self.assertEqual(
                [device.index, device.id, device.host, device.name, device.port, at, device.state.name.lower(),
                 plane.coords(device.index).tolist(), plane.coords(device.index, pmixfab.View.PHYSICAL).tolist(),
                 f"0x{device.port_guid:016x}", device.rail],
                [one[key] for key in ("index", "id", "host", "name", "port", "switch", "state", "logical", "physical",
                                      "guid", "rail")])
            self.assertEqual(plane.device(f"{device.host}:{device.name}:{device.port}"), device)
            self.assertIn(device.index, plane.host(device.host).devices)
        hosts = list(plane.hosts())
        self.assertEqual([host.index for host in hosts], [plane.find_host(host.name) for host in hosts])
        self.assertEqual([i for host in hosts for i in host.devices], list(range(len(said))))

    def facts(self, rundir, plane):
        for one in ctl(rundir, "devices", plane.host(0).name):
            self.assertTrue(one["facts"])
            self.assertEqual([fact._replace(sources=list(fact.sources))._asdict() for fact in plane.facts(one["index"])],
                             one["facts"])
            for fact in one["facts"]:
                if fact["chosen"] and not fact["conflict"]:
                    self.assertIsNotNone(plane.fact_text(one["index"], fact["kind"]))
        self.assertIsNone(plane.fact_text(0, "no such kind"))

    def switches_links_and_groups(self, rundir, plane):
        switches = list(plane.switches())
        self.assertEqual([[one.id, one.name, one.level, one.n_ports, one.n_hosts, one.missing, one.unit, one.rail]
                          for one in switches],
                         [[one[key] for key in ("id", "name", "level", "ports", "hosts", "missing", "unit", "rail")]
                          for one in ctl(rundir, "switches")])
        self.assertEqual([plane.find_switch(one.id) for one in switches], list(range(len(switches))))
        self.assertEqual([plane.switch(one.name) for one in switches], switches)

        def end(one):
            return [f"0x{one.guid:016x}", one.port, one.kind.name.lower()]
        self.assertEqual([[*end(one.a), *end(one.b), one.cost, one.missing] for one in plane.links()],
                         [[one[key] for key in ("a_guid", "a_port", "a_kind", "b_guid", "b_port", "b_kind", "cost",
                                                "missing")] for one in ctl(rundir, "links")])
        said = ctl(rundir, "groups")
        for one, group in zip(said, plane.groups(), strict=True):
            names = [plane.host(int(host)).name for host in group.hosts]
            self.assertEqual([group.index, group.name, names], [one[key] for key in ("group", "name", "hosts")])
            if group.switch is not None:
                there = {device.host for device in plane.devices() if device.switch_index == group.switch}
                self.assertEqual((there, switches[group.switch].name), (set(names), group.name))
        self.assertEqual(plane.groups_string(), ";".join(f"{one['group']}:{','.join(one['hosts'])}" for one in said))

    def costs(self, rundir, plane):
        file = os.path.join(rundir, "costs.npy")
        ctl(rundir, "matrix", "-o", file, form="csv")
        costs, n = numpy.load(file), plane.info.n_devices
        self.assertTrue((plane.matrix() == costs).all() and costs.shape == (n, n))
        own = numpy.zeros((n, n), numpy.uint16)
        plane.fill_matrix(own, threads=2)
        self.assertTrue((own == costs).all())
        some = [i * 7 % n for i in range(9)]
        self.assertTrue((plane.device_costs(some) == costs[numpy.ix_(some, some)]).all())
        for i in some:
            self.assertTrue((plane.row(i) == costs[i]).all())
            self.assertEqual(plane.cost(i, plane.device(0).id), costs[i, 0])
        hosts = [i * 5 % plane.info.n_hosts for i in range(6)]
        among = plane.host_costs(hosts)
        for i, a in enumerate(hosts):
            for k, b in enumerate(hosts):
                least = 0 if a == b else min(costs[x, y] for x in plane.host(a).devices for y in plane.host(b).devices)
                self.assertEqual((among[i, k], plane.host_cost(a, plane.host(b).name)), (least, least))

    def paths(self, _, plane):
        """Against a plain search over what links() says."""
        ways = {}
        for link in plane.links():
            if link.a.is_switch and link.b.is_switch:
                for a, b in ((link.a.index, link.b.index), (link.b.index, link.a.index)):
                    ways.setdefault(a, {})[b] = min(link.cost, ways.get(a, {}).get(b, link.cost))
        start = plane.device(0)
        far, heap = {}, [(0, start.switch_index)]
        while heap:
            cost, at = heapq.heappop(heap)
            if far.setdefault(at, cost) == cost:
                for to, more in ways.get(at, {}).items():
                    if to not in far:
                        heapq.heappush(heap, (cost + more, to))
        for device in plane.devices():
            if plane.cost(0, device.index) == pmixfab.NO_PATH:
                self.assertRaises(pmixfab.NotFound, plane.path, 0, device.index)
                continue
            path = plane.path(0, f"{device.host}:{device.name}:{device.port}")
            if device.host == start.host:
                self.assertEqual(path, [])
                continue
            self.assertEqual((path[0], path[-1]), (start.switch_index, device.switch_index))
            self.assertEqual(sum(ways[a][b] for a, b in zip(path, path[1:])), far[path[-1]])

    def test_rails(self):
        """A rail-optimised fabric, as fabricctl shows it."""
        rundir = os.path.join(lab.tmpdir(), "run")
        os.mkdir(rundir)
        done = lab.run([lab.program("fabricd"), "--once", "--rundir", rundir, "--store", os.path.join(rundir, "store.db"),
                        "--probe", "file:" + os.path.join(lab.ROOT, "test", "data", "site_mixed.txt")])
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in pmixfab.list_rundir(rundir):
            with pmixfab.open_rundir(rundir, name) as plane:
                said = ctl(rundir, "--plane", name, "switches")
                self.assertEqual([(one.unit, one.rail) for one in plane.switches()],
                                 [(one["unit"], one["rail"]) for one in said])
                kinds = {one.kind for link in plane.links() for one in (link.a, link.b)}
                for misplaced in plane.misplaced():
                    self.assertLess(misplaced.device, plane.info.n_devices)
        self.assertIn(pmixfab.EndKind.SWITCH, kinds)

    def test_nearest(self):
        rundir = snapshot("fattree2:4,2,4")
        with pmixfab.open_rundir(rundir) as plane:
            bound = ["0-3", None, "hwloc:4,5", "no list"]
            said = ctl(rundir, "where", "node0001:4")
            self.assertEqual([(one.device, one.equal, one.why) for one in plane.nearest("node0001", 4)],
                             [(one["index"], one["equal"], one["why"]) for one in said])
            one = plane.nearest(0, bound, first_rank=2)
            self.assertEqual([near.device for near in one], [0] * 4)
            self.assertEqual(one[1].distance, 0)
            self.assertIn("not bound", one[3].why)
            self.assertEqual(plane.nearest(0, 0), [])

    def from_a_file_and_from_memory(self, rundir, plane):
        with open(os.path.join(rundir, "ib0.snap"), "rb") as file:
            data = file.read()
        for other in (pmixfab.open_file(os.path.join(rundir, "ib0.snap")), pmixfab.open_memory(data),
                      pmixfab.open_memory(plane.bytes())):
            self.assertEqual(bytes(other.bytes()), data)
            self.assertEqual(other.info, plane.info)


class Placing(unittest.TestCase):
    def test_the_best_of_all(self):
        """Against all sets of three of ten hosts."""
        def leaves(plane, hosts):
            return len({plane.device(i).switch_index for host in hosts for i in plane.host(host).devices})

        def most(costs, hosts):
            return max(costs[a][b] for a in hosts for b in hosts)

        def total(costs, hosts):
            return sum(costs[a][b] for a, b in itertools.combinations(hosts, 2))
        for fabric in ("fattree2:4,2,4", "torus:3,4:2", "dragonfly:2,3,1"):
            with pmixfab.open_rundir(snapshot(fabric)) as plane:
                costs = plane.host_costs(range(plane.info.n_hosts)).astype(int)
                among = [i * 5 % plane.info.n_hosts for i in range(10)]
                for objective, value in ((pmixfab.Objective.SUM, lambda hosts: total(costs, hosts)),
                                         (pmixfab.Objective.MAX, lambda hosts: most(costs, hosts)),
                                         (pmixfab.Objective.SWITCHES, lambda hosts: leaves(plane, hosts))):
                    placed = plane.place(3, [plane.host(host).name for host in among], objective)
                    least = min(value(hosts) for hosts in itertools.combinations(among, 3))
                    self.assertEqual((placed.value, placed.bound, value(placed.hosts)), (least,) * 3)
                    self.assertLessEqual(set(placed.hosts), set(among))
                    self.assertEqual(placed.names, tuple(plane.host(host).name for host in placed.hosts))
                    self.assertEqual((placed.n_usable, placed.n_down), (10, 0))
                self.assertEqual(len(set(plane.place(plane.info.n_hosts).hosts)), plane.info.n_hosts, "all")
                with self.assertRaisesRegex(pmixfab.NotFound, "no 11 hosts .*: 10 of the given hosts are up, 0 are down"):
                    plane.place(11, among)
                self.assertRaises(pmixfab.InvalidArgument, plane.place, 1, [999])
                self.assertRaises(pmixfab.NotFound, plane.place, 1, [])

    def test_order_and_spread(self):
        with pmixfab.open_rundir(snapshot("fattree2:4,2,4")) as plane:
            costs = plane.host_costs(range(16)).astype(int)
            hosts = [15, 0, 8, 3, 12, 1]
            ordered = plane.order(plane.host(host).name for host in hosts)
            self.assertEqual(ordered, [0, 1, 3, 8, 12, 15])
            for some in (hosts, ordered):
                felt = plane.spread(some)
                ring = list(zip(some, some[1:] + some[:1]))
                leaf = [plane.device(plane.host(host).devices[0]).switch_index for host in some]
                pairs = [(a, b) for a in range(6) for b in range(6) if a != b]
                self.assertEqual([felt.cost, felt.ring_cost, felt.worst, costs[felt.worst_a][felt.worst_b],
                                  felt.n_switches, felt.worst_switches],
                                 [sum(costs[a][b] for a, b in itertools.combinations(some, 2)),
                                  sum(costs[a][b] for a, b in ring), 40, 40, 3, 3])
                self.assertAlmostEqual(felt.past_leaf[pmixfab.Pattern.ALL_TO_ALL],
                                       sum(leaf[a] != leaf[b] for a, b in pairs) / len(pairs))
                self.assertAlmostEqual(felt.past_leaf[pmixfab.Pattern.RING],
                                       sum(leaf[i] != leaf[i - 1] for i in range(6)) / 6)
            self.assertLess(plane.spread(ordered).ring_cost, plane.spread(hosts).ring_cost)
            self.assertIsNone(plane.spread([3]).worst_a)

    def test_traffic(self):
        """Two leaves of four hosts with two uplinks each: half of the messages of all to all share four directions."""
        everyone, alone = pmixfab.Pattern.ALL_TO_ALL, pmixfab.Sharing.ALONE
        with pmixfab.open_rundir(snapshot("fattree2:4,2,4")) as plane:
            felt = plane.traffic([(range(8), everyone)], alone, 1000)
            fastest = plane.link(felt.link).mbps * 1e6
            self.assertAlmostEqual(felt.seconds, 4 * 4 / 2 * 8000 / fastest)
            self.assertAlmostEqual(felt.least, 7 * 8000 / fastest)
            self.assertAlmostEqual(felt.share, 7 / 8)
            self.assertEqual((felt.pattern, felt.n_leaves, felt.n_links), (everyone, 2, 8))
            self.assertGreater(plane.traffic([(range(8), everyone), (range(8, 16), everyone)],
                                             pmixfab.Sharing.SHARED).seconds, 0)
            hosts, best = plane.place_for(everyone, 8)
            self.assertEqual((best.share, best.link, len(set(hosts))), (1, None, 8))
            self.assertEqual(plane.traffic([(hosts, everyone)]), best)
            self.assertRaises(pmixfab.InvalidArgument, plane.traffic, [])
            self.assertRaises(pmixfab.NotFound, plane.place_for, everyone, 17)

    def test_the_document_places_a_job_in_ten_lines(self):
        program = re.search("^```python\n(.*?)^```", read("docs", "python.md"), re.DOTALL | re.MULTILINE).group(1)
        self.assertLessEqual(len(program.splitlines()), 10)
        self.assertIn("open_rundir()", program)
        rundir = snapshot("fattree2:4,2,4")
        done = lab.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({LIBRARY!r})\n" +
                        program.replace("open_rundir()", f"open_rundir({rundir!r})")], env=dict(os.environ, PYTHONPATH=PACKAGE))
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout, re.search("^    (node.*?)^$", read("docs", "python.md"), re.DOTALL | re.MULTILINE
                                                ).group(1).replace("\n    ", "\n"))


class Memory(unittest.TestCase):
    """Arrays without a copy, whose memory stays for as long as they do, and no longer."""

    def test_arrays_keep_the_snapshot(self):
        rundir = snapshot("fattree2:4,2,4")
        plane = pmixfab.open_rundir(rundir)
        hosts, coords, data = plane.group(1).hosts, plane.coords(7), plane.bytes()
        expected = [hosts.tolist(), coords.tolist(), bytes(data)]

        def mapped():
            with open("/proc/self/maps", encoding="utf-8") as file:
                return rundir in file.read()
        for array in (hosts, coords):
            self.assertFalse(array.flags.owndata or array.flags.writeable)
            with self.assertRaises(ValueError):
                array[0] = 1
        plane.close()
        del plane
        arrays = [hosts, coords, data]
        del hosts, coords, data, array
        while arrays:
            gc.collect()
            self.assertTrue(mapped())
            self.assertEqual([bytes(one) if isinstance(one, memoryview) else one.tolist() for one in arrays], expected)
            del arrays[0], expected[0]
        gc.collect()
        self.assertFalse(mapped(), "the last of them is gone")

    def test_a_matrix_outlives_its_plane_and_is_freed(self):
        plane = pmixfab.open_rundir(snapshot("fattree2:32,2,32"))
        n = plane.info.n_devices
        matrix = plane.matrix()
        self.assertFalse(matrix.flags.owndata)
        for _ in range(300):  # 2 MB each
            part = plane.matrix()[n // 2:]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(300):
            part = plane.matrix()[n // 2:]
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 100 * 1024)
        row = plane.row(n - 1)
        plane.close()
        del plane
        gc.collect()
        self.assertTrue((part[-1] == row).all() and (matrix[-1] == row).all())
        matrix[0, 0] = 7  # it is the caller's

    def test_a_matrix_that_follows(self):
        before = pmixfab.open_rundir(snapshot("fattree2:4,2,4"))
        for fabric, same in (("torus:4,4:1", True), ("fattree2:4,2,5", False)):
            after = pmixfab.open_rundir(snapshot(fabric))
            for cells in (before.matrix(), numpy.array(before.matrix())):
                now = after.update_matrix(before, cells)
                self.assertEqual(now is cells, same)
                self.assertTrue((now == after.matrix()).all())

    def test_arrays_that_do_not_fit(self):
        plane = pmixfab.open_rundir(snapshot("fattree2:4,2,4"))
        good = plane.matrix()
        read_only = good.copy()
        read_only.flags.writeable = False
        for bad in (good[:, ::2], good.T[1:].T, good.astype(numpy.uint32), read_only, numpy.zeros((32, 32), numpy.uint16)[::2, ::2],
                    numpy.asfortranarray(good)):
            self.assertRaises(ValueError, plane.fill_matrix, bad)
            self.assertRaises(ValueError, plane.update_matrix, plane, bad)


class Errors(unittest.TestCase):
    def test_each_kind(self):
        rundir = snapshot("fattree2:4,2,4")
        plane = pmixfab.open_rundir(rundir)
        with self.assertRaisesRegex(pmixfab.NotFound, "check that fabricd runs here") as raised:
            pmixfab.open_rundir("/nonexistent")
        self.assertIs(raised.exception.code, pmixfab.ErrorCode.NOTFOUND)
        for wrong in (lambda: plane.find("nobody"), lambda: plane.cost("nobody", 0), lambda: plane.find_host("leaf1"),
                      lambda: plane.find_switch("node0001"), lambda: pmixfab.open_rundir(rundir, "ib7"),
                      lambda: pmixfab.open_file("/nonexistent"), lambda: pmixfab.list_rundir(lab.tmpdir()),
                      lambda: pmixfab.stale_rundir("/nonexistent"), lambda: pmixfab.watch("/nonexistent/run")):
            self.assertRaises(LookupError, wrong)
        for wrong in (lambda: plane.cost(0, 16), lambda: plane.row(16), lambda: plane.device(16), lambda: plane.host(16),
                      lambda: plane.switch(99), lambda: plane.link(999), lambda: plane.group(99), lambda: plane.coords(16),
                      lambda: plane.coords(0, 3), lambda: plane.path(0, 16), lambda: plane.device_costs([0, 16]),
                      lambda: plane.host_costs([16]), lambda: plane.host_cost(0, 16), lambda: plane.shape_string(3),
                      lambda: plane.nearest(16, 1), lambda: list(plane.facts(16)), lambda: pmixfab.open_rundir(""),
                      lambda: pmixfab.open_file(""), lambda: pmixfab.watch("")):
            with self.assertRaises(pmixfab.InvalidArgument) as raised:
                wrong()
            self.assertIsInstance(raised.exception, ValueError)
        self.assertRaises(OverflowError, plane.cost, 0, -1)
        for data, code in ((b"", "TRUNCATED"), (b"x" * 500, "FOREIGN"), (bytes(plane.bytes())[:-1], "TRUNCATED")):
            with self.assertRaises(pmixfab.Error) as raised:
                pmixfab.open_memory(data)
            self.assertEqual(raised.exception.code.name, code)
        plane.close()
        plane.close()
        self.assertRaisesRegex(ValueError, "closed", plane.cost, 0, 1)

    def test_names_that_are_wrong(self):
        plane = pmixfab.open_rundir(snapshot("fattree2:4,2,4"))
        for wrong, words in ((lambda: plane.place(1, ["node0001", "nobody"]), "ib0 has no host 'nobody'"),
                             (lambda: plane.cost(0, "nobody"), "ib0 has no device 'nobody'"),
                             (lambda: plane.switch("nobody"), "ib0 has no switch 'nobody'")):
            self.assertRaisesRegex(pmixfab.NotFound, words, wrong)
        for wrong in (lambda: plane.place(1, among="node0001"), lambda: plane.host_costs("node0001"),
                      lambda: plane.device_costs("node0001"), lambda: plane.order("node0001"),
                      lambda: plane.spread("node0001"), lambda: plane.order(b"01"), lambda: plane.nearest(0, "0-11"),
                      lambda: plane.nearest("node0001", b"01")):
            self.assertRaisesRegex(TypeError, "a list", wrong)
        for which, number in ((pmixfab.NotFound, pmixfab.ErrorCode.NOTFOUND), (pmixfab.Error, -12345)):  # they go to other processes
            other = pickle.loads(pickle.dumps(which(number, "what it says")))
            self.assertEqual((type(other), other.code, str(other)), (which, number, "what it says"))

    def test_the_log_is_python_s(self):
        rundir = snapshot("fattree2:4,2,4")
        lab.replace_file(os.path.join(rundir, "ib9.snap"), "no snapshot")
        with self.assertLogs("pmixfab", logging.WARNING) as logged:
            self.assertEqual(pmixfab.list_rundir(rundir), ["ib0"])
        self.assertRegex("".join(logged.output), "WARNING:pmixfab:skipped: .*ib9.snap")
        done = lab.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1]); import pmixfab\n"
                        "pmixfab.list_rundir(sys.argv[2])", LIBRARY, rundir], env=dict(os.environ, PYTHONPATH=PACKAGE))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), "nobody asked for it")

    def test_where_the_library_is_not(self):
        done = lab.run([sys.executable, "-c", "import pmixfab"], env={"PYTHONPATH": PACKAGE, "LD_LIBRARY_PATH": "/nonexistent"})
        if done.returncode == 0:
            self.skipTest("the library is installed on this host")
        self.assertRegex(done.stderr, "ImportError: .*libpmixfab.so.0.*: install libpmixfab0, or add its folder to LD_LIBRARY_PATH")

    def test_threads(self):
        plane = pmixfab.open_rundir(snapshot("fattree2:8,2,8"))
        matrix, wrong = plane.matrix(), []

        def ask(first):
            for i in range(first, 64):
                if (plane.row(i) != matrix[i]).any() or plane.device(plane.device(i).id).index != i:
                    wrong.append(i)
                try:
                    plane.find(f"nobody{i}")
                except pmixfab.NotFound:
                    continue
                wrong.append(i)
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Watching(unittest.TestCase):
    """Without a daemon: all is stale, and snapshots come as they are put there."""

    def setUp(self):
        self.parent = lab.tmpdir()
        self.rundir = os.path.join(self.parent, "run")
        os.mkdir(self.rundir)
        self.source = os.path.join(snapshot("fattree2:2,1,2"), "ib0.snap")
        self.watch = pmixfab.watch(self.rundir)
        self.addCleanup(self.watch.close)

    def publish(self, *planes):
        for plane in planes:
            shutil.copy(self.source, os.path.join(self.parent, "new"))
            os.rename(os.path.join(self.parent, "new"), os.path.join(self.rundir, plane + ".snap"))

    def test_what_is_not_taken_is_told_later(self):
        for first in (iter, pmixfab.Watch.changes):
            self.publish("ib1", "ib2", "ib3")
            told = [next(first(self.watch)), next(iter(self.watch)), *self.watch.wait()]
            self.assertEqual(sorted(change.plane for change in told), ["ib1", "ib2", "ib3"])
            for change in told:
                os.unlink(os.path.join(self.rundir, change.plane + ".snap"))
            self.assertEqual([change.kind.name for change in self.watch.changes()], ["GONE"] * 3)

    def test_descriptors_of_a_large_program(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 2048:
            self.skipTest("this process may not have 2048 descriptors")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        many = [os.dup(0) for _ in range(1100)]
        self.addCleanup(lambda: [os.close(fd) for fd in many])
        with pmixfab.watch(self.rundir) as watch:
            self.assertGreater(watch.fileno(), 1023)
            self.publish("ib1")
            self.assertEqual([change.plane for change in watch.wait(lab.HUNG)], ["ib1"])


class Daemon(unittest.TestCase):
    """A fabricd that runs."""

    def setUp(self):
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        self.whole = lab.fabric("fattree2:4,2,4", "capture")
        lab.replace_file(self.path, self.whole)
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}"}})
        self.addCleanup(self.daemon.stop)

    def test_changes(self):
        """One is told when it is there; and what is opened then has it."""
        rundir = self.daemon.rundir
        with pmixfab.watch(rundir) as watch, pmixfab.open_rundir(rundir) as before:
            self.assertEqual(list(watch.changes()), [])
            self.assertFalse(pmixfab.stale_rundir(rundir))
            lab.replace_file(self.path, fabric_text.slower(self.whole, "leaf1"))
            self.daemon.refresh()
            told = next(iter(watch))
            self.assertEqual(told, pmixfab.Change(2, pmixfab.ChangeKind.PUBLISHED, "ib0"))
            with pmixfab.open_rundir(rundir, told.plane) as after:
                self.assertEqual(after.info.generation, 2)
                cells = before.matrix()
                self.assertTrue((after.update_matrix(before, cells) == after.matrix()).all())
                self.assertGreater(after.cost("node0001", "node0016"), before.cost("node0001", "node0016"))
            lab.replace_file(self.path, "no fabric")
            self.daemon.control("refresh")
            self.assertEqual([change.kind.name for change in watch.wait(lab.HUNG)], ["STALE"])
            self.assertTrue(pmixfab.stale_rundir(rundir))
            lab.replace_file(self.path, self.whole)
            self.daemon.refresh()
            told = []
            while len(told) < 2:
                told += watch.wait(lab.HUNG)
            self.assertEqual({change.kind.name for change in told}, {"PUBLISHED", "CURRENT"})
            self.daemon.kill9()
            self.assertEqual([change.kind.name for change in watch.wait(0)], ["STALE"], "who asks is told")
            self.daemon.start(wait=False)
            self.assertEqual([change.kind.name for change in watch.wait(lab.HUNG)], ["CURRENT"])
        self.assertRaisesRegex(ValueError, "closed", watch.fileno)

    def test_over_pmix(self):
        """With Debian's bindings of PMIx in the same process."""
        if lab.run([sys.executable, "-c", "import pmix"]).returncode != 0:
            self.skipTest("the Python bindings of PMIx are not installed (Debian: python3-pmix)")
        program = os.path.join(lab.tmpdir(), "tool.py")
        lab.replace_file(program, "import ctypes, json, sys\nctypes.CDLL(sys.argv[1])\nimport pmix, pmixfab\n"
                         "tool = pmix.PMIxTool()\nstatus, _ = tool.init([{'key': pmix.PMIX_SERVER_URI, 'value': sys.argv[2],"
                         " 'val_type': pmix.PMIX_STRING}])\nassert status == pmix.PMIX_SUCCESS, status\n"
                         "with pmixfab.open_pmix() as plane:\n"
                         "    print(json.dumps([pmixfab.list_pmix(), pmixfab.stale_pmix(), int(plane.matrix().sum())]))\n"
                         "tool.finalize()\n")
        done = lab.run([sys.executable, program, LIBRARY, self.daemon.uri()],
                       env=dict(self.daemon.tool_env(), PYTHONPATH=f"{PACKAGE}:{os.environ.get('PYTHONPATH', '')}"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with pmixfab.open_rundir(self.daemon.rundir) as plane:
            self.assertEqual(json.loads(done.stdout), [["ib0"], False, int(plane.matrix().sum())])


if __name__ == "__main__":
    unittest.main()
