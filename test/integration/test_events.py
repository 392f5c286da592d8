"""A change of the fabric reaches those who are connected: each published change as one pair of events, and no other."""
import ctypes
import errno
import json
import os
import re
import signal
import socket
import unittest

import conforms
import fabric_text
import lab

PENDING, UPDATED = "PMIX_FABRIC_UPDATE_PENDING", "PMIX_FABRIC_UPDATED"
LEAF, SPINE = "leaf1", "spine1"  # the one fast cable of this leaf
NEAR, FAR = "node0001", "node0016"
FAST, SLOW = 40, 50


def pair(generation, index=1, plane="ib0"):
    return [f"{name} index {index} generation {generation} plane {plane}" for name in (PENDING, UPDATED)]


def events_of(watch):
    return [line for line in watch.lines() if line.startswith("PMIX_")]


class Case(conforms.Shows):
    config = {}

    def watch(self, daemon, *args):
        watch = daemon.watch(*args)
        self.addCleanup(watch.stop)
        watch.wait("^watching$")
        return watch

    def follow(self, daemon):
        """fabricctl events --follow, once it is connected."""
        before = daemon.connections()
        follower = lab.Watch([lab.program("fabricctl"), "--rundir", daemon.rundir, "--format", "json", "events",
                              "--follow"])
        self.addCleanup(follower.stop)
        lab.wait_for(lambda: daemon.connections() > before, what="fabricctl events --follow to connect")
        return follower

    def cost(self, daemon):
        return daemon.ctl_json("cost", NEAR, FAR)["cost"]

    def matrix(self, daemon):
        return daemon.ctl_json("matrix")["costs"]


class Live(Case):
    """On a simulated subnet with a subnet manager that stays."""

    def setUp(self):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(fabric_text.one_fast_cable(lab.fabric("fattree2:4,2,4"), LEAF, SPINE))
        self.addCleanup(self.sim.quit)
        self.port = self.sim.cable(LEAF, SPINE)
        manager = lab.OpenSM(self.sim)
        self.addCleanup(manager.stop)
        self.daemon = lab.Fabricd(self.sim, config=self.config)
        self.addCleanup(self.daemon.stop)

    def pull(self):
        self.sim.unlink(LEAF, self.port)

    def put_back(self):
        self.sim.relink(LEAF, self.port)
        self.sim.wait_active(LEAF, self.port)


