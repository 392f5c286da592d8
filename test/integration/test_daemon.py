"""fabricd as PMIx programs and operators see it: what it answers, what it does with a partial fabric, how it comes
and goes."""
import json
import os
import re
import signal
import stat
import unittest

import conforms
import fabric_text
import lab
import versions

GENERATION, PUBLISHED, PATH = "pmixfab.generation", "pmixfab.published", "pmixfab.snapshot.path"
NAMES = {conforms.string(name): name for name in (f"PMIX_FABRIC_{short}" for short in (
    "VENDOR", "IDENTIFIER", "INDEX", "NUM_DEVICES", "GROUPS", "PLANE", "DIMS", "SHAPE", "SHAPE_STRING"))}


class Case(conforms.Shows):
    """A daemon on a recorded fabric that can be changed."""

    spec = "fattree2:4,2,4"

    def setUp(self):
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        self.whole = lab.fabric(self.spec, "capture")
        lab.replace_file(self.path, self.whole)

    def start(self, **options):
        sections = {"fabricd": {"probe": f"file:{self.path}"}}
        sections.update(options.pop("config", {}))
        daemon = lab.Fabricd(config=sections, **options)
        self.addCleanup(daemon.stop)
        return daemon

    def change(self, text):
        lab.replace_file(self.path, text)

    def cut(self):
        """leaf1 and its hosts as a plane of their own."""
        cut = self.whole
        for spine in ("spine1", "spine2"):
            cut = fabric_text.without_cables(cut, "leaf1", spine)
        return cut


def answers(done):
    """The lines of stock_tool: {key: "type value"}."""
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


