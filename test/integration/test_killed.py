"""A real subnet that is killed or hangs under the sweep, and real children that are killed: what was served goes on being served.
test/sim/test_killed.py has failed sweeps, test/sim/test_crash.c daemons that end wherever they can."""
import os
import signal
import unittest

import lab


class Case(unittest.TestCase):
    def check_failed(self, daemon, answer, failures):
        """A sweep failed: one line says so, the status says so, and the last generation is served."""
        daemon.check_alive()
        self.assertFalse(answer["ok"])
        self.assertEqual(len(daemon.errors()), failures, daemon.log())
        self.assertEqual(daemon.errors()[-1], answer["message"])
        status = daemon.status()
        self.assertEqual((status["stale"], status["stale_reason"], status["generation"]), (True, answer["message"], 1))
        self.assertIn("pmixfab.generation uint64 1\n", daemon.tool("register").stdout)


class Subnet(Case):
    def test_it_is_killed_and_hangs(self):
        lab.require("ibsim", "opensm")
        sim = lab.Ibsim(lab.fabric("fattree2:4,2,4"))
        self.addCleanup(sim.kill)
        sim.sweep()
        daemon = lab.Fabricd(sim, config={"fabricd": {"deadline": 2 * lab.SLOW}})
        self.addCleanup(daemon.stop)
        for failures, end in enumerate(("hangs", "is killed"), start=1):
            os.kill(sim.process.pid, signal.SIGSTOP)
            channel = daemon.ask("refresh")
            if end == "is killed":
                lab.wait_for(daemon.children, what="the sweep to begin")
                sim.kill()
            self.check_failed(daemon, daemon.answer(channel), failures)
            sim.kill()
            sim.restart()
            sim.sweep()
            self.assertLessEqual({"ok": True, "generation": 1, "changed": False, "partial": False}.items(), daemon.refresh().items())
            self.assertFalse(daemon.status()["stale"])


class Meaningless(Case):
    """Signals that are sent by mistake, as by a rotation of logs or a limit, to the daemon and all that it has started."""

    def test_each_is_ignored(self):
        feed = lab.Feed()
        capture = lab.fabric("fattree2:2,1,1", "capture")
        daemon = lab.Fabricd(config={"fabricd": {"probe": feed.probe}}, start=False)
        daemon.start(wait=False)
        self.addCleanup(daemon.stop)
        feed.give(capture)
        daemon.wait_ready()
        pid, server = daemon.process.pid, daemon.status()["pmix"]["pid"]
        mortal = {signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT, signal.SIGTERM, signal.SIGINT,
                  signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE,
                  signal.SIGTRAP, signal.SIGSYS}
        numbers = sorted(signal.valid_signals() - mortal) + [signal.SIGRTMIN + 1]
        self.assertGreater(len(numbers), 40)
        channel = daemon.ask("refresh")
        lab.wait_for(daemon.children, what="the sweep")
        for number in numbers:
            for process in (pid, server, *daemon.children()):
                os.kill(process, number)
        feed.give(capture)
        self.assertTrue(daemon.answer(channel)["ok"])
        self.assertEqual((daemon.status()["pmix"]["pid"], daemon.status()["pmix"]["replaced"], daemon.process.poll()), (server, 0, None))


class Child(Case):
    """The sweeping child is killed, stopped, or left without its daemon."""

    def setUp(self):
        self.feed = lab.Feed()
        self.capture = lab.fabric("fattree2:4,2,4", "capture")
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": self.feed.probe, "deadline": 1}}, start=False)
        self.daemon.start(wait=False)
        self.addCleanup(self.daemon.kill9)
        self.feed.give(self.capture)
        self.daemon.wait_ready()

    def test_signals(self):
        for failures, number in enumerate((signal.SIGKILL, signal.SIGSTOP), start=1):
            with self.subTest(number.name):
                channel = self.daemon.ask("refresh")
                (child,) = lab.wait_for(self.daemon.children, what="the child")
                os.kill(child, number)
                answer = self.daemon.answer(channel)
                self.check_failed(self.daemon, answer, failures)
                self.assertIn("timed out after 1 s" if number == signal.SIGSTOP else f"signal {number.value} ",
                              answer["message"])
                self.assertEqual(self.daemon.children(), [])
        channel = self.daemon.ask("refresh")
        self.feed.give(self.capture)
        self.assertEqual(self.daemon.answer(channel)["generation"], 1)
        self.assertFalse(self.daemon.status()["stale"])

    def test_the_daemon_leaves_no_child_behind(self):
        for end in (self.daemon.kill9, self.daemon.stop):
            self.daemon.ask("refresh").close()  # who asked does not wait
            (child,) = map(lab.Held, lab.wait_for(self.daemon.children, what="the child"))
            end()
            self.assertTrue(child.ended())
            self.daemon.start(wait=False)  # and with it a first sweep
            self.daemon.wait_up()


if __name__ == "__main__":
    unittest.main()
