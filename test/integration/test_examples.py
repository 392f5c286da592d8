"""The examples, as people would use them: a job of three nodes, each of which has a daemon of its own on this host; a
scheduler that places jobs; a server that hands its program's requests on."""
import itertools
import os
import unittest

import fabric_text
import lab
import test_pnet
import versions

BAD_PARAM, FABRIC_UPDATED = -27, -175  # of the standard: their names differ between versions of the library
NODES = "node0001,node0002,node0016"
PROCESSES = [f"rank {rank}: at {at} in ib0" for rank, at in enumerate(["0,0,0"] * 2 + ["0,0,1"] * 2 + ["3,1,1"] * 2)]


class Launcher(test_pnet.Unchanging):
    def needs_a_shell(self):
        if lab.SANITIZE == "thread":
            self.skipTest("the sanitizer that the program would inherit ends a shell")

    def launch(self, program, agent="-", nodes=NODES, starter=None, **env):
        done = lab.run([lab.program("launcher"), agent, nodes, "0", "2", *program],
                       env=test_pnet.environment(starter or self.rundir, **env))
        return done.returncode, sorted(done.stdout.splitlines()), done.stderr

    def test_instant_on(self):
        """Told by the starter, or by snapshots of their own, processes know the same at their first line."""
        none = lab.tmpdir()
        told = self.launch([lab.program("instant_on")])
        self.assertEqual(told[0], 0, told[2])
        self.assertEqual([line.split(" fab://")[0] for line in told[1]], PROCESSES)
        self.assertEqual([line.rsplit(" ", 1)[1] for line in told[1]], ["0,1,2,3"] * 4 + ["4,5"] * 2)
        own = self.launch([lab.program("instant_on")], starter=none, PMIX_MCA_pmdl_fabricd_rundir=self.rundir)
        self.assertEqual(own[:2], told[:2])
        nobody = self.launch([lab.program("instant_on")], starter=none)
        self.assertEqual(nobody[:2], (0, [f"rank {rank}: has no fabric information" for rank in range(6)]))

    def test_an_agent(self):
        """As it would start daemons on other hosts, which have no run directory and their own environment."""
        self.needs_a_shell()
        agent = os.path.join(lab.tmpdir(), "agent")
        lab.replace_file(agent, "#!/bin/sh\nAT=$1\nshift\nunset FORWARDED\nPMIX_MCA_pnet_fabricd_rundir=/nowhere\n"
                                "export AT PMIX_MCA_pnet_fabricd_rundir\nexec \"$@\"\n")
        os.chmod(agent, 0o755)
        status, lines, errors = self.launch(["/bin/sh", "-c", "echo $PMIX_RANK $AT $FORWARDED"], agent, FORWARDED="yes",
                                            PMIX_MCA_pnet_fabricd_forward_envars="FORWARDED")
        self.assertEqual(status, 0, errors)
        at = NODES.split(",")
        self.assertEqual(lines, [f"{rank} {at[rank // 2]} yes" for rank in range(6)])

    def test_failures(self):
        """Where something cannot be started, nothing is; with one process that fails, all end, and what they have started, too."""
        for args in ((), ("-", NODES, "0", "none", "/bin/true"), ("-", NODES, "0", "2"), ("-d", "0", "/bin/true")):
            self.assertEqual(lab.run([lab.program("launcher"), *args]).returncode, 2)
        for options, said in (({"agent": "/nowhere/agent"}, "/nowhere/agent: No such file or directory"),
                              ({"nodes": "node0001,node0001"}, f" ({BAD_PARAM})\n")):
            status, lines, errors = self.launch(["/bin/echo", "started"], **options)
            self.assertEqual((status, lines), (1, []))
            self.assertIn(said, errors)
        self.needs_a_shell()
        status, _, errors = self.launch(["/bin/sh", "-c", "sleep 1000 & test $PMIX_RANK != 2 && wait"])
        self.assertEqual(status, 1)
        self.assertRegex(errors, r"(?m)^launcher: node0002: process \d+ ends with status 1, signal 0$")


class Daemon(test_pnet.Case):
    """On a recorded fabric."""

    def setUp(self):
        self.whole = lab.fabric("fattree3:4", "capture")
        self.daemon = self.recorded(self.whole)

    def watch(self, env, name, *args):
        watch = lab.Watch([lab.program(name), *args], env, talk=True)
        self.addCleanup(watch.stop)
        return watch

    def ends(self, watch):
        watch.process.stdin.close()
        return watch.process.wait(lab.HUNG)