class Attributes(Case):
    def expected(self, daemon, plane):
        """What the standard's attributes of a plane must be, by fabricctl's JSON."""
        groups = daemon.ctl_json("--plane", plane["name"], "groups")
        shape = plane["shape"]
        return {
            "pmix.fab.vndr": f"string {plane['vendor']}",
            "pmix.fab.id": f"string {plane['identifier']}",
            "pmix.fab.nverts": f"size {plane['devices']}",
            "pmix.fab.idx": f"size {plane['index']}",
            "pmix.fab.grps": "string " + ";".join(f"{g['group']}:{','.join(g['hosts'])}" for g in groups),
            "pmix.fab.plane": f"string {plane['name']}",
            "pmix.fab.dims": f"uint32 {plane['dims']}",
            "pmix.fab.shape": f"array {len(shape)} of type 14: {' '.join(map(str, shape))}",  # 14: PMIX_UINT32
            "pmix.fab.shapestr": f"string {'x'.join(map(str, shape))}",
            GENERATION: f"uint64 {plane['generation']}",
            PATH: f"string {daemon.rundir}/{plane['name']}.snap",
        }

    def test_register_and_query_of_every_kind(self):
        daemon = self.start()
        for generation, spec in enumerate((self.spec, "torus:3,3,2:1", "dragonfly:2,4,2", "mesh:3,4:2",
                                           "random:6,12,3:5"), start=1):
            with self.subTest(spec):
                self.change(lab.fabric(spec, "capture"))
                self.assertEqual(daemon.refresh(accept_partial=True)["generation"], generation)
                plane = daemon.ctl_json("planes")[0]
                self.assertEqual((len(plane["shape"]), plane["generation"]), (plane["dims"], generation))
                expected = self.expected(daemon, plane)
                got = answers(daemon.tool("register"))
                self.assertEqual({key: got.get(key) for key in expected}, expected)
                self.shows_keys(got, {NAMES[key]: value for key, value in expected.items() if key in NAMES}, "register", "tool")
                self.assertNotIn("pmix.fab.cm", got)  # a pointer of another process is worth nothing
                self.assertRegex(got[PUBLISHED], r"^int64 \d{16}$")
        for key, value in expected.items():
            # With a plane: without one, some keys ask for all planes.
            got = answers(daemon.tool("query", key, f"plane={plane['name']}"))
            self.assertEqual(got, {key: value})
            if key in NAMES:
                self.shows_keys(got, {NAMES[key]: value}, "query", "tool")

    def test_a_query_for_one_plane(self):
        self.change(self.cut())
        daemon = self.start()
        planes = daemon.ctl_json("planes")
        self.assertEqual([plane["name"] for plane in planes], ["ib0", "ib1"])
        for plane in planes:
            for key, value in self.expected(daemon, plane).items():
                for qualifiers in ([f"plane={plane['name']}"], [f"index={plane['index']}"],
                                   [f"plane={plane['name']}", f"index={plane['index']}", f"vendor={plane['vendor']}"]):
                    self.assertEqual(answers(daemon.tool("query", key, *qualifiers)), {key: value})
        self.assertEqual(answers(daemon.tool("query", "pmix.fab.plane")), {"pmix.fab.plane": "array 2 of type 3: ib0 ib1"})

    def test_what_is_not_there_is_an_error(self):
        """Never a success with nothing."""
        daemon = self.start()
        for error, *question in (("NOT-FOUND", "pmix.fab.vndr", "plane=ib7"), ("NOT-FOUND", "pmix.fab.vndr", "index=7"),
                                 ("NOT-FOUND", "pmix.fab.vndr", "index=0"),
                                 ("NOT-FOUND", "pmix.fab.vndr", "vendor=Nobody"),
                                 ("NOT-FOUND", "pmix.fab.vndr", "identifier=x"),
                                 ("NOT-FOUND", "pmix.fab.vndr", "plane=ib0", "index=2"),
                                 ("BAD-PARAM", "pmix.fab.vndr", "badindex=0"),
                                 ("BAD-PARAM", "pmix.fab.vndr", "plane=ib0", "plane=ib1"),
                                 ("BAD-PARAM", "pmix.fab.vndr", "index=0", "index=1"),
                                 ("BAD-PARAM", "pmix.fab.vndr", "plane="),
                                 ("NOT-FOUND", "pmix.fab.cm"), ("NOT-FOUND", "pmix.fab.nothing"),
                                 ("NOT-FOUND", "PMIX_FABRIC_VENDOR")):
            with self.subTest(question):
                done = daemon.tool("query", *question)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(done.stderr, rf"^query: {error} \(-\d+\)\n$")

    def test_an_update_is_of_the_plane_that_was_registered(self):
        """The library asks for index 0 whatever was registered; costs of another plane would be wrong silently."""
        self.change(self.cut())
        daemon = self.start()
        self.assertEqual(len(daemon.ctl_json("planes")), 2)
        for plane, index in (("ib0", "size 1"), ("ib1", "size 2")):
            done = daemon.tool("update", f"plane={plane}")
            self.assertEqual(done.returncode, 0, done.stderr)
            got = answers(done)
            self.assertEqual((got["pmix.fab.plane"], got["pmix.fab.idx"]), (f"string {plane}", index))
        done = daemon.tool("update")  # registered nothing, and there are two planes
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^update: BAD-PARAM ")

    def test_an_update_of_a_plane_that_is_gone(self):
        """The stock tool updates index 0: its plane, which the fabric has no more."""
        daemon = self.start()
        tool = lab.Watch([lab.program("stock_tool"), daemon.uri(), "cycle"], daemon.tool_env())
        self.addCleanup(tool.stop)
        tool.wait("^watching$")
        self.change(re.sub(r"([0-9a-f]*)([12])0(?=00[0-9a-f]{2}\b)", r"\g<1>\g<2>f", self.whole))  # other GUIDs
        daemon.refresh(accept_partial=True)
        self.assertEqual([plane["name"] for plane in daemon.ctl_json("planes")], ["ib1"])
        tool.wait("^update: NOT-FOUND")
        self.assertEqual(tool.process.wait(lab.HUNG), 1)

    def test_fabricctl_over_pmix_says_the_same(self):
        self.change(self.cut())
        daemon = self.start()
        def served(text):
            """Without LIDs and widths, which the daemon knows and no snapshot."""
            return re.sub(r'"(lid|width)":("[^"]*"|\w+)', r'"\1":-', text)
        for command in (["planes"], ["devices"], ["switches"], ["links"], ["groups"], ["coords"], ["matrix"],
                        ["cost", "node0005", "node0016"]):
            here = daemon.ctl("--format", "json", *command)
            there = lab.run([lab.program("fabricctl"), "--uri", daemon.uri(), "--format", "json", *command],
                            env=daemon.tool_env())
            self.assertEqual((there.returncode, served(there.stdout)), (0, served(here.stdout)), there.stderr)

    def test_stale_over_pmix(self):
        daemon = self.start()
        status = [lab.program("fabricctl"), "--uri", daemon.uri(), "--format", "json", "status"]
        told = json.loads(lab.run(status, env=daemon.tool_env()).stdout)
        self.assertEqual((told["stale"], told["daemon"], told["generation"]), (False, True, 1))
        self.change("")
        self.assertFalse(daemon.control("refresh")["ok"])
        told = json.loads(lab.run(status, env=daemon.tool_env()).stdout)
        self.assertEqual((told["stale"], told["daemon"], told["generation"]), (True, True, 1))


