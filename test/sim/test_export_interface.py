"""Hosts that have ports on several leaves: at which leaf an export writes them, by itself and where --interface or [fabric] compute
says it; and that place, order and groups follow [fabric] compute."""
import os
import unittest

import sim
import yaml
from export_names import of_flux, of_graph, of_labels, of_model, of_slurm, of_yaml
from sim import lab

SPREAD = {"compute1": ["c1", "c2", "c3"], "compute2": ["c4", "c5"], "compute3": ["c6", "c7"]}
HOSTS = [host for hosts in SPREAD.values() for host in hosts]


def capture(ports, uplinks):
    """What ibnetdiscover prints: ports {switch: [(host, device), ...]}, uplinks [(switch, switch), ...]."""
    names = list(dict.fromkeys([*ports, *(name for link in uplinks for name in link)]))
    switch_guids = {name: 0xb00000 + number for number, name in enumerate(names)}
    devices = list(dict.fromkeys(sorted(port for on in ports.values() for port in on)))
    guids = {device: 0xc00000 + number for number, device in enumerate(devices)}
    cables = {name: [] for name in names}
    n_ports = dict.fromkeys(devices, 0)
    of_device = {device: [] for device in devices}
    for a, b in uplinks:
        at_a, at_b = len(cables[a]) + 1, len(cables[b]) + 1
        cables[a].append(f'"S-{switch_guids[b]:016x}"[{at_b}]\t# "{b}" lid 1 4xHDR')
        cables[b].append(f'"S-{switch_guids[a]:016x}"[{at_a}]\t# "{a}" lid 1 4xHDR')
    for name, on in ports.items():
        for device in on:
            n_ports[device] += 1
            cables[name].append(f'"H-{guids[device]:016x}"[{n_ports[device]}]({guids[device]:x}{n_ports[device]})\t'
                                f'# "{" ".join(device)}" lid 1 4xHDR')
            of_device[device].append((n_ports[device], name, len(cables[name])))
    text = []
    for name, guid in switch_guids.items():
        text.append(f'vendid=0x2c9\ndevid=0xd2f0\nsysimgguid={guid:#x}\nswitchguid={guid:#x}({guid:x})\n'
                    f'Switch\t64 "S-{guid:016x}"\t# "{name}" base port 0 lid 1 lmc 0\n' +
                    "".join(f"[{number}]\t{cable}\n" for number, cable in enumerate(cables[name], 1)))
    for device, guid in guids.items():
        text.append(f'vendid=0x2c9\ndevid=0x101b\nsysimgguid={guid:#x}\ncaguid={guid:#x}\n'
                    f'Ca\t{n_ports[device]} "H-{guid:016x}"\t# "{" ".join(device)}"\n' +
                    "".join(f'[{port}]({guid:x}{port})\t"S-{switch_guids[name]:016x}"[{at}]\t# lid 1 lmc 0 "{name}" lid 1 4xHDR\n'
                            for port, name, at in of_device[device]))
    return "\n".join(text)


def fabric(compute="mlx5_1", storage=("mlx5_0",), spread=None, leaves=("stor",), more=()):
    """Leaves of hosts by their port `compute`, and leaves that all of them have their ports `storage` on."""
    spread = SPREAD if spread is None else spread
    ports = {leaf: [(host, compute) for host in hosts] for leaf, hosts in spread.items()}
    hosts = [host for on in spread.values() for host in on]
    for number, device in enumerate(storage):
        ports.setdefault(leaves[number % len(leaves)], []).extend((host, device) for host in hosts)
    for leaf, port in more:
        ports.setdefault(leaf, []).append(port)
    return capture(ports, [(leaf, f"spine{spine}") for leaf in ports for spine in (1, 2)])


class Case(unittest.TestCase):
    def start(self, text, **settings):
        self.site = sim.Recorded(text, {"fabric": settings} if settings else None)
        self.addCleanup(self.site.free)

    def export(self, name, *args, status=0):
        done = self.site.ctl("export", name, *args)
        self.assertEqual(done.returncode, status, done.stderr)
        self.said = done.stderr
        return done.stdout

    def leaves(self, *args):
        found = {}
        for host, way in of_slurm(self.export("slurm-tree", *args)).items():
            found.setdefault(way[0], []).append(host)
        return {leaf: sorted(hosts) for leaf, hosts in found.items()}


class ByItself(Case):
    def test_the_leaf_that_tells_hosts_apart(self):
        """Whatever the devices are called, however many leaves for storage there are, and however many ports each has there."""
        for text in (fabric(), fabric("mlx5_0", ["mlx5_1"]), fabric("mlx5_2", ["mlx5_0", "mlx5_1"]),
                     fabric("mlx5_2", ["mlx5_0", "mlx5_1"], leaves=("stor1", "stor2")),
                     fabric("ibp200s0", ["ibp1s0", "ibp2s0", "ibp3s0"], leaves=("stor1", "stor2")),
                     fabric(more=[("stor", (f"nas{n}", "mlx5_0")) for n in "12"])):
            self.start(text)
            leaves = self.leaves()
            self.assertEqual({leaf: leaves[leaf] for leaf in SPREAD}, SPREAD)
            self.assertEqual(sum(leaves.values(), []), HOSTS + [host for host in ("nas1", "nas2") if host in text])

    def test_in_each_format(self):
        self.start(fabric())
        for name, read in (("slurm-yaml", of_yaml), ("flux-jgf", of_flux), ("k8s-labels", of_labels), ("topograph", of_model),
                           ("topograph-graph", of_graph)):
            with self.subTest(name):
                self.assertEqual({host: way[0] for host, way in read(self.export(name)).items()},
                                 {host: leaf for leaf, hosts in SPREAD.items() for host in hosts})

    def test_a_cable_in_the_wrong_leaf(self):
        """A host stays where most of its ports are, also where few others are at the leaf that one of them is in."""
        spread = {"compute1": HOSTS[:5], "compute2": HOSTS[5:]}
        ports = {leaf: [(host, device) for host in hosts for device in ("mlx5_0", "mlx5_1", "mlx5_2")] for leaf, hosts in spread.items()}
        ports["compute1"].remove(("c1", "mlx5_0"))
        ports["compute2"].append(("c1", "mlx5_0"))
        self.start(capture(ports, [(leaf, "spine1") for leaf in ports]))
        self.assertEqual(self.leaves(), spread)
        self.assertIn("1 host at several leaves, each is written at one (choose with --interface): c1", self.said)


