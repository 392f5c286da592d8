"""Light sweeps of a subnet: what the probe reads anew is what a discovery of everything sees; the child that makes them.

What comes of it: test/sim/test_monitor.py."""
import glob
import os
import random
import re
import signal
import unittest

import lab

SMALL = "fattree2:4,2,4"
LEAF, SPINE = "leaf1", "spine1"


class Tool:
    """monitor_tool: the probe's light sweep, command by command."""

    def __init__(self, sim, host=None):
        binary = lab.program("monitor_tool")
        self.watch = lab.Watch([binary, "ibnetdisc"], sim.env_for(host, binary), talk=True, cwd=sim.dir)

    def ask(self, command):
        start = len(self.watch.output.text)
        end = self.watch.say(command, r"^\.$", timeout=60).start()
        said = self.watch.output.text[start:end]
        return said[re.search(r"^(nodes|poll|again|full|failed|same|differs|watching)\b", said, re.MULTILINE).start():].strip()

    def stop(self):
        self.watch.stop()


def light_sweeper(daemon):
    """The process number of the daemon's light sweep; None."""
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            with open(path.replace("/stat", "/cmdline"), "rb") as file:
                if int(fields[1]) == daemon.process.pid and b"--monitor-child" in file.read():
                    return int(path.split("/")[2])
        except (OSError, IndexError):
            pass
    return None


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


class Hands:
    """Random edits of a subnet that leave two hosts where they are: the one that looks, and the subnet manager's."""

    def __init__(self, sim, seed):
        self.sim, self.random = sim, random.Random(seed)
        self.kept = set()
        for host in (sim.hosts[0], sim.hosts[-1]):
            for switch in sim.switches:
                try:
                    self.kept.add((switch, sim.cable(switch, host)))
                except lab.LabError:
                    pass
        self.home = {switch for switch, _ in self.kept}

    def edit(self):
        switch, port, dice = self.random.choice(self.sim.switches), self.random.randint(1, 8), self.random.random()
        if (switch, port) in self.kept:
            return
        try:
            if dice < .45:
                self.sim.unlink(switch, port)
            elif dice < .80:
                self.sim.relink(switch, port)
            elif dice < .85:
                self.sim.clear(switch, port)
            elif dice < .87 and switch not in self.home:
                self.sim.unlink(switch)
            elif dice < .92:
                self.sim.relink(switch)
            else:
                self.sim.link(switch, port, self.random.choice(self.sim.switches + self.sim.hosts),
                              self.random.randint(1, 4))
        except lab.LabError:
            pass  # what is not there, or taken

    def mend(self):
        for node in self.sim.switches + self.sim.hosts:
            try:
                self.sim.relink(node)
            except lab.LabError:
                pass


