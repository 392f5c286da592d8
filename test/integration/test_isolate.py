"""A module sees nothing of the machine's services: a host with real ones is imitated, and a module runs there."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import hosts
import lab

# A module of tests that pass where no service can be seen, and that fail on a host that has them all.
MODULE = '''
import socket
import subprocess
import unittest


class Services(unittest.TestCase):
    def test_munged(self):
        self.assertNotEqual(subprocess.run(["munge", "-n"], capture_output=True).returncode, 0)

    def test_lldpd(self):
        with socket.socket(socket.AF_UNIX) as one:
            self.assertRaises(FileNotFoundError, one.connect, "/run/lldpd.socket")

    def test_ports(self):
        for port in (6817, 6818, 6819):
            with self.subTest(port), socket.socket() as one:
                self.assertRaises(ConnectionRefusedError, one.connect, ("127.0.0.1", port))

    def test_simulator(self):
        with open("/proc/self/net/unix", encoding="ascii", errors="replace") as file:
            self.assertNotIn("@sim:", file.read())


if __name__ == "__main__":
    unittest.main()
'''
LISTEN = """
import socket, time
them = [socket.create_server(("", port)) for port in (6817, 6818, 6819)]
print("listening", flush=True)
time.sleep(3600)
"""
OTHER_USER = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
WITHOUT_NAMESPACES = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")


class Host(unittest.TestCase):
    """munged, lldpd and ibsim at their usual places, and programs at the ports of Slurm's daemons."""

    @classmethod
    def setUpClass(cls):
        hosts.need()
        lab.require("munged", "munge", "lldpd", "lldpcli", "ibsim", "setpriv")
        cls.host = host = hosts.Host("slurm")
        cls.addClassCleanup(host.stop)
        host.hide("/run")
        host.do("mkdir", "/run/munge", "/run/lldpd")
        munged = hosts.Munged(host)
        cls.addClassCleanup(munged.stop)
        munged.show_on(host)
        start = [*host.prefix(), lab.find_command("lldpd"), "-d", "-u", "/run/lldpd.socket", "-O", "/dev/null"]
        cls.start(start)
        lab.wait_for(lambda: host.run(["lldpcli", "show", "interfaces"]).returncode == 0, what="lldpd")
        netfile = os.path.join(lab.tmpdir(), "net")
        lab.replace_file(netfile, lab.fabric("fattree2:4,2,4"))
        cls.start([*host.prefix(), lab.find_command("ibsim"), "-s", netfile], wait="sim> ", stdin=subprocess.PIPE)
        cls.start([*host.prefix(), sys.executable, "-c", LISTEN], wait="listening")

    @classmethod
    def start(cls, argv, wait=None, **options):
        process = lab.spawn(argv, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **{"stdin": subprocess.DEVNULL, **options})
        cls.addClassCleanup(lab.kill_group, process)
        lines = lab.Lines(process.stdout)
        if wait is not None:
            lines.wait(wait)

    def run_module(self, path, *which, become=()):
        """run_test.py with a module on the host."""
        folder = tempfile.mkdtemp(prefix="lab.", dir="/tmp")  # the path of a socket in it is short enough
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o1777)
        done = self.host.run([*become, sys.executable, "-B", os.path.join(lab.HERE, "run_test.py"), path, *which],
                             env=dict(os.environ, PYTHONPATH=os.path.dirname(path), TMPDIR=folder), timeout=120)
        self.assertEqual(os.listdir(folder), [], "the module leaves files")
        return done

    def module(self):
        path = os.path.join(lab.tmpdir(), "test_seen.py")
        lab.replace_file(path, MODULE)
        return path

    def test_the_host_has_them_all(self):
        """Without isolation each test of the module fails: the others below can fail, too."""
        done = self.host.run([sys.executable, "-B", self.module()])
        self.assertRegex(done.stderr, r"FAILED \(failures=6\)")  # three of them are ports

    def test_a_module_sees_none(self):
        """As root, and as another user where the kernel gives users a namespace."""
        users = [()]
        if self.host.run([*OTHER_USER, "unshare", "--user", "--mount", "true"]).returncode == 0:
            users.append(OTHER_USER)
        for become in users:
            done = self.run_module(self.module(), become=become)
            self.assertEqual((done.returncode, done.stderr.splitlines()[-1]), (0, "cases: 4 passed, 0 failed, 0 skipped"), done.stderr)

    def test_where_that_is_refused_a_daemon_is_not_started(self):
        """Neither beside a munged that is not the test's; without one it would be."""
        done = self.run_module(os.path.join(lab.HERE, "test_untrusted_clients.py"), "FirstMessages.test_served", become=WITHOUT_NAMESPACES)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("skipped: 1: the machine's munged answers, and this user cannot have a /run of his own: unshare: "
                      "Operation not permitted", done.stderr)


if __name__ == "__main__":
    unittest.main()
