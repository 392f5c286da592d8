"""Components of several PMIx libraries on one machine: each is for its own library, and declines any other before it touches
anything of it. With ./dev compat, also those of the other libraries' trees."""
import itertools
import os
import re
import shutil
import unittest

import lab
import test_pnet

HERE, OTHER = os.path.dirname(test_pnet.COMPONENT), os.path.join(lab.BUILD, "lib", "other")
TREES = os.environ.get("FABRICD_TREES", "").split(":")  # of ./dev compat
NOT_SUPPORTED = -47
FOREIGN = r"pnet:fabricd: built for PMIx (\S+), this is .*: declined"


class Versions(unittest.TestCase):
    def setUp(self):
        lab.require_component()
        self.rundir = lab.tmpdir()
        done = lab.run([lab.program("mksnap"), test_pnet.FABRIC, self.rundir])
        self.assertEqual(done.returncode, 0, done.stderr)

    def scheduler(self, program=None, **env):
        """A scheduler that registers once, to its end."""
        commands = os.path.join(lab.tmpdir(), "commands")
        with open(commands, "w", encoding="utf-8") as file:
            file.write("register 0\nquit\n")
        env = test_pnet.environment(self.rundir, PMIX_MCA_pnet_base_verbose="1", **env)
        with open(commands, encoding="utf-8") as file:
            return lab.run([program or lab.program("stock_scheduler")], env=env, stdin=file)

    def offered(self, *folders, program=None, **env):
        """What one gets that finds these folders' components: the status of its register, and what was said."""
        own = [] if program else [test_pnet.own_components()]
        done = self.scheduler(program, PMIX_MCA_mca_base_component_path=":".join([*folders, *own]), **env)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = done.stdout + done.stderr
        return int(re.search(r"^registered \S+ (-?\d+) ", said, re.MULTILINE).group(1)), said

    def test_side_by_side(self):
        """Two in one folder: the library's own one works, the other one declines."""
        folder = lab.tmpdir()
        for path in (HERE, OTHER):
            shutil.copytree(path, folder, dirs_exist_ok=True)
        status, said = self.offered(folder, PMIX_MCA_pmdl_base_verbose="1")
        self.assertEqual(status, 0)
        self.assertEqual(re.findall(r"(pnet|pmdl):fabricd: built for PMIx 4\.2\.99, .*: declined", said), ["pmdl", "pnet"])

    def test_a_foreign_one(self):
        status, said = self.offered(OTHER)
        self.assertEqual((status, re.findall(FOREIGN, said)), (NOT_SUPPORTED, ["4.2.99"]))

    def test_of_each_version_to_each_library(self):
        """Without its own component each library answers as it does alone."""
        if len(TREES) < 2:
            self.skipTest("./dev compat PREFIX PREFIX... does it: there is one PMIx library here")
        if lab.BUILD != os.path.abspath(TREES[0]):
            self.skipTest("the first library's run does it for all")
        for library, component in itertools.permutations(TREES, 2):
            with self.subTest(library=library, component=component):
                status, said = self.offered(os.path.join(component, "lib", "pmix"),
                                            program=os.path.join(library, "bin", "stock_scheduler"))
                self.assertEqual(status, NOT_SUPPORTED)
                self.assertRegex(said, FOREIGN)

    def test_which_component(self):
        """Settings that leave ours out, or name what is not there: the scheduler works without."""
        for value in ("fabricd_other", "^fabricd", "nosuch"):
            with self.subTest(value):
                self.assertEqual(self.offered(HERE, OTHER, PMIX_MCA_pnet=value)[0], NOT_SUPPORTED)

    def test_settings_that_contradict(self):
        """The library does not start, and says why: no signal ends the process."""
        for name, value in (("pnet", "fabricd,^other"), ("pmdl", "fabricd,^other"), ("gds", "nosuch"), ("psec", "nosuch"),
                            ("bfrops", "nosuch")):
            with self.subTest(name):
                done = self.scheduler(**{f"PMIX_MCA_{name}": value})
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr + done.stdout, "^PMIx_server_init: |\nPMIx_server_init: ")


if __name__ == "__main__":
    unittest.main()
