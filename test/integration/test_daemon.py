"""fabricd as PMIx programs and operators see it: what it answers, and how it comes and goes. (The standard's attributes:
test_chapter.py. What a partial fabric does: test/sim/test_bad_input.py, test_operator.py.)"""
import json
import os
import re
import signal
import stat
import unittest

import fabric_text
import lab
import versions

GENERATION, PUBLISHED, PATH = "pmixfab.generation", "pmixfab.published", "pmixfab.snapshot.path"


class Case(unittest.TestCase):
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


class Answers(Case):
    def test_fabrics_of_every_kind(self):
        daemon = self.start()
        for generation, spec in enumerate((self.spec, "torus:3,3,2:1", "dragonfly:2,4,2", "random:6,12,3:5"), start=1):
            with self.subTest(spec):
                self.change(lab.fabric(spec, "capture"))
                self.assertEqual(daemon.refresh(accept_partial=True)["generation"], generation)
                plane, shape = daemon.ctl_json("planes")[0], daemon.ctl_json("planes")[0]["shape"]
                expected = {
                    "pmix.fab.nverts": f"size {plane['devices']}", "pmix.fab.idx": f"size {plane['index']}",
                    "pmix.fab.dims": f"uint32 {len(shape)}", "pmix.fab.shapestr": f"string {'x'.join(map(str, shape))}",
                    "pmix.fab.shape": f"array {len(shape)} of type 14: {' '.join(map(str, shape))}",  # 14: PMIX_UINT32
                    GENERATION: f"uint64 {generation}", PATH: f"string {daemon.rundir}/{plane['name']}.snap"}
                got = answers(daemon.tool("register"))
                self.assertEqual({key: got.get(key) for key in expected}, expected)
                self.assertNotIn("pmix.fab.cm", got)  # a pointer of another process is worth nothing
                self.assertRegex(got[PUBLISHED], r"^int64 \d{16}$")
        for key in (GENERATION, PATH):
            self.assertEqual(answers(daemon.tool("query", key, f"plane={plane['name']}")), {key: expected[key]})
        for error, *question in (("NOT-FOUND", "pmix.fab.vndr", "plane=ib7"), ("BAD-PARAM", "pmix.fab.vndr", "plane="),
                                 ("NOT-FOUND", "pmix.fab.cm")):
            done = daemon.tool("query", *question)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, rf"^query: {error} \(-\d+\)\n$")

    def test_an_update_is_of_the_plane_that_was_registered(self):
        """The library asks for index 0 whatever was registered; costs of another plane would be wrong silently."""
        self.change(self.cut())
        daemon = self.start()
        for plane, index in (("ib0", "size 1"), ("ib1", "size 2")):
            done = daemon.tool("update", f"plane={plane}")
            self.assertEqual(done.returncode, 0, done.stderr)
            got = answers(done)
            self.assertEqual((got["pmix.fab.plane"], got["pmix.fab.idx"]), (f"string {plane}", index))
        done = daemon.tool("update")  # registered nothing, and there are two planes
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^update: BAD-PARAM ")

    def test_fabricctl_over_pmix_says_the_same(self):
        self.change(self.cut())
        daemon = self.start()

        def served(text):
            """Without LIDs and widths, which the daemon knows and no snapshot."""
            return re.sub(r'"(lid|width)":("[^"]*"|\w+)', r'"\1":-', text)

        def over_pmix(*command):
            return lab.run([lab.program("fabricctl"), "--uri", daemon.uri(), "--format", "json", *command], env=daemon.tool_env())
        for command in (["planes"], ["devices"], ["switches"], ["links"], ["groups"], ["coords"], ["matrix"],
                        ["cost", "node0005", "node0016"]):
            here, there = daemon.ctl("--format", "json", *command), over_pmix(*command)
            self.assertEqual((there.returncode, served(there.stdout)), (0, served(here.stdout)), there.stderr)
        for stale in (False, True):
            told = json.loads(over_pmix("status").stdout)
            self.assertEqual((told["stale"], told["daemon"], told["generation"]), (stale, True, 1))
            self.change("")
            self.assertFalse(daemon.control("refresh")["ok"])


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
        done = self.pquery(self.start(), "PMIX_FABRIC_VENDOR", preload=False)
        self.assertEqual(done.returncode, -signal.SIGFPE)


class Partial(Case):
    def test_refused_and_accepted(self):
        lab.require("ibsim", "opensm")
        sim = lab.Ibsim(lab.fabric(self.spec))
        self.addCleanup(sim.quit)
        sim.sweep()
        daemon = lab.Fabricd(sim)
        self.addCleanup(daemon.stop)
        sim.command('Error "leaf2" 100')  # it answers nothing; what is seen of it are the ends at the spines
        done = daemon.ctl("refresh")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\nfabricctl: .*partial: 2 ports .*--accept-partial.*\n$")
        self.assertEqual(len(daemon.errors()), 1)
        status = daemon.status()
        self.assertEqual([status[key] for key in ("generation", "stale", "partial", "dangling")], [1, True, True, 2])
        self.assertIn("pmix.fab.nverts size 16\n", daemon.tool("register").stdout)
        done = daemon.ctl("refresh", "--accept-partial")
        self.assertEqual(done.returncode, 0, done.stderr)
        status = daemon.status()
        self.assertEqual([status[key] for key in ("generation", "stale", "partial")], [2, False, True])
        self.assertEqual(daemon.ctl_json("planes")[0]["hosts"], 12)
        self.assertFalse(daemon.refresh()["changed"])  # it has become what is served
        sim.command('Error "leaf2" 0')
        self.assertLessEqual({"generation": 3, "changed": True, "partial": False}.items(), daemon.refresh().items())
        self.assertEqual(daemon.ctl_json("planes")[0]["hosts"], 16)


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
        daemon.stop()
        for name in os.listdir(daemon.rundir):  # a reboot: nothing in it needs to outlive one
            os.unlink(os.path.join(daemon.rundir, name))
        os.rmdir(daemon.rundir)
        daemon.start(wait=False)
        feed.give(self.whole)
        self.assertEqual(daemon.wait_ready()["generation"], 1)
        self.assertEqual(stat.S_IMODE(os.stat(daemon.rundir).st_mode), 0o755)

    def test_callers_that_await(self):
        """One condition for a connection, answered when it holds; a caller that leaves is forgotten. (More: test/sim/test_await.py.)"""
        daemon = self.start()
        daemon.ask("await", until="generation", generation=9).close()
        channel = daemon.ask("await", until="generation", generation=2)
        with channel, channel.makefile(encoding="utf-8") as lines:
            channel.sendall(b'{"op":"await","until":"idle"}\n')
            self.assertEqual(json.loads(next(lines))["error"], -13)
            self.change(fabric_text.slower(self.whole, "leaf1"))
            daemon.ask("refresh", wait=False).close()
            self.assertEqual(json.loads(next(lines)), {"ok": True, "generation": 2})

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
        """The command line goes over the file."""
        daemon = self.start(config={"fabricd": {"probe": "file:/nothing", "interval": 5}}, start=False)
        daemon.args = ["--probe", f"file:{self.path}", "--interval", "7"]
        for generation, text in ((1, self.whole), (1, self.whole), (2, fabric_text.slower(self.whole, "leaf1"))):
            self.change(text)
            done = daemon.run_once()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(daemon.ctl_json("status")["generation"], generation)
        self.assertEqual(sorted(os.listdir(daemon.rundir)), ["ib0.snap", "lock"])
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
