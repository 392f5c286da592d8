"""Exports that fabricd keeps right: made anew after each generation, the site's command told where one says something new. What fails or
hangs is told and tried again, and the file stays."""
import os
import re
import unittest

import lab
import sim
import test_metrics

FILE = "topology.conf"
COMMAND = "/bin/true"  # played


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = lab.tmpdir()
        self.folder = os.path.join(self.dir, "exports")
        self.file = os.path.join(self.folder, FILE)
        self.n, self.told = 0, []  # (when, generation, what the file said) of each command
        self.end = None  # how commands end

    def start(self, command=COMMAND, pace=1, deadline=10, files=None):
        self.site = sim.Site("fattree2:4,2,4", {
            "exports": {"folder": self.folder, "pace": pace, "deadline": deadline},
            "exports.files": files or {FILE: "slurm-tree --plane ib0"},
            "exports.commands": {FILE: command} if command else {}}, start=False)
        self.addCleanup(self.site.free)
        self.site.programs(self.play)
        self.counted = {}
        self.site.start()
        return self.site

    def play(self, program):
        with open(self.file, encoding="utf-8") as file:
            said = re.findall("other[0-9]*", file.read())[:1]
        self.told.append((self.site.now(), int(program.environ["FABRICD_GENERATION"]), said))
        return self.end

    def change(self):
        """One more generation, of which Slurm must know."""
        self.n += 1
        self.site.rename("node0001", f"other{self.n:04}")
        return self.site.refresh()["generation"]

    def change_rate(self):
        """One more, which is nothing to Slurm."""
        self.site.rate("leaf1", self.site.cable("leaf1", "node0002"), 4, "EDR")
        return self.site.refresh()["generation"]

    def export(self, index=0, **wanted):
        """What `status` says of it, which is this."""
        seen = self.site.status()["exports"][index]
        self.assertEqual({key: seen[key] for key in wanted}, wanted, self.site.log()[-3000:])
        return seen

    def read(self, path=None):
        with open(path or self.file, encoding="utf-8") as file:
            return file.read()

    def made_now(self):
        return self.site.ctl("export", "slurm-tree", "--plane", "ib0").stdout

    def metrics(self):
        samples, _ = test_metrics.parse(self.site.control("metrics")["text"])
        return {key: value for key, value in samples.items() if key[0].startswith("fabricd_export")}


class Kept(Case):
    def test_each_generation_and_the_command_after_a_real_change(self):
        self.start()
        before = self.metrics()
        one = self.export(generation=1, name=FILE, file=self.file, format="slurm-tree", command=True, failures=0, why=None, retry=None)
        self.assertEqual(self.read(), self.made_now())
        self.assertTrue(one["changed"] <= one["exported"] <= one["told"])
        first = lab.stamp(self.file)
        second = self.change_rate()
        self.site.advance(1)
        self.export(generation=second, changed=one["changed"], told=one["told"])
        self.assertEqual(lab.stamp(self.file), first)
        third = self.change()
        self.site.advance(1)
        three = self.export(generation=third)
        self.assertEqual(self.read(), self.made_now())
        self.assertGreater(three["told"], one["told"])
        self.assertEqual([line[1:] for line in self.told], [(1, []), (third, ["other0001"])])
        self.assertEqual({key: value - before[key] for key, value in self.metrics().items()}, {
            ("fabricd_exports_total", "changed"): 1, ("fabricd_exports_total", "same"): 1,
            ("fabricd_exports_total", "failed"): 0, ("fabricd_export_commands_total", "ok"): 1,
            ("fabricd_export_commands_total", "failed"): 0, ("fabricd_exports_failing", ""): 0})
        self.assertIn(f"export        {FILE}, of generation {third}, new at {three['changed']}, its command succeeded at "
                      f"{three['told']}\n", self.site.ctl("status", "--long").stdout)
        self.assertNotIn("WRONG", self.site.ctl("top", "--once").stdout)

    def test_never_more_often_than_the_pace(self):
        self.start(pace=2)
        newest, looks = 1, self.metrics()["fabricd_exports_total", "changed"]
        while len(self.told) < 4:
            newest = self.change()
            self.site.advance(0.5)
        self.site.advance(2)
        self.export(generation=newest)
        times = [line[0] for line in self.told]
        for before, after in zip(times, times[1:]):
            self.assertAlmostEqual(after - before, 2.04, delta=0.005)  # from the end of the command to the start of the next export
        self.assertEqual(self.metrics()["fabricd_exports_total", "changed"] - looks, len(self.told) - 1)
        self.assertGreater(newest, 8)  # they waited for each other
        self.assertEqual(self.read(), self.made_now())

    def test_several_files_each_with_its_own(self):
        whole = os.path.join(self.dir, "whole.conf")
        self.start(files={FILE: "slurm-tree --plane ib0", whole: "slurm-tree", "none": "slurm-tree --plane nosuch"})
        self.export(generation=1)
        self.export(1, generation=1, file=whole)
        bad = self.export(2, failures=1, generation=0, exported=None, command=False)
        self.assertIn("no plane nosuch", bad["why"])
        self.assertTrue(os.path.exists(whole))
        self.assertEqual(sorted(os.listdir(self.folder)), [FILE, f"{FILE}.names", f"{FILE}.told"])
        self.assertEqual(self.metrics()["fabricd_exports_failing", ""], 1)
        self.assertIn("WRONG         1 of 3 exports fail", self.site.ctl("top", "--once").stdout)


