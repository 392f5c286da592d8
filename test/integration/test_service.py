"""The installed service, run by a real systemd: start, status, reload, crash, hang, refusal, restore, and what it may do."""
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
SCHEDULER = f"[fabricd]\nrole = scheduler\nprobe = file:{CAPTURE}\ninterval = 0\n"
NODE = "[fabricd]\nrole = node\nscheduler = 127.0.0.1\n"
LOCAL = ("hwloc", "verbs", "libfabric", "ucx", "ethernet", "lldp")
ERROR, WARNING, INFO = 3, 4, 6
# The starter of a job, which has endpoints until it ends.
STARTER = """
import os, socket, time
with socket.socket(socket.AF_UNIX) as caller:
    caller.connect("/run/fabricd/control.sock")
    caller.sendall(b'{"op": "endpoints", "take": 4, "job": "job", "planes": ["ib0"]}\\n')
    caller.recv(1000)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
    manager.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
time.sleep(600)
"""
KNOCK = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
         "s.sendall(b'{\"op\": \"status\"}\\n'); print(len(s.recv(10)))")
HOLD = ("import ctypes, os, sys; libc = ctypes.CDLL(None); pid = int(sys.argv[1]); "
        "print([libc.ptrace(16, int(tid), 0, 0) for tid in os.listdir(f'/proc/{pid}/task') if int(tid) != pid], flush=True); "
        "[None for _ in iter(lambda: os.waitpid(-1, 0x40000000), None)]")


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


def setUpModule():
    if lab.SANITIZE:
        raise unittest.SkipTest("sanitizers need what the units forbid: ptrace, personality")
    Case.whole = lab.fabric("fattree2:4,2,4", "capture")
    Case.machine = machine = booted.Machine()
    unittest.addModuleCleanup(machine.shutdown)
    install(machine)
    # Something that the probe of Ethernet can see.
    machine.do("ip", "link", "add", "fab0", "type", "veth", "peer", "name", "fab1")
    machine.do("ip", "addr", "add", "10.91.7.1/24", "dev", "fab0")
    machine.do("ip", "link", "set", "fab0", "up")


