"""The suite passes from a checkout below /tmp, which a booted machine has an own one of, in a path with blanks, with the source
tree read-only and the build beside it: some modules of each kind. The checkout is this one, mounted there."""
import os
import shutil
import sys
import tempfile
import unittest

import booted
import lab

# A machine that boots, one with what is installed, the simulator, libraries that are preloaded, command lines through a shell.
MODULES = (("test_booted.py", "Booted", "Places"), ("test_service.py", "Scheduler.test_the_usual_way"), ("test_lab.py", "Simulator"),
           ("test_relay_directives.py", "Directives"), ("test_style.py", "Headers.test_public_header_alone", "Look.test_text"))
MOUNT = """
mount --bind "$1" "$3/a tree" && mount -o remount,bind,ro "$3/a tree" && mount --bind "$2" "$3/a build" && echo mounted && read -r end
"""


class BelowTmp(unittest.TestCase):
    def setUp(self):
        lab.require("unshare", "nsenter", "mount")
        booted.need()
        for path in (lab.ROOT, lab.BUILD):
            if os.path.realpath(path).startswith(("/tmp/", "/run/", "/dev/")):
                self.skipTest(f"{path} is in such a place: the whole suite shows it")
        self.folder = tempfile.mkdtemp(prefix="fabricd lab.", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o755)
        self.tree, self.build = (os.path.join(self.folder, name) for name in ("a tree", "a build"))
        os.mkdir(self.tree)
        os.mkdir(self.build)
        holder = lab.Watch(["unshare", "-m", "--propagation", "private", "sh", "-c", MOUNT, "mount", lab.ROOT, lab.BUILD, self.folder],
                           talk=True)
        self.addCleanup(holder.stop)
        holder.wait("^mounted$")
        self.prefix = [lab.find_command("nsenter"), f"--mount=/proc/{holder.process.pid}/ns/mnt", f"--wd={self.tree}"]

    def run_there(self, argv):
        return lab.run([*self.prefix, *argv], env=dict(os.environ, FABRICD_BUILD=self.build, TMPDIR="/tmp"), timeout=120)

    def test_modules(self):
        for module, *names in MODULES:
            with self.subTest(module):
                path = os.path.join(self.tree, "test", "integration", module)
                done = self.run_there([sys.executable, "-B", os.path.join(os.path.dirname(path), "run_test.py"), path, *names])
                self.assertIn(done.returncode, (0, 77), done.stderr)

    def test_a_tarball(self):
        """git makes objects of what is not committed, and writes none of them into the repository."""
        if lab.find_command("git") is None or lab.run(["git", "-C", lab.ROOT, "rev-parse"]).returncode != 0:
            self.skipTest("a tarball is made from a git repository")
        out = lab.tmpdir()
        done = self.run_there([os.path.join(self.tree, "dev"), "dist", out])
        self.assertEqual(done.returncode, 0, done.stderr)
        name, = os.listdir(out)
        self.assertIn("/test/integration/test_anywhere.py\n", lab.run(["tar", "-tzf", os.path.join(out, name)]).stdout)

    def test_units(self):
        for name in ("test_snapshot", "test_hostlist", "test_config"):
            with self.subTest(name):
                done = self.run_there([os.path.join(self.build, "bin", name)])
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
