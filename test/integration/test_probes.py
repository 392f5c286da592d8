"""The probes on a simulated subnet: live, from ibnetdiscover's text and from its cache, all must see the same."""
import os
import re
import unittest

import lab

# A chassis, a factory name, names with strange characters, a host with two HCAs. Rates stand in comments.
SITE = re.sub(r"(\]) (\d+x\w+)$", r'\1 # "" lid 0 \2', """
sysimgguid=0x900
switchguid=0x902(902)
Switch 8 "MF0;dir:CS7500/L01/U1"
[1] "node001 mlx5_0"[1] 4xEDR
[2] "node001 mlx5_1"[1] 4xFDR
[8] "MF0;dir:CS7500/S01/U1"[1] 4xHDR

sysimgguid=0x900
switchguid=0x901(901)
Switch 8 "MF0;dir:CS7500/S01/U1"
[1] "MF0;dir:CS7500/L01/U1"[8] 4xHDR
[2] "edge 7 (old)"[1] 2xHDR

sysimgguid=0x800
switchguid=0x800(800)
Switch 8 "edge 7 (old)" # "edge 7 (old)" base port 0
[1] "MF0;dir:CS7500/S01/U1"[2] 2xHDR
[2] "MT4119 ConnectX5   Mellan Tec"[1] 1xSDR
[3] "a, b: c; d=e {f} \\\\g"[1] 12xQDR

caguid=0x110
Ca 1 "node001 mlx5_0"
[1] "MF0;dir:CS7500/L01/U1"[1] 4xEDR

caguid=0x120
Ca 1 "node001 mlx5_1"
[1] "MF0;dir:CS7500/L01/U1"[2] 4xFDR

caguid=0x130
Ca 1 "MT4119 ConnectX5   Mellan Tec"
[1] "edge 7 (old)"[2] 1xSDR

caguid=0x140
Ca 1 "a, b: c; d=e {f} \\\\g"
[1] "edge 7 (old)"[3] 12xQDR
""", flags=re.M)

FABRICS = ["fattree2:4,2,3", "torus:3,3,3:1", "random:30,60,40:11", SITE]


