"""What comes and goes too often is suppressed: told, listed, and released when an operator says so."""
import json
import re
import unittest

from site_case import Case


class Damping(Case):
    rows = 0

    def start(self, *args, **changes):
        return super().start(*args, **dict({"suppress": 600}, **changes))

    def restart(self, node, times=1):
        """Off and on again, each swept."""
        for _ in range(times):
            self.site.pull(node)
            self.site.refresh()
            self.plug(node)

    def swing(self, node, port=0):
        """Out, in, and out again: the third change."""
        for hand in (self.site.pull, self.site.plug, self.site.pull):
            hand(node, port)
            self.site.refresh()

    def told(self, generation=None):
        """Kind and what of the changes since, or of the last generation."""
        args = [] if generation is None else [str(generation)]
        return [(c["kind"], c["what"]) for c in self.site.ctl_json("diff", *args)["changes"]]

    def flapping(self):
        return [c["what"] for c in self.history("flapping")]


class Telling(Damping):
    def test_a_telling_that_is_the_only_change(self):
        """A host is moved, pulled, forgotten, and plugged in again: the third change, and it is held."""
        hooked = []
        self.start(start=False, hook="/bin/true")
        self.site.programs(lambda program: hooked.append(json.loads(program.input)))
        self.site.start()
        self.site.pull("leaf2", self.site.cable("leaf2", "node0003"))
        self.site.link("leaf3", 9, "node0003", 1)
        self.site.refresh()
        self.site.pull("leaf3", 9)
        self.site.refresh()
        self.site.ctl("forget", "node0003")
        self.site.idle()
        self.assertNotIn("node0003", self.devices())
        generation, planes, said = self.generation(), self.site.ctl_json("planes"), len(self.site.journal())
        self.site.plug("leaf3", 9)
        answer = self.site.ctl_json("refresh")
        self.site.idle()
        self.assertEqual((answer["changed"], answer["suppressed"], answer["suppressed_switches"]), (True, 1, 0))
        self.assertEqual([(c["kind"], c["what"], c["before"], c["after"]) for c in answer["changes"]],
                         [("flapping", "leaf3[9] - node0003 HCA-1[1]", "3 changes within 60 s",
                           "suppressed for at least 600 s")])
        self.assertEqual(self.generation(), generation + 1)
        self.assertEqual(self.site.ctl_json("planes"), planes)  # nobody is disturbed by it
        self.assertNotIn("node0003", self.devices())
        self.assertIn("flapping", [c["kind"] for c in self.site.ctl_json("history", "node0003")])
        self.assertRegex(self.site.ctl("metrics").stdout, r'(?m)^fabricd_changes_total\{kind="flapping"\} 1$')
        last = hooked[-1]
        self.assertEqual((last["generation"], last["planes"], [c["kind"] for c in last["changes"]]), (generation + 1, [], ["flapping"]))
        # it is told once, tools hear of the next generation only, and a restart of the daemon changes nothing of it
        self.assertEqual(self.site.refresh()["changed"], False)
        self.assertEqual(self.site.ctl("refresh", "--release").returncode, 0)
        self.assertEqual(re.findall(r"event: (\w+) .*generation (\d+)", self.site.journal()[said:]),
                         [("PENDING", str(generation + 2)), ("UPDATED", str(generation + 2))])
        self.site.stop()
        self.site.start()
        self.assertEqual(self.site.ctl_json("diff", str(generation), str(generation + 1))["changes"][0]["kind"], "flapping")

    def test_it_is_said_where_somebody_asks(self):
        self.start()
        port = self.site.cable("leaf1", "spine1")
        self.swing("leaf1", port)
        self.site.plug("leaf1", port)
        self.restart("spine2")
        self.site.pull("spine2")
        self.site.refresh()
        said = "1 cable and 1 switch are suppressed: see fabricctl check\n"
        verified = self.site.ctl("verify")  # the cable is seen, and served as pulled
        self.assertEqual((verified.returncode, verified.stdout.splitlines(True)[-1]), (1, said), verified)
        self.assertEqual(self.site.ctl("refresh").stdout.splitlines(True)[-1], said)
        told = self.site.control("verify")
        self.assertEqual((told["equal"], told["suppressed"], told["suppressed_switches"]), (False, 1, 1))
        self.assertEqual([(c["kind"], c["what"], c["before"], c["after"]) for c in told["changes"]],
                         [("host-missing", "node0001 HCA-1", "missing", "there"),  # leaf1 has no other cable up
                          ("host-missing", "node0002 HCA-1", "missing", "there"),
                          ("switch-missing", "leaf1", "missing", "there"),
                          ("switch-missing", "spine2", "missing", "not seen"),
                          ("flapping", f"leaf1[{port}] - spine1[1]", "down", "there")])
        self.assertEqual(self.site.status()["flapping"], 2)
        self.assertRegex(self.site.ctl("metrics").stdout,
                         r"(?m)^fabricd_suppressed_cables 1\n(#.*\n)*fabricd_suppressed_switches 1$")
        self.assertEqual(sorted(finding["where"] for finding in self.findings("flapping")),
                         sorted([f"leaf1[{port}] - spine1[1]", "spine2"]))


