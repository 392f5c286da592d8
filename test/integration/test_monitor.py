"""Changes between sweeps: the light sweep notices them, what it leads to is what a sweep of everything would see."""
import datetime
import glob
import os
import random
import re
import signal
import time
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

    def test_with_a_subnet_manager_that_has_swept_before_the_look(self):
        self.edits(SMALL, 100, 2, 1)

    def test_now_and_then(self):
        self.edits(SMALL, 100, 3, .5)

    def test_three_levels(self):
        self.edits("fattree3:4", 100, 4, .5)

    def test_a_ring(self):
        self.edits("torus:4,3:1", 80, 5, .5)

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


def moment(text):
    """Seconds, of a time as JSON has it."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Daemon(unittest.TestCase):
    config = {"changes": {"light_sweep": 1}, "fabricd": {"log": "debug"}}

    def start(self, spec=SMALL, manager=True, config=None):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(lab.fabric(spec))
        self.addCleanup(self.sim.quit)
        if manager:
            self.manager = lab.OpenSM(self.sim)
            self.addCleanup(lambda: self.manager.stop())
        else:
            self.sim.sweep()
        self.daemon = lab.Fabricd(self.sim, config=config or self.config)
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

    def settled(self):
        """Wait until looks find nothing any more, and all is swept; then nothing may be left to find."""
        def quiet():
            before = self.daemon.status()
            if before["sweeping"]:
                return False
            time.sleep(3.2)  # looks, and the time to settle
            after = self.daemon.status()
            return after["light_sweeps"] > before["light_sweeps"] + 1 and after["light_sweeps_dirty"] == before["light_sweeps_dirty"] \
                and after["last_sweep"] == before["last_sweep"]
        lab.wait_for(quiet, 60, "quiet")
        self.assertFalse(self.daemon.refresh()["changed"], "a sweep of everything sees what looks did not notice")


class Noticed(Daemon):
    def test_a_cable_is_pulled_and_comes_back(self):
        self.start()
        watch = self.daemon.watch()
        self.addCleanup(watch.stop)
        watch.wait("^watching$")
        for turn, hand in enumerate((self.sim.unlink, self.sim.relink)):
            generation = self.generation()
            start = time.monotonic()
            hand(LEAF, self.port)
            watch.wait(f"^PMIX_FABRIC_UPDATED .*generation {generation + 1} ")
            self.assertLess(time.monotonic() - start, 4 * lab.SLOW)
            self.settled()
        self.assertRegex(self.daemon.log(), r"[12] switch(?:es)? read anew with \d+ packets")
        self.assertEqual(self.daemon.errors(), [])

    def test_without_a_subnet_manager(self):
        self.start(manager=False)
        for hand in (self.sim.unlink, self.sim.relink, self.sim.unlink):
            generation = self.generation()
            hand(LEAF, self.port)
            self.wait_generation(generation + 1)
        self.settled()

    def test_a_host_is_swapped(self):
        self.start()
        generation = self.generation()
        port = self.sim.cable(LEAF, "node0002")
        self.sim.unlink(LEAF, port)
        self.sim.guid("node0002", 0xabc0)
        self.sim.relink(LEAF, port)
        self.wait_generation(generation + 1)
        self.settled()

    def test_a_spine_restarts(self):
        self.start("fattree2:8,4,2")
        generation = self.generation()
        watch = self.daemon.watch()
        self.addCleanup(watch.stop)
        watch.wait("^watching$")
        for port in range(1, 9):
            self.sim.unlink("spine2", port)
        for port in range(1, 9):
            self.sim.relink("spine2", port)
        self.settled()
        self.assertLessEqual(self.generation() - generation, 3)
        self.assertEqual(len(re.findall("PMIX_FABRIC_UPDATED", watch.output.text)), self.generation() - generation)

    def test_a_hundred_changes_in_a_second(self):
        self.start("fattree2:16,8,8", manager=False, config={"changes": {"light_sweep": 1, "debounce": 2}, "fabricd": {"log": "debug"}})
        generation = self.generation()
        pulled = [(leaf, port) for leaf in range(2, 15) for port in range(9, 17)][:100]
        for leaf, port in pulled:
            self.sim.unlink(f"leaf{leaf}", port)
        self.settled()
        self.assertIn(self.generation() - generation, (1, 2))
        changes = sum(len(self.daemon.ctl_json("diff", str(g), str(g + 1))["changes"])
                      for g in range(generation, self.generation()))
        self.assertGreaterEqual(changes, 100)

    def test_since_when_a_storm_is_seen(self):
        """Its changes wait until it is quiet, and say when the first of them was noticed."""
        self.start("fattree2:8,4,4", manager=False, config={"changes": {"light_sweep": 1, "debounce": 6}})
        self.settled()
        generation = self.generation()
        self.assertIsNone(self.daemon.status()["dirty_since"])
        self.sim.unlink("leaf1", self.sim.cable("leaf1", "spine1"))
        self.wait_generation(generation + 1)
        self.sim.unlink("leaf1", self.sim.cable("leaf1", "spine2"))
        since = lab.wait_for(lambda: self.daemon.status()["dirty_since"], 20, "what waits for its sweep")
        self.assertIn(f"dirty         since {since[:16]}", self.daemon.ctl("status").stdout)
        self.assertEqual(self.generation(), generation + 1)
        self.sim.unlink("leaf2", self.sim.cable("leaf2", "spine1"))
        self.wait_generation(generation + 2, 60)
        self.assertIsNone(self.daemon.status()["dirty_since"])
        at_once, gathered = [self.daemon.ctl_json("diff", str(one), str(one + 1))["changes"]
                             for one in (generation, generation + 1)]
        self.assertLess(moment(at_once[0]["time"]) - moment(at_once[0]["first_seen"]), 5)
        self.assertGreaterEqual(len(gathered), 2)
        for one in gathered:
            self.assertLess(abs(moment(one["first_seen"]) - moment(since)), 0.1)
            self.assertGreaterEqual(moment(one["time"]) - moment(one["first_seen"]), 6)
            self.assertLessEqual(one["last_seen"], one["first_seen"])

    def test_the_subnet_manager_dies_and_returns(self):
        self.start()
        self.manager.process.kill()
        self.manager.stop()
        generation = self.generation()
        self.sim.unlink(LEAF, self.port)
        self.wait_generation(generation + 1)
        self.sim.relink(LEAF, self.port)
        self.manager = lab.OpenSM(self.sim)
        self.sim.wait_active(LEAF, self.port)
        self.settled()
        generation = self.generation()
        self.sim.unlink(LEAF, self.port)
        self.wait_generation(generation + 1)

    def test_edits_while_it_sweeps(self):
        self.start("fattree2:8,4,4")
        hands = Hands(self.sim, 9)
        for _ in range(60):
            hands.edit()
            if hands.random.random() < .2:
                self.daemon.look()
        hands.mend()
        self.daemon.look()
        self.settled()

    def test_off(self):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(lab.fabric(SMALL))
        self.addCleanup(self.sim.quit)
        self.sim.sweep()
        daemon = lab.Fabricd(self.sim, config={"changes": {"light_sweep": 0}})
        self.addCleanup(daemon.stop)
        self.assertIsNone(light_sweeper(daemon))
        self.assertEqual((daemon.status()["light_sweep"], daemon.status()["light_sweeps"]), (0, 0))


class Hurt(Daemon):
    """The child that looks is killed, its daemon is, or the subnet under it."""

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

    def test_stopped(self):
        """One that hangs costs what looks would have noticed, and the daemon nothing."""
        self.start()
        pid = light_sweeper(self.daemon)
        os.kill(pid, signal.SIGSTOP)
        self.sim.unlink(LEAF, self.port)
        self.assertTrue(self.daemon.refresh()["changed"])
        lab.wait_for(lambda: light_sweeper(self.daemon) not in (None, pid), what="a child for the new inventory")
        self.assertTrue(gone(pid))

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

    def test_the_subnet_is_away_for_a_while(self):
        self.start()
        self.manager.stop()
        generation = self.generation()
        self.sim.kill()
        lab.wait_for(lambda: "changes are seen at sweeps only" in self.daemon.log(), 60, "the warning")
        self.assertEqual(self.generation(), generation)
        self.sim.restart()
        self.manager = lab.OpenSM(self.sim)
        self.looks(1)
        self.assertEqual(len(re.findall("changes are seen at sweeps only", self.daemon.log())), 1)
        generation = self.generation()
        self.sim.unlink(LEAF, self.port)
        self.wait_generation(generation + 1, 60)


class File(unittest.TestCase):
    """A recorded fabric: it is looked at as a file."""

    def test_replaced(self):
        folder = lab.tmpdir()
        path = os.path.join(folder, "fabric.txt")
        lab.replace_file(path, lab.fabric(SMALL, "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}, "changes": {"light_sweep": 1}})
        self.addCleanup(daemon.stop)
        lab.wait_for(lambda: daemon.status()["light_sweeps"] > 0, what="a light sweep")
        generation = daemon.status()["generation"]
        for text in (lab.fabric("fattree2:5,2,4", "capture"), lab.fabric(SMALL, "capture")):
            lab.replace_file(path, text)
            lab.wait_for(lambda: daemon.status()["generation"] > generation or "partial" in daemon.log(), 20,
                         "what the file says now")
            generation = daemon.status()["generation"]

    def test_taken_away_and_put_back(self):
        folder = lab.tmpdir()
        path = os.path.join(folder, "fabric.txt")
        lab.replace_file(path, lab.fabric(SMALL, "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}, "changes": {"light_sweep": 1}})
        self.addCleanup(daemon.stop)
        lab.wait_for(lambda: daemon.status()["light_sweeps"] > 0, what="a light sweep")
        os.unlink(path)
        lab.wait_for(lambda: daemon.status()["stale"], 20, "stale")
        lab.replace_file(path, lab.fabric(SMALL, "capture"))
        lab.wait_for(lambda: not daemon.status()["stale"], 20, "not stale any more")


if __name__ == "__main__":
    unittest.main()
