"""Random changes of a running subnet, fabricd killed in between: what happened is in the history, all and once.

The test plays the operator with a model of the wiring of its own, and writes down in the words of `fabricctl diff`
what each hand does. Some hands are laid on before each sweep, never two on the same nodes; now and then fabricd is killed: before it has seen anything, or at a random moment of the sweep or of publishing.
"""
import collections
import random
import re
import sqlite3
import time
import unittest

import afresh
import lab

FABRIC = "fattree2:7,3,5"
UNUSED = "leaf4"  # for free ports at the spines that are like the others; and so are two hosts of each leaf
CHANGES, KILLS = (500, 10) if lab.ALL else (120, 4)
RATE = "4xHDR"
MANAGED = ("lid", "port-down", "port-up")  # the subnet manager's own hand, at moments of its choice
NOT_SEEN, SEEN = ("there", "missing"), ("missing", "there")


def hexadecimal(guid):
    return f"{guid:#018x}"


def text(end):
    return f"{end[0]}[{end[1]}]"


def cable(a, b):
    return " - ".join(sorted((text(a), text(b))))


class Operator:
    """The wiring as it is, and hands that change it; each says which nodes it touches and what will be told."""

    def __init__(self, sim, seed):
        self.sim, self.random = sim, random.Random(seed)
        self.guids = {name: int(guid, 16) for guid, name in re.findall(
            r'^(?:ca|switch)guid=(\S+)\n\w+ \d+ "([^"]+)"', sim.text, re.MULTILINE)}
        self.next_guid = 0x900000
        self.uplinks = {}  # (leaf, its port): (spine, its port)
        self.hosts = {}    # host: (leaf, its port)
        self.ports = set()
        for switch, block in re.findall(r'^Switch \d+ "([^"]+)".*\n((?:\[.*\n)+)', sim.text, re.MULTILINE):
            for port, node, far in re.findall(r'^\[(\d+)\] "([^"]+)"\[(\d+)\]', block, re.MULTILINE):
                self.ports.add((switch, int(port)))
                if node.startswith("spine"):
                    self.uplinks[switch, int(port)] = node, int(far)
                elif node.startswith("node"):
                    self.hosts[node] = switch, int(port)
        self.fixed = {sim.hosts[0], sim.hosts[-1]}  # where the subnet manager and the sweeps are
        self.clear_out()
        self.pulled = {}   # as uplinks
        self.missing = {}  # as hosts
        self.wait = set()  # ports that have to become active
        self.config = {}   # of fabricd
        self.hands = [self.pull, self.put_back, self.move_cable, self.take_host, self.return_host, self.move_host,
                      self.replace_hca, self.replace_switch]

    def clear_out(self):
        """Before anybody has seen the subnet: free ports."""
        for near in [near for near in self.uplinks if near[0] == UNUSED]:
            self.sim.unlink(*near)
            del self.uplinks[near]
        for host, place in list(self.hosts.items()):
            if place[0] == UNUSED or (place[1] in (2, 4) and host not in self.fixed):
                self.sim.unlink(*place)
                del self.hosts[host]

    def free_port(self, switch):
        used = {*self.uplinks, *self.uplinks.values(), *self.pulled, *self.pulled.values(), *self.hosts.values(),
                *self.missing.values()}
        return self.random.choice(sorted(end for end in self.ports - used if end[0] == switch) or [None])

    def link(self, end, node, port):
        self.sim.link(*end, node, port)
        self.wait.add(end)

    def pick(self, things, busy, key=lambda item: item):
        """One of these whose nodes nobody has touched; None."""
        things = sorted(thing for thing in things if not busy & set(key(thing)))
        return self.random.choice(things) if things else None

    # -- the hands: None where there is nothing to do, or (nodes, words)

    def pull(self, busy):
        whole = {near[0] for near in self.uplinks} - {near[0] for near in self.pulled}
        found = self.pick([c for c in self.uplinks.items() if c[0][0] in whole], busy, lambda c: (c[0][0], c[1][0]))
        if not found:
            return None
        near, far = found
        self.sim.unlink(*near)
        self.pulled[near] = self.uplinks.pop(near)
        return {near[0], far[0]}, [("link-lost", cable(near, far), RATE, "")]

    def put_back(self, busy):
        found = self.pick(self.pulled.items(), busy, lambda c: (c[0][0], c[1][0]))
        if not found:
            return None
        near, far = found
        self.link(near, *far)
        self.uplinks[near] = self.pulled.pop(near)
        return {near[0], far[0]}, [("link-back", cable(near, far), "lost", RATE)]

    def move_cable(self, busy):
        found = self.pick(self.uplinks.items(), busy, lambda c: (c[0][0], c[1][0]))
        to = found and self.free_port(found[1][0])
        if not to:
            return None
        near, far = found
        self.sim.unlink(*near)
        self.link(near, *to)
        self.uplinks[near] = to
        return {near[0], far[0]}, [("cable-moved", cable(near, far), text(far), text(to))]

    def some_host(self, busy, hosts):
        return self.pick([(h, p) for h, p in hosts.items() if h not in self.fixed], busy, lambda c: (c[0], c[1][0]))

    def take_host(self, busy):
        found = self.some_host(busy, self.hosts)
        if not found or len(self.missing) > 3:
            return None
        host, place = found
        self.sim.unlink(*place)
        self.missing[host] = self.hosts.pop(host)
        return {host, place[0]}, [("host-missing", f"{host} HCA-1", *NOT_SEEN)]

    def return_host(self, busy):
        found = self.some_host(busy, self.missing)
        if not found:
            return None
        host, place = found
        self.link(place, host, 1)
        self.hosts[host] = self.missing.pop(host)
        return {host, place[0]}, [("host-back", f"{host} HCA-1", *SEEN)]

    def move_host(self, busy):
        found = self.some_host(busy, self.hosts)
        leaf = self.pick({near[0] for near in self.uplinks}, busy, lambda name: (name,))
        to = found and leaf and self.free_port(leaf)
        if not to:
            return None
        host, place = found
        self.sim.unlink(*place)
        self.link(to, host, 1)
        self.hosts[host] = to
        return {host, place[0], leaf}, [("host-moved", f"{host} HCA-1[1]", text(place), text(to))]

    def new_guid(self, node):
        before, self.guids[node] = self.guids[node], self.next_guid
        self.next_guid += 0x10
        self.sim.guid(node, self.guids[node])
        return hexadecimal(before), hexadecimal(self.guids[node])

    def replace_hca(self, busy):
        found = self.some_host(busy, self.hosts)
        if not found:
            return None
        return {found[0], found[1][0]}, [("hca-replaced", f"{found[0]} HCA-1", *self.new_guid(found[0]))]

    def replace_switch(self, busy):
        # its neighbours are touched, too
        near = collections.defaultdict(set)
        for (leaf, _), (spine, _) in self.uplinks.items():
            near[leaf].add(spine)
            near[spine].add(leaf)
        switch = self.pick(set(near) - {place[0] for place in self.missing.values()}, busy, lambda s: {s} | near[s])
        if not switch:
            return None
        return {switch} | near[switch], [("switch-replaced", switch, *self.new_guid(switch))]

    # -- what stands alone: a switch without power

    def some_switch(self):
        """A spine, while every leaf has another way, or a leaf of which nobody is missing."""
        spines = {far[0] for far in self.uplinks.values()} if not self.pulled else set()
        here = {place[0] for host, place in self.hosts.items() if host in self.fixed}
        here |= {place[0] for place in self.missing.values()}
        return self.random.choice(sorted(spines | {near[0] for near in self.uplinks} - here) or [None])

    def power(self, switch, on):
        """Switched off or on: what will be told."""
        hosts = {host: place for host, place in self.hosts.items() if place[0] == switch}
        cables = {near: far for near, far in self.uplinks.items() if switch in (near[0], far[0])}
        cables.update({place: (host, 1) for host, place in hosts.items()})
        for near, far in cables.items():  # one by one: the simulator would also bring back what was there before
            if on:
                self.link(near, *far)
            else:
                self.sim.unlink(*near)
        if not hosts:  # nobody's place is kept
            guid = hexadecimal(self.guids[switch])
            return [("switch-back", switch, "lost", "there") if on else ("switch-lost", switch, guid, "")]
        kind, words = ("back", SEEN) if on else ("missing", NOT_SEEN)
        return [(f"switch-{kind}", switch, *words)] + [(f"host-{kind}", f"{host} HCA-1", *words) for host in hosts]