class Scheduler(Daemon):
    NODES = ["node0001", "node0005", "node0016", "node0002", "node0015"]

    def setUp(self):
        lab.require_component()
        super().setUp()

    def start(self, *nodes):
        env = test_pnet.environment(self.daemon.rundir, PMIX_MCA_pmdl_fabricd_rundir=self.daemon.rundir)
        return self.watch(env, "scheduler", *self.NODES, *nodes)

    def place(self, scheduler, count):
        return scheduler.say(str(count), "^(?:node.*|no place)$").group(0).split()

    def test_places_by_cost(self):
        """And what it places after a change is what the fabric is then."""
        scheduler = self.start("stranger")
        self.assertEqual(self.place(scheduler, 2), ["node0001", "node0002"])
        matrix = self.daemon.ctl_json("matrix")
        hosts = [device.split(":")[0] for device in matrix["devices"]]

        def around(nodes):
            """What the farthest of them costs from the one in the middle."""
            return min(max(matrix["costs"][hosts.index(centre)][hosts.index(node)] for node in nodes) for centre in self.NODES)
        for count in (1, 2, 3, 4, 5):
            placed = self.place(scheduler, count)
            self.assertEqual(len(set(placed)), count)
            self.assertEqual(around(placed), min(map(around, itertools.combinations(self.NODES, count))))
        self.assertEqual(self.place(scheduler, 6), ["no", "place"])
        for text, placed in ((fabric_text.without(self.whole, "node0002"), ["node0016", "node0015"]),
                             (self.whole, ["node0001", "node0002"])):
            start = len(scheduler.output.text)
            self.put(self.daemon, text)
            scheduler.wait(rf"\({FABRIC_UPDATED}\)$", start)
            self.assertEqual(self.place(scheduler, 2), placed)
        self.assertEqual(self.ends(scheduler), 0)
        self.daemon.stop()
        os.unlink(os.path.join(self.daemon.rundir, "ib0.snap"))
        scheduler = self.start()
        scheduler.wait("^scheduler: PMIx_Fabric_register: ")
        self.assertEqual(self.ends(scheduler), 1)


class Relay(Daemon):
    def relay(self, *args, **env):
        return self.watch(dict(self.daemon.tool_env(), **env), "relay", *args)

    def test_a_program_asks(self):
        relay = self.relay(self.daemon.rundir, lab.program("stock_client"), "client")
        relay.wait("^connected$")
        relay.say("register", "^register SUCCESS attributes [1-9].* generation 1 plane ib0$")
        relay.say("watch", "^watching")
        self.put(self.daemon, fabric_text.without(self.whole, "node0002"))
        relay.wait("^PMIX_FABRIC_UPDATE_PENDING .*generation 2 .*\nPMIX_FABRIC_UPDATED .*generation 2 ")
        relay.say("update", "^update SUCCESS .* generation 2 plane ib0$")
        self.assertEqual(self.ends(relay), 0)

    def test_directives_and_without_fabricd(self):
        """With the repair before the library, as its first lines say. Without fabricd the server goes on, and its program is told."""
        relay = self.relay(self.daemon.uri(), lab.program("stock_client"), "client",
                           LD_PRELOAD=lab.preload(lab.sanitizer_library(lab.program("relay")), lab.guard()))
        relay.wait("^connected$")
        relay.say("register plane=ib0", "^register SUCCESS attributes [1-9].* plane ib0$")
        relay.say("register plane=none", f"^register {versions.registered('NOT-FOUND')} attributes 0 ")
        self.assertEqual(self.ends(relay), 0)
        self.daemon.stop()
        relay = self.relay(lab.tmpdir(), lab.program("stock_client"), "client")
        relay.wait("^connected$")
        relay.say("register", f"^register {'UNREACHABLE' if versions.PMIX >= (7,) else 'SUCCESS'} attributes 0 ")
        self.assertEqual(self.ends(relay), 0)

    def test_the_programs_status(self):
        for program, status in (("exit 3", 3), ("kill -9 $$", 1)):
            self.assertEqual(self.ends(self.relay(self.daemon.rundir, "/bin/sh", "-c", program)), status)
        missing = self.relay(self.daemon.rundir, "/nowhere/program")
        missing.wait("^/nowhere/program: ")
        self.assertEqual(self.ends(missing), 127)
        self.assertEqual(lab.run([lab.program("relay")]).returncode, 2)


if __name__ == "__main__":
    unittest.main()