class Switches(Damping):
    def test_a_spine_that_restarts_twice_is_one_telling(self):
        self.start()
        generation = self.generation()
        self.restart("spine2")
        self.assertEqual(self.site.status()["flapping"], 0)
        self.assertIn("spine2", self.switches())
        self.restart("spine2")
        self.assertEqual(self.flapping(), ["spine2"])
        self.assertEqual(self.told(generation)[-1], ("flapping", "spine2"))
        self.assertNotIn("spine2", self.switches())
        self.assertEqual(self.site.status()["flapping"], 1)
        last = self.generation()
        self.restart("spine2", 2)
        self.assertEqual(self.generation(), last)

    def test_what_is_behind_a_switch_goes_along(self):
        self.start()
        self.pull("leaf1", "spine1")
        self.swing("spine2")  # and leaf1 with its hosts, behind it
        self.assertEqual(self.flapping(), ["spine2"])
        places = [(d["host"], d["index"], d["plane"]) for d in self.site.ctl_json("devices")]
        generation = self.generation()
        self.plug("spine2")  # held: leaf1 is as far away as if it were off
        self.assertEqual(self.generation(), generation)
        self.assertEqual(self.states()["node0001"], ("down", "missing"))
        self.assertEqual(self.site.ctl("refresh", "--release").returncode, 0)
        self.assertEqual(set(self.states().values()), {("up", "subnet")})
        self.assertEqual([(d["host"], d["index"], d["plane"]) for d in self.site.ctl_json("devices")], places)

    def test_a_leaf_keeps_its_hosts(self):
        """A leaf that is held is missing with its hosts, as one that is off: nobody becomes a plane of its own."""
        self.start(suppress=2, suppress_max=2)
        devices = self.site.ctl_json("devices")
        self.restart("leaf1")
        self.site.pull("leaf1")
        self.site.refresh()
        self.assertEqual(self.flapping(), ["leaf1"])
        self.plug("leaf1")
        self.assertEqual(len(self.site.ctl_json("planes")), 1)
        self.site.advance(1.9)
        self.assertEqual(self.site.status()["flapping"], 1)
        self.site.advance(.2)
        self.assertEqual(self.site.status()["flapping"], 0)
        self.assertEqual(set(self.states().values()), {("up", "subnet")})
        self.assertEqual(self.site.ctl_json("devices"), devices)
        self.assertIn(("switch-back", "leaf1"), self.told())
        self.assertEqual(len(self.site.ctl_json("planes")), 1)

    def test_cables_moved_and_a_switch_replaced_by_hand_do_not_flap(self):
        self.start()
        near, far = self.site.cable("leaf2", "spine2"), self.site.cable("spine2", "leaf2")
        self.pull("leaf2", "spine2")
        self.site.link("leaf2", near, "spine2", 9)  # elsewhere, and back again
        self.site.refresh()
        self.site.pull("leaf2", near)
        self.site.link("leaf2", near, "spine2", far)
        self.site.refresh()
        self.site.pull("spine2")
        self.site.refresh()
        self.site.guid("spine2", 0x9A0002)
        self.plug("spine2")
        self.assertEqual(self.flapping(), [])
        self.assertEqual(self.site.status()["flapping"], 0)


