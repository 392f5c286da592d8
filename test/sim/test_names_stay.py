"""HCAs that their host has not named yet: a host of four rails that reboots, cards that are elsewhere, a host that is
called otherwise.
"""
import glob
import json
import os
import random
import re
import unittest

import sim
from sim import lab

HOST, RAILS = "node0002", 4
FACTORY = "MT4129 ConnectX7   Mellanox Technologies"
REAL = glob.glob(os.path.join(lab.ROOT, "..", "*", "data", "ibnetdiscover", "multirail-542.txt"))


def guid(rail):
    return f"{0x100008 + 2 * rail:016x}"


def described(capture, rail, desc):
    return capture.replace(f'"{HOST} HCA-{rail + 1}"', f'"{desc}"')


def without(capture, rail):
    """Not seen: its record and its line at the leaf are gone, as of a port that is down."""
    records = [text for text in capture.split("\n\n") if f'Ca\t1 "H-{guid(rail)}"' not in text]
    return "\n\n".join("\n".join(line for line in text.splitlines() if f'"H-{guid(rail)}"' not in line)
                       for text in records).rstrip("\n") + "\n"


def moved(capture, rail, to):
    """Its cable is in another port of its leaf."""
    at = rf'(?m)^\[\d+\](\s+"H-{guid(rail)}".*)$'
    leaf = re.search(rf'"H-{guid(rail)}"\s+# .*\n\[1\].*?"(S-\w+)"\[(\d+)\]', capture)
    capture = re.sub(at, rf"[{to}]\1", capture)
    return re.sub(rf'(?m)(^Ca\s+1 "H-{guid(rail)}".*\n\[1\].*"{leaf.group(1)}")\[\d+\]', rf"\1[{to}]", capture)


class Case(unittest.TestCase):
    def setUp(self):
        # room for one more cable at each switch
        self.whole = re.sub(r"(?m)^Switch\t\d+ ", "Switch\t36 ", sim.fabric("rails:2,4,2,2", "capture"))
        self.site = sim.Recorded(self.whole, {"changes": {"flap_count": 0}, **self.settings()})
        self.addCleanup(self.site.free)
        self.indices = self.places()

    def settings(self):
        return {}

    def places(self):
        return {device["index"]: (device["host"], device["name"]) for device in self.site.ctl_json("devices")}

    def told(self, capture):
        """A sweep of it: what is told, as (kind, what)."""
        self.site.show(capture)
        if not self.site.refresh()["changed"]:
            return []
        return [(c["kind"], c["what"], c["before"], c["after"]) for c in self.site.ctl_json("diff")["changes"]]

    def verify(self):
        done = self.site.ctl("--format", "json", "verify")
        answer = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if answer["equal"] else 1, done)
        return [(c["kind"], c["what"], c["before"], c["after"]) for c in answer["changes"]]


