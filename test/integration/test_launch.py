"""What every process of a job knows at its start, under the launchers that people run, whom nobody has changed.

Slurm and Open MPI start jobs on three nodes of a recorded fabric, in namespaces of their own (launchers.py). A node has
two devices, on two switches. Each rank writes down all that it was told of every rank and node (stock_launch.c).
"""
import itertools
import json
import os
import re
import shutil
import unittest

import conforms
import fabric_text
import hosts
import lab
import launchers
import news
import test_chapter as chapter
import versions
from test_chapter import KEY

PER_NODE = 2
NODES = ["node0001", "node0002", "node0017"]
PNET = os.path.join(lab.BUILD, "lib", "pmix", "pmix_mca_pnet_fabricd.so")
COMPONENT = os.path.join(lab.BUILD, "lib", "pmix", "pmix_mca_pmdl_fabricd.so")
PENDING, UPDATED = "PMIX_FABRIC_UPDATE_PENDING", "PMIX_FABRIC_UPDATED"
GENERATION, PEERS = "pmixfab.generation", "pmix.speers"
JOB_GENERATION = "fabricd.generation"
# What a launcher says of a key that nobody knows, with the component and without.
# PRRTE's answer depends on its version.
UNKNOWN = {"srun": ["UNREACHABLE"], "mpirun": ["NOT-FOUND"], "prterun": ["NOT-SUPPORTED", "NOT-FOUND"]}


class Lab:
    """The cluster and its launchers, for all tests of a module."""

    cluster, launchers = None, []

    @classmethod
    def start(cls):
        cls.cluster = launchers.Cluster(NODES)
        cls.launchers = launchers.people_run(cls.cluster)

    @classmethod
    def slurms(cls):
        """Those of them that are Slurm's."""
        return [launcher for launcher in cls.launchers if launcher.name == "srun"]

    @classmethod
    def stop(cls):
        if cls.cluster is not None:
            cls.cluster.stop()


def setUpModule():
    try:
        Lab.start()
    except BaseException:
        Lab.stop()
        raise


def tearDownModule():
    Lab.stop()


def recorded():
    """A fabric of four leaves in which node0017 has a second device, on another leaf."""
    text = lab.fabric("fattree2:4,2,16", "capture")
    return text.replace('"node0033"', '"node0017 HCA-2"')


class Job:
    """A job of stock_launch that stays until it is told to end."""

    def __init__(self, launcher):
        self.folder = lab.tmpdir()
        self.size = PER_NODE * len(NODES)
        lab.replace_file(os.path.join(self.folder, "commands"), "")
        self.updates = 0
        self.process = launcher.spawn(PER_NODE, [lab.program("stock_launch"), self.folder, *NODES])

    def lines(self, rank):
        """What a rank has written, whole lines."""
        try:
            with open(os.path.join(self.folder, str(rank)), encoding="utf-8") as file:
                # In one piece: the rest of a line that was half there may come while the next one is asked for.
                return [json.loads(line) for line in file.read().split("\n")[:-1]]
        except FileNotFoundError:
            return []

    def wait(self, condition, what):
        """Until this is true of what every rank has written."""
        def all_have():
            if self.process.process.poll() is not None:
                raise lab.LabError(f"the job has ended: {self.process.output.text[-2000:]}")
            return all(condition(self.lines(rank)) for rank in range(self.size))
        try:
            news.until_file(os.path.join(self.folder, "0"), all_have, what, self.process.process)
        except lab.LabError as error:
            raise lab.LabError(f"{error}: {[self.lines(rank)[1:] for rank in range(self.size)]}") from None
        return self

    def watching(self):
        return self.wait(lambda lines: any("watching" in line for line in lines), "all ranks to watch")

    def events(self, rank):
        return [(line["event"], line[GENERATION]["value"]) for line in self.lines(rank) if "event" in line]

    def tell(self, text):
        with open(os.path.join(self.folder, "commands"), "a", encoding="ascii") as file:
            file.write(text + "\n")

    def update(self):
        """PMIx_Fabric_update of every rank: the info arrays."""
        self.updates += 1
        self.tell(f"update {self.updates}")
        self.wait(lambda lines: any(line.get("update") == self.updates for line in lines), "all ranks to update")
        return [next(line for line in self.lines(rank) if line.get("update") == self.updates)
                for rank in range(self.size)]

    def abandon(self):
        """Have it end after a test that failed in the middle."""
        if self.process.process.poll() is None:
            self.end()

    def end(self):
        """Its exit status."""
        self.tell("end")
        status = self.process.process.wait(lab.HUNG)
        lab.kill_group(self.process.process)
        return status


