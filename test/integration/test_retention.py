"""What a sweep does not see any more keeps its place for a while, and what flaps is suppressed."""
import json
import os
import re
import shutil
import sqlite3
import unittest

import fabric_text
import lab

FABRIC = "fattree2:3,2,2"
HOST = "node0002"


def kinds(changes):
    return sorted(change["kind"] for change in changes)


class Case(unittest.TestCase):
    def setUp(self):
        self.sim = lab.Ibsim(lab.fabric(FABRIC))
        self.sim.sweep()

    def start(self, **changes):
        self.daemon = lab.Fabricd(self.sim, {"changes": changes})
        return self.daemon

    def devices(self):
        return {device["host"]: device for device in self.daemon.ctl_json("devices")}

    def places(self):
        """Where everybody stands, as jobs have it."""
        return {host: (d["index"], d["logical"], d["physical"], d["switch_port"]) for host, d in self.devices().items()}

    def states(self):
        return {host: (d["state"], d["seen"]) for host, d in self.devices().items()}

    def told_missing(self):
        """What the lists say is missing: hosts, switches, and the ends of cables."""
        return ({device["host"] for device in self.daemon.ctl_json("devices") if device["missing"]},
                {switch["name"] for switch in self.daemon.ctl_json("switches") if switch["missing"]},
                {tuple(sorted((link["a"], link["b"]))) for link in self.daemon.ctl_json("links") if link["missing"]})

    def last(self):
        return self.daemon.ctl_json("diff")["changes"]

    def generation(self):
        return self.daemon.status()["generation"]

    def sweep(self):
        """One run of OpenSM, then one of ours."""
        self.sim.sweep()
        return self.daemon.refresh()

    def pull(self, host="node0002", leaf="leaf1"):
        """Pull a host's cable; the port that it was in."""
        port = self.sim.cable(leaf, host)
        self.sim.unlink(leaf, port)
        self.daemon.refresh()
        return port


