"""What a sweep does not see any more keeps its place for a while, and what flaps is suppressed."""
import json
import os
import re
import shutil
import sqlite3
import unittest

import lab
import sim
from site_case import Case, kinds, moment

HOST = "node0002"


class Kept(Case):
    """What each case here does to a host with one port, and to the second port of a host."""

    def told_missing(self):
        """What the lists say is missing: hosts, switches, and the ends of cables."""
        return ({device["host"] for device in self.site.ctl_json("devices") if device["missing"]},
                {switch["name"] for switch in self.site.ctl_json("switches") if switch["missing"]},
                {tuple(sorted((link["a"], link["b"]))) for link in self.site.ctl_json("links") if link["missing"]})

    def back_to(self, backup):
        """The store as it was at the backup."""
        self.site.stop()
        for suffix in ("-wal", "-shm"):
            if os.path.exists(self.site.store + suffix):
                os.unlink(self.site.store + suffix)
        shutil.copy(backup, self.site.store)
        self.site.start()
        self.site.refresh()

    def backup(self):
        self.site.stop()
        backup = os.path.join(self.site.dir, "backup.db")
        shutil.copy(self.site.store, backup)
        self.site.start()
        return backup


class Missing(Kept):
    def test_a_host_that_goes_and_comes_back_moves_nobody(self):
        self.start()
        places, before = self.places(), self.site.ctl_json("cost", "node0001", "node0003")
        port = self.pull("leaf1", HOST)
        self.assertEqual(self.places(), places)
        self.assertEqual(self.states()[HOST], ("down", "missing"))
        self.assertEqual([state for host, state in self.states().items() if host != HOST], [("up", "subnet")] * 5)
        self.assertEqual([(c["kind"], c["what"]) for c in self.last()], [("host-missing", f"{HOST} HCA-1")])
        self.assertEqual(self.site.status()["missing"], 1)
        self.assertEqual(self.site.ctl_json("cost", "node0001", "node0003"), before)
        self.assertEqual(self.told_missing(), ({HOST}, set(), {("leaf1", f"{HOST}:HCA-1")}))
        generation = self.generation()
        self.site.refresh()  # it is missing still: nothing is new
        self.assertEqual(self.generation(), generation)
        self.plug("leaf1", port)
        self.assertEqual(self.places(), places)
        self.assertEqual(self.states()[HOST], ("up", "subnet"))
        self.assertIn("host-back", kinds(self.last()))
        self.assertFalse({"host-added", "host-lost", "index", "link-added"} & set(kinds(self.last())))
        self.assertEqual(self.site.status()["missing"], 0)

    def test_what_is_missing_for_too_long_is_lost_without_a_sweep(self):
        """Also where the daemon was killed between the two."""
        for killed in (False, True):
            with self.subTest(killed=killed):
                self.start(retain_seconds=10)
                self.pull("leaf1", HOST)
                gone = self.last()[0]["time"]
                self.site.advance(5)
                self.pull("leaf2", "node0003")
                if killed:
                    self.again()
                sweep = self.site.status()["last_sweep"]
                self.site.advance(4.9)
                self.assertIn(HOST, self.devices())
                self.site.advance(.1)
                self.assertEqual(set(self.devices()), {"node0001", "node0003", "node0004", "node0005", "node0006"})
                self.assertAlmostEqual(moment(self.last()[0]["time"]) - moment(gone), 10, delta=.05)
                self.site.advance(5)
                self.assertEqual(set(self.devices()), {"node0001", "node0004", "node0005", "node0006"})
                if not killed:
                    self.assertEqual(self.site.status()["last_sweep"], sweep)
                self.assertEqual(self.site.status()["missing"], 0)
                history = self.site.ctl_json("history", HOST)
                self.assertEqual([c["kind"] for c in history if c["kind"].startswith("host")],
                                 ["host-added", "host-missing", "host-lost"])

    def test_when_it_was_last_seen(self):
        """By the last sweep that saw it, not by the first that did not."""
        def last(kind):
            return next(c for c in self.last() if c["kind"] == kind)

        def sweep():
            self.site.advance(1)
            self.site.refresh()
            sweeps.append(self.site.status()["last_sweep"])

        def pull():
            self.site.pull("leaf1", port)
            sweep()

        self.start(flap_count=0)
        sweeps = [self.site.status()["last_sweep"]]
        port = self.site.cable("leaf1", HOST)
        pull()
        gone = last("host-missing")
        self.assertEqual((gone["first_seen"], gone["last_seen"]), (sweeps[1], sweeps[0]))
        sweep()
        self.again()  # it stands in the store
        self.site.plug("leaf1", port)
        sweep()
        back = last("host-back")
        self.assertEqual((back["first_seen"], back["last_seen"]), (sweeps[-1], sweeps[0]))
        seen = sweeps[-1]
        pull()
        sweep()
        self.site.guid(HOST, 0x990002)
        self.site.plug("leaf1", port)
        sweep()
        replaced = last("hca-replaced")
        self.assertEqual((replaced["first_seen"], replaced["last_seen"]), (sweeps[-1], seen))
        seen = sweeps[-1]
        pull()
        sweep()
        self.site.advance(1)
        self.assertEqual(self.site.ctl("forget", HOST).returncode, 0)
        self.site.idle()
        self.assertNotIn(HOST, self.devices())
        lost = last("host-lost")
        self.assertEqual(lost["last_seen"], seen)
        self.assertGreater(lost["first_seen"], sweeps[-1])
        self.site.plug("leaf1", port)
        sweep()
        back = last("host-back")
        self.assertEqual((back["first_seen"], back["last_seen"]), (sweeps[-1], seen))
        self.assertIn(f"last seen {seen[:19]}Z", back["why"])

    def test_forget_retires_at_once(self):
        self.start()
        self.pull("leaf1", HOST)
        done = self.site.ctl("forget", "node0001")
        self.assertEqual(done.returncode, 1)
        self.assertIn("node0001 is present", done.stderr)
        self.assertEqual(self.site.ctl("forget", "node9999").returncode, 1)
        self.assertEqual(self.site.ctl("forget", HOST).returncode, 0)
        self.site.idle()
        self.assertNotIn(HOST, self.devices())
        lost = next(change for change in self.last() if change["kind"] == "host-lost")
        self.assertIn("was missing", lost["why"])
        self.assertEqual(self.devices()["node0003"]["index"], 1)

    def test_without_keeping_it_is_lost_at_once(self):
        self.start(retain_seconds=0)
        self.pull("leaf1", HOST)
        self.assertNotIn(HOST, self.devices())
        self.assertIn("host-lost", kinds(self.last()))

    def test_a_leaf_that_restarts_takes_nobody_along(self):
        self.start()
        places = self.places()
        self.site.pull("leaf2")
        self.site.refresh()
        self.assertEqual(self.places(), places)
        self.assertEqual(kinds(self.last()), ["host-missing", "host-missing", "switch-missing"])
        self.assertEqual([self.states()[host] for host in ("node0003", "node0004")], [("down", "missing")] * 2)
        self.assertEqual(self.told_missing(),
                         ({"node0003", "node0004"}, {"leaf2"}, {("leaf2", "node0003:HCA-1"), ("leaf2", "node0004:HCA-1"),
                                                                ("leaf2", "spine1"), ("leaf2", "spine2")}))
        self.assertRegex(self.site.ctl("switches").stdout, r"(?m)^\S+ +ib0 +leaf2 .* yes +")
        self.assertRegex(self.site.ctl("switches").stdout, r"(?m)^\S+ +ib0 +leaf1 .* no +")
        self.assertEqual(self.site.ctl("links").stdout.count(" yes "), 4)
        distance = self.site.ctl_json("cost", "node0001", "node0005")
        self.plug("leaf2")
        self.assertEqual(self.places(), places)
        self.assertEqual(set(self.states().values()), {("up", "subnet")})
        self.assertEqual(self.site.ctl_json("cost", "node0001", "node0005"), distance)

    def test_forget_one_of_two_names_that_begin_alike(self):
        self.start(start=False)
        self.site.rename("node0001", "node1 HCA-1")
        self.site.rename("node0002", "node10 HCA-1")
        self.site.start()
        self.pull("leaf1", "node0001")
        self.pull("leaf1", "node0002")
        self.assertEqual(self.site.ctl("forget", "node1").returncode, 0)
        self.site.idle()
        self.assertNotIn("node1", self.devices())
        self.assertIn("node10", self.devices())

    def test_forget_a_leaf(self):
        self.start()
        self.site.pull("leaf2")
        self.site.refresh()
        self.assertEqual(self.site.status()["missing"], 2)
        done = self.site.ctl("forget", "leaf1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("forget: leaf1 is a switch that the last sweep saw", done.stderr)
        done = self.site.ctl("forget", "leaf2")
        self.assertEqual((done.returncode, done.stdout), (0, "leaf2 is forgotten: its place is not kept any more\n"), done)
        self.site.idle()
        self.assertEqual(self.site.status()["missing"], 0)
        self.assertEqual([(c["kind"], c["what"]) for c in self.last() if c["kind"] != "index"],
                         [("host-lost", "node0003"), ("host-lost", "node0004"), ("switch-lost", "leaf2")])

    def test_a_spine_is_lost_at_once(self):
        self.start()
        places = self.places()
        self.site.pull("spine1")
        self.site.refresh()
        self.assertIn("switch-lost", kinds(self.last()))
        self.assertEqual({h: p[0] for h, p in self.places().items()}, {h: p[0] for h, p in places.items()})

    def test_another_hca_in_its_place_ends_it(self):
        self.start()
        places = self.places()
        port = self.pull("leaf1", HOST)
        self.site.guid(HOST, 0x77aa00)
        self.plug("leaf1", port)
        self.assertEqual(self.places(), places)
        self.assertIn("hca-replaced", kinds(self.last()))
        self.assertEqual(self.site.status()["missing"], 0)


class Ports(Kept):
    """Of a host with two ports, on leaf1 and on leaf2, the cable in the second is pulled."""
    second_ports, rows = ((HOST, "node0003"),), 0

    def start(self, *args, **changes):
        site = super().start(*args, **changes)
        self.port = site.cable("leaf2", HOST)
        return site

    def devices(self):
        return {(device["host"], device["port"]): device for device in self.site.ctl_json("devices")}

    def pull(self, switch="leaf2", other=HOST):
        return super().pull(switch, other)

    def test_one_that_goes_and_comes_back_moves_nobody(self):
        self.start()
        places, cost = self.places(), self.site.ctl_json("cost", "node0001", f"{HOST}:HCA-1:2")
        self.assertEqual([places[HOST, n][0] for n in (1, 2)], [1, 2])
        self.pull()
        self.assertEqual(self.places(), places)
        self.assertEqual({key for key, state in self.states().items() if state == ("down", "missing")}, {(HOST, 2)})
        self.assertEqual(self.states()[HOST, 1], ("up", "subnet"))
        what = f"leaf2[{self.port}] - {HOST} HCA-1[2]"
        self.assertEqual([(c["kind"], c["what"], c["after"]) for c in self.last()], [("port-missing", what, "missing")])
        self.assertEqual(self.site.status()["missing"], 1)
        now = self.site.ctl("cost", "node0001", f"{HOST}:HCA-1:2", "--json")
        self.assertEqual((now.returncode, json.loads(now.stdout)), (1, dict(cost, b_missing=True)))
        self.assertEqual(self.told_missing(), ({HOST}, set(), {("leaf2", f"{HOST}:HCA-1")}))
        self.assertIn(f"{HOST} HCA-1[2]", [finding["where"] for finding in self.findings("missing")])
        generation = self.generation()
        self.site.refresh()
        self.assertEqual(self.generation(), generation)
        self.plug("leaf2", self.port)
        self.assertEqual(self.places(), places)
        self.assertEqual(set(self.states().values()), {("up", "subnet")})
        self.assertEqual([(c["kind"], c["what"]) for c in self.last()], [("port-back", what)])
        self.assertEqual(self.site.status()["missing"], 0)

    def test_after_its_time_it_is_lost(self):
        self.start(retain_seconds=2)
        self.pull()
        sweep = self.site.status()["last_sweep"]
        self.site.advance(1.9)
        self.assertIn((HOST, 2), self.devices())
        self.site.advance(.1)
        self.assertNotIn((HOST, 2), self.devices())
        self.assertIn((HOST, 1), self.devices())
        self.assertEqual(self.site.status()["last_sweep"], sweep)
        lost = next(change for change in self.last() if change["kind"] == "device-lost")
        self.assertIn("was missing", lost["why"])
        history = [c["kind"] for c in self.site.ctl_json("history", HOST)]
        self.assertEqual([kind for kind in history if kind.startswith(("port", "device", "host"))],
                         ["host-added", "port-missing", "device-lost"])
        generation = self.generation()
        self.site.refresh()  # that is what is seen
        self.assertEqual(self.generation(), generation)

    def test_forget_retires_it_at_once(self):
        self.start()
        self.pull()
        self.assertEqual(self.site.ctl("forget", HOST).returncode, 0)
        self.site.idle()
        self.assertNotIn((HOST, 2), self.devices())
        self.assertIn((HOST, 1), self.devices())

    def test_each_port_counts_for_itself(self):
        self.start()
        places = self.places()
        self.pull()
        self.site.advance(1)
        first = self.pull("leaf1")  # now the whole host is missing
        self.assertEqual(kinds(self.last()), ["host-missing"])
        self.assertEqual(self.site.status()["missing"], 1)
        with sqlite3.connect(f"file:{self.site.store}?mode=ro", uri=True) as db:
            since = db.execute("SELECT num, since FROM missing ORDER BY num").fetchall()
        db.close()
        self.assertEqual([num for num, _ in since], [1, 2])
        self.assertGreater(since[0][1], since[1][1])
        self.assertEqual(self.places(), places)
        self.plug("leaf1", first)
        self.assertEqual(kinds(self.last()), ["host-back", "port-missing"])
        self.assertEqual(self.places(), places)
        self.assertEqual((self.states()[HOST, 1], self.states()[HOST, 2]), (("up", "subnet"), ("down", "missing")))

    def test_at_another_switch_port_it_has_moved(self):
        self.start()
        indices = {key: place[0] for key, place in self.places().items()}
        self.pull()
        port = self.pull("leaf3", "node0005")
        self.site.link("leaf3", port, HOST, 2)
        self.site.refresh()
        moved = self.devices()[HOST, 2]
        self.assertEqual((moved["switch"], moved["switch_port"], moved["seen"]), ("leaf3", port, "subnet"))
        self.assertIn("host-moved", kinds(self.last()))
        self.assertNotIn("port-back", kinds(self.last()))
        other = self.devices()["node0005", 1]  # its place is taken: it is kept where this one was
        self.assertEqual((other["switch"], other["switch_port"], other["seen"]), ("leaf2", self.port, "missing"))
        self.assertEqual({key: place[0] for key, place in self.places().items()}, indices)

    def test_whose_place_is_taken_is_kept_elsewhere(self):
        self.start()
        self.pull()
        indices = {key: place[0] for key, place in self.places().items()}
        port = self.site.cable("leaf3", "node0005")
        self.site.pull("leaf3", port)
        self.site.link("leaf2", self.port, "node0005", 1)
        self.site.refresh()
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
        self.again()
        self.assertEqual(self.places(), places)
        self.assertEqual(self.states()[HOST, 2], ("down", "missing"))
        self.site.stop()
        self.site.configure({"changes": {"retain_seconds": 10}})
        self.site.start()
        self.assertIn((HOST, 2), self.devices())
        self.site.advance(10)
        self.assertNotIn((HOST, 2), self.devices())

    def test_a_leaf_that_restarts(self):
        self.start()
        places = self.places()
        self.site.pull("leaf2")
        self.site.refresh()
        self.assertEqual(kinds(self.last()), ["host-missing", "port-missing", "switch-missing"])
        self.assertEqual(self.places(), places)
        self.plug("leaf2")
        self.assertEqual(kinds(self.last()), ["host-back", "port-back", "switch-back"])
        self.assertEqual(self.places(), places)

    def test_an_older_store(self):
        """Written before the cable went, and put back after it was retired: it is missing from now on."""
        self.start()
        backup = self.backup()
        self.pull()
        self.site.ctl("forget", HOST)
        self.site.idle()
        self.assertNotIn((HOST, 2), self.devices())
        self.back_to(backup)
        self.assertEqual(self.states()[HOST, 2], ("down", "missing"))

    def test_a_cable_that_flaps_keeps_its_place(self):
        self.start(suppress=3, suppress_max=3)
        places = self.places()
        self.pull()
        self.plug("leaf2", self.port)
        self.pull()
        self.assertEqual(kinds(self.last()), ["flapping", "port-missing"])
        self.plug("leaf2", self.port)  # it is there, and taken as down
        self.assertEqual((self.places(), self.states()[HOST, 2]), (places, ("down", "missing")))
        self.site.advance(4)
        self.assertEqual(self.states()[HOST, 2], ("up", "subnet"))
        self.assertEqual(kinds(self.last()), ["port-back"])


class Sweeps(Kept):
    """Nobody is retired while nobody knows who is missing."""

    def test_the_own_cable_is_out(self):
        self.start(retain_seconds=1)
        self.site.home("node0006")
        self.pull("leaf1", HOST)
        own = self.site.cable("leaf3", "node0006")
        self.site.pull("leaf3", own)  # where the sweeps are made
        with self.assertRaises(lab.LabError):
            self.site.refresh()
        generation, devices = self.generation(), set(self.devices())
        self.assertTrue(self.site.status()["stale"])
        self.site.advance(2)  # its time is over, which shows only when sweeps are good again
        self.assertEqual((self.generation(), set(self.devices())), (generation, devices))
        self.plug("leaf3", own)
        self.assertNotIn(HOST, self.devices())

    def test_a_restart_counts_on(self):
        self.start()
        self.pull("leaf1", HOST)
        places = self.places()
        self.site.stop()
        self.site.advance(5)
        self.site.start()
        self.assertEqual(self.places(), places)
        self.assertEqual(self.states()[HOST], ("down", "missing"))
        self.site.stop()
        self.site.configure({"changes": {"retain_seconds": 10}})
        self.site.start()
        self.site.advance(4.9)
        self.assertIn(HOST, self.devices())
        self.site.advance(.1)
        self.assertNotIn(HOST, self.devices())

    def test_no_subnet_manager(self):
        """Ports that are back but not active are no reason to lose anybody."""
        self.start()
        port = self.pull("leaf1", HOST)
        self.site.plug("leaf1", port)
        self.site.state("leaf1", port, sim.INIT)  # nobody has brought the port up
        self.site.refresh()
        self.assertEqual(self.states()[HOST], ("down", "subnet"))
        self.assertEqual(len(self.devices()), 6)
        self.site.state("leaf1", port, sim.ACTIVE)
        self.site.refresh()
        self.assertEqual(self.states()[HOST], ("up", "subnet"))

    def test_an_operator_takes_it_as_it_is(self):
        self.start()
        self.pull("leaf1", HOST)
        self.site.refresh(accept_partial=True)
        self.assertNotIn(HOST, self.devices())

    def test_an_old_store_while_nodes_moved_on(self):
        """Generations never go back, and who is where is what is seen; who is not seen is missing from now on."""
        self.start()
        backup = self.backup()
        port = self.pull("leaf1", HOST)  # meanwhile node0002 went, and node0003 came to its place
        self.site.ctl("forget", HOST)
        self.site.pull("leaf2", self.site.cable("leaf2", "node0003"))
        self.site.link("leaf1", port, "node0003", 1)
        self.site.refresh()
        moved = self.devices()["node0003"]
        self.assertEqual((moved["switch"], moved["switch_port"]), ("leaf1", port))
        generation = self.generation()
        self.back_to(backup)
        self.assertGreater(self.generation(), generation)
        devices = self.devices()
        self.assertEqual(devices["node0003"]["switch"], "leaf1")
        self.assertEqual((devices[HOST]["seen"], devices[HOST]["switch"]), ("missing", "leaf2"))  # its port is another's now
        self.assertEqual(len(devices), 6)


class Flapping(Case):
    rows = 0

    def flap(self, port, n):
        """So many times out and in again."""
        for _ in range(n):
            self.site.pull("leaf1", port)
            self.site.refresh()
            self.plug("leaf1", port)

    def test_a_cable_that_flaps_is_held_down_and_released(self):
        self.start(suppress=3, suppress_max=3)
        places = self.places()
        port = self.site.cable("leaf1", HOST)
        self.flap(port, 1)
        self.assertEqual(self.states()[HOST], ("up", "subnet"))
        self.site.pull("leaf1", port)
        self.site.refresh()
        self.assertEqual(kinds(self.last()), ["flapping", "host-missing"])
        flapping = next(c for c in self.last() if c["kind"] == "flapping")
        self.assertEqual(flapping["what"], f"leaf1[{port}] - {HOST} HCA-1[1]")
        self.assertIn("3 changes within 60 s", flapping["before"])
        self.assertEqual(flapping["after"], "suppressed for at least 3 s")
        self.assertEqual(self.site.status()["flapping"], 1)
        generation = self.generation()
        self.plug("leaf1", port)  # it is there, and taken as down
        self.flap(port, 2)
        self.assertEqual(self.generation(), generation)
        self.assertEqual(self.states()[HOST], ("down", "missing"))
        self.site.advance(2.9)
        self.assertEqual(self.generation(), generation)
        self.site.advance(.2)
        self.assertEqual(self.states()[HOST], ("up", "subnet"))
        self.assertEqual(self.generation(), generation + 1)
        self.assertIn("host-back", kinds(self.last()))
        self.assertEqual(self.places(), places)
        self.assertEqual(self.site.status()["flapping"], 0)

    def test_a_cable_between_switches(self):
        self.start(suppress=600)
        port = self.site.cable("leaf1", "spine1")
        links = len(self.site.ctl_json("links"))
        self.flap(port, 1)
        self.assertEqual(len(self.site.ctl_json("links")), links)
        self.site.pull("leaf1", port)
        self.site.refresh()
        self.assertEqual(kinds(self.last()).count("flapping"), 1)  # once, though it has two ends
        generation = self.generation()
        self.plug("leaf1", port)
        self.flap(port, 1)
        self.assertEqual(self.generation(), generation)
        self.assertEqual(len(self.site.ctl_json("links")), links - 1)
        self.site.stop()
        self.site.start()  # a restart forgets it
        self.assertEqual(len(self.site.ctl_json("links")), links)

    def test_check_says_what_is_held(self):
        self.start(suppress=60)
        port = self.site.cable("leaf1", "spine1")
        self.flap(port, 1)
        self.assertEqual(self.findings("flapping"), [])
        self.site.pull("leaf1", port)
        self.site.refresh()
        (finding,) = self.findings("flapping")
        self.assertIn(f"leaf1[{port}]", finding["where"])
        self.assertEqual(finding["severity"], "error")
        self.assertIn("--release", finding["hint"])
        generation = self.generation()
        self.site.advance(2)
        self.plug("leaf1", port)  # nothing is published, and it is held for longer
        self.assertEqual(self.generation(), generation)
        what = r"^came or went (\d+) times since (\S+Z); suppressed until (\S+Z)$"
        times, since, until = zip(*(re.match(what, f["what"]).groups() for f in (finding, *self.findings("flapping"))))
        self.assertEqual(times, ("3", "4"))
        self.assertEqual(since[0], since[1])
        self.assertLess(since[0], until[0])
        self.assertLess(until[0], until[1])
        self.assertIn("flapping", self.site.ctl("check").stdout)
        self.assertEqual(self.site.ctl("refresh", "--release").returncode, 0)
        self.assertEqual(self.findings("flapping"), [])


if __name__ == "__main__":
    unittest.main()
