"""The installed service, run by a real systemd: start, status, reload, crash, hang, refusal, and what it may do."""
import json
import re
import unittest

import booted
import fabric_text
import lab

CAPTURE, STORE, RUNDIR = "/etc/fabric.txt", "/var/lib/fabricd/fabricd.db", "/run/fabricd"
LOCAL = ("hwloc", "verbs", "libfabric", "ucx", "ethernet", "lldp")
ERROR, WARNING, INFO = 3, 4, 6


def install(machine):
    """As an administrator installs it, without the package manager."""
    machine.do("cmake", "--install", lab.BUILD, "--prefix", "/usr", timeout=120)
    machine.do("ldconfig")
    machine.do("systemd-sysusers")
    machine.do("systemd-tmpfiles", "--create", "fabricd.conf")
    machine.do("systemctl", "daemon-reload")


class Case(unittest.TestCase):
    """One machine for all tests of a class; each begins with a store and a run directory of its own."""

    unit = None

    @classmethod
    def setUpClass(cls):
        if cls.unit is None:
            raise unittest.SkipTest("a frame")
        if lab.SANITIZE:
            raise unittest.SkipTest("sanitizers need what the units forbid: ptrace, personality")
        cls.whole = lab.fabric("fattree2:4,2,4", "capture")
        cls.machine = booted.Machine()
        cls.addClassCleanup(cls.machine.shutdown)
        install(cls.machine)
        # Something that the probe of Ethernet can see.
        cls.machine.do("ip", "link", "add", "fab0", "type", "veth", "peer", "name", "fab1")
        cls.machine.do("ip", "addr", "add", "10.91.7.1/24", "dev", "fab0")
        cls.machine.do("ip", "link", "set", "fab0", "up")

    def setUp(self):
        self.since = self.machine.do("date", "+%s.%N").strip()
        self.machine.write(CAPTURE, self.whole)
        self.configure()
        self.addCleanup(self.clean)

    def clean(self):
        for unit in ("fabricd-node", "fabricd", "second"):
            self.machine.run(["systemctl", "stop", unit])  # one that is not there cannot be stopped
        self.machine.do("sh", "-c", "rm -rf /var/lib/fabricd/* /run/fabricd /run/systemd/system/fabricd*.service.d "
                                    "/run/systemd/system/second.service; systemctl daemon-reload; systemctl reset-failed")

    def configure(self, more="", role="scheduler"):
        self.machine.write("/etc/fabricd.conf", f"[fabricd]\nrole = {role}\nprobe = file:{CAPTURE}\ninterval = 0\n{more}"
                           if role == "scheduler" else f"[fabricd]\nrole = node\nscheduler = /run/second\n{more}")

    def drop_in(self, text, unit=None):
        self.machine.write(f"/run/systemd/system/{unit or self.unit}.service.d/test.conf", f"[Service]\n{text}\n")
        self.machine.do("systemctl", "daemon-reload")

    def start(self):
        done = self.machine.run(["systemctl", "start", self.unit])
        self.assertEqual(done.returncode, 0, self.machine.text(self.unit))
        self.assertEqual(self.machine.show(self.unit, "ActiveState"), "active")
        # It is ready only when it serves: no wait here.
        self.assertTrue(self.status()["daemon"])

    def second(self, config):
        """A second scheduler's unit, on the same store."""
        text = self.machine.read(self.machine.show("fabricd", "FragmentPath"))
        text = text.replace("--foreground", f"--foreground --config {config} --rundir /run/second --store {STORE}")
        text = text.replace("RuntimeDirectory=fabricd", "RuntimeDirectory=second").replace("Restart=on-failure", "Restart=no")
        self.machine.write("/run/systemd/system/second.service", text)
        self.machine.do("systemctl", "daemon-reload")

    def status(self, rundir=RUNDIR):
        return json.loads(self.machine.do("fabricctl", "--rundir", rundir, "--format", "json", "status"))

    def journal(self, unit=None):
        """Lines of this test."""
        return self.machine.journal(unit or self.unit, "--since", f"@{self.since}")

    def wait_line(self, pattern, priority, unit=None):
        def there():
            return [text for level, text in self.journal(unit) if level == priority and re.search(pattern, text)]
        return lab.wait_for(there, 30, f"a line of priority {priority}: {pattern}")

    def lives(self, pid):
        """It says that it is alive, again and again: nobody ends it."""
        seen = set()

        def alive():
            seen.add(self.machine.show(self.unit, "WatchdogTimestampMonotonic"))
            return len(seen) > 3
        lab.wait_for(alive, 30, "signs of life")
        self.assertEqual((self.machine.main_pid(self.unit), self.machine.show(self.unit, "NRestarts")), (pid, "0"))

    def wait_restart(self, pid, result=None):
        """Another main process serves."""
        def other():
            return self.machine.main_pid(self.unit) not in (0, pid)
        lab.wait_for(other, 60, f"a restart of {self.unit}")
        self.machine.wait_state(self.unit, "active")
        self.assertEqual(self.machine.show(self.unit, "NRestarts"), "1")
        self.assertTrue(self.status()["daemon"])
        if result is not None:
            self.assertIn(f"Failed with result '{result}'", self.machine.text(self.unit, "--since", f"@{self.since}"))


    def assert_probes_as_outside(self):
        """What a probe can do in the unit is what it can do in a shell of root's."""
        outside = {line.split()[0] for line in self.machine.do("fabricd", "--available").splitlines()
                   if line.split()[1] == "no"} & set(LOCAL)
        said = [re.match(r"scan (\w+): ", text) for level, text in self.journal() if level == INFO]
        self.assertEqual({match.group(1) for match in said if match}, outside)


