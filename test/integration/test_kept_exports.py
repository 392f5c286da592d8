"""Exports that fabricd keeps right: made anew after each generation, the site's command told where one says something
new. What fails or hangs is told and tried again, and the file stays. test_slurm_topology.py has them in the service."""
import os
import re
import signal
import time
import unittest

import lab
import test_hooks
import test_metrics

FILE = "topology.conf"


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = lab.tmpdir()
        self.capture = os.path.join(self.dir, "capture")
        self.text = lab.fabric("fattree2:4,2,4", "capture")
        lab.replace_file(self.capture, self.text)
        self.folder = os.path.join(self.dir, "exports")
        self.file = os.path.join(self.folder, FILE)
        self.n = 0

    def start(self, command=None, pace=1, deadline=10, files=None, **more):
        config = {"fabricd": {"probe": f"file:{self.capture}"},
                  "exports": {"folder": self.folder, "pace": pace, "deadline": deadline},
                  "exports.files": files or {FILE: "slurm-tree --plane ib0"},
                  "exports.commands": {FILE: command} if command else {}, **more}
        self.daemon = lab.Fabricd(config=config)
        self.addCleanup(self.daemon.stop)
        return self.daemon

    def change(self):
        """One more generation, of which Slurm must know."""
        self.n += 1
        lab.replace_file(self.capture, self.text.replace('"node0001', f'"other{self.n:04}'))
        return self.daemon.refresh()["generation"]

    def change_rates(self, rate):
        """One more, which is nothing to Slurm."""
        lab.replace_file(self.capture, self.text.replace("4xHDR", rate))
        return self.daemon.refresh()["generation"]

    def script(self, body, name="command"):
        return test_hooks.script(self.dir, name, body)

    def recorder(self, extra=""):
        """Notes when it was told of which generation, and what the file said."""
        return self.script(f'echo $(date +%s.%N) $FABRICD_GENERATION $(grep -o "other[0-9]*" {self.file} | head -1) '
                           f'>>{self.dir}/told\n{extra}')

    def told(self):
        try:
            with open(f"{self.dir}/told", encoding="utf-8") as file:
                return [line.split() for line in file.read().splitlines()]
        except FileNotFoundError:
            return []

    def export(self, index=0):
        return self.daemon.status()["exports"][index]

    def wait_export(self, index=0, timeout=20, **wanted):
        """Until `status` says so of it; that."""
        seen = {}

        def said():
            seen.update(self.export(index))
            return all(seen[key] == value for key, value in wanted.items()) and seen
        try:
            return lab.wait_for(said, timeout, f"{wanted}")
        except lab.LabError as error:
            raise AssertionError(f"{error}; it is {seen}\n{self.daemon.log()[-3000:]}") from None

    def read(self, path=None):
        with open(path or self.file, encoding="utf-8") as file:
            return file.read()

    def now(self):
        return self.daemon.ctl("export", "slurm-tree", "--plane", "ib0").stdout

    def metrics(self):
        samples, _ = test_metrics.parse(self.daemon.control("metrics")["text"])
        return {key: value for key, value in samples.items() if key[0].startswith("fabricd_export")}


class Kept(Case):
    def test_each_generation_and_the_command_after_a_real_change(self):
        self.start(self.recorder())
        one = self.wait_export(generation=1)
        self.assertEqual(self.read(), self.now())
        self.assertEqual((one["name"], one["file"], one["format"], one["command"], one["failures"], one["why"], one["retry"]),
                         (FILE, self.file, "slurm-tree", True, 0, None, None))
        self.assertTrue(one["changed"] <= one["exported"] <= one["told"])
        first = lab.stamp(self.file)
        second = self.change_rates("4xEDR")
        same = self.wait_export(generation=second)
        self.assertEqual((same["changed"], same["told"], lab.stamp(self.file)), (one["changed"], one["told"], first))
        third = self.change()
        three = self.wait_export(generation=third)
        self.assertEqual(self.read(), self.now())
        self.assertGreater(three["told"], one["told"])
        self.assertEqual([(line[1], line[2:]) for line in self.told()], [("1", []), (str(third), ["other0001"])])
        self.assertEqual(self.metrics(), {
            ("fabricd_exports_total", "changed"): 2, ("fabricd_exports_total", "same"): 1,
            ("fabricd_exports_total", "failed"): 0, ("fabricd_export_commands_total", "ok"): 2,
            ("fabricd_export_commands_total", "failed"): 0, ("fabricd_exports_failing", ""): 0})
        self.assertIn(f"export        {FILE}, of generation {third}, new at {three['changed']}, its command told at "
                      f"{three['told']}\n", self.daemon.ctl("status").stdout)
        self.assertNotIn("WRONG", self.daemon.ctl("top").stdout)

    def test_never_more_often_than_the_pace(self):
        self.start(self.recorder(), pace=2)
        while len(self.told()) < 4:
            newest = self.change()
        self.wait_export(generation=newest)
        times = [float(line[0]) for line in self.told()]
        for before, after in zip(times, times[1:]):
            self.assertGreater(after - before, 2)
        self.assertLess(sum(self.metrics()["fabricd_exports_total", key] for key in ("changed", "same")),
                        (times[-1] - times[0]) / 2 + 3)
        self.assertGreater(newest, 8)  # they waited for each other
        self.assertEqual(self.read(), self.now())

    def test_several_files_each_with_its_own(self):
        whole = os.path.join(self.dir, "whole.conf")
        self.start(self.recorder(), files={FILE: "slurm-tree --plane ib0", whole: "slurm-tree", "none": "slurm-tree --plane nosuch"})
        self.wait_export(generation=1)
        self.assertEqual(self.wait_export(1, generation=1)["file"], whole)
        bad = self.wait_export(2, failures=1)
        self.assertIn("no plane nosuch", bad["why"])
        self.assertEqual((bad["generation"], bad["exported"], bad["command"]), (0, None, False))
        self.assertTrue(os.path.exists(whole))
        self.assertEqual(sorted(os.listdir(self.folder)), [FILE, f"{FILE}.names", f"{FILE}.told"])
        self.assertEqual(self.metrics()["fabricd_exports_failing", ""], 1)
        self.assertIn("WRONG         1 of 3 exports fail", self.daemon.ctl("top").stdout)


