"""A change of the fabric reaches those who are connected: each published change as one pair of events, and no other. (Which changes
of which planes are announced is in test/sim/test_events.py.)"""
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

    def cost(self):
        return self.daemon.ctl_json("cost", NEAR, FAR)["cost"]


class Live(Case):
    """On a simulated subnet with a subnet manager that stays."""

    def setUp(self):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(fabric_text.one_fast_cable(lab.fabric("fattree2:4,2,4"), LEAF, SPINE))
        self.addCleanup(self.sim.quit)
        self.port = self.sim.cable(LEAF, SPINE)
        manager = lab.OpenSM(self.sim)
        self.addCleanup(manager.stop)
        self.daemon = lab.Fabricd(self.sim)
        self.addCleanup(self.daemon.stop)

    def pull(self):
        self.sim.unlink(LEAF, self.port)

    def put_back(self):
        self.sim.relink(LEAF, self.port)
        self.sim.wait_active(LEAF, self.port)

    def test_a_cable_is_pulled_and_put_back(self):
        """A tool that is stopped or dies holds nobody up."""
        *tools, stopped, killed = (self.watch(self.daemon) for _ in range(4))
        stopped.process.send_signal(signal.SIGSTOP)
        killed.process.kill()
        killed.process.wait()
        cycle = lab.Watch([lab.program("stock_tool"), self.daemon.uri(), "cycle"], self.daemon.tool_env())
        self.addCleanup(cycle.stop)
        cycle.wait("^watching$")
        self.assertEqual(re.findall(r"pmixfab.generation uint64 (\d+)", cycle.output.text), ["1"])
        follower = self.follow(self.daemon)
        self.assertEqual(self.cost(), FAST)

        self.pull()
        self.assertLessEqual({"ok": True, "generation": 2, "changed": True, "partial": False}.items(),
                             self.daemon.refresh().items())
        for tool in tools:
            tool.wait(f"^{UPDATED}.*\n")
            self.assertEqual(events_of(tool), pair(2))
        self.assertNotIn("continuing without it", self.daemon.log())
        cycle.wait(r"^updated$[^$]*pmixfab.generation uint64 2\n")
        self.assertEqual(events_of(cycle), pair(2))
        self.assertEqual(self.cost(), SLOW)

        stopped.process.send_signal(signal.SIGCONT)
        stopped.wait(f"^{UPDATED}.*\n")
        self.assertEqual(events_of(stopped), pair(2))

        late = self.watch(self.daemon)  # is not told of the past
        self.put_back()
        self.assertEqual(self.daemon.refresh()["generation"], 3)
        late.wait(f"^{UPDATED}.*\n")
        self.assertEqual(events_of(late), pair(3))
        for tool in tools:
            tool.wait(f"^{UPDATED}.* generation 3 .*\n")
            self.assertEqual(events_of(tool), pair(2) + pair(3))
            self.shows_events(tool.lines(), {name: [pair(2)[n], pair(3)[n]] for n, name in enumerate((PENDING, UPDATED))}, "tool")
        self.assertEqual(self.cost(), FAST)
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
        return [end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 0 for end in self.connections(daemon.pmix_pid())]

    def test_nothing_is_held_back(self):
        """By the library alone it is. When this fails, a newer one has come: see whether guard_connect.c still has to ask for it."""
        self.assertEqual(self.held_back(), [False])
        self.assertEqual(self.held_back(FABRICD_NO_REPAIR="1"), [True])


if __name__ == "__main__":
    unittest.main()
