"""A PMIx server that hands its clients' requests on to the scheduler's fabricd: the same answers, and always one."""
import json
import os
import re
import socket
import unittest

import conforms
import fabric_text
import hosts
import lab
import test_chapter
import versions

PENDING, UPDATED = "PMIX_FABRIC_UPDATE_PENDING", "PMIX_FABRIC_UPDATED"
FABRIC = "fattree2:4,2,16"
# Before 6 an error does not reach the client of an attached server: it is told "nothing", and not left waiting.
ERRORS_ARRIVE = versions.PMIX[0] >= 6
# Of the library itself: the answers of two servers.
MIXED_UP = versions.PMIX < (6, 1, 1)


def pair(generation, index=1, plane="ib0"):
    return [f"{name} index {index} generation {generation} plane {plane}" for name in (PENDING, UPDATED)]


def resident(process):
    """Kilobytes that a process holds."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


class Case(conforms.Shows):
    def setUp(self):
        self.dir = lab.tmpdir()
        self.capture = os.path.join(self.dir, "fabric.txt")
        self.whole = lab.fabric(FABRIC, "capture")
        self.cut = fabric_text.without_cables(self.whole, "leaf1", "spine1")
        lab.replace_file(self.capture, self.whole)
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}})
        self.addCleanup(self.stop)

    def stop(self):
        if self.daemon.alive():
            self.daemon.thaw()
            self.daemon.stop()

    def watch(self, argv, **env):
        watch = lab.Watch(argv, dict(self.daemon.tool_env(), **env), talk=True)
        self.addCleanup(watch.stop)
        return watch

    def host(self, *args, scheduler=None, **env):
        host = self.watch([lab.program("relay_host"), scheduler or self.daemon.rundir, *args], **env)
        host.uri = host.wait("(?m)^uri (.*)$").group(1)
        host.wait("(?m)^ready$")
        return host

    def client(self, host):
        client = self.watch([lab.program("stock_client"), host.uri])
        client.wait("(?m)^connected$")
        return client

    def tool(self, uri, *args, program="stock_tool"):
        return lab.run([lab.program(program), uri, *args], env=self.daemon.tool_env())

    def freeze(self):
        """The scheduler does nothing any more, and its connections stay."""
        self.daemon.freeze()

    def change(self, text):
        lab.replace_file(self.capture, text)
        return self.daemon.refresh()["generation"]

    def registered(self, client):
        return int(client.say("register", r"register SUCCESS attributes (?!0 )\d+ generation (\d+)").group(1))

    def recovered(self, client):
        """Until an update is answered again; its generation."""
        def update():
            return re.match(r"update SUCCESS .* generation (\d+)", client.say("update", "update .*\n").group(0))
        return int(lab.wait_for(update, what="the relay to find the scheduler again").group(1))


class Answers(Case):
    def test_the_same_as_direct(self):
        for args in ((), ("own-query",)):
            with self.subTest(args):
                host = self.host(*args)
                direct = self.daemon.tool("register")
                relayed = self.tool(host.uri, "register")
                self.assertEqual(relayed.returncode, 0, relayed.stderr)
                self.assertIn("pmix.fab.nverts size 64\n", relayed.stdout)
                self.assertEqual(relayed.stdout, direct.stdout)
                costs = [self.tool(uri, "show", program="fab_tool") for uri in (self.daemon.uri(), host.uri)]
                self.assertEqual([done.returncode for done in costs], [0, 0], costs[1].stderr)
                self.assertEqual(costs[1].stdout, costs[0].stdout)
                told, expected = [dict(line.split(" ", 1) for line in text.splitlines()) for text in (relayed.stdout, direct.stdout)]
                names = [f"PMIX_FABRIC_{name}" for name in ("VENDOR", "IDENTIFIER", "NUM_DEVICES", "INDEX", "GROUPS", "PLANE", "DIMS", "SHAPE",
                                                            "SHAPE_STRING")]
                self.shows_keys(told, {name: expected[conforms.string(name)] for name in names}, "register", "relay")

    def test_a_servers_own_queries_stay_its_own(self):
        host = self.host("own-query", scheduler=self.daemon.uri())
        self.assertEqual(self.tool(host.uri, "query", "host.own").stdout, "host.own string mine\n")
        done = self.tool(host.uri, "query", "pmixfab.generation", "plane=ib0")
        self.assertEqual(done.stdout, "pmixfab.generation uint64 1\n")
        done = self.tool(host.uri, "query", "pmixfab.generation", "plane=nowhere")
        self.assertEqual((done.returncode, done.stdout), (int(ERRORS_ARRIVE), ""))
        self.assertEqual("(-46)" in done.stderr, ERRORS_ARRIVE)

    def test_a_client_that_the_server_has_started(self):
        host = self.host(lab.program("stock_client"), "client")
        host.wait("(?m)^connected$")
        self.shows_call("PMIx_Fabric_register", "register", host.say("register", "^register .*$").group(0),
                        re.compile("^register SUCCESS attributes (?!0 ).* generation 1 plane ib0$"), "relay")
        host.say("watch", "watching")
        self.change(self.cut)
        host.wait(f"{UPDATED}.*\n")
        self.assertEqual([line for line in host.lines() if line.startswith("PMIX_")], pair(2))
        self.shows_events(host.lines(), dict(zip((PENDING, UPDATED), ([line] for line in pair(2)))), "relay")
        updated = host.say("update", "^update .*$").group(0)
        for name in ("PMIx_Fabric_update", "pmix_server_fabric_fn_t"):
            self.shows_call(name, "update", updated, re.compile("^update SUCCESS .* generation 2 plane ib0$"), "relay")
        host.process.stdin.close()
        self.assertEqual(host.process.wait(lab.HUNG), 0)

    def test_the_lines_of_the_documentation(self):
        with open(os.path.join(lab.HERE, "relay_host.c"), encoding="utf-8") as file:
            added = [line.split("/* relay */")[0].strip() for line in file if "/* relay */" in line]
        with open(os.path.join(lab.ROOT, "docs", "relay.md"), encoding="utf-8") as file:
            block = re.search(r"```c\n(.*?)```", file.read(), re.DOTALL).group(1)
        shown = [line.strip() for line in block.splitlines() if line.strip() and not line.strip().startswith("/*")]
        self.assertEqual(shown, added)
        self.assertLessEqual(len(shown), 10)


class Jobs(Case):
    def test_launch_information(self):
        """A job of a server that has no run directory knows at its start what a job under the component knows."""
        coord, peers, nearest = "pmix.fab.coord", "pmix.speers", "fabricd.nearest"
        devices = {device["host"]: device for device in self.daemon.ctl_json("devices")}
        for args in ((), ("own-query",)):
            with self.subTest(args):
                out = lab.tmpdir()
                host = self.watch([lab.program("relay_host"), self.daemon.uri(), *args, "job", lab.program("stock_launch"),
                                   out, "node0001", "node0002"])
                self.assertEqual(host.process.wait(lab.HUNG), 0, host.output.text)
                with open(os.path.join(out, "0"), encoding="utf-8") as file:
                    told = json.loads(file.readline())
                self.assertEqual(told["job"]["fabricd.generation"].get("value"), 1 if versions.OWN_KEYS else None)
                self.shows_keys(told["job"], {"PMIX_FABRIC_GROUPS": {"type": "PMIX_STRING", "value": "0:node0001,node0002"}}, "launch", "relay")
                for rank, name in enumerate(("node0001", "node0002", "node0001")):
                    for facts in (told["ranks"][rank], told["nodes"][name]):
                        coordinates = {"view": 1, "coord": devices[name]["logical"]}
                        self.shows_keys(facts, {"PMIX_FABRIC_COORDINATES": {"type": "PMIX_COORD", "value": coordinates}}, "launch", "relay")
                        self.shows_structure("pmix_coord_t", facts[coord], coordinates, "launch", "relay")
                        ids = [dict(infos)["pmix.dev.id"] for _, infos in test_chapter.plain(facts["pmix.fab.devs"])]
                        self.shows_given("PMIX_FABRIC_DEVICES", "pmix.fab.devs", ids, [devices[name]["id"]], "launch", "relay", kind="key")
                    near = [dict(infos)[peers] for _, infos in test_chapter.plain(told["ranks"][rank][peers])]
                    self.shows_given("PMIX_SWITCH_PEERS", peers, near, ["0,1,2"], "launch", "relay", kind="key")
                    self.assertEqual("value" in told["ranks"][rank][nearest], name == "node0001" and versions.OWN_KEYS)


class Changes(Case):
    def events(self, watch):
        return [line for line in watch.lines() if line.startswith("PMIX_")]

    def test_a_pair_for_each_change(self):
        """One change is published while the scheduler is away; one that comes back as it was is no change."""
        host = self.host()
        clients = [self.client(host) for _ in range(3)]
        for client in clients:
            client.say("watch", "watching")
            self.assertEqual(self.registered(client), 1)
        self.assertEqual(self.change(self.cut), 2)
        for client in clients:
            client.wait(f"{UPDATED}.* generation 2 .*\n")
            self.assertIn("generation 2", client.say("update", "update SUCCESS.*\n").group(0))
        self.daemon.kill9()
        lab.replace_file(self.capture, self.whole)
        self.daemon.start(wait=False)
        self.daemon.wait_ready(3)
        for client in clients:
            client.wait(f"{UPDATED}.* generation 3 .*\n")
        self.daemon.kill9()
        self.daemon.start()
        self.recovered(clients[0])
        self.change(self.cut)
        for client in clients:
            client.wait(f"{UPDATED}.* generation 4 .*\n")
            self.assertEqual(self.events(client), pair(2) + pair(3) + pair(4))

    def test_planes_that_come_and_go(self):
        client = self.client(self.host())
        client.say("watch", "watching")
        self.assertEqual(self.registered(client), 1)
        self.change(fabric_text.without_cables(self.cut, "leaf1", "spine2"))
        client.wait(f"{UPDATED}.*\n{UPDATED}.*\n")
        self.assertEqual(self.events(client), [pair(2)[0], pair(2, 2, "ib1")[0], pair(2)[1], pair(2, 2, "ib1")[1]])
        self.change(self.whole)
        client.wait(f"{UPDATED}.*generation 3.*\n{UPDATED}.*\n")
        self.assertEqual(sorted(self.events(client)[4:]), sorted(pair(3) + pair(3, 2, "ib1")))


class Outages(Case):
    def test_killed_and_started_again(self):
        """Requests fail meanwhile."""
        host = self.host()
        client = self.client(host)
        self.assertEqual(self.registered(client), 1)
        for generation, text in ((2, self.cut), (3, self.whole)):
            self.daemon.kill9()
            host.wait("connection to the scheduler is lost")
            client.say("update", "update UNREACHABLE")
            client.say("register", "register .* attributes 0 ")  # stock 4.2 drops the status of a register
            lab.replace_file(self.capture, text)
            self.daemon.start(wait=False)
            self.daemon.wait_ready(generation)
            self.assertEqual(self.recovered(client), generation)
        self.assertEqual(self.registered(self.client(host)), 3)

    def test_stopped_in_order_and_not_there_yet(self):
        host = self.host()
        client = self.client(host)
        self.assertEqual(self.registered(client), 1)
        self.daemon.stop()
        host.wait("connection to the scheduler is lost")
        self.assertEqual(self.registered(client), 1)  # from the snapshots that it leaves, as its URI is gone
        for name in os.listdir(self.daemon.rundir):
            if name.endswith(".snap"):
                os.unlink(os.path.join(self.daemon.rundir, name))
        later = self.client(self.host())
        later.say("update", "update UNREACHABLE")
        self.daemon.start()
        for one in (client, later):
            self.assertEqual(self.recovered(one), 1)

    def test_no_request_is_lost_that_was_under_way(self):
        client = self.client(self.host("own-query"))
        self.assertEqual(self.registered(client), 1)
        self.freeze()
        client.say("flood 200", "flood 200")
        client.say("ping", "ping SUCCESS")  # the host has got them all
        self.daemon.kill9()
        self.daemon.start()
        client.say("collect", "burst answered 200 good 200 ")

    def test_who_does_not_answer_in_time(self):
        client = self.client(self.host("deadline=500"))
        self.assertEqual(self.registered(client), 1)
        self.freeze()
        client.say("update", "update TIMEOUT")
        self.daemon.thaw()
        self.assertEqual(self.recovered(client), 1)

    def test_who_has_less_time(self):
        """PMIX_TIMEOUT, which a caller may require, is before the relay's own deadline: that is longer than a test may take."""
        host = self.host("deadline=3600000", "own-query")
        self.assertEqual(self.registered(self.client(host)), 1)
        self.freeze()
        done = self.tool(host.uri, "query", "pmix.fab.nverts", "!pmix.timeout=i:1", program="stock_chapter")
        self.assertEqual("(-24)" in done.stderr, ERRORS_ARRIVE)
        self.shows_given("PMIX_TIMEOUT", "!pmix.timeout=i:1", (done.returncode, done.stdout), (1, "") if ERRORS_ARRIVE else (0, "[]\n"),
                         "query", "relay", kind="qualifier")

    def test_the_host_ends_in_the_middle(self):
        host = self.host("own-query")
        client = self.client(host)
        self.assertEqual(self.registered(client), 1)
        self.freeze()
        client.say("flood 100", "flood 100")
        client.say("ping", "ping SUCCESS")
        host.process.stdin.close()
        self.assertEqual(host.process.wait(lab.HUNG), 0)


