"""The hook: a program of the site is told of each generation, and nothing that it does is in the daemon's way."""
import json
import os
import unittest

import sim

HOOK = "/bin/true x"  # played


class Hooks(unittest.TestCase):
    def start(self, play=None, deadline=10):
        self.told, self.n = [], 0
        self.site = sim.Site("fattree2:4,2,4", {"changes": {"hook": HOOK, "hook_deadline": deadline}}, start=False)
        self.addCleanup(self.site.free)

        def begin(program):
            self.told.append(program)
            return play(program) if play else None
        self.site.programs(begin)
        self.site.start()

    def change(self):
        """Publish one more generation: a host gets another name."""
        self.n += 1
        self.site.rename("node0001", f"other{self.n:04}")
        return self.site.refresh()["generation"]

    def test_each_generation_is_told_as_diff_answers(self):
        self.start()
        self.change()
        self.change()
        self.assertEqual(len(self.told), 3)
        for number, program in enumerate(self.told, 1):
            self.assertEqual(program.argv, HOOK.split())
            self.assertEqual(program.environ, {"FABRICD_RUNDIR": self.site.rundir, "FABRICD_GENERATION": str(number)})
            told = json.loads(program.input)
            diff = self.site.control("diff", **{"from": number - 1, "to": number})
            self.assertEqual({key: told[key] for key in ("from", "to", "changes")},
                             {key: diff[key] for key in ("from", "to", "changes")})
            self.assertEqual(told["generation"], number)
            self.assertEqual(told["planes"], [{"index": 1, "name": "ib0"}])
            self.assertGreater(len(told["changes"]), 0)
            self.assertRegex(told["published"], r"^\d{4}-\d\d-\d\dT.*Z$")

    def test_a_hook_that_fails_is_a_line(self):
        self.start(lambda program: {"status": 5, "says": "no such system"})
        self.assertIn("error: hook for generation 1: the child ended with status 5; its last output was: no such system", self.site.log())
        self.change()
        self.assertIn("hook for generation 2: the child ended with status 5", self.site.log())
        self.assertFalse(self.site.status()["stale"])

    def test_a_hook_that_hangs_is_killed_at_its_deadline(self):
        self.start(lambda program: {"seconds": None}, deadline=3)
        self.assertEqual(self.change(), 2)  # while it hangs
        self.assertEqual(len(self.told), 1)
        self.site.advance(2.9)
        self.assertNotIn("killed", self.site.log())
        self.site.advance(0.1)
        self.assertIn("hook for generation 1: timed out after 3 s: killed", self.site.log())
        self.assertEqual(len(self.told), 2)

    def test_the_oldest_are_left_out_when_too_many_wait(self):
        self.start(lambda program: {"seconds": 100} if program.environ["FABRICD_GENERATION"] == "1" else None, deadline=120)
        for _ in range(67):
            self.change()
        self.assertEqual(self.site.log().count("64 are waiting already"), 3)
        self.assertEqual(len(self.told), 1)
        self.site.advance(102)
        self.assertEqual([int(program.environ["FABRICD_GENERATION"]) for program in self.told], [1, *range(5, 69)])

    def test_a_stop_does_not_wait_for_it(self):
        self.start(lambda program: {"seconds": None}, deadline=300)
        now = self.site.now()
        self.site.stop()
        self.assertIn("child: hook for generation 1: killed", self.site.log())
        self.assertEqual(self.site.now(), now)

    def test_what_cannot_be_a_hook_is_refused_at_the_start(self):
        self.start()
        plain = os.path.join(self.site.dir, "plain")
        with open(plain, "w", encoding="utf-8") as file:
            file.write("no program\n")
        os.chmod(plain, 0o400)
        for hook, why in (("record x", "give the program's whole path"), (f"{self.site.dir}/none", "there is no such program"),
                          (plain, "fabricd may not run it"), (self.site.dir, "there is no such program")):
            self.site.configure({"changes": {"hook": hook}})
            done = self.site.fabricd("--check-config")
            self.assertEqual(done.returncode, 2, hook)
            self.assertIn(why, done.stderr)
            self.assertIn("[changes] hook", done.stderr)


if __name__ == "__main__":
    unittest.main()