class Both:
    """What holds for both roles."""

    def test_starts_when_it_serves_and_stops(self):
        self.start()
        lab.wait_for(lambda: self.machine.show(self.unit, "StatusText").startswith("serving generation "), 30, "a status")
        self.assertEqual(self.machine.show(self.unit, "Type"), "notify")
        self.machine.do("systemctl", "stop", self.unit)
        self.assertEqual(self.machine.show(self.unit, "Result"), "success")
        self.assertEqual(self.machine.show(self.unit, "ActiveState"), "inactive")
        self.assertIn((INFO, "SIGTERM: stopping"), self.journal())
        for _, text in self.journal():
            self.assertNotRegex(text, r"^\d{4}-\d\d-|^fabricd |^<\d>", "the journal has the time and the priority")

    def test_a_crash(self):
        self.start()
        before = self.status()["generation"]
        pid = self.machine.main_pid(self.unit)
        self.machine.do("kill", "-SEGV", str(pid))
        self.wait_restart(pid)
        self.assertGreaterEqual(self.status()["generation"], before)

    def test_a_loop_that_hangs(self):
        self.drop_in("WatchdogSec=2\nTimeoutAbortSec=2")
        self.start()
        pid = self.machine.main_pid(self.unit)
        self.lives(pid)
        self.machine.do("kill", "-STOP", str(pid))
        self.wait_restart(pid, "watchdog")

    def test_a_bad_configuration_is_not_tried_again(self):
        self.configure("nonsense = 1\n", self.role)
        done = self.machine.run(["systemctl", "start", self.unit])
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.machine.wait_state(self.unit, "failed"), "failed")
        self.assertEqual((self.machine.show(self.unit, "ExecMainStatus"), self.machine.show(self.unit, "NRestarts")), ("2", "0"))
        errors = [text for level, text in self.journal() if level == ERROR]
        self.assertTrue(any("/etc/fabricd.conf:" in text and "nonsense" in text for text in errors), self.journal())

    def test_reload(self):
        self.start()
        pid = self.machine.main_pid(self.unit)
        self.configure("log = debug\n", self.role)
        self.machine.do("systemctl", "reload", self.unit)
        self.wait_line("^the configuration is read again: changed: .*log", INFO)
        self.configure("log = nonsense\n", self.role)
        self.assertNotEqual(self.machine.run(["systemctl", "reload", self.unit]).returncode, 0)
        self.wait_line(r"^/etc/fabricd\.conf:\d+:.*nonsense", ERROR)
        self.assertEqual(self.machine.show(self.unit, "ActiveState"), "active")
        # SIGHUP does the same, and the unit does not stay in its reload.
        self.configure("log = info\n", self.role)
        self.machine.do("kill", "-HUP", str(pid))
        lab.wait_for(lambda: len(self.wait_line("^the configuration is read again: changed: .*log", INFO)) == 2, 30, "the log")
        self.machine.wait_state(self.unit, "active")
        self.assertEqual(self.machine.main_pid(self.unit), pid)
        self.assertTrue(self.status()["daemon"])

    def test_exposure(self):
        path = self.machine.show(self.unit, "FragmentPath")
        done = self.machine.run(["systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=30", path])
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("Overall exposure level", done.stdout)
        verified = self.machine.run(["systemd-analyze", "verify", "--man=no", path])
        self.assertNotIn(self.unit, verified.stderr)


