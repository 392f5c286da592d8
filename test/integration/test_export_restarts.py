"""Exports of all formats stay as they are, by meaning and by text, over restarts of fabricd, in whatever order the fabric is
discovered, and over changes that do not concern them."""
import json
import os
import random
import re
import shutil
import unittest

import fabric_text
import lab
import test_hooks
from test_configuration import FORMATS
from test_export_names import CABLES, FORMATS as TREES, GUIDS, LOW, TWIN
from test_export_slurm import fabric

OF_ONE_PLANE = ("hostlist", "rankfile", "dot", "npy", "csv")
EXPORTS = {name: name for name in FORMATS.split(", ")}
PLACES = (*TREES, "hostlist", "rankfile")  # they say where hosts are, and no more
# Of two planes: a rail-optimised one, and one of no known kind in which two switches have one name.
SECOND = fabric(CABLES + LOW + TWIN, GUIDS).replace('"twin"', '"leafb1"')


def two_planes():
    return lab.fabric("rails:3,4,6,2", "capture") + SECOND


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
    def start(self, files, sim=None, **config):
        self.exports = files
        self.daemon = lab.Fabricd(sim, config=config)
        self.addCleanup(self.daemon.stop)

    def write(self, folder, name, *more):
        done = self.daemon.ctl("export", *self.exports[name].split(), "-o", os.path.join(folder, name), *more)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return done.returncode

    @staticmethod
    def files(folder):
        return {entry.name: lab.stamp(entry.path) for entry in os.scandir(folder)}


class Restarts(Case):
    """Files that fabricd keeps right, and files that are made where there was none."""

    def start(self, files, sim=None, **config):
        self.folder, self.told = os.path.join(lab.tmpdir(), "exports"), os.path.join(lab.tmpdir(), "told")
        tell = test_hooks.script(os.path.dirname(self.told), "tell", f"echo told >>{self.told}")
        super().start(files, sim, **{"exports": {"folder": self.folder, "pace": 1}, "exports.files": files,
                                       "exports.commands": {name: tell for name in files}}, **config)

    def kept(self):
        """When fabricd has looked at all of them, those that it has written since it started."""
        generation = self.daemon.status()["generation"]

        def done():
            said = self.daemon.status()["exports"]
            return all(one["generation"] == generation for one in said) and said
        return {one["name"] for one in lab.wait_for(done, 60, "the exports") if one["changed"] is not None}

    def texts(self):
        folder, texts = lab.tmpdir(), {}
        for name in self.exports:
            self.assertEqual(self.write(folder, name), 0)
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as file:
                texts[name] = file.read()
        shutil.rmtree(folder)
        return texts

    def same_over_restarts(self, restarts, change):
        self.assertEqual(self.kept(), set(self.exports))
        files, texts, generation = self.files(self.folder), self.texts(), self.daemon.status()["generation"]
        names = {f"{name}.names" for name in self.exports if name.split("@")[0] in TREES}
        self.assertEqual(set(texts), set(self.exports) | names)
        self.assertEqual(set(files), set(texts) | {f"{name}.told" for name in self.exports})
        for restart in range(restarts):
            self.assertEqual(self.daemon.stop(), 0)
            change(restart)
            self.daemon.start()
            self.assertEqual(self.daemon.status()["generation"], generation)
            self.assertEqual(self.kept(), set())
            self.assertEqual(self.files(self.folder), files)
            now = self.texts()
            self.assertEqual([name for name in texts if now.pop(name) != texts[name]] + [*now], [])
        with open(self.told, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), len(self.exports))

    def test_a_capture_in_any_order(self):
        capture = os.path.join(lab.tmpdir(), "capture")
        lab.replace_file(capture, two_planes())
        self.start(EXPORTS | {f"{name}@ib1": f"{name} --plane ib1" for name in (*OF_ONE_PLANE, "slurm-tree")},
                   fabricd={"probe": f"file:{capture}"})
        self.assertEqual(len(self.daemon.ctl_json("planes")), 2)
        self.same_over_restarts(100 if lab.ALL else 3, lambda seed: lab.replace_file(capture, shuffled(two_planes(), seed)))

    def test_a_fabric_discovered_from_any_host(self):
        lab.require("ibsim", "opensm")
        sim = lab.Ibsim(lab.fabric("fattree3:4"))
        self.addCleanup(sim.quit)
        sim.sweep()
        self.start(EXPORTS, sim)

        def from_another_host(restart):
            with open(self.daemon.conf, encoding="utf-8") as file:
                text = file.read()
            lab.replace_file(self.daemon.conf, re.sub(r"(?m)^SIM_HOST = .*$", f"SIM_HOST = {sim.hosts[restart]}", text))
        self.same_over_restarts(len(sim.hosts) if lab.ALL else 2, from_another_host)


class Changes(Case):
    """What fabricd publishes while files lie there that somebody wrote."""

    def start(self, files, sim=None, **config):
        super().start(files, sim, **config)
        self.folder = lab.tmpdir()
        for name in files:
            self.assertEqual(self.write(self.folder, name), 0)

    def start_capture(self):
        self.capture = os.path.join(lab.tmpdir(), "capture")
        lab.replace_file(self.capture, two_planes())
        self.start(EXPORTS | {f"{name}@ib0": f"{name} --plane ib0" for name in EXPORTS}, changes={"flap_count": 0},
                   fabricd={"probe": f"file:{self.capture}"})

    def published(self, text):
        """A sweep of it finds something new."""
        lab.replace_file(self.capture, text)
        self.assertTrue(self.daemon.refresh()["changed"])

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

    def test_counters(self):
        lab.require("ibsim", "opensm")
        sim = lab.Ibsim(lab.fabric("fattree2:4,2,4"))
        self.addCleanup(sim.quit)
        sim.sweep()
        self.start(EXPORTS, sim)
        port = sim.cable("leaf1", "node0001")
        for count in (7, 70):
            sim.command(f'PerformanceSet "leaf1"[{port}] PortCounters.SymbolErrorCounter={count}')
            self.assertEqual(self.daemon.ctl("counters", "leaf1").returncode, 0)
        self.assertIn("counters-grow", self.daemon.ctl("check").stdout)
        self.daemon.refresh()
        self.unchanged(self.exports)

    def test_what_no_snapshot_has(self):
        """LIDs and widths, which a daemon that has just started does not know."""
        self.start_capture()
        with open(os.path.join(self.folder, "json"), encoding="utf-8") as file:
            value = json.load(file)
        for rows in ("devices", "switches"):
            self.assertEqual({row["lid"] for row in value[rows]}, {None})
            self.assertNotEqual({row["lid"] for row in self.daemon.ctl_json(rows)}, {None})
        self.assertEqual({link["width"] for link in value["links"]}, {None})


if __name__ == "__main__":
    unittest.main()