class Failing(Case):
    def test_a_command_that_fails_is_told_and_tried_again_later_and_later(self):
        self.start(self.recorder(f"[ -e {self.dir}/good ] && exit 0; echo no such controller >&2; exit 5"))
        one = self.wait_export(failures=3, timeout=40)
        self.assertRegex(one["why"], f"^command of export {FILE}: the child ended with status 5; its last words were: no such controller$")
        self.assertGreater(one["retry"], one["exported"])
        self.assertEqual((one["generation"], one["told"], self.read()), (0, None, self.now()))  # the file is good
        self.assertRegex(self.daemon.ctl("status").stdout, rf"(?m)^EXPORT FAILS +{FILE}, .* its command told at -; failed 3 times, again at .*: command")
        self.assertRegex(self.daemon.log(), rf"error: command of export {FILE}: .*no such controller; tried again in 2 s")
        self.assertRegex(self.daemon.log(), r"no such controller; tried again in 4 s")
        times = [float(line[0]) for line in self.told()]
        self.assertGreater(times[1] - times[0], 2)
        self.assertGreater(times[2] - times[1], 4)
        self.assertEqual(self.metrics()["fabricd_exports_failing", ""], 1)
        open(f"{self.dir}/good", "w", encoding="utf-8").close()
        newest = self.change()  # is not waited for so long
        good = self.wait_export(generation=newest, timeout=5)
        self.assertEqual((good["failures"], good["why"]), (0, None))
        self.assertIsNotNone(good["told"])
        self.assertEqual(self.metrics()["fabricd_export_commands_total", "failed"], 3)

    def test_a_command_that_hangs_is_ended_with_all_it_started(self):
        self.start(self.recorder(f"[ -e {self.dir}/good ] && exit 0; sleep 300 & echo $! >{self.dir}/pid; wait"), deadline=1)
        one = self.wait_export(failures=1)
        self.assertEqual(one["why"], f"command of export {FILE}: not done after 1 s, killed")
        with open(f"{self.dir}/pid", encoding="utf-8") as file:
            child = lab.Held(int(file.read()))
        self.assertTrue(child.ended())
        self.assertFalse(self.daemon.status()["stale"])
        open(f"{self.dir}/good", "w", encoding="utf-8").close()
        self.wait_export(failures=0, generation=1)  # by itself

    def test_the_last_good_file_stays(self):
        daemon = self.start(self.recorder())
        self.wait_export(generation=1)
        good, told = self.read(), self.told()
        daemon.stop()
        for value, why in (("slurm-tree --plane nosuch", "no plane nosuch"), ("slurm-tree --nosuch", "no such option")):
            daemon.configure({"fabricd": {"probe": f"file:{self.capture}", "rundir": daemon.rundir, "store": daemon.store, "interval": 0},
                              "exports": {"folder": self.folder, "pace": 1}, "exports.files": {FILE: value}})
            daemon.start()
            self.assertIn(why, lab.wait_for(lambda: self.export()["why"], 20, "the failure"))  # the first, or one after it
            self.assertEqual((self.read(), self.told()), (good, told))
            daemon.stop()

    def test_a_folder_that_cannot_be_made_or_written(self):
        lab.replace_file(self.folder, "a file is in the way")
        self.start()
        one = self.wait_export(failures=1)
        self.assertIn(f"{self.file}: Not a directory", one["why"])
        os.unlink(self.folder)
        os.mkdir(self.folder)
        self.wait_export(failures=0, generation=1)  # tried again by itself
        self.assertEqual(self.read(), self.now())

    def test_a_stop_waits_for_no_command(self):
        daemon = self.start(self.recorder("sleep 300"), deadline=300)
        lab.wait_for(self.told, what="the command")
        start = time.monotonic()
        self.assertEqual(daemon.stop(), 0)
        self.assertLess(time.monotonic() - start, 5 * lab.SLOW)