class Reboot(Case):
    def replay(self, order):
        """Rails in this order, each time its next step: gone, there without a name, named."""
        state, missing = [0] * RAILS, set()
        for rail in order:
            state[rail] = (state[rail] + 1) % 3
            capture = self.whole
            for other in range(RAILS):
                if state[other] == 1:
                    capture = without(capture, other)
                elif state[other] == 2:
                    capture = described(capture, other, FACTORY)
            gone = {f"{HOST} HCA-{other + 1}" for other in range(RAILS) if state[other] == 1}
            want = [("host-missing", what, "there", "missing") for what in gone - missing]
            want += [("host-back", what, "missing", "there") for what in missing - gone]
            self.assertEqual(sorted(self.told(capture)), sorted(want), (order, state))
            self.assertEqual(self.places(), self.indices)
            missing = gone
        self.assertEqual(self.verify(), [])

    def test_in_any_order(self):
        """Every order is in unit.kept_names; here some, down to the store and what is served."""
        steps = list(range(RAILS)) * 3
        orders = [steps, sorted(steps), [3, 2, 1, 0] * 3]
        for seed in range(5):
            shuffled = steps[:]
            random.Random(seed).shuffle(shuffled)
            orders.append(shuffled)
        for order in orders:
            with self.subTest(order=order):
                self.replay(order)

    def test_all_at_once_and_a_restart_of_the_daemon(self):
        gone, late = self.whole, self.whole
        for rail in range(RAILS):
            gone, late = without(gone, rail), described(late, rail, FACTORY)
        names = [f"{HOST} HCA-{rail + 1}" for rail in range(RAILS)]
        self.assertEqual(self.told(gone), [("host-missing", name, "there", "missing") for name in names])
        self.assertEqual(self.verify(), [("host-missing", name, "missing", "not seen") for name in names])
        self.assertEqual(self.told(late), [("host-back", name, "missing", "there") for name in names])
        self.site.stop()
        self.site.start()
        self.assertEqual(self.told(late), [])
        self.assertEqual(self.places(), self.indices)
        self.assertEqual(self.verify(), [("name", name, "kept", "not said") for name in names])
        self.assertEqual(self.told(self.whole), [])
        self.assertEqual(self.verify(), [])

    def test_what_was_given_up_has_its_name_back(self):
        gone, late = without(self.whole, 1), described(self.whole, 1, FACTORY)
        self.told(gone)
        self.assertEqual(self.site.ctl("forget", HOST).returncode, 0)
        self.assertNotIn((HOST, "HCA-2"), self.places().values())
        kinds = {kind for kind, *_ in self.told(late)}
        self.assertIn("host-back", kinds)
        self.assertLessEqual(kinds, {"host-back", "index"})
        self.assertEqual(self.places(), self.indices)


class Elsewhere(Case):
    def test_it_goes_unnamed_with_a_remark(self):
        told = self.told(moved(described(self.whole, 1, FACTORY), 1, 30))
        self.assertIn(("name", f"{HOST} HCA-2", f"{HOST} HCA-2", f"0x{guid(1)} HCA-1"), told)
        self.assertIn((f"0x{guid(1)}", "HCA-1"), self.places().values())
        self.assertRegex(self.site.log(), rf'names: {HOST} HCA-2 its description is "{FACTORY}": it is not at the '
                                            r"place where it had that name, leaf1-2\[30\]; its host is unknown")
        found = json.loads(self.site.ctl("--format", "json", "check").stdout)["findings"]
        self.assertIn(("unnamed", f"0x{guid(1)} HCA-1"), [(f["kind"], f["where"]) for f in found])

    def reports(self, host, **more):
        """This host delivers that it has the card; whose the card is then."""
        self.assertEqual(self.site.deliver_items(host, [
            {"source": "verbs", "name": "mlx5_1", "port": "1", "node-guid": f"0x{guid(1)}", "state": "up",
             "port-guid": f"0x{int(guid(1), 16) + 1:016x}", "type": "InfiniBand", **more}]), 0)
        self.site.advance(10)
        return self.owner()

    def owner(self):
        leaf = {"switch": "leaf1-2", "switch_port": 30}
        found = [one for one in self.site.ctl_json("devices") if leaf.items() <= one.items()]
        return found[0]["host"] if found else None

    def test_a_report_of_before_does_not_count(self):
        """It may be in another host, and its own may be off: what that said of it before is past, for good."""
        self.reports(HOST)
        self.told(moved(described(self.whole, 1, FACTORY), 1, 30))
        self.assertEqual(self.owner(), f"0x{guid(1)}")
        self.site.stop()
        self.site.start()
        self.assertEqual(self.told(moved(described(self.whole, 1, FACTORY), 1, 30)), [])
        self.assertEqual(self.owner(), f"0x{guid(1)}")
        self.assertEqual(self.site.ctl("check").returncode, 1)  # joined anew
        self.assertEqual(self.reports("node0003"), "node0003")
        self.assertIn("name", [kind for kind, *_ in self.told(moved(described(self.whole, 1, "node0003 mlx5_7"), 1, 30))])
        self.assertEqual(self.owner(), "node0003")

    def test_a_report_of_after_does(self):
        """Its own host says that it has it: a cable that was moved."""
        self.reports(HOST)
        self.told(moved(described(self.whole, 1, FACTORY), 1, 30))
        self.assertEqual(self.reports(HOST, firmware="28.40"), HOST)
        self.assertEqual(self.told(moved(described(self.whole, 1, FACTORY), 1, 30)), [])
        self.assertEqual(self.owner(), HOST)
        self.assertEqual(sum(host == HOST for host, _ in self.places().values()), RAILS)