class Many(Case):
    def test_nothing_grows(self):
        host = self.host()
        clients = [self.client(host) for _ in range(4)]
        for client in clients:  # all at once
            client.process.stdin.write(b"burst 1000\n")
            client.process.stdin.flush()
        for client in clients:
            client.wait("burst answered 1000 good 1000 ")
        before = [resident(process) for process in (host.process, self.daemon.process)]
        for _ in range(5):
            client.say("burst 1000", "burst answered 1000 good 1000 ")
        after = [resident(process) for process in (host.process, self.daemon.process)]
        if not lab.SANITIZE:
            # Stock 4.2 itself forgets 320 bytes of each fabric request that a server's own function answers; an
            # answer that we forgot would be 7 kilobytes.
            self.assertLess(after[0] - before[0], 4000)
            self.assertLess(after[1] - before[1], 1000)

    def test_clients_that_die_between_request_and_answer(self):
        host = self.host("own-query")
        good = self.client(host)
        self.assertEqual(self.registered(good), 1)
        self.freeze()
        for _ in range(3):
            victim = self.client(host)
            victim.say("flood 50", "flood 50")
            victim.say("ping", "ping SUCCESS")
            victim.process.kill()
            victim.process.wait()
        self.daemon.thaw()
        self.assertEqual(self.recovered(good), 1)
        good.say("burst 100", "burst answered 100 good 100 ")
        self.assertIsNone(host.process.poll())

    def test_open_questions_do_not_swallow_requests(self):
        """A client counts its requests as the server counts its questions: one of them is open all the time."""
        def ask(host, timeout):
            for _ in range(3):
                client = self.client(host)
                for _ in range(8):
                    client.say("update", "update SUCCESS", timeout=timeout)
        unrepaired = self.host(FABRICD_NO_REPAIR="1")
        if MIXED_UP:
            with self.assertRaises(lab.LabError, msg="the hole is closed: pmix/relay/relay_tags.c has had its time"):
                ask(unrepaired, 1)
        else:
            ask(unrepaired, lab.HUNG)
        ask(self.host(), lab.HUNG)


