"""The port of the PMIx server is never free: its listening socket outlives the process. Here the test is the service manager
that keeps the socket, while other users bind the port as often as they can.
"""
import array
import os
import select
import signal
import socket
import subprocess
import sys
import unittest

import lab
import stranger

REPLACED = 1000 if lab.ALL else 12
BINDERS = 50 if lab.ALL else 6
OUTSIDER = 65534
# Bind the port again and again, and say so once it was free.
BIND = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
print("binds", flush=True)
while True:
    with socket.socket() as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            own.bind(("127.0.0.1", int(sys.argv[1])))
            own.listen()
        except OSError:
            continue
        print("stolen", flush=True)
        break
"""
# What systemd does: the descriptor is the first one, and the environment says whose it is.
PASS_ON = """
import os, sys
fd = int(sys.argv[1])
if fd >= 0:
    os.dup2(fd, 3)
    os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


class Manager:
    """The service manager of fabricd-pmix: it keeps the descriptor that it is given."""

    def __init__(self, folder):
        self.path, self.kept, self.process = os.path.join(folder, "manager"), -1, None
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)

    def start(self, rundir):
        command = [sys.executable, "-c", PASS_ON, str(self.kept), lab.program("fabricd-pmix"), "--rundir", rundir,
                   "--folder", rundir + "-pmix"]
        self.process = lab.spawn(command, of=os.path.dirname(rundir), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 pass_fds=[self.kept] if self.kept >= 0 else [],
                                 env=dict(os.environ, NOTIFY_SOCKET=self.path))

    def wait_ready(self):
        while True:
            if not select.select([self.socket], [], [], lab.HUNG)[0]:
                raise lab.LabError("fabricd-pmix is not ready")
            message, passed, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(4))
            for level, kind, data in passed:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    if self.kept >= 0:
                        os.close(self.kept)
                    self.kept = array.array("i", data[:4])[0]
            if b"READY=1" in message:
                return

    def kill(self):
        self.process.kill()
        lab.kill_group(self.process)

    def stop(self):
        self.kill()
        if self.kept >= 0:
            os.close(self.kept)
        self.socket.close()


class Port(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(self.path, lab.fabric("fattree2:2,1,2", "capture"))
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}"}, "pmix": {"start": "no"}})
        self.addCleanup(self.daemon.stop)
        self.manager = Manager(self.daemon.dir)
        self.addCleanup(self.manager.stop)
        self.start()

    def start(self):
        self.manager.start(self.daemon.rundir)
        self.manager.wait_ready()

    def served(self):
        return self.daemon.until_status(lambda status: status["pmix"]["pid"] == self.manager.process.pid, "pmix")["uri"]

    @unittest.skipIf(os.geteuid() != 0, "only root can try as another user")
    @unittest.skipUnless(lab.guard(), "the library cannot be given a socket without the guard")
    def test_nobody_gets_it(self):
        uri = self.served()
        port = uri.rsplit(":", 1)[1]
        binders = [lab.Watch([sys.executable, "-c", BIND, port, str(OUTSIDER)]) for _ in range(BINDERS)]
        for binder in binders:
            self.addCleanup(binder.stop)
            binder.wait("binds")
        for _ in range(REPLACED):
            self.manager.kill()
            self.start()
        with stranger.tool(uri) as channel:
            self.assertEqual(stranger.status_of(channel.ask(stranger.QUERY, stranger.query("pmix.fab.idx"))), 0)
        self.assertEqual(self.served(), uri)
        self.assertEqual([binder.output.text for binder in binders if "stolen" in binder.output.text], [])

    def test_without_its_daemon(self):
        """It serves on, stale, also anew; and what comes is served by it."""
        def tool(*args):
            return lab.run([lab.program("stock_tool"), uri, *args], env=self.daemon.tool_env()).stdout

        uri = self.served()
        self.assertIn("pmixfab.generation uint64 1\n", tool("register"))
        self.daemon.kill9()
        self.assertIn("pmixfab.generation uint64 1\n", tool("register"))
        self.manager.kill()
        self.start()
        self.assertIn("pmixfab.generation uint64 1\n", tool("register"))
        lab.replace_file(self.path, lab.fabric("fattree2:2,1,3", "capture"))
        self.daemon.start(wait=False)
        self.daemon.wait_ready(2)
        lab.wait_for(lambda: "pmixfab.generation uint64 2\n" in tool("register"), what="the next generation")

    def test_hung(self):
        """fabricd does not notice a server that does nothing any more, but for a second in each publication."""
        self.served()
        lab.freeze(self.manager.process.pid)
        lab.replace_file(self.path, lab.fabric("fattree2:2,1,3", "capture"))
        self.assertEqual(self.daemon.refresh()["generation"], 2)
        self.manager.process.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    unittest.main()