class Failing(Case):
    def test_a_command_that_fails_is_told_and_tried_again_later_and_later(self):
        self.end = {"status": 5, "says": "no such controller"}
        self.start()
        failed = self.metrics()["fabricd_export_commands_total", "failed"] - 1
        self.site.advance(7)
        one = self.export(failures=3, generation=0, told=None)
        self.assertEqual(one["why"], f"command of export {FILE}: the child ended with status 5; its last output was: no such controller")
        self.assertGreater(one["retry"], one["exported"])
        self.assertEqual(self.read(), self.made_now())  # the file is good
        self.assertRegex(self.site.ctl("status").stdout, rf"(?m)^EXPORT FAILS +{FILE}, .* its command succeeded at -; failed 3 times, again at .*: command")
        self.assertRegex(self.site.log(), rf"error: command of export {FILE}: .*no such controller; next attempt in 2 s")
        self.assertRegex(self.site.log(), r"no such controller; next attempt in 4 s")
        times = [line[0] for line in self.told]
        self.assertAlmostEqual(times[1] - times[0], 2.04, delta=0.005)
        self.assertAlmostEqual(times[2] - times[1], 4.04, delta=0.005)
        self.assertEqual(self.metrics()["fabricd_exports_failing", ""], 1)
        self.end = None
        newest = self.change()  # is not waited for so long
        self.site.advance(1)
        good = self.export(generation=newest, failures=0, why=None)
        self.assertIsNotNone(good["told"])
        self.assertEqual(self.metrics()["fabricd_export_commands_total", "failed"], failed + 3)

    def test_a_command_that_hangs_is_ended(self):
        self.end = {"seconds": None}
        self.start(deadline=1)
        self.site.advance(1)
        self.export(failures=1, why=f"command of export {FILE}: timed out after 1 s: killed")
        self.assertFalse(self.site.status()["stale"])
        self.end = None
        self.site.advance(2.1)
        self.export(failures=0, generation=1)  # by itself

    def test_the_last_good_file_stays(self):
        self.start()
        self.export(generation=1)
        good, told = self.read(), list(self.told)
        for value, why in (("slurm-tree --plane nosuch", "no plane nosuch"), ("slurm-tree --nosuch", "no such option")):
            self.site.stop()
            self.site.configure({"exports.files": {FILE: value}})
            self.site.start()
            self.assertIn(why, self.export()["why"])
            self.assertEqual((self.read(), self.told), (good, told))

    def test_a_folder_that_cannot_be_made_or_written(self):
        lab.replace_file(self.folder, "a file is in the way")
        self.start(command=None)
        self.assertIn(f"{self.file}: Not a directory", self.export(failures=1)["why"])
        os.unlink(self.folder)
        os.mkdir(self.folder)
        self.site.advance(2.1)
        self.export(failures=0, generation=1)  # tried again by itself
        self.assertEqual(self.read(), self.made_now())

    def test_a_stop_waits_for_no_command(self):
        self.end = {"seconds": None}
        self.start(deadline=300)
        now = self.site.now()
        self.site.stop()
        self.assertEqual((len(self.told), self.site.now()), (1, now))
        self.assertIn(f"child: command of export {FILE}: killed", self.site.log())


