"""Launch information in a host of the tests (stock_host.c), which knows only the stock PMIx library: what its processes
get, and what they get where something is missing, damaged or odd. The launchers themselves: test_launch.py."""
import collections
import json
import os
import re
import socket
import subprocess
import unittest

import conforms
import hwloc_machines
import lab
import news
import test_chapter
import test_pnet
import test_where
import versions

NODES, RANKS = "node0001,node0002,node0016", "0,3;1;2,4"
HERE = "node0001"
COMPONENT = os.path.join(lab.BUILD, "lib", "pmix", "pmix_mca_pmdl_fabricd.so")
COORD, DEVICES, SWITCH, NUMBER, PEERS = ("pmix.fab.coord", "pmix.fab.devs", "pmix.fab.switch", "pmix.fab.nverts",
                                         "pmix.speers")
NOT_FOUND = {"status": "NOT-FOUND"}
UNANSWERED = {key: {"status": "UNREACHABLE"} for key in ("pmix.fab.grps", "host.own")}  # by a host without a query function
HOSTS_OWN = {"pmix.fab.grps": NOT_FOUND, "host.own": {"type": "PMIX_STRING", "value": "host"}}  # by one that has one


class Case(conforms.Shows):
    def setUp(self):
        lab.require_component()
        self.folder = lab.tmpdir()
        self.rundir = os.path.join(self.folder, "run")
        self.out = os.path.join(self.folder, "out")
        os.mkdir(self.rundir)
        os.mkdir(self.out)

    def make(self, *args, fabric="fattree3:4"):
        done = lab.run([lab.program("mksnap"), fabric, self.rundir, *args])
        self.assertEqual(done.returncode, 0, done.stderr)

    def exchange(self, fabric, *args):
        """As a daemon publishes: beside, then renamed."""
        beside = os.path.join(self.folder, "beside")
        os.mkdir(beside)
        done = lab.run([lab.program("mksnap"), fabric, beside, *args])
        self.assertEqual(done.returncode, 0, done.stderr)
        os.rename(os.path.join(beside, "ib0.snap"), os.path.join(self.rundir, "ib0.snap"))
        os.rmdir(beside)

    def environment(self, **more):
        env = test_pnet.environment(self.rundir, PMIX_MCA_pmdl_fabricd_rundir=self.rundir,
                                    PMIX_MCA_pmdl_base_verbose="1", **more)
        if "ASAN_OPTIONS" in env:  # what the library does not free is not ours
            env["ASAN_OPTIONS"] += ":detect_leaks=0"
        return env

    def host(self, *options, here=HERE, nodes=NODES, ranks=RANKS, program=(), wrap=(), **env):
        """Run a job; what its lowest rank on this node was told, and what the host said."""
        for name in os.listdir(self.out):
            os.remove(os.path.join(self.out, name))
        program = program or [lab.program("stock_launch"), self.out, *nodes.split(",")]
        done = lab.run([*wrap, lab.program("stock_host"), *options, here, nodes, ranks, *program], env=self.environment(**env))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said = done.stderr
        ranks_here = sorted(os.listdir(self.out))
        if not ranks_here:
            return None
        with open(os.path.join(self.out, ranks_here[0]), encoding="utf-8") as file:
            return json.loads(file.readline())

    def fabricctl(self, what):
        return json.loads(lab.run([lab.program("fabricctl"), "--rundir", self.rundir, "--format", "json", what]).stdout)

    def devices(self):
        return {device["host"]: device for device in self.fabricctl("devices")}

    def check(self, told, nodes=NODES.split(","), ranks=RANKS.split(";")):
        """Every rank's and node's coordinates and devices, as the operator's command says them."""
        known = self.devices()
        for node, on_it in zip(nodes, ranks):
            device = known[node]
            coord = {"type": "PMIX_COORD", "value": {"view": 1, "coord": device["logical"]}}
            self.shows_keys(told["nodes"][node], {"PMIX_FABRIC_COORDINATES": coord, "PMIX_FABRIC_NUM_DEVICES": {"type": "PMIX_SIZE", "value": 1}},
                            "launch", "launched")
            self.shows_structure("pmix_coord_t", told["nodes"][node][COORD], coord["value"], "launch", "launched")
            ids = [dict(infos)["pmix.dev.id"] for _, infos in test_chapter.plain(told["nodes"][node][DEVICES])]
            for name, got, expected in (("PMIX_FABRIC_DEVICES", ids, [device["id"]]),
                                        ("PMIX_FABRIC_SWITCH", test_chapter.plain(told["nodes"][node][SWITCH]), [device["switch_guid"]])):
                self.shows_given(name, conforms.string(name), got, expected, "launch", "launched", kind="key")
            for rank in map(int, on_it.split(",")):
                self.assertEqual(told["ranks"][rank][COORD], coord)
                self.assertEqual(told["ranks"][rank][DEVICES], told["nodes"][node][DEVICES])

    def knows_nothing(self, told):
        for facts in [*told["ranks"], *told["nodes"].values()]:
            self.assertEqual({key: value for key, value in facts.items() if key != "pmix.hname"
                              and value != NOT_FOUND}, {})


