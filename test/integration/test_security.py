"""Who may do what; and those who send rubbish disturb nobody but themselves. (Of the PMIx port: test_untrusted_clients.py, too.)"""
import contextlib
import json
import os
import pwd
import re
import resource
import socket
import unittest

import hosts
import lab
import stranger
import versions

OUTSIDER = "nobody"
READING = (["status"], ["planes"], ["devices"], ["switches"], ["links"], ["groups"], ["coords"], ["matrix"],
           ["cost", "node0001", "node0002"], ["events"], ["history"], ["diff"])


@contextlib.contextmanager
def as_outsider():
    """Be somebody else for a while, where one may."""
    if os.geteuid() == 0:
        os.seteuid(pwd.getpwnam(OUTSIDER).pw_uid)
        try:
            yield
        finally:
            os.seteuid(0)
    else:
        yield


class Case(unittest.TestCase):
    """All tests of a class have one daemon."""

    settings, env = {}, None

    @classmethod
    def setUpClass(cls):
        cls.path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(cls.path, lab.fabric("fattree2:2,1,2", "capture"))
        cls.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{cls.path}", **cls.settings}, "security": {"admins": "daemon, bin"}},
                                 env=cls.env)
        cls.addClassCleanup(cls.daemon.stop)

    def check_serving(self):
        self.daemon.check_alive()
        self.assertIn("pmixfab.generation uint64 1\n", self.daemon.tool("register").stdout)
        self.assertEqual(self.daemon.refresh()["generation"], 1)
        self.assertEqual(self.daemon.errors(), [])


@unittest.skipIf(os.geteuid() != 0, "only root can be others, too")
class Users(Case):
    def test_an_outsider_reads_and_changes_nothing(self):
        for command in READING:
            done = self.daemon.ctl(*command, user=OUTSIDER)
            self.assertEqual((done.returncode, done.stdout != ""), (0, True), done.stderr)
        last = self.daemon.status()["last_sweep"]
        for command in (["refresh"], ["refresh", "--accept-partial"]):
            done = self.daemon.ctl(*command, user=OUTSIDER)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"^fabricctl: refresh: uid \d+ may not do that: .*\n$")
        with as_outsider():  # who says that he is root is still who the kernel says he is
            channel = self.daemon.ask("refresh", uid=0, user="root", pid=1)
        answer = self.daemon.answer(channel)
        self.assertEqual((answer["ok"], answer["error"]), (False, -14))
        self.assertEqual(self.daemon.status()["last_sweep"], last)
        for path in (self.daemon.rundir, self.daemon.store, *(os.path.join(self.daemon.rundir, name)
                                                              for name in os.listdir(self.daemon.rundir))):
            self.assertFalse(os.stat(path).st_mode & 0o022 and not path.endswith(".sock"), path)
        for administrator in ("daemon", "bin"):
            self.assertEqual(self.daemon.ctl("refresh", user=administrator).returncode, 0)

    def test_the_daemons_own_user(self):
        """A daemon without root: its user may do what root may, others may not."""
        account = pwd.getpwnam(OUTSIDER)
        own = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}"}}, start=False)
        own.binary, own.env = lab.readable_copy(own.binary, own.env)
        os.chown(own.dir, account.pw_uid, account.pw_gid)
        command = own.command
        own.command = lambda *args: ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups",
                                     *command(*args)]
        lab.require("setpriv")
        own.start()
        self.addCleanup(own.stop)
        for user, status in ((OUTSIDER, 0), (None, 0), ("daemon", 1)):  # no administrator of this one
            self.assertEqual(own.ctl("refresh", user=user).returncode, status)


