"""Launch information by the standard's calls: a starter hands it out, a node does its part with it, in a process that
knows only the stock library (stock_starter.c). What a blob says and whether it is believed: unit tests."""
import json
import os
import re
import unittest

import lab
import test_pnet
import versions

NODES, RANKS = "node0001,node0002,node0016", "0,3;1;2,4"
JOB = f"nodes={NODES} ranks={RANKS}"
COORDINATES, PEERS = "pmix.fab.coord", "pmix.speers"
# What tells a job that is told by the starter's snapshot from one that is told by the node's own
TELLS, STARTERS, OWN = ("fabricd.generation", 3, 9) if versions.OWN_KEYS else ("pmix.fab.shapestr", "4x2x2", "1x2x2")
SECRET = "FABRICD_SECURITY_KEY"


class Case(test_pnet.Unchanging):
    def say(self, *lines, here="node0001", **env):
        """The answers, one a line."""
        env = test_pnet.environment(self.rundir, PMIX_MCA_pnet_base_verbose="2", **env)
        commands = os.path.join(lab.tmpdir(), "commands")
        lab.replace_file(commands, "".join(line + "\n" for line in lines))
        with open(commands, encoding="ascii") as file:
            done = lab.run([lab.program("stock_starter"), here], env=env, stdin=file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said = done.stderr
        return done.stdout.splitlines()

    def size(self, answer):
        match = re.fullmatch(r"SUCCESS fabricd\.launch=(\d+)", answer)
        self.assertTrue(match, answer)
        return int(match.group(1))


class Job(Case):
    def test_a_node_without_a_snapshot(self):
        """It tells what a node with one tells: each rank's values, in the same words."""
        keys = [f"get j {rank} {key}" for rank in range(5) for key in (COORDINATES, PEERS, "pmix.fab.switch", "pmix.fab.devs",
                                                                       "fabricd.nearest")]
        keys += [f"get j job {key}" for key in (TELLS, "pmix.fab.grps", "pmix.fab.plane", "fabricd.coordinates")]
        register = f"register j {NODES} {RANKS}"
        for here in ("node0001", "node0002", "node0016", "elsewhere"):
            own = self.say(register, *keys, here=here, PMIX_MCA_pmdl_fabricd_rundir=self.rundir)
            told = self.say(f"app j {JOB} others", register, "local j", *keys, here=here)
            self.size(told[0])
            self.shows_call("PMIx_server_setup_application", f"app j {JOB} others", told[0], re.compile(r"^SUCCESS fabricd\.launch=\d+$"),
                            "in process")
            self.shows_call("PMIx_server_register_nspace", register, told[1], "SUCCESS", "in process")
            self.shows_call("PMIx_server_setup_local_support", "local j", told[2], "SUCCESS", "in process")
            for name in ("PMIx_generate_regex", "PMIx_generate_ppn"):  # what they made of names and ranks has been understood
                self.shows_call(name, f"app j {JOB} others", told[3:], own[1:], "in process")
            self.assertEqual(json.loads(told[-4])["value"], STARTERS)

    def test_ends(self):
        """Another job of the same name knows nothing of the one before."""
        answers = self.say(f"app j {JOB} key all", f"register j {NODES} {RANKS}", "local j", "fork j 0", "end j",
                           f"register j {NODES} {RANKS}", "fork j 0", f"get j job {TELLS}", FORWARDED="1",
                           PMIX_MCA_pnet_fabricd_forward_envars="FORWARDED")
        self.assertIn("FORWARDED=1", answers[3])
        self.shows_call("PMIx_server_deregister_nspace", "end j", answers[6:8], ["SUCCESS PMIX_RANK=0", "NOT-FOUND"], "in process")

    def test_a_parent(self):
        """The parent's places travel along, for nodes that know it and have no snapshot."""
        parent = "node0003,node0004 0;1"
        answers = self.say(f"register p {parent}", f"register j {NODES} {RANKS}", f"app j {JOB} others parent=p", "local j",
                           f"get p 1 {COORDINATES}", f"get p job {TELLS}")
        self.size(answers[2])
        self.assertEqual(answers[3], "SUCCESS")
        own = self.say(f"register p {parent}", f"get p 1 {COORDINATES}", PMIX_MCA_pmdl_fabricd_rundir=self.rundir)
        self.shows_given("PMIX_PARENT_ID", f"app j {JOB} others parent=p", answers[4], own[1], "call", "in process")
        self.assertIn('"coord"', answers[4])
        self.assertEqual(json.loads(answers[5])["value"], STARTERS)
        alone = self.say(f"app j {JOB} others", f"app j {JOB} others parent=nobody")
        self.assertEqual(self.size(alone[0]), self.size(alone[1]))

    def test_what_is_asked_for(self):
        env = {"FORWARDED": "1", "PMIX_MCA_pnet_fabricd_forward_envars": "FORWARDED"}
        asked = (f"app j {JOB} envars", f"app j {JOB} others", f"app j {JOB} all", f"app j {JOB}", "app j", f"app j {JOB} envars key")
        envars, others, whole, none, no_maps, network = [self.size(answer) for answer in self.say(*asked, **env)]
        self.shows_given("PMIX_SETUP_APP_ALL", asked[2], whole, none, "call", "in process")
        self.shows_given("PMIX_SETUP_APP_ENVARS", asked[0], envars, no_maps, "call", "in process", without=none)
        self.shows_given("PMIX_SETUP_APP_NONENVARS", asked[1], envars < others < whole, True, "call", "in process")
        self.assertGreater(network, whole)
        self.make(self.rundir, "fattree3:16")
        names = ",".join(f"node{n:04d}" for n in range(1, 1025))
        answers = self.say(f"app j nodes={names} ranks={';'.join(map(str, range(1024)))} others")
        self.assertLess(self.size(answers[0]), 1 << 18)


class Environment(Case):
    def variables(self, *lines, **env):
        answers = self.say(*lines, "fork j 3 HOME=/mine", **env)
        self.assertTrue(answers[-1].startswith("SUCCESS "), answers)
        return set(answers[-1].split()[1:]) - {"PMIX_RANK=3", "HOME=/mine"}

    def test_patterns(self):
        env = {"UCX_TLS": "rc", "UCX_LOG": "no", "FI_ONE": "1", "FI_TWO": "2", "FI_THREE": "3", "GIVEN": "a=b",
               "PMIX_MCA_pnet_fabricd_forward_envars": "UCX_*;FI_???;PMIX_*", "PMIX_MCA_pnet_fabricd_exclude_envars": "UCX_L?G"}
        job = f"register j {NODES} {RANKS}"
        others = self.variables(job, f"app j {JOB} others", "local j", **env)
        envars = self.variables(job, f"app j {JOB} envars", "local j", **env)
        self.shows_given("PMIX_SETUP_APP_NONENVARS", f"app j {JOB} others", others, set(), "call", "in process", without=envars)
        self.shows_call("PMIx_server_setup_fork", "fork j 3 HOME=/mine", envars, {"UCX_TLS=rc", "FI_ONE=1", "FI_TWO=2"}, "in process",
                        without=others)
        self.assertEqual(self.variables(job, f"app j {JOB} envars", "local j", PMIX_MCA_forward_envars="GIVEN", **env),
                         {"UCX_TLS=rc", "FI_ONE=1", "FI_TWO=2", "GIVEN=a=b"})
        self.assertEqual(self.say("app j envars", PMIX_MCA_pnet_fabricd_forward_envars="A*B"), ["BAD-PARAM"])

    def test_security_key(self):
        """Only where it is asked for, beside what another call gave; another one for each job; 256 bits; not in the log."""
        job, keys = f"register j {NODES} {RANKS}", set()
        for more, env in (((f"app j {JOB} envars", "local j", "drop"), {"A": "1", "PMIX_MCA_pnet_fabricd_forward_envars": "A"}), ((), {})):
            found = dict(one.split("=") for one in self.variables(job, *more, f"app j {JOB} key", "local j", **env))
            self.assertEqual(found.keys(), {"A", SECRET} if more else {SECRET})
            self.shows_given("PMIX_ALLOC_NETWORK_SEC_KEY", f"app j {JOB} key", found[SECRET], re.compile("^[0-9a-f]{64}$"), "call", "in process")
            self.assertNotIn(found[SECRET], self.said)
            keys.add(found[SECRET])
        self.assertEqual(len(keys), 2)
        self.assertNotIn(SECRET, str(self.variables(job, f"app j {JOB} all", "local j")))


class Network(Case):
    def test_directives(self):
        """What cannot be had is left out, or refused where it must be had."""
        for word, error in (("endpts=4", "UNREACHABLE"), ("qos=high", "NOT-SUPPORTED"), ("bw=100", "NOT-SUPPORTED"),
                            ("type=tcp", "NOT-SUPPORTED")):  # no fabricd runs here: test_endpoints has one
            answers = self.say(f"app j {JOB} {word}", f"app j {JOB} !{word}")
            self.size(answers[0])
            self.shows_given("PMIX_ALLOC_NETWORK", f"app j {JOB} !{word}", answers[1], error, "call", "in process", without=answers[0])
        answers = self.say(f"app j {JOB} plane=ib0", f"app j {JOB} plane=none", f"app j {JOB} !plane=ib0", f"app j {JOB} !plane=none")
        self.assertEqual(self.size(answers[0]), self.size(answers[2]))
        self.shows_given("PMIX_ALLOC_NETWORK_PLANE", f"app j {JOB} !plane=none", answers[3], "NOT-FOUND", "call", "in process", without=answers[2])
        answers = self.say(f"app j {JOB} id=net.1 plane=ib0", f"register j {NODES} {RANKS}", "local j", "get j job net.1",
                           "app j id=pmix.net")
        self.assertEqual(answers[4], "BAD-PARAM")
        if versions.OWN_KEYS:  # the job finds under its id which plane it was given
            elements = json.loads(answers[3])["value"]["elements"]
            self.shows_given("PMIX_ALLOC_NETWORK_ID", f"app j {JOB} id=net.1 plane=ib0", [[key, value["value"]] for key, value in elements],
                             [["net.1", "ib0"], ["pmix.alloc.netplane", "ib0"]], "call", "in process")


class BadInput(Case):
    def test_maps_and_hosts(self):
        """Maps that disagree: the caller is told, and the next one is served. Hosts that nobody knows add nothing."""
        bad = ["nodes=node0001,node0002 ranks=0", "nodes=node0001", "ranks=0", "nodes=node0001,node0002,node0016 ranks=0;;1",
               "nodemap=blob: procmap=blob:", "nodemap=pmix[] procmap=pmix[]", "nodemap=node0001 procmap=x"]
        many = ",".join(f"host{n}x{n * 7919 % 1000}" for n in range(2000))  # the library compresses such a map
        bad.append(f"nodes={many} ranks={';'.join(map(str, range(2000)))} cutmap=40")
        answers = self.say(*(f"app j {maps}" for maps in bad), "app j nodes=node0001,stranger ranks=0;1 others",
                           "app j nodes=stranger ranks=0 others", "app j nodes=node0001 ranks=0 others")
        self.assertEqual(answers[:-3], ["BAD-PARAM"] * len(bad))
        both, stranger, known = [self.size(answer) for answer in answers[-3:]]
        self.assertEqual(both, known)
        self.assertLess(stranger, known)

    def test_damaged(self):
        """Cut, changed, of another version, another job's: refused, and nothing of it is used."""
        damages = ["flip=0", "flip=300", "cut=1", "cut=100000", "empty", "text"]
        answers = self.say(f"register j {NODES} {RANKS}", f"register k {NODES} {RANKS}", f"app j {JOB} key",
                           *(f"local j {damage}" for damage in damages), "local j flip=8", "local k", "fork j 0", "fork k 0",
                           f"get j job {TELLS}", "local j", f"get j job {TELLS}")[3:]
        self.assertEqual(answers[:-1], [*["BAD-PARAM"] * len(damages), "NOT-SUPPORTED", "BAD-PARAM", *["SUCCESS PMIX_RANK=0"] * 2, "NOT-FOUND",
                                        "SUCCESS"])
        self.assertEqual(json.loads(answers[-1])["value"], STARTERS)

    def test_a_node_with_other_maps(self):
        """The blob is of this job, and its hosts are not those that the node's launcher names: who is in both is told."""
        for register, told in ((f"register j {NODES} {RANKS}", [[0, 0, 0], [0, 0, 1]]),
                               ("register j stranger,node0002 0;1", ["NOT-FOUND", [0, 0, 1]]),
                               ("register j node0003,node0004 0;1", ["NOT-FOUND"] * 2),
                               (f"register j {NODES} 0;1", ["NOT-FOUND"] * 2)):  # the library refuses to register it
            answers = self.say(f"app j {JOB}", register, "local j", *(f"get j {rank} {COORDINATES}" for rank in (0, 1)))
            self.assertEqual(answers[2], "SUCCESS")
            self.assertEqual([json.loads(answer)["value"]["coord"] if "value" in answer else answer for answer in answers[3:]], told)

    def test_two_sources(self):
        """Two blobs in one call, or a blob for a node that has a snapshot: the first one's word stays, which the log says. One of
        another job among them is refused."""
        register, get = f"register j {NODES} {RANKS}", f"get j job {TELLS}"
        answers = self.say(register, f"app j {JOB}", f"app j {JOB} key", "local j", get, "fork j 0")
        self.assertEqual(answers[3], "SUCCESS")
        self.assertEqual(json.loads(answers[4])["value"], STARTERS)
        self.assertIn(SECRET, answers[5])
        self.assertEqual(self.say(register, f"app k {JOB}", f"app j {JOB}", "local j", get)[3:], ["BAD-PARAM", "NOT-FOUND"])
        other = self.made("fattree2:2,1,2", "ib0", "1", "9")
        answers = self.say(f"app j {JOB}", register, "local j", get, PMIX_MCA_pmdl_fabricd_rundir=other)
        self.assertEqual(answers[1:3], ["SUCCESS"] * 2)
        self.assertEqual(json.loads(answers[3])["value"], OWN)
        self.assertIn("j has launch information already, which stays", self.said)
        os.unlink(os.path.join(self.rundir, "ib0.snap"))  # and none
        answers = self.say(f"app j {JOB}", register, "local j", get)
        self.size(answers[0])
        self.assertEqual(answers[1:], ["SUCCESS", "SUCCESS", "NOT-FOUND"])


if __name__ == "__main__":
    unittest.main()