class Case(unittest.TestCase):
    """Each test begins with a store and a run directory of its own."""

    machine = whole = None  # of all tests of the module

    def setUp(self):
        self.since = self.machine.do("date", "+%s.%N").strip()
        self.machine.write(CAPTURE, self.whole)
        self.machine.write("/etc/fabricd.conf", SCHEDULER)
        self.addCleanup(self.clean)

    def clean(self):
        for unit in ("fabricd-node", "fabricd", "second"):
            self.machine.run(["systemctl", "stop", unit])  # one that is not there cannot be stopped
        self.machine.do("sh", "-c", "rm -rf /var/lib/fabricd/* /run/fabricd /run/systemd/system/fabricd*.service.d "
                                    "/run/systemd/system/second.service; systemctl daemon-reload; systemctl reset-failed")

    def configure(self, more, role="scheduler"):
        self.machine.write("/etc/fabricd.conf", (SCHEDULER if role == "scheduler" else NODE) + more)

    def drop_in(self, text, unit):
        self.machine.write(f"/run/systemd/system/{unit}.service.d/test.conf", f"[Service]\n{text}\n")
        self.machine.do("systemctl", "daemon-reload")

    def start(self, unit="fabricd"):
        if unit == "fabricd-node" and versions.reason("test_node.Node"):
            self.skipTest(versions.reason("test_node.Node"))
        done = self.machine.run(["systemctl", "start", unit])
        self.assertEqual(done.returncode, 0, self.machine.text(unit))
        # It is ready only when it serves: no wait here.
        self.assertTrue(self.status()["daemon"])
        return self.machine.main_pid(unit)

    def second(self, config, store=STORE):
        """A second scheduler's unit, whose PMIx server is a child of its own."""
        text = self.machine.read(self.machine.show("fabricd", "FragmentPath")).replace("Wants=fabricd-pmix.service\n", "")
        text = text.replace(" --pmix-unit", "")
        text = text.replace("--foreground", f"--foreground --config {config} --rundir /run/second --store {store}")
        text = text.replace("RuntimeDirectory=fabricd", "RuntimeDirectory=second").replace("Restart=on-failure", "Restart=no")
        self.machine.write("/run/systemd/system/second.service", text)
        self.machine.do("systemctl", "daemon-reload")

    def ask(self, *command, rundir=RUNDIR):
        return json.loads(self.machine.do("fabricctl", "--rundir", rundir, "--format", "json", *command))

    def status(self):
        return self.ask("status")

    def journal(self, unit="fabricd"):
        """Lines of this test."""
        return self.machine.journal(unit, "--since", f"@{self.since}")

    def texts(self, priority, unit="fabricd"):
        return "".join(f"{text}\n" for level, text in self.journal(unit) if level == priority)

    def wait_line(self, pattern, priority, unit="fabricd", times=1):
        """Wait until so many lines of the journal match, systemd's on the unit included."""
        follow = lab.Watch([*self.machine.prefix(), "journalctl", "--quiet", "--follow", "--lines=all", "--output=cat", "--unit", unit,
                            "--since", f"@{self.since}", f"--priority={priority}..{priority}"])
        follow.wait(rf"(?ms)(?:(?:{pattern})[^\n]*$.*?){{{times}}}")
        lab.kill_group(follow.process)

    def wait_restart(self, unit, pid, times, result=None):
        """Another main process serves."""
        self.wait_line(f"restart counter is at {times}", INFO, unit)
        self.assertNotIn(self.start(unit), (0, pid))
        self.assertEqual(self.machine.show(unit, "NRestarts"), str(times))
        if result is not None:
            self.assertIn(f"Failed with result '{result}'", self.machine.text(unit, "--since", f"@{self.since}"))

    def answered(self, uri):
        """A program gets the fabric there."""
        done = self.machine.run([lab.program("stock_tool"), uri, "register"])
        return done.returncode == 0 and "pmixfab.generation" in done.stdout

    def assert_probes_as_outside(self, unit="fabricd"):
        """What a probe can do in the unit is what it can do in a shell of root's."""
        outside = {line.split()[0] for line in self.machine.do("fabricd", "--available").splitlines()
                   if line.split()[1] == "no"} & set(LOCAL)
        self.assertEqual(set(re.findall(r"(?m)^scan (\w+): ", self.texts(INFO, unit))), outside)