class OnRequest(Live):
    def check_costs(self, cost):
        """fabricctl's cost, its matrix, and the matrix of who is not told of it, say the same."""
        self.assertEqual(self.cost(self.daemon), cost)
        rows = self.matrix(self.daemon)
        self.assertEqual(rows[0][15], cost)
        self.assertEqual(rows, [list(column) for column in zip(*rows)])
        self.assertEqual([rows[i][i] for i in range(16)], [0] * 16)
        self.assertEqual({rows[a][b] for a in range(4) for b in range(4) if a != b}, {20})
        self.assertEqual({rows[a][b] for a in range(4) for b in range(4, 16)}, {cost})
        self.assertEqual({rows[a][b] for a in range(4, 8) for b in range(8, 16)}, {FAST})

    def test_a_cable_is_pulled_and_put_back(self):
        tools = [self.watch(self.daemon) for _ in range(3)]
        cycle = lab.Watch([lab.program("stock_tool"), self.daemon.uri(), "cycle"], self.daemon.tool_env())
        self.addCleanup(cycle.stop)
        cycle.wait("^watching$")
        self.assertEqual(re.findall(r"pmixfab.generation uint64 (\d+)", cycle.output.text), ["1"])
        follower = self.follow(self.daemon)
        self.check_costs(FAST)

        self.pull()
        self.assertLessEqual({"ok": True, "generation": 2, "changed": True, "partial": False}.items(),
                             self.daemon.refresh().items())
        for tool in tools:
            tool.wait(f"^{UPDATED}.*\n")
            self.assertEqual(events_of(tool), pair(2))
        self.assertNotIn("going on without it", self.daemon.log())
        cycle.wait(r"^updated$[^$]*pmixfab.generation uint64 2\n")
        self.assertEqual(events_of(cycle), pair(2))
        self.check_costs(SLOW)

        self.put_back()
        self.assertEqual(self.daemon.refresh()["generation"], 3)
        for tool in tools:
            tool.wait(f"^{UPDATED}.* generation 3 .*\n")
            self.assertEqual(events_of(tool), pair(2) + pair(3))
            self.shows_events(tool.lines(), {name: [pair(2)[n], pair(3)[n]] for n, name in enumerate((PENDING, UPDATED))}, "tool")
        self.check_costs(FAST)
        self.check_follower(follower)

    def check_follower(self, follower):
        follower.wait(f'{UPDATED}".*\n(.*\n)*.*{UPDATED}".*\n')
        events = [json.loads(line) for line in follower.lines()]
        self.assertEqual([(e["event"], e["plane"], e["generation"]) for e in events],
                         [(name, "ib0", generation) for generation in (2, 3) for name in (PENDING, UPDATED)])
        times = [e["time"] for e in events]
        self.assertEqual(times, sorted(times))
        self.assertRegex(times[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$")
        self.assertEqual(self.daemon.ctl_json("events")[-4:], events)  # without --follow: the latest

    def test_no_change_no_event(self):
        tool = self.watch(self.daemon)
        for _ in range(2):
            self.assertLessEqual({"ok": True, "generation": 1, "changed": False, "partial": False}.items(),
                                 self.daemon.refresh().items())
        self.assertEqual(self.daemon.status()["generation"], 1)
        self.pull()
        self.daemon.refresh()  # the first pair that comes is that of the first change
        tool.wait(f"^{UPDATED}.*\n")
        self.assertEqual(events_of(tool), pair(2))

    def test_who_comes_late_is_not_told_of_the_past(self):
        self.pull()
        self.daemon.refresh()
        tool = self.watch(self.daemon)
        self.put_back()
        self.daemon.refresh()
        tool.wait(f"^{UPDATED}.*\n")
        self.assertEqual(events_of(tool), pair(3))

    def test_a_tool_that_is_stopped_or_dies_holds_nobody_up(self):
        stopped, killed, good = (self.watch(self.daemon) for _ in range(3))
        stopped.process.send_signal(signal.SIGSTOP)
        killed.process.kill()
        killed.process.wait()
        self.pull()
        self.daemon.refresh()
        good.wait(f"^{UPDATED}.*\n")
        self.assertEqual(events_of(good), pair(2))
        stopped.process.send_signal(signal.SIGCONT)
        stopped.wait(f"^{UPDATED}.*\n")
        self.assertEqual(events_of(stopped), pair(2))

    def test_a_host_goes_and_comes_back(self):
        tool = self.watch(self.daemon)
        port = self.sim.cable(LEAF, NEAR)
        self.sim.unlink(LEAF, port)
        self.assertEqual(self.daemon.refresh()["generation"], 2)
        self.assertEqual(self.daemon.ctl_json("planes")[0]["devices"], 16)  # it keeps its place for a while
        changes = self.daemon.ctl_json("diff", "1", "2")["changes"]
        self.assertEqual([(change["kind"], change["what"]) for change in changes], [("host-missing", f"{NEAR} HCA-1")])
        self.sim.relink(LEAF, port)
        self.sim.wait_active(LEAF, port)
        self.assertEqual(self.daemon.refresh()["generation"], 3)
        self.assertEqual(self.daemon.ctl_json("planes")[0]["devices"], 16)
        tool.wait(f"^{UPDATED}.* generation 3 .*\n")
        self.assertEqual(events_of(tool), pair(2) + pair(3))


class Periodic(Live):
    config = {"fabricd": {"interval": 1}}

    def test_the_sweep_comes_by_itself(self):
        tool = self.watch(self.daemon, "4")
        self.pull()
        tool.wait(f"^{UPDATED}.*\n")
        self.put_back()
        tool.process.wait(20 * lab.SLOW)
        # OpenSM may be seen half-way: then there is a generation more, but never an event without its other half
        numbers = [int(number) for number in re.findall(r"generation (\d+)", tool.output.text)]
        self.assertEqual(numbers, sorted(numbers))
        self.assertEqual(events_of(tool), [line for number in numbers[::2] for line in pair(number)])
        self.assertEqual(self.daemon.status()["interval"], 1)


class Planes(Case):
    """A leaf is cut off (in a recorded fabric, which still shows it): it becomes a plane of its own."""

    def setUp(self):
        folder = lab.tmpdir()
        self.path = os.path.join(folder, "fabric.txt")
        self.whole = lab.fabric("fattree2:4,2,4", "capture")
        self.cut = self.whole
        for spine in ("spine1", "spine2"):
            self.cut = fabric_text.without_cables(self.cut, LEAF, spine)
        lab.replace_file(self.path, self.whole)
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}"}})
        self.addCleanup(self.daemon.stop)

    def names(self):
        return sorted(name for name in os.listdir(self.daemon.rundir) if name.endswith(".snap"))

    def test_a_pair_for_each_plane(self):
        tool = self.watch(self.daemon)
        lab.replace_file(self.path, self.cut)
        self.daemon.refresh()
        tool.wait(f"^{UPDATED}.* plane ib1\n")
        got = events_of(tool)
        self.assertEqual(sorted(got[:2]), sorted([pair(2)[0], pair(2, 2, "ib1")[0]]))  # all are pending
        self.assertEqual(sorted(got[2:]), sorted([pair(2)[1], pair(2, 2, "ib1")[1]]))  # before one is done
        planes = self.daemon.ctl_json("planes")
        self.assertEqual([(p["name"], p["index"], p["devices"]) for p in planes], [("ib0", 1, 12), ("ib1", 2, 4)])
        self.assertEqual(self.names(), ["ib0.snap", "ib1.snap"])
        self.assertEqual(self.daemon.ctl("cost", NEAR, FAR).returncode, 1)

        lab.replace_file(self.path, self.whole)
        self.daemon.refresh()
        tool.wait(f"^{UPDATED}.* generation 3 plane ib1\n")
        self.assertEqual(len(events_of(tool)), 8)
        self.assertEqual(self.names(), ["ib0.snap"])
        self.assertEqual(self.cost(self.daemon), FAST)

    def test_only_the_plane_that_changed_is_announced(self):
        lab.replace_file(self.path, self.cut)
        self.daemon.refresh()
        tool = self.watch(self.daemon)
        lab.replace_file(self.path, fabric_text.without_cables(self.cut, "leaf2", "spine1"))
        self.daemon.refresh()
        tool.wait(f"^{UPDATED}.*\n")
        lab.replace_file(self.path, self.cut)
        self.daemon.refresh()
        tool.wait(f"^{UPDATED}.* generation 4 .*\n")
        self.assertEqual(events_of(tool), pair(3) + pair(4))
        self.assertEqual([plane["generation"] for plane in self.daemon.ctl_json("planes")], [4, 2])

    def test_a_number_is_kept_by_who_had_it(self):
        """Cut off, joined, and cut off again, also over a restart: ib1 is the same part each time."""
        for text in (self.cut, self.whole):
            lab.replace_file(self.path, text)
            self.daemon.refresh()
        self.daemon.stop()
        lab.replace_file(self.path, self.cut)
        self.daemon.start(wait=False)
        self.daemon.wait_ready(4)
        hosts = {d["host"]: d["plane"] for d in self.daemon.ctl_json("devices")}
        self.assertEqual({hosts[f"node{i:04}"] for i in range(1, 5)}, {"ib1"})
        self.assertEqual({hosts[f"node{i:04}"] for i in range(5, 17)}, {"ib0"})


class AtOnce(Case):
    """Two events, or an answer and an event, leave at once: the kernel would keep the second one back until the tool's
    kernel acknowledges the first, which takes 40 ms where that waits for something to send it with."""

    PIDFD_OPEN, PIDFD_GETFD = 434, 438

    def connections(self, pid):
        """The daemon's own ends of its TCP connections."""
        call = ctypes.CDLL(None, use_errno=True).syscall
        process = call(self.PIDFD_OPEN, pid, 0)
        if process < 0:
            self.skipTest(f"no descriptor of a process: {os.strerror(ctypes.get_errno())}")
        self.addCleanup(os.close, process)
        for number, path in lab.descriptors(pid).items():
            if path.startswith("socket:"):
                fd = call(self.PIDFD_GETFD, process, number, 0)
                if fd < 0 and ctypes.get_errno() == errno.EBADF:
                    continue
                if fd < 0:
                    self.skipTest(f"no descriptor of another process: {os.strerror(ctypes.get_errno())}")
                with socket.socket(fileno=fd) as end:
                    if end.family == socket.AF_INET and not end.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        yield end

    def held_back(self, **env):
        """Of the daemon's connections with a tool: does the kernel keep small messages back?"""
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric("fattree2:2,1,2", "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}}, env=env)
        self.addCleanup(daemon.stop)
        daemon.wait_ready()
        self.watch(daemon)
        return [end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 0 for end in self.connections(daemon.front())]

    def test_nothing_is_held_back(self):
        self.assertEqual(self.held_back(), [False])

    def test_the_library_alone_holds_back(self):
        """When this fails, a newer library has come: see whether repair_connect.c still has to ask for it."""
        self.assertEqual(self.held_back(FABRICD_NO_REPAIR="1"), [True])


if __name__ == "__main__":
    unittest.main()
