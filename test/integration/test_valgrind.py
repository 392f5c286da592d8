"""fabricd-pmix, a relay and the component's hosts under valgrind: no wrong access, and nothing lost that grows with the
number of requests."""
import json
import os
import re
import socket
import subprocess
import unittest

import lab
import test_inventory
import test_pnet

FEW, MANY = 40, 120  # rounds of register, update and query
SUPPRESSIONS = os.path.join(lab.ROOT, "test", "san", "valgrind.supp")
FOUND = 9
OPTIONS = ["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite", "--num-callers=30",
           f"--error-exitcode={FOUND}", f"--suppressions={SUPPRESSIONS}"]


class Server:
    """fabricd-pmix as a child of this process, as fabricd starts it, beside that fabricd's own one."""

    STATUS = ["sh", "-c", 'exec "$@" 3>&1', "sh"]  # descriptor 3: where it says how it is

    def __init__(self, daemon, guard, prefix):
        self.channel, other = socket.socketpair()
        self.process = lab.spawn([*self.STATUS, *prefix, lab.program("fabricd-pmix"), "--child-of", str(os.getpid()),
                                  "--rundir", daemon.rundir, "--folder", os.path.join(daemon.dir, "under")],
                                 stdin=other, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 env=dict(daemon.env, LD_PRELOAD=lab.preload(guard)))
        other.close()
        self.channel.sendall(b"\0")  # no socket to listen on
        self.said = lab.Lines(self.process.stdout)
        line = self.said.wait(r'(?m)^\{.*"uri": ?"[^"]+".*\}$', timeout=lab.HUNG).group(0)
        self.status = json.loads(line)
        self.uri = self.status["uri"]

    def stop(self):
        self.channel.close()
        return self.process.wait(lab.HUNG)


def valgrind(log):
    return ["valgrind", *OPTIONS, f"--log-file={log}"]


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def held(log):
    """Bytes by what the summary calls them."""
    return {name: int(number.replace(",", ""))
            for name, number in re.findall(r"(definitely lost|indirectly lost|possibly lost|still reachable|suppressed): "
                                           r"([\d,]+) bytes", log)}


def setUpModule():
    if lab.SANITIZE:
        raise unittest.SkipTest("a sanitizer and valgrind exclude each other")
    lab.require("valgrind")