class Probes(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        lab.require("ibsim", "opensm", "ibnetdiscover")
        self.dump = lab.program("probe_dump")
        self.dir = lab.tmpdir()

    def live(self, sim, spec="ibnetdisc", host=None):
        return sim.run([self.dump, spec], host)

    def recorded(self, text, name="capture.txt"):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
        return lab.run([self.dump, f"file:{path}"])

    @staticmethod
    def rates(dump):
        """How many nodes of each kind and name; each switch's ports, their rates, and whether they lead to a switch."""
        nodes = sorted(re.findall(r'^(\w+) 0x\w+ (".*") host=', dump, re.M))
        ports = [(switch, re.findall(r"^  (\[\d+\]) (\w+ \S+)", text, re.M))
                 for switch, text in re.findall(r"^switch (0x\w+) .*\n((?:  .*\n)*)", dump, re.M)]
        return nodes, ports

    def same(self, sim):
        """Live and every form of recording must give the same; it is returned."""
        live = self.live(sim)
        self.assertEqual(live.returncode, 0, live.stderr)
        for option in ((), ("-g",), ("-f",), ("-s",), ("-m",)):
            done = sim.run(["ibnetdiscover", *option])
            self.assertEqual(done.returncode, 0, done.stderr)
            capture = self.recorded(done.stdout)
            self.assertEqual(capture.stdout, live.stdout, f"ibnetdiscover {option}: {capture.stderr}")
        done = sim.run(["ibnetdiscover", "-p"])  # which tells no GUIDs of HCAs
        report = self.recorded(done.stdout, "ports.txt")
        self.assertEqual((report.returncode, self.rates(report.stdout)), (0, self.rates(live.stdout)), report.stderr)
        cache = os.path.join(lab.tmpdir(), "cache")
        sim.run(["ibnetdiscover", "--cache", cache])
        self.assertEqual(lab.run([self.dump, f"file:{cache}"]).stdout, live.stdout)
        done = lab.run([self.dump, f"file:{cache}", "--compare", f"file:{os.path.join(self.dir, 'capture.txt')}"])
        self.assertEqual(done.returncode, 0, "fab_inventory_equal")
        return live.stdout

    def test_same_from_every_source(self):
        """Live, recorded, in OpenSM's list (in which only the kind of port 0 stands nowhere), and from every host."""
        for spec in FABRICS:
            with self.subTest(spec[:30]):
                sim = lab.Ibsim(spec if spec is SITE else lab.fabric(spec))
                sim.sweep()
                out = self.same(sim)
                if spec is SITE:
                    self.check_site(out)
                else:
                    self.assertEqual(len(re.findall(r"^switch ", out, re.M)), len(sim.switches))
                    self.assertEqual(len(re.findall(r"^hca ", out, re.M)), len(sim.hosts))
                    self.assertIn("\ndangling 0\n", out)
                    self.assertNotIn(" init ", out)
                path = os.path.join(sim.dir, "opensm-subnet.lst")
                done = lab.run([self.dump, f"opensm-lst:{path}"])
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(done.stdout, re.sub(r"( lmc=\d+) enhanced", r"\1 base", out))
                self.assertEqual(lab.run([self.dump, f"file:{path}"]).stdout, done.stdout)
                if spec == FABRICS[0]:
                    self.assertEqual({self.live(sim, host=host).stdout for host in sim.hosts}, {out})
                sim.quit()

    def check_site(self, out):
        for pattern in (r'^hca 0x0+110 "node001 mlx5_0" host="node001" name="mlx5_0" ',
                        r'^hca 0x0+120 "node001 mlx5_1" host="node001" name="mlx5_1" ',
                        r'^hca 0x0+130 "MT4119.*" host="0x0+130" .* unnamed ',
                        r'^switch 0x0+901 .* chassis=1 slot=2/1/1$', r'^switch 0x0+902 .* chassis=1 slot=1/1/1$',
                        r'^switch 0x0+800 ((?!chassis).)*$', r" 12xQDR ", r" 2xHDR ", r" 1xSDR ", r" 4xFDR "):
            self.assertRegex(out, re.compile(pattern, re.M))

    def test_iblinkinfo(self):
        """What iblinkinfo prints says the same as a report of ports, in each of its forms."""
        for spec in (SITE, "fattree2:4,2,3"):
            sim = lab.Ibsim(spec if spec is SITE else lab.fabric(spec))
            sim.sweep()
            report = self.recorded(sim.run(["ibnetdiscover", "-p"]).stdout).stdout
            for options in ([], ["-l"], ["-p"], ["-l", "--switches-only"]):
                text = self.recorded(sim.run(["iblinkinfo", *options]).stdout)
                self.assertEqual((text.returncode, text.stdout), (0, report), options)
            sim.quit()

    def test_pulled_cable(self):
        sim = lab.Ibsim(lab.fabric("fattree2:3,2,2"))
        sim.sweep()
        before = self.same(sim)
        sim.unlink("leaf2", 3)
        after = self.same(sim)
        self.assertEqual(before.count("->") - after.count("->"), 2)
        self.assertIn("\ndangling 0\n", after)
        sim.relink("leaf2", 3)
        relinked = self.live(sim).stdout
        self.assertEqual(relinked.count("->"), before.count("->"))
        self.assertEqual(relinked.count(" init "), 2)
        sim.sweep()
        self.assertEqual(self.same(sim), before)

    def test_part_that_does_not_answer(self):
        """A switch that loses every request: what is behind it is missing, and that it is missing is known."""
        sim = lab.Ibsim(lab.fabric("fattree2:3,2,2"))
        sim.sweep()
        sim.command('Error "leaf1" 100')
        done = self.live(sim, host=sim.hosts[-1])
        if done.returncode == 0:
            self.assertRegex(done.stdout, r"\ndangling [1-9]")
            self.assertIn("lead nowhere", done.stderr)
        else:  # the library may also abort or fail; then there is no inventory
            self.assertEqual(done.stdout, "")

    def test_refused(self):
        sim = lab.Ibsim(lab.fabric("fattree2:2,1,2"))
        done = self.live(sim)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "ibnetdisc:ibsim0:1: no subnet manager .*start OpenSM")
        sim.sweep()
        self.assertEqual(self.live(sim, "ibnetdisc:ibsim0:1").returncode, 0)
        self.assertIn("no InfiniBand port mlx9", self.live(sim, "ibnetdisc:mlx9").stderr)
        self.assertIn("no InfiniBand port ibsim0:2", self.live(sim, "ibnetdisc:ibsim0:2").stderr)
        host = sim.hosts[-1]
        sim.unlink(host)
        done = self.live(sim, host=host)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no link", done.stderr)


if __name__ == "__main__":
    unittest.main()