class Told(Case):
    def test_a_job(self):
        """Where the ranks are is told by maps, or of each rank."""
        self.make()
        for options in ((), ("-d",)):
            with self.subTest(options=options):
                told = self.host(*options)
                self.check(told)
                for rank, peers in enumerate(["0,1,3", "0,1,3", "2,4", "0,1,3", "2,4"]):
                    near = [dict(infos)[PEERS] for _, infos in test_chapter.plain(told["ranks"][rank][PEERS])]
                    self.shows_given("PMIX_SWITCH_PEERS", PEERS, near, [peers], "launch", "launched", kind="key")
        job = test_chapter.told((key, value) for key, value in told["job"].items() if "value" in value)
        self.assertEqual((job.get("fabricd.generation"), job["pmix.fab.dims"]), (3 if versions.OWN_KEYS else None, 3))
        plane = self.fabricctl("planes")[0]
        self.shows_keys(job, {f"PMIX_FABRIC_{name}": value for name, value in {
            "PLANE": ["ib0"], "GROUPS": "0:node0001,node0002;7:node0016", "INDEX": plane["index"], "VENDOR": plane["vendor"],
            "IDENTIFIER": plane["identifier"], "DIMS": plane["dims"], "SHAPE": plane["shape"],
            "SHAPE_STRING": "x".join(map(str, plane["shape"]))}.items()}, "launch", "launched")
        self.make("ib1", "2", "4")
        told = self.host(PMIX_MCA_pmdl_fabricd_coordinates="standard")
        self.assertEqual(told["job"]["pmix.fab.plane"]["value"]["elements"], ["ib0", "ib1"])
        self.assertEqual(told["nodes"][HERE][NUMBER]["value"], 2)
        for facts in [*told["ranks"], *told["nodes"].values()]:
            self.assertEqual(facts[COORD]["value"]["of"], "PMIX_GEOMETRY")

    def test_a_device_by_its_id(self):
        """The store in shared memory that clients of this library have by default keeps no value with a qualifier."""
        self.make()
        self.assertEqual(self.host()["devices"], {"": None})
        told = self.host(PMIX_MCA_gds="hash")
        devices = [element[1] for node in NODES.split(",") for element in told["nodes"][node][DEVICES]["value"]["elements"]]
        self.assertEqual(len(devices), 3)
        known = self.devices()
        ids = {one for one in told["devices"] if one}
        self.assertEqual(ids, {known[node]["id"] for node in NODES.split(",")})
        self.shows_given("PMIX_FABRIC_DEVICE", "pmix.fabdev", [value for one, value in told["devices"].items() if one], devices, "launch",
                         "launched", kind="key")

    def test_switched_off(self):
        self.make()
        told = self.host(PMIX_MCA_pmdl_fabricd_launch="0")
        self.knows_nothing(told)
        self.assertNotEqual(told["register"]["attributes"], [])
        self.assertIn("value", told["queries"]["pmix.fab.grps"])
        told = self.host(PMIX_MCA_pmdl_fabricd_fabric="0")
        self.assertEqual(told["register"]["attributes"], [])
        self.assertIn("value", told["queries"]["pmix.fab.grps"])
        self.check(told)
        told = self.host(PMIX_MCA_pmdl_fabricd_query="0")
        self.assertEqual(told["queries"], UNANSWERED)
        self.assertNotEqual(told["register"]["attributes"], [])
        self.check(told)


