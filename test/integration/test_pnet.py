"""The PMIx component: a scheduler that knows only the stock library registers fabrics in its own process."""
import array
import glob
import json
import os
import re
import shutil
import subprocess
import unittest

import conforms
import fabric_text
import lab
import versions

FABRIC = "fattree2:4,2,4"
LEAF, SPINE = "leaf1", "spine1"  # the one fast cable of this leaf
COMPONENT = os.path.join(lab.BUILD, "lib", "pmix", "pmix_mca_pnet_fabricd.so")


def own_components():
    """Where the PMIx library keeps components of its own."""
    libdir = subprocess.run(["pkg-config", "--variable=libdir", "pmix"], capture_output=True, text=True,
                            check=False).stdout.strip()
    places = [os.path.join(libdir, "pmix")] if libdir else []
    places += sorted(glob.glob("/usr/lib/*/pmix2/lib/pmix"))
    return next((place for place in places if os.path.isdir(place)), "")


def environment(rundir, **more):
    """What an operator sets for a scheduler; and for a sanitized component in a program that is not, its runtime."""
    env = dict(os.environ, TMPDIR=lab.tmpdir(), PMIX_MCA_pnet_fabricd_rundir=rundir, **lab.sanitizer_env())
    env["PMIX_MCA_pmdl_fabricd_rundir"] = os.path.join(env["TMPDIR"], "none")  # not that of this machine's own fabricd
    env["PMIX_MCA_mca_base_component_path"] = f"{os.path.dirname(COMPONENT)}:{own_components()}"
    runtime = lab.sanitizer_library(COMPONENT)
    if runtime:
        env["LD_PRELOAD"] = runtime
    env.update(more)
    return env


class Scheduler:
    """stock_scheduler, told what to do."""

    def __init__(self, rundir, *args, **env):
        lab.require_component()
        self.dir = lab.tmpdir()
        self.program = lab.Watch([lab.program("stock_scheduler"), *args], environment(rundir, **env), talk=True)
        self.uri = self.program.wait("^uri (.*)$").group(1)

    def say(self, text, until, timeout=60):
        return self.program.say(text, until, timeout)

    def status(self, text, until=r"^(?:registered|updated|deregistered) (\S+) (-?\d+) (.*)$"):
        """The status of a call, and what the object shows then."""
        match = self.say(text, until)
        words = match.group(3).split()
        return match.group(1), dict(zip(words[::2], words[1::2]))

    def cells(self, slot, command="matrix"):
        path = os.path.join(self.dir, "matrix")
        if self.say(f"{command} {slot} {path}", r"^(written|no matrix)$").group(1) != "written":
            return None
        cells = array.array("H")
        with open(path, "rb") as file:
            cells.frombytes(file.read())
        return list(cells)

    def keys(self, slot):
        start = len(self.program.output.text)
        self.say(f"show {slot}", "^shown$")
        text = self.program.output.text[start:]
        return dict(re.findall(r"^(pmix\S+) type \d+ ?(.*)$", text, re.MULTILINE))

    def events(self):
        return [line for line in self.program.lines() if line.startswith(("event", "let go"))]

    def quit(self):
        self.program.process.stdin.write(b"quit\n")
        self.program.process.stdin.close()
        status = self.program.process.wait(lab.HUNG)
        return status

    def stop(self):
        self.program.stop()


class Case(conforms.Shows):
    def scheduler(self, rundir, *args, **env):
        scheduler = Scheduler(rundir, *args, **env)
        self.addCleanup(scheduler.stop)
        return scheduler

    def recorded(self, text):
        """A daemon on a recorded fabric, which put() exchanges."""
        folder = lab.tmpdir()
        self.path = os.path.join(folder, "fabric.txt")
        lab.replace_file(self.path, text)
        # Its cables come and go as none does that is not to be suppressed.
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}"}, "changes": {"flap_count": 0}})
        self.addCleanup(daemon.stop)
        return daemon

    def put(self, daemon, text):
        lab.replace_file(self.path, text)
        return daemon.refresh()["generation"]

    @staticmethod
    def costs(daemon, *args):
        """Every cell as the operator's command says it, row by row; "no path" is 65535."""
        rows = daemon.ctl_json("matrix", *args)["costs"]
        return [65535 if cell is None else cell for row in rows for cell in row]

    def made(self, *args):
        """A run directory without a daemon."""
        rundir = os.path.join(lab.tmpdir(), "run")
        os.mkdir(rundir)
        self.make(rundir, *args)
        return rundir

    def make(self, rundir, fabric=FABRIC, *args):
        done = lab.run([lab.program("mksnap"), fabric, rundir, *args])
        self.assertEqual(done.returncode, 0, done.stderr)

    def ends_well(self, scheduler):
        self.assertEqual(scheduler.quit(), 0)
        scheduler.program.wait("^ended$")