class Expected:
    """What fabricctl and a query of fabricd say of the nodes, of one generation."""

    def __init__(self, daemon, nodes=None):
        self.generation = daemon.status()["generation"]
        self.devices = daemon.ctl_json("devices")
        ids = {switch["name"]: switch["id"] for switch in daemon.ctl_json("switches")}
        for device in self.devices:
            device["switch"] = ids[device["switch"]]
        self.planes = {plane["name"]: plane for plane in daemon.ctl_json("planes")}
        self.groups = daemon.ctl_json("groups")
        self.queried = {name: self.query(daemon, KEY["PMIX_FABRIC_DEVICES"], f"{KEY['PMIX_HOSTNAME']}=s:{name}")
                        for name in nodes or NODES}

    @staticmethod
    def query(daemon, *args):
        done = daemon.on.run([lab.program("stock_chapter"), daemon.uri(), "query", *args], env=daemon.tool_env())
        if done.returncode != 0:
            raise lab.LabError(done.stderr)
        return json.loads(done.stdout)[0][1]

    def of(self, host):
        return [device for device in self.devices if device["host"] == host]


def nothing(facts):
    """Is this what a process is told where nothing is installed?"""
    told = [facts["job"], *facts["nodes"].values(),
            *({key: value for key, value in rank.items() if key != KEY["PMIX_HOSTNAME"]} for rank in facts["ranks"])]
    return (all(value == {"status": "NOT-FOUND"} for keys in told for value in keys.values()) and
            facts["reader"] == [None] * facts["size"] and
            all(list(value) == ["status"] for value in facts["queries"].values()) and
            facts["register"]["attributes"] == [] and
            facts["register"]["status"] == ("NOT-SUPPORTED" if versions.PMIX >= (7,) else "SUCCESS"))