NAMES = ("UCX_NET_DEVICES", "NCCL_IB_HCA", "FI_VERBS_DEVICE_NAME", "PSM3_NIC", "FI_OPX_HFI_SELECT", "NVSHMEM_HCA_LIST")
ALL = "ucx,nccl,ofi,psm3,opx,nvshmem"  # which leaves out FI_OPX_HFI_SELECT: it is for devices of another kind


def variables(devices, names=NAMES):
    """Of the environment of processes that are to use these."""
    every = [{"UCX_NET_DEVICES": f"{name}:1", "NCCL_IB_HCA": f"={name}:1", "FI_VERBS_DEVICE_NAME": name, "PSM3_NIC": name,
              "NVSHMEM_HCA_LIST": f"{name}:1"} for name in devices]
    return [{name: value for name, value in one.items() if name in names} for one in every]


class Nearest(test_where.Machine, Case):
    """Twelve ranks on a recorded machine of two sockets with two HCAs each."""

    RANKS = ",".join(map(str, range(12)))
    BOUND = [f"{2 * n}-{2 * n + 1},{2 * n + 24}-{2 * n + 25}" for n in range(12)]
    CHOICE = [f"mlx5_{n}" for n in (0, 1) * 3 + (2, 3) * 3]

    def setUp(self):
        super().setUp()
        self.rundir = self.daemon.rundir

    def started(self, *options, **more):
        """What each rank finds in its environment, of these names."""
        if lab.SANITIZE == "thread":
            self.skipTest("the sanitizer that the program would inherit ends a shell")
        self.host(*options, here="node1", nodes="node1", ranks=self.RANKS,
                  program=["/bin/sh", "-c", f"env > {self.folder}/$PMIX_RANK"], **more)
        found = []
        for rank in range(12):
            with open(os.path.join(self.folder, str(rank)), encoding="utf-8") as file:
                env = dict(line.split("=", 1) for line in file.read().splitlines() if "=" in line)
            found.append({name: env[name] for name in NAMES if name in env})
        return found

    @unittest.skipUnless(versions.OWN_KEYS, versions.NO_OWN_KEYS)
    def test_the_key(self):
        """Of each rank of this node, whoever asks; it is what `fabricctl where` says."""
        told = self.host("-c", ";".join(self.BOUND), here="node1", nodes="node1,node2", ranks=self.RANKS + ";12")
        nearest = [dict(rank["fabricd.nearest"]["value"]["elements"]) if "value" in rank["fabricd.nearest"] else None
                   for rank in told["ranks"]]
        self.assertEqual([one and one["pmix.fabdev.nm"]["value"] for one in nearest], [*self.CHOICE, None])
        self.assertEqual([row["id"] for row in self.where("node1:12", *self.BOUND)],
                         [one["pmix.dev.id"]["value"] for one in nearest[:12]])

    def test_the_environment(self):
        every, bound = {"PMIX_MCA_pmdl_fabricd_env": ALL}, ("-c", ";".join(self.BOUND))
        self.assertEqual(self.started(*bound), [{}] * 12)
        self.assertEqual(self.started(*bound, **every), variables(self.CHOICE))
        self.assertEqual(self.started("-c", ";".join("hwloc:" + text for text in self.BOUND), **every), variables(self.CHOICE))
        some = self.started(PMIX_MCA_pmdl_fabricd_env="ucx,none")  # and ranks that are not bound
        self.assertEqual(some, [{"UCX_NET_DEVICES": f"mlx5_{n % 4}:1"} for n in range(12)])
        self.assertIn("a word is none of ucx, nccl, ofi, psm3, opx, nvshmem: ", self.said)


    @unittest.skipUnless(versions.PMIX >= (7,), "before 7 the library sets none of these variables")
    def test_whose_value_counts(self):
        """The site's, then ours, then that of the library, which is told the device of each rank; or in another order."""
        site, library = {"UCX_NET_DEVICES": "mlx5_9:1"}, {"UCX_NET_DEVICES": "mlx5_3:*", "NCCL_IB_HCA": "mlx5_3"}
        options = ("-c", ";".join(self.BOUND), "-D", "mlx5_3")
        machine = os.path.join(lab.tmpdir(), "machine.xml")
        lab.replace_file(machine, hwloc_machines.two_sockets())
        topology = {"PMIX_MCA_pmix_hwloc_topo_file": machine}
        ours = variables(self.CHOICE, NAMES[:3])
        for order, env, more, expected in (
                (None, "", {}, [library] * 12),
                (None, "", site, [library] * 12),  # nothing of ours is set: the library does as it does
                (None, "ucx,nccl,ofi", {}, ours),
                (None, "ucx,nccl,ofi", site, [{**one, **site} for one in ours]),
                (None, "nccl", {}, [{**library, "NCCL_IB_HCA": one["NCCL_IB_HCA"]} for one in ours]),
                ("site", "", site, [{**library, **site}] * 12),
                ("library", "ucx,nccl,ofi", site, [{**one, **library} for one in ours]),
                ("fabricd,library", "ucx,nccl,ofi", site, ours)):
            settings = {"PMIX_MCA_pmdl_fabricd_env": env, **({"PMIX_MCA_pmdl_fabricd_env_order": order} if order else {})}
            with self.subTest(order=order, env=env, more=more):
                self.assertEqual(self.started(*options, **settings, **more, **topology), expected)
        self.started(*options, PMIX_MCA_pmdl_fabricd_env="ucx", PMIX_MCA_pmdl_fabricd_env_order="site,nobody", **topology)
        self.assertIn("env_order = site,nobody: a word", self.said)