class Garbage(Case):
    def test_answers_that_make_no_sense(self):
        garbage = self.watch([lab.program("stock_garbage")])
        host = self.host(scheduler=garbage.wait("(?m)^uri (.*)$").group(1))
        client = self.client(host)
        for _ in range(30):
            answer = client.say("update", "update (.*) milliseconds .*\n").group(1)
            self.assertNotEqual(answer, "SUCCESS")
        client.say("burst 200", "burst answered 200 good 0 ")
        self.assertIsNone(host.process.poll())

    def test_places_that_are_none(self):
        with socket.socket() as listener:  # somebody else's
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            for place in (f"fabricd.0;tcp4://127.0.0.1:{listener.getsockname()[1]}", "/nonexistent", "name.0;tcp4://nobody:1",
                          "name.0;tcp4://127.0.0.1:1"):
                with self.subTest(place):
                    self.client(self.host(scheduler=place)).say("update", "update UNREACHABLE")
        for place in ("", "http://127.0.0.1"):
            done = lab.run([lab.program("relay_host"), place], env=self.daemon.tool_env())
            self.assertEqual(done.returncode, 1)


class OnAnotherHost(Case):
    """Scheduler, node, and a client on the node; nothing but a cable between the first two."""

    def setUp(self):
        hosts.need()
        self.scheduler, self.node = hosts.Host("scheduler"), hosts.Host("node")
        self.addCleanup(self.scheduler.stop)
        self.addCleanup(self.node.stop)
        self.scheduler.cable(self.node, "10.93.0.1", "10.93.0.2")
        self.guest = hosts.Host("guest", network=self.node)
        self.addCleanup(self.guest.stop)
        munged = hosts.Munged()
        self.addCleanup(munged.stop)
        for host in self.scheduler, self.node, self.guest:
            munged.show_on(host)
        self.dir = lab.tmpdir()
        self.capture = os.path.join(self.dir, "fabric.txt")
        lab.replace_file(self.capture, lab.fabric(FABRIC, "capture"))
        # A port of its own choice would be another one after each start, and nobody could tell the node.
        self.daemon = hosts.Fabricd(self.scheduler, config={"fabricd": {"probe": f"file:{self.capture}"},
                                                            "security": {"remote": "yes"}},
                                    env={"PMIX_MCA_ptl_tcp_ipv4_port": "24245"})
        self.addCleanup(self.stop)
        for host in self.node, self.guest:
            host.hide(self.daemon.dir)

    def host(self, *args, scheduler=None, **env):
        host = self.watch([*self.node.prefix(), lab.program("relay_host"), self.daemon.uri()],
                          PMIX_MCA_psec="munge", TMPDIR=self.dir)
        host.uri = host.wait("(?m)^uri (.*)$").group(1)
        host.wait("(?m)^ready$")
        return host

    def client(self, host):
        client = self.watch([*self.guest.prefix(), lab.program("stock_client"), host.uri], PMIX_MCA_psec="munge",
                            TMPDIR=self.dir)
        client.wait("(?m)^connected$")
        return client

    def test_registered_killed_started_again(self):
        host = self.host()
        client = self.client(host)
        client.say("watch", "watching")
        self.assertEqual(self.registered(client), 1)
        show = lab.run([*self.guest.prefix(), lab.program("fab_tool"), host.uri, "show"], cwd="/",
                       env=dict(self.daemon.tool_env(), PMIX_MCA_psec="munge", TMPDIR=self.dir))
        self.assertEqual(show.returncode, 0, show.stderr)
        self.assertIn("devices 64\n", show.stdout)  # the bytes have come: the file is on the other host only
        self.daemon.kill9()
        host.wait("connection to the scheduler is lost")
        client.say("update", "update UNREACHABLE")
        lab.replace_file(self.capture, fabric_text.without_cables(lab.fabric(FABRIC, "capture"), "leaf1", "spine1"))
        self.daemon.start(wait=False)
        self.daemon.wait_ready(2)
        self.assertEqual(self.recovered(client), 2)
        client.wait(f"{UPDATED}.* generation 2 .*\n")


if __name__ == "__main__":
    unittest.main()
