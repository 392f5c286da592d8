"""fabricctl: of which things and columns a list is, what a name is, commands by their beginning, two captures."""
import os
import re
import unittest

import ctl_case
from sim import lab

CAPTURE = os.path.join(lab.ROOT, "test", "data", "ibsim_small.txt")
CACHE = CAPTURE.replace(".txt", ".cache")


class Lists(ctl_case.Case):
    def column(self, key, *args):
        return [row[key] for row in self.value(*args)]

    def test_names(self):
        self.assertEqual(self.column("name", "switches", "leaf2", "0x0000000000200004"), ["leaf2", "spine1"])
        self.assertEqual(self.column("a", "links", "node0002"), ["node0002:HCA-1"])
        self.assertEqual(self.column("a", "links", "node0002.cluster", "node0003:HCA-1"),
                         ["node0002:HCA-1", "node0003:HCA-1"])
        self.assertEqual(len(self.value("links", "leaf1")), ctl_case.HOSTS + ctl_case.SPINES)
        self.assertEqual(self.column("group", "groups", "node0006", "0"), [0, 1])
        self.assertEqual(self.column("host", "coords", "node0004"), ["node0004"])

    def test_names_that_nothing_has(self):
        for command, kind in (("switches", "switch"), ("links", "host or switch"), ("groups", "group or host"),
                              ("coords", "host or device")):
            self.ctl(command, "node0001" if command != "switches" else "leaf1", "nobody", status=1)
            self.assertRegex(self.complaint, rf"no {kind} nobody: .*`fabricctl {command}`")

    def test_down(self):
        for command in ("devices", "switches", "links", "groups", "coords"):
            self.assertEqual(self.value(command, "--down"), [])

    def test_columns(self):
        self.assertEqual(self.ctl("switches", "leaf1", "--columns", "level,name").split(), ["LEVEL", "SWITCH", "0", "leaf1"])
        self.assertEqual(self.ctl("switches", "leaf1", "--columns", "index", "--no-header").split(), ["0"])
        self.assertEqual(self.ctl("switches", "--columns", "index").split()[0], "INDEX")  # elsewhere for programs only
        self.assertEqual(self.ctl("--format", "csv", "switches", "leaf1", "--columns", "name,level", "--no-header"),
                         "leaf1,0\n")
        self.assertEqual(self.ctl("--format", "csv", "switches", "leaf1", "--columns", "name,level"),
                         "name,level\nleaf1,0\n")
        self.assertEqual([list(row.items()) for row in self.value("switches", "leaf1", "--columns", "name,level")],
                         [[("name", "leaf1"), ("level", 0)]])
        self.ctl("switches", "--columns", "name,colour", status=2)
        self.assertIn("no such column: colour: there are id, plane, name", self.complaint)

    def test_nobody_says_lids(self):
        self.assertEqual(set(self.column("lid", "switches")), {None})
        self.assertEqual(set(self.column("width", "links")), {None})

    def test_a_command_by_its_beginning(self):
        self.assertEqual(self.ctl("plan"), self.ctl("planes"))
        self.assertEqual(self.ctl("sw", "leaf1"), self.ctl("switches", "leaf1"))
        self.ctl("s", status=2)
        self.assertRegex(self.complaint, "several commands begin like that: s: status, .*switches")
        self.ctl("xyz", status=2)
        self.assertIn("no such command: xyz", self.complaint)
        self.ctl("", status=2)

    def test_show(self):
        host = self.ctl("show", "node0002")
        self.assertRegex(host, r"(?s)^host:\n.*node0002.*\ncables:\n.*leaf1.*\ngroups:\n.*node\[0001-0004\]")
        self.assertRegex(self.ctl("show", "leaf1"), r"(?s)^switch:\n.*\ncables:\n.*node0004.*spine2")
        self.assertIn("spine1", self.ctl("show", "0x0000000000200004"))
        self.assertRegex(self.ctl("show", "node0002:HCA-1"), r"^device:\nINDEX .* STATE .*LID\n")
        self.assertRegex(self.ctl("show", "ib0"), r"^plane:\n")
        self.assertRegex(self.ctl("show", "2"), r"(?s)^group:\n.*node\[0009-0012\]")
        for cable in ("leaf1[3]", "node0003 HCA-1[1]", "leaf1[3] - node0003 HCA-1[1]"):
            lines = self.ctl("show", cable).splitlines()
            self.assertEqual((len(lines), lines[0]), (3, "cables:"), lines)
            self.assertIn("node0003", lines[2])
        self.assertEqual(self.value("show", "leaf1"), self.value("switches", "leaf1"))
        self.ctl("show", "nobody", status=1)
        self.assertIn("no such name: nobody", self.complaint)


class Captures(ctl_case.Case):
    def written(self, name, text):
        path = os.path.join(self.rundir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def setUp(self):
        super().setUp()
        with open(CAPTURE, encoding="utf-8") as file:
            self.text = file.read()

    def test_the_same(self):
        self.assertIn("the same fabric", self.ctl("diff", CAPTURE, CAPTURE))
        self.assertEqual(self.value("diff", CAPTURE, CAPTURE), {"from": CAPTURE, "to": CAPTURE, "changes": []})

    def test_no_such_column(self):
        """One complaint, and the same status in each form."""
        for form in ("text", "json", "csv"):
            self.ctl("diff", CAPTURE, CAPTURE, "--format", form, "--columns", "nonsense", status=2)
            self.assertRegex(self.complaint, "^[^\n]*no such column: nonsense: [^\n]*\n?$")

    def test_a_capture_and_its_cache(self):
        """One fabric in two forms."""
        self.assertEqual(self.value("diff", CAPTURE, CACHE), {"from": CAPTURE, "to": CACHE, "changes": []})
        self.assertEqual(self.value("diff", CACHE, CAPTURE), {"from": CACHE, "to": CAPTURE, "changes": []})

    def test_a_replaced_hca(self):
        guid = re.search(r'^caguid=0x([0-9a-f]+)', self.text, re.MULTILINE).group(1)
        other = self.written("other", self.text.replace(guid, "98765"))
        out = self.ctl("diff", CAPTURE, other, status=1)
        self.assertRegex(out, r"^KIND +WHAT +CHANGE +WHY\n")
        self.assertRegex(out, r"hca-replaced .*0x0000000000098765")
        (row,) = [row for row in self.value("diff", CAPTURE, other, status=1)["changes"] if row["kind"] == "hca-replaced"]
        self.assertIsNone(row["time"])
        self.assertTrue(row["subjects"])

    def test_files_that_cannot_be_read(self):
        for path, why in ((self.written("bad", "not a capture\n"), "bad:1:1: "), ("/nowhere", "cannot be opened"),
                          (self.rundir, "cannot be"), (self.written("empty", ""), "empty")):
            for pair in ((path, CAPTURE), (CAPTURE, path)):
                self.assertEqual(self.ctl("diff", *pair, status=2), "")
                self.assertIn(why, self.complaint)
        self.ctl("diff", CAPTURE, "7", status=2)
        self.assertIn("not a generation", self.complaint)


if __name__ == "__main__":
    unittest.main()
