"""The order of leaves in files for Slurm, which ranks the nodes of a job by the number of their leaf in the file: leaves below one switch follow
each other at every height, also if names of hosts follow no pod. `fabricctl order` has the same order."""
import itertools
import os
import random
import re
import unittest

import yaml

from export_names import CABLES, of_slurm
from test_export_files import Case
from test_export_slurm import fabric, spelled

SEED = int(os.environ.get("FABRICD_SEED", random.randrange(1 << 32)))


def names(rng, n):
    """Names of hosts in an order of their own."""
    return [f"n{number:03}" for number in rng.sample(range(1, 1000), n)]


def tree(rng, levels, free):
    """Cables below one switch: two to four parts each, and one to three hosts at each leaf."""
    numbers = itertools.count()

    def part(level):
        top = f"s{level}x{next(numbers)}"
        if level == 0:
            return top, [(top, free.pop()) for _ in range(rng.randint(1, 3))]
        parts = [part(level - 1) for _ in range(rng.randint(2, 4))]
        return top, [cable for below, cables in parts for cable in [*cables, (below, top)]]
    return part(levels)[1]


def leaves_of(text):
    """The leaves of slurm-tree in their order: (name, hosts)."""
    return [(name, spelled(nodes)) for name, nodes in re.findall(r"(?m)^SwitchName=(\S+) Nodes=(\S+)$", text)]


class Order(Case):
    def once(self, sequence):
        """Each comes once, in a row."""
        found = [key for key, _ in itertools.groupby(sequence)]
        self.assertEqual(len(found), len(set(found)), found)

    def follow(self, text):
        """Leaves below each switch follow each other; the hosts in the order of Slurm's ranks."""
        above = of_slurm(text)
        ranked = [host for _, hosts in leaves_of(text) for host in hosts]
        self.assertEqual(set(ranked), set(above))
        for height in range(max(map(len, above.values()))):
            self.once([above[host][height] if height < len(above[host]) else None for host in ranked])
        return ranked, above

    def far(self, sequence, above):
        """Heights of the lowest common switches of neighbours, together."""
        return sum(next(n for n, name in enumerate(above[a]) if name in above[b]) for a, b in zip(sequence, sequence[1:]))

    def test_random_trees(self):
        rng = random.Random(SEED)
        for levels in (1, 2, 2, 3, 3):
            with self.subTest(seed=SEED, levels=levels):
                self.import_from("", fabric(tree(rng, levels, names(rng, 200))))
                text = self.ctl("export", "slurm-tree")
                ranked, above = self.follow(text)
                leaves = [name for name, _ in leaves_of(text)]
                (topology,) = yaml.safe_load(self.ctl("export", "slurm-yaml"))
                self.assertEqual([switch["switch"] for switch in topology["tree"]["switches"] if "nodes" in switch], leaves)
                order = spelled(self.ctl("export", "hostlist").strip())
                self.assertEqual([above[host][0] for host in order], [above[host][0] for host in ranked])
                self.assertEqual(self.far(order, above), self.far(ranked, above))
                self.assertLessEqual(self.far(ranked, above), self.far(sorted(ranked), above))

    def test_pods_whose_hosts_alternate(self):
        """Without a rest the blocks have the same order."""
        self.import_from("", fabric([cable for leaf in range(8) for cable in (
            (f"leaf{leaf}", f"n{leaf}a"), (f"leaf{leaf}", f"n{leaf}b"), (f"leaf{leaf}", f"spine{leaf % 2}"))] + [
                ("spine0", "core"), ("spine1", "core")]))
        text = self.ctl("export", "slurm-tree")
        self.follow(text)
        self.assertEqual([name for name, _ in leaves_of(text)], [f"leaf{n}" for n in (0, 2, 4, 6, 1, 3, 5, 7)])
        blocks = self.ctl("export", "slurm-block")
        self.assertEqual(re.findall(r"(?m)^BlockName=(\S+)", blocks), [name for name, _ in leaves_of(text)])

    def test_dragonfly_and_mixed_depths(self):
        self.fabric("dragonfly:2,4,2")
        self.follow(self.ctl("export", "slurm-tree"))
        self.import_from("", fabric(CABLES))
        self.follow(self.ctl("export", "slurm-tree"))

    def test_another_order_is_no_change(self):
        """slurm-tree means the same in any order of its lines."""
        self.import_from("", fabric(tree(random.Random(3), 2, names(random.Random(3), 100))))
        text = self.export("slurm-tree")
        lines = text.splitlines(keepends=True)
        random.Random(1).shuffle(lines)
        with open(self.out, "w", encoding="utf-8") as file:
            file.writelines(lines)
        self.ctl("export", "slurm-tree", "--if-changed", "-o", self.out, status=3)


if __name__ == "__main__":
    unittest.main()