class Called(Case):
    def test_host_and_devices_at_once(self):
        """Is one change, and the story goes on."""
        self.told(without(self.whole, 1))
        self.told(self.whole)
        renamed = self.whole
        for rail in range(RAILS):
            renamed = described(renamed, rail, f"login1 mlx5_{rail}")
        told = [one for one in self.told(renamed) if one[0] != "index"]
        self.assertEqual(told, [("name", HOST, HOST, "login1")])
        self.assertRegex(self.site.ctl("diff").stdout, r"device HCA-1 is called mlx5_0 now, and 3 more")
        kinds = [change["kind"] for change in self.site.ctl_json("history", "login1")]
        self.assertLessEqual({"host-missing", "host-back", "name"}, set(kinds))

    def test_what_is_not_text(self):
        """Control characters in a description: nothing but words comes out, and nobody else is touched."""
        told = self.told(described(self.whole, 1, "node0002\x1b[2J \x07HCA-2"))
        self.assertEqual(told, [])  # no name that it could have: it keeps the one it had
        self.assertEqual(self.places(), self.indices)
        (kind, what, *_), = self.verify()
        self.assertEqual((kind, what), ("name", f"{HOST} HCA-2"))
        shown = self.site.ctl("verify").stdout + self.site.ctl("check").stdout + self.site.log()
        self.assertNotRegex(shown, r"[\x00-\x08\x0b-\x1f\x7f]")
        told = self.told(moved(described(self.whole, 1, "node0002\x1b[2J \x07HCA-2"), 1, 30))
        self.assertIn("name", [kind for kind, *_ in told])
        shown = self.site.ctl("devices").stdout + self.site.ctl("check").stdout + self.site.log()
        self.assertNotRegex(shown, r"[\x00-\x08\x0b-\x1f\x7f]")
        self.assertIn("node0002?[2J ?HCA-2", self.site.log())

    def test_words_that_drivers_use(self):
        words = ["qib0", "hfi1_0", "mlx4_0", "rocep1s0"]
        capture = self.whole
        for rail, word in enumerate(words):
            capture = described(capture, rail, f"node017 {word}")
        self.told(capture)
        self.assertEqual(sorted(name for host, name in self.places().values() if host == "node017"), sorted(words))


class Switches(Case):
    def settings(self):
        return {"names": {"switch_pattern": "^(leaf|spine)[^0-9]*([0-9-]+)$"}}

    def test_a_pattern(self):
        self.assertIn("leaf1-1", {switch["name"] for switch in self.site.ctl_json("switches")})
        self.told(re.sub(r'"leaf1-1"', '"MF0;r3-leaf:MQM8700/U1"', self.whole).replace('"spine1"', '"spine no. 7"'))
        names = {switch["name"] for switch in self.site.ctl_json("switches")}
        self.assertLessEqual({"MF0;r3-leaf:MQM8700/U1", "spine7"}, names)
        self.site.configure({"names": {"switch_pattern": None}})
        self.site.hup()
        self.site.refresh()
        self.assertIn("r3-leaf", {switch["name"] for switch in self.site.ctl_json("switches")})


class Real(unittest.TestCase):
    def test_the_names_of_a_real_capture(self):
        if not REAL:
            self.skipTest("data/ibnetdiscover of a neighbouring folder is not here")
        site = sim.Recorded("", {"fabricd": {"probe": f"file:{REAL[0]}"}})
        self.addCleanup(site.free)
        devices = site.ctl_json("devices")
        self.assertEqual(len([one for one in devices if re.match("0x", one["host"])]), 69)
        self.assertEqual([name for name in (one["name"] for one in site.ctl_json("switches")) if "MF0;" in name], [])
        with open(REAL[0], encoding="utf-8") as file:
            said = set(re.findall(r'"((?:[ab]\d+-p1-dgx-\d+-c\d+) (?:HCA-|mlx5_)\d+)"', file.read()))
        names = {f"{one['host']} {one['name']}" for one in devices}
        self.assertEqual(said - names, set())


if __name__ == "__main__":
    unittest.main()