class Quiet(Case):
    """Whatever is wrong: the job runs, what is known is told, and one line says why."""

    def test_another_version_of_the_library(self):
        """Told by that it declines: what else there is of the library is not what it was built for."""
        self.make()
        preload = lab.preload(lab.sanitizer_library(COMPONENT), os.path.join(lab.BUILD, "lib", "version_order.so"))
        told = self.host(LD_PRELOAD=preload, PMIX_MCA_pnet_base_verbose="1")
        self.knows_nothing(told)
        self.assertEqual((told["queries"], told["register"]["attributes"]), (UNANSWERED, []))
        for framework in ("pmdl", "pnet"):
            self.assertRegex(self.said, rf"{framework}:fabricd: built for PMIx .*, this is OpenPMIx 9\.9\.9.*: declined")

    def test_nothing_that_can_be_believed(self):
        """There is no run directory or no snapshot, what stands there is damaged, others may write it, or it is another user's where
        anybody could have put it."""
        os.rmdir(self.rundir)
        self.knows_nothing(self.host())
        self.assertIn("cannot be read", self.said)
        os.mkdir(self.rundir)
        self.make()
        path = os.path.join(self.rundir, "ib0.snap")
        with open(path, "rb") as file:
            whole = file.read()
        for bytes_ in (whole[:-1], b"", whole[:300] + b"\xff" + whole[301:]):
            with open(path, "wb") as file:
                file.write(bytes_)
            self.knows_nothing(self.host())
            self.assertIn("no readable snapshot", self.said)
        self.make()
        for place, mode in ((self.rundir, 0o777), (self.rundir, 0o775), (path, 0o666)):
            before = os.stat(place).st_mode
            os.chmod(place, mode)
            self.knows_nothing(self.host())
            self.assertIn("not trusted", self.said)
            os.chmod(place, before)
        if os.geteuid() == 0:
            os.chown(self.rundir, 65534, 65534)
            self.check(self.host())
            os.chmod(self.folder, 0o777)
            self.knows_nothing(self.host())

    def test_domains_and_strangers(self):
        self.make()
        nodes = "node0001.site,node0002,stranger"
        told = self.host(here="node0001.site", nodes=nodes)
        if versions.OWN_KEYS:
            numbers = told["job"]["fabricd.coordinates"]["value"]["elements"]
            self.assertEqual([rank for rank in range(5) if numbers[3 * rank:3 * rank + 3] == [2**32 - 1] * 3], [2, 4])
        self.assertEqual([told["nodes"][node][NUMBER].get("value") for node in nodes.split(",")],
                         [1 if versions.PMIX < (5, 0, 9) else None, 1, None])  # docs/versions.md
        self.assertIn("1 of them not in the fabric", self.said)

        self.host("-n", program=["/bin/true"])
        self.assertIn("5 ranks on 0 hosts", self.said)

    @unittest.skipIf(lab.SANITIZE, "a sanitizer's runtime calls the kernel for itself")
    def test_nothing_is_waited_for(self):
        """No connection and no child process more than without the component, and nobody sleeps on the launch path."""
        lab.require("strace")
        self.make()
        trace = os.path.join(self.folder, "trace")

        def calls(**env):
            """Of the host's own thread, those that make connections and processes, sleep, lock files or write to the disk."""
            self.host(program=["/bin/true"], wrap=["strace", "-f", "-o", trace], PMIX_MCA_pmdl_fabricd_env="ucx,nccl,ofi", **env)
            found = []
            with open(trace, encoding="utf-8", errors="replace") as file:
                for line in file:
                    found += re.findall(r"^\d+ +(connect|socket|vfork|fork|clone|execve|wait4|nanosleep|clock_nanosleep|select|fsync|"
                                        r"fdatasync|flock|sendto|sendmsg)\(", line)
            return collections.Counter(found)
        without = calls(PMIX_MCA_pmdl="^fabricd")
        self.assertGreater(without["clone"] + without["vfork"], 0)
        self.assertEqual(calls(), without)

    def test_many_ranks_on_one_node(self):
        """Seen from elsewhere, and by one of them: what all of them may know, and their variables."""
        if lab.SANITIZE == "thread":
            self.skipTest("the library holds more locks at once than the sanitizer can follow")
        self.make()
        n = 5000 if versions.PMIX < (5,) else 1000  # docs/versions.md
        ranks = ",".join(map(str, range(n)))
        self.host(nodes=HERE, ranks=ranks, program=["/bin/true"], here="elsewhere")
        self.assertIn(f"{n} ranks on 1 hosts", self.said)
        told = self.host("-1", nodes=HERE, ranks=ranks, PMIX_MCA_pmdl_fabricd_env="ucx")
        self.assertEqual([told["ranks"][rank][PEERS] == NOT_FOUND for rank in (0, n - 1)], [n > 1000] * 2)
        device = self.devices()[HERE]["logical"]
        if versions.OWN_KEYS:
            self.assertEqual([told["ranks"][rank]["fabricd.nearest"] == NOT_FOUND for rank in (0, n - 1)], [n > 1000] * 2)
            self.assertEqual(told["job"]["fabricd.coordinates"]["value"]["elements"], device * n)
        self.assertEqual({tuple(rank[COORD]["value"]["coord"]) for rank in told["ranks"]}, {tuple(device)})


