"""The examples, as people would use them: a job of three nodes, each of which has a daemon of its own on this host."""
import os
import unittest

import lab
import test_pnet

NODES, RANKS = "node0001,node0002,node0016", "0,1;2;3,4"
PROCESSES = ["rank 0: at 0,0,0 in ib0", "rank 1: at 0,0,0 in ib0", "rank 2: at 0,0,1 in ib0", "rank 3: at 3,1,1 in ib0",
             "rank 4: at 3,1,1 in ib0"]


class Launcher(unittest.TestCase):
    def setUp(self):
        if not os.path.exists(test_pnet.COMPONENT):
            raise unittest.SkipTest("the component is not built: PMIx's private headers are missing")
        self.rundir = lab.tmpdir()
        done = lab.run([lab.program("mksnap"), "fattree3:4", self.rundir])
        self.assertEqual(done.returncode, 0, done.stderr)

    def launch(self, program, *options, starter=None, **env):
        done = lab.run([lab.program("launcher"), *options, NODES, RANKS, *program],
                       env=test_pnet.environment(starter or self.rundir, **env))
        return done.returncode, sorted(done.stdout.splitlines()), done.stderr

    def test_instant_on(self):
        """Told by the starter, or by snapshots of their own, processes know the same at their first line."""
        none = lab.tmpdir()
        told = self.launch([lab.program("instant_on")])
        self.assertEqual(told[0], 0, told[2])
        self.assertEqual([line.split(" fab://")[0] for line in told[1]], PROCESSES)
        self.assertEqual([line.rsplit(" ", 1)[1] for line in told[1]], ["0,1,2"] * 3 + ["3,4"] * 2)
        own = self.launch([lab.program("instant_on")], starter=none, PMIX_MCA_pmdl_fabricd_rundir=self.rundir)
        self.assertEqual(own[:2], told[:2])
        nobody = self.launch([lab.program("instant_on")], starter=none)
        self.assertEqual(nobody[:2], (0, [f"rank {rank}: knows nothing of a fabric" for rank in range(5)]))

    def test_an_agent(self):
        """As it would start daemons on other hosts, which have no run directory and their own environment."""
        agent = os.path.join(lab.tmpdir(), "agent")
        program = os.path.dirname(lab.program("launcher"))
        lab.replace_file(agent, f"#!/bin/sh\nnode=$1\nshift\nunset FORWARDED\nPMIX_MCA_pnet_fabricd_rundir=/nowhere\nAT=$node\n"
                                f"export AT PMIX_MCA_pnet_fabricd_rundir\nPATH={program}:$PATH exec \"$@\"\n")
        os.chmod(agent, 0o755)
        status, lines, errors = self.launch(["/bin/sh", "-c", "echo $PMIX_RANK $AT $FORWARDED"], "-a", agent, FORWARDED="yes",
                                            PMIX_MCA_pnet_fabricd_forward_envars="FORWARDED")
        self.assertEqual(status, 0, errors)
        at = ["node0001", "node0001", "node0002", "node0016", "node0016"]
        self.assertEqual(lines, [f"{rank} {at[rank]} yes" for rank in range(5)])

    def test_a_process_that_fails(self):
        status, _, _ = self.launch(["/bin/sh", "-c", "test $PMIX_RANK != 2"])
        self.assertEqual(status, 1)
        self.assertEqual(lab.run([lab.program("launcher")]).returncode, 2)


if __name__ == "__main__":
    unittest.main()
