"""Endpoints: numbers of a plane that the starter of a job gets from fabricd, and nobody else while the job has them."""
import collections
import contextlib
import fcntl
import json
import os
import pwd
import re
import shutil
import sqlite3
import struct
import subprocess
import termios
import unittest

import conforms
import lab
import news
import test_pnet
import versions

ENDPT = "pmix.fab.endpt"

# A starter: it asks for what its lines say, and says what it was answered. {"op": ...} goes to the socket as it is.
STARTER = """
import socket, sys
for line in sys.stdin:
    try:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(sys.argv[1])
            caller.sendall(line.encode())
            print(caller.makefile().readline().strip() or "{}", flush=True)
    except OSError:
        print("{}", flush=True)
"""


class Starter:
    def __init__(self, daemon, user=None):
        account = pwd.getpwnam(user) if user else None
        options = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
        self.process = subprocess.Popen(["/usr/bin/python3", "-c", STARTER, os.path.join(daemon.rundir, "control.sock")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/", **options)

    @property
    def pid(self):
        return self.process.pid

    def say(self, **request):
        self.process.stdin.write(json.dumps(dict(request, op="endpoints")) + "\n")
        self.process.stdin.flush()

    def hear(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, **request):
        self.say(**request)
        return self.hear()

    def take(self, count, job="job", planes=("ib0",)):
        """[first, last] of the first plane."""
        answer = self.ask(take=count, job=job, planes=list(planes))
        return [row[1:] for row in answer["endpoints"]] if answer.get("ok") else answer.get("error")

    def end(self):
        """Its end is an event of fabricd's before the next request is."""
        self.process.kill()
        self.process.communicate()


class Case(conforms.Shows):
    pools = {"ib0": "1000-1099"}

    def setUp(self):
        self.capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(self.capture, lab.fabric("fattree2:4,2,4", "capture"))
        self.sections = {"fabricd": {"probe": f"file:{self.capture}"}, "endpoints": {"quota": "10"}, "endpoints.pools": self.pools}
        self.daemon = lab.Fabricd(config=self.sections)
        self.addCleanup(self.daemon.stop)

    def starter(self, user=None):
        starter = Starter(self.daemon, user)
        self.addCleanup(starter.end)
        return starter

    def rows(self):
        return self.daemon.control("endpoints")["endpoints"]

    def handed_out(self):
        return [[row["first"], row["last"], row["job"], row["pid"]] for row in self.rows()]


class Pool(Case):
    """What the control socket answers. Which numbers are next, quotas and ends of starters: test/unit/fabricd/endpoints."""

    def test_a_job_has_them_until_it_ends(self):
        one, other = self.starter(), self.starter()
        self.assertEqual(one.take(4), [[1000, 1003]])
        self.assertEqual(one.take(4), [[1000, 1003]])  # it has them
        self.assertEqual(one.take(5), -6)
        self.assertEqual(other.take(2), [[1004, 1005]])
        self.assertEqual(self.handed_out(), [[1000, 1003, "job", one.pid], [1004, 1005, "job", other.pid]])
        self.assertTrue(one.ask(give_back=True, job="job")["ok"])
        self.assertEqual(one.ask(give_back=True, job="job")["error"], -4)
        answer = other.ask(take=99, job="j", planes=["ib0"])
        self.assertEqual(answer["error"], -7)
        self.assertIn("plane ib0 has only 98 of 99 requested endpoints left", answer["message"])
        self.assertEqual(other.take(1, "more", ["roce"]), -4)
        for request in ({"take": 0}, {"take": -1}, {"take": "many"}, {"take": 1 << 40}, {"take": 1, "planes": []},
                        {"take": 1, "planes": ["ib0", 7]}, {"take": 1, "planes": ["ib0"] * 33}, {"take": 1, "planes": "ib0"},
                        {"take": 1, "job": ""}, {"take": 1, "job": 3}, {"take": 1, "job": "x" * 1025},
                        {"give_back": True, "pid": "x"}, {"give_back": True, "pid": 0}):
            self.assertEqual(one.ask(**dict({"job": "j", "planes": ["ib0"]}, **request))["error"], -5, request)
        other.end()
        self.assertEqual(self.rows(), [])

    def test_who_hangs_up_gets_nothing(self):
        """A starter whose time was over while fabricd did not answer, and one whose time was over while it waited for the disk (here for
        the store's lock)."""
        self.daemon.freeze()
        self.daemon.ask("endpoints", take=3, job="j", planes=["ib0"]).close()
        self.daemon.thaw()
        self.assertEqual(self.rows(), [])
        with contextlib.closing(sqlite3.connect(self.daemon.store, isolation_level=None)) as store:
            store.execute("BEGIN IMMEDIATE")
            channel = self.daemon.ask("endpoints", take=3, job="j", planes=["ib0"])

            def unread():
                return struct.unpack("i", fcntl.ioctl(channel, termios.TIOCOUTQ, b"\0" * 4))[0]
            lab.wait_for(lambda: unread() == 0, what="fabricd to read the request")
            channel.close()
            store.execute("ROLLBACK")
        self.assertEqual(self.rows(), [])

    def test_pages(self):
        one = self.starter()
        self.sections["endpoints.pools"] = {"ib0": "1-100000", "other": "1-100000"}
        self.daemon.configure(self.sections)
        self.assertTrue(self.daemon.control("reload")["ok"])
        for n in range(501):
            one.ask(take=2, job=f"j{n}", planes=["ib0", "other"])
        rows = self.rows()
        self.assertEqual(len({(row["plane"], row["first"]) for row in rows}), 1002)
        self.assertEqual(len(rows), 1002)
        self.assertEqual(self.daemon.page("endpoints", next="x")["endpoints"], rows[:1000])

    def test_settings(self):
        for sections, line in (({"endpoints.pools": {"ib0": "20-10"}}, "the lower one first"),
                               ({"endpoints.pools": {"ib0": "0-10"}}, "numbers from 1"),
                               ({"endpoints.pools": {"ib0": "10"}}, "give two numbers"),
                               ({"endpoints.pools": {"ib0": "1-5x"}}, "give two numbers"),
                               ({"endpoints.pools": {"ib0": "1-99999999999"}}, "numbers from 1"),
                               ({"ethernet": {"roce": "10.0.0.0/8"}, "endpoints.pools": {"roce": "60000-70000"}}, "ports")):
            daemon = lab.Fabricd(config=sections, start=False)
            done = lab.run(daemon.command("--check-config"))
            self.assertEqual(done.returncode, 2, sections)
            self.assertIn(line, done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_users(self):
        """A user has a quota, may not ask too often, and gives back nothing of another's; an operator may."""
        one, other, root = self.starter("nobody"), self.starter("nobody"), self.starter()
        self.assertEqual(one.take(6), [[1000, 1005]])
        answer = other.ask(take=5, job="j", planes=["ib0"])
        self.assertEqual(answer["error"], -7)
        self.assertIn("has 6 and requests 5 more: its quota is 10", answer["message"])
        self.assertEqual(root.take(20), [[1006, 1025]])
        self.assertEqual(other.ask(give_back=True, job="job")["error"], -4)  # another's
        self.assertEqual(other.ask(give_back=True, job="job", pid=one.pid)["error"], -14)
        shown = self.daemon.ctl("endpoints")
        self.assertRegex(shown.stdout, rf"(?m)^ib0 +1000 +1005 +job +\d+ +{one.pid} +\d{{4}}-")
        self.assertEqual(self.daemon.ctl_json("endpoints")[0]["job"], "job")
        self.assertEqual(self.daemon.ctl("endpoints", "--free", "job", str(one.pid), user="nobody").returncode, 1)
        done = self.daemon.ctl("endpoints", "--free", "job", str(one.pid))
        self.assertEqual((done.returncode, done.stdout), (0, f"the endpoints of job job of process {one.pid} are released\n"))
        self.assertIn(f"endpoints of job job of process {one.pid} are freed, requested by uid 0", self.daemon.log())
        for words in (["job"], ["--free"], ["--free", "job"], ["--free", "job", "x"]):
            self.assertEqual(self.daemon.ctl("endpoints", *words).returncode, 2, words)
        self.assertEqual(self.daemon.ctl("endpoints", "--free", "job", "1").returncode, 1)
        root.end()
        self.assertEqual(self.daemon.ctl("endpoints").stdout, "no job has endpoints\n")
        for _ in range(200):
            one.say(give_back=True, job="none")
        self.assertEqual({one.hear()["error"] for _ in range(200)}, {-4, -13})


class Starters(Case):
    """A starter and nodes that know only the stock library."""
    nodes, ranks = "node0001,node0002,node0005", "0,3;1;2,4"
    app, register = f"nodes={nodes} ranks={ranks}", f"register j {nodes} {ranks}"

    def setUp(self):
        if not os.path.exists(test_pnet.COMPONENT):
            raise unittest.SkipTest("the component is not built: PMIx's private headers are missing")
        super().setUp()

    def start(self, here="node0001", rundir=None, **env):
        """A process that is told what to do; say() gives the answer."""
        env = test_pnet.environment(rundir or self.daemon.rundir, **env)
        program = subprocess.Popen([lab.program("stock_starter"), here], env=env, text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)

        def tell(line):
            program.stdin.write(line + "\n")
            program.stdin.flush()

        def say(line):
            tell(line)
            return program.stdout.readline().strip()
        program.tell, program.say = tell, say
        return program

    def does(self, program, *lines):
        for line in lines:
            self.assertEqual(program.say(line), "SUCCESS", line)

    def gets(self, program, *jobs):
        """What is asked for it gets."""
        for job in jobs:
            self.assertTrue(program.say(f"app {job}").startswith("SUCCESS fabricd.launch="), job)

    def endpoints(self, program, who, job="j"):
        """[number] by device, of a rank or an @node."""
        answer = program.say(f"get {job} {who} {ENDPT}")
        if not answer.startswith("{"):
            return answer
        value = json.loads(answer)["value"]
        self.assertEqual(value["of"], "PMIX_ENDPOINT")
        found = {}
        for one in value["elements"]:
            self.assertTrue(one["uuid"].startswith("fab://"), one)
            found.setdefault(one["osname"], []).append(int(one["endpt"]))
        return found


class Launch(Starters):
    def test_each_rank_has_its_own(self):
        """On each node the same numbers; of every rank at once, at every node; free at the job's end."""
        starter = self.start()
        self.gets(starter, f"j {self.app} !endpts=2 id=net")
        self.shows_given("PMIX_ALLOC_NETWORK_ENDPTS", f"app j {self.app} !endpts=2 id=net", self.handed_out(), [[1000, 1003, "j", starter.pid]],
                         "call", "in process")
        blob = os.path.join(lab.tmpdir(), "blob")
        self.does(starter, f"blob {blob}")
        for here in self.nodes.split(",") + ["elsewhere"]:
            node = self.start(here)
            self.does(node, f"keep {blob}", self.register, "local j")
            numbers = [list(self.endpoints(node, rank).values()) for rank in range(5)]
            self.shows_given("PMIX_FABRIC_ENDPT", f"get j 0 {ENDPT}", numbers,
                             [[[1000, 1001]], [[1000, 1001]], [[1000, 1001]], [[1002, 1003]], [[1002, 1003]]], "launch", "in process", kind="key")
            device, = self.daemon.ctl_json("devices", "node0002")  # of rank 1
            self.shows_structure("pmix_endpoint_t", json.loads(node.say(f"get j 1 {ENDPT}")),
                                 [{"uuid": device["id"], "osname": device["name"], "endpt": text} for text in ("1000", "1001")], "launch",
                                 "in process")
            if not versions.OWN_KEYS:
                continue
            allocation = json.loads(node.say("get j job net"))["value"]["elements"]
            self.assertEqual([(key, value["value"]) for key, value in allocation],
                             [("net", "1000-1003"), ("pmix.alloc.netplane", "ib0"), ("pmix.alloc.endpts", 2),
                              ("pmix.alloc.endpts.nd", 0)])
        self.assertEqual(starter.say("end j"), "")
        lab.wait_for(lambda: self.handed_out() == [], what="what an ended job had to be free")

    def test_of_a_node(self):
        """Before those of its ranks; also where the node's own snapshot has told the rest of it."""
        for first, own in ((1000, {}), (1005, {"PMIX_MCA_pmdl_fabricd_rundir": self.daemon.rundir})):
            node = self.start(**own)
            node.say(f"app j {self.app} endpts=1 nodendpts=3")
            self.does(node, self.register, "local j")
            for name in self.nodes.split(","):
                self.shows_given("PMIX_ALLOC_NETWORK_ENDPTS_NODE", "endpts=1 nodendpts=3", list(self.endpoints(node, f"@{name}").values()),
                                 [[first, first + 1, first + 2]], "call", "in process")
                self.assertIn("PMIX_INFO", node.say(f"get j @{name} pmix.fab.devs"))  # and what stood there stands
            self.assertEqual([list(self.endpoints(node, rank).values()) for rank in (0, 3)], [[[first + 3]], [[first + 4]]])
            node.say("end j")
            self.assertEqual(self.endpoints(node, 0), "NOT-FOUND")
            lab.wait_for(lambda: self.handed_out() == [], what="what an ended job had to be free")

    def test_a_card_is_swapped(self):
        """A node that has a snapshot of its own tells its processes of the job; what stands there is of the new card."""
        out = os.path.join(lab.tmpdir(), "out")
        node = self.start()
        node.say(f"app j {self.app} endpts=2 nodendpts=1")
        blob = os.path.join(lab.tmpdir(), "blob")
        self.does(node, f"blob {blob}", self.register, "local j")
        self.does(node, f"run j 0 {lab.plain(lab.program('stock_endpoints'))} {out}")

        def lines():
            with contextlib.suppress(OSError), open(out, encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]
            return []
        news.until_file(out, lambda: len(lines()) == 1, "the process to say what it has")
        self.daemon.control("expect", name="node0002", replace=True)
        old, new = self.swap("node0002")
        news.until_file(out, lambda: len(lines()) == 2, "the event")
        first, event = lines()
        self.assertEqual([one["endpt"] for one in first["value"]["elements"]], ["1001", "1002"])
        self.assertEqual(event["event"], "FABRIC-UPDATE-ENDPOINTS")
        told = [(key, value["value"]["elements"]) for key, value in event["infos"] if key in ("pmix.pdata", "pmix.node.arr")]
        self.assertEqual([key for key, _ in told], ["pmix.node.arr", "pmix.pdata"])  # the node, and its rank 1
        (_, host), (_, of_node) = told[0][1]
        (_, rank), (_, of_rank) = told[1][1]
        self.assertEqual((host["value"], rank["value"]), ("node0002", 1))
        self.assertEqual([(one["uuid"], one["endpt"]) for one in of_node["value"]["elements"]], [(new, "1000")])
        self.shows_events([(event["event"], one["uuid"], one["endpt"]) for one in of_rank["value"]["elements"]],
                          {"PMIX_FABRIC_UPDATE_ENDPOINTS": [("FABRIC-UPDATE-ENDPOINTS", new, text) for text in ("1001", "1002")]}, "launched")
        self.assertIn(new, node.say(f"get j 1 {ENDPT}"))
        self.assertNotIn(old, node.say(f"get j 1 {ENDPT}"))
        for own in ({}, {"PMIX_MCA_pmdl_fabricd_rundir": self.daemon.rundir}):  # a node of a job whose starter knew the old one
            later = self.start(**own)
            self.does(later, f"keep {blob}", self.register, "local j")
            if not own:
                lab.wait_for(lambda node=later: new in node.say(f"get j 1 {ENDPT}"), what="the new card")
            self.assertIn(new, later.say(f"get j 1 {ENDPT}"))
            self.assertNotIn(old, later.say(f"get j 1 {ENDPT}"))

    def swap(self, host):
        """Another card in the host; the ids of both."""
        ids = [next(row["id"] for row in self.daemon.ctl_json("devices", host))]
        with open(self.capture, encoding="utf-8") as file:
            text = file.read()
        guid = re.search(r"fab://([0-9a-f:]{19})", ids[0]).group(1).replace(":", "").lstrip("0")
        lab.replace_file(self.capture, re.sub(rf"(0x|H-|\()0*{guid}\b", lambda m: m.group(0)[:-len(guid)] + "7" + guid[1:], text))
        self.daemon.refresh()
        ids.append(next(row["id"] for row in self.daemon.ctl_json("devices", host)))
        self.assertNotEqual(*ids)
        return ids

    def test_what_is_refused(self):
        """What cannot be had, where it is required; and nobody gets a number of somebody else's."""
        starter = self.start()
        for words in ("endpts=1", f"{self.app} endpts=65537", f"nodes={self.nodes} endpts=1"):
            self.assertEqual(starter.say(f"app j {words}"), "BAD-PARAM", words)
        self.gets(starter, f"n {self.app} !endpts=0")
        self.assertEqual(self.handed_out(), [])
        self.assertEqual(starter.say(f"app j {self.app} endpts=51"), "OUT-OF-RESOURCE")  # of 100, for two ranks of a node
        self.gets(starter, f"j {self.app} endpts=50")
        self.assertEqual(starter.say(f"app k {self.app} endpts=1"), "OUT-OF-RESOURCE")
        self.assertEqual(self.handed_out(), [[1000, 1099, "j", starter.pid]])
        self.does(starter, f"register j {self.nodes} 0,3,5;1;2,4")  # more ranks on a node than were asked for
        self.assertEqual(starter.say("local j"), "BAD-PARAM")
        self.assertEqual(self.endpoints(starter, 0), "NOT-FOUND")
        starter.kill()
        starter.wait()
        self.assertEqual(self.handed_out(), [])

    def test_nobody_to_ask(self):
        """Without a pool, or without fabricd: left out, and an error where they are required."""
        self.sections["endpoints.pools"] = {"other": "1-10"}
        self.daemon.configure(self.sections)
        self.assertTrue(self.daemon.control("reload")["ok"])
        starter = self.start()
        self.gets(starter, f"j {self.app} endpts=1")
        self.assertEqual(starter.say(f"app j {self.app} !endpts=1"), "NOT-SUPPORTED")
        self.daemon.kill9()
        self.gets(starter, f"j {self.app} endpts=1")
        self.assertEqual(starter.say(f"app j {self.app} !endpts=1"), "UNREACHABLE")
        nowhere = self.start(rundir=lab.tmpdir())
        self.assertEqual(nowhere.say(f"app j {self.app} !endpts=1"), "NOT-SUPPORTED")

    def test_deadlines(self):
        """A fabricd that does not answer costs the starter its deadline, and nobody a number. One with all its connections taken hangs
        up: no job is without endpoints for that."""
        starter, patient = self.start(PMIX_MCA_pnet_fabricd_endpoints_deadline="1"), self.start()
        self.daemon.freeze()
        self.assertEqual(starter.say(f"app j {self.app} endpts=1"), "TIMEOUT")
        self.daemon.thaw()
        self.assertEqual(self.rows(), [])
        with contextlib.ExitStack() as crowd:
            turned_away = False
            while not turned_away:
                one = crowd.enter_context(self.daemon.connect())
                with contextlib.suppress(ConnectionError):
                    one.sendall(b'{"op": "endpoints"}\n')
                with contextlib.suppress(ConnectionError):
                    turned_away = not one.recv(65536)
                    continue
                turned_away = True
            self.assertEqual(starter.say(f"app j {self.app} endpts=1"), "TIMEOUT")
            patient.tell(f"app j {self.app} endpts=1")
        self.assertTrue(patient.stdout.readline().startswith("SUCCESS"))
        self.assertEqual([row["pid"] for row in self.rows()], [patient.pid])

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_asked_too_often(self):
        """A user's starter with more jobs a moment than fabricd allows gets the endpoints of each, a little later."""
        program, env = lab.readable_copy(lab.program("stock_starter"), test_pnet.environment(self.daemon.rundir))
        nobody, folder = pwd.getpwnam("nobody"), lab.tmpdir()
        shutil.copy(test_pnet.COMPONENT, folder)
        env.update(TMPDIR=lab.tmpdir(), PMIX_MCA_mca_base_component_path=f"{folder}:{test_pnet.own_components()}")
        os.chown(env["TMPDIR"], nobody.pw_uid, nobody.pw_gid)
        said = os.path.join(folder, "said")
        lab.replace_file(said, "".join(f"app j{n} {self.app} !endpts=1\nend j{n}\n" for n in range(25)))
        with open(said, encoding="utf-8") as lines:
            done = lab.run([program, "node0001"], env=env, stdin=lines, cwd="/", user=nobody.pw_uid, group=nobody.pw_gid,
                           extra_groups=[])
        self.assertEqual(re.findall("^[A-Z-]+", done.stdout, re.MULTILINE), ["SUCCESS"] * 25)
        self.assertEqual(self.rows(), [])

    def test_a_job_that_ends_while_nobody_hears_it(self):
        """What it had is free at the next call."""
        starter = self.start()
        for again in (f"app k {self.app} endpts=1", "end i"):
            for job in "ij":
                self.gets(starter, f"{job} {self.app} endpts=1")
            self.daemon.kill9()
            self.assertEqual(starter.say("end j"), "")
            self.daemon.start()
            self.assertEqual([row["job"] for row in self.rows()], ["i", "j"])
            starter.say(again)
            lab.wait_for(lambda: "j" not in [row["job"] for row in self.rows()], what="what the ended job had to be free")
            starter.say("end k")
            starter.say("end i")
            lab.wait_for(lambda: self.rows() == [], what="all to be free")


class Restarts(Case):
    def test_a_kill_and_a_restored_backup(self):
        """What living starters have stays theirs; what those had that died meanwhile is free. A backup changes nothing of it."""
        lives, dies = self.starter(), self.starter()
        dies.take(3)
        backup = os.path.join(lab.tmpdir(), "backup")
        self.assertTrue(self.daemon.control("backup", file=backup)["ok"])
        lives.take(3)
        self.daemon.kill9()
        dies.end()
        self.daemon.start()
        self.assertEqual(self.handed_out(), [[1003, 1005, "job", lives.pid]])
        self.daemon.stop()
        done = lab.run(self.daemon.command("--restore", backup))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.daemon.start()
        self.assertEqual(self.handed_out(), [[1003, 1005, "job", lives.pid]])
        lives.end()
        self.assertEqual(self.rows(), [])

    def test_killed_while_many_ask(self):
        """What was acknowledged is there afterwards, and no number is two starters'."""
        starters, had = [self.starter() for _ in range(8)], {}
        for turn in range(40 if lab.ALL else 4):
            for n, starter in enumerate(starters):
                starter.say(take=1 + (turn + n) % 3, job=f"j{turn}", planes=["ib0"])
            self.daemon.kill9()
            self.daemon.start()
            for starter in starters:
                answer = starter.hear()
                if answer.get("ok"):
                    had[starter.pid, f"j{turn}"] = [row[1:] for row in answer["endpoints"]]
            rows = self.handed_out()
            numbers = [number for first, last, _, _ in rows for number in range(first, last + 1)]
            self.assertEqual(len(numbers), len(set(numbers)))
            stored = collections.defaultdict(list)
            for first, last, job, pid in rows:
                stored[pid, job].append([first, last])
            self.assertEqual({key: stored[key] for key in had}, had)
            starters[turn % 8].end()
            had = {key: ranges for key, ranges in had.items() if key[0] != starters[turn % 8].pid}
            starters[turn % 8] = self.starter()


if __name__ == "__main__":
    unittest.main()