@unittest.skipIf(lab.SANITIZE, "pquery is not ours: no sanitizer in it")
class Pquery(Case):
    """The stock command. That of Debian 12 starts its library too late, which a preload repairs."""

    def pquery(self, daemon, *keys, preload=versions.PMIX == (4, 2, 2)):
        lab.require("pquery")
        env = daemon.tool_env()
        if preload:
            env["LD_PRELOAD"] = lab.preload(os.path.join(lab.BUILD, "lib", "pquery_order.so"))
        return lab.run(["pquery", "--uri", daemon.uri(), *keys], env=env, cwd=daemon.dir)

    def test_keys(self):
        daemon = self.start()
        for question, kind, answer in (("PMIX_FABRIC_VENDOR", "STRING", "Mellanox"), ("PMIX_FABRIC_DIMS[PMIX_FABRIC_PLANE=ib0]", "UINT32", "3"),
                                       ("PMIX_FABRIC_NUM_DEVICES", "SIZE", "16"), ("PMIX_FABRIC_SHAPE_STRING", "STRING", "1x4x4")):
            done = self.pquery(daemon, question)
            self.assertEqual(done.returncode, 0, done.stderr)
            # from 5.0 on it says a text's value alone
            self.assertRegex(done.stdout + done.stderr, rf"(?m)(?:PMIX_{kind}\tValue: |^ +){answer}$")
        for question in ("PMIX_FABRIC_DIMS[PMIX_FABRIC_PLANE=ib9]", "PMIX_FABRIC_COST_MATRIX"):
            done = self.pquery(daemon, question)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stdout + done.stderr, "NOT[-_]FOUND")  # a name is all that it says

    def test_the_preload_is_still_needed(self):
        """When this fails, a newer pquery has come: take pquery_order.c out."""
        daemon = self.start()
        done = self.pquery(daemon, "PMIX_FABRIC_VENDOR", preload=False)
        self.assertEqual(done.returncode, -signal.SIGFPE)