class Hands(Damping):
    def hold_host(self):
        self.start()
        port = self.site.cable("leaf1", "node0002")
        self.swing("leaf1", port)
        self.plug("leaf1", port)
        self.assertEqual(self.states()["node0002"], ("down", "missing"))
        return port

    def test_release_of_everything(self):
        port = self.hold_host()
        self.assertFalse(self.site.ctl_json("refresh")["changed"])
        done = self.site.ctl("refresh", "--release")
        self.assertIn("1 cable or switch is released", done.stderr)
        self.assertIn("host-back", done.stdout)
        self.assertNotIn("suppressed", done.stdout)
        self.assertEqual(self.states()["node0002"], ("up", "subnet"))
        self.assertIn("nothing was suppressed", self.site.ctl("refresh", "--release").stderr)
        # it begins anew: three more changes until it is held again
        for hand, held in ((self.site.pull, 0), (self.site.plug, 0), (self.site.pull, 1)):
            hand("leaf1", port)
            self.site.refresh()
            self.assertEqual(self.site.status()["flapping"], held)

    def test_release_of_several(self):
        self.start()
        self.restart("spine1", 2)
        self.restart("spine2", 2)
        self.assertEqual((self.flapping(), self.site.status()["flapping"]), (["spine1", "spine2"], 2))
        self.assertIn("2 cables or switches are released", self.site.ctl("refresh", "--release").stderr)
        self.assertEqual((self.switches(), self.site.status()["flapping"]), ({"leaf1", "leaf2", "leaf3", "spine1", "spine2"}, 0))

    def test_release_of_one(self):
        self.hold_host()
        self.restart("spine2", 2)
        self.assertEqual(sorted(self.flapping()), ["leaf1[2] - node0002 HCA-1[1]", "spine2"])
        refused = self.site.ctl("refresh", "--release", "--switch", "leaf99")
        self.assertEqual(refused.returncode, 1, refused)
        self.assertEqual(self.site.status()["flapping"], 2)
        told = self.site.ctl_json("refresh", "--release", "--switch", "spine2")  # it is no switch of the fabric now
        self.assertEqual((told["suppressed"], told["suppressed_switches"]), (1, 0))
        self.assertIn("spine2", self.switches())
        self.assertEqual(self.states()["node0002"], ("down", "missing"))
        self.site.ctl_json("refresh", "--release", "--no-wait", "--host", "node0002")
        self.site.idle()
        self.assertEqual(self.states()["node0002"], ("up", "subnet"))
        self.assertEqual(self.site.status()["flapping"], 0)

    def test_a_sweep_that_is_taken_as_it_is(self):
        self.hold_host()
        self.assertTrue(self.site.refresh(accept_partial=True)["changed"])
        self.assertEqual((self.states()["node0002"], self.site.status()["flapping"]), (("up", "subnet"), 0))
        self.assertFalse(self.site.refresh()["changed"])

    def test_another_count_from_a_reload_on(self):
        self.start()
        self.site.configure({"changes": {"flap_count": 5}})
        self.site.hup()
        port = self.site.cable("leaf1", "node0002")
        self.swing("leaf1", port)
        self.plug("leaf1", port)
        self.assertEqual(self.site.status()["flapping"], 0)
        self.pull("leaf1", "node0002")
        self.assertEqual(self.site.status()["flapping"], 1)

    def test_announced_swaps_are_not_counted(self):
        self.start()
        for name in ("node0002", "spine2"):
            self.assertEqual(self.site.ctl("expect", name, "--replace").returncode, 0)
        port = self.site.cable("leaf1", "node0002")
        for _ in range(3):
            for hand in (self.site.pull, self.site.plug):
                hand("leaf1", port)
                hand("spine2")
                self.site.refresh()
        self.assertEqual((self.flapping(), self.site.status()["flapping"]), ([], 0))
        self.assertEqual(self.states()["node0002"], ("up", "subnet"))
        self.assertIn("spine2", self.switches())
        self.site.ctl("expect", "spine2", "--cancel")
        self.restart("spine2", 2)
        self.assertEqual(self.flapping(), ["spine2"])


if __name__ == "__main__":
    unittest.main()