class Control(Case):
    def connect(self):
        channel = self.daemon.connect(10)
        self.addCleanup(channel.close)
        return channel

    def rest(self, channel):
        """All that comes until the other side closes."""
        text = b""
        try:
            while True:
                data = channel.recv(65536)
                if not data:
                    return text
                text += data
        except ConnectionResetError:  # it was closed before it had read all
            return text

    def test_rubbish(self):
        for line in (b"\n", b"{}\n", b"[]\n", b"refresh\n", b'{"op":7}\n', b'{"op":null}\n', b"\xff\xfe\0\1\n", b"[" * 5000 + b"\n",
                     b'{"op":"status","op":"refresh"}\n', b'{"op":"status"\n', os.urandom(60000).replace(b"\n", b"") + b"\n"):
            channel = self.connect()
            channel.sendall(line + b'{"op":"status"}\n')
            first, *more = self.rest(channel).splitlines()
            self.assertEqual((json.loads(first)["ok"], more), (False, []), line[:40])  # an error, and the connection
        channel = self.connect()
        channel.sendall(b'{"op":"nothing"}\n{"op":"history","limit":"x"}\n{"op":"diff","to":-1}\n{"op":"diff","from":9}\n'
                        b'{"op":"history","what":[]}\n{"op":"status"}\n')
        channel.shutdown(socket.SHUT_WR)
        answers = [json.loads(line)["ok"] for line in self.rest(channel).splitlines()]
        self.assertEqual(answers, [False] * 5 + [True])  # what only cannot be done costs nothing
        self.check_serving()

    def test_lines_without_end(self):
        def refused(channel, size, limit):
            try:
                channel.sendall(b'{"op":"' + b"x" * size)
            except (BrokenPipeError, ConnectionResetError):
                pass
            self.assertIn(limit, self.rest(channel) or limit)

        for size in (70000, 10_000_000):
            if os.geteuid() == 0:
                with as_outsider():
                    channel = self.connect()
                refused(channel, size, b"longer than 65536")
            # Who may deliver what hosts report, as the daemon's own user may, needs longer ones for it.
            refused(self.connect(), 300_000 + size, b"longer than 351")
        self.check_serving()

    def test_half_lines(self):
        held = [self.connect() for _ in range(20)]
        for channel in held:
            channel.sendall(b'{"op":"sta')
        self.check_serving()
        for channel in held[:10]:
            channel.sendall(b'tus"}\n')
            self.assertIn(b'"ok":true', channel.recv(65536))
        for channel in held:
            channel.close()
        self.check_serving()


@unittest.skipIf(os.geteuid() != 0, "only root can be others, too")
class ForeignTools(unittest.TestCase):
    """[pmix] foreign_tools: who may connect. The daemon's group is root's here, with one more member."""

    def test_who_may_connect(self):
        host = hosts.Host("here")
        self.addCleanup(host.stop)
        group = os.path.join(lab.tmpdir(), "group")
        lab.replace_file(group, "root:x:0:daemon\ndaemon:x:1:\nnogroup:x:65534:\n")
        host.do("mount", "--bind", group, "/etc/group")
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric("fattree2:2,1,2", "capture"))
        for mode, admitted in (("yes", ["root", "daemon", OUTSIDER]), ("no", ["root"]), ("group", ["root", "daemon"])):
            daemon = hosts.Fabricd(host, None, config={"fabricd": {"probe": f"file:{path}"}, "pmix": {"foreign_tools": mode}})
            self.addCleanup(daemon.stop)
            for name in ("root", "daemon", OUTSIDER, "root"):  # it serves on after a refusal
                with self.subTest(mode, caller=name):
                    binary, env = lab.readable_copy(lab.program("stock_tool"), dict(daemon.tool_env(), TMPDIR="/tmp"))
                    done = host.run(["setpriv", f"--reuid={name}", "--regid=65534", "--clear-groups", binary, daemon.uri(), "register"],
                                    env=env, cwd="/")
                    self.assertEqual("pmixfab.generation uint64 1\n" in done.stdout, name in admitted, done.stderr)
            daemon.stop()