def normal(change):
    """A change as words; the ends of a cable in the order of their names."""
    what = " - ".join(sorted(change["what"].split(" - ")))
    return change["kind"], what, change["before"], change["after"]


class Random(unittest.TestCase):
    maxDiff = None
    managed = MANAGED  # kinds that are not compared

    def setUp(self):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(lab.fabric(FABRIC))
        self.addCleanup(self.sim.quit)
        self.seed = lab.seed("the changes", 5)
        self.operator = self.make_operator()
        self.manager = lab.OpenSM(self.sim)
        self.addCleanup(self.manager.stop)
        self.dice = random.Random(self.seed)
        self.daemon = lab.Fabricd(self.sim, {"changes": {"flap_count": 0, "debounce": 0}, **self.operator.config})
        self.addCleanup(self.daemon.stop)
        self.told, self.changes, self.kills = [], 0, 0

    def make_operator(self):
        return Operator(self.sim, self.seed)

    def kill(self):
        """Kill it at a random moment, and start it again."""
        if self.dice.random() < .7:
            with self.daemon.ask("refresh"):
                time.sleep(self.dice.random() * .25)
                self.daemon.kill9()
        else:
            self.daemon.kill9()
        self.daemon.start()
        self.kills += 1

    def swept(self, words, generation):
        """All of these words are told after this generation, and nothing else; the generation by then."""
        for end in self.operator.wait:
            self.sim.wait_active(*end)
        self.operator.wait.clear()
        if self.kills < KILLS and self.changes >= (self.kills + 1) * CHANGES // (KILLS + 1):
            self.kill()
        self.daemon.refresh()
        now = self.daemon.status()["generation"]
        changes = self.daemon.ctl_json("diff", str(generation), str(now))["changes"]
        self.assertEqual(sorted(normal(c) for c in changes if c["kind"] not in self.managed), sorted(words),
                         f"seed {self.seed}, change {self.changes}, generations {generation} to {now}")
        self.told.append((generation, now, sorted(words)))
        return now

    def some_changes(self):
        busy, words = set(), []
        for _ in range(self.dice.choice([1, 3, 6, 8])):
            done = self.dice.choice(self.operator.hands)(busy)
            if done is not None:
                busy |= done[0]
                words += done[1]
                self.changes += 1
        return words

    def test_the_history_is_complete(self):
        generation = self.daemon.status()["generation"]
        while self.changes < CHANGES:
            switch = self.operator.some_switch() if self.dice.random() < .06 else None
            for on in (False, True) if switch else ():
                self.changes += 1
                generation = self.swept(self.operator.power(switch, on), generation)
            generation = self.swept(self.some_changes(), generation)
        self.assertEqual(self.kills, KILLS)
        self.whole_history()
        self.stories()
        lab.wait_for(self.all_active, 30, "ports to become active")
        newcomer = afresh.newcomer(self.sim)
        self.assertEqual(afresh.costs(self.daemon), afresh.costs(newcomer))
        self.assertEqual(afresh.cables(self.daemon, newcomer), afresh.cables(newcomer))
        self.assertEqual(self.daemon.errors(), [])

    def all_active(self):
        self.daemon.refresh()
        return self.daemon.status()["inactive"] == 0

    def whole_history(self):
        """From the first to the last generation each has something, and all of it is what was done, once."""
        history = [c for c in self.daemon.ctl_json("history", "-n", "100000") if c["generation"] > 1]
        last = self.daemon.status()["generation"]
        numbers = [c["generation"] for c in history]
        self.assertEqual(numbers, sorted(numbers))
        self.assertEqual(sorted(set(numbers)), list(range(2, last + 1)))
        history = [c for c in history if c["kind"] not in self.managed]
        for before, after, words in self.told:
            self.assertEqual(sorted(normal(c) for c in history if before < c["generation"] <= after), words)
        self.assertEqual(len(history), sum(len(words) for _, _, words in self.told))
        with sqlite3.connect(f"file:{self.daemon.store}?mode=ro", uri=True) as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            times = db.execute("SELECT published FROM generation ORDER BY generation").fetchall()
            self.assertEqual(times, sorted(times))

    def stories(self):
        """What happened to each host, in order."""
        done = [word for _, _, words in self.told for word in words]
        for host in self.sim.hosts:
            story = [normal(c) for c in self.daemon.ctl_json("history", host)
                     if c["generation"] > 1 and c["kind"] not in self.managed and c["what"].startswith(f"{host} ")]
            self.assertEqual(story, [word for word in done if word[1].startswith(f"{host} ")])


if __name__ == "__main__":
    unittest.main()
