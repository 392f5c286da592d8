"""The history within its configured bounds: what is asked of it afterwards, and that numbers go on."""
import contextlib
import datetime
import os
import re
import sqlite3
import unittest
import unittest.mock

import sim

CHANGES = 40
DAY = 86400


class Bounds(unittest.TestCase):
    def start(self, fabric="fattree2:4,2,4", **history):
        debug = unittest.mock.patch.dict(os.environ, SIM_DEBUG="1")
        debug.start()
        self.addCleanup(debug.stop)
        self.site = sim.Site(fabric, {"history": history})
        self.addCleanup(self.site.free)
        self.n = 0

    def change(self):
        self.n += 1
        self.site.rename("node0001", f"other{self.n:04}")
        return self.site.refresh()["generation"]

    def history(self):
        return self.site.control("history", limit=0)

    def numbers(self):
        return [change["generation"] for change in self.history()["changes"]]

    def test_the_oldest_go_and_it_is_said_so(self):
        self.start(changes=CHANGES)
        for _ in range(20):
            newest = self.change()
        self.site.advance(60)
        answer = self.history()
        trimmed = answer["trimmed"]
        self.assertLessEqual(len(answer["changes"]), CHANGES)
        self.assertGreater(trimmed, 0)
        self.assertEqual(set(self.numbers()), set(range(trimmed + 1, newest + 1)))
        refused = self.site.control("diff", **{"from": trimmed - 1, "to": newest})
        self.assertFalse(refused["ok"])
        self.assertIn(f"trimmed: the history begins with generation {trimmed + 1}", refused["message"])
        self.assertTrue(self.site.control("diff", **{"from": trimmed, "to": newest})["ok"])
        done = self.site.ctl("diff", "0", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("trimmed: the history begins with generation", done.stderr)
        self.assertEqual(self.site.ctl("history").stdout.splitlines()[-1], f"trimmed: older than generation {trimmed + 1}")
        self.assertRegex(self.site.log(), rf"history: \d+ changes? removed, up to generation {trimmed}\b")
        # and when all is done, nothing is done any more
        steps = re.findall("history: a step", self.site.log())
        self.assertEqual(self.site.refresh()["generation"], newest)
        self.site.advance(60)
        self.assertEqual(re.findall("history: a step", self.site.log()), steps)

    def test_a_generation_goes_as_a_whole(self):
        """Its changes go in several steps, and a page has no part of it."""
        hosts = [f"node{number:04}" for number in range(1, 129)]
        self.start("fattree2:16,4,8", changes=1)
        whole, seen = {}, set()
        for name in "abcd":
            for host in hosts:
                self.site.rename(host, name + host)
            newest = self.site.refresh()["generation"]
            whole[newest] = self.numbers().count(newest)
            self.assertGreater(whole[newest], 100)  # more than one step removes
        for _ in range(1000):
            answer = self.history()
            numbers = [change["generation"] for change in answer["changes"]]
            seen.add(answer["trimmed"])
            self.assertEqual(set(numbers), set(range(answer["trimmed"] + 1, newest + 1)))
            for generation in whole.keys() & set(numbers):
                self.assertEqual(numbers.count(generation), whole[generation], generation)
            if answer["trimmed"] == newest - 1:
                break
            self.site.advance(0.05)
        self.assertIn(newest - 1, seen)
        self.assertGreater(len(seen), 2)

    def test_numbers_go_on_over_a_restart(self):
        self.start(changes=1)
        for _ in range(3):
            self.change()
        self.site.advance(60)
        self.assertEqual(self.history()["trimmed"], 3)
        self.site.kill9()
        self.site.start()
        self.assertEqual(self.site.status()["generation"], 4)
        self.assertEqual(self.change(), 5)

    def test_by_age_from_the_newest(self):
        self.start(days=1, changes=0)
        for _ in range(3):
            self.site.advance(DAY + 3600)
            self.change()
        self.site.advance(60)
        self.assertEqual(self.history()["trimmed"], 3)
        self.assertEqual(set(self.numbers()), {4})

    def test_the_clock_of_a_daemon_alone_takes_nothing_away(self):
        """All is old by that clock, but nothing was published since."""
        self.start(days=1)
        self.change()
        self.site.stop()
        with contextlib.closing(sqlite3.connect(self.site.store)) as store, store:
            store.execute("UPDATE generation SET published = published - 9000000000000")
        self.site.start()
        self.site.advance(60)
        self.assertIn("history: a step", self.site.log())
        self.assertEqual(self.history()["trimmed"], 0)

    def test_a_clock_that_is_set_takes_nothing_away(self):
        """To next year and back, while the daemon runs."""
        self.start(days=1)
        self.change()
        for seconds, again in ((500 * DAY, False), (0, True), (-500 * DAY, False)):
            if again:  # what it knew of the clock is gone with it
                self.site.kill9()
                self.site.start()
            steps = self.site.log().count(", the last")
            self.site.jump(seconds)
            newest = self.change()
            self.site.advance(60)
            self.assertGreater(self.site.log().count(", the last"), steps)
            self.assertEqual(self.history()["trimmed"], 0)
            self.assertEqual(set(self.numbers()), set(range(1, newest + 1)))
        told = {change["generation"]: datetime.datetime.fromisoformat(change["time"]) for change in self.history()["changes"]}
        self.assertGreater(told[newest - 1] - told[newest], datetime.timedelta(days=365))  # it was seen by the daemon
        self.assertEqual(self.site.log().count("history: the clock may be wrong"), 2)

    def test_a_history_that_was_changed_is_a_finding_after_the_start(self):
        self.start()
        for _ in range(3):
            self.change()
        self.site.stop()
        self.site.start()
        self.site.idle()
        self.site.advance(5)
        self.assertEqual([one["kind"] for one in self.site.control("check")["findings"] if one["kind"].startswith("history")], [])
        for sql in ("UPDATE change SET after = after || 'x' WHERE generation = 3", "UPDATE generation SET published = published + 1 WHERE generation = 2",
                    "DELETE FROM change WHERE generation = 2"):
            self.site.stop()
            with contextlib.closing(sqlite3.connect(self.site.store)) as store:
                saved = store.serialize()
                store.execute(sql)
                store.commit()
            self.site.start()
            self.site.idle()
            self.site.advance(5)
            (finding,) = [one for one in self.site.control("check")["findings"] if one["kind"] == "history-changed"]
            self.assertIn("its history was changed", finding["what"])
            self.assertIn("error history-changed", self.site.log())
            self.site.stop()
            for behind in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.site.store + behind)
            with open(self.site.store, "wb") as file:
                file.write(saved)
            self.site.start()


if __name__ == "__main__":
    unittest.main()
