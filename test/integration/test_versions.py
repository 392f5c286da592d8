"""Several PMIx libraries on one machine. Components: each is for its own library, and declines any other before it touches
anything of it. Callers: tools of each version and a server of this tree's. Refusals: what this tree's library is not good
enough for. With ./dev compat, also of the other libraries' trees."""
import itertools
import json
import os
import re
import shutil
import unittest

import lab
import stranger
import test_chapter
import test_launch_host
import test_pnet
import versions

HERE, OTHER = os.path.dirname(test_pnet.COMPONENT), os.path.join(lab.BUILD, "lib", "other")
TREES = list(filter(None, os.environ.get("FABRICD_TREES", "").split(":")))  # of ./dev compat
NOT_SUPPORTED = -47
FOREIGN = r"pnet:fabricd: built for PMIx (\S+), this is .*: declined"
OWN = ".".join(map(str, versions.PMIX))


def calls_itself(version):
    order = os.path.join(lab.BUILD, "lib", "version_order.so")
    return {"LIBRARY_VERSION": version, "LD_PRELOAD": lab.preload(lab.sanitizer_library(order), order)}


class Components(unittest.TestCase):
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
        """And settings that leave ours out, or name what is not there: the scheduler works without."""
        status, said = self.offered(OTHER)
        self.assertEqual((status, re.findall(FOREIGN, said)), (NOT_SUPPORTED, ["4.2.99"]))
        lost = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # the library loses the text that names what is not there
        for value in ("fabricd_other", "^fabricd", "nosuch"):
            with self.subTest(value):
                self.assertEqual(self.offered(HERE, OTHER, PMIX_MCA_pnet=value, ASAN_OPTIONS=lost)[0], NOT_SUPPORTED)

    def test_nobody_is_left_in_silence(self):
        """The library skips a foreign one without a word: fabricd --available and a finding say it."""
        folder = lab.tmpdir()
        shutil.copytree(OTHER, folder, dirs_exist_ok=True)
        env = {"PMIX_MCA_mca_base_component_path": folder}
        done = lab.run([lab.program("fabricd"), "--available"], env=dict(os.environ, **env))
        for framework in ("pmdl", "pnet"):
            self.assertRegex(done.stdout, rf"(?m)^PMIx +no +{folder}/pmix_mca_{framework}_fabricd_other.so: built for PMIx 4\.2\.99 "
                                          rf"\({framework} \d\.\d\.\d\), but PMIx {OWN}\S* is installed here, .*: install ")
        capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(capture, lab.fabric("fattree2:2,1,2", "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}}, env=env)
        self.addCleanup(daemon.stop)
        finding, = [one for one in daemon.control("check")["findings"] if one["kind"] == "component-unfit"]
        self.assertEqual((finding["where"], finding["severity"]), (f"{folder}/pmix_mca_pmdl_fabricd_other.so", "warning"))
        self.assertIn("fabricd warning: component " + finding["where"] + ": " + finding["what"], daemon.log())
        self.assertEqual(daemon.stop(), 0)
        shutil.copytree(HERE, folder, dirs_exist_ok=True)  # where the right ones are, too, the others are no fault
        done = lab.run([lab.program("fabricd"), "--available"], env=dict(os.environ, **env))
        self.assertEqual(re.findall(r"(?m)^PMIx +(\w+) +.*/pmix_mca_(\w+)\.so", done.stdout),
                         [("yes", "pmdl_fabricd"), ("no", "pmdl_fabricd_other"), ("yes", "pnet_fabricd"), ("no", "pnet_fabricd_other")])
        daemon.start()
        self.assertNotIn("component-unfit", [one["kind"] for one in daemon.control("check")["findings"]])

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

    def test_settings_that_contradict(self):
        """The library does not start, and says why: no signal ends the process."""
        for name, value in (("pnet", "fabricd,^other"), ("pmdl", "fabricd,^other"), ("gds", "nosuch"), ("psec", "nosuch"),
                            ("bfrops", "nosuch")):
            with self.subTest(name):
                done = self.scheduler(**{f"PMIX_MCA_{name}": value})
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr + done.stdout, "^PMIx_server_init: |\nPMIx_server_init: ")


class Arrays(test_launch_host.Case):
    """A library of 5.0 before 5.0.7 starts no process of a job that is told an array."""
    EARLY = (5,) <= versions.PMIX < (5, 0, 7)

    def told_by_the_host(self, version):
        """A host calls pmixfab_tell_job() for a job of its own; the library calls itself this."""
        capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(capture, lab.fabric("fattree2:2,1,2", "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}})
        self.addCleanup(daemon.stop)
        env = dict(daemon.tool_env(), FABRICD_NO_REPAIR="1", **calls_itself(version))  # or the relay is refused already
        return lab.run(["timeout", "30", lab.program("relay_host"), daemon.uri(), "job", lab.program("stock_launch"), self.out,
                        "node0001", "node0002"], env=env)

    def test_hosts_are_refused(self):
        for version in ("5.0.0", "5.0.6"):
            with self.subTest(version):
                done = self.told_by_the_host(version)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("tell_job: not supported", done.stderr)
                self.assertEqual(os.listdir(self.out), [])

    @unittest.skipUnless(EARLY, "about 5.0 before 5.0.7: ./dev compat with one of those")
    def test_what_they_are_spared(self):
        """Under the name of a version that is told, the job is told, and does not start."""
        done = self.told_by_the_host("5.0.7")
        self.assertNotIn("tell_job:", done.stderr)
        self.assertNotEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(self.out), [])

    @unittest.skipUnless(EARLY, "about 5.0 before 5.0.7: ./dev compat with one of those")
    def test_a_job_starts_untold(self):
        self.make()
        self.knows_nothing(self.host(PMIX_MCA_pnet_base_verbose="1"))
        self.assertEqual(len(os.listdir(self.out)), 2)
        for framework in ("pmdl", "pnet"):
            line = rf"{framework}:fabricd: built for PMIx {OWN}\S*, this is OpenPMIx {OWN}.*, which cannot pass launch information to jobs: declined"
            self.assertRegex(self.said, line)


class Callers(unittest.TestCase):
    """Tools of each version, and a fabricd with this tree's library."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.fabricd()

    @classmethod
    def fabricd(cls, **env):
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric("fattree2:2,1,2", "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}}, env=env)
        cls.addClassCleanup(daemon.stop)
        return daemon

    def ask(self, tree, *args, **env):
        return lab.run([os.path.join(tree, "bin", "stock_tool"), self.daemon.uri(), *args], env=dict(self.daemon.tool_env(), **env))

    def is_answered(self, tree, **env):
        for args, key in ((["register"], "pmix.fab.plane"), (["update", "1"], "pmix.fab.plane"), (["query", "pmix.fab.vndr"], "pmix.fab.vndr")):
            done = self.ask(tree, *args, **env)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(key, done.stdout)

    @staticmethod
    def packed_as(daemon, name):
        """The status of a query whose caller names this way of packing."""
        with stranger.tool(daemon.uri(), version="6.1.1", bfrops=name) as channel:
            return stranger.status_of(channel.ask(stranger.QUERY, stranger.query("pmix.fab.idx")))

    def test_newer_names_of_a_way_of_packing(self):
        """The stock library refuses whoever names one that it does not know."""
        for name in ("v51", "v61"):
            self.assertEqual(self.packed_as(self.daemon, name), 0, name)
        if versions.PMIX[0] < 6:
            unrepaired = self.fabricd(FABRICD_NO_REPAIR="1")
            self.assertEqual(self.packed_as(unrepaired, "v41"), 0)
            with self.assertRaises(EOFError):
                self.packed_as(unrepaired, "v61")

    def chapter(self, tree, *args):
        done = lab.run([os.path.join(tree, "bin", "stock_chapter"), self.daemon.uri(), *args], env=self.daemon.tool_env())
        self.assertEqual(done.returncode, 0, (args, done.stderr))
        return json.loads(done.stdout)

    def test_requests_of_each_version(self):
        """Directives, and PMIx_Get: the answer lies where that caller's library looks for it."""
        plain, plane = test_chapter.plain, "pmix.fab.plane=s:ib0"
        devices = self.chapter(lab.BUILD, "query", "pmix.fab.devs", plane, "pmix.hname=s:node0001")[0][1]
        device = plain(devices)[0][1]
        for tree in TREES or [lab.BUILD]:  # none has to set anything
            with self.subTest(caller=tree):
                self.is_answered(tree)
                self.assertEqual(plain(dict(self.chapter(tree, "register", plane, "pmix.fab.devs=b:1"))["pmix.fab.plane"]), "ib0")
                early = re.search(r"build-pmix-5\.0\.[3-6]", tree)  # that library finds an answer below the whole job only
                if "get" not in versions.CALLS:
                    continue
                for who in ("", ":any/", "fabricd:any/", "fabricd:0/")[1 if early else 0:3 if early else 4]:
                    self.assertEqual(plain(self.chapter(tree, "get", who + "pmix.fab.plane", plane)[0]), "ib0")
                    got = self.chapter(tree, "get", who + "pmix.fab.devs", plane, "pmix.hname=s:node0001")[0]
                    self.assertEqual(plain(got), plain(devices))
                got = self.chapter(tree, "get", ":any/pmix.fabdev" if early else "pmix.fabdev", f"pmix.dev.id=s:{dict(device)['pmix.dev.id']}")[0]
                self.assertEqual(plain(got), device)

    def test_after_a_refused_connection(self):
        """The server is the same one; where the library has no repairs, the next one answers at the same place."""
        uri, server = self.daemon.uri(), self.daemon.pmix_pid()
        self.is_answered(lab.BUILD)
        for _ in range(3):
            stranger.knock(uri, stranger.first(psec="nosuch")).close()
            if not versions.DOOR:
                lab.wait_for(lambda: self.ask(lab.BUILD, "register").returncode == 0, what="an answer after the refusal")
        self.is_answered(lab.BUILD)
        self.assertEqual(self.daemon.uri(), uri)
        self.assertEqual(self.daemon.process.poll(), None)
        if versions.DOOR:
            self.assertEqual(self.daemon.pmix_pid(), server)


class Relays(unittest.TestCase):
    """Where the library mixes up the answers of two servers, a relay needs the very version that it was built for."""

    def test_which_libraries(self):
        for version, works in ((OWN, True), ("4.2.1", False), ("5.1.0", False), ("6.0.9", False), ("6.1", False), ("", False),
                               ("6.1.99", True), ("9.0.0", True)):
            with self.subTest(version):
                done = lab.run([lab.program("relay_host"), lab.tmpdir()], env=dict(os.environ, **calls_itself(version)))
                self.assertEqual(done.returncode, 0 if works else 1, done.stderr)
                self.assertEqual(f"relay: not supported with this version of the PMIx library: OpenPMIx {version}," in done.stderr, not works)

    def test_a_node_works_with_any(self):
        """It does not use the library."""
        daemon = lab.Fabricd(config={"fabricd": {"store": None, "scheduler": "127.0.0.1:9"}}, args=("--role", "node"), start=False)
        daemon.env = dict(daemon.env, **calls_itself("9.0.0"))
        daemon.start(wait=False)
        daemon.wait_up()
        daemon.logged("scheduler 127.0.0.1 port 9: Connection refused")
        self.assertEqual(daemon.stop(), 0)


@unittest.skipIf(versions.REPAIRED, "fabricd has repairs for this library, and serves all of it")
class Refusals(unittest.TestCase):
    """What is not served with this library is refused at the start, and the library is named."""

    def refused(self, says, config, *args):
        daemon = lab.Fabricd(config=config, args=args, start=False)
        done = lab.run(daemon.command("--foreground"), cwd=daemon.dir, env=daemon.env)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, says + ".*OpenPMIx")

    @unittest.skipIf(versions.DOOR, "fabricd has repairs of connections for this library")
    def test_remote(self):
        self.refused("remote = yes needs all repairs of the PMIx library", {"fabricd": {"probe": f"file:{os.path.join(lab.tmpdir(), 'none')}"}, "security": {"remote": "yes"}})

    def test_host(self):
        done = lab.run([lab.program("fabric-host"), "--rundir", os.path.join(lab.tmpdir(), "run"), "true"])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "fabric-host needs PMIx 4.2.2 .*(OpenPMIx|libpmix-guard.so was not preloaded)")


if __name__ == "__main__":
    unittest.main()