class PmixPort(Case):
    """Loopback only; and what comes there before a PMIx connection is made. The library itself (4.2) waits for each
    new connection's first message with all its thread, and dies of tools that die at the wrong moment."""

    def port(self):
        return int(self.daemon.uri().rsplit(":", 1)[1])

    def connect(self, data=b""):
        channel = stranger.Channel(self.daemon.uri())
        self.addCleanup(channel.close)
        channel.send(data)
        return channel

    @staticmethod
    def message():
        """The first message of a tool."""
        first = stranger.first()
        return stranger.HEADER.pack(-1, 0xffffffff, len(first), 0) + first

    def test_listens_on_loopback_only(self):
        own = {path for pid in (self.daemon.process.pid, self.daemon.pmix_pid()) for path in lab.descriptors(pid).values()}
        listening = []
        for name in ("tcp", "tcp6", "udp", "udp6"):
            with open(f"/proc/net/{name}", encoding="ascii") as file:
                for fields in (line.split() for line in list(file)[1:]):
                    if f"socket:[{fields[9]}]" in own and fields[3] in ("0A", "07"):
                        listening.append(fields[1])
        self.assertEqual(listening, [f"0100007F:{self.port():04X}"])

    def test_who_says_nothing_holds_nobody_up(self):
        message = self.message()
        held = [self.connect(message[:size]) for size in [0, 7, 16, 17, len(message) - 1] + [0] * 300]
        self.check_serving()  # while they say nothing
        self.assertTrue(all(channel.ended() for channel in held))  # and are sent away in the end

    def use_up(self):
        """Leave the daemon without descriptors, wait for a word about it, and give all back."""
        pid = self.daemon.pmix_pid()
        taken = {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
        # Unrepaired from 5.0 on: who is taken and says nothing holds up the only thread, and who cannot be taken shuts the door.
        one = versions.LATER and isinstance(self, PmixPortUnrepaired)
        most = min(set(range(len(taken) + 1)) - taken) if one else max(taken) + 4
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        crowd = []
        with contextlib.suppress(*[ConnectionResetError] if one else []):
            crowd += [self.connect() for _ in range(1 if one else 10)]
        self.daemon.logged(re.compile("OUT.OF.RESOURCE|no descriptor left"))
        with contextlib.suppress(*[ProcessLookupError] if one else []):  # from 6.1 on it dies of it
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        for channel in crowd:
            channel.close()

    def test_without_descriptors_it_is_deaf_for_a_while_only(self):
        self.use_up()
        self.check_serving()
        self.assertEqual(self.daemon.log().count("no descriptor left"), 1)


class PmixPortUnrepaired(PmixPort):
    """When this fails, a newer library has come: see whether guard_connect.c is still needed."""

    env, settings = {"FABRICD_NO_REPAIR": "1"}, {"log": "debug"}
    test_listens_on_loopback_only = None

    def test_without_descriptors_it_is_deaf_for_a_while_only(self):
        self.daemon.stop()  # after the other test, or before it
        self.daemon.start()
        self.use_up()
        if versions.LATER:
            self.assertTrue(self.daemon.tool("register").returncode != 0 or self.daemon.status()["pmix"]["replaced"] > 0)
            return
        with self.assertRaises(lab.LabError):  # for good
            self.daemon.tool("register", timeout=3)

    def test_who_says_nothing_holds_nobody_up(self):
        silent = self.connect()  # the library's thread reads from it, and takes the next one afterwards
        self.connect(self.message()).close(abruptly=True)
        silent.close()
        if versions.PMIX >= (6, 1):  # it outlives who vanishes
            return
        server = self.daemon.replaced(1)
        if not lab.SANITIZE:
            self.assertIn("signal 11", server["why"])


class Descriptors(unittest.TestCase):
    """A node or a tool that is connected is a descriptor: the usual limit would be 1,024 of them."""

    def test_the_limit_is_raised_but_for_what_is_started(self):
        found = os.path.join(lab.tmpdir(), "found")
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric("fattree2:2,1,2", "capture"))
        hook = os.path.join(lab.tmpdir(), "hook")
        lab.replace_file(hook, f"#!/bin/sh\nsleep 0.1\nulimit -Sn >{found}\ncat >/dev/null\n")
        os.chmod(hook, 0o755)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
        try:
            daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"},
                                         "changes": {"hook": hook}})
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        self.addCleanup(daemon.stop)
        daemon.wait_ready()
        self.assertEqual(resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE), (hard, hard))
        daemon.until("idle")
        with open(found, encoding="ascii") as file:
            self.assertEqual(file.read(), "200\n")


if __name__ == "__main__":
    unittest.main()
