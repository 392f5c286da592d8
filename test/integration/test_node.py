"""The role node: hosts that deliver what they have, mirror what is published, and go on when the scheduler is away.
What is logic: test/sim/test_node.py and test_node_restart.py.

Hosts are namespaces with cables between them; each has a munged of its own that shares one key.
"""
import json
import os
import re
import signal
import unittest

import fabric_text
import hosts
import lab
import versions

DEVICES, COORDINATES, NUMBER, PLANE = "pmix.fab.devs", "pmix.fab.coord", "pmix.fab.nverts", "pmix.fab.plane"
FABRIC = "fattree2:4,2,16"
SCHEDULER, NODES = "10.91.1.1", {"node0001": "10.91.1.2", "node0002": "10.91.2.2"}
PENDING, UPDATED = "PMIX_FABRIC_UPDATE_PENDING", "PMIX_FABRIC_UPDATED"


def read(path):
    with open(path, "rb") as file:
        return file.read()


def snapshots(daemon):
    """What stands in a run directory, by file."""
    return {name: read(os.path.join(daemon.rundir, name)) for name in os.listdir(daemon.rundir)
            if name.endswith(".snap")}


def facts(registered):
    """What a tool was told, without where the snapshot is."""
    return [line for line in registered.splitlines() if not line.startswith("pmixfab.snapshot")]


def listening(pid):
    """The addresses that a process listens at, of its own network namespace."""
    inodes = set(lab.descriptors(pid).values())
    found = []
    for kind, state, listens, inode, address in (("tcp", 3, "0A", 9, 1), ("tcp6", 3, "0A", 9, 1), ("unix", 3, "00010000", 6, 7)):
        with open(f"/proc/{pid}/net/{kind}", encoding="utf-8", errors="replace") as file:
            rows = [line.split() for line in file.read().splitlines()[1:]]
        found += [row[address] for row in rows if row[state] == listens and f"socket:[{row[inode]}]" in inodes]
    return found


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        hosts.need()
        cls.hosts = {name: hosts.Host(name) for name in ("scheduler", *NODES)}
        for host in cls.hosts.values():
            cls.addClassCleanup(host.stop)
        center = cls.hosts["scheduler"]
        center.cable(cls.hosts["node0001"], SCHEDULER, NODES["node0001"])
        center.cable(cls.hosts["node0002"], "10.91.2.1", NODES["node0002"])
        cls.hosts["node0002"].do("ip", "route", "add", "10.91.1.0/24", "via", "10.91.2.1")
        cls.munged = {}
        for name, host in cls.hosts.items():
            host.knows({"scheduler": SCHEDULER, **NODES})
            munged = hosts.Munged(host, NODES.get(name, SCHEDULER), next(iter(cls.munged.values()), None))
            cls.addClassCleanup(munged.stop)
            munged.show_on(host)
            cls.munged[name] = munged

    def setUp(self):
        self.dir = lab.tmpdir()
        self.capture = os.path.join(self.dir, "fabric.txt")
        self.whole = lab.fabric(FABRIC, "capture")
        lab.replace_file(self.capture, self.whole)
        self.scheduler = hosts.Fabricd(
            self.hosts["scheduler"],
            config={"fabricd": {"probe": f"file:{self.capture}", "host": "scheduler"}, "security": {"remote": "yes"},
                    "nodes": {"debounce_ms": 20}})
        self.addCleanup(self.end, self.scheduler)

    def end(self, daemon):
        if daemon.alive():
            self.assertEqual(daemon.stop(), 0)
        elif daemon.process is not None:
            daemon.process.wait()

    def record(self, name, firmware=None):
        """A recorded machine; with a firmware one that has an HCA, that of the swept fabric. Its path."""
        path = os.path.join(self.dir, name + ".json")
        device = self.scheduler.ctl_json("devices", name)[0]
        item = {"source": "verbs", "name": "mlx5_0", "port": "1", "port-guid": device["guid"], "firmware": firmware}
        lab.replace_file(path, json.dumps({"host": name, "items": [item] if firmware else []}))
        return path

    def published(self, firmware):
        """Is this served by the scheduler?"""
        return any(firmware.encode() + b"\0" in snapshot for snapshot in snapshots(self.scheduler).values())

    def wait_published(self, firmware):
        self.scheduler.until_true(lambda: self.published(firmware), "updated", lambda: f"firmware {firmware} is not published")

    def node(self, name="node0001", start=True, firmware=None, serve=False, scheduler=None, **fabricd):
        """serve: it has a PMIx server for the programs of its host."""
        settings = {"probe": f"verbs:{self.record(name, firmware)}", **fabricd}
        node = hosts.Node(self.hosts[name], name, scheduler or SCHEDULER, start=start,
                          config={"fabricd": settings, **({"node": {"serve": "yes"}} if serve else {})})
        self.addCleanup(self.end, node)
        return node

    def tool(self, daemon, *args, program="stock_tool"):
        done = lab.run([*daemon.on.prefix(), lab.program(program), daemon.uri(), *args], env=daemon.tool_env(), cwd="/",
                       timeout=20)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def is_stale(self, daemon):
        """As a program on the host is told over PMIx."""
        done = lab.run([*daemon.on.prefix(), lab.program("fabricctl"), "--uri", daemon.uri(), "--format", "json",
                        "status"], env=daemon.tool_env(), cwd="/", timeout=20)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["stale"]

    def change(self, text):
        lab.replace_file(self.capture, text)
        return self.scheduler.refresh()["generation"]

    def equal(self, *nodes):
        """Each node's files are the scheduler's, byte by byte."""
        def follows(status):
            return status["generation"] == self.scheduler.status()["generation"] and not status["stale"]
        for node in nodes:
            node.wait_status(follows, "to follow")
            self.assertEqual(snapshots(node), snapshots(self.scheduler))
        self.assertTrue(snapshots(self.scheduler))