class Scheduler(Both, Case):
    unit, role = "fabricd", "scheduler"

    def test_changes_and_errors_in_the_journal(self):
        self.start()
        self.wait_line(r"^generation 1: \d+ changes, 1 plane published; the first changes:$", INFO)
        self.assertEqual(len(self.wait_line("^generation 1: host-added node", INFO)), 10)
        self.machine.write(CAPTURE, fabric_text.without_cables(self.whole, "leaf1", "spine1"))
        self.machine.do("fabricctl", "refresh")
        self.wait_line("^generation 2: link-removed leaf1.* - spine1|^generation 2: .*leaf1", INFO)
        self.machine.write(CAPTURE, "no fabric\n")
        self.assertEqual(self.machine.run(["fabricctl", "refresh"]).returncode, 1)
        self.wait_line(f"{CAPTURE}", ERROR)
        lab.wait_for(lambda: "serving generation 2, stale: " in self.machine.show(self.unit, "StatusText"), 30, "the status")
        self.assertEqual([text for level, text in self.journal()
                          if level == WARNING and not text.startswith("finding ")], [])  # half a second later, or not yet

    def test_what_children_inherit(self):
        self.machine.write("/usr/local/bin/hook", "#!/bin/sh\nenv >/var/lib/fabricd/hook.new\n"
                           "mv /var/lib/fabricd/hook.new /var/lib/fabricd/hook\n", 0o755)
        self.configure("[changes]\nhook = /usr/local/bin/hook\n")
        self.start()
        lab.wait_for(lambda: self.machine.run(["test", "-e", "/var/lib/fabricd/hook"]).returncode == 0, 30, "the hook")
        self.assertNotRegex(self.machine.read("/var/lib/fabricd/hook"), "(?m)^(NOTIFY_SOCKET|WATCHDOG_)")
        main = self.machine.main_pid(self.unit)

        def children():
            pids = self.machine.read("/sys/fs/cgroup/system.slice/fabricd.service/cgroup.procs").split()
            return [pid for pid in pids if int(pid) != main]
        child, *_ = lab.wait_for(children, 30, "the monitor's process")
        self.assertNotRegex(self.machine.read(f"/proc/{child}/environ"), r"(^|\0)(NOTIFY_SOCKET|WATCHDOG_)")

    def test_after_a_restore_it_is_still_watched(self):
        """The daemon begins anew in its own process: it speaks to the manager as before."""
        self.drop_in("WatchdogSec=2")
        self.start()
        pid = self.machine.main_pid(self.unit)
        self.machine.do("fabricctl", "backup", "/var/lib/fabricd/backup.db")
        self.machine.do("fabricctl", "restore", "/var/lib/fabricd/backup.db")
        self.wait_line("is restored", WARNING)
        self.lives(pid)
        self.assertTrue(self.status()["daemon"])
        self.assertRegex(self.machine.show(self.unit, "StatusText"), "^serving generation ")

    def test_two_services_on_one_store(self):
        self.start()
        pid = self.machine.main_pid("fabricd")
        self.second("/etc/fabricd.conf")
        self.assertNotEqual(self.machine.run(["systemctl", "start", "second"]).returncode, 0)
        self.assertEqual(self.machine.show("second", "ExecMainStatus"), "1")
        lines = self.journal("second")
        self.assertEqual([level for level, _ in lines], [ERROR], lines)
        self.assertIn(STORE, lines[0][1])
        self.assertEqual(self.machine.main_pid("fabricd"), pid)
        self.assertTrue(self.status()["daemon"])

    def test_local_probes_see_through_what_the_unit_forbids(self):
        probes = "".join(f"probe = {name}\n" for name in LOCAL)
        self.configure(probes)
        self.start()
        nodes = lab.wait_for(lambda: json.loads(self.machine.do("fabricctl", "--format", "json", "nodes")), 30, "the report")
        self.assertEqual((nodes[0]["host"], nodes[0]["failed"]), ("booted", []))
        self.assertIn("ethernet", nodes[0]["sources"])
        self.assert_probes_as_outside()


class Node(Both, Case):
    """The node's scheduler is a second instance of the scheduler's unit, in a run directory of its own."""

    unit, role = "fabricd-node", "node"

    def configure(self, more="", role="node"):
        super().configure(more, role)

    def test_delivers_and_mirrors(self):
        """munge, lldpd, the scheduler's answers: all with the powers that the unit leaves."""
        self.machine.do("sh", "-c", "mkdir -p -m 700 /etc/munge && dd if=/dev/urandom of=/etc/munge/munge.key bs=128 count=1 && "
                        "chmod 400 /etc/munge/munge.key && chown -R munge: /etc/munge && systemctl start munge lldpd")
        self.addCleanup(self.machine.do, "systemctl", "stop", "munge", "lldpd")
        self.second("/etc/second.conf")
        self.machine.write("/etc/second.conf", f"[fabricd]\nprobe = file:{CAPTURE}\ninterval = 0\n")
        self.machine.do("systemctl", "start", "second")
        self.start()
        lab.wait_for(lambda: self.status()["generation"] >= 1, 30, "the mirror")
        nodes = ("fabricctl", "--rundir", "/run/second", "--format", "json", "nodes")
        node = lab.wait_for(lambda: json.loads(self.machine.do(*nodes)), 30, "the delivery")[0]
        self.assertEqual((node["host"], node["uid"], node["failed"]), ("booted", 0, []))
        self.assert_probes_as_outside()
        self.assertEqual(self.status()["front"], None)

    def test_serves(self):
        """Its front has no more powers than the unit leaves."""
        self.second("/etc/second.conf")
        self.machine.write("/etc/second.conf", f"[fabricd]\nprobe = file:{CAPTURE}\ninterval = 0\n")
        self.machine.do("systemctl", "start", "second")
        self.configure("[node]\nserve = yes\n")
        self.start()
        lab.wait_for(lambda: self.status()["generation"] >= 1, 30, "the mirror")
        self.assertTrue(self.status()["front"]["pid"])
        planes = self.machine.do("sh", "-c", 'fabricctl --uri "$(cat /run/fabricd/fabricd.uri)" --format json planes')
        self.assertEqual([plane["name"] for plane in json.loads(planes)], ["ib0"])


if __name__ == "__main__":
    unittest.main()
