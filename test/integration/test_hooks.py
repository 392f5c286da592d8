"""The hook: a program of the site's is told of each generation, and nothing it does is in the daemon's way."""
import json
import os
import stat
import unittest

import lab


def script(folder, name, body):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + body)
    os.chmod(path, 0o755)
    return path


class Hooks(unittest.TestCase):
    def setUp(self):
        self.dir = lab.tmpdir()
        self.capture = os.path.join(self.dir, "capture")
        self.text = lab.fabric("fattree2:4,2,4", "capture")
        lab.replace_file(self.capture, self.text)

    def daemon(self, hook, deadline=10, **more):
        config = {"fabricd": {"probe": f"file:{self.capture}", **more},
                  "changes": {"hook": hook, "hook_deadline": deadline}}
        daemon = lab.Fabricd(config=config)
        self.addCleanup(daemon.stop)
        return daemon

    def change(self, daemon):
        """Publish one more generation: a host gets another name."""
        self.n = getattr(self, "n", 0) + 1
        lab.replace_file(self.capture, self.text.replace('"node0001', f'"other{self.n:04}'))
        return daemon.refresh()

    def told(self):
        """What the hook has written down, one file a generation."""
        names = sorted(name for name in os.listdir(self.dir) if name.startswith("told.") and name.endswith(".json"))
        return [os.path.join(self.dir, name) for name in names]

    def recorder(self, extra=""):
        return script(self.dir, "record", f'{extra}\ncat > "$1/told.tmp" && mv "$1/told.tmp" '
                                          '"$1/told.$(printf %06d $FABRICD_GENERATION).json"\n') + " " + self.dir

    def test_each_generation_is_told_as_diff_answers(self):
        daemon = self.daemon(self.recorder())
        self.change(daemon)
        self.change(daemon)
        lab.wait_for(lambda: len(self.told()) == 3, what="three hooks")
        for number, path in enumerate(self.told(), 1):
            with open(path, encoding="utf-8") as file:
                told = json.load(file)
            diff = daemon.control("diff", **{"from": number - 1, "to": number})
            self.assertEqual({key: told[key] for key in ("from", "to", "changes")},
                             {key: diff[key] for key in ("from", "to", "changes")})
            self.assertEqual(told["generation"], number)
            self.assertEqual(told["planes"], [{"index": 1, "name": "ib0"}])
            self.assertGreater(len(told["changes"]), 0)
            self.assertRegex(told["published"], r"^\d{4}-\d\d-\d\dT.*Z$")

    def test_it_has_nothing_of_the_daemon_but_its_environment(self):
        body = (f'cat > /dev/null; ls -l /proc/self/fd | wc -l > {self.dir}/fds; '
                f'(echo $FABRICD_RUNDIR; ps -o pgid= -p $$ ) > {self.dir}/env; '
                f'sh -c \'yes; echo $? > {self.dir}/pipe\' | head -1 > /dev/null; '
                f'echo done > {self.dir}/done; echo "a word to the log" >&2; printf "and no end" >&2')
        daemon = self.daemon(script(self.dir, "look", body))
        lab.wait_for(lambda: os.path.exists(f"{self.dir}/done"), what="the hook")
        with open(f"{self.dir}/fds", encoding="utf-8") as file:
            self.assertLessEqual(int(file.read()), 5)  # total, 0, 1, 2 and that of ls itself
        with open(f"{self.dir}/env", encoding="utf-8") as file:
            rundir, group = file.read().split()
        self.assertEqual(rundir, daemon.rundir)
        self.assertNotEqual(int(group), os.getpgid(daemon.process.pid))
        with open(f"{self.dir}/pipe", encoding="utf-8") as file:
            self.assertEqual(file.read().strip(), "141")  # SIGPIPE is as usual
        lab.wait_for(lambda: "hook for generation 1: and no end" in daemon.log(), what="its last words")
        self.assertIn("info: hook for generation 1: a word to the log", daemon.log())

    def test_a_hook_that_fails_is_a_line(self):
        daemon = self.daemon(script(self.dir, "fail", "echo no such system >&2; exit 5"))
        lab.wait_for(lambda: "ended with status 5; its last words were: no such system" in daemon.log(), what="a line")
        self.change(daemon)
        lab.wait_for(lambda: "hook for generation 2: the child ended with status 5" in daemon.log(), what="a line")
        self.assertFalse(daemon.status()["stale"])

    def test_a_hook_that_reads_nothing_and_hangs_is_killed_with_all_it_started(self):
        daemon = self.daemon(script(self.dir, "hang", f"sleep 300 & echo $! > {self.dir}/pid; wait"), deadline=3)
        child = lab.Held(int(lab.wait_for(lambda: os.path.exists(f"{self.dir}/pid") and open(f"{self.dir}/pid", encoding="utf-8").read(),
                                          what="its child")))
        self.assertEqual(self.change(daemon)["generation"], 2)  # while it hangs
        self.assertNotIn("killed", daemon.log())
        lab.wait_for(lambda: "hook for generation 1: not done after 3 s, killed" in daemon.log(), what="the deadline")
        self.assertTrue(child.ended())

    def test_the_oldest_are_left_out_when_too_many_wait(self):
        gate = os.path.join(self.dir, "gate")
        os.mkfifo(gate)
        daemon = self.daemon(self.recorder(f"[ $FABRICD_GENERATION -gt 1 ] || read x < {gate}"), deadline=120)
        for _ in range(67):
            self.change(daemon)
        self.assertEqual(daemon.log().count("is not told: 64 wait already"), 3)
        with open(gate, "w", encoding="utf-8") as file:
            file.write("go\n")
        lab.wait_for(lambda: len(self.told()) == 65, 60, what="the hooks that wait")
        numbers = [int(os.path.basename(path)[5:11]) for path in self.told()]
        self.assertEqual(numbers, [1, *range(5, 69)])

    def test_a_program_that_speaks_without_end_does_not_fill_the_log(self):
        daemon = self.daemon(script(self.dir, "chatter", f"yes chatter | head -10000 >&2; echo x > {self.dir}/done"))
        lab.wait_for(lambda: os.path.exists(f"{self.dir}/done"), what="the hook")
        lab.wait_for(lambda: "it says more than 100 lines" in daemon.log(), what="a line")
        self.assertEqual(daemon.log().count(": chatter"), 100)

    def test_a_stop_does_not_wait_for_it(self):
        daemon = self.daemon(script(self.dir, "hang", f"echo $$ > {self.dir}/pid; exec sleep 300"), deadline=300)
        lab.wait_for(lambda: os.path.exists(f"{self.dir}/pid") and os.path.getsize(f"{self.dir}/pid"), what="the hook")
        with open(f"{self.dir}/pid", encoding="utf-8") as file:
            pid = int(file.read())
        self.assertEqual(daemon.stop(), 0)
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_what_cannot_be_a_hook_is_refused_at_the_start(self):
        plain = os.path.join(self.dir, "plain")
        with open(plain, "w", encoding="utf-8") as file:
            file.write("no program\n")
        os.chmod(plain, stat.S_IRUSR)
        for hook, why in (("record x", "give the program's whole path"), (f"{self.dir}/none", "there is no such program"),
                          (plain, "fabricd may not run it"), (self.dir, "there is no such program")):
            daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}, "changes": {"hook": hook}}, start=False)
            done = daemon.run_once("--check-config")
            self.assertEqual(done.returncode, 2, hook)
            self.assertIn(why, done.stderr)
            self.assertIn("[changes] hook", done.stderr)


if __name__ == "__main__":
    unittest.main()