class Partial(Case):
    def check_refused(self, daemon, dangling):
        done = daemon.ctl("refresh")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rf"\nfabricctl: .*partial: {dangling} ports .*--accept-partial.*\n$")
        self.assertEqual(len(daemon.errors()), 1)
        status = daemon.status()
        self.assertEqual((status["generation"], status["stale"], status["partial"], status["dangling"]),
                         (1, True, True, dangling))
        self.assertEqual(daemon.ctl_json("planes")[0]["hosts"], 16)
        self.assertIn("pmix.fab.nverts size 16\n", daemon.tool("register").stdout)

    def test_recorded(self):
        daemon = self.start()
        self.change(fabric_text.without_record(self.whole, "leaf1"))
        self.check_refused(daemon, 6)
        self.change(self.whole)
        self.assertLessEqual({"generation": 1, "changed": False, "partial": False}.items(), daemon.refresh().items())
        self.assertFalse(daemon.status()["partial"])

    def test_live(self):
        lab.require("ibsim", "opensm")
        sim = lab.Ibsim(lab.fabric(self.spec))
        self.addCleanup(sim.quit)
        sim.sweep()
        daemon = lab.Fabricd(sim)
        self.addCleanup(daemon.stop)
        sim.command('Error "leaf2" 100')  # it answers nothing
        self.check_refused(daemon, 2)  # what is seen of it are the ends at the spines
        sim.command('Error "leaf2" 0')
        self.assertEqual(daemon.refresh()["generation"], 1)
        self.assertFalse(daemon.status()["stale"])

    def test_accepted_by_the_operator(self):
        daemon = self.start()
        self.change(fabric_text.without_record(self.whole, "leaf1"))
        self.check_refused(daemon, 6)
        done = daemon.ctl("refresh", "--accept-partial")
        self.assertEqual(done.returncode, 0, done.stderr)
        status = daemon.status()
        self.assertEqual((status["generation"], status["stale"], status["partial"]), (2, False, True))
        self.assertEqual(max(plane["hosts"] for plane in daemon.ctl_json("planes")), 12)
        self.assertFalse(daemon.refresh()["changed"])  # it has become what is served
        self.assertEqual((daemon.status()["partial"], daemon.status()["dangling"]), (False, 6))
        self.change(self.whole)
        self.assertLessEqual({"generation": 3, "changed": True, "partial": False}.items(), daemon.refresh().items())
        self.assertEqual(daemon.ctl_json("planes")[0]["hosts"], 16)

    def test_the_first_is_published_and_flagged(self):
        self.change(fabric_text.without_record(self.whole, "leaf1"))
        daemon = self.start()
        status = daemon.status()
        self.assertEqual((status["generation"], status["partial"], status["dangling"]), (1, True, 6))
        self.assertIn("up and lead nowhere", daemon.log())
        self.assertEqual(daemon.refresh()["partial"], False)  # nothing more is missing, but it is not forgotten
        self.assertEqual(daemon.status()["dangling"], 6)
        self.change(self.whole)  # what grows is no question
        self.assertLessEqual({"generation": 2, "changed": True, "partial": False}.items(), daemon.refresh().items())

    def test_growth_in_a_partial_sweep_is_published(self):
        self.change(fabric_text.without_record(fabric_text.without_cables(self.whole, "leaf4", "node0016"), "node0016"))
        daemon = self.start()
        self.change(self.whole.replace('# "leaf2" enhanced port 0 lid 2 lmc 0\n',
                                       '# "leaf2" enhanced port 0 lid 2 lmc 0\n'
                                       '[7]\t"S-0000000000dddddd"[1]\t\t# "nobody" lid 99 4xHDR\n')
                    .replace('Switch\t6 "S-0000000000200001"', 'Switch\t7 "S-0000000000200001"'))
        self.assertLessEqual({"generation": 2, "changed": True, "partial": True}.items(), daemon.refresh().items())
        self.assertEqual((daemon.ctl_json("planes")[0]["hosts"], daemon.status()["dangling"]), (16, 1))


