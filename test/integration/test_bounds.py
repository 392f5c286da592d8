"""The history within its configured bounds: what is asked of it afterwards, and that numbers go on."""
import datetime
import os
import re
import sqlite3
import unittest

import lab

CHANGES = 40


class Bounds(unittest.TestCase):
    def setUp(self):
        self.capture = os.path.join(lab.tmpdir(), "capture")
        self.text = lab.fabric("fattree2:4,2,4", "capture")
        lab.replace_file(self.capture, self.text)
        self.n = 0

    def daemon(self, env=None, **history):
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}", "log": "debug"}, "history": history},
                             env=env)
        self.addCleanup(daemon.stop)
        return daemon

    def change(self, daemon):
        self.n += 1
        lab.replace_file(self.capture, self.text.replace('"node0001', f'"other{self.n:04}'))
        return daemon.refresh()["generation"]

    @staticmethod
    def at_rest(daemon):
        """The trimming has ended, and nothing was published since."""
        log = daemon.log()
        return log.rfind(", the last") > log.rfind("published")

    @staticmethod
    def numbers(answer):
        return [change["generation"] for change in answer["changes"]]

    def test_the_oldest_go_and_it_is_said_so(self):
        daemon = self.daemon(changes=CHANGES)
        for _ in range(20):
            newest = self.change(daemon)
        lab.wait_for(lambda: self.at_rest(daemon), what="the last step of the trimming")
        answer = daemon.control("history", limit=0)
        trimmed = answer["trimmed"]
        self.assertLessEqual(len(answer["changes"]), CHANGES)
        self.assertEqual({change["generation"] for change in answer["changes"]}, set(range(trimmed + 1, newest + 1)))
        refused = daemon.control("diff", **{"from": trimmed - 1, "to": newest})
        self.assertFalse(refused["ok"])
        self.assertIn(f"trimmed: older than generation {trimmed + 1} there is no history", refused["message"])
        self.assertTrue(daemon.control("diff", **{"from": trimmed, "to": newest})["ok"])
        done = daemon.ctl("diff", "0", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("trimmed: older than", done.stderr)
        self.assertEqual(daemon.ctl("history").stdout.splitlines()[-1], f"trimmed: older than generation {trimmed + 1}")
        self.assertRegex(daemon.log(), rf"history: \d+ changes? removed, up to generation {trimmed}\b")
        # and when all is done, nothing is done any more
        steps = re.findall("history: a step", daemon.log())
        self.assertEqual(daemon.refresh()["generation"], newest)
        self.assertEqual(re.findall("history: a step", daemon.log()), steps)

    def test_a_generation_goes_as_a_whole(self):
        """Its changes go in several steps, and a page has no part of it."""
        self.text = lab.fabric("fattree2:16,4,8", "capture")
        daemon = self.daemon(changes=1)
        whole = {}
        for name in "abcd":
            lab.replace_file(self.capture, self.text.replace('"node', f'"{name}node'))
            newest = daemon.refresh()["generation"]
            whole[newest] = self.numbers(daemon.control("history", limit=0)).count(newest)
            self.assertGreater(whole[newest], 100)  # more than one step removes
        trimmed = 0
        while trimmed < newest - 1:
            answer = daemon.control("history", limit=0)
            trimmed = answer["trimmed"]
            numbers = self.numbers(answer)
            self.assertEqual(set(numbers), set(range(trimmed + 1, newest + 1)))
            for generation in whole.keys() & set(numbers):
                self.assertEqual(numbers.count(generation), whole[generation], generation)

    def test_numbers_go_on_over_a_restart(self):
        daemon = self.daemon(changes=1)
        for _ in range(3):
            self.change(daemon)
        lab.wait_for(lambda: daemon.control("history", limit=0)["trimmed"] == 3, what="all but the newest to go")
        daemon.kill9()
        daemon.start()
        self.assertEqual(daemon.status()["generation"], 4)
        self.assertEqual(self.change(daemon), 5)

    def test_by_age_from_the_newest(self):
        daemon = self.daemon(days=1, changes=0)
        for _ in range(3):
            self.change(daemon)
        daemon.stop()
        store = sqlite3.connect(daemon.store)
        store.execute("UPDATE generation SET published = published - 90000000000 * (4 - generation)")  # 25 h each
        store.commit()
        store.close()
        daemon.start()
        lab.wait_for(lambda: daemon.control("history", limit=0)["trimmed"] == 3, what="what is older than a day to go")
        self.assertEqual({change["generation"] for change in daemon.control("history", limit=0)["changes"]}, {4})

    def test_the_clock_of_a_daemon_alone_takes_nothing_away(self):
        daemon = self.daemon(days=1)
        self.change(daemon)
        daemon.stop()
        store = sqlite3.connect(daemon.store)
        store.execute("UPDATE generation SET published = published - 9000000000000")
        store.commit()
        store.close()
        daemon.start()
        lab.wait_for(lambda: "history: a step" in daemon.log(), what="the look at the history")
        self.assertEqual(daemon.control("history", limit=0)["trimmed"], 0)

    def test_a_clock_that_is_set_takes_nothing_away(self):
        """To next year and back, while the daemon runs."""
        order = os.path.join(lab.tmpdir(), "clock")
        lab.replace_file(order, "0\n")
        preload = lab.preload(lab.sanitizer_library(lab.program("fabricd")), os.path.join(lab.BUILD, "lib", "clock_order.so"))
        daemon = self.daemon(env={"CLOCK_ORDER": order, "LD_PRELOAD": preload}, days=1)
        self.change(daemon)
        for seconds, again in ((500 * 86400, False), (500 * 86400, True), (0, False)):
            if again:  # what it knew of the clock is gone with it
                daemon.kill9()
                daemon.start()
            steps = daemon.log().count(", the last")
            lab.replace_file(order, f"{seconds}\n")
            newest = self.change(daemon)
            lab.wait_for(lambda steps=steps: daemon.log().count(", the last") > steps, what="the trimming to end")
            answer = daemon.control("history", limit=0)
            self.assertEqual(answer["trimmed"], 0)
            self.assertEqual({change["generation"] for change in answer["changes"]}, set(range(1, newest + 1)))
        year = datetime.timedelta(days=365)
        told = {change["generation"]: datetime.datetime.fromisoformat(change["time"]) for change in answer["changes"]}
        self.assertGreater(told[newest - 1] - told[newest], year)  # it was seen by the daemon
        self.assertEqual(daemon.log().count("history: the clock may be wrong"), 2)


if __name__ == "__main__":
    unittest.main()