class Case(conforms.Shows):
    maxDiff = None
    nodes, per_node = NODES, PER_NODE

    def machines(self):
        return Lab.cluster, Lab.launchers

    def setUp(self):
        self.cluster, self.launchers = self.machines()
        self.capture = os.path.join(lab.tmpdir(), "fabric.txt")
        self.whole = recorded()
        lab.replace_file(self.capture, self.whole)
        self.addCleanup(self.cluster.withdraw)
        self.addCleanup(self.cluster.configure)
        self.addCleanup(self.cluster.remove, COMPONENT)

    def renamed(self):
        """Two hosts have changed their names."""
        return self.whole.replace('"node0002"', '"node"').replace('"node0034"', '"node0002"').replace('"node"', '"node0034"')

    def install(self):
        lab.require_component()
        self.cluster.install(COMPONENT)

    def daemon(self, remote=False, **sections):
        """The scheduler's fabricd on the head."""
        daemon = hosts.Fabricd(
            self.cluster.outside("head"),
            config={"fabricd": {"probe": f"file:{self.capture}", "host": "head"},
                    "changes": {"flap_count": 0},  # a cable is pulled more often than a hand would
                    "security": {"remote": "yes" if remote else "no"}, **sections},
            env={"PMIX_MCA_ptl_tcp_if_include": self.cluster.NETWORK} if remote else {})
        self.addCleanup(lambda: daemon.alive() and daemon.stop())
        return daemon

    def mirrored(self):
        """The scheduler's fabricd; on each node one mirrors it, and has delivered what the node has."""
        scheduler = self.daemon(remote=True)
        self.cluster.publish(scheduler, on=["head"])
        where = re.search(r"//([\d.]+):", scheduler.uri()).group(1)
        nodes = []
        for name in self.nodes:
            nodes.append(hosts.Node(self.cluster.outside(name), name, where))
            self.addCleanup(lambda node=nodes[-1]: node.alive() and node.stop())
            self.cluster.publish(nodes[-1], on=[name])
        for node in nodes:
            node.wait_delivered()
        generation = scheduler.refresh()["generation"]  # with what they have delivered
        for node in nodes:
            node.until("generation", generation=generation)
        return scheduler

    def served(self):
        """As daemon(), and every node sees its run directory."""
        daemon = self.daemon()
        self.cluster.publish(daemon)
        return daemon

    def job(self, launcher):
        job = Job(launcher)
        self.addCleanup(job.abandon)
        return job

    def start(self, launcher, env=None, **options):
        """A whole launch: what each rank has written first."""
        folder = lab.tmpdir()
        os.chmod(folder, 0o777)
        done = launcher.run(self.per_node, [lab.program("stock_launch"), folder, *self.nodes], env=env, **options)
        # PRRTE 5 says of each key that it looks for on another node in vain, in which file it did so
        said = re.sub(r"(?m)^\[\S+\] PRTE ERROR: Not found in file \S*pmix_server_fence\.c at line \d+\n", "", done.stderr)
        self.assertEqual((done.returncode, done.stdout, said), (0, "", ""))
        facts = []
        for rank in range(self.per_node * len(self.nodes)):
            with open(os.path.join(folder, str(rank)), encoding="utf-8") as file:
                facts.append(json.loads(file.readline()))
        shutil.rmtree(folder)
        self.assertEqual([fact["rank"] for fact in facts], list(range(len(facts))))
        return facts

    # -- what must be known

    def check(self, facts, expected):
        """All that a rank was told is what fabricctl says."""
        ranks = {}
        for rank, told in enumerate(facts["ranks"]):
            ranks.setdefault(chapter.plain(told[KEY["PMIX_HOSTNAME"]]), []).append(rank)
        self.assertEqual({host: len(of) for host, of in ranks.items()}, {name: self.per_node for name in self.nodes})
        for host, of in ranks.items():
            self.check_node(facts["nodes"][host], host, expected)
            for rank in of:
                told, near = facts["ranks"][rank], facts["rank"] in of
                for key, value in facts["nodes"][host].items():
                    # The library takes these two for a node's keys, and asks a rank elsewhere for the others itself.
                    if near or key in (KEY["PMIX_FABRIC_COORDINATES"], KEY["PMIX_FABRIC_DEVICES"]):
                        self.assertEqual(told[key], value, f"{key} of rank {rank} and of its node")
                    else:
                        self.assertEqual(told[key], {"status": "NOT-FOUND"}, f"{key} of rank {rank}")
                self.check_peers(told[PEERS], host, ranks, expected)
                self.assertEqual(facts["reader"][rank], list(reversed(expected.of(host)[0]["logical"])))
        of_rank = {rank: expected.of(host)[0]["logical"] for host, of in ranks.items() for rank in of}
        self.check_own(facts["job"]["fabricd.coordinates"], sum((of_rank[rank] for rank in sorted(of_rank)), []))
        self.check_job(facts["job"], expected)

    def check_node(self, told, host, expected):
        devices = expected.of(host)
        coordinates = {"view": 1, "coord": devices[0]["logical"]}
        self.shows_structure("pmix_coord_t", told[KEY["PMIX_FABRIC_COORDINATES"]], coordinates, "launch", "launched")
        self.shows_keys(told, {"PMIX_FABRIC_COORDINATES": {"type": "PMIX_COORD", "value": coordinates},
                               "PMIX_FABRIC_NUM_DEVICES": {"type": "PMIX_SIZE", "value": len(devices)},
                               "PMIX_FABRIC_DEVICES": expected.queried[host]}, "launch", "launched")
        self.shows_given("PMIX_FABRIC_SWITCH", KEY["PMIX_FABRIC_SWITCH"], chapter.plain(told[KEY["PMIX_FABRIC_SWITCH"]]),
                         sorted({d["switch"] for d in devices}), "launch", "launched", kind="key")
        self.assertEqual([dict(infos)[KEY["PMIX_DEVICE_ID"]] for _, infos in chapter.plain(told[KEY["PMIX_FABRIC_DEVICES"]])],
                         [device["id"] for device in devices])

    def check_peers(self, told, host, ranks, expected):
        """The ranks on nodes at the switch of each device."""
        said = []
        for key, infos in chapter.plain(told):
            self.assertEqual(key, PEERS)
            infos = dict(infos)
            self.assertEqual(len(infos), 3)
            said.append((infos[KEY["PMIX_DEVICE_ID"]], infos[KEY["PMIX_FABRIC_SWITCH"]],
                         sorted(int(rank) for rank in infos[PEERS].split(","))))
        self.shows_given("PMIX_SWITCH_PEERS", PEERS, said, [
            (device["id"], device["switch"],
             sorted(rank for other, of in ranks.items() for rank in of
                    if device["switch"] in {d["switch"] for d in expected.of(other)}))
            for device in expected.of(host)], "launch", "launched", kind="key")

    def check_own(self, told, expected):
        """Under a key that is not the library's own."""
        if versions.OWN_KEYS:
            self.assertEqual(chapter.plain(told), expected)
        else:
            self.assertEqual(told, {"status": "NOT-FOUND"})

    def check_job(self, told, expected):
        plane = expected.planes["ib0"]
        self.check_own(told[JOB_GENERATION], expected.generation)
        groups = ";".join(f"{group['group']}:{','.join(host for host in group['hosts'] if host in self.nodes)}"
                          for group in expected.groups if set(group["hosts"]) & set(self.nodes))
        self.shows_keys(chapter.told((key, value) for key, value in told.items() if "value" in value), {
            "PMIX_FABRIC_PLANE": ["ib0"], "PMIX_FABRIC_GROUPS": groups, "PMIX_FABRIC_DIMS": plane["dims"],
            "PMIX_FABRIC_SHAPE": plane["shape"], "PMIX_FABRIC_SHAPE_STRING": "x".join(map(str, plane["shape"])),
            "PMIX_FABRIC_VENDOR": plane["vendor"], "PMIX_FABRIC_IDENTIFIER": plane["identifier"]}, "launch", "launched")