class Unchanging(Case):
    """A run directory without a daemon, of a fabric with 16 hosts."""

    def setUp(self):
        lab.require_component()
        self.rundir = self.made("fattree3:4")


class Live(Case):
    """On a simulated subnet with a subnet manager: the whole way from a cable to the pointer."""

    def test_a_cable_is_pulled(self):
        lab.require("ibsim", "opensm")
        sim = lab.Ibsim(fabric_text.one_fast_cable(lab.fabric(FABRIC), LEAF, SPINE))
        self.addCleanup(sim.quit)
        port = sim.cable(LEAF, SPINE)
        manager = lab.OpenSM(sim)
        self.addCleanup(manager.stop)
        daemon = lab.Fabricd(sim)
        self.addCleanup(daemon.stop)
        scheduler = self.scheduler(daemon.rundir)
        scheduler.say("listen 50", "^listening$")
        status, shown = scheduler.status("register 0")
        self.shows_call("PMIx_Fabric_register", "register 0", (status, shown["generation"], shown["devices"]), ("SUCCESS", "1", "16"),
                        "in process")
        before = self.costs(daemon)
        self.shows_given("PMIX_FABRIC_COST_MATRIX", "matrix 0", scheduler.cells(0), before, "register", "in process", kind="key")

        sim.unlink(LEAF, port)
        self.assertEqual(daemon.refresh()["generation"], 2)
        scheduler.program.wait("^event second UPDATED .*\n")
        facts = "index 1 plane ib0 generation 2"
        self.assertEqual(scheduler.events(), [
            f"event first PENDING {facts} shows 1",
            "let go shows 1",
            f"event second PENDING {facts} shows 1",
            f"event second UPDATED {facts} shows 2"])
        told = [re.sub("^event (first|second) ", "PMIX_FABRIC_", line).replace("PMIX_FABRIC_PENDING", "PMIX_FABRIC_UPDATE_PENDING")
                for line in scheduler.events()]
        self.shows_events(told, {"PMIX_FABRIC_UPDATE_PENDING": [f"PMIX_FABRIC_UPDATE_PENDING {facts} shows 1"] * 2,
                                 "PMIX_FABRIC_UPDATED": [f"PMIX_FABRIC_UPDATED {facts} shows 2"]}, "in process")
        after = self.costs(daemon)
        self.assertNotEqual(after, before)
        self.assertEqual(scheduler.cells(0), after)
        self.assertEqual(scheduler.cells(0, "held"), before)  # whoever did not look still may read it

        status, shown = scheduler.status("update 0")
        self.shows_call("PMIx_Fabric_update", "update 0", (status, shown["generation"]), (versions.UPDATED, "2"), "in process")
        self.assertEqual(scheduler.cells(0), after)
        status, shown = scheduler.status("deregister 0")
        self.shows_call("PMIx_Fabric_deregister", "deregister 0", (status, shown["info"]), ("SUCCESS", "0"), "in process")
        self.ends_well(scheduler)