class Life(Case):
    """Of the units of both roles."""

    def test_start_reload_and_refusal(self):
        for role, unit in (("scheduler", "fabricd"), ("node", "fabricd-node")):
            with self.subTest(role):
                self.configure("nonsense = 1\n", role)
                self.assertNotEqual(self.machine.run(["systemctl", "start", unit]).returncode, 0)
                self.assertEqual([self.machine.show(unit, name) for name in ("ActiveState", "ExecMainStatus", "NRestarts")],
                                 ["failed", "2", "0"])
                self.assertRegex(self.texts(ERROR, unit), "/etc/fabricd.conf:.*nonsense")
                self.configure("", role)
                pid = self.start(unit)
                self.configure("log = debug\n", role)
                self.machine.do("systemctl", "reload", unit)
                self.assertRegex(self.texts(INFO, unit), "(?m)^the configuration was reloaded: changed: .*log")
                self.configure("log = none-of-them\n", role)
                self.assertNotEqual(self.machine.run(["systemctl", "reload", unit]).returncode, 0)
                self.assertRegex(self.texts(ERROR, unit), r"(?m)^/etc/fabricd\.conf:\d+:.*none-of-them")
                self.configure("", role)
                self.machine.do("kill", "-HUP", str(pid))  # does the same, and the unit does not stay in its reload
                self.wait_line("the configuration was reloaded: changed: .*log", INFO, unit, times=2)
                self.machine.wait_state(unit, "active")
                self.assertEqual((self.machine.main_pid(unit), self.machine.show(unit, "Type")), (pid, "notify"))
                self.machine.do("systemctl", "stop", unit)
                self.assertEqual([self.machine.show(unit, name) for name in ("Result", "ActiveState")], ["success", "inactive"])
                self.assertIn((INFO, "SIGTERM: stopping"), self.journal(unit))
                for _, text in self.journal(unit):
                    self.assertNotRegex(text, r"^\d{4}-\d\d-|^fabricd |^<\d>", "the journal has the time and the priority")

    def test_crash_and_hang(self):
        for role, unit in (("scheduler", "fabricd"), ("node", "fabricd-node")):
            with self.subTest(role):
                self.configure("", role)
                self.drop_in("WatchdogSec=2\nTimeoutAbortSec=100ms\nRestartSec=100ms", unit)
                pid = self.start(unit)
                before = self.status()["generation"]
                self.machine.do("kill", "-SEGV", str(pid))
                self.wait_restart(unit, pid, 1)
                self.assertGreaterEqual(self.status()["generation"], before)
                pid = self.machine.main_pid(unit)
                if role == "node":  # the scheduler's: test_restored
                    self.lives(unit, pid, 1)
                self.machine.do("kill", "-STOP", str(pid))
                self.wait_restart(unit, pid, 2, "watchdog")
                self.machine.do("systemctl", "stop", unit)

    def lives(self, unit, pid, restarts):
        """It says that it is alive, again and again: nobody ends it."""
        seen = set()

        def alive():
            seen.add(self.machine.show(unit, "WatchdogTimestampMonotonic"))
            return len(seen) > 2
        lab.wait_for(alive, what="signs of life")
        self.assertEqual((self.machine.main_pid(unit), self.machine.show(unit, "NRestarts")), (pid, str(restarts)))

    def test_restored(self):
        """As docs/operations.md says: by root, while it runs and while it is stopped."""
        self.drop_in("WatchdogSec=2", "fabricd")
        pid = self.start()
        self.machine.until("generation", generation=1)
        mode = self.machine.do("stat", "--format", "%a", STORE)
        self.machine.do("install", "-d", "-o", "fabricd", "/var/backups/fabricd")
        self.machine.do("fabricctl", "backup", "--force", "/var/backups/fabricd/fabricd.db")
        self.machine.do("mv", "/var/backups/fabricd/fabricd.db", "/srv/fabricd.db")
        self.machine.do("chown", "root:root", "/srv/fabricd.db")  # as it comes back from wherever backups are kept
        for running in (True, False):
            for host in ("other1", "other2"):
                self.machine.write(CAPTURE, self.whole.replace('"node0001', f'"{host}'))
                self.machine.do("fabricctl", "refresh")
            newest = self.status()["generation"]
            if running:
                self.machine.do("fabricctl", "restore", "/srv/fabricd.db")
            else:
                self.machine.do("systemctl", "stop", "fabricd")
                done = self.machine.run(["fabricctl", "restore", "/srv/fabricd.db"])
                self.assertEqual(done.returncode, 1)
                self.assertIn("as root: fabricd --restore /srv/fabricd.db", done.stderr)
                self.machine.do("fabricd", "--restore", "/srv/fabricd.db")
                self.machine.do("systemctl", "start", "fabricd")
            # Published with higher numbers by the service's user, and it goes on.
            self.wait_line(f"^generation {newest + 2}: [^\n]* published", INFO)
            self.assertIn(f"generation 1 -> generation {newest + 1}", self.machine.do("fabricctl", "history"))
            owners = self.machine.do("sh", "-c", "stat --format %U /var/lib/fabricd /var/lib/fabricd/* /run/fabricd /run/fabricd/*")
            self.assertEqual(set(owners.split()), {"fabricd"})
            self.assertEqual(self.machine.do("stat", "--format", "%a", STORE), mode)
            if running:  # it began anew in its own process, and speaks to the manager as before
                self.lives("fabricd", pid, 0)
                self.assertRegex(self.machine.show("fabricd", "StatusText"), "^serving generation ")
        self.machine.do("rm", "/srv/fabricd.db")