class Chosen(Case):
    def test_by_device_port_and_leaf(self):
        self.start(fabric())
        for pattern in ("mlx5_0", "mlx5_0:1", "sto*", "!compute*", "mlx5_*,!mlx5_1"):
            self.assertEqual(self.leaves("--interface", pattern), {"stor": HOSTS}, pattern)
        for pattern in ("mlx5_1", "compute?", "mlx5_[1-9]:1 nobody", "!stor"):
            self.assertEqual(self.leaves("--interface", pattern, "--strict"), SPREAD)
            self.assertEqual(self.said, "")

    def test_who_has_none_of_them(self):
        """stays where it is"""
        self.start(fabric(more=[("stor", ("nas", "mlx5_0"))]))
        self.assertEqual(self.leaves("--interface", "compute*"), dict(SPREAD, stor=["nas"]))

    def test_planes(self):
        """A host is written by the plane that has what is chosen."""
        ports = {leaf: [(host, "mlx5_4") for host in hosts] for leaf, hosts in SPREAD.items()}
        self.start(capture(dict(ports, stor=[(host, device) for host in HOSTS for device in ("mlx5_0", "mlx5_1")]),
                           [(leaf, "spine1") for leaf in ports]))
        self.assertEqual(self.leaves(), {"stor": HOSTS})
        self.assertEqual(self.leaves("--interface", "mlx5_4", "--strict"), SPREAD)
        (topology,) = yaml.safe_load(self.export("slurm-yaml", "--interface", "mlx5_4", "--strict"))
        self.assertEqual((topology["topology"], topology["cluster_default"]), ("ib1", True))

    def test_refused(self):
        self.start(fabric())
        for args, says, status in ((("slurm-tree", "--interface", "mlx4_0"), "no device, port, interface or leaf has such a name", 1),
                                   (("hostlist", "--interface", "mlx5_0"), "--interface is for formats that have hosts at leaves", 2),
                                   (("slurm-tree", "--interface", ","), "no pattern", 2), (("slurm-tree", "--interface", "!"), "no pattern", 2)):
            self.export(*args, status=status)
            self.assertIn(says, self.said)

    def test_a_kept_file(self):
        folder = os.path.join(lab.tmpdir(), "exports")
        self.site = sim.Recorded(fabric(), {"exports": {"folder": folder}, "exports.files": {"tree": "slurm-tree --interface stor"}})
        self.addCleanup(self.site.free)
        with open(os.path.join(folder, "tree"), encoding="utf-8") as file:
            self.assertIn("SwitchName=stor Nodes=c[1-7]\n", file.read())


class BySetting(Case):
    def test_all_follow(self):
        self.start(fabric(), compute="mlx5_1")
        self.assertEqual(self.leaves("--strict"), SPREAD)
        self.assertEqual({group["name"]: group["hosts"] for group in self.site.ctl_json("groups")}, SPREAD)
        placed = self.site.ctl_json("place", "-n", "2", "--from", "c[1,4-5,7]")
        self.assertEqual((placed["hosts"], placed["switches"]), (["c4", "c5"], 1))
        self.assertEqual(self.site.ctl("order", "-q", "c[1,4,2,6,5,7,3]").stdout.split(), ["c[1-7]"])
        self.assertEqual(self.site.ctl("order", "-q", "c[6,1,7,2]").stdout.split(), ["c[1-2,6-7]"])
        facts = self.site.ctl("show", "c1").stdout
        self.assertRegex(facts, r"compute +yes")

    def test_a_chosen_port_that_is_down(self):
        """No job can have that host, whatever its other ports are."""
        self.start(fabric(), compute="mlx5_1")
        self.site.show(fabric(spread=dict(SPREAD, compute3=["c6"]), more=[("stor", ("c7", "mlx5_0"))]))
        self.site.refresh()
        self.assertEqual(self.site.ctl("place", "-n", "7").returncode, 1)
        self.assertEqual(self.site.ctl_json("place", "-n", "6")["hosts"], HOSTS[:6])

    def test_nothing_is_called_so(self):
        self.start(fabric(), compute="mlx4_0")
        self.assertIn("[fabric] compute = mlx4_0", self.site.journal())
        self.assertEqual(self.leaves(), SPREAD)

    def test_refused(self):
        site = sim.Recorded(fabric(), {"fabric": {"compute": "!"}}, start=False)
        self.addCleanup(site.free)
        self.assertNotEqual(site._call("sim_start"), 0)


if __name__ == "__main__":
    lab.main()
