"""Swaps that take longer than a sweep: each hand's two halves are seen one by one, and told as what they are.

What was lost is remembered over a kill: what comes is told as back, moved or in its place, with the generation in
which it was lost. And the history of one thing under several names is one.
"""
import os
import re
import unittest

import afresh
import lab
import test_random_changes as quick

HOST, LEAF, SPINE = "node0003", "leaf2", "spine2"
GUID, NEW = "0x0000000000100004", "0x0000000000990001"
CHANGES = 200 if lab.ALL else 100


def words(changes):
    return sorted((c["kind"], c["what"], c["before"], c["after"]) for c in changes if c["kind"] not in ("lid", "index"))


class Slow(unittest.TestCase):
    def setUp(self):
        lab.require("ibsim", "opensm")
        net = re.sub(r"^Switch\s+\d+ ", "Switch 20 ", lab.fabric("fattree2:4,2,2"), flags=re.MULTILINE)
        self.sim = lab.Ibsim(net)
        self.addCleanup(self.sim.quit)
        self.manager = lab.OpenSM(self.sim)
        self.addCleanup(self.manager.stop)
        self.map = os.path.join(lab.tmpdir(), "names")
        self.call("")

    def begin(self, **changes):
        self.daemon = lab.Fabricd(self.sim, {"changes": {"flap_count": 0, "debounce": 0, "retain_seconds": 600, **changes},
                                             "names": {"map": self.map}})
        self.addCleanup(self.daemon.stop)
        self.generation = self.daemon.status()["generation"]

    def call(self, names):
        lab.replace_file(self.map, names)

    def told(self, *expected):
        """A sweep, and what has changed since the last call; those changes."""
        self.daemon.refresh()
        before, self.generation = self.generation, self.daemon.status()["generation"]
        changes = self.daemon.ctl_json("diff", str(before), str(self.generation))["changes"]
        self.assertEqual(words(changes), sorted(expected))
        return [c for c in changes if c["kind"] not in ("lid", "index")]

    def again(self):
        """The memory is the store's."""
        self.daemon.kill9()
        self.daemon.start()

    def forget(self, *hosts):
        for host in hosts:
            self.assertEqual(self.daemon.ctl("forget", host).returncode, 0)

    def remembers(self, change, lost):
        """It says what it knows of the loss."""
        self.assertIn(f"lost in generation {lost['generation']}, last seen ", change["why"])
        self.assertEqual(change["last_seen"], lost["last_seen"])
        self.assertLess(change["last_seen"], change["first_seen"])

    def as_afresh(self):
        newcomer = afresh.newcomer(self.sim)
        self.assertEqual(afresh.costs(self.daemon), afresh.costs(newcomer))

    def test_a_spine_is_replaced(self):
        self.begin()
        self.sim.unlink(SPINE)
        lost = self.told(("switch-lost", SPINE, "0x0000000000200005", ""))[0]
        self.again()
        self.sim.guid(SPINE, 0x9a0002)
        self.sim.relink(SPINE, 1)
        self.sim.wait_active(SPINE, 1)
        change = self.told(("switch-replaced", SPINE, "0x0000000000200005", "0x00000000009a0002"))[0]
        self.remembers(change, lost)
        self.assertIn("1 of its 4 cables leads to another switch now", change["why"])
        for port in (2, 3, 4):
            self.sim.relink(SPINE, port)
            self.sim.wait_active(SPINE, port)
        for change in self.told(*(("link-back", f"leaf{n}[4] - {SPINE}[{n}]", "lost", "4xHDR") for n in (2, 3, 4))):
            self.remembers(change, lost)
        self.as_afresh()
        self.assertEqual([c["kind"] for c in self.daemon.ctl_json("history", SPINE) if c["generation"] > 1],
                         ["switch-lost", "switch-replaced"] + 3 * ["link-back"])

    def test_a_cable_is_moved_while_looks_see_it(self):
        """Nobody asks for a sweep: at the pace of looks."""
        self.begin(light_sweep=1)
        near, far = self.sim.cable(LEAF, SPINE), self.sim.cable(SPINE, LEAF)
        self.sim.unlink(LEAF, near)
        lab.wait_for(lambda: self.daemon.status()["generation"] > self.generation, 30, "the loss to be published")
        cable = f"{LEAF}[{near}] - {SPINE}[{far}]"
        lost = self.told(("link-lost", cable, "4xHDR", ""))[0]
        self.sim.link(LEAF, near, SPINE, 9)
        self.sim.wait_active(LEAF, near)
        lab.wait_for(lambda: self.daemon.status()["generation"] > self.generation, 30, "the cable to be published")
        found = [c for c in self.daemon.ctl_json("history", LEAF) if c["kind"] == "cable-moved"]
        ((*moved, after),) = words(found)
        self.assertEqual(moved, ["cable-moved", cable, f"{SPINE}[{far}], 4xHDR"])
        self.assertIn(after, (f"{SPINE}[9], 4xQDR", f"{SPINE}[9], 4xSDR"))  # seen before the subnet manager had it up
        self.remembers(found[0], lost)

    def test_an_hca_is_replaced_after_it_was_retired(self):
        self.begin(retain_seconds=2)
        port = self.sim.cable(LEAF, HOST)
        self.sim.unlink(LEAF, port)
        self.daemon.refresh()
        lab.wait_for(lambda: self.daemon.status()["generation"] > self.generation + 1, 30, "it to be retired")
        lost = self.told(("host-missing", f"{HOST} HCA-1", "there", "missing"),
                         ("host-lost", HOST, f"1 device: {GUID} at {LEAF}[{port}]", ""))
        lost = next(c for c in lost if c["kind"] == "host-lost")
        self.again()
        self.sim.guid(HOST, int(NEW, 16))
        self.sim.relink(LEAF, port)
        self.sim.wait_active(LEAF, port)
        self.remembers(self.told(("hca-replaced", f"{HOST} HCA-1", GUID, NEW))[0], lost)
        self.as_afresh()

    def test_hosts_that_were_forgotten(self):
        self.begin()
        port = self.sim.cable(LEAF, HOST)
        missing, lost = ("host-missing", f"{HOST} HCA-1", "there", "missing"), "1 device: {} at {}[{}]"
        place, guid = (LEAF, port), GUID
        for turn, (to, new, expected) in enumerate((
                (("leaf3", 9), None, [("host-moved", f"{HOST} HCA-1[1]", f"{LEAF}[{port}], 4xHDR", "leaf3[9], 4xQDR")]),
                (("leaf3", 9), None, [("host-back", f"{HOST} HCA-1", "lost", "there")]),
                (("leaf3", 9), NEW, [("hca-replaced", f"{HOST} HCA-1", GUID, NEW)]),
                ((LEAF, port), GUID, [("hca-replaced", f"{HOST} HCA-1", NEW, GUID),
                                      ("host-moved", f"{HOST} HCA-1[1]", "leaf3[9], 4xQDR", f"{LEAF}[{port}], 4xHDR")]))):
            with self.subTest(turn=turn):
                self.sim.unlink(*place)
                self.told(missing)
                self.forget(HOST)
                self.told(("host-lost", HOST, lost.format(guid, *place), ""))
                if new is not None:
                    guid = new
                    self.sim.guid(HOST, int(new, 16))
                place = to
                self.sim.link(*place, HOST, 1)
                self.sim.wait_active(*place)
                for change in self.told(*expected):
                    self.assertIn("lost in generation ", change["why"])
        self.as_afresh()

    def test_a_leaf_is_replaced_after_its_hosts_were_forgotten(self):
        self.begin()
        hosts = {host: self.sim.cable(LEAF, host) for host in ("node0003", "node0004")}
        self.sim.unlink(LEAF)
        self.daemon.refresh()
        self.forget(*hosts)
        self.again()
        self.sim.guid(LEAF, 0x9a0001)
        self.generation = self.daemon.status()["generation"]
        self.sim.relink(LEAF)
        for port in (1, 2, 3, 4):
            self.sim.wait_active(LEAF, port)
        for change in self.told(("switch-replaced", LEAF, "0x0000000000200001", "0x00000000009a0001"),
                                *(("host-back", f"{host} HCA-1", "lost", "there") for host in hosts)):
            self.assertIn("lost in generation ", change["why"])
        self.as_afresh()

    def story(self, what):
        return [(c["generation"], c["kind"]) for c in self.daemon.ctl_json("history", what) if c["kind"] != "lid"]

    def test_one_history_under_several_names(self):
        self.begin()
        port = self.sim.cable(LEAF, HOST)
        self.call(f'{GUID} "gpu17 HCA-1"\n')
        self.told(("name", HOST, HOST, "gpu17"))
        self.sim.unlink(LEAF, port)
        self.told(("host-missing", "gpu17 HCA-1", "there", "missing"))
        self.forget("gpu17")
        self.told(("host-lost", "gpu17", f"1 device: {GUID} at {LEAF}[{port}]", ""))
        self.again()
        self.sim.guid(HOST, int(NEW, 16))
        self.call(f'{NEW} "gpu18 HCA-1"\n0x9a0001 "swx"\n')
        self.sim.relink(LEAF, port)
        self.sim.wait_active(LEAF, port)
        self.told(("hca-replaced", "gpu17 HCA-1", f"{GUID} gpu17 HCA-1", f"{NEW} gpu18 HCA-1"))
        whole = [(1, "host-added"), (2, "name"), (3, "host-missing"), (4, "host-lost"), (5, "hca-replaced")]
        for name in (HOST, "gpu17", "gpu18"):
            self.assertEqual(self.story(name), whole)
        text = self.daemon.ctl("history", "gpu17").stdout
        self.assertIn(f"gpu17: with the history of gpu18 from generation 5 on\n"
                      f"gpu17: with the history of {HOST} up to generation 2\n", text)
        # the name is another host's now: the story that had it before has nothing of that
        self.call(f'{NEW} "gpu18 HCA-1"\n0x100006 "{HOST} HCA-1"\n0x9a0001 "swx"\n')
        self.told(("name", "node0004", "node0004", HOST))
        self.assertEqual(self.story("gpu18"), whole)
        self.assertEqual(self.story("node0004"), [(1, "host-added"), (6, "name")])
        self.assertEqual(self.story(HOST), [(1, "host-added"), *whole, (6, "name")])  # what was asked for: both
        self.sim.guid(LEAF, 0x9a0001)
        self.told(("switch-replaced", LEAF, "0x0000000000200001 leaf2", "0x00000000009a0001 swx"))
        self.assertEqual(self.story("swx"), self.story(LEAF))
        self.assertIn((1, "switch-added"), self.story("swx"))