class Slots(Case):
    def test_whose_answers(self):
        """A host that answers for the fabric does so alone. Queries for other keys are the host's, or get what they get without the
        component."""
        self.make()
        groups = ";".join(f"{group['group']}:{','.join(group['hosts'])}" for group in self.fabricctl("groups"))
        for options, without in (((), UNANSWERED), (("-q",), HOSTS_OWN)):
            told = self.host("-f", *options)
            self.assertEqual(told["register"]["attributes"], [["pmix.fab.vndr", {"type": "PMIX_STRING", "value": "host"}]])
            self.assertEqual(told["queries"], without)
            self.check(told)
            self.assertEqual(self.host(*options, PMIX_MCA_pmdl="^fabricd")["queries"], without)
            self.assertEqual(self.host(*options)["queries"], {**without, "pmix.fab.grps": {"type": "PMIX_STRING", "value": groups}})
        for options in ((), ("-f",), ("-q",), ("-f", "-q")):  # what was empty is empty, what was wrapped is the host's, at the end
            done = lab.run([lab.program("stock_host"), "-x", *options, HERE, NODES, RANKS, "/bin/true"], env=self.environment())
            self.assertEqual((done.returncode, done.stdout), (0, "as they were\n"), done.stderr)
        os.unlink(os.path.join(self.rundir, "ib0.snap"))
        self.assertEqual(self.host("-q")["queries"], HOSTS_OWN)
        self.assertEqual(self.host()["queries"], UNANSWERED)

    def test_the_host_goes_on(self):
        """After the library's end, which unloads components and closes none of these; and something is published."""
        self.make()
        host = subprocess.Popen([lab.program("stock_host"), "-l", HERE, NODES, RANKS, "/bin/true"], env=self.environment(),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(host.stdout.close)
        self.addCleanup(host.kill)
        self.assertEqual(host.stdout.readline(), "finalized\n")

        if versions.PMIX >= (7,):  # this library closes them
            self.assertEqual(len(os.listdir(f"/proc/{host.pid}/task")), 1)
            host.stdin.close()
            self.assertEqual(host.wait(lab.HUNG), 0)
            return

        def looks():
            """How often its threads have woken."""
            found = 0
            for task in os.listdir(f"/proc/{host.pid}/task"):
                with open(f"/proc/{host.pid}/task/{task}/status", encoding="ascii") as file:
                    found += int(next(line for line in file if line.startswith("voluntary_ctxt_switches")).split()[1])
            return found
        for generation in ("9", "10"):
            before = looks()
            self.exchange("fattree3:4", "ib0", "0", generation)
            lab.wait_for(lambda: host.poll() is not None or looks() > before, what="the component's thread to look")
        host.stdin.close()
        self.assertEqual(host.wait(lab.HUNG), 0)

    def test_a_change(self):
        """Each process hears the pair of events, in order, each once; an update shows the change."""
        self.make()
        for generation, options in enumerate(((), ("-s",)), 4):
            with self.subTest(options=options):
                self.a_change(generation, *options)

    def a_change(self, generation, *options):
        for name in os.listdir(self.out):
            os.remove(os.path.join(self.out, name))
        commands = os.path.join(self.out, "commands")
        nodes = NODES.split(",")
        with open(commands, "w", encoding="utf-8"):
            pass
        host = lab.spawn([lab.program("stock_host"), *options, HERE, NODES, RANKS, lab.program("stock_launch"), self.out, *nodes],
                         env=self.environment(), stderr=subprocess.DEVNULL)
        files = [os.path.join(self.out, rank) for rank in RANKS.split(";")[0].split(",")]

        def lines(path):
            if not os.path.exists(path):
                return []
            with open(path, encoding="utf-8") as file:
                return [json.loads(line) for line in file.read().splitlines(True) if line.endswith("\n")]
        news.until_file(files[0], lambda: all({"watching": 0} in lines(path) for path in files), "handlers", host)
        self.exchange("fattree3:4", "ib0", "1", str(generation))
        news.until_file(files[0], lambda: all("PMIX_FABRIC_UPDATED" in str(lines(path)) for path in files), "events", host)
        with open(commands, "a", encoding="utf-8") as file:
            file.write(f"update {generation}\nend\n")
        self.assertEqual(host.wait(lab.HUNG), 0)
        for path in files:
            register = lines(path)[0]["register"]
            attributes = dict(register["attributes"])
            self.assertEqual(attributes["pmixfab.generation"]["value"], generation - 1)
            self.shows_call("PMIx_Fabric_register", "register", (register["status"], attributes[NUMBER]["value"]), ("SUCCESS", 16), "launched")
            self.shows_call("PMIx_Fabric_deregister", "deregister", lines(path)[-1], {"deregister": "SUCCESS"}, "launched")
            events = [(line["event"], line["pmixfab.generation"]["value"]) for line in lines(path) if "event" in line]
            self.assertEqual(events, [("PMIX_FABRIC_UPDATE_PENDING", generation), ("PMIX_FABRIC_UPDATED", generation)])
            self.shows_events(events, {name: [(name, generation)] for name in ("PMIX_FABRIC_UPDATE_PENDING", "PMIX_FABRIC_UPDATED")}, "launched")
            update = next(line for line in lines(path) if "update" in line)
            self.shows_call("PMIx_Fabric_update", f"update {generation}",
                            (update["status"], dict(update["attributes"])["pmixfab.generation"]["value"]), ("SUCCESS", generation), "launched")


class Scheduler(Case):
    """A scheduler's own process gets by query and get what it gets by register."""

    def test_a_whole_life(self):
        """The calls of the library's own example, on a host of the fabric, and on one that is not in it."""
        text, here = lab.fabric("fattree2:4,2,4", "capture"), socket.gethostname()
        for host, said in ((here, "get SUCCESS"), ("elsewhere", "get NOT-FOUND")):
            path = os.path.join(lab.tmpdir(), "fabric.txt")
            lab.replace_file(path, text.replace("node0007", host))
            daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
            self.addCleanup(daemon.stop)
            known = [device for device in daemon.ctl_json("devices") if device["host"] == host]
            if host == here and not known:
                self.skipTest(f"{here} is no name that the pattern of host names takes")
            done = lab.run([lab.program("stock_simple"), "test000,test001,test002", "0,1,2;3,4,5;6,7"],
                           env=test_pnet.environment(daemon.rundir, PMIX_MCA_pmdl_fabricd_rundir=daemon.rundir))
            lines = done.stdout.splitlines()
            self.assertEqual(lines[:3], ["init SUCCESS", "register SUCCESS", said], done.stderr)
            if host == here:
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                (_, device), = json.loads(lines[3])["value"]["elements"]
                self.shows_given("PMIX_FABRIC_DEVICES", "get devices", dict(device["value"]["elements"])["pmix.dev.id"]["value"], known[0]["id"],
                                 "get", "in process", kind="key")
                self.assertEqual(lines[4:], [f"{what} SUCCESS" for what in (
                    "hosts", "ranks", "application", "local support", "finalize")])

    def told(self, scheduler, what):
        return scheduler.say(what, "^told (.*)$").group(1)

    def test_query_and_get(self):
        self.make()
        scheduler = test_pnet.Scheduler(self.rundir, PMIX_MCA_pmdl_fabricd_rundir=self.rundir)
        self.addCleanup(scheduler.stop)
        scheduler.status("register 0")
        shown = scheduler.keys(0)
        plane = self.fabricctl("planes")[0]
        groups = ";".join(f"{group['group']}:{','.join(group['hosts'])}" for group in self.fabricctl("groups"))
        for name, value in (("GROUPS", groups), ("VENDOR", plane["vendor"]), ("IDENTIFIER", plane["identifier"]), ("PLANE", "ib0"),
                            ("SHAPE_STRING", "x".join(map(str, plane["shape"])))):
            name, key = f"PMIX_FABRIC_{name}", conforms.string(f"PMIX_FABRIC_{name}")
            self.assertEqual(shown[key], value)
            lab.wait_for(lambda key=key: self.told(scheduler, f"get {key}") == shown[key], what=key)
            for how in ("get", "query") if name[12:] in ("GROUPS", "VENDOR", "IDENTIFIER") else ("get",):
                self.shows_given(name, f"{how} {key}", self.told(scheduler, f"{how} {key}"), value, how, "in process", kind="key")
        self.exchange("fattree2:2,1,2")
        lab.wait_for(lambda: self.told(scheduler, "get pmix.fab.grps").startswith("0:node0001,node0002;1:node0003,"),
                     what="the new groups")
        self.assertEqual(self.told(scheduler, "query pmix.query.nothing"), "UNREACHABLE")
        self.assertEqual(scheduler.quit(), 0)


if __name__ == "__main__":
    unittest.main()