class Objects(Case):
    def test_every_key_is_there(self):
        """With what the operator's command reads in the same snapshot."""
        rundir = self.made()
        plane, groups = [json.loads(lab.run([lab.program("fabricctl"), "--rundir", rundir, "--format", "json", what]).stdout)
                         for what in ("planes", "groups")]
        plane, shape = plane[0], list(map(str, plane[0]["shape"]))
        scheduler = self.scheduler(rundir)
        self.assertEqual(scheduler.status("register 0")[0], "SUCCESS")
        keys = scheduler.keys(0)
        self.assertEqual(keys["pmix.fab.nverts"], "16")
        self.shows_keys(keys, {f"PMIX_FABRIC_{name}": value for name, value in {
            "VENDOR": plane["vendor"], "IDENTIFIER": plane["identifier"], "NUM_DEVICES": str(plane["devices"]), "INDEX": str(plane["index"]),
            "GROUPS": ";".join(f"{group['group']}:{','.join(group['hosts'])}" for group in groups), "PLANE": "ib0",
            "DIMS": str(plane["dims"]), "SHAPE": " ".join(shape), "SHAPE_STRING": "x".join(shape)}.items()}, "register", "in process")
        self.assertNotIn("pmixfab.snapshot", keys)
        status, shown = scheduler.status("register_nb 1")
        self.shows_call("PMIx_Fabric_register_nb", "register_nb 1", (status, shown["devices"], shown["plane"]),
                        ("OPERATION-SUCCEEDED", "16", "ib0"), "in process")
        self.assertEqual(scheduler.status("update 1")[0], versions.UPDATED)
        self.assertEqual(scheduler.status("deregister 1")[0], "SUCCESS")
        self.assertNotIn("called back", scheduler.program.output.text)
        self.ends_well(scheduler)

    def test_directives(self):
        rundir = self.made()
        self.make(rundir, "fattree2:2,1,2", "ib1", "5", "7")
        scheduler = self.scheduler(rundir)
        for directive, plane in ((["plane=ib0"], "ib0"), (["plane=ib1"], "ib1"), (["index=5"], "ib1"),
                                 (["plane=ib1", "index=5"], "ib1"), (["vendor=test"], "ib0"),
                                 (["vendor=test", "identifier=test"], "ib0"), ([], "ib0")):
            with self.subTest(directive):
                status, shown = scheduler.status(" ".join(["register 0", *directive]))
                self.assertEqual((status, shown["plane"]), ("SUCCESS", plane))
                for name, word in (("PMIX_FABRIC_PLANE", "plane=ib1"), ("PMIX_FABRIC_INDEX", "index=5")):
                    if directive == [word]:
                        self.shows_given(name, directive, shown["plane"], plane, "register", "in process", without="ib0")
                self.assertEqual(shown["index"], "5" if plane == "ib1" else "1")  # the library leaves it 0
                self.assertEqual(len(scheduler.cells(0)), int(shown["devices"]) ** 2)
                self.assertEqual(scheduler.status("deregister 0")[0], "SUCCESS")
        for directive, error in (("plane=ib9", "NOT-FOUND"), ("index=0", "NOT-FOUND"), ("vendor=other", "NOT-FOUND"),
                                 ("plane=ib1 index=1", "NOT-FOUND"), ("plane=ib0 plane=ib1", "BAD-PARAM"),
                                 ("plane=", "BAD-PARAM"), ("wrong=1", "BAD-PARAM")):
            with self.subTest(directive):
                status, shown = scheduler.status(f"register 0 {directive}")
                self.assertEqual((status, shown["info"]), (error, "0"))
                if directive == "vendor=other":
                    self.shows_given("PMIX_FABRIC_VENDOR", directive, status, error, "register", "in process")
        for slot, plane in enumerate(("ib1", "ib0", "ib1", "ib0")):  # each update finds its own, also where one was moved to
            self.assertEqual(scheduler.status(f"register {slot} plane={plane}")[1]["plane"], plane)
        scheduler.say("move 0 9", "^moved$")
        for slot, plane in ((9, "ib1"), (1, "ib0"), (2, "ib1"), (3, "ib0")):
            status, shown = scheduler.status(f"update {slot}")
            self.assertEqual((status, shown["plane"]), (versions.UPDATED, plane))
        for slot in (2, 9, 3, 1):
            self.assertEqual(scheduler.status(f"deregister {slot}")[0], "SUCCESS")
        self.ends_well(scheduler)

    def test_required_directives(self):
        """What the object holds may be required. What it cannot hold is refused, and left out where nobody requires it."""
        scheduler = self.scheduler(self.made())
        for name in ("COST_MATRIX", "NUM_DEVICES", "GROUPS", "DIMS", "SHAPE", "SHAPE_STRING"):
            name, key = f"PMIX_FABRIC_{name}", conforms.string(f"PMIX_FABRIC_{name}")
            status = scheduler.status(f"register 0 !{key}=1")[0]
            self.shows_given(name, f"!{key}=1", (status, key in scheduler.keys(0)), ("SUCCESS", True), "register", "in process")
            self.assertEqual(len(scheduler.cells(0)), 16 * 16)
            self.assertEqual(scheduler.status("deregister 0")[0], "SUCCESS")
        for name in ("PMIX_TIMEOUT", "PMIX_QUERY_REFRESH_CACHE", "PMIX_GET_REFRESH_CACHE"):  # it is answered at once, of what is there now
            asked = f"register 0 !{conforms.string(name)}=1"
            self.shows_given(name, asked, scheduler.status(asked)[0], "SUCCESS", "register", "in process")
            self.assertEqual(scheduler.status("deregister 0")[0], "SUCCESS")
        for key in ("pmix.fab.devs", "pmix.node.info", "pmix.fab.coord", "pmix.fabdev", "no.such"):
            status, shown = scheduler.status(f"register 0 !{key}=1")
            self.assertEqual((status, shown["info"]), ("NOT-SUPPORTED", "0"), key)
            self.assertEqual(scheduler.status(f"register 0 {key}=1")[0], "SUCCESS", key)
            self.assertNotIn(key, scheduler.keys(0))
            self.assertEqual(scheduler.status("deregister 0")[0], "SUCCESS")
        self.ends_well(scheduler)

    def test_often(self):
        """A thousand times, by many threads, and left registered at the end."""
        scheduler = self.scheduler(self.made("fattree2:8,4,16"))  # a matrix of 32 KiB
        for command in ("cycle 1000", "cycle 1000 keep"):
            match = scheduler.say(command, r"^cycled wrong (\d+) grown (-?\d+) KiB$")
            self.assertEqual(match.group(1), "0")
            if not lab.SANITIZE:  # freed memory is kept for a while there
                self.assertLessEqual(int(match.group(2)), 64, command)
        self.assertEqual(scheduler.say("threads 8 100", r"^threads wrong (\d+)$").group(1), "0")
        scheduler.say("listen 0", "^listening$")
        for slot in range(3):
            self.assertEqual(scheduler.status(f"register {slot}")[0], "SUCCESS")
        self.ends_well(scheduler)