class Hands(quick.Operator):
    """Each hand is two: what is done now, and what will be done one day. Every node has a name that may change."""

    def __init__(self, sim, seed):
        super().__init__(sim, seed)
        self.map = os.path.join(lab.tmpdir(), f"names.{seed}")
        self.names, self.n_names = {}, 0  # of hosts that are called otherwise
        self.about = {}                   # what was told of each host
        self.lost, self.moving, self.off = {}, {}, {}
        self.to_forget = []
        self.config = {"names": {"map": self.map}}
        self.write_names()
        self.hands = [self.lose_host, self.find_host, self.unplug, self.plug, self.rename,
                      self.replace_leaf]

    def write_names(self):
        lab.replace_file(self.map, "".join(f'{self.guids[host]:#x} "{name} HCA-1"\n' for host, name in self.names.items()))

    def name(self, host):
        return self.names.get(host, host)

    def tell(self, host, *told):
        self.about.setdefault(host, []).extend(told)
        return list(told)

    def lose_host(self, busy):
        found = self.some_host(busy, self.hosts)
        if not found or len(self.lost) > 4:
            return None
        host, place = found
        self.sim.unlink(*place)
        self.lost[host] = self.missing[host] = self.hosts.pop(host)  # for who looks for free ports
        self.to_forget.append(self.name(host))
        guid = quick.hexadecimal(self.guids[host])
        return {host, place[0]}, self.tell(
            host, ("host-missing", f"{self.name(host)} HCA-1", *quick.NOT_SEEN),
            ("host-lost", self.name(host), f"1 device: {guid} at {quick.text(place)}", ""))

    def find_host(self, busy):
        found = self.some_host(busy, self.lost)
        leaf = self.pick({near[0] for near in self.uplinks}, busy, lambda name: (name,))
        if not found:
            return None
        host, place = found
        name, told = self.name(host), []
        to = self.free_port(leaf) if leaf and self.random.random() < .4 else None
        self.missing.pop(host)
        self.lost.pop(host)
        replaced = self.random.random() < .5
        if replaced:
            told.append(("hca-replaced", f"{name} HCA-1", *self.new_guid(host)))
            self.write_names()
        if to:
            told.append(("host-moved", f"{name} HCA-1[1]", quick.text(place), quick.text(to)))
        elif not replaced:
            told.append(("host-back", f"{name} HCA-1", "lost", "there"))
        self.hosts[host] = to or place
        self.link(self.hosts[host], host, 1)
        return {host, place[0], self.hosts[host][0]}, self.tell(host, *told)

    def unplug(self, busy):
        if len(self.moving) > (0 if self.off else 2):
            return None
        out = {near[0] for near in self.moving}
        found = self.pick([c for c in self.uplinks.items() if c[0][0] not in out], busy,
                          lambda c: (c[0][0], c[1][0]))
        if not found:
            return None
        near, far = found
        self.sim.unlink(*near)
        self.moving[near] = self.pulled[near] = self.uplinks.pop(near)
        return {near[0], far[0]}, [("link-lost", quick.cable(near, far), quick.RATE, "")]

    def plug(self, busy):
        off = {far[0] for far in self.off.values()}
        found = self.pick([c for c in self.moving.items() if c[1][0] not in off], busy, lambda c: (c[0][0], c[1][0]))
        if not found:
            return None
        near, far = found
        to = self.free_port(far[0]) if self.random.random() < .6 else None
        self.moving.pop(near)
        self.pulled.pop(near)
        self.link(near, *(to or far))
        self.uplinks[near] = to or far
        if to:
            return {near[0], far[0]}, [("cable-moved", quick.cable(near, far), quick.text(far), quick.text(to))]
        return {near[0], far[0]}, [("link-back", quick.cable(near, far), "lost", quick.RATE)]

    def spine(self):
        """Stands alone; and every leaf has a spine that every other one has, too."""
        if not self.off and len(self.moving) > 1:
            return []
        return self.spine_comes() if self.off else self.spine_goes()

    def spine_goes(self):
        spine = self.random.choice(sorted({far[0] for far in self.uplinks.values()}))
        self.off = {near: far for near, far in self.uplinks.items() if far[0] == spine}
        for near in self.off:
            self.sim.unlink(*near)
            self.pulled[near] = self.uplinks.pop(near)
        return [("switch-lost", spine, quick.hexadecimal(self.guids[spine]), "")]

    def spine_comes(self):
        spine = next(iter(self.off.values()))[0]
        if self.random.random() < .5:
            told = ("switch-replaced", spine, *self.new_guid(spine))
        else:
            told = ("switch-back", spine, "lost", "there")
        for near, far in self.off.items():
            self.pulled.pop(near)
            self.uplinks[near] = far
            self.link(near, *far)
        self.off = {}
        return [told]

    def rename(self, busy):
        found = self.some_host(busy, self.hosts)
        if not found:
            return None
        self.n_names += 1
        before, after = self.name(found[0]), f"gpu{self.n_names}"
        self.names[found[0]] = after
        self.write_names()
        return {found[0], found[1][0]}, self.tell(found[0], ("name", before, before, after))

    def replace_leaf(self, busy):
        """At once, while others are on their way: what was lost at it is found at the new one."""
        near = {leaf: {far[0] for at, far in self.uplinks.items() if at[0] == leaf} for leaf, _ in self.uplinks}
        leaf = self.pick(near, busy, lambda s: {s} | near[s])
        if not leaf:
            return None
        return {leaf} | near[leaf], [("switch-replaced", leaf, *self.new_guid(leaf))]


