"""`fabricctl simulate` with SimGrid: times that follow from rates and latencies alone, bytes of cables as a plain search finds them, every
pattern, jobs that share a cable; and what it says of bad input, and without SimGrid."""
import json
import os
import re
import shutil
import signal
import tempfile
import unittest
from fractions import Fraction

import lab
from simgrid_platform import Platform
from test_fabricctl import N, Case, snapshot

HAVE = unittest.skipUnless(shutil.which("smpirun"), "no smpirun here (libsimgrid-dev)")
HOSTS = [f"node{n + 1:04}" for n in range(N)]
RATE = 200e9 / 8
HOST_NS, SWITCH_NS = 385, 150
PATTERNS = ("alltoall", "ring", "halo3", "allreduce")


def alltoall(n, size):
    return [(a, b, size) for a in range(n) for b in range(n) if a != b]


def ring(n, size):
    return [(a, (a + 1) % n, size) for a in range(n)]


def allreduce(n, size):
    """In n - 1 steps each part goes from rank to rank to be reduced, and as often to be distributed."""
    parts = [size * (part + 1) // n - size * part // n for part in range(n)]
    return [((part + step) % n, (part + step + 1) % n, parts[part]) for part in range(n) for step in range(2 * (n - 1))]


def halo3(extents, size):
    x, y, z = extents
    messages = []
    for rank in range(x * y * z):
        at = rank % x, rank // x % y, rank // x // y
        near = set()
        for dim in range(3):
            for by in (1, -1):
                other = list(at)
                other[dim] = (at[dim] + by) % extents[dim]
                near.add(other[0] + x * (other[1] + y * other[2]))
        messages += [(rank, other, size) for other in near - {rank}]
    return messages


class Simulated(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp(prefix="simu late,", dir=lab.tmpdir())  # a name that SimGrid's options could not have
        self.file = os.path.join(self.rundir, "matrix")

    def simulate(self, *args, status=0, lines=1, **env):
        out = self.ctl("simulate", *args, status=status, lines=lines, env=dict(env, TMPDIR=self.tmp))
        self.assertEqual(os.listdir(self.tmp), [])
        return out

    def value(self, *args):
        return lab.output_schema.checked(["simulate", *args], json.loads(self.simulate(*args, "--json")))

    def matrix(self, *lines):
        lab.replace_file(self.file, "".join(f"{line}\n" for line in lines))
        return self.file

    def seconds(self, hosts, *lines):
        return self.value("--hosts", hosts, "--pattern", self.matrix(*lines))["seconds"]

    def platform(self):
        return Platform(self.ctl("export", "simgrid"))

    def fullest(self, value, messages):
        """The three are as the platform and the messages have it: no cable is fuller than one of them."""
        loads = self.platform().loads(messages)
        times = sorted((Fraction(size, mbps) for size, mbps in loads.values()), reverse=True)[:3]
        self.assertEqual([Fraction(link["bytes"], int(link["rate_gbps"] * 1000)) for link in value["links"]], times)
        for link in value["links"]:
            ends = (link["from"], link["from_port"]), (link["to"], link["to_port"])
            self.assertEqual(loads[ends][0], link["bytes"])
            self.assertAlmostEqual(link["share"], link["bytes"] * 8e-9 / link["rate_gbps"] / value["seconds"], 6)


@HAVE
class Closed(Simulated):
    """Times by hand. SimGrid sends 16 bytes before a large message."""

    def near(self, seconds, latency_ns, size):
        self.assertAlmostEqual(seconds, latency_ns * 1e-9 + size / RATE, delta=3e-9)

    def test_one_flow(self):
        self.near(self.seconds("node[0001-0002]", "0 1 25000000"), 2 * HOST_NS, 25000000)
        self.near(self.seconds("node[0001,0005]", "0 1 25000000"), 2 * HOST_NS + 2 * SWITCH_NS, 25000000)
        self.near(self.seconds("node[0001-0002]", "0 1 2147483647"), 2 * HOST_NS, 2147483647)

    def test_both_ways_at_once(self):
        self.near(self.seconds("node[0001-0002]", "0 1 25000000", "1 0 25000000"), 2 * HOST_NS, 25000000)

    def test_two_flows(self):
        """Into one host, over one uplink, over two."""
        platform, far = self.platform(), 2 * HOST_NS + 2 * SWITCH_NS
        self.near(self.seconds("node[0001-0003]", "0 2 25000000", "1 2 25000000"), 2 * HOST_NS, 50000000)
        up = {host: platform.route("node0001", host)[1] for host in HOSTS[4:8]}
        first = next(iter(up))
        same = next(host for host in up if host != first and up[host] == up[first])
        other = next(host for host in up if up[host] != up[first])
        for second, size in ((same, 50000000), (other, 25000000)):
            self.near(self.seconds(f"node[0001-0002],{first},{second}", "0 2 25000000", "1 3 25000000"), far, size)

    def test_a_large_message(self):
        value = self.value("--hosts", "node[0001-0002]", "--pattern", "ring", "--bytes", "1G")
        self.near(value["seconds"], 2 * HOST_NS, 1 << 30)
        self.assertEqual([(link["bytes"], link["rate_gbps"]) for link in value["links"]], [(1 << 30, 200)] * 3)
        self.assertGreater(value["links"][0]["share"], 0.9999)

    def test_jobs_share_a_cable(self):
        platform = self.platform()
        first, second = [host for host in HOSTS[4:8] if platform.route("node0001", host)[1] == platform.route("node0001", "node0005")[1]]
        value = self.value("--hosts", f"node0001,{first};node0002,{second}", "--pattern", self.matrix("0 1 25000000"))
        self.assertEqual([job["hostlist"] for job in value["jobs"]], [f"node0001,{first}", f"node0002,{second}"])
        for job in value["jobs"]:
            self.near(job["alone_seconds"], 2 * HOST_NS + 2 * SWITCH_NS, 25000000)
            self.near(job["seconds"], 2 * HOST_NS + 2 * SWITCH_NS, 50000000)
        self.assertEqual(value["links"][0]["bytes"], 50000000)
        self.fullest(value, [("node0001", first, 25000000), ("node0002", second, 25000000)])

    def test_jobs_end_at_their_own_time(self):
        value = self.value("--hosts", "node[0001-0002];node[0001,0005]", "--pattern", self.matrix("0 1 25000000"))
        near, far = (job["seconds"] for job in value["jobs"])
        self.assertLess(near, far)
        self.assertEqual(value["seconds"], far)

    def test_ranks_of_one_host(self):
        value = self.value("--hosts", "node[0001-0002]", "-n", "4", "--pattern", self.matrix("0 1 25000000", "2 3 10"))
        self.assertEqual(value["links"], [])
        self.assertAlmostEqual(value["seconds"], 25000000 / 100e9, delta=3e-9)
        value = self.value("--hosts", "node[0001-0002]", "-n", "4", "--pattern", self.matrix("1 2 25000000"))
        self.near(value["seconds"], 2 * HOST_NS, 25000000)


@HAVE
class Patterns(Simulated):
    def test_bytes_of_cables(self):
        for name, messages in (("alltoall", alltoall(16, 1000)), ("ring", ring(16, 1000)), ("allreduce", allreduce(16, 1000)),
                               ("halo3", halo3((4, 2, 2), 1000))):
            with self.subTest(name):
                value = self.value("--hosts", "node[0001-0016]", "--pattern", name, "--bytes", "1000")
                self.assertEqual((value["ranks"], value["messages"]), (16, len(messages)))
                self.fullest(value, [(HOSTS[a], HOSTS[b], size) for a, b, size in messages])

    def test_ranks_fill_hosts(self):
        """Two ranks a host, and ranks that fill not all hosts evenly."""
        for n, at in ((8, (0, 0, 1, 1, 2, 2, 3, 3)), (5, (0, 0, 1, 2, 3)), (3, (0, 1, 2))):
            value = self.value("--hosts", "node[0003-0006]", "-n", str(n), "--pattern", "alltoall", "--bytes", "77")
            self.fullest(value, [(HOSTS[2 + at[a]], HOSTS[2 + at[b]], size) for a, b, size in alltoall(n, 77)])

    def test_fabrics(self):
        for spec in ("fattree3:4", "dragonfly:2,4,2", "torus:3,3,3:1", "rails:2,4,8,4:0"):
            snapshot(spec, self.rundir)
            lost = int(spec.startswith("rails"))
            for pattern in PATTERNS:
                with self.subTest(spec, pattern=pattern):
                    value = self.value("--hosts", "node[0001-0016]", "--pattern", pattern, "--bytes", "64K")
                    self.assertEqual(self.complaint.count("\n"), lost)
                    # no cable has more bytes than it can carry
                    self.assertTrue(all(0 < link["share"] <= 1 for link in value["links"]))
                    self.assertGreater(value["seconds"], 65536 / 16 / RATE)

    def test_text(self):
        out = self.simulate("--hosts", "node[0001-0002]", "--pattern", "ring").splitlines()
        self.assertEqual(out[0], "node[0001-0002]")
        self.assertRegex(out[1], r"^2 ranks, 2 messages: 0\.00004271\d s$")
        self.assertEqual(out[3], "node0001:HCA-1 port 1 -> leaf1 port 1: 1048576 bytes, 98.2 %")
        self.assertEqual(len(out), 6)

    def test_simgrid_fails(self):
        """It says why: here a host that it does not find."""
        with open(shutil.which("smpirun"), encoding="utf-8") as file:
            programs = re.search('"(/[^"\\n]*)/smpireplaymain"', file.read()).group(1)
        fake = os.path.join(self.rundir, "smpimain")
        lab.replace_file(fake, f"#!/bin/sh\necho nobody > hosts\nshift\nexec {programs}/smpimain {programs}/smpireplaymain \"$@\"\n")
        os.chmod(fake, 0o755)
        lab.replace_file(os.path.join(self.rundir, "smpireplaymain"), "")
        smpirun = os.path.join(self.rundir, "smpirun")
        lab.replace_file(smpirun, f'"{self.rundir}/smpimain" "{self.rundir}/smpireplaymain"\n')
        self.simulate("--hosts", "node0001", "--pattern", "ring", status=1, FABRICD_SMPIRUN=smpirun)
        self.assertRegex(self.complaint, f"^fabricctl: SimGrid failed: {fake}: .*nobody")


class Without(Simulated):
    """What needs no SimGrid."""

    def bad(self, status, complaint, *args, **env):
        self.simulate(*args, status=status, **env)
        self.assertEqual(self.complaint, f"fabricctl: {complaint}\n")

    def test_no_simgrid(self):
        self.bad(1, "no SimGrid: no smpirun in PATH: install SimGrid 3.32 or later (Debian: libsimgrid-dev)",
                 "--hosts", "node0001", "--pattern", "ring", PATH="/nowhere")
        self.bad(1, f"no SimGrid: {__file__} names no smpimain and smpireplaymain that can be run",
                 "--hosts", "node0001", "--pattern", "ring", FABRICD_SMPIRUN=__file__)
        self.bad(1, "no SimGrid: cannot read /nowhere/smpirun",
                 "--hosts", "node0001", "--pattern", "ring", FABRICD_SMPIRUN="/nowhere/smpirun")

    def test_hosts(self):
        for status, hosts, complaint in (
                (1, "node0001,nobody", "no host nobody: plane ib0: see fabricctl devices"),
                (2, "node[0001", "not a list of hosts: character 5: a bracket is not closed: --hosts node[0001"),
                (2, "node0001;node[0002", "not a list of hosts: character 5: a bracket is not closed: --hosts node[0002"),
                (2, ";node0001", "an empty list: --hosts ;node0001"),
                (2, "node0001,node0001", "host node0001: it is in the list of a job twice"),
                (2, "node0001;node[0002-0003]", "no number of ranks: the lists have 1 and 2 hosts: give -n RANKS"),
                (2, ";".join(["node0001"] * 65), "too many jobs: --hosts: there are at most 64 lists")):
            with self.subTest(hosts):
                self.bad(status, complaint, "--hosts", hosts, "--pattern", "ring")
        self.bad(2, "too many ranks: -n 513: 2 hosts, with at most 256 ranks each", "--hosts", "node[0001-0002]", "-n", "513",
                 "--pattern", "ring")
        snapshot("fattree2:4,2,8", self.rundir, "ib1", "2", "4")
        self.bad(1, "no host node0017: plane ib0: see fabricctl devices", "--hosts", "node[0001,0017]", "--pattern", "ring")

    def test_patterns(self):
        hosts = "--hosts", "node[0001-0004]", "--pattern"
        self.bad(2, "no such pattern, and no such file: --pattern x: there are alltoall, ring, halo3, allreduce", *hosts, "x")
        self.bad(2, "one or the other: --bytes and a file, which has the bytes of each message", *hosts, self.matrix("0 1 1"), "--bytes", "1")
        self.bad(1, "too many messages: the pattern has more than 2000000: give fewer ranks", "--hosts", "node[0001-0016]", "-n", "1500",
                 "--pattern", "alltoall")
        form = "not FROM TO BYTES, with ranks from 0 and at most 2147483647 bytes"
        for lines, complaint in ((["0 1 5", "", "# more", "4 0 5"], "line 4: rank 4: the job has ranks 0 to 3: see -n"),
                                 (["0 4 5"], "line 1: rank 4: the job has ranks 0 to 3: see -n"),
                                 (["0 1"], f"line 1: {form}: 0 1"), (["0 1 2 3"], f"line 1: {form}: 0 1 2 3"),
                                 (["0 -1 2"], f"line 1: {form}: 0 -1 2"), (["0 1 2147483648"], f"line 1: {form}: 0 1 2147483648"),
                                 (["0 1 5x"], f"line 1: {form}: 0 1 5x"), ([], "no message"), (["0 1 0"], "no message"),
                                 (["a\0b"], "not a text: give lines FROM TO BYTES")):
            with self.subTest(lines):
                self.bad(1, f"{self.file}: {complaint}", *hosts, self.matrix(*lines))
        lab.replace_file(self.file, "0 1 100\n1 0 10")
        self.bad(1, f"{self.file}: cut: its last line has no end", *hosts, self.file)
        self.bad(1, f"cannot read {self.rundir}: give a file that you may read", *hosts, self.rundir)

    def test_options(self):
        for bad in ("0", "x", "1.5", "2G", "1KB", "-1", "2147483648"):
            self.bad(2, f"no number of bytes: --bytes {bad}: give 1 to 2147483647, as 4096, 64K, 1M", "--hosts", "node0001",
                     "--pattern", "ring", f"--bytes={bad}")
        self.bad(2, "no CSV: simulate prints text or JSON", "--hosts", "node0001", "--pattern", "ring", "--format", "csv")
        self.bad(2, "too few options: usage: fabricctl simulate --hosts LIST --pattern alltoall, ring, halo3, allreduce or a file",
                 "--hosts", "node0001")

    def test_interrupt(self):
        """SimGrid ends, and the folder is removed."""
        fifo = os.path.join(self.rundir, "fifo")
        os.mkfifo(fifo)
        fake = os.path.join(self.rundir, "smpimain")
        lab.replace_file(fake, f"#!/bin/sh\necho $$ > {fifo}\nexec sleep 1000\n")
        os.chmod(fake, 0o755)
        lab.replace_file(os.path.join(self.rundir, "smpireplaymain"), "")
        smpirun = os.path.join(self.rundir, "smpirun")
        lab.replace_file(smpirun, f'"{self.rundir}/smpimain" "{self.rundir}/smpireplaymain"\n')
        for number in (signal.SIGTERM, signal.SIGINT):
            child = self.start("simulate", "--hosts", "node0001", "--pattern", "ring", env={"TMPDIR": self.tmp, "FABRICD_SMPIRUN": smpirun})
            with open(fifo, encoding="ascii") as file:
                pid = int(file.read())
            (folder,) = os.listdir(self.tmp)
            self.assertEqual(os.stat(os.path.join(self.tmp, folder)).st_mode & 0o777, 0o700)
            self.assertEqual(sorted(os.listdir(os.path.join(self.tmp, folder))), ["hosts", "platform.xml", "trace", "traces"])
            child.send_signal(number)
            _, err = child.communicate(timeout=lab.HUNG)
            self.assertEqual((child.returncode, err), (1, "fabricctl: interrupted\n"))
            self.assertEqual(os.listdir(self.tmp), [])
            self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_no_folder(self):
        os.rmdir(self.tmp)
        smpirun = shutil.which("smpirun")
        if smpirun is None:
            self.skipTest("no smpirun here (libsimgrid-dev)")
        self.ctl("simulate", "--hosts", "node0001", "--pattern", "ring", status=1, env={"TMPDIR": self.tmp})
        self.assertEqual(self.complaint, f"fabricctl: cannot make a folder in {self.tmp}: No such file or directory: set TMPDIR\n")


if __name__ == "__main__":
    unittest.main()
