"""operator_hands - an operator with a model of the wiring of his own, who lays hands on a fabric at random, and writes down in the
words of `fabricctl diff` what each hand does.

Some hands are laid on before each sweep, never two on the same nodes. The fabric is an Ibsim of lab.py or a Site of the
simulation: both have unlink(), link() and guid().
"""
import collections
import os
import random
import re
import sqlite3

import lab

FABRIC = "fattree2:7,3,5"
UNUSED = "leaf4"  # for free ports at the spines that are like the others; and so are two hosts of each leaf
RATE = "4xHDR"
# Not compared: the subnet manager's own hand, at moments of its choice, and what follows from the shape that is left.
MANAGED = ("lid", "port-down", "port-up", "plane-kind", "plane-shape")
NOT_SEEN, SEEN = ("there", "missing"), ("missing", "there")


def hexadecimal(guid):
    return f"{guid:#018x}"


def text(end):
    return f"{end[0]}[{end[1]}]"


def cable(a, b):
    return " - ".join(sorted((text(a), text(b))))


class Operator:
    """The wiring as it is, and hands that change it; each says which nodes it touches and what will be told."""

    def __init__(self, sim, text, seed):
        self.sim, self.random = sim, random.Random(seed)
        self.everybody = re.findall(r'^(?:Hca|Ca)\s+\d+\s+"([^"]+)"', text, re.MULTILINE)
        self.guids = {name: int(guid, 16) for guid, name in re.findall(
            r'^(?:ca|switch)guid=(\S+)\n\w+ \d+ "([^"]+)"', text, re.MULTILINE)}
        self.next_guid = 0x900000
        self.uplinks = {}  # (leaf, its port): (spine, its port)
        self.hosts = {}    # host: (leaf, its port)
        self.ports = set()
        for switch, block in re.findall(r'^Switch \d+ "([^"]+)".*\n((?:\[.*\n)+)', text, re.MULTILINE):
            for port, node, far in re.findall(r'^\[(\d+)\] "([^"]+)"\[(\d+)\]', block, re.MULTILINE):
                self.ports.add((switch, int(port)))
                if node.startswith("spine"):
                    self.uplinks[switch, int(port)] = node, int(far)
                elif node.startswith("node"):
                    self.hosts[node] = switch, int(port)
        self.fixed = {self.everybody[0], self.everybody[-1]}  # where the subnet manager and the sweeps are
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

    def spare(self):
        """The uplinks but for a spine's last one, with which the spine is lost."""
        left = collections.Counter(far[0] for far in self.uplinks.values())
        return [item for item in self.uplinks.items() if left[item[1][0]] > 1]

    def pull(self, busy):
        whole = {near[0] for near in self.uplinks} - {near[0] for near in self.pulled}
        found = self.pick([c for c in self.spare() if c[0][0] in whole], busy, lambda c: (c[0][0], c[1][0]))
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


class Hands(Operator):
    """Each hand is two: what is done now, and what will be done one day. Every node has a name that may change."""

    def __init__(self, sim, text, seed):
        super().__init__(sim, text, seed)
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
        guid = hexadecimal(self.guids[host])
        return {host, place[0]}, self.tell(
            host, ("host-missing", f"{self.name(host)} HCA-1", *NOT_SEEN),
            ("host-lost", self.name(host), f"1 device: {guid} at {text(place)}", ""))

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
            told.append(("host-moved", f"{name} HCA-1[1]", text(place), text(to)))
        elif not replaced:
            told.append(("host-back", f"{name} HCA-1", "lost", "there"))
        self.hosts[host] = to or place
        self.link(self.hosts[host], host, 1)
        return {host, place[0], self.hosts[host][0]}, self.tell(host, *told)

    def unplug(self, busy):
        if len(self.moving) > (0 if self.off else 2):
            return None
        out = {near[0] for near in self.moving}
        found = self.pick([c for c in self.spare() if c[0][0] not in out], busy, lambda c: (c[0][0], c[1][0]))
        if not found:
            return None
        near, far = found
        self.sim.unlink(*near)
        self.moving[near] = self.pulled[near] = self.uplinks.pop(near)
        return {near[0], far[0]}, [("link-lost", cable(near, far), RATE, "")]

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
            return {near[0], far[0]}, [("cable-moved", cable(near, far), text(far), text(to))]
        return {near[0], far[0]}, [("link-back", cable(near, far), "lost", RATE)]

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
        return [("switch-lost", spine, hexadecimal(self.guids[spine]), "")]

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


class Run:
    """A test of random hands: of a fabricd (self.daemon), a fabric (self.sim) and an operator, with the dice of a seed."""
    maxDiff = None
    managed = MANAGED  # kinds that are not compared
    changes_wanted, kills_wanted = 500, 10

    def begin(self, daemon, operator, seed):
        self.daemon, self.operator, self.seed = daemon, operator, seed
        self.dice = random.Random(seed)
        self.told, self.changes, self.kills = [], 0, 0

    def settle(self):
        """What hands have plugged in works."""

    def swept(self, words, generation):
        """All of these words are told after this generation, and nothing else; the generation by then."""
        self.settle()
        if self.kills < self.kills_wanted and self.changes >= (self.kills + 1) * self.changes_wanted // (self.kills_wanted + 1):
            self.kill()
            self.kills += 1
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

    def check_history(self):
        generation = self.daemon.status()["generation"]
        while self.changes < self.changes_wanted:
            switch = self.operator.some_switch() if self.dice.random() < .06 else None
            for on in (False, True) if switch else ():
                self.changes += 1
                generation = self.swept(self.operator.power(switch, on), generation)
            generation = self.swept(self.some_changes(), generation)
        self.assertEqual(self.kills, self.kills_wanted)
        self.whole_history()
        self.stories()
        self.as_afresh()
        self.assertEqual(self.daemon.errors(), [])

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
        for host in self.operator.everybody:
            story = [normal(c) for c in self.daemon.ctl_json("history", host)
                     if c["generation"] > 1 and c["kind"] not in self.managed and c["what"].startswith(f"{host} ")]
            self.assertEqual(story, [word for word in done if word[1].startswith(f"{host} ")])