class Life(Case):
    def served_before_a_sweep(self, daemon, generation):
        """The state that is served while the first sweep waits for its fabric."""
        self.assertTrue(daemon.status()["sweeping"])
        self.assertEqual(daemon.status()["generation"], generation)
        self.assertIn(f"{GENERATION} uint64 {generation}\n", daemon.tool("register").stdout)

    def test_stop_and_start(self):
        feed = lab.Feed()
        daemon = self.start(config={"fabricd": {"probe": feed.probe}}, start=False)
        daemon.start(wait=False)
        feed.give(self.whole)
        daemon.wait_ready(1)
        for number in (signal.SIGTERM, signal.SIGINT):
            daemon.process.send_signal(number)
            self.assertEqual(daemon.process.wait(lab.HUNG), 0)
            self.assertEqual(sorted(os.listdir(daemon.rundir)), ["ib0.snap", "lock"])
            self.assertEqual(daemon.ctl_json("status")["daemon"], False)
            self.assertEqual(daemon.ctl_json("cost", "node0001", "node0016")["cost"], 40)
            daemon.start(wait=False)
            daemon.wait_up()
            self.served_before_a_sweep(daemon, 1)
        feed.give(self.whole)
        self.assertEqual(daemon.wait_ready()["generation"], 1)

    def test_callers_that_await(self):
        """One condition for a connection, answered when it holds; a caller that leaves is forgotten."""
        daemon = self.start()
        daemon.ask("await", until="generation", generation=9).close()
        channel = daemon.ask("await", until="generation", generation=2)
        with channel, channel.makefile(encoding="utf-8") as answers:
            channel.sendall(b'{"op":"await","until":"idle"}\n')
            self.assertEqual(json.loads(next(answers))["error"], -13)
            self.change(fabric_text.slower(self.whole, "leaf1"))
            daemon.ask("refresh", wait=False).close()
            self.assertEqual(json.loads(next(answers)), {"ok": True, "generation": 2})
            channel.sendall(b'{"op":"await","until":"updated","after":1,"deadline":1}\n')
            self.assertEqual(json.loads(next(answers))["count"], 2)
            channel.sendall(b'{"op":"await","until":"updated","deadline":1}\n')
            self.assertEqual(json.loads(next(answers))["error"], -15)

    def test_an_empty_run_directory(self):
        """A reboot: nothing in it needs to outlive one."""
        daemon = self.start()
        daemon.stop()
        for name in os.listdir(daemon.rundir):
            os.unlink(os.path.join(daemon.rundir, name))
        os.rmdir(daemon.rundir)
        daemon.start()
        self.assertEqual(daemon.status()["generation"], 1)
        self.assertEqual(daemon.ctl_json("planes")[0]["generation"], 1)
        self.assertEqual(stat.S_IMODE(os.stat(daemon.rundir).st_mode), 0o755)

    def test_in_the_background(self):
        """Without --foreground it returns when it serves, and logs to syslog."""
        daemon = self.start(start=False)
        done = lab.run(daemon.command(), cwd=daemon.dir, env=daemon.env)
        with open(os.path.join(daemon.rundir, "lock"), encoding="ascii") as file:
            pid = int(file.read())
        process = lab.Held(pid)
        self.addCleanup(process.signal, signal.SIGKILL)
        self.assertEqual((done.returncode, done.stdout, versions.unwarned(done.stderr)), (0, "", ""))
        daemon.until("generation", generation=1)
        self.assertEqual(daemon.status()["pid"], pid)
        process.signal(signal.SIGTERM)
        self.assertTrue(process.ended())
        self.assertFalse(os.path.exists(daemon.uri_path()))

    def test_once(self):
        daemon = self.start(start=False)
        for generation, text in ((1, self.whole), (1, self.whole), (2, fabric_text.slower(self.whole, "leaf1"))):
            self.change(text)
            done = daemon.run_once()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(daemon.ctl_json("status")["generation"], generation)
        self.assertEqual(sorted(os.listdir(daemon.rundir)), ["ib0.snap", "lock"])

    def test_the_command_line_goes_over_the_file(self):
        daemon = self.start(config={"fabricd": {"probe": "file:/nothing", "interval": 5}}, start=False)
        daemon.args = ["--probe", f"file:{self.path}", "--interval", "7"]
        daemon.start()
        self.assertEqual(daemon.status()["interval"], 7)

    def test_the_names_are_read_again(self):
        names = os.path.join(lab.tmpdir(), "names.map")
        lab.replace_file(names, '0x0000000000100000 "login1 HCA-1"\n')
        daemon = self.start(config={"fabricd": {"probe": f"file:{self.path}"}, "names": {"map": names}})
        self.assertEqual(daemon.ctl_json("devices")[0]["host"], "login1")
        lab.replace_file(names, '0x0000000000100000 "login2 HCA-1"\n')
        self.assertEqual(daemon.refresh()["generation"], 2)
        self.assertEqual(daemon.ctl_json("devices")[0]["host"], "login2")
        lab.replace_file(names, '0x0000000000100000 "unended\n')
        self.assertEqual(daemon.refresh()["generation"], 2)  # a slip in the map renames nobody
        self.assertRegex(daemon.log(), r"warning: names: \S+names.map:1")
        os.unlink(names)
        self.assertEqual(daemon.refresh()["generation"], 2)


if __name__ == "__main__":
    unittest.main()
