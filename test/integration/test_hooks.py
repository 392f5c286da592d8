"""The hook as a real process: its input, descriptors, group and output. test/sim/test_hooks.py has the rest."""
import json
import os
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

    def test_it_has_nothing_of_the_daemon_but_its_environment(self):
        body = (f'cat > {self.dir}/told; ls -l /proc/self/fd | wc -l > {self.dir}/fds; '
                f'(echo $FABRICD_RUNDIR; ps -o pgid= -p $$ ) > {self.dir}/env; '
                f'sh -c \'yes; echo $? > {self.dir}/pipe\' | head -1 > /dev/null; '
                f'echo done > {self.dir}/done; echo "a word to the log" >&2; printf "and no end" >&2')
        daemon = self.daemon(script(self.dir, "look", body))
        lab.wait_for(lambda: os.path.exists(f"{self.dir}/done"), what="the hook")
        with open(f"{self.dir}/told", encoding="utf-8") as file:
            self.assertEqual(json.load(file)["generation"], 1)
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

    def test_signals_that_fabricd_ignores_are_the_hooks_again(self):
        daemon = self.daemon(script(self.dir, "look", f"grep SigIgn /proc/self/status > {self.dir}/new; mv {self.dir}/new {self.dir}/done"))
        lab.wait_for(lambda: os.path.exists(f"{self.dir}/done"), what="the hook")
        with open(f"{self.dir}/done", encoding="utf-8") as file:
            ignored = int(file.read().split()[1], 16) & ~(3 << 31)  # two that posix_spawn() itself sets so
        self.assertEqual(ignored, 0)
        with open(f"/proc/{daemon.process.pid}/status", encoding="utf-8") as file:
            self.assertNotIn("SigIgn:\t" + "0" * 16, file.read())

    def test_a_hook_that_reads_nothing_and_hangs_is_killed_with_all_it_started(self):
        daemon = self.daemon(script(self.dir, "hang", f"sleep 300 & echo $! > {self.dir}/pid; wait"), deadline=3)
        child = lab.Held(int(lab.wait_for(lambda: os.path.exists(f"{self.dir}/pid") and open(f"{self.dir}/pid", encoding="utf-8").read(),
                                          what="its child")))
        self.assertEqual(self.change(daemon)["generation"], 2)  # while it hangs
        self.assertNotIn("killed", daemon.log())
        lab.wait_for(lambda: "hook for generation 1: not done after 3 s, killed" in daemon.log(), what="the deadline")
        self.assertTrue(child.ended())

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


if __name__ == "__main__":
    unittest.main()