class Restarted(Case):
    def test_restarts_change_nothing(self):
        daemon = self.start(self.recorder())
        one = self.wait_export(generation=1)
        before = lab.stamp(self.file), lab.stamp(self.file + ".told")
        for _ in range(3):  # test_export_restarts.py has more of them
            daemon.stop()
            daemon.start()
            again = self.wait_export(generation=1)
            self.assertEqual((lab.stamp(self.file), lab.stamp(self.file + ".told")), before)
            self.assertEqual((again["told"], again["changed"]), (one["told"], None))
        self.assertEqual(len(self.told()), 1)

    def test_what_a_daemon_that_was_killed_had_not_told_yet(self):
        daemon = self.start(self.recorder(f"[ -e {self.dir}/good ] && exit 0; echo $$ >{self.dir}/pid.new; mv {self.dir}/pid.new "
                                          f"{self.dir}/pid; exec sleep 300"), deadline=300)
        lab.wait_for(lambda: os.path.exists(f"{self.dir}/pid"), what="the command")
        with open(f"{self.dir}/pid", encoding="ascii") as file:  # it outlives its daemon
            self.addCleanup(lab.Held(int(file.read())).signal, signal.SIGKILL)
        daemon.kill9()
        open(f"{self.dir}/good", "w", encoding="utf-8").close()
        daemon.start()
        self.wait_export(generation=1, failures=0)
        self.assertEqual(len(self.told()), 2)

    def test_what_changed_while_no_daemon_ran_or_somebody_took_away(self):
        daemon = self.start(self.recorder())
        self.wait_export(generation=1)
        daemon.stop()
        os.unlink(self.file)
        daemon.start()
        self.wait_export(generation=1)
        self.assertEqual(self.read(), self.now())
        self.assertEqual(len(self.told()), 2)


class Configured(Case):
    def test_mistakes(self):
        for settings, why in (
                ({"exports.files": {"a/b": "slurm-tree"}}, "a/b: give a name in [exports] folder, or a whole path"),
                ({"exports.files": {"a": ""}}, 'a is "": give a format of fabricctl export, then its options'),
                ({"exports.files": {"a": "slurm-tre --strict"}}, 'a is "slurm-tre --strict": give a format of fabricctl export, then '
                                                                 'its options: slurm-tree, slurm-block, '),
                ({"exports.files": {"a": "slurm-tree,"}}, 'a is "slurm-tree,": give a format'),
                ({"exports.files": {"a": "--strict"}}, 'a is "--strict": give a format'),
                ({"exports.commands": {"a": "/bin/true"}}, "[exports.commands] a: there is no such file in [exports.files]"),
                ({"exports.files": {"a": "slurm-tree"}, "exports.commands": {"a": "true"}}, '"true": give the program\'s whole path'),
                ({"exports.files": {"a": "slurm-tree"}, "exports.commands": {"a": "/bin/nosuch x"}},
                 '[exports.commands]: "/bin/nosuch": there is no such program'),
                ({"exports.files": {"a": "slurm-tree" + " x" * 27}}, "a has 28 words: give no more than 27"),
                ({"exports.files": {"a": "slurm-tree"}, "exports.commands": {"a": "/bin/true" + " x" * 32}},
                 "a has 33 words: give no more than 32"),
                ({"exports": {"pace": 0}}, 'pace is "0": give a number from 1 to 86400')):
            daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}, **settings}, start=False)
            done = daemon.run_once("--check-config")
            self.assertEqual(done.returncode, 2, settings)
            self.assertRegex(done.stderr, re.escape(why))
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_the_pace_can_change_while_it_runs(self):
        daemon = self.start(self.recorder(), pace=3600)
        self.wait_export(generation=1)
        newest = self.change()
        self.assertEqual(self.export()["generation"], 1)
        text = self.read(daemon.conf).replace("pace = 3600", "pace = 1")
        lab.replace_file(daemon.conf, text)
        self.assertIn("pace", daemon.ctl("reload").stdout)
        self.wait_export(generation=newest)


if __name__ == "__main__":
    unittest.main()