class Numbers(Case):
    """A launcher may number the nodes otherwise than the PMIx library does, which goes by their positions in a job."""

    def started(self, launcher, nodes=None, env=None, **options):
        """Every rank finds every rank's and node's place."""
        self.nodes = nodes or NODES
        for facts in self.start(launcher, env=env, nodes=self.nodes, **options):
            with self.subTest(rank=facts["rank"], nodes=nodes, **options):
                self.check(facts, self.expected)

    def setUp(self):
        super().setUp()
        self.install()
        self.expected = Expected(self.served())

    def starters(self):
        return [launcher for launcher in self.launchers if launcher.name != "srun"]

    def test_started_on_a_host_outside_the_job(self):
        for launcher in self.starters():
            self.started(launcher, at="head")

    def test_started_on_a_subset_of_the_nodes(self):
        for launcher in self.starters():
            for nodes in (NODES[1:], NODES[::2], NODES[2:]):
                for at in ("head", *NODES):
                    self.started(launcher, nodes, at=at)

    def test_with_a_rankfile(self):
        for launcher in self.starters():
            for order in itertools.permutations(NODES):
                self.started(launcher, ranks=[*order, *order])
            self.started(launcher, ranks=[NODES[2], NODES[2], NODES[0], NODES[1], NODES[1], NODES[0]], at="head")

    def test_srun_in_any_order(self):
        for launcher in Lab.slurms():
            for order in itertools.permutations(NODES):
                hosts_of = os.path.join(self.cluster.folder("hosts"), "ranks")
                lab.replace_file(hosts_of, "".join(f"{name}\n" for name in [*order, *order]))
                self.started(launcher, env={"SLURM_HOSTFILE": hosts_of}, listed=True)