class Scheduler(Case):
    def test_the_usual_way(self):
        """Probes, a hook, changes and errors in the journal."""
        self.machine.write("/usr/local/bin/hook", "#!/bin/sh\nenv >/var/lib/fabricd/hook\n", 0o755)
        self.configure("".join(f"probe = {name}\n" for name in LOCAL) + "[changes]\nhook = /usr/local/bin/hook\n")
        pid = self.start()
        self.machine.until("generation", generation=1)
        self.machine.until("idle")
        self.assertRegex(self.texts(INFO), r"(?m)^generation 1: \d+ changes, 1 plane published; the first changes:$")
        self.assertEqual(len(re.findall("(?m)^generation 1: host-added node", self.texts(INFO))), 10)
        self.assertEqual([line for line in self.texts(WARNING).splitlines()
                          if not line.startswith("finding ") and versions.unwarned(f"{line}\n")], [])
        self.assertNotRegex(self.machine.read("/var/lib/fabricd/hook"), "(?m)^(NOTIFY_SOCKET|WATCHDOG_)")
        nodes = self.ask("nodes")
        self.assertEqual((nodes[0]["host"], nodes[0]["failed"]), ("booted", []))
        self.assertIn("ethernet", nodes[0]["sources"])
        self.assert_probes_as_outside()

        self.machine.write(CAPTURE, fabric_text.without_cables(self.whole, "leaf1", "spine1"))
        self.machine.do("fabricctl", "refresh")
        self.assertRegex(self.texts(INFO), "(?m)^generation 2: link-removed leaf1.* - spine1|^generation 2: .*leaf1")
        self.machine.write(CAPTURE, "no fabric\n")
        self.assertEqual(self.machine.run(["fabricctl", "refresh"]).returncode, 1)
        self.assertIn(CAPTURE, self.texts(ERROR))
        lab.wait_for(lambda: "serving generation 2, stale: " in self.machine.show("fabricd", "StatusText"), what="the status")

        self.second("/etc/fabricd.conf")  # two services on one store
        self.assertNotEqual(self.machine.run(["systemctl", "start", "second"]).returncode, 0)
        self.assertEqual(self.machine.show("second", "ExecMainStatus"), "1")
        (level, line), = self.journal("second")
        self.assertEqual(level, ERROR)
        self.assertIn(STORE, line)
        self.assertEqual(self.machine.main_pid("fabricd"), pid)

    def test_endpoints_of_another_user(self):
        """The unit sees no other user's /proc: a starter is known by its pidfd, and keeps what it has over a restart."""
        self.configure("[endpoints.pools]\nib0 = 1000-1099\n")
        self.start()
        self.machine.until("generation", generation=1)
        self.machine.write("/run/starter.py", STARTER)
        self.addCleanup(self.machine.run, ["systemctl", "stop", "starter"])
        self.machine.do("systemd-run", "--unit=starter", "--uid=daemon", "--service-type=notify", "/usr/bin/python3", "/run/starter.py")
        before = self.ask("endpoints")
        self.assertEqual([(row["first"], row["last"], row["job"], row["uid"]) for row in before], [(1000, 1003, "job", 1)])
        self.machine.do("systemctl", "restart", "fabricd")
        self.assertEqual(self.ask("endpoints"), before)
        self.machine.do("systemctl", "stop", "starter")
        lab.wait_for(lambda: self.ask("endpoints") == [], what="what it had to be free")