class Again(unittest.TestCase):
    """What is read anew, against a discovery of everything, LIDs and states included."""

    def edits(self, spec, rounds, seed, manage):
        lab.require("ibsim", "opensm")
        rounds = rounds if lab.ALL or not manage else rounds // 3  # the subnet manager's sweeps take longest
        sim = lab.Ibsim(lab.fabric(spec))
        self.addCleanup(sim.quit)
        sim.sweep()
        hands, tool = Hands(sim, seed), Tool(sim)
        self.addCleanup(tool.stop)
        self.assertRegex(tool.ask("run"), "^nodes")
        read, whole = 0, 0
        for turn in range(rounds):
            tool.ask("watch")
            tool.ask("poll")
            for _ in range(hands.random.choice([1, 1, 1, 2, 3, 5])):
                hands.edit()
            if hands.random.random() < manage:
                sim.sweep()  # which clears what the switches would have said
            saw = tool.ask("poll")
            answer = tool.ask("again")
            if answer.startswith("again"):
                same = tool.ask("same")
                self.assertRegex(same, "^same", f"{spec}, seed {seed}, turn {turn}: {saw}: {answer}")
                read += "0x" in saw
                continue
            self.assertRegex(answer, "^full", f"{spec}, seed {seed}, turn {turn}: {saw}")
            whole += 1
            if tool.ask("run").startswith("failed"):
                hands.mend()
                sim.sweep()
                self.assertRegex(tool.ask("run"), "^nodes")
        self.assertGreater(read, rounds // 6, f"{whole} of {rounds} took a discovery")

    def test_without_a_subnet_manager(self):
        self.edits(SMALL, 120, 1, 0)

    def test_now_and_then(self):
        self.edits(SMALL, 100, 3, .5)

    def test_three_levels(self):
        self.edits("fattree3:4", 100, 4, .5)

    def test_dragonfly(self):
        self.edits("dragonfly:2,3,1", 80, 6, .5)

    def test_what_does_not_answer_is_told_once(self):
        lab.require("ibsim", "opensm")
        sim = lab.Ibsim(lab.fabric(SMALL))
        self.addCleanup(sim.quit)
        sim.sweep()
        tool = Tool(sim)
        self.addCleanup(tool.stop)
        tool.ask("run")
        self.assertNotIn("0x", tool.ask("poll"))
        sim.command(f'Error "{SPINE}" 100')
        self.assertEqual(tool.ask("poll").count("0x"), 1)
        answer = tool.ask("again")
        self.assertRegex(answer, "^full .*not where it was")
        tool.ask("watch")
        tool.ask("poll")
        before = tool.ask("poll").count("0x")
        self.assertEqual(tool.ask("poll").count("0x"), before)
        sim.command(f'Error "{SPINE}" 0')
        tool.ask("poll")
        self.assertRegex(tool.ask("again"), "^again")
        self.assertRegex(tool.ask("same"), "^same")


class Daemon(unittest.TestCase):
    def start(self):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(lab.fabric(SMALL))
        self.addCleanup(self.sim.quit)
        manager = lab.OpenSM(self.sim)
        self.addCleanup(manager.stop)
        self.daemon = lab.Fabricd(self.sim, config={"changes": {"light_sweep": 1}, "fabricd": {"log": "debug"}})
        self.addCleanup(self.daemon.stop)
        self.port = self.sim.cable(LEAF, SPINE)
        self.looks(2)

    def looks(self, more):
        """Wait for so many more looks."""
        start = (self.daemon.try_control("status") or {}).get("light_sweeps", 0)
        lab.wait_for(lambda: self.daemon.status()["light_sweeps"] >= start + more, 30, "light_sweeps")

    def generation(self):
        return self.daemon.status()["generation"]

    def wait_generation(self, generation, timeout=20):
        lab.wait_for(lambda: self.generation() >= generation, timeout, f"generation {generation}")


class Noticed(Daemon):
    def test_a_cable_is_pulled_and_comes_back(self):
        self.start()
        watch = self.daemon.watch()
        self.addCleanup(watch.stop)
        watch.wait("^watching$")
        for generation, hand in enumerate((self.sim.unlink, self.sim.relink), self.generation() + 1):
            hand(LEAF, self.port)
            watch.wait(f"^PMIX_FABRIC_UPDATED .*generation {generation} ")
        self.sim.wait_active(LEAF, self.port)
        self.looks(2)
        lab.wait_for(lambda: self.daemon.status()["dirty_since"] is None and not self.daemon.status()["sweeping"], 30, "the last sweep")
        self.assertFalse(self.daemon.refresh()["changed"], "a sweep of everything sees what looks did not notice")
        self.assertRegex(self.daemon.log(), r"[12] switch(?:es)? read anew with \d+ packets")
        self.assertEqual(self.daemon.errors(), [])


class Hurt(Daemon):
    """The child that looks is killed, or its daemon is."""

    def test_killed(self):
        self.start()
        for _ in range(2):
            pid = lab.wait_for(lambda: light_sweeper(self.daemon), what="the light sweeps' child")
            os.kill(pid, signal.SIGKILL)
            lab.wait_for(lambda: light_sweeper(self.daemon) not in (None, pid), 20, "another one")
            self.looks(1)
        generation = self.generation()
        self.sim.unlink(LEAF, self.port)
        self.wait_generation(generation + 1)
        self.assertIn("changes are seen at sweeps only", self.daemon.log())

    def test_with_its_daemon(self):
        self.start()
        child = lab.Held(light_sweeper(self.daemon))
        self.daemon.kill9()
        self.assertTrue(child.ended())
        self.daemon.start()
        self.looks(1)
        pid = light_sweeper(self.daemon)
        self.assertEqual(self.daemon.stop(), 0)
        self.assertTrue(gone(pid))


if __name__ == "__main__":
    unittest.main()