class News(Case):
    """What is published while objects are registered."""

    def setUp(self):
        self.whole = lab.fabric(FABRIC, "capture")
        self.less = fabric_text.without_cables(self.whole, LEAF, SPINE)
        self.cut = fabric_text.without_cables(self.less, LEAF, "spine2")

    def listening(self, daemon, pause=0):
        """A scheduler with an object and handlers, which take so many microseconds."""
        scheduler = self.scheduler(daemon.rundir)
        scheduler.say(f"listen {pause}", "^listening$")
        scheduler.status("register 0")
        return scheduler

    def updated(self, scheduler, generation, plane="ib0"):
        scheduler.program.wait(rf"^event second UPDATED .*plane {plane} generation {generation} .*\n")

    def test_all_objects_of_the_plane_change(self):
        daemon = self.recorded(self.whole)
        scheduler = self.scheduler(daemon.rundir)
        scheduler.say("listen 0", "^listening$")
        scheduler.say("inside", "^inside it is$")  # handlers call, on the library's own thread, which 7 refuses
        for slot in range(3):
            scheduler.status(f"register {slot}")
        first = self.costs(daemon)
        daemon.refresh()  # no change, no event
        for generation, text in ((2, self.less), (3, self.whole)):
            start = len(scheduler.program.output.text)
            self.assertEqual(self.put(daemon, text), generation)
            self.updated(scheduler, generation)
            self.assertEqual(scheduler.program.wait(r"^inside wrong (\d+)$", start).group(1), "1" if versions.PMIX >= (7,) else "0")
            now = self.costs(daemon)
            for slot in range(3):
                self.assertEqual(scheduler.cells(slot), now)
                self.assertEqual(scheduler.cells(slot, "held"), first)
        self.assertEqual([line.split()[2] for line in scheduler.events() if "second" in line],
                         ["PENDING", "UPDATED"] * 2)
        self.ends_well(scheduler)

    def test_a_plane_comes_changes_and_goes(self):
        daemon = self.recorded(self.whole)
        scheduler = self.listening(daemon)
        self.assertEqual(scheduler.status("register 1 plane=ib1")[0], "NOT-FOUND")
        self.put(daemon, self.cut)
        self.updated(scheduler, 2)
        status, shown = scheduler.status("register 1 plane=ib1")
        self.assertEqual((status, shown["devices"], shown["index"]), ("SUCCESS", "4", "2"))
        self.assertEqual(scheduler.cells(0), self.costs(daemon))
        self.assertEqual(scheduler.cells(1), self.costs(daemon, "--plane", "ib1"))
        last = scheduler.cells(1)

        self.put(daemon, self.whole)  # ib1 is no more
        self.updated(scheduler, 3)
        self.updated(scheduler, 3, "ib1")
        self.assertEqual(scheduler.status("update 1")[0], "NOT-FOUND")
        self.assertEqual(scheduler.cells(1), last)
        self.assertEqual(scheduler.status("update 0")[1]["devices"], "16")

        self.put(daemon, self.cut)  # and comes back
        self.updated(scheduler, 4, "ib1")
        self.assertEqual(scheduler.status("update 1")[1]["generation"], "4")
        for slot in (0, 1):
            self.assertEqual(scheduler.status(f"deregister {slot}")[0], "SUCCESS")
        self.ends_well(scheduler)

    def test_the_daemon_restarts(self):
        """The same generation from another process, into a run directory that was away, is no news."""
        daemon = self.recorded(self.whole)
        scheduler = self.listening(daemon)
        daemon.stop()
        shutil.rmtree(daemon.rundir)
        self.assertEqual(scheduler.status("update 0")[0], "UNREACHABLE")
        self.assertEqual(scheduler.keys(0)["pmix.fab.nverts"], "16")
        daemon.start()
        self.assertEqual(scheduler.status("update 0")[0], versions.UPDATED)
        self.put(daemon, self.less)
        self.updated(scheduler, 2)
        self.assertEqual(len(scheduler.events()), 4)
        self.ends_well(scheduler)

    def test_threads_while_it_changes(self):
        if lab.SANITIZE == "thread":
            self.skipTest("its threads heed no events: they do read what is being switched")
        daemon = self.recorded(self.whole)
        scheduler = self.listening(daemon)
        start = len(scheduler.program.output.text)
        scheduler.program.process.stdin.write(f"threads 4 {300 if lab.SANITIZE else 1500}\n".encode())
        scheduler.program.process.stdin.flush()
        for generation in range(2, 6):
            self.put(daemon, self.less if generation % 2 == 0 else self.whole)
        self.assertEqual(scheduler.program.wait(r"^threads wrong (\d+)$", start, 120).group(1), "0")
        self.assertEqual(scheduler.status("update 0")[1]["generation"], "5")
        self.assertEqual(scheduler.cells(0), self.costs(daemon))
        self.ends_well(scheduler)

    def test_the_end_while_a_handler_is_busy(self):
        daemon = self.recorded(self.whole)
        scheduler = self.listening(daemon, 500000)
        self.put(daemon, self.less)
        scheduler.program.wait("^event first PENDING")
        self.assertEqual(scheduler.status("update 0")[1]["generation"], "2")  # nothing is locked meanwhile
        self.ends_well(scheduler)