class PmixServer(Case):
    """The program fabricd-pmix: a unit of its own, with a user of its own."""

    def server(self):
        return self.status()["pmix"]

    def as_user(self, user, *argv):
        return self.machine.run(["setpriv", f"--reuid={user}", "--clear-groups", *argv])

    def knock(self, user, path):
        """How many bytes it answers, as text; or what is refused."""
        done = self.as_user(user, "/usr/bin/python3", "-c", KNOCK, path)
        return done.stdout.strip() or done.stderr.strip().splitlines()[-1]

    def stop_process(self, pid):
        self.machine.do("kill", "-STOP", str(pid))

    def stop_threads(self, pid):
        """All of its threads but the first do nothing any more until it ends."""
        holder = lab.Watch([*self.machine.prefix(), "/usr/bin/python3", "-c", HOLD, str(pid)])
        self.addCleanup(holder.stop)
        holder.wait(r"^\[0(, 0)*\]$")

    def begin(self):
        self.start()
        self.machine.until("generation", generation=1)
        self.until_served()
        return self.status()["uri"], self.server()["pid"]

    def until_served(self):
        lab.wait_for(lambda: self.server()["pid"] == self.machine.main_pid("fabricd-pmix"), what="the PMIx server in the status")

    def test_who_it_is_and_what_it_may(self):
        _, pid = self.begin()
        server = self.server()
        self.assertEqual((server["pid"], server["separated"], server["filtered"], server["bounded"], server["guarded"]),
                         (pid, True, True, True, True))
        self.assertRegex(self.machine.do("fabricctl", "status"), rf"(?m)^pmix +process {pid}, separated, filtered, ")
        self.assertEqual(server["confined"], landlock())
        uid = self.machine.do("id", "-u", "fabricd-pmix").strip()
        status = self.machine.read(f"/proc/{pid}/status")
        self.assertRegex(status, rf"(?m)^Uid:(\t{uid}){{4}}$")
        self.assertRegex(status, r"(?m)^Groups:\t?\s*\d*\s*$")
        self.assertRegex(status, r"(?m)^NoNewPrivs:\t1$")
        for path in (RUNDIR, f"{RUNDIR}/ib0.snap", "/var/lib/fabricd", STORE):
            self.assertEqual(self.as_user("fabricd-pmix", "test", "-w", path).returncode, 1, path)
        self.assertRegex(self.knock("fabricd-pmix", f"{RUNDIR}/control.sock"), "^0$|ConnectionResetError|BrokenPipeError")
        self.assertEqual(self.knock("nobody", f"{RUNDIR}/control.sock"), "10")

    def test_it_is_lost(self):
        """It hangs: all of it, and the library's threads. Its address stays; fabricd and its own end do not matter to each other."""
        uri, pid = self.begin()
        for hang in (self.stop_process, self.stop_threads):
            hang(pid)
            lab.wait_for(lambda before=pid: self.machine.main_pid("fabricd-pmix") not in (0, before), what="another process")
            pid = self.machine.main_pid("fabricd-pmix")
            self.until_served()
            self.assertTrue(self.answered(uri))
            self.assertEqual(self.status()["uri"], uri)
        self.assertEqual(self.machine.show("fabricd", "NRestarts"), "0")

        self.machine.do("systemctl", "kill", "--signal=KILL", "fabricd")
        self.assertTrue(self.answered(uri))  # the same process
        self.assertEqual(self.machine.main_pid("fabricd-pmix"), pid)
        self.machine.do("systemctl", "stop", "fabricd")
        self.machine.wait_state("fabricd-pmix", "inactive")

    def test_where_it_listens(self):
        """As the configuration says it, at each start and after each replacement."""
        self.machine.start_munge()
        self.addCleanup(self.machine.do, "systemctl", "stop", "munge")
        for listen in ("fab0", "10.91.7.0/24", "10.91.7.1"):
            with self.subTest(listen):
                self.configure(f"[security]\nremote = yes\n[pmix]\nlisten = {listen}\nport = 24240\n")
                self.machine.do("fabricd", "--check-config")
                self.machine.do("systemctl", "restart", "fabricd")
                lab.wait_for(lambda: self.status()["uri"].endswith("tcp4://10.91.7.1:24240"), what="its address")
                uri = self.status()["uri"]
        self.machine.do("systemctl", "kill", "--signal=KILL", "fabricd-pmix")
        self.assertEqual(self.status()["uri"], uri)
        self.machine.do("ip", "link", "set", "fab0", "down")
        self.addCleanup(self.machine.do, "ip", "link", "set", "fab0", "up")
        done = self.machine.run(["fabricd", "--check-config"])
        self.assertEqual(done.returncode, 2)
        self.assertIn("[pmix] listen: no interface of this host that is up has an IPv4 address in 10.91.7.1: ", done.stderr)
        self.machine.do("systemctl", "kill", "--signal=KILL", "fabricd-pmix")  # fabricd goes on without it
        self.wait_line("no interface of this host that is up has an IPv4 address in 10.91.7.1: ", ERROR, "fabricd-pmix")

    def test_its_port_is_taken(self):
        self.configure("[pmix]\nport = 24241\n")
        other = lab.spawn([*self.machine.prefix(), "/usr/bin/python3", "-c", "import socket, sys; s = socket.create_server(('127.0.0.1', 24241)); "
                           "print('up', flush=True); sys.stdin.read()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(other.stdout.close)
        self.addCleanup(other.stdin.close)
        self.addCleanup(lab.kill_group, other)
        self.assertEqual(other.stdout.readline(), "up\n")
        self.machine.do("systemctl", "start", "fabricd")  # which works without it
        self.wait_line("127.0.0.1:24241: this host cannot listen at this address: Address already in use", ERROR, "fabricd-pmix")


class Node(Case):
    """The node's scheduler is a second instance of the scheduler's unit, in a run directory of its own."""

    def test_delivers_mirrors_and_serves(self):
        """munge, lldpd, the scheduler's answers: all with the powers that the unit leaves."""
        unit = "fabricd-node"
        self.machine.start_munge()
        self.machine.do("systemctl", "start", "lldpd")
        self.addCleanup(self.machine.do, "systemctl", "stop", "munge", "lldpd")
        self.second("/etc/second.conf")
        self.machine.write("/etc/second.conf", SCHEDULER + "[nodes]\nlisten = lo\n")
        self.machine.do("systemctl", "start", "second")
        self.configure("", "node")
        self.start(unit)
        self.machine.until("generation", generation=1)
        self.machine.until("delivery", rundir="/run/second", after=0)
        node, = self.ask("nodes", rundir="/run/second")
        self.assertEqual((node["host"], node["uid"], node["failed"]), ("booted", 0, []))
        self.assert_probes_as_outside(unit)
        self.assertEqual(self.status()["pmix"], None)
        self.machine.do("systemctl", "stop", unit)

        # One that serves has the same unit of the PMIx server, though the daemon is root's here.
        self.configure("[node]\nserve = yes\n", "node")
        self.machine.do("systemctl", "add-wants", "--runtime", "fabricd-node.service", "fabricd-pmix")
        self.addCleanup(self.machine.do, "rm", "-r", "/run/systemd/system/fabricd-node.service.wants")
        self.start(unit)
        pid = self.machine.main_pid("fabricd-pmix")
        lab.wait_for(lambda: self.status()["pmix"]["pid"] == pid, what="the PMIx server in the status")
        server = self.status()["pmix"]
        self.assertEqual((server["separated"], server["filtered"]), (True, True))
        self.assertEqual(self.machine.do("stat", "-c", "%U", f"/proc/{pid}").strip(), "fabricd-pmix")
        self.machine.do("kill", "-KILL", str(pid))
        lab.wait_for(lambda: self.status()["pmix"]["pid"] not in (None, pid), what="the next PMIx server")
        self.machine.until("generation", generation=1)
        planes = self.machine.do("sh", "-c", 'fabricctl --uri "$(cat /run/fabricd/fabricd.uri)" --format json planes')
        self.assertEqual([plane["name"] for plane in json.loads(planes)], ["ib0"])
        self.machine.do("systemctl", "stop", unit)
        self.machine.wait_state("fabricd-pmix", "inactive")


class Units(Case):
    def test_exposure(self):
        for threshold, units in ((30, ("fabricd", "fabricd-node")), (17, ("fabricd-pmix",))):
            paths = [self.machine.show(unit, "FragmentPath") for unit in units]
            done = self.machine.run(["systemd-analyze", "security", "--no-pager", "--offline=true", f"--threshold={threshold}", *paths])
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("Overall exposure level", done.stdout)
            verified = self.machine.run(["systemd-analyze", "verify", "--man=no", *paths])
            for unit in units:
                self.assertNotIn(unit, verified.stderr)


if __name__ == "__main__":
    unittest.main()