class Missing(Case):
    def test_a_host_that_goes_and_comes_back_moves_nobody(self):
        self.start()
        places, before = self.places(), self.daemon.ctl_json("cost", "node0001", "node0003")
        port = self.pull()
        self.assertEqual(self.places(), places)
        self.assertEqual(self.states()["node0002"], ("down", "missing"))
        self.assertEqual([state for host, state in self.states().items() if host != "node0002"], [("up", "subnet")] * 5)
        self.assertEqual([(c["kind"], c["what"]) for c in self.last()], [("host-missing", "node0002 HCA-1")])
        self.assertEqual(self.daemon.status()["missing"], 1)
        self.assertEqual(self.daemon.ctl_json("cost", "node0001", "node0003"), before)
        self.assertEqual(self.told_missing(), ({"node0002"}, set(), {("leaf1", "node0002:HCA-1")}))
        generation = self.generation()
        self.daemon.refresh()  # it is missing still: nothing is new
        self.assertEqual(self.generation(), generation)
        self.sim.relink("leaf1", port)
        self.sweep()
        self.assertEqual(self.places(), places)
        self.assertEqual(self.states()["node0002"], ("up", "subnet"))
        self.assertIn("host-back", kinds(self.last()))
        self.assertFalse({"host-added", "host-lost", "index", "link-added"} & set(kinds(self.last())))
        self.assertEqual(self.daemon.status()["missing"], 0)

    def test_what_is_missing_for_too_long_is_lost_without_a_sweep(self):
        self.start(retain_seconds=2)
        self.pull()
        self.sim.unlink("leaf2", self.sim.cable("leaf2", "node0003"))
        self.daemon.refresh()
        sweep = self.daemon.status()["last_sweep"]
        lab.wait_for(lambda: set(self.devices()) == {"node0001", "node0004", "node0005", "node0006"}, 20,
                     "both to be retired")
        self.assertEqual(self.daemon.status()["last_sweep"], sweep)
        self.assertEqual(self.daemon.status()["missing"], 0)
        history = self.daemon.ctl_json("history", "node0002")
        self.assertEqual([c["kind"] for c in history if c["kind"].startswith("host")],
                         ["host-added", "host-missing", "host-lost"])

    def test_when_it_was_last_seen(self):
        """By the last sweep that saw it, not by the first that did not."""
        def last(kind):
            return next(c for c in self.daemon.ctl_json("diff")["changes"] if c["kind"] == kind)

        self.start(flap_count=0)
        sweeps = [self.daemon.status()["last_sweep"]]

        def sweep():
            self.sweep()
            sweeps.append(self.daemon.status()["last_sweep"])

        port = self.pull()
        sweeps.append(self.daemon.status()["last_sweep"])
        gone = last("host-missing")
        self.assertEqual((gone["first_seen"], gone["last_seen"]), (sweeps[1], sweeps[0]))
        sweep()
        self.daemon.kill9()  # it stands in the store
        self.daemon.start()
        self.sim.relink("leaf1", port)
        sweep()
        back = last("host-back")
        self.assertEqual((back["first_seen"], back["last_seen"]), (sweeps[-1], sweeps[0]))
        self.pull()
        seen = sweeps[-1]
        sweep()
        self.sim.guid("node0002", 0x990002)
        self.sim.relink("leaf1", port)
        sweep()
        replaced = last("hca-replaced")
        self.assertEqual((replaced["first_seen"], replaced["last_seen"]), (sweeps[-1], seen))
        seen = sweeps[-1]
        self.pull()
        sweep()
        self.assertEqual(self.daemon.ctl("forget", "node0002").returncode, 0)
        lab.wait_for(lambda: "node0002" not in self.devices(), what="node0002 to be retired")
        lost = last("host-lost")
        self.assertEqual(lost["last_seen"], seen)
        self.assertGreater(lost["first_seen"], sweeps[-1])
        self.sim.relink("leaf1", port)
        sweep()
        back = last("host-back")
        self.assertEqual((back["first_seen"], back["last_seen"]), (sweeps[-1], seen))
        self.assertIn(f"last seen {seen[:19]}Z", back["why"])

    def test_forget_retires_at_once(self):
        self.start()
        self.pull()
        done = self.daemon.ctl("forget", "node0001")
        self.assertEqual(done.returncode, 1)
        self.assertIn("node0001 is there", done.stderr)
        done = self.daemon.ctl("forget", "node9999")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.daemon.ctl("forget", "node0002").returncode, 0)
        lab.wait_for(lambda: "node0002" not in self.devices(), what="node0002 to be retired")
        lost = next(change for change in self.last() if change["kind"] == "host-lost")
        self.assertIn("was missing", lost["why"])
        self.assertEqual(self.devices()["node0003"]["index"], 1)

    def test_without_keeping_it_is_lost_at_once(self):
        self.start(retain_seconds=0)
        self.pull()
        self.assertNotIn("node0002", self.devices())
        self.assertIn("host-lost", kinds(self.last()))

    def test_a_leaf_that_restarts_takes_nobody_along(self):
        self.start()
        places = self.places()
        self.sim.unlink("leaf2")
        self.daemon.refresh()
        self.assertEqual(self.places(), places)
        self.assertEqual(kinds(self.last()), ["host-missing", "host-missing", "switch-missing"])
        self.assertEqual([self.states()[host] for host in ("node0003", "node0004")], [("down", "missing")] * 2)
        self.assertEqual(self.told_missing(),
                         ({"node0003", "node0004"}, {"leaf2"}, {("leaf2", "node0003:HCA-1"), ("leaf2", "node0004:HCA-1"),
                                                                ("leaf2", "spine1"), ("leaf2", "spine2")}))
        self.assertRegex(self.daemon.ctl("switches").stdout, r"(?m)^\S+ +ib0 +leaf2 .* yes +")
        self.assertRegex(self.daemon.ctl("switches").stdout, r"(?m)^\S+ +ib0 +leaf1 .* no +")
        self.assertEqual(self.daemon.ctl("links").stdout.count(" yes "), 4)
        distance = self.daemon.ctl_json("cost", "node0001", "node0005")
        self.sim.relink("leaf2")
        self.sweep()
        self.assertEqual(self.places(), places)
        self.assertEqual(set(self.states().values()), {("up", "subnet")})
        self.assertEqual(self.daemon.ctl_json("cost", "node0001", "node0005"), distance)

    def test_forget_a_leaf(self):
        self.start()
        self.sim.unlink("leaf2")
        self.daemon.refresh()
        self.assertEqual(self.daemon.status()["missing"], 2)
        done = self.daemon.ctl("forget", "leaf1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("forget: leaf1 is a switch that the last sweep saw", done.stderr)
        done = self.daemon.ctl("forget", "leaf2")
        self.assertEqual((done.returncode, done.stdout), (0, "leaf2 is forgotten: it keeps no place any more\n"), done)
        lab.wait_for(lambda: self.daemon.status()["missing"] == 0, what="nobody to be missing")
        self.assertEqual([(c["kind"], c["what"]) for c in self.last() if c["kind"] != "index"],
                         [("host-lost", "node0003"), ("host-lost", "node0004"), ("switch-lost", "leaf2")])

    def test_a_spine_is_lost_at_once(self):
        self.start()
        places = self.places()
        self.sim.unlink("spine1")
        self.daemon.refresh()
        self.assertIn("switch-lost", kinds(self.last()))
        self.assertEqual({h: p[0] for h, p in self.places().items()}, {h: p[0] for h, p in places.items()})

    def test_another_hca_in_its_place_ends_it(self):
        self.start()
        places = self.places()
        port = self.pull()
        self.sim.guid("node0002", 0x77aa00)
        self.sim.relink("leaf1", port)
        self.sweep()
        self.assertEqual(self.places(), places)
        self.assertIn("hca-replaced", kinds(self.last()))
        self.assertEqual(self.daemon.status()["missing"], 0)


class Ports(Case):
    """Of a host with two ports, on leaf1 and on leaf2, the cable in the second is pulled."""

    def setUp(self):
        self.sim = lab.Ibsim(fabric_text.two_ports(lab.fabric(FABRIC), HOST, "node0003"))
        self.sim.sweep()
        self.port = self.sim.cable("leaf2", HOST)

    def devices(self):
        return {(device["host"], device["port"]): device for device in self.daemon.ctl_json("devices")}

    def pull(self, host=HOST, leaf="leaf2"):
        return super().pull(host, leaf)

    def test_one_that_goes_and_comes_back_moves_nobody(self):
        self.start()
        places, cost = self.places(), self.daemon.ctl_json("cost", "node0001", f"{HOST}:HCA-1:2")
        self.assertEqual([places[HOST, n][0] for n in (1, 2)], [1, 2])
        self.pull()
        self.assertEqual(self.places(), places)
        self.assertEqual({key for key, state in self.states().items() if state == ("down", "missing")}, {(HOST, 2)})
        self.assertEqual(self.states()[HOST, 1], ("up", "subnet"))
        what = f"leaf2[{self.port}] - {HOST} HCA-1[2]"
        self.assertEqual([(c["kind"], c["what"], c["after"]) for c in self.last()], [("port-missing", what, "missing")])
        self.assertEqual(self.daemon.status()["missing"], 1)
        self.assertEqual(self.daemon.ctl_json("cost", "node0001", f"{HOST}:HCA-1:2"), cost)
        self.assertEqual(self.told_missing(), ({HOST}, set(), {("leaf2", f"{HOST}:HCA-1")}))
        found = json.loads(self.daemon.ctl("--format", "json", "check").stdout)["findings"]
        self.assertIn(("missing", f"{HOST} HCA-1[2]"), [(f["kind"], f["where"]) for f in found])
        generation = self.generation()
        self.daemon.refresh()
        self.assertEqual(self.generation(), generation)
        self.sim.relink("leaf2", self.port)
        self.sweep()
        self.assertEqual(self.places(), places)
        self.assertEqual(set(self.states().values()), {("up", "subnet")})
        self.assertEqual([(c["kind"], c["what"]) for c in self.last()], [("port-back", what)])
        self.assertEqual(self.daemon.status()["missing"], 0)

    def test_after_its_time_it_is_lost(self):
        self.start(retain_seconds=2)
        self.pull()
        sweep = self.daemon.status()["last_sweep"]
        lab.wait_for(lambda: (HOST, 2) not in self.devices(), 20, "the port to be retired")
        self.assertIn((HOST, 1), self.devices())
        self.assertEqual(self.daemon.status()["last_sweep"], sweep)
        lost = next(change for change in self.last() if change["kind"] == "device-lost")
        self.assertIn("was missing", lost["why"])
        history = [c["kind"] for c in self.daemon.ctl_json("history", HOST)]
        self.assertEqual([kind for kind in history if kind.startswith(("port", "device", "host"))],
                         ["host-added", "port-missing", "device-lost"])
        generation = self.generation()
        self.daemon.refresh()  # that is what is seen
        self.assertEqual(self.generation(), generation)

    def test_forget_retires_it_at_once(self):
        self.start()
        self.pull()
        self.assertEqual(self.daemon.ctl("forget", HOST).returncode, 0)
        lab.wait_for(lambda: (HOST, 2) not in self.devices(), what="the port to be retired")
        self.assertIn((HOST, 1), self.devices())

    def test_each_port_counts_for_itself(self):
        self.start()
        places = self.places()
        self.pull()
        first = self.pull(leaf="leaf1")  # now the whole host is missing
        self.assertEqual(kinds(self.last()), ["host-missing"])
        self.assertEqual(self.daemon.status()["missing"], 1)
        with sqlite3.connect(f"file:{self.daemon.store}?mode=ro", uri=True) as db:
            since = db.execute("SELECT num, since FROM missing ORDER BY num").fetchall()
        self.assertEqual([num for num, _ in since], [1, 2])
        self.assertGreater(since[0][1], since[1][1])
        self.assertEqual(self.places(), places)
        self.sim.relink("leaf1", first)
        self.sweep()
        self.assertEqual(kinds(self.last()), ["host-back", "port-missing"])
        self.assertEqual(self.places(), places)
        self.assertEqual((self.states()[HOST, 1], self.states()[HOST, 2]), (("up", "subnet"), ("down", "missing")))

    def test_at_another_switch_port_it_has_moved(self):
        self.start()
        self.pull()
        port = super().pull("node0005", "leaf3")
        self.sim.link("leaf3", port, HOST, 2)
        self.sweep()
        moved = self.devices()[HOST, 2]
        self.assertEqual((moved["switch"], moved["switch_port"], moved["seen"]), ("leaf3", port, "subnet"))
        self.assertIn("host-moved", kinds(self.last()))
        self.assertNotIn("port-back", kinds(self.last()))
        other = self.devices()["node0005", 1]  # its place is taken: it is kept where this one was
        self.assertEqual((other["switch"], other["switch_port"], other["seen"]), ("leaf2", self.port, "missing"))

    def test_whose_place_is_taken_is_kept_elsewhere(self):
        self.start()
        self.pull()
        indices = {key: place[0] for key, place in self.places().items()}
        port = self.sim.cable("leaf3", "node0005")
        self.sim.unlink("leaf3", port)
        self.sim.link("leaf2", self.port, "node0005", 1)
        self.sweep()
        kept = self.devices()[HOST, 2]
        self.assertEqual((kept["switch"], kept["switch_port"], kept["seen"]), ("leaf3", port, "missing"))
        self.assertEqual(self.devices()["node0005", 1]["switch"], "leaf2")
        self.assertEqual({key: place[0] for key, place in self.places().items()}, indices)
        self.assertEqual([c["what"] for c in self.last() if c["kind"] == "link-lost"],
                         [f"leaf2[{self.port}] - {HOST} HCA-1[2]"])

    def test_a_restart_counts_on(self):
        self.start()
        self.pull()
        places = self.places()
        self.daemon.kill9()
        self.daemon.start()
        self.assertEqual(self.places(), places)
        self.assertEqual(self.states()[HOST, 2], ("down", "missing"))
        self.daemon.stop()
        with open(self.daemon.conf, "a", encoding="utf-8") as file:
            file.write("\n[changes]\nretain_seconds = 1\n")
        self.daemon.start()
        lab.wait_for(lambda: (HOST, 2) not in self.devices(), what="the port to be retired")

    def test_a_leaf_that_restarts(self):
        self.start()
        places = self.places()
        self.sim.unlink("leaf2")
        self.daemon.refresh()
        self.assertEqual(kinds(self.last()), ["host-missing", "port-missing", "switch-missing"])
        self.assertEqual(self.places(), places)
        self.sim.relink("leaf2")
        self.sweep()
        self.assertEqual(kinds(self.last()), ["host-back", "port-back", "switch-back"])
        self.assertEqual(self.places(), places)

    def test_an_older_store(self):
        """Written before the cable went, and put back after it was retired: it is missing from now on."""
        self.start()
        self.daemon.stop()
        backup = os.path.join(self.daemon.dir, "backup.db")
        shutil.copy(self.daemon.store, backup)
        self.daemon.start()
        self.pull()
        self.daemon.ctl("forget", HOST)
        lab.wait_for(lambda: (HOST, 2) not in self.devices(), what="the port to be retired")
        self.daemon.stop()
        for suffix in ("-wal", "-shm"):
            if os.path.exists(self.daemon.store + suffix):
                os.unlink(self.daemon.store + suffix)
        shutil.copy(backup, self.daemon.store)
        self.daemon.start()
        self.daemon.refresh()
        self.assertEqual(self.states()[HOST, 2], ("down", "missing"))

    def test_a_cable_that_flaps_keeps_its_place(self):
        self.start(suppress=3, suppress_max=3)
        places = self.places()
        self.pull()
        self.sim.relink("leaf2", self.port)
        self.sweep()
        self.pull()
        self.assertEqual(kinds(self.last()), ["flapping", "port-missing"])
        self.sim.relink("leaf2", self.port)
        self.sweep()  # it is there, and taken as down
        self.assertEqual((self.places(), self.states()[HOST, 2]), (places, ("down", "missing")))
        lab.wait_for(lambda: self.states()[HOST, 2] == ("up", "subnet"), 30, "the cable to be released")
        self.assertEqual(kinds(self.last()), ["port-back"])


class Sweeps(Case):
    """Nobody is retired while nobody knows who is missing."""

    def test_the_own_cable_is_out(self):
        self.start(retain_seconds=1)
        self.pull()
        own = self.sim.cable("leaf3", "node0006")
        self.sim.unlink("leaf3", own)  # where the sweeps are made
        with self.assertRaises(lab.LabError):
            self.daemon.refresh()
        generation, devices = self.generation(), set(self.devices())
        self.assertTrue(self.daemon.status()["stale"])
        # its time is over, which shows only when sweeps are good again
        lab.wait_for(lambda: self.waited(2), what="time to pass")
        self.assertEqual((self.generation(), set(self.devices())), (generation, devices))
        self.sim.relink("leaf3", own)
        self.sweep()
        lab.wait_for(lambda: "node0002" not in self.devices(), what="node0002 to be retired")

    def waited(self, seconds):
        """Has so much time passed since the last generation?"""
        with sqlite3.connect(f"file:{self.daemon.store}?mode=ro", uri=True) as db:
            return db.execute("SELECT (julianday('now') - 2440587.5) * 86400 - max(published) / 1e6 > ? FROM generation",
                              (seconds,)).fetchone()[0]

    def test_a_restart_counts_on(self):
        self.start()
        self.pull()
        places = self.places()
        self.daemon.stop()
        self.daemon.start()
        self.assertEqual(self.places(), places)
        self.assertEqual(self.states()["node0002"], ("down", "missing"))
        self.daemon.stop()
        with open(self.daemon.conf, "a", encoding="utf-8") as file:
            file.write("\n[changes]\nretain_seconds = 1\n")
        self.daemon.start()
        lab.wait_for(lambda: "node0002" not in self.devices(), what="node0002 to be retired")

    def test_killed_between_missing_and_lost(self):
        self.start(retain_seconds=2)
        self.pull()
        self.daemon.kill9()
        self.daemon.start()
        lab.wait_for(lambda: "node0002" not in self.devices(), what="node0002 to be retired")
        history = self.daemon.ctl_json("history", "node0002")
        self.assertEqual([c["kind"] for c in history if c["kind"].startswith("host")],
                         ["host-added", "host-missing", "host-lost"])

    def test_no_subnet_manager(self):
        """Ports that are back but not active are no reason to lose anybody."""
        self.start()
        port = self.pull()
        self.sim.relink("leaf1", port)
        self.daemon.refresh()  # nobody has brought the port up
        self.assertEqual(self.states()["node0002"], ("down", "subnet"))
        self.assertEqual(len(self.devices()), 6)
        self.sweep()
        self.assertEqual(self.states()["node0002"], ("up", "subnet"))

    def test_an_operator_takes_it_as_it_is(self):
        self.start()
        self.pull()
        self.daemon.refresh(accept_partial=True)
        self.assertNotIn("node0002", self.devices())

    def test_an_old_store_while_nodes_moved_on(self):
        """Generations never go back, and who is where is what is seen; who is not seen is missing from now on."""
        self.start()
        self.daemon.stop()
        backup = os.path.join(self.daemon.dir, "backup.db")
        shutil.copy(self.daemon.store, backup)
        self.daemon.start()
        port = self.pull()  # meanwhile node0002 went, and node0003 came to its place
        self.daemon.ctl("forget", "node0002")
        self.sim.unlink("leaf2", self.sim.cable("leaf2", "node0003"))
        self.sim.link("leaf1", port, "node0003", 1)
        self.sweep()
        moved = self.devices()["node0003"]
        self.assertEqual((moved["switch"], moved["switch_port"]), ("leaf1", port))
        self.daemon.stop()
        for suffix in ("-wal", "-shm"):
            if os.path.exists(self.daemon.store + suffix):
                os.unlink(self.daemon.store + suffix)
        shutil.copy(backup, self.daemon.store)
        self.daemon.start()
        self.daemon.refresh()
        devices = self.devices()
        self.assertEqual(devices["node0003"]["switch"], "leaf1")
        self.assertEqual((devices["node0002"]["seen"], devices["node0002"]["switch"]),
                         ("missing", "leaf2"))  # its port is another's now
        self.assertEqual(len(devices), 6)


class Flapping(Case):
    def flap(self, port, n):
        """So many times out and in again."""
        for _ in range(n):
            self.sim.unlink("leaf1", port)
            self.daemon.refresh()
            self.sim.relink("leaf1", port)
            self.sweep()

    def test_a_cable_that_flaps_is_held_down_and_released(self):
        self.start(suppress=3, suppress_max=3)
        places = self.places()
        port = self.sim.cable("leaf1", "node0002")
        self.flap(port, 1)
        self.assertEqual(self.states()["node0002"], ("up", "subnet"))
        self.sim.unlink("leaf1", port)
        self.daemon.refresh()
        self.assertEqual(kinds(self.last()), ["flapping", "host-missing"])
        flapping = next(c for c in self.last() if c["kind"] == "flapping")
        self.assertEqual(flapping["what"], f"leaf1[{port}] - node0002 HCA-1[1]")
        self.assertIn("3 changes within 60 s", flapping["before"])
        self.assertEqual(flapping["after"], "suppressed for at least 3 s")
        self.assertEqual(self.daemon.status()["flapping"], 1)
        generation = self.generation()
        self.sim.relink("leaf1", port)
        self.sweep()  # it is there, and taken as down
        self.flap(port, 2)
        self.assertEqual(self.generation(), generation)
        self.assertEqual(self.states()["node0002"], ("down", "missing"))
        lab.wait_for(lambda: self.states()["node0002"] == ("up", "subnet"), 30, "the cable to be released")
        self.assertEqual(self.generation(), generation + 1)
        self.assertIn("host-back", kinds(self.last()))
        self.assertEqual(self.places(), places)
        self.assertEqual(self.daemon.status()["flapping"], 0)

    def test_a_cable_between_switches(self):
        self.start(suppress=600)
        port = self.sim.cable("leaf1", "spine1")
        links = len(self.daemon.ctl_json("links"))
        self.flap(port, 1)
        self.assertEqual(len(self.daemon.ctl_json("links")), links)
        self.sim.unlink("leaf1", port)
        self.daemon.refresh()
        self.assertEqual(kinds(self.last()).count("flapping"), 1)  # once, though it has two ends
        generation = self.generation()
        self.sim.relink("leaf1", port)
        self.sweep()
        self.flap(port, 1)
        self.assertEqual(self.generation(), generation)
        self.assertEqual(len(self.daemon.ctl_json("links")), links - 1)
        self.daemon.stop()
        self.daemon.start()  # a restart forgets it
        self.assertEqual(len(self.daemon.ctl_json("links")), links)

    def flapping(self):
        """What `check` finds of it."""
        found = json.loads(self.daemon.ctl("--format", "json", "check").stdout)["findings"]
        return [finding for finding in found if finding["kind"] == "flapping"]

    def test_check_says_what_is_held(self):
        self.start(suppress=60)
        port = self.sim.cable("leaf1", "spine1")
        self.flap(port, 1)
        self.assertEqual(self.flapping(), [])
        self.sim.unlink("leaf1", port)
        self.daemon.refresh()
        (finding,) = self.flapping()
        self.assertIn(f"leaf1[{port}]", finding["where"])
        self.assertEqual(finding["severity"], "error")
        self.assertIn("--release", finding["hint"])
        generation = self.generation()
        self.sim.relink("leaf1", port)
        self.sweep()  # nothing is published, and it is held for longer
        self.assertEqual(self.generation(), generation)
        what = r"^it came or went (\d+) times since (\S+Z); suppressed until (\S+Z)$"
        times, since, until = zip(*(re.match(what, f["what"]).groups() for f in (finding, *self.flapping())))
        self.assertEqual(times, ("3", "4"))
        self.assertEqual(since[0], since[1])
        self.assertLess(since[0], until[0])
        self.assertLess(until[0], until[1])
        self.assertIn("flapping", self.daemon.ctl("check").stdout)
        self.assertEqual(self.daemon.ctl("refresh", "--release").returncode, 0)
        self.assertEqual(self.flapping(), [])

    def test_it_can_be_switched_off(self):
        self.start(flap_count=0)
        self.flap(self.sim.cable("leaf1", "node0002"), 3)
        self.assertEqual(self.states()["node0002"], ("up", "subnet"))
        self.assertEqual(self.daemon.status()["flapping"], 0)


if __name__ == "__main__":
    unittest.main()