class Declines(Case):
    """Where the component has no answer, the host is as it would be without it."""

    def declined(self, rundir, *args, why, says="register 0"):
        """NOT-SUPPORTED is what the stock library says when nobody answers; later NOT-FOUND, where a component declined."""
        scheduler = self.scheduler(rundir, *args, PMIX_MCA_pnet_base_verbose="2")
        said = ["NOT-SUPPORTED"] * (versions.PMIX < (5,)) + ["NOT-FOUND"] * (versions.PMIX > (4, 2, 2))
        self.assertIn(scheduler.status(says)[0], said)
        scheduler.program.wait(rf"pnet:fabricd: .*({why}.*declined|declined: .*{why})")
        self.ends_well(scheduler)
        if versions.PMIX > (4, 2, 2):
            return  # the library asks components only, not the host, and says so when each has declined
        quiet = self.scheduler(rundir, *args, "host")
        self.assertEqual(quiet.status(says)[0], "SUCCESS")
        self.assertEqual(quiet.keys(0), {"pmix.fab.vndr": "the host"})
        self.assertNotIn("fabricd:", quiet.program.output.text)

    def test_no_good_snapshot(self):
        """There is no run directory, it is empty, or what stands there is damaged."""
        self.declined("/nonexistent/run", why="cannot be read")
        self.declined(lab.tmpdir(), why="no readable snapshot")
        rundir = self.made()
        path = os.path.join(rundir, "ib0.snap")
        with open(path, "rb") as file:
            good = file.read()
        middle = len(good) // 2
        for name, content in (("truncated", good[:-100]), ("foreign", b"not at all\n" * 50),
                              ("flipped", good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1:])):
            with self.subTest(name):
                with open(path, "wb") as file:
                    file.write(content)
                self.declined(rundir, why="no readable snapshot")

    def test_broken_while_registered(self):
        rundir = self.made()
        path = os.path.join(rundir, "ib0.snap")
        scheduler = self.scheduler(rundir)
        scheduler.status("register 0")
        before = scheduler.cells(0)
        with open(path + ".new", "wb") as file:
            file.write(b"not at all\n" * 50)
        os.rename(path + ".new", path)
        self.assertEqual(scheduler.status("update 0")[0], "UNREACHABLE")
        self.assertEqual(scheduler.cells(0), before)
        self.make(rundir)
        self.assertEqual(scheduler.status("update 0")[0], versions.UPDATED)
        self.ends_well(scheduler)

    def test_not_the_scheduler(self):
        self.declined(self.made(), "plain", why="not the scheduler")
        plain, scheduler = self.scheduler(self.made(), "plain"), self.scheduler(self.made())
        self.shows_given("PMIX_SERVER_SCHEDULER", "without plain", scheduler.status("register 0")[0], "SUCCESS", "call", "in process",
                         without=plain.status("register 0")[0])
        self.ends_well(plain)
        self.ends_well(scheduler)


