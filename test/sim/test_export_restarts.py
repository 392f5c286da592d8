"""Exports of all formats stay as they are, by meaning and by text, over restarts of fabricd, in whatever order the fabric is discovered,
and over changes that do not concern them."""
import json
import os
import random
import re
import shutil
import unittest

import fabric_text
import sim
from export_names import CABLES, FORMATS as TREES, GUIDS, LOW, TWIN
from sim import lab
from test_configuration import FORMATS
from test_export_slurm import fabric

OF_ONE_PLANE = ("hostlist", "rankfile", "mpich-coords", "dot", "npy", "csv")
GEOMETRY = ("slurm-torus3d", "slurm-ring")  # test_export_geometry.py has the fabrics for these
EXPORTS = {name: name for name in FORMATS.split(", ") if name not in GEOMETRY}
PLACES = (*TREES, "hostlist", "rankfile")  # they say where hosts are, and no more
# Of two planes: a rail-optimised one, and one of no known kind in which two switches have one name.
SECOND = fabric(CABLES + LOW + TWIN, GUIDS).replace('"twin"', '"leafb1"')


def two_planes():
    return sim.fabric("rails:3,4,6,2", "capture") + SECOND


def shuffled(capture, seed):
    """Nodes in another order, the cables of each, too."""
    pick = random.Random(seed)
    records = [record for record in re.split(r"\n\s*\n", capture) if "guid=" in record]
    pick.shuffle(records)
    for at, record in enumerate(records):
        lines = record.strip("\n").split("\n")
        cables = [line for line in lines if line.startswith("[")]
        pick.shuffle(cables)
        records[at] = "\n".join([line for line in lines if not line.startswith(("[", "#"))] + cables)
    return "\n\n".join(records) + "\n"


class Case(unittest.TestCase):
    def start(self, files, **config):
        self.exports = files
        self.site = sim.Recorded(two_planes(), config, start=False)
        self.addCleanup(self.site.free)
        self.site.programs(lambda program: self.told.append(program.environ["FABRICD_GENERATION"]))
        self.told = []
        self.site.start()
        self.site.advance(60)

    def write(self, folder, name, *more):
        done = self.site.ctl("export", *self.exports[name].split(), "-o", os.path.join(folder, name), *more)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return done.returncode

    @staticmethod
    def files(folder):
        return {entry.name: lab.stamp(entry.path) for entry in os.scandir(folder)}


class Restarts(Case):
    """Files that fabricd keeps right, and files that are made where there was none."""

    def kept(self):
        """When fabricd has looked at all of them, those that it has written since it started."""
        generation, said = self.site.status()["generation"], self.site.status()["exports"]
        self.assertEqual({one["generation"] for one in said}, {generation})
        return {one["name"] for one in said if one["changed"] is not None}

    def texts(self):
        folder, texts = lab.tmpdir(), {}
        for name in self.exports:
            self.assertEqual(self.write(folder, name), 0)
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as file:
                texts[name] = file.read()
        shutil.rmtree(folder)
        return texts

    def test_a_capture_in_any_order(self):
        folder = os.path.join(lab.tmpdir(), "exports")
        files = EXPORTS | {f"{name}@ib1": f"{name} --plane ib1" for name in (*OF_ONE_PLANE, "slurm-tree")}
        self.start(files, **{"exports": {"folder": folder, "pace": 1}, "exports.files": files,
                             "exports.commands": {name: "/bin/true" for name in files}})
        self.assertEqual(len(self.site.ctl_json("planes")), 2)
        self.assertEqual(self.kept(), set(files))
        before, texts, generation = self.files(folder), self.texts(), self.site.status()["generation"]
        names = {f"{name}.names" for name in files if name.split("@")[0] in TREES}
        self.assertEqual(set(texts), set(files) | names)
        self.assertEqual(set(before), set(texts) | {f"{name}.told" for name in files})
        for seed in range(100 if lab.ALL else 10):
            self.site.stop()
            self.site.show(shuffled(two_planes(), seed))
            self.site.start()
            self.site.advance(60)
            self.assertEqual(self.site.status()["generation"], generation)
            self.assertEqual(self.kept(), set())
            self.assertEqual(self.files(folder), before)
            now = self.texts()
            self.assertEqual([name for name in texts if now.pop(name) != texts[name]] + [*now], [])
        self.assertEqual(len(self.told), len(files))


class Changes(Case):
    """What fabricd publishes while files lie there that somebody wrote."""

    def start(self, files, **config):
        super().start(files, **config)
        self.folder = lab.tmpdir()
        for name in files:
            self.assertEqual(self.write(self.folder, name), 0)

    def start_capture(self):
        self.start(EXPORTS | {f"{name}@ib0": f"{name} --plane ib0" for name in EXPORTS}, changes={"flap_count": 0})

    def published(self, text):
        """A sweep of it finds something new."""
        self.site.show(text)
        self.assertTrue(self.site.refresh()["changed"])

    def unchanged(self, names):
        """These say the same, and nobody has touched them."""
        files = self.files(self.folder)
        self.assertEqual([name for name in names if self.write(self.folder, name, "--if-changed") != 3], [])
        self.assertEqual(self.files(self.folder), files)

    def changed(self, name):
        """This one does not."""
        self.assertEqual(self.write(self.folder, name, "--if-changed"), 0)

    def test_a_cable_that_flaps(self):
        self.start_capture()
        self.published(fabric_text.without_cables(two_planes(), "leaf1-2", "spine1"))
        self.unchanged(PLACES)
        self.changed("dot")
        self.published(two_planes())
        self.changed("dot")
        self.unchanged(self.exports)

    def test_slower_cables(self):
        self.start_capture()
        self.published(re.sub("4xHDR", "4xEDR", two_planes(), count=40))
        self.unchanged((*PLACES, "nodemap"))
        self.changed("graphml")

    def test_another_plane(self):
        self.start_capture()
        self.published(two_planes().replace('"na11"', '"nother"'))
        self.unchanged([name for name in self.exports if name.endswith("@ib0")])
        self.changed("slurm-tree")

    def test_another_name_of_a_card(self):
        self.start_capture()
        self.published(two_planes().replace('"node0002 HCA-1"', '"node0002 mlx5_0"'))
        self.unchanged(PLACES)
        self.changed("nodemap")

    def test_what_no_snapshot_has(self):
        """LIDs and widths, which a daemon that has just started does not know."""
        self.start_capture()
        with open(os.path.join(self.folder, "json"), encoding="utf-8") as file:
            value = json.load(file)
        for rows in ("devices", "switches"):
            self.assertEqual({row["lid"] for row in value[rows]}, {None})
            self.assertNotEqual({row["lid"] for row in self.site.ctl_json(rows)}, {None})
        self.assertEqual({link["width"] for link in value["links"]}, {None})


if __name__ == "__main__":
    unittest.main()