class Launch(Case):
    """Each test under every launcher."""

    def test_where_nothing_is_known(self):
        """Without the component, and with it where no daemon runs: the launch goes on."""
        for install in (lambda: None, self.install):
            install()
            for launcher in self.launchers:
                with self.subTest(launcher.name):
                    for facts in self.start(launcher):
                        self.assertTrue(nothing(facts))
                        self.assertIn(facts["queries"]["host.own"]["status"], UNKNOWN[launcher.name])

    def test_every_rank_knows_every_rank_and_node(self):
        """Also with the command of docs/operations.md; in Slurm a part of a launch is done as the job's user."""
        self.install()
        expected = Expected(self.served())
        groups = {"type": "PMIX_STRING", "value": ";".join(f"{group['group']}:{','.join(group['hosts'])}" for group in expected.groups)}
        with open(os.path.join(lab.ROOT, "docs", "operations.md"), encoding="utf-8") as file:
            command = re.search(r"srun --mpi=pmix -N 2 (python3 -c '(.*)')", file.read()).group(2)
        for launcher in self.launchers:
            for facts in self.start(launcher, **({"user": "nobody"} if launcher in Lab.slurms() else {})):
                with self.subTest(launcher.name, rank=facts["rank"]):
                    self.check(facts, expected)
                    self.assertIn(facts["queries"].pop("host.own")["status"], UNKNOWN[launcher.name])
                    self.assertEqual(facts["queries"], {KEY["PMIX_FABRIC_GROUPS"]: groups})
            done = launcher.run(1, ["/usr/bin/python3", "-W", "ignore", "-c", command])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(re.findall("'value': '([^']*)'", done.stdout), ["0:node0001,node0002;1:node0017;2:node0017"] * len(NODES))

    def test_the_nodes_know_nothing_themselves(self):
        """PRRTE's first daemon makes the standard's calls: where it alone has a snapshot, all nodes' processes know the fabric."""
        starters = [launcher for launcher in self.launchers if launcher.name == "prterun"]
        if not starters:
            self.skipTest("no launcher here makes the standard's calls")
        self.addCleanup(self.cluster.remove, PNET)
        self.install()
        daemon = self.daemon()
        expected = Expected(daemon)
        self.cluster.publish(daemon, on=NODES[:1])
        for launcher in starters:
            knowing = [not nothing(facts) for facts in self.start(launcher)]
            self.assertEqual(knowing, [True] * PER_NODE + [False] * (len(knowing) - PER_NODE))
            self.cluster.install(PNET)
            for facts in self.start(launcher):
                with self.subTest(rank=facts["rank"]):
                    self.check(facts, expected)

    @staticmethod
    def exchanged(launcher, actions):
        """PRRTE 3.0 hangs in one of a few such jobs with any component or none; one that goes wrong goes wrong each time."""
        for left in reversed(range(5 if launcher.name == "prterun" and versions.PMIX[0] == 5 else 1)):
            try:
                return launcher.run(PER_NODE, [lab.program("stock_member"), *actions], timeout=20 if left else 60)
            except lab.LabError:
                if left == 0:
                    raise
        return None

    def test_what_processes_tell_each_other_is_not_disturbed(self):
        """As an MPI library's do, under keys of their own."""
        self.install()
        self.cluster.install(PNET)
        self.addCleanup(self.cluster.remove, PNET)
        self.served()
        size = PER_NODE * len(NODES)
        puts = [f"{rank}:put=mine,of {rank}" for rank in range(size)]
        for launcher in self.launchers:
            done = self.exchanged(launcher, [*puts, "commit", "fence=*,collect", *(f"get={rank},mine" for rank in range(size))])
            self.assertEqual(done.returncode, 0, done.stderr)
            with self.subTest(launcher.name):
                for rank in range(size):
                    found = re.findall(rf"(?m)^\d+ get={rank},mine: (.*)$", done.stdout)
                    self.assertEqual(found, [f"SUCCESS of {rank}"] * size)

    def test_a_snapshot_is_exchanged_and_the_daemon_is_killed(self):
        """While a job is started: whatever a process is told, it is told all of it, as of one moment."""
        self.install()
        daemon = self.served()
        moved, generations = self.renamed(), {1: Expected(daemon)}
        for launcher in self.launchers:
            job = self.job(launcher)
            before = generations[max(generations)]
            lab.replace_file(self.capture, self.whole if len(generations) % 2 == 0 else moved)
            daemon.refresh()
            after = Expected(daemon)
            self.assertNotEqual(after.of("node0002")[0]["logical"], before.of("node0002")[0]["logical"])
            generations[after.generation] = after
            job.watching()
            for rank in range(job.size):
                facts = job.lines(rank)[0]
                told = chapter.plain(facts["nodes"]["node0002"][KEY["PMIX_FABRIC_COORDINATES"]])["coord"]
                with self.subTest(launcher.name, rank=rank):
                    self.check(facts, after if told == after.of("node0002")[0]["logical"] else before)
            self.assertEqual(job.end(), 0)
        daemon.kill9()
        for launcher in self.launchers:
            for facts in self.start(launcher):
                with self.subTest(launcher.name, rank=facts["rank"]):
                    self.check(facts, after)

    def test_a_job_while_the_fabric_and_the_component_change(self):
        """Every rank gets the pair of events, in order, each once; an update shows the new generation. The component is removed
        meanwhile, which costs the next job what it knows, and replaced."""
        self.install()
        scheduler = self.mirrored()
        pulled = fabric_text.without_cables(self.whole, "leaf1", "spine1")
        for launcher in self.launchers:
            with self.subTest(launcher.name):
                job, events = self.job(launcher).watching(), []
                self.cluster.remove(COMPONENT)
                self.assertTrue(all(nothing(facts) for facts in self.start(launcher)))
                self.cluster.install(COMPONENT)  # another file, of the same name
                for text in (pulled, self.renamed(), self.whole):
                    lab.replace_file(self.capture, text)
                    generation = scheduler.refresh()["generation"]
                    events += [(PENDING, generation), (UPDATED, generation)]
                    job.wait(lambda lines: sum("event" in line for line in lines) >= len(events), "all ranks to be told")
                    for update in job.update():
                        self.assertEqual(update["status"], "SUCCESS")
                        self.assertEqual(chapter.plain(dict(update["attributes"])[GENERATION]), generation)
                self.assertEqual(job.end(), 0)
                for rank in range(job.size):
                    self.assertEqual(job.events(rank), events)
                    self.shows_events(job.events(rank), {name: [event for event in events if event[0] == name] for name in (PENDING, UPDATED)},
                                      "launched")

    def test_launches_leave_nothing(self):
        """No files, no shared memory, no processes; Slurm's daemons on the nodes take no more memory."""
        self.install()
        self.served()
        times = 300 if lab.ALL else 2
        before = None
        for turn in range(1 + times):  # the first one is to fill what is filled once
            for launcher in self.launchers:
                done = launcher.run(PER_NODE, [lab.program("stock_launch"), self.cluster.scratch(), *NODES])
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), f"launch {turn}")
            if turn == 0:
                before = self.settled()
        after = self.settled()
        self.assertEqual(after[0], before[0])
        self.assertEqual(sorted(name for name, _ in after[1].values()), sorted(name for name, _ in before[1].values()))
        for pid, (name, size) in after[1].items():
            if name == "slurmd":
                self.assertLess(size - before[1][pid][1], 512, f"kB that {name} took for {times} launches")

    def settled(self):
        """Files and processes when no job is left."""
        for slurm in Lab.slurms():
            lab.wait_for(slurm.idle, what="Slurm's nodes to be idle")
        ours = {"stock_launch", *(name for launcher in self.launchers for name in (launcher.name, launcher.on_nodes))}
        lab.wait_for(lambda: not ours & self.cluster.names_of_processes(), what="the last launch to end")
        return self.cluster.files(), self.cluster.processes()


if __name__ == "__main__":
    unittest.main()
