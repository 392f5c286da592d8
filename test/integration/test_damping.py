"""What comes and goes too often is suppressed: told, listed, and released when an operator says so."""
import json
import os
import re
import unittest

import lab

FABRIC = "fattree2:3,2,2"


class Case(unittest.TestCase):
    def start(self, fabric=FABRIC, **changes):
        room = re.sub(r"^Switch +\d+ ", "Switch 12 ", lab.fabric(fabric), flags=re.MULTILINE)  # ports without a cable
        self.sim = lab.Ibsim(room)
        self.sim.sweep()
        self.daemon = lab.Fabricd(self.sim, {"changes": dict({"light_sweep": 0, "suppress": 600}, **changes)})
        return self.daemon

    def refresh(self):
        """One run of OpenSM, then one of ours."""
        self.sim.sweep()
        return self.daemon.ctl_json("refresh")

    def restart(self, node, times=1):
        """Off and on again, each swept."""
        for _ in range(times):
            self.sim.unlink(node)
            self.daemon.refresh()
            self.sim.relink(node)
            self.refresh()

    def told(self, generation=None):
        """Kind and what of the changes since, or of the last generation."""
        args = [] if generation is None else [str(generation)]
        return [(c["kind"], c["what"]) for c in self.daemon.ctl_json("diff", *args)["changes"]]

    def flapping(self):
        return [c["what"] for c in self.daemon.ctl_json("history") if c["kind"] == "flapping"]

    def seen(self):
        return {d["host"]: (d["state"], d["seen"]) for d in self.daemon.ctl_json("devices")}

    def switches(self):
        return {s["name"] for s in self.daemon.ctl_json("switches")}

    def generation(self):
        return self.daemon.status()["generation"]