class Valgrind(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.guard = lab.guard()
        if cls.guard is None:
            raise unittest.SkipTest("without libpmix-guard.so the library's own losses are there")
        cls.dir = lab.tmpdir()
        capture = os.path.join(cls.dir, "fabric.txt")
        lab.replace_file(capture, lab.fabric("fattree2:4,2,4", "capture"))
        cls.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}})
        cls.addClassCleanup(cls.daemon.stop)

    def path(self, name):
        return os.path.join(self.dir, name)

    def load(self, uri, rounds):
        """Register, update and query, well and badly."""
        env = self.daemon.tool_env()
        load = lab.Watch([lab.program("stock_load"), uri], env, talk=True)
        load.wait("ready")
        self.assertEqual(load.say(f"rounds {rounds}", r"errors (\d+)").group(1), "0")
        load.process.stdin.close()
        load.process.wait(lab.HUNG)
        for _ in range(rounds // FEW):
            for words in (["register", "plane=ib0"], ["register", "plane=ib7"], ["register", "badindex=x"],
                          ["query", "pmix.fab.devs", "plane=ib0"], ["query", "pmix.fab.nverts", "plane=ib7"],
                          ["query", "no.such.key"]):
                lab.run([lab.program("stock_tool"), uri, *words], env=env)

    def check(self, few, many):
        for log in (few, many):
            self.assertIn("ERROR SUMMARY: 0 errors", log, log[-4000:])
        few, many = held(few), held(many)
        self.assertEqual(few["definitely lost"], 0)
        for kind in ("definitely lost", "indirectly lost", "suppressed"):
            self.assertEqual(few[kind], many[kind], kind)
        # what is still known at the end may vary with how the end went; a request that stays would be kilobytes
        self.assertLess(many["still reachable"] - few["still reachable"], 20 * (MANY - FEW))

    def test_pmix_server(self):
        """The process that answers requests, with its guard (valgrind has no sandbox). Started as fabricd starts it, under valgrind."""
        logs = []
        for rounds in (FEW, MANY):
            log = self.path(f"pmix.{rounds}")
            server = Server(self.daemon, self.guard, valgrind(log))
            self.assertTrue(server.status["guarded"])
            self.load(server.uri, rounds)
            self.assertEqual(server.stop(), 0, read(log)[-4000:])
            logs.append(read(log))
        self.check(*logs)

    def test_a_relay(self):
        """With the repair: the library itself loses 320 bytes a request."""
        logs = []
        for rounds in (FEW, MANY):
            log = self.path(f"relay.{rounds}")
            host = lab.Watch([*valgrind(log), lab.program("relay_host"), self.daemon.rundir],
                             dict(self.daemon.tool_env(), LD_PRELOAD=lab.preload(self.guard)), talk=True)
            uri = host.wait("(?m)^uri (.*)$", timeout=lab.HUNG).group(1)
            host.wait("(?m)^ready$", timeout=lab.HUNG)
            self.load(uri, rounds)
            host.process.stdin.close()
            self.assertEqual(host.process.wait(lab.HUNG), 0, read(log)[-4000:])
            logs.append(read(log))
        self.check(*logs)


class Component(test_pnet.Case):
    def test_objects(self):
        """Nothing is lost that grows: three times as many objects lose as much as once."""
        rundir, lost = self.made(), []
        for n in (20, 60):
            env = test_pnet.environment(rundir)
            done = lab.run(["valgrind", "--leak-check=full", "--error-exitcode=0", "--num-callers=30",
                            lab.program("stock_scheduler")], timeout=200, env=env,
                           stdin=self.commands(f"cycle {n}\nregister 0\nupdate 0\nquit\n"))
            self.assertIn("cycled wrong 0", done.stdout)
            summary = re.search(r"definitely lost: ([\d,]+) bytes", done.stderr)
            lost.append(int(summary.group(1).replace(",", "")) if summary else 0)
            self.assertNotIn("Invalid", done.stderr)
            for block in re.split(r"\n==\d+== \n", done.stderr):  # nothing of ours
                if "definitely lost in loss" in block:
                    self.assertNotIn("pnet_", block)
        self.assertEqual(lost[0], lost[1])

    @staticmethod
    def commands(text):
        path = os.path.join(lab.tmpdir(), "commands")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return open(path, encoding="utf-8")  # pylint: disable=consider-using-with


class Inventory(test_inventory.Site):
    def test_collected_and_delivered(self):
        """No wrong access, and what is lost (the library loses something at its end) does not grow."""
        sums = []
        record = self.record("node0001", self.guids["node0001"])
        for rounds in (3, 9):
            log = os.path.join(self.dir, f"valgrind.{rounds}")
            server = self.server("node0001", rundir=self.daemon.rundir, under=valgrind(log),
                                 probes=f"verbs:{record},hwloc:{test_inventory.HWLOC}")
            for _ in range(rounds):
                inventory = server.collect()
                self.assertIsNotNone(inventory)
                for how in ("deliver", "nested", "array", "wait"):
                    self.assertIn("SUCC", server.deliver(inventory, inventory[:-1], how=how))
            self.wait_held("node0001")
            server.quit()
            text = read(log)
            self.assertIn("ERROR SUMMARY: 0 errors", text, text[-4000:])
            sums.append(held(text))
        for kind in ("definitely lost", "indirectly lost", "suppressed"):
            self.assertEqual(sums[0][kind], sums[1][kind], kind)


if __name__ == "__main__":
    unittest.main()