class Mirror(Case):
    def test_the_same_as_at_the_scheduler(self):
        """Two nodes deliver, mirror and tell the programs of their hosts, whatever comes."""
        nodes = [self.node(name, serve=True, firmware=f"20.31.{name[-4:]}") for name in NODES]
        for name, node in zip(NODES, nodes):
            node.wait_delivered()
            self.wait_published(f"20.31.{name[-4:]}")
        self.equal(*nodes)
        direct = facts(self.tool(self.scheduler, "register"))
        self.assertIn("pmix.fab.nverts size 64", direct)
        for node in nodes:
            self.assertEqual(facts(self.tool(node, "register")), direct)
            self.assertEqual(self.tool(node, "show", program="fab_tool"), self.tool(self.scheduler, "show", program="fab_tool"))
        node = nodes[0]
        watch = lab.Watch([*node.on.prefix(), lab.program("stock_tool"), node.uri(), "watch"], node.tool_env())
        self.addCleanup(watch.stop)
        watch.wait("watching")
        cut = fabric_text.without_cables(fabric_text.without_cables(self.whole, "leaf1", "spine1"), "leaf1", "spine2")
        self.change(cut)  # two planes
        self.equal(*nodes)
        self.assertEqual(len(snapshots(node)), 2)
        watch.wait(f"{UPDATED}.*\n{UPDATED}.*\n")
        self.record("node0001", "20.40.2000")
        self.assertTrue(self.scheduler.control("refresh", host="node0001")["ok"])
        node.logged("the scheduler requests a scan")
        self.wait_published("20.40.2000")

    def test_nobody_can_connect_to_it(self):
        """It listens on its control socket alone, before and after connections to the scheduler were lost; and it is small."""
        node = self.node(firmware="20.31.1014")
        for end in (lambda: None, self.scheduler.kill9):
            end()
            if not self.scheduler.alive():
                node.wait_status(lambda status: status["stale"], "to notice")
                self.scheduler.start()
            self.equal(node)
            node.wait_delivered()
            self.assertEqual(listening(node.process.pid), [os.path.join(node.rundir, "control.sock")])
        self.assertEqual(node.children(""), [])
        self.assertFalse(os.path.exists(node.uri_path()))
        status = node.status()
        self.assertEqual((status["uri"], status["pmix"]), (None, None))
        self.assertIn("connected\n", node.ctl("status").stdout)
        self.assertEqual(json.loads(node.ctl("--format", "json", "status").stdout)["uri"], None)
        with open(f"/proc/{node.process.pid}/status", encoding="ascii") as file:
            if not lab.SANITIZE:  # sanitizers need memory of their own
                self.assertLess(int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)), 16 * 1024)

    def test_the_scheduler_away(self):
        node = self.node(serve=True)
        self.equal(node)
        before = snapshots(node)
        registered = facts(self.tool(node, "register"))
        self.assertFalse(self.is_stale(node))
        self.assertEqual(self.scheduler.stop(), 0)
        status = node.wait_status(lambda status: status["stale"], "to notice")
        self.assertFalse(status["connected"])
        self.assertIn("cannot be reached", status["stale_reason"])
        self.assertTrue(self.is_stale(node))
        self.assertEqual(facts(self.tool(node, "register")), registered)
        self.assertEqual(snapshots(node), before)
        self.scheduler.start()
        node.wait_status(lambda status: not status["stale"], "to find it again")
        self.assertFalse(self.is_stale(node))
        self.assertEqual(facts(self.tool(node, "register")), registered)

    def test_a_cable_that_is_cut(self):
        """No reset comes: the node notices, serves, and follows when the cable is there again."""
        node, center = self.node(serve=True), self.hosts["scheduler"]
        self.equal(node)
        registered = self.tool(node, "register")
        center.do("ip", "link", "set", "eth0", "down")
        self.addCleanup(center.do, "ip", "link", "set", "eth0", "up")
        self.assertEqual(facts(self.tool(node, "register")), facts(registered))
        status = node.wait_status(lambda status: status["stale"], "to notice")
        self.assertTrue(self.is_stale(node))
        self.assertTrue(os.path.exists(os.path.join(node.rundir, "stale")))
        self.assertRegex(status["stale_reason"], "^the scheduler (cannot be reached|did not answer in time)$")
        self.record("node0001", "20.40.2000")
        node.look()
        center.do("ip", "link", "set", "eth0", "up")
        self.wait_published("20.40.2000")
        self.equal(node)

    def test_its_pmix_server_is_lost(self):
        """Another one takes its place at the same address, and serves what was published meanwhile, too."""
        node = self.node(serve=True, firmware="20.31.1014")
        node.wait_delivered()
        self.wait_published("20.31.1014")
        self.equal(node)
        uri, lost = node.uri(), node.pmix_pid()
        os.kill(lost, signal.SIGKILL)
        self.change(fabric_text.without_cables(self.whole, "leaf1", "spine1"))
        self.equal(node)
        server = node.wait_status(lambda status: status["pmix"]["pid"] not in (None, lost), "to replace it")["pmix"]
        self.assertEqual((server["replaced"], node.uri()), (1, uri))
        self.assertEqual(facts(self.tool(node, "register")), facts(self.tool(self.scheduler, "register")))
        self.assertIn("fabricd_pmix_replaced_total 1\n", node.ctl("metrics").stdout)
        self.assertRegex(node.ctl("status").stdout, r"(?m)^pmix +process \d+.*; replaced once, last at ")
        self.record("node0001", "20.40.2000")
        node.look()
        self.wait_published("20.40.2000")

    def test_once(self):
        node = self.node(start=False, firmware="20.31.1014")
        done = node.run_once()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(snapshots(node)), ["ib0.snap"])
        self.wait_published("20.31.1014")
        self.scheduler.stop()
        self.assertEqual(node.run_once().returncode, 1)


