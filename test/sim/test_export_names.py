"""Names of switches in exports stay, whatever arrives beside them: in each format that has some, in files that fabricd keeps right and in
those that somebody writes. FILE.names says what they are called."""
import json
import os
import unittest

import ctl_case
import fabric_text
import sim
from export_names import CABLES, FORMATS, GUIDS, HIGHER, LOW, PODS, TWIN, of_slurm
from sim import lab
from test_export_slurm import fabric


def read_file(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Stay(unittest.TestCase):
    def start(self, text):
        """The names of this fabric, of which there is no file yet."""
        self.dir = lab.tmpdir()
        self.folders = [os.path.join(self.dir, "kept"), os.path.join(self.dir, "mine")]
        os.mkdir(self.folders[1])
        self.site = sim.Recorded(text, {"changes": {"flap_count": 0}, "exports": {"folder": self.folders[0], "pace": 1},
                                        "exports.files": {name: name for name in FORMATS}})
        self.addCleanup(self.site.free)
        return self.names()

    def text(self, cables, *gone, **names):
        text = fabric_text.without(fabric(cables, GUIDS), *gone).replace('"twin"', '"leafb1"')
        for name, other in names.items():
            text = text.replace(f'"{name}"', f'"{other}"')
        return text

    def names(self, text=None):
        """{(format, host): what it is in}: from both files of each format, which agree."""
        if text is not None:
            self.site.show(text)
            self.site.refresh()
        self.site.advance(10)
        generation, found = self.site.status()["generation"], {}
        for name, read in FORMATS.items():
            done = self.site.ctl("export", name, "-o", os.path.join(self.folders[1], name), "--if-changed")
            self.assertIn(done.returncode, (0, 3), done.stderr)
        self.assertEqual({one["generation"] for one in self.site.status()["exports"]}, {generation})
        for name, read in FORMATS.items():
            kept, mine = (read_file(os.path.join(folder, name)) for folder in self.folders)
            self.assertEqual(kept, mine)
            found.update({(name, host): path for host, path in read(kept).items()})
        return found

    def files(self):
        return {path: lab.stamp(path) for path in (os.path.join(folder, name) for folder in self.folders for name in FORMATS)}

    def stays(self, before, after, gone=()):
        self.assertEqual({key: path for key, path in after.items() if key in before},
                         {key: path for key, path in before.items() if key[1] not in gone})

    def path(self, names, host):
        """Of a host, the same in all formats."""
        (path,) = {names[name, host] for name in FORMATS if name != "slurm-block"}
        self.assertEqual(names["slurm-block", host], path[:1])
        return path

    def by_the_rules(self):
        return of_slurm(self.site.ctl("export", "slurm-tree").stdout)

    def test_a_lower_leaf_and_a_namesake(self):
        before = self.start(self.text(CABLES))
        self.assertEqual(self.path(before, "na11"), ("leafa1", "ib0-over-leafa1", "ib0"))
        after = self.names(self.text(CABLES + LOW))
        self.stays(before, after)
        self.assertEqual(self.path(after, "nlow"), ("low", "ib0-over-leafa1", "ib0"))
        self.assertEqual(self.by_the_rules()["na11"], ("leafa1", "ib0-over-low", "ib0"))
        last = self.names(self.text(CABLES + LOW + TWIN))
        self.stays(after, last)
        self.assertEqual(self.path(last, "ntwin"), ("leafb1-s30", "ib0-over-leafb1", "ib0"))
        self.assertEqual(self.by_the_rules()["ntwin"][0], "leafb1")

    def test_who_has_another_name_keeps_that_and_who_comes_back_has_its_own(self):
        before = self.start(self.text(CABLES + LOW + TWIN))
        self.assertEqual(self.path(before, "ntwin")[0], "leafb1")
        (second,) = {self.path(before, host)[0] for host in ("nb11", "nb12")}
        self.assertRegex(second, "^leafb1-s[0-9a-f]{4}$")
        self.goes_and_comes_back(before, "low", "nlow", "leafa2", "na21", "na22")
        self.goes_and_comes_back(before, "twin", "ntwin")

    def goes_and_comes_back(self, before, *gone):
        text = self.text(CABLES + LOW + TWIN, *gone)
        self.assertEqual(self.names(text), before)  # their places are retained
        for name in gone:
            if name[0] != "n":  # with a switch go its hosts
                self.assertEqual(self.site.ctl("forget", "leafb1" if name == "twin" else name).returncode, 0)
        after = self.names(text)  # a sweep later: nobody is told when what is forgotten is published
        self.assertLess(len(after), len(before))
        self.stays(before, after, gone)
        self.assertEqual(self.names(self.text(CABLES + LOW + TWIN)), before)

    def test_another_kind_and_one_level_more(self):
        before = self.start(self.text(PODS))
        self.assertEqual(self.path(before, "na11"), ("leafa1", "ib0-pod0", "ib0"))
        self.assertEqual({plane["kind"] for plane in self.site.ctl_json("planes")}, {"fat-tree-3"})
        after = self.names(self.text(CABLES))
        self.assertEqual({plane["kind"] for plane in self.site.ctl_json("planes")}, {"other"})
        self.stays(before, after)
        last = self.names(self.text(CABLES + HIGHER))
        self.assertEqual({key: path[:len(after[key])] for key, path in last.items() if key in after}, after)
        (above,) = {path[3:] for (name, host), path in last.items() if host == "na11" and name != "slurm-block"}
        self.assertRegex(above[0], "^ib0-s[0-9a-f]+$")  # the plane's name stays where it was

    def test_what_is_called_otherwise_is(self):
        """A switch that gets another name in the fabric; one in whose place another one of its name comes."""
        before = self.start(self.text(CABLES))
        after = self.names(self.text(CABLES, leafa1="rack7"))
        self.assertEqual(self.path(after, "na11"), ("rack7", "ib0-over-leafa1", "ib0"))
        self.stays({key: path for key, path in before.items() if key[1] not in ("na11", "na12")},
                   {key: path for key, path in after.items() if key[1] not in ("na11", "na12")})
        self.assertEqual(self.names(self.text(CABLES)), before)
        files = self.files()
        (old,) = (switch["id"] for switch in self.site.ctl_json("switches") if switch["name"] == "leafa1")
        new = "0x0000000000099990"
        text = self.text(CABLES).replace(old[2:], new[2:]).replace(f"{int(old, 16):#x}", f"{int(new, 16):#x}")
        self.assertEqual(self.names(text.replace(f"({int(old, 16):x})", f"({int(new, 16):x})")), before)
        self.assertIn(new, {switch["id"] for switch in self.site.ctl_json("switches")})
        self.assertEqual(self.files(), files)  # they say the same; the names beside know the new one
        for folder in self.folders:
            self.assertIn(new, read_file(os.path.join(folder, "slurm-tree.names")))


class Beside(ctl_case.Case):
    """FILE.names itself."""

    def setUp(self):
        super().setUp()
        self.out = os.path.join(self.rundir, "out")

    def read(self, path=None):
        return read_file(path or self.out)

    @staticmethod
    def said(text):
        """Lines that are no comments."""
        return [line for line in text.splitlines() if not line.startswith("#")]

    def leftovers(self):
        return sorted(os.listdir(self.rundir))

    def names(self):
        """{GUID: names of a switch}"""
        return {key: value for key, value in json.loads(self.read(self.out + ".names")).items() if key.startswith("0x")}

    def test_what_it_says(self):
        for name in FORMATS:
            self.ctl("export", name, "-o", self.out)
            self.assertEqual(self.names()["0x0000000000200000"], {"name": "leaf1", "leaf": "leaf1", "above": ["ib0"]})
            self.assertEqual(len(self.names()), 4)
        self.assertEqual(self.leftovers(), ["ib0.snap", "out", "out.names", "out.old"])
        before = lab.stamp(self.out + ".names")
        self.ctl("export", name, "-o", self.out)
        self.assertEqual(lab.stamp(self.out + ".names"), before)

    def test_other_formats_and_other_places_have_none(self):
        for name in ("dot", "nodemap", "ibnetdiscover", "json", "hostlist"):
            self.ctl("export", name, "-o", self.out)
        self.ctl("export", "slurm-tree", "-o", "/dev/null")
        self.ctl("export", "slurm-tree")
        self.assertEqual(self.leftovers(), ["ib0.snap", "out", "out.old"])

    def test_it_is_heeded_made_new_and_begun_anew(self):
        self.ctl("export", "slurm-tree", "-o", self.out)
        names, text = self.names(), self.read()
        for entry in names.values():
            entry["above"] = ["ib0-top"]
        names["0x0000000000200000"]["leaf"] = "leaf1-sab"
        lab.replace_file(self.out + ".names", json.dumps(names))
        self.ctl("export", "slurm-tree", "-o", self.out, "--if-changed")
        self.assertEqual(self.said(self.read())[0], "SwitchName=leaf1-sab Nodes=node[0001-0004]")
        self.assertEqual(self.said(self.read())[-1], "SwitchName=ib0-top Switches=leaf1-sab,leaf[2-4]")
        self.ctl("export", "slurm-tree", "-o", self.out, "--if-changed", status=3)
        os.unlink(self.out + ".names")
        self.ctl("export", "slurm-tree", "-o", self.out, "--if-changed")
        self.assertEqual(self.read(), text)
        os.unlink(self.out + ".names")
        self.ctl("export", "slurm-tree", "-o", self.out, "--if-changed", status=3)
        self.assertEqual(set(self.names()), set(names))  # although the file was left alone

    def test_names_that_it_cannot_give(self):
        """Somebody wrote in it: what is no name that the rules could have given is passed over."""
        self.ctl("export", "slurm-tree", "-o", self.out)
        names, text = self.names(), self.read()
        for wrong in ({"leaf": "leaf9", "above": ["other"]}, {"leaf": "leaf1 x", "above": ["ib0 x", "ib0/", "ib00"]},
                      {"leaf": 1, "above": {"a": "b"}}, {"leaf": "x" * 5000, "above": ["ib0-" + "x" * 5000, None, 7]}, [], "x", None):
            lab.replace_file(self.out + ".names", json.dumps({guid: wrong for guid in names} | {"x": {"above": ["ib0-y"]}}))
            self.ctl("export", "slurm-tree", "-o", self.out, "--if-changed", status=3)
            self.assertEqual(self.names(), names)
        self.assertEqual(self.read(), text)

    def test_a_file_of_somebody_elses(self):
        self.ctl("export", "slurm-tree", "-o", self.out)
        before = lab.stamp(self.out)
        for other in ("mine\n", "[]", "", '{"a": '):
            lab.replace_file(self.out + ".names", other)
            self.ctl("export", "slurm-tree", "-o", self.out, status=1)
            self.assertEqual(self.complaint, f"fabricctl: not written: {self.out}.names: cannot read names of switches from it: "
                                             "move it away\n")
            self.assertEqual((lab.stamp(self.out), self.read(self.out + ".names")), (before, other))
        os.unlink(self.out + ".names")
        os.mkdir(self.out + ".names")
        self.ctl("export", "slurm-tree", "-o", self.out, status=1)
        self.assertIn("cannot read names of switches from it: move it away", self.complaint)


if __name__ == "__main__":
    unittest.main()