class Telling(Case):
    def test_a_telling_that_is_the_only_change(self):
        """A host is moved, pulled, forgotten, and plugged in again: the third change, and it is held."""
        hooked = os.path.join(lab.tmpdir(), "hooked")
        script = os.path.join(lab.tmpdir(), "hook.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"import sys\nline = sys.stdin.read().strip() + '\\n'\nopen({hooked!r}, 'a').write(line)\n")
        self.start(hook=f"/usr/bin/python3 {script}")
        self.sim.unlink("leaf2", self.sim.cable("leaf2", "node0003"))
        self.sim.link("leaf3", 9, "node0003", 1)
        self.refresh()
        self.sim.unlink("leaf3", 9)
        self.daemon.refresh()
        self.daemon.ctl("forget", "node0003")
        lab.wait_for(lambda: "node0003" not in self.seen(), what="node0003 to be retired")
        generation, planes = self.generation(), self.daemon.ctl_json("planes")
        watch = self.daemon.watch()
        self.addCleanup(watch.stop)
        watch.wait("^watching$")
        self.sim.link("leaf3", 9, "node0003", 1)
        answer = self.refresh()
        self.assertEqual((answer["changed"], answer["suppressed"], answer["suppressed_switches"]), (True, 1, 0))
        self.assertEqual([(c["kind"], c["what"], c["before"], c["after"]) for c in answer["changes"]],
                         [("flapping", "leaf3[9] - node0003 HCA-1[1]", "3 changes within 60 s",
                           "suppressed for at least 600 s")])
        self.assertEqual(self.generation(), generation + 1)
        self.assertEqual(self.daemon.ctl_json("planes"), planes)  # nobody is disturbed by it
        self.assertNotIn("node0003", self.seen())
        self.assertIn("flapping", [c["kind"] for c in self.daemon.ctl_json("history", "node0003")])
        self.assertRegex(self.daemon.ctl("metrics").stdout, r'(?m)^fabricd_changes_total\{kind="flapping"\} 1$')
        def last():
            with open(hooked, encoding="utf-8") as file:
                return json.loads(file.read().splitlines()[-1])
        lab.wait_for(lambda: last()["generation"] == generation + 1, what="the hook to be told")
        self.assertEqual((last()["planes"], [c["kind"] for c in last()["changes"]]), ([], ["flapping"]))
        # it is told once, tools hear of the next generation only, and a restart of the daemon changes nothing of it
        self.assertEqual(self.refresh()["changed"], False)
        self.assertEqual(self.daemon.ctl("refresh", "--release").returncode, 0)
        watch.wait("UPDATED")
        events = {re.search(r"generation (\d+)", line).group(1) for line in watch.lines() if "PMIX_" in line}
        self.assertEqual(events, {str(generation + 2)})
        self.daemon.stop()
        self.daemon.start()
        self.assertEqual(self.daemon.ctl_json("diff", str(generation), str(generation + 1))["changes"][0]["kind"],
                         "flapping")

    def test_it_is_said_where_somebody_asks(self):
        self.start()
        port = self.sim.cable("leaf1", "spine1")
        for n in range(3):
            (self.sim.unlink if n % 2 == 0 else self.sim.relink)("leaf1", port)
            self.sim.sweep()
            self.daemon.refresh()
        self.sim.relink("leaf1", port)
        self.restart("spine2")
        self.sim.unlink("spine2")
        self.daemon.refresh()
        said = "1 cable and 1 switch are suppressed: see fabricctl check\n"
        verified = self.daemon.ctl("verify")  # the cable is seen, and served as pulled
        self.assertEqual((verified.returncode, verified.stdout.splitlines(True)[-1]), (1, said), verified)
        self.assertEqual(self.daemon.ctl("refresh").stdout.splitlines(True)[-1], said)
        told = json.loads(self.daemon.ctl("--format", "json", "verify").stdout)
        self.assertEqual((told["equal"], told["suppressed"], told["suppressed_switches"]), (False, 1, 1))
        self.assertEqual([(c["kind"], c["what"], c["before"], c["after"]) for c in told["changes"]],
                         [("host-missing", "node0001 HCA-1", "missing", "there"),  # leaf1 has no other cable up
                          ("host-missing", "node0002 HCA-1", "missing", "there"),
                          ("switch-missing", "leaf1", "missing", "there"),
                          ("switch-missing", "spine2", "missing", "not seen"),
                          ("flapping", f"leaf1[{port}] - spine1[1]", "down", "there")])
        self.assertEqual(self.daemon.status()["flapping"], 2)
        self.assertRegex(self.daemon.ctl("metrics").stdout,
                         r"(?m)^fabricd_suppressed_cables 1\n(#.*\n)*fabricd_suppressed_switches 1$")
        found = [f["where"] for f in json.loads(self.daemon.ctl("--format", "json", "check").stdout)["findings"]
                 if f["kind"] == "flapping"]
        self.assertEqual(sorted(found), sorted([f"leaf1[{port}] - spine1[1]", "spine2"]))


class Switches(Case):
    def test_a_spine_that_restarts_twice_is_one_telling(self):
        self.start()
        generation = self.generation()
        self.restart("spine2")
        self.assertEqual(self.daemon.status()["flapping"], 0)
        self.assertIn("spine2", self.switches())
        self.restart("spine2")
        self.assertEqual(self.flapping(), ["spine2"])
        self.assertEqual(self.told(generation)[-1], ("flapping", "spine2"))
        self.assertNotIn("spine2", self.switches())
        self.assertEqual(self.daemon.status()["flapping"], 1)
        last = self.generation()
        self.restart("spine2", 2)
        self.assertEqual(self.generation(), last)

    def test_what_is_behind_a_switch_goes_along(self):
        self.start()
        self.sim.unlink("leaf1", self.sim.cable("leaf1", "spine1"))
        self.daemon.refresh()
        for n in range(3):
            (self.sim.unlink if n % 2 == 0 else self.sim.relink)("spine2")  # and leaf1 with its hosts, behind it
            self.sim.sweep()
            self.daemon.refresh()
        self.assertEqual(self.flapping(), ["spine2"])
        places = [(d["host"], d["index"], d["plane"]) for d in self.daemon.ctl_json("devices")]
        generation = self.generation()
        self.sim.relink("spine2")  # held: leaf1 is as far away as if it were off
        self.refresh()
        self.assertEqual(self.generation(), generation)
        self.assertEqual(self.seen()["node0001"], ("down", "missing"))
        self.refresh_released()
        self.assertEqual(set(self.seen().values()), {("up", "subnet")})
        self.assertEqual([(d["host"], d["index"], d["plane"]) for d in self.daemon.ctl_json("devices")], places)

    def refresh_released(self):
        self.sim.sweep()
        self.assertEqual(self.daemon.ctl("refresh", "--release").returncode, 0)

    def test_a_leaf_keeps_its_hosts(self):
        """A leaf that is held is missing with its hosts, as one that is off: nobody becomes a plane of its own."""
        self.start(suppress=2, suppress_max=2)
        devices = self.daemon.ctl_json("devices")
        self.restart("leaf1")
        self.sim.unlink("leaf1")
        self.daemon.refresh()
        self.assertEqual(self.flapping(), ["leaf1"])
        self.sim.relink("leaf1")
        self.sim.sweep()
        self.daemon.refresh()
        self.assertEqual(len(self.daemon.ctl_json("planes")), 1)
        lab.wait_for(lambda: self.daemon.status()["flapping"] == 0, 30, "the leaf to be released")
        lab.wait_for(lambda: set(self.seen().values()) == {("up", "subnet")}, 30, "its hosts to be back")
        self.assertEqual(self.daemon.ctl_json("devices"), devices)
        self.assertIn(("switch-back", "leaf1"), self.told())
        self.assertEqual(len(self.daemon.ctl_json("planes")), 1)

    def test_cables_moved_and_a_switch_replaced_by_hand_do_not_flap(self):
        self.start()
        near, far = self.sim.cable("leaf2", "spine2"), self.sim.cable("spine2", "leaf2")
        self.sim.unlink("leaf2", near)
        self.daemon.refresh()
        self.sim.link("leaf2", near, "spine2", 9)  # elsewhere, and back again
        self.refresh()
        self.sim.unlink("leaf2", near)
        self.sim.link("leaf2", near, "spine2", far)
        self.refresh()
        self.sim.unlink("spine2")
        self.daemon.refresh()
        self.sim.guid("spine2", 0x9A0002)
        self.sim.relink("spine2")
        self.refresh()
        self.assertEqual(self.flapping(), [])
        self.assertEqual(self.daemon.status()["flapping"], 0)


class Hands(Case):
    def hold_host(self, host="node0002", leaf="leaf1"):
        port = self.sim.cable(leaf, host)
        for n in range(3):
            (self.sim.unlink if n % 2 == 0 else self.sim.relink)(leaf, port)
            self.sim.sweep()
            self.daemon.refresh()
        self.sim.relink(leaf, port)
        self.refresh()
        self.assertEqual(self.seen()[host], ("down", "missing"))
        return port

    def test_release_of_everything(self):
        self.start()
        self.hold_host()
        self.assertFalse(self.daemon.ctl_json("refresh")["changed"])
        done = self.daemon.ctl("refresh", "--release")
        self.assertIn("1 cable or switch is released", done.stderr)
        self.assertIn("host-back", done.stdout)
        self.assertNotIn("suppressed", done.stdout)
        self.assertEqual(self.seen()["node0002"], ("up", "subnet"))
        self.assertIn("nothing was suppressed", self.daemon.ctl("refresh", "--release").stderr)
        # it begins anew: three more changes until it is held again
        port = self.sim.cable("leaf1", "node0002")
        self.sim.unlink("leaf1", port)
        self.refresh()
        self.assertEqual(self.daemon.status()["flapping"], 0)

    def test_release_of_one(self):
        self.start()
        self.hold_host()
        self.restart("spine2", 2)
        self.assertEqual(sorted(self.flapping()), ["leaf1[2] - node0002 HCA-1[1]", "spine2"])
        refused = self.daemon.ctl("refresh", "--release", "--switch", "leaf99")
        self.assertEqual(refused.returncode, 1, refused)
        self.assertEqual(self.daemon.status()["flapping"], 2)
        told = self.daemon.ctl_json("refresh", "--release", "--switch", "spine2")  # it is no switch of the fabric now
        self.assertEqual((told["suppressed"], told["suppressed_switches"]), (1, 0))
        self.assertIn("spine2", self.switches())
        self.assertEqual(self.seen()["node0002"], ("down", "missing"))
        self.daemon.ctl_json("refresh", "--release", "--no-wait", "--host", "node0002")
        lab.wait_for(lambda: self.seen()["node0002"] == ("up", "subnet"), what="the host to be released")
        self.assertEqual(self.daemon.status()["flapping"], 0)

    def test_a_sweep_that_is_taken_as_it_is(self):
        self.start()
        self.hold_host()
        self.assertTrue(self.daemon.refresh(accept_partial=True)["changed"])
        self.assertEqual((self.seen()["node0002"], self.daemon.status()["flapping"]), (("up", "subnet"), 0))
        self.assertFalse(self.daemon.refresh()["changed"])

    def test_only_who_may(self):
        self.start()
        self.hold_host()
        self.assertEqual(self.daemon.ctl("refresh", "--release", user="nobody").returncode, 1)
        self.assertEqual(self.daemon.status()["flapping"], 1)

    def test_announced_swaps_are_not_counted(self):
        self.start()
        for name in ("node0002", "spine2"):
            self.assertEqual(self.daemon.ctl("expect", name, "--replace").returncode, 0)
        port = self.sim.cable("leaf1", "node0002")
        for _ in range(3):
            self.sim.unlink("leaf1", port)
            self.sim.unlink("spine2")
            self.daemon.refresh()
            self.sim.relink("leaf1", port)
            self.sim.relink("spine2")
            self.refresh()
        self.assertEqual((self.flapping(), self.daemon.status()["flapping"]), ([], 0))
        self.assertEqual(self.seen()["node0002"], ("up", "subnet"))
        self.assertIn("spine2", self.switches())
        self.daemon.ctl("expect", "spine2", "--cancel")
        self.restart("spine2", 2)
        self.assertEqual(self.flapping(), ["spine2"])


if __name__ == "__main__":
    unittest.main()
