"""Callers on other hosts: through munge, or not at all. Hosts are namespaces with a cable between them."""
import os
import subprocess
import unittest

import hosts
import lab
import versions

FABRIC = "fattree2:4,2,16"
SERVER, CLIENT = "10.91.0.1", "10.91.0.2"


class Remote(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        hosts.need()
        cls.here, cls.there = hosts.Host("here"), hosts.Host("there")
        cls.addClassCleanup(cls.here.stop)
        cls.addClassCleanup(cls.there.stop)
        cls.here.cable(cls.there, SERVER, CLIENT)
        cls.munged = hosts.Munged()
        cls.addClassCleanup(cls.munged.stop)
        cls.munged.show_on(cls.here)
        cls.dir = lab.tmpdir()
        cls.capture = os.path.join(cls.dir, "fabric.txt")
        with open(cls.capture, "w", encoding="utf-8") as file:
            file.write(lab.fabric(FABRIC, "capture"))
        cls.daemon = cls.start(cls.here, {"remote": "yes"})
        cls.there.hide(cls.dir)
        cls.there.hide(cls.daemon.dir)

    @classmethod
    def start(cls, host, security, pmix=None, **options):
        daemon = hosts.Fabricd(host, config={"fabricd": {"probe": f"file:{cls.capture}"}, "security": security,
                                             "pmix": pmix or {}}, **options)
        cls.addClassCleanup(daemon.stop)
        return daemon

    def connect(self, host, program, *args, daemon=None, timeout=20, tree=lab.BUILD, **env):
        """A PMIx tool on a host; None where it was still waiting when the time was over."""
        daemon = daemon or self.daemon
        process = lab.spawn([*host.prefix(), os.path.join(tree, "bin", program), daemon.uri(), *args],
                            env=dict(daemon.tool_env(), **env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, cwd="/")
        try:
            out = process.communicate(timeout=timeout * lab.SLOW)[0]
            return subprocess.CompletedProcess(args, process.returncode, out)
        except subprocess.TimeoutExpired:
            return None
        finally:
            lab.kill_group(process)

    def test_with_munge_tools_of_each_version_are_answered(self):
        """And those of ours compute costs. Without munge, this server and those who come are as before."""
        host = self.guest()
        self.munged.show_on(host)
        for tree in filter(None, os.environ.get("FABRICD_TREES", lab.BUILD).split(":")):  # of ./dev compat
            with self.subTest(caller=tree):
                for psec in ("native", "none"):
                    self.refused(host, tree=tree, PMIX_MCA_psec=psec)
                done = self.connect(host, "stock_tool", "register", tree=tree)
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertIn("pmix.fab.nverts size 64\n", done.stdout)
                self.assertRegex(done.stdout, r"pmixfab\.snapshot bytes [1-9]\d+")
        self.assertNotEqual(host.run(["test", "-e", self.daemon.rundir + "/ib0.snap"]).returncode, 0)
        done = self.connect(host, "fab_tool", "show")
        self.assertEqual(done.returncode, 0, done.stdout)
        local = self.daemon.ctl_json("cost", "node0001", "node0064")["cost"]
        self.assertRegex(done.stdout, rf"(?m)^devices 64\ncost {local}$")

    def refused(self, host, **options):
        """The library on that side fails, or waits for ever: it is not told why it was turned away."""
        done = self.connect(host, "stock_tool", "register", timeout=1, **options)
        if done is not None:
            self.assertNotEqual(done.returncode, 0, options)
            self.assertNotIn("pmix.fab", done.stdout)

    def test_without_munge_or_with_another_key_nobody_gets_in(self):
        host, other = self.guest(), hosts.Munged()
        self.addCleanup(other.stop)
        for psec in ({}, {"PMIX_MCA_psec": "native"}, {"PMIX_MCA_psec": "munge"}):
            self.refused(host, **psec)
        other.show_on(host)
        self.refused(host)
        self.still_serves()

    def test_the_own_host_needs_munge_too(self):
        self.assertRegex(self.daemon.uri(), rf"tcp4://{SERVER}:\d+$")
        done = self.connect(self.here, "stock_tool", "register")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("pmix.fab.nverts size 64\n", done.stdout)
        self.refused(self.here, PMIX_MCA_psec="native")

    def test_it_is_off_unless_asked_for(self):
        daemon = self.start(self.here, {})
        self.assertIn("tcp4://127.0.0.1:", daemon.uri())
        port = daemon.uri().rsplit(":", 1)[1]
        listening = self.here.do("cat", "/proc/net/tcp").splitlines()[1:]
        mine = [line.split()[1] for line in listening if line.split()[1].endswith(f":{int(port):04X}")]
        self.assertEqual(mine, [f"0100007F:{int(port):04X}"])

    def test_without_a_munged_it_does_not_start(self):
        for left in (False, True):
            with self.subTest(socket_left=left):
                host = hosts.Host("bare")
                self.addCleanup(host.stop)
                if left:  # as a munged that was killed leaves it
                    munged = hosts.Munged()
                    munged.show_on(host)
                    munged.stop()
                    host.do("test", "-S", hosts.Munged.PLACE + "/munge.socket.2")
                daemon = self.start(host, {"remote": "yes"}, start=False)
                done = daemon.run_once("--foreground")
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r"fabricd error: pmix: .*remote = yes: .*munged")
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_host_without_a_network_is_told_so(self):
        host = hosts.Host("alone")
        self.addCleanup(host.stop)
        self.munged.show_on(host)
        if versions.PMIX >= (5,):  # the library does not start
            done = self.start(host, {"remote": "yes"}, start=False).run_once("--foreground")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "cannot start the PMIx server: .* needs a network interface besides the loopback")
            return
        daemon = self.start(host, {"remote": "yes"})
        self.assertRegex(daemon.log(), "warning: pmix: remote = yes, but the PMIx library listens at .*127.0.0.1")
        daemon.stop()

    def test_an_interface_can_be_chosen(self):
        """With its port; PMIx's own settings in the environment do not go over fabricd's."""
        third = hosts.Host("third")
        self.addCleanup(third.stop)
        self.here.cable(third, "10.92.0.1", "10.92.0.2")
        daemon = self.start(self.here, {"remote": "yes"}, {"listen": "10.92.0.0/24", "port": 24242},
                            env={"PMIX_MCA_ptl_base_ipv4_port": "24243"})
        self.assertTrue(daemon.uri().endswith("tcp4://10.92.0.1:24242"), daemon.uri())
        self.munged.show_on(third)
        third.hide(daemon.dir)
        done = self.connect(third, "fab_tool", "show", daemon=daemon)
        self.assertEqual(done.returncode, 0, done.stdout)

    # -- helpers

    def guest(self):
        """Another host behind the second one's cable: the same network, and mounts of its own."""
        host = hosts.Host("guest", network=self.there)
        self.addCleanup(host.stop)
        host.hide(self.dir)
        host.hide(self.daemon.dir)
        return host

    def still_serves(self):
        self.daemon.check_alive()
        host = self.guest()
        self.munged.show_on(host)
        done = self.connect(host, "fab_tool", "show")
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