class Restarted(Case):
    def test_restarts_change_nothing(self):
        self.start()
        one = self.export(generation=1)
        before = lab.stamp(self.file), lab.stamp(self.file + ".told")
        for end in (self.site.stop, self.site.kill9, self.site.stop):  # test_export_restarts.py has more of them
            end()
            self.site.start()
            self.export(generation=1, told=one["told"], changed=None)
            self.assertEqual((lab.stamp(self.file), lab.stamp(self.file + ".told")), before)
        self.assertEqual(len(self.told), 1)

    def test_what_a_daemon_that_was_killed_had_not_told_yet(self):
        self.end = {"seconds": None}
        self.start(deadline=300)
        self.site.kill9()
        self.end = None
        self.site.start()
        self.export(generation=1, failures=0)
        self.assertEqual(len(self.told), 2)

    def test_what_changed_while_no_daemon_ran_or_somebody_took_away(self):
        self.start()
        self.site.stop()
        os.unlink(self.file)
        self.site.start()
        self.export(generation=1)
        self.assertEqual(self.read(), self.made_now())
        self.assertEqual(len(self.told), 2)


class Configured(Case):
    def test_mistakes(self):
        site = sim.Site("fattree2:4,2,4", start=False)
        self.addCleanup(site.free)
        none = {"exports.files": {"a": None, "a/b": None}, "exports.commands": {"a": None}, "exports": {"pace": None}}
        for settings, why in (
                ({"exports.files": {"a/b": "slurm-tree"}}, "a/b: give a name in [exports] folder, or a whole path"),
                ({"exports.files": {"a": "slurm-tre --strict"}}, 'a is "slurm-tre --strict": give a format of fabricctl export, then '
                                                                 'its options: slurm-tree, slurm-block, '),
                ({"exports.files": {"a": "slurm-tree,"}}, 'a is "slurm-tree,": give a format'),
                ({"exports.files": {"a": "--strict"}}, 'a is "--strict": give a format'),
                ({"exports.commands": {"a": "/bin/true"}}, "[exports.commands] a: there is no such file in [exports.files]"),
                ({"exports.files": {"a": "slurm-tree"}, "exports.commands": {"a": "true"}}, '"true": give the program\'s whole path'),
                ({"exports.files": {"a": "slurm-tree"}, "exports.commands": {"a": "/bin/nosuch x"}},
                 '[exports.commands]: "/bin/nosuch": there is no such program'),
                ({"exports.files": {"a": "slurm-tree" + " x" * 21}}, "a has 22 words: give no more than 21"),
                ({"exports.files": {"a": "slurm-tree"}, "exports.commands": {"a": "/bin/true" + " x" * 32}},
                 "a has 33 words: give no more than 32"),
                ({"exports": {"pace": 0}}, 'pace is "0": give a number from 1 to 86400')):
            with self.subTest(why):
                site.configure(none)
                site.configure(settings)
                done = site.fabricd("--check-config")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(why, done.stderr)
                self.assertEqual(done.stderr.count("error: "), 1, done.stderr)

    def test_the_pace_can_change_while_it_runs(self):
        self.start(pace=3600)
        self.export(generation=1)
        newest = self.change()
        self.site.advance(10)
        self.export(generation=1)
        self.site.configure({"exports": {"pace": 1}})
        self.site.save()
        self.assertIn("pace", self.site.ctl("reload").stdout)
        self.site.idle()
        self.export(generation=newest)


if __name__ == "__main__":
    unittest.main()