class Tools(Case):
    """A tool that is connected to a scheduler with the component: the host answers it, or an error comes."""

    def tool(self, uri, call):
        return lab.run([lab.program("stock_tool"), uri, call], env=dict(os.environ, TMPDIR=lab.tmpdir()))

    def test_who_answers(self):
        """The host, or nobody: an error comes, and the scheduler goes on."""
        for args in (["host"], []):
            scheduler = self.scheduler(self.made(), *args)
            self.assertEqual(scheduler.status("register 0")[0], "SUCCESS")
            self.assertEqual(scheduler.status("register_nb 1")[0], "OPERATION-SUCCEEDED")  # one that the library lists
            for call in ("register", "update"):
                done = self.tool(scheduler.uri, call)
                # The tool's library before 7 tells its caller of register how the message arrived, not what it says.
                self.assertEqual(done.returncode, 0 if args or call == "register" and versions.PMIX < (7,) else 1, done.stderr)
                self.assertEqual(done.stdout, "pmix.fab.vndr string the host\n" if args else "")
            self.assertEqual(scheduler.status("update 0")[0], versions.UPDATED)
            self.ends_well(scheduler)

    def test_fabricd_itself_may_load_it(self):
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric(FABRIC, "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}},
                             env={name: value for name, value in environment("/nonexistent").items()
                                  if name.startswith("PMIX_MCA_")})
        self.addCleanup(daemon.stop)
        done = self.tool(daemon.uri(), "register")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("pmix.fab.nverts size 16", done.stdout)
        self.assertEqual(daemon.errors(), [])


if __name__ == "__main__":
    unittest.main()
