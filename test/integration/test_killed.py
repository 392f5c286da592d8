"""Whatever is killed, and whenever: what was served goes on being served, and the store keeps every generation."""
import json
import os
import random
import re
import signal
import time
import unittest

import fabric_text
import lab

KILLS_OF_THE_SUBNET = 20 if lab.ALL else 8
KILLS_OF_THE_DAEMON = 50 if lab.ALL else 20
DEADLINE = 2 * lab.SLOW
NEAR, FAR = "node0001", "node0016"


def stale(daemon):
    status = daemon.status()
    return status["stale"] and status


class Case(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(self.id())  # other moments for each test, the same in each run

    def check_failed(self, daemon, answer, failures):
        """A sweep failed: one line says so, the status says so, and the last generation is served."""
        daemon.check_alive()
        self.assertFalse(answer["ok"])
        self.assertEqual(len(daemon.errors()), failures, daemon.log())
        self.assertEqual(daemon.errors()[-1], answer["message"])
        status = daemon.status()
        self.assertTrue(status["stale"])
        self.assertRegex(status["stale_since"], r"^\d{4}-\d\d-\d\dT")
        self.assertEqual(status["stale_reason"], answer["message"])
        self.assertEqual(status["generation"], 1)


class Subnet(Case):
    """ibsim is killed under the sweep, of several subnets at a time since most of the time is waiting."""

    def setUp(self):
        super().setUp()
        lab.require("ibsim", "opensm")
        self.sims = [lab.Ibsim(lab.fabric("fattree3:8")) for _ in range(4)]
        self.daemons = []
        for sim in self.sims:
            self.addCleanup(sim.kill)
            sim.sweep()
            self.daemons.append(lab.Fabricd(sim, config={"fabricd": {"deadline": DEADLINE}}))
            self.addCleanup(self.daemons[-1].stop)

    def kill_under_sweep(self, sim, daemon):
        """Ask for a sweep, kill the subnet while it is under way; the connection that waits for the answer."""
        last = daemon.status()["sweep_ms"] / 1000
        channel = daemon.ask("refresh")
        lab.wait_for(lambda: daemon.children() or not daemon.status()["sweeping"], what="the sweep to begin")
        time.sleep(self.random.uniform(0, 0.8 * min(last, 0.2)))  # the moment is what is tried
        sim.kill()
        return channel

    def test_killed_at_any_moment(self):
        failures, reasons = [0] * len(self.sims), set()
        for _ in range(20):
            channels = [self.kill_under_sweep(*both) for both in zip(self.sims, self.daemons)]
            for i, daemon in enumerate(self.daemons):
                answer = daemon.answer(channels[i])
                if answer["ok"]:  # it was done already
                    self.assertFalse(answer["changed"])
                    continue
                failures[i] += 1
                reasons.add(re.sub(r"\d+", "N", answer["message"]))
                self.check_failed(daemon, answer, failures[i])
                self.assertEqual(daemon.ctl_json("cost", NEAR, FAR)["cost"], 40)
            for sim, daemon in zip(self.sims, self.daemons):
                sim.restart()
                sim.sweep()
                self.assertLessEqual({"ok": True, "generation": 1, "changed": False, "partial": False}.items(),
                                     daemon.refresh().items())
                self.assertFalse(daemon.status()["stale"])
            if sum(failures) >= KILLS_OF_THE_SUBNET:
                break
        self.assertGreaterEqual(sum(failures), KILLS_OF_THE_SUBNET, f"the kills came too late: {reasons}")
        for daemon in self.daemons:
            self.assertIn("pmixfab.generation uint64 1\n", daemon.tool("register").stdout)

    def test_a_subnet_that_hangs(self):
        sim, daemon = self.sims[0], self.daemons[0]
        os.kill(sim.process.pid, signal.SIGSTOP)
        answer = daemon.control("refresh")
        self.check_failed(daemon, answer, 1)
        since = daemon.status()["stale_since"]
        self.assertFalse(daemon.control("refresh")["ok"])
        self.assertEqual(daemon.status()["stale_since"], since)  # since the first that failed
        self.assertEqual(len(daemon.errors()), 2)
        sim.kill()
        sim.restart()
        sim.sweep()
        daemon.refresh()
        self.assertIsNone(daemon.status()["stale_since"])


class Child(Case):
    """The sweeping child is killed, stopped, or left without its daemon."""

    def setUp(self):
        super().setUp()
        self.feed = lab.Feed()
        self.capture = lab.fabric("fattree2:4,2,4", "capture")
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": self.feed.probe, "deadline": 1}}, start=False)
        self.daemon.start(wait=False)
        self.addCleanup(self.daemon.kill9)
        self.feed.give(self.capture)
        self.daemon.wait_ready()

    def test_signals(self):
        numbers = [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM, signal.SIGSTOP]
        if lab.SANITIZE:
            numbers.remove(signal.SIGSEGV)  # a sanitizer reports it and ends the process in its own way
        for failures, number in enumerate(numbers, start=1):
            with self.subTest(number.name):
                channel = self.daemon.ask("refresh")
                (child,) = lab.wait_for(self.daemon.children, what="the child")
                os.kill(child, number)
                answer = self.daemon.answer(channel)
                self.check_failed(self.daemon, answer, failures)
                self.assertIn("not done after 1 s" if number == signal.SIGSTOP else f"signal {number.value} ",
                              answer["message"])
                self.assertEqual(self.daemon.children(), [])
                self.assertIn("pmixfab.generation uint64 1\n", self.daemon.tool("register").stdout)
        channel = self.daemon.ask("refresh")
        self.feed.give(self.capture)
        self.assertEqual(self.daemon.answer(channel)["generation"], 1)
        self.assertFalse(self.daemon.status()["stale"])

    def test_the_daemon_leaves_no_child_behind(self):
        for end in (self.daemon.kill9, self.daemon.stop):
            self.daemon.ask("refresh").close()  # who asked does not wait
            (child,) = map(lab.Held, lab.wait_for(self.daemon.children, what="the child"))
            end()
            self.assertTrue(child.ended())
            self.daemon.start(wait=False)  # and with it a first sweep
            self.daemon.wait_up()


class Daemon(Case):
    """fabricd is killed around the commit of a change, again and again, on one store."""

    def setUp(self):
        super().setUp()
        self.feed = lab.Feed()
        whole = lab.fabric("fattree2:8,2,2", "capture")
        self.captures = {1: whole, 0: fabric_text.without_cables(whole, "leaf1", "spine1")}  # by generation's oddness
        self.links = {1: 32, 0: 31}
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": self.feed.probe}}, start=False)
        self.addCleanup(self.daemon.kill9)

    def check_served(self, generation, everywhere):
        """What the store has is served before any sweep: the first one still waits for its capture."""
        self.assertTrue(self.daemon.status()["sweeping"])
        (plane,) = self.daemon.ctl_json("planes")
        self.assertEqual((plane["generation"], plane["links"]), (generation, self.links[generation % 2]))
        if everywhere:
            self.assertIn(f"pmixfab.generation uint64 {generation}\n", self.daemon.tool("register").stdout)
            history = self.daemon.control("history", limit=10 ** 6)["changes"]
            self.assertEqual({change["generation"] for change in history}, set(range(1, generation + 1)))

    def announced(self, channel):
        """The newest generation that a follower heard of before the end."""
        with channel, channel.makefile(encoding="utf-8") as lines:
            try:
                return max((json.loads(line).get("generation", 0) for line in lines if line.endswith("\n")), default=0)
            except ConnectionResetError:
                return 0

    def test_killed_while_it_publishes(self):
        self.daemon.start(wait=False)
        self.feed.give(self.captures[1])
        self.daemon.wait_ready(1)
        self.daemon.kill9()
        generation, heard, delay, done = 1, 0, 0.02, {True: 0, False: 0}
        for i in range(3 * KILLS_OF_THE_DAEMON):  # more only where they were not around the commit
            self.daemon.start(wait=False)
            self.daemon.wait_up()
            now = self.daemon.status()["generation"]
            if i > 0:
                self.assertIn(now, (generation, generation + 1))
                self.assertGreaterEqual(now, heard)
                committed = now > generation
                done[committed] += 1
                delay *= 0.8 if committed else 1.25  # stay near the moment of the commit
                generation = now
            self.check_served(generation, everywhere=i % 5 == 0)
            follower = self.daemon.ask("events", follow=True)
            follower.recv(64)  # {"ok":true}: it follows
            self.feed.give(self.captures[(generation + 1) % 2])
            time.sleep(delay * self.random.uniform(0.5, 1.5))  # the moment is what is tried
            self.daemon.kill9()
            heard = self.announced(follower)
            # without a daemon, the run directory can be read, too
            self.assertIn(self.daemon.ctl_json("status")["generation"], (generation, generation + 1))
            if i >= KILLS_OF_THE_DAEMON and min(done.values()) >= KILLS_OF_THE_DAEMON // 10:
                break
        self.assertGreaterEqual(min(done.values()), KILLS_OF_THE_DAEMON // 10, f"{done}: not around the commit")
        self.daemon.start(wait=False)
        self.daemon.wait_up()
        self.check_served(self.daemon.status()["generation"], everywhere=True)


if __name__ == "__main__":
    unittest.main()