class Random(quick.Random):
    """Random hands of two halves, in any order, and fabricd killed in between."""
    managed = (*quick.MANAGED, "index")

    def make_operator(self):
        return Hands(self.sim, self.seed)

    def swept(self, told, generation):
        """Those who were taken away are forgotten at once."""
        if not self.operator.to_forget:
            return super().swept(told, generation)
        self.daemon.refresh()
        for host in self.operator.to_forget:
            self.assertEqual(self.daemon.ctl("forget", host).returncode, 0)
        self.operator.to_forget.clear()
        return super().swept(told, generation)

    def test_the_history_is_complete(self):
        generation = self.daemon.status()["generation"]
        while self.changes < CHANGES:
            told = self.operator.spine() if self.dice.random() < .2 else []
            told = told or self.some_changes()
            if told:
                generation = self.swept(told, generation)
        self.assertGreaterEqual(self.kills, 3)
        self.whole_history()
        kinds = {word[0] for _, _, told in self.told for word in told}
        self.assertLessEqual({"hca-replaced", "host-moved", "host-back", "cable-moved", "link-back", "switch-replaced",
                              "switch-back", "name"}, kinds)
        for host, about in self.operator.about.items():
            names = {self.operator.name(host), host}
            for name in names:  # by its first name, and by its last
                mine = {word[1] for word in about}
                story = [quick.normal(c) for c in self.daemon.ctl_json("history", name)
                         if c["generation"] > 1 and c["kind"] not in self.managed and c["what"] in mine]
                self.assertEqual(story, about, f"seed {self.seed}: history of {name}")
        self.assertEqual(self.daemon.errors(), [])


if __name__ == "__main__":
    unittest.main()
