"""Light sweeps of a subnet: what the probe reads anew is what a discovery of everything sees. What comes of it: test_subnet.py and
test/sim/test_monitor.py."""
import random
import re
import unittest

import lab

SMALL = "fattree2:4,2,4"
SPINE = "spine1"


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
        rounds = rounds * 3 if lab.ALL else rounds // 2 if manage else rounds  # the subnet manager's sweeps take longest
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

    def test_random_edits(self):
        for spec, rounds, seed, manage in ((SMALL, 120, 1, 0), ("fattree3:4", 60, 4, .5), ("dragonfly:2,3,1", 40, 6, .3)):
            with self.subTest(spec):
                self.edits(spec, rounds, seed, manage)

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
        self.assertRegex(answer, "^full .*not in its former place")
        tool.ask("watch")
        tool.ask("poll")
        before = tool.ask("poll").count("0x")
        self.assertEqual(tool.ask("poll").count("0x"), before)
        sim.command(f'Error "{SPINE}" 0')
        tool.ask("poll")
        self.assertRegex(tool.ask("again"), "^again")
        self.assertRegex(tool.ask("same"), "^same")


if __name__ == "__main__":
    unittest.main()
