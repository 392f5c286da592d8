"""The installed service, run by a real systemd: start, status, reload, crash, hang, refusal, and what it may do."""
import ctypes
import json
import re
import subprocess
import unittest

import booted
import fabric_text
import lab
import versions

CAPTURE, STORE, RUNDIR = "/etc/fabric.txt", "/var/lib/fabricd/fabricd.db", "/run/fabricd"
LOCAL = ("hwloc", "verbs", "libfabric", "ucx", "ethernet", "lldp")
ERROR, WARNING, INFO = 3, 4, 6
# The starter of a job, which has endpoints until it ends.
STARTER = """
import socket, time
with socket.socket(socket.AF_UNIX) as caller:
    caller.connect("/run/fabricd/control.sock")
    caller.sendall(b'{"op": "endpoints", "take": 4, "job": "job", "planes": ["ib0"]}\\n')
    caller.recv(1000)
time.sleep(600)
"""


def landlock():
    """Does this kernel have it?"""
    return ctypes.CDLL(None).syscall(444, None, 0, 1) > 0


def install(machine):
    """As an administrator installs it, without the package manager."""
    machine.do("cmake", "--install", lab.BUILD, "--prefix", "/usr")
    machine.do("ldconfig")
    machine.do("systemd-sysusers")
    machine.do("systemd-tmpfiles", "--create", "fabricd.conf")
    machine.do("systemctl", "daemon-reload")


# Of a busy machine: the front has 50 ms for PENDING.
LATE = "front: it has not said in time that something changes"


class Shared:
    """The machine of all tests of the module, and the fabric that is recorded in it."""

    machine = whole = None


def setUpModule():
    if lab.SANITIZE:
        raise unittest.SkipTest("sanitizers need what the units forbid: ptrace, personality")
    Shared.whole = lab.fabric("fattree2:4,2,4", "capture")
    Shared.machine = machine = booted.Machine()
    unittest.addModuleCleanup(machine.shutdown)
    install(machine)
    # Something that the probe of Ethernet can see.
    machine.do("ip", "link", "add", "fab0", "type", "veth", "peer", "name", "fab1")
    machine.do("ip", "addr", "add", "10.91.7.1/24", "dev", "fab0")
    machine.do("ip", "link", "set", "fab0", "up")


class Case(unittest.TestCase):
    """Each test begins with a store and a run directory of its own."""

    unit = None

    @classmethod
    def setUpClass(cls):
        if cls.unit is None:
            raise unittest.SkipTest("a frame")
        cls.whole, cls.machine = Shared.whole, Shared.machine

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
        if self.unit == "fabricd-node" and versions.reason("test_node.Node"):
            self.skipTest(versions.reason("test_node.Node"))
        done = self.machine.run(["systemctl", "start", self.unit])
        self.assertEqual(done.returncode, 0, self.machine.text(self.unit))
        self.assertEqual(self.machine.show(self.unit, "ActiveState"), "active")
        # It is ready only when it serves: no wait here.
        self.assertTrue(self.status()["daemon"])

    def second(self, config):
        """A second scheduler's unit, on the same store."""
        text = self.machine.read(self.machine.show("fabricd", "FragmentPath"))
        text = text.replace(" --front-unit", "").replace("Wants=fabricd-front.service\n", "")  # a child of its own
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
        return lab.wait_for(there, what=f"a line of priority {priority}: {pattern}")

    def lives(self, pid):
        """It says that it is alive, again and again: nobody ends it."""
        seen = set()

        def alive():
            seen.add(self.machine.show(self.unit, "WatchdogTimestampMonotonic"))
            return len(seen) > 3
        lab.wait_for(alive, what="signs of life")
        self.assertEqual((self.machine.main_pid(self.unit), self.machine.show(self.unit, "NRestarts")), (pid, "0"))

    def wait_restart(self, pid, result=None):
        """Another main process serves."""
        def other():
            return self.machine.main_pid(self.unit) not in (0, pid)
        lab.wait_for(other, what=f"a restart of {self.unit}")
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
        lab.wait_for(lambda: self.machine.show(self.unit, "StatusText").startswith("serving generation "), what="a status")
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
        lab.wait_for(lambda: len(self.wait_line("^the configuration is read again: changed: .*log", INFO)) == 2, what="the log")
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

    def test_endpoints_of_another_user(self):
        """The unit sees no other user's /proc: a starter is known by its pidfd, and keeps what it has over a restart."""
        self.configure("[endpoints.pools]\nib0 = 1000-1099\n")
        self.start()
        self.machine.write("/run/starter.py", STARTER)
        self.addCleanup(self.machine.run, ["systemctl", "stop", "starter"])
        self.machine.do("systemd-run", "--unit=starter", "--uid=daemon", "/usr/bin/python3", "/run/starter.py")

        def rows():
            return json.loads(self.machine.do("fabricctl", "--format", "json", "endpoints"))
        lab.wait_for(rows, what="the starter to have some")
        before = rows()
        self.assertEqual([(row["first"], row["last"], row["job"], row["uid"]) for row in before], [(1000, 1003, "job", 1)])
        self.machine.do("systemctl", "restart", self.unit)
        self.assertEqual(rows(), before)
        self.machine.do("systemctl", "stop", "starter")
        lab.wait_for(lambda: rows() == [], what="what it had to be free")

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
        lab.wait_for(lambda: "serving generation 2, stale: " in self.machine.show(self.unit, "StatusText"), what="the status")
        self.assertEqual([text for level, text in self.journal()
                          if level == WARNING and not text.startswith(("finding ", LATE)) and versions.unwarned(f"{text}\n")], [])

    def test_what_children_inherit(self):
        self.machine.write("/usr/local/bin/hook", "#!/bin/sh\nenv >/var/lib/fabricd/hook.new\n"
                           "mv /var/lib/fabricd/hook.new /var/lib/fabricd/hook\n", 0o755)
        self.configure("[changes]\nhook = /usr/local/bin/hook\n")
        self.start()
        self.machine.until("generation", generation=1)
        self.machine.until("idle")
        self.assertNotRegex(self.machine.read("/var/lib/fabricd/hook"), "(?m)^(NOTIFY_SOCKET|WATCHDOG_)")
        main = self.machine.main_pid(self.unit)

        def children():
            pids = self.machine.read("/sys/fs/cgroup/system.slice/fabricd.service/cgroup.procs").split()
            return [pid for pid in pids if int(pid) != main]
        child, *_ = lab.wait_for(children, what="the monitor's process")
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
        self.machine.until("generation", generation=1)
        self.machine.until("idle")
        nodes = json.loads(self.machine.do("fabricctl", "--format", "json", "nodes"))
        self.assertEqual((nodes[0]["host"], nodes[0]["failed"]), ("booted", []))
        self.assertIn("ethernet", nodes[0]["sources"])
        self.assert_probes_as_outside()


