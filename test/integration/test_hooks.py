"""The hook as a real process: its input, descriptors, group and output. test/sim/test_hooks.py and unit.hook have the rest."""
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
    def test_it_has_nothing_of_the_daemon_but_its_environment(self):
        folder = lab.tmpdir()
        capture = os.path.join(folder, "capture")
        lab.replace_file(capture, lab.fabric("fattree2:2,1,2", "capture"))
        hook = script(folder, "look", (
            f'cat > {folder}/told; ls -l /proc/self/fd | wc -l > {folder}/fds; '
            f'(echo $FABRICD_RUNDIR; ps -o pgid= -p $$ ) > {folder}/env; grep SigIgn /proc/self/status > {folder}/signals; '
            f'sh -c \'yes; echo $? > {folder}/pipe\' | head -1 > /dev/null; '
            f'echo "a word to the log" >&2; printf "and no end" >&2'))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}, "changes": {"hook": hook}})
        self.addCleanup(daemon.stop)
        daemon.until("hook", after=0)
        said = {}
        for name in ("told", "fds", "env", "signals", "pipe"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                said[name] = file.read()
        self.assertEqual(json.loads(said["told"])["generation"], 1)
        self.assertLessEqual(int(said["fds"]), 5)  # total, 0, 1, 2 and that of ls itself
        rundir, group = said["env"].split()
        self.assertEqual(rundir, daemon.rundir)
        self.assertNotEqual(int(group), os.getpgid(daemon.process.pid))
        self.assertEqual(said["pipe"].strip(), "141")  # SIGPIPE is as usual
        self.assertEqual(int(said["signals"].split()[1], 16) & ~(3 << 31), 0)  # but for two that posix_spawn() itself sets so
        with open(f"/proc/{daemon.process.pid}/status", encoding="utf-8") as file:
            self.assertNotIn("SigIgn:\t" + "0" * 16, file.read())
        daemon.logged("hook for generation 1: and no end")
        self.assertIn("info: hook for generation 1: a word to the log", daemon.log())


if __name__ == "__main__":
    unittest.main()