class Local(Case):
    """A question about "this node" that is asked on a node is about that node, also without the scheduler."""

    def ask(self, node, *args):
        """[(key, the array's elements or the plain value)]"""
        answer = json.loads(self.tool(node, "query", *args, program="stock_chapter"))
        return [(key, value["value"]["elements"] if isinstance(value["value"], dict) else value["value"]) for key, value in answer]

    @staticmethod
    def hosts_of(devices):
        return [dict((key, value["value"]) for key, value in one["value"]["elements"])["pmix.hname"]
                for _, one in devices]

    def check(self, node, host):
        ((key, devices),) = self.ask(node, DEVICES)
        self.assertEqual((key, self.hosts_of(devices)), (DEVICES, [host]))
        ((_, coordinates),) = self.ask(node, COORDINATES)
        self.assertEqual(coordinates, self.ask(node, COORDINATES, f"pmix.hname=s:{host}")[0][1])
        self.assertEqual(len(coordinates), 1)

    def test_questions_about_this_node(self):
        nodes = {name: self.node(name, firmware=f"{name}.1", serve=True) for name in NODES}
        for name, node in nodes.items():
            self.wait_published(f"{name}.1")
            node.wait_ready()
            self.check(node, name)
        node = nodes["node0001"]
        # beside keys about a plane, and about another node
        answer = self.ask(node, ",".join((NUMBER, DEVICES, PLANE, COORDINATES, NUMBER)))
        self.assertEqual([key for key, _ in answer], [NUMBER, DEVICES, PLANE, COORDINATES, NUMBER])
        self.assertEqual((answer[0][1], answer[4][1]), (64, 64))
        self.assertEqual(self.hosts_of(answer[1][1]), ["node0001"])
        self.assertEqual(len(answer[3][1]), 1)
        ((_, devices),) = self.ask(node, DEVICES, "pmix.hname=s:node0007")
        self.assertEqual(self.hosts_of(devices), ["node0007"])
        # very many of them get an answer without anything in it
        n = 100 if versions.LATER else 1000  # a caller's library from 5.0 on sends each key as a query of its own
        done = lab.run([*node.on.prefix(), lab.program("stock_chapter"), node.uri(), "query", f"{n}*{DEVICES}",
                        f"{n}*some.key=s:x"], env=node.tool_env(), cwd="/")
        self.assertNotIn("pmix.hname", done.stdout)
        self.scheduler.stop()
        self.check(node, "node0001")


