"""The configuration of a fabricd that other users ask, or that runs as another user. test/sim/test_configuration.py has the rest."""
import os
import pwd
import signal
import subprocess
import unittest

import lab

FORMATS = ("slurm-tree, slurm-block, slurm-yaml, slurm-torus3d, slurm-ring, flux-jgf, k8s-labels, volcano, nodemap, hostlist, rankfile, mpich-coords, topograph, topograph-graph, "
           "ibnetdiscover, dot, graphml, simgrid, json, npy, csv")
GEOMETRY = ("slurm-torus3d", "slurm-ring")  # a tree has none: test_newer_geometry.py


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = lab.tmpdir()
        self.capture = os.path.join(self.dir, "fabric.txt")
        lab.replace_file(self.capture, lab.fabric("fattree2:2,2,2", "capture"))

    def start(self, args=(), **options):
        """A daemon with sections that are kept to be changed."""
        self.daemon = lab.Fabricd(args=args, start=False)
        self.sections = {"fabricd": {"probe": f"file:{self.capture}", "rundir": self.daemon.rundir, "store": self.daemon.store, **options}}
        self.daemon.configure(self.sections)
        self.daemon.start()
        self.addCleanup(self.daemon.stop)
        return self.daemon

    def reload(self, sections, *lines):
        """What it answers to a file that has these settings, too."""
        self.daemon.configure({**self.sections, **sections})
        done = self.daemon.ctl("reload")
        self.assertEqual((done.returncode, done.stderr, done.stdout.splitlines()), (0, "", list(lines)))

    def in_force(self, section, name):
        """(value, where it comes from)"""
        (row,) = [row for row in self.daemon.ctl_json("config") if (row["section"], row["name"]) == (section, name)]
        return row["value"], row["from"]


class Reload(Case):
    @unittest.skipIf(os.geteuid() != 0, "only root can try as another user")
    def test_other_users_and_the_command_line(self):
        daemon = self.start(args=["--interval", "3000"])
        for name in ("reload", "config"):
            done = daemon.ctl(name, user="nobody")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{name}: uid {pwd.getpwnam('nobody').pw_uid} may not do that", done.stderr)
        self.assertIn("log: uid", daemon.ctl("log", "debug", user="nobody").stderr)
        self.assertEqual(daemon.ctl("check", user="nobody").stdout, "generation 1: no findings\n")
        for command in (["verify"], ["expect", "node0001", "--replace"], ["backup", os.path.join(self.dir, "backup.db")]):
            done = daemon.ctl(*command, user="nobody")
            self.assertEqual((done.returncode, done.stdout), (1, ""), done)
            self.assertRegex(done.stderr, rf"\Afabricctl: {command[0]}: uid \d+ may not do that[^\n]*\n\Z")
        self.reload({"security": {"admins": "nobody"}}, "changed: [security] admins")
        self.assertEqual(daemon.ctl("refresh", user="nobody").returncode, 0)
        self.daemon.configure({**self.sections, "fabricd": {**self.sections["fabricd"], "interval": 5}})
        daemon.hup()
        self.assertEqual(daemon.ctl("refresh", "--release", user="nobody").returncode, 1)
        self.assertEqual(self.in_force("fabricd", "interval"), ("3000", "command line"))  # it goes over the file
        self.assertEqual(daemon.status()["interval"], 3000)

    def test_a_restore_is_asked_for(self):
        """A reload meanwhile is answered, or nobody is there to answer for a moment; the restore is done once."""
        daemon = self.start()
        backup = os.path.join(self.dir, "backup.db")
        self.assertEqual(daemon.ctl("backup", backup).returncode, 0)
        self.daemon.configure({**self.sections, "changes": {"debounce": 7}})
        restore = lab.spawn([lab.program("fabricctl"), "--rundir", daemon.rundir, "restore", backup],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while restore.poll() is None:
            done = daemon.ctl("reload")
            self.assertIn(done.returncode, (0, 1))
            self.assertEqual(done.stderr.count("\n"), done.returncode, done.stderr)
        self.assertEqual(restore.returncode, 0)
        daemon.wait_ready()
        self.assertEqual(self.in_force("changes", "debounce")[0], "7")
        self.assertEqual(daemon.log().count("is restored"), 1)

    def test_a_node(self):
        node = lab.Fabricd(config={"fabricd": {"role": "node", "scheduler": "127.0.0.1:9", "probe": "ethernet", "store": None,
                                               "interval": 3600}}, start=False)
        node.start(wait=False)
        node.wait_up()
        self.addCleanup(node.stop)
        scans = node.until("scan", after=0)["count"]
        lab.replace_file(node.conf, f"[fabricd]\nrole = node\nscheduler = 127.0.0.1:9\nprobe = ethernet\n"
                                    f"rundir = {node.rundir}\ninterval = 1\n")
        node.process.send_signal(signal.SIGHUP)
        node.until("scan", after=scans)
        lab.replace_file(node.conf, "[fabricd]\nrole = node\nprobe = ibnetdisc\n")
        done = node.ctl("reload")
        self.assertEqual((done.returncode, done.stderr.splitlines()), (1, [
            f"fabricctl: {node.conf}:2:8: the role node needs the host of its scheduler: give "
            "--scheduler HOST[:PORT]",
            f'fabricctl: {node.conf}:3:9: probe "ibnetdisc" reads the fabric: it is for the role scheduler only',
            "fabricctl: the configuration is rejected: 2 mistakes; the old settings stay in force"]))

    def test_formats_are_those_of_fabricctl(self):
        daemon = self.start()
        names = FORMATS.split(", ")
        self.daemon.configure({**self.sections, "exports.files": {name: name for name in names}})
        done = daemon.run_once("--check-config")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name in names:
            done = daemon.ctl("export", name, "-o", os.path.join(self.dir, name))
            self.assertEqual(done.returncode, 1 if name in GEOMETRY else 0, done.stderr)
        for wrong in ("", "dott", "do", "dot,", "npy, csv", "-o"):
            self.daemon.configure({**self.sections, "exports.files": {"dot": wrong}})
            done = daemon.run_once("--check-config")
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, rf'^fabricd: {daemon.conf}:\d+:\d+: dot is "{wrong}": give a format of fabricctl export, '
                                          rf"then its options: {FORMATS}\n$")
        self.assertTrue(daemon.ctl("export", "dott").stderr.endswith(f"no such format: dott: there are {FORMATS}\n"))


@unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
class StoreOfTheService(Case):
    """--check-config judges for the user that the service runs as: this one, or asked by root the user fabricd."""

    def setUp(self):
        super().setUp()
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}}, start=False)
        self.folder = os.path.join(self.dir, "store")
        os.mkdir(self.folder)
        self.store = os.path.join(self.folder, "fabricd.db")
        self.daemon.configure({"fabricd": {"rundir": self.daemon.rundir, "probe": f"file:{self.capture}",
                                           "store": self.store}})
        for folder in (self.dir, self.daemon.dir):
            os.chmod(folder, 0o755)
        self.daemon.binary, self.daemon.env = lab.readable_copy(self.daemon.binary, self.daemon.env)
        os.chmod(os.path.dirname(self.daemon.binary), 0o755)

    def check(self, who, **options):
        good = (0, "the configuration is good\n", "")
        done = self.daemon.run_once("--check-config", **options)
        wrong = f'fabricd: {self.daemon.conf}:4:9: store: "%s" cannot be written by user {who}: Permission denied\n'
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", wrong % self.folder))
        os.chown(self.folder, 65534, 65534)
        done = self.daemon.run_once("--check-config", **options)
        self.assertEqual((done.returncode, done.stdout, done.stderr), good)
        with open(self.store, "w", encoding="utf-8"):  # as one that root restored
            pass
        os.chmod(self.store, 0o600)
        done = self.daemon.run_once("--check-config", **options)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", wrong % self.store))
        os.chown(self.store, 65534, 65534)
        done = self.daemon.run_once("--check-config", **options)
        self.assertEqual((done.returncode, done.stdout, done.stderr), good)

    def test_asked_by_the_user(self):
        self.check("nobody", user=65534, group=65534, extra_groups=[])
        os.unlink(self.store)
        os.rmdir(self.folder)
        done = self.daemon.run_once("--check-config")
        self.assertEqual((done.returncode, done.stderr), (
            2, f'fabricd: {self.daemon.conf}:4:9: store: there is no folder "{self.folder}": make it first\n'))

    def test_asked_by_root(self):
        lab.require("unshare", "mount")
        if lab.run(["unshare", "--mount", "true"]).returncode != 0:
            self.skipTest("no namespaces here")
        users = os.path.join(self.dir, "passwd")
        with open("/etc/passwd", encoding="utf-8") as file:
            known = [line for line in file if not line.startswith("fabricd:")]
        lab.replace_file(users, "".join(known) + "fabricd:x:65534:65534::/nonexistent:/bin/false\n")
        command = self.daemon.command
        self.daemon.command = lambda *args: ["unshare", "--mount", "sh", "-c",
                                             f'mount --bind {users} /etc/passwd && exec "$@"', "sh", *command(*args)]
        self.check("fabricd")

    def test_metrics(self):
        """Of the service's user, too: the node exporter's folder is root's."""
        os.chown(self.folder, 65534, 65534)
        theirs = os.path.join(self.dir, "collector")
        os.mkdir(theirs)
        self.daemon.configure({"fabricd": {"rundir": self.daemon.rundir, "probe": f"file:{self.capture}", "store": self.store},
                               "metrics": {"file": f"{theirs}/fabricd.prom"}})
        done = self.daemon.run_once("--check-config", user=65534, group=65534, extra_groups=[])
        self.assertEqual(done.returncode, 2)
        self.assertIn(f'file: "{theirs}" cannot be written by user nobody: Permission denied; permit it, as by '
                      "setfacl -m u:nobody:rwx, or set [metrics] listen instead\n", done.stderr)
        os.chown(theirs, 65534, 65534)
        self.assertEqual(self.daemon.run_once("--check-config", user=65534, group=65534, extra_groups=[]).returncode, 0)

if __name__ == "__main__":
    unittest.main()