class Front(Case):
    """The process that programs connect to: a unit of its own, with a user of its own."""

    unit = "fabricd"
    KNOCK = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
             "s.sendall(b'{\"op\": \"status\"}\\n'); print(len(s.recv(10)))")

    # All threads of a process but its first one do nothing any more, as long as this runs.
    HOLD = ("import ctypes, os, sys; libc = ctypes.CDLL(None); pid = int(sys.argv[1]); "
            "print([libc.ptrace(16, int(tid), 0, 0) for tid in os.listdir(f'/proc/{pid}/task') if int(tid) != pid], flush=True); "
            "[None for _ in iter(lambda: os.waitpid(-1, 0x40000000), None)]")

    def front(self):
        return self.status()["front"]

    def as_user(self, user, *argv):
        return self.machine.run(["setpriv", f"--reuid={user}", "--clear-groups", *argv])

    def knock(self, user, path):
        """How many bytes it answers, as text; or what is refused."""
        done = self.as_user(user, "/usr/bin/python3", "-c", self.KNOCK, path)
        return done.stdout.strip() or done.stderr.strip().splitlines()[-1]

    def answered(self, uri):
        """A program gets the fabric there."""
        done = self.machine.run([lab.program("stock_tool"), uri, "register"])
        return done.returncode == 0 and "pmixfab.generation" in done.stdout

    def begin(self):
        self.start()
        self.machine.until("generation", generation=1)
        return self.status()["uri"], self.machine.main_pid("fabricd-front")

    def test_who_it_is_and_what_it_may(self):
        _, pid = self.begin()
        front = self.front()
        self.assertEqual((front["pid"], front["separated"], front["filtered"], front["bounded"]), (pid, True, True, True))
        self.assertRegex(self.machine.do("fabricctl", "status"), rf"(?m)^front +process {pid}, separated, filtered, ")
        self.assertEqual(front["confined"], landlock())
        uid = self.machine.do("id", "-u", "fabricd-front").strip()
        status = self.machine.read(f"/proc/{pid}/status")
        self.assertRegex(status, rf"(?m)^Uid:(\t{uid}){{4}}$")
        self.assertRegex(status, r"(?m)^Groups:\t?\s*\d*\s*$")
        self.assertRegex(status, r"(?m)^NoNewPrivs:\t1$")
        for path in (RUNDIR, f"{RUNDIR}/front", f"{RUNDIR}/ib0.snap", "/var/lib/fabricd", STORE):
            self.assertEqual(self.as_user("fabricd-front", "test", "-w", path).returncode, 1, path)
        self.assertRegex(self.knock("fabricd-front", f"{RUNDIR}/control.sock"), "^0$|ConnectionResetError|BrokenPipeError")
        self.assertEqual(self.knock("nobody", f"{RUNDIR}/control.sock"), "10")
        # Where it connects nobody else gets in.
        self.assertIn("PermissionError", self.knock("nobody", f"{RUNDIR}/front/socket"))
        self.knock("root", f"{RUNDIR}/front/socket")
        self.wait_line("front/socket: uid 0 knocked, who is not fabricd-front", WARNING)
        self.assertEqual(self.front(), front)

    def test_killed_and_stopped(self):
        uri, pid = self.begin()
        for turn, signal in enumerate(("KILL", "STOP", "SEGV")):
            self.machine.do("kill", f"-{signal}", str(pid))
            self.machine.until("front", after=turn + 1)
            self.assertTrue(self.answered(uri))
            self.assertNotEqual(self.machine.run(["test", "-e", f"/proc/{pid}"]).returncode, 0)
            front, pid = self.front(), self.machine.main_pid("fabricd-front")
            self.assertEqual((front["replaced"], front["pid"]), (turn + 1, pid))
            self.assertEqual(self.status()["uri"], uri)
        self.assertEqual(self.machine.show("fabricd", "NRestarts"), "0")

    def test_threads_that_hang(self):
        """The library's: the daemon lets it go, and its loop sees that."""
        uri, pid = self.begin()
        holder = lab.spawn([*self.machine.prefix(), "/usr/bin/python3", "-c", self.HOLD, str(pid)], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(lab.kill_group, holder)
        self.assertRegex(holder.stdout.readline(), r"^\[0(, 0)*\]$")
        self.machine.until("front", after=1)
        self.assertTrue(self.answered(uri))
        self.assertEqual(self.front()["why"], "front: it has not answered for 2 s, and was let go")
        self.assertNotIn("atchdog", self.machine.text("fabricd-front", "--since", f"@{self.since}"))

    def test_it_ends_with_the_daemon_and_begins_with_it(self):
        self.begin()
        self.machine.do("systemctl", "restart", "fabricd")
        uri = self.status()["uri"]
        self.assertTrue(self.answered(uri))
        self.assertEqual(self.front()["replaced"], 0)
        self.machine.do("systemctl", "stop", "fabricd")
        self.machine.wait_state("fabricd-front", "inactive")
        self.assertEqual(sorted(self.machine.do("ls", RUNDIR).split()), ["ib0.snap", "lock"])
        self.assertNotIn("another one takes its place", self.machine.text("fabricd", "--since", f"@{self.since}"))

    def test_one_that_cannot_serve_comes_back_with_pauses(self):
        uri, pid = self.begin()
        self.drop_in("ReadOnlyPaths=/run/fabricd-front", "fabricd-front")
        self.machine.do("kill", "-KILL", str(pid))
        front = lab.wait_for(lambda: self.front()["replaced"] > 6 and self.front(), what="some tries")
        self.assertIsNone(front["pid"])
        self.assertIn("/run/fabricd-front/pmix: cannot be made: Read-only file system", front["why"])
        self.wait_line("cannot serve: .*Read-only file system; another one takes its place after a pause", WARNING)
        self.assertLess(int(self.machine.show("fabricd-front", "NRestarts")), front["replaced"] + 3)
        self.machine.do("rm", "-r", "/run/systemd/system/fabricd-front.service.d")
        self.machine.do("systemctl", "daemon-reload")
        self.machine.until("front", after=1)
        self.assertTrue(self.answered(uri))

    def test_where_it_listens(self):
        """As the configuration says it, at each start and after each replacement."""
        self.machine.start_munge()
        self.addCleanup(self.machine.do, "systemctl", "stop", "munge")
        for listen in ("fab0", "10.91.7.0/24", "10.91.7.1"):
            with self.subTest(listen):
                self.configure(f"[security]\nremote = yes\n[pmix]\nlisten = {listen}\nport = 24240\n")
                self.machine.do("fabricd", "--check-config")
                self.machine.do("systemctl", "restart", "fabricd")
                uri = self.status()["uri"]
                self.assertTrue(uri.endswith("tcp4://10.91.7.1:24240"), uri)
        self.machine.do("systemctl", "kill", "--signal=KILL", "fabricd-front")
        self.machine.until("front", after=1)
        self.assertEqual(self.status()["uri"], uri)
        self.machine.do("ip", "link", "set", "fab0", "down")
        self.addCleanup(self.machine.do, "ip", "link", "set", "fab0", "up")
        done = self.machine.run(["fabricd", "--check-config"])
        self.assertEqual(done.returncode, 2)
        self.assertIn("[pmix] listen: no interface of this host that is up has an IPv4 address in 10.91.7.1: ", done.stderr)
        self.assertNotEqual(self.machine.run(["systemctl", "restart", "fabricd"]).returncode, 0)
        self.wait_line("no interface of this host that is up has an IPv4 address in 10.91.7.1: ", ERROR)

    def test_its_port_is_taken(self):
        self.configure("[pmix]\nport = 24241\n")
        other = lab.spawn([*self.machine.prefix(), "/usr/bin/python3", "-c", "import socket, sys; s = socket.create_server(('127.0.0.1', 24241)); "
                           "print('up', flush=True); sys.stdin.read()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(other.stdout.close)
        self.addCleanup(other.stdin.close)
        self.addCleanup(lab.kill_group, other)
        self.assertEqual(other.stdout.readline(), "up\n")
        self.assertNotEqual(self.machine.run(["systemctl", "start", "fabricd"]).returncode, 0)
        self.wait_line("127.0.0.1:24241: this host cannot listen there: Address already in use", ERROR)

    def test_without_it(self):
        """It is masked: the start says what is missing."""
        self.machine.do("systemctl", "mask", "--runtime", "fabricd-front")
        self.addCleanup(self.machine.run, ["systemctl", "unmask", "--runtime", "fabricd-front"])
        self.assertNotEqual(self.machine.run(["systemctl", "start", "fabricd"]).returncode, 0)
        self.wait_line(f"no front has connected to {RUNDIR}/front/socket for 10 s: ", ERROR)
        self.machine.do("systemctl", "unmask", "--runtime", "fabricd-front")
        self.machine.do("systemctl", "stop", "fabricd")
        self.begin()

    def test_exposure(self):
        path = self.machine.show("fabricd-front", "FragmentPath")
        done = self.machine.run(["systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=17", path])
        self.assertEqual(done.returncode, 0, done.stdout)


class FrontOfANode(Case):
    """Of a node that serves: the same unit, by the same folder, though the daemon is root's here."""

    unit, role = "fabricd-node", "node"

    def test_it_serves(self):
        self.second("/etc/second.conf")
        self.machine.write("/etc/second.conf", f"[fabricd]\nprobe = file:{CAPTURE}\ninterval = 0\n")
        self.machine.do("systemctl", "start", "second")
        self.configure("[node]\nserve = yes\n", self.role)
        self.machine.do("systemctl", "add-wants", "--runtime", "fabricd-node.service", "fabricd-front")
        self.addCleanup(self.machine.do, "rm", "-r", "/run/systemd/system/fabricd-node.service.wants")
        self.start()
        pid = self.machine.main_pid("fabricd-front")
        front = self.status()["front"]
        self.assertEqual((front["pid"], front["separated"], front["filtered"]), (pid, True, True))
        self.assertEqual(self.machine.do("stat", "-c", "%U", f"/proc/{pid}").strip(), "fabricd-front")
        self.machine.do("kill", "-KILL", str(pid))
        self.machine.until("front", after=1)
        self.assertEqual(self.status()["front"]["replaced"], 1)
        self.machine.until("generation", generation=1)
        planes = self.machine.do("sh", "-c", 'fabricctl --uri "$(cat /run/fabricd/fabricd.uri)" --format json planes')
        self.assertEqual([plane["name"] for plane in json.loads(planes)], ["ib0"])
        self.machine.do("systemctl", "stop", "fabricd-node")
        self.machine.wait_state("fabricd-front", "inactive")


class Node(Both, Case):
    """The node's scheduler is a second instance of the scheduler's unit, in a run directory of its own."""

    unit, role = "fabricd-node", "node"

    def configure(self, more="", role="node"):
        super().configure(more, role)

    def test_delivers_and_mirrors(self):
        """munge, lldpd, the scheduler's answers: all with the powers that the unit leaves."""
        self.machine.start_munge()
        self.machine.do("systemctl", "start", "lldpd")
        self.addCleanup(self.machine.do, "systemctl", "stop", "munge", "lldpd")
        self.second("/etc/second.conf")
        self.machine.write("/etc/second.conf", f"[fabricd]\nprobe = file:{CAPTURE}\ninterval = 0\n")
        self.machine.do("systemctl", "start", "second")
        self.start()
        self.machine.until("generation", generation=1)
        self.machine.until("delivery", rundir="/run/second", after=0)
        node, = json.loads(self.machine.do("fabricctl", "--rundir", "/run/second", "--format", "json", "nodes"))
        self.assertEqual((node["host"], node["uid"], node["failed"]), ("booted", 0, []))
        self.assert_probes_as_outside()
        self.assertEqual(self.status()["front"], None)


if __name__ == "__main__":
    unittest.main()