class Services(Case):
    """A name server or a munged that hangs holds up nothing else."""

    def test_names_of_nobody(self):
        """A name server is away on the scheduler's host: no node is refused for that, and none holds up others."""
        node = self.node(firmware="20.31.1014")
        node.wait_delivered()
        path = os.path.join(lab.tmpdir(), "resolv.conf")
        lab.replace_file(path, "nameserver 10.91.1.99\noptions timeout:1 attempts:2\n")  # questions get lost, and time out
        center = self.hosts["scheduler"]
        center.do("mount", "--bind", path, "/etc/resolv.conf")
        self.addCleanup(center.do, "umount", "/etc/resolv.conf")
        many = lab.Watch([*self.hosts["node0002"].prefix(), lab.program("deliver"), f"{SCHEDULER}:7135", "host=nowhere#,times=8,at_once=1"],
                         {**os.environ, "PMIX_MCA_psec": "munge"})
        self.addCleanup(many.stop)
        self.record("node0001", "20.40.2000")
        node.look()
        self.wait_published("20.40.2000")
        for _ in range(8):
            many.wait(r"^-13 0 nowhere\d: ")
        self.assertNotIn("-14", many.output.text)

    def hang(self, host):
        munged = self.munged[host].process
        munged.send_signal(signal.SIGSTOP)
        self.addCleanup(munged.send_signal, signal.SIGCONT)
        return munged

    def test_the_schedulers_munged_hangs(self):
        """The connected node's delivery waits, and is acknowledged when munged goes on."""
        node = self.node(firmware="20.1.1")
        node.wait_delivered()
        munged = self.hang("scheduler")
        self.record("node0001", "20.1.2")
        node.look()
        node.logged("no munged answers on the scheduler's host")
        self.assertFalse(self.published("20.1.2"))
        munged.send_signal(signal.SIGCONT)
        self.wait_published("20.1.2")
        node.wait_delivered()

    def test_the_nodes_munged_hangs(self):
        """A delivery waits for it, and goes on; the end of the node does not."""
        node = self.node(firmware="20.1.1")
        node.wait_delivered()
        munged = self.hang("node0001")
        for version, go_on in (("20.1.2", lambda: munged.send_signal(signal.SIGCONT)), ("20.1.3", None)):
            self.record("node0001", version)
            node.look()
            node.wait_status(lambda status: status["delivering"], "to deliver")
            self.assertFalse(self.published(version))
            if go_on:
                go_on()
                self.wait_published(version)
                node.wait_delivered()
                self.hang("node0001")
        self.assertEqual(node.stop(), 0)


class Devices(Case):
    def test_what_comes_and_goes(self):
        """An interface and an address: the node looks at once, and delivers."""
        node = self.node(probe="ethernet")
        node.wait_delivered()
        for command in ("link add spare7 type veth peer name spare8", "link set spare7 mtu 1400", "link del spare7"):
            before = node.status()["last_scan"]
            node.on.do("ip", *command.split())
            node.wait_status(lambda status, old=before: status["last_scan"] != old, f"to notice {command}")
        for command in ("addr add 10.99.0.1/24 dev eth0", "addr del 10.99.0.1/24 dev eth0"):
            before = node.wait_delivered()["held"]
            node.on.do("ip", *command.split())
            node.wait_status(lambda status, old=before: status["held"] != old, f"to deliver {command}")


if __name__ == "__main__":
    unittest.main()
