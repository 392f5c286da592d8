"""The PMIx server is killed again and again while tools ask, nodes deliver and the fabric changes, and nothing is lost by it.

A server that did not live for 10 s is replaced at once three times, and then after growing pauses; so it is lost eight times in a
row, and with --all 13 times eight, with one that is let live in between.
"""
import json
import os
import random
import signal
import threading
import time
import types
import unittest

import fabric_text
import hosts
import lab
import machines
import stranger

ROWS, IN_A_ROW = (13, 8) if lab.ALL else (1, 8)
TOOLS, NODES = 32, 8
GOOD_S = 10.5
PLANES = ("ib0", "storage")
BUSY = -13


class Party(threading.Thread):
    """One that is connected to the server, and connects again whenever that is gone."""

    def __init__(self, site, over):
        super().__init__(daemon=True)
        self.site, self.over, self.channel, self.connections, self.failed = site, over, None, 0, None
        self.changed = threading.Condition()  # told after each turn
        self.since = 0.0  # when it was connected last

    def run(self):
        try:
            while not self.over.is_set():
                try:
                    with stranger.tool(self.site.daemon.uri()) as self.channel:
                        self.connections, self.since = self.connections + 1, time.monotonic()
                        self.begin()
                        while not self.over.is_set():
                            self.turn()
                            self.tell_waiting()
                except (EOFError, OSError):
                    pass
                self.over.wait(0.02)
        except Exception as error:  # pylint: disable=broad-except
            self.failed = error
            self.tell_waiting()

    def tell_waiting(self):
        with self.changed:
            self.changed.notify_all()

    def wait(self, condition, what):
        """Evaluate the condition now and after each turn, until it is true or this party has failed."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.failed or condition(), lab.HUNG):
                raise lab.LabError(f"waited {lab.HUNG} s for {what}")

    def begin(self):
        """The connection is there."""

    def heard(self, data):
        """A message that is no answer."""

    def ask(self, command, *parts):
        tag = self.channel.post(stranger.item(bytes([command])) + b"".join(parts))
        while True:
            got, data = self.channel.answer()
            if got == tag:
                return data
            self.heard(data)


class Tool(Party):
    """Registers for the events, and asks for each plane again and again."""

    def __init__(self, site):
        super().__init__(site, site.over)
        self.events, self.seen, self.answers = [], {}, 0

    def begin(self):
        codes = stranger.size(2) + stranger.item(stranger.signed(stranger.UPDATED) + stranger.signed(stranger.PENDING), 2)
        if stranger.status_of(self.ask(stranger.REGEVENTS, codes, stranger.infos())) != 0:
            raise EOFError("no events")

    def heard(self, data):
        self.events.append((self.connections, *stranger.event_of(data)))

    def turn(self):
        for plane in PLANES:
            data = self.ask(stranger.FABRIC_REGISTER, stranger.infos(stranger.info("pmix.fab.plane", stranger.STRING, stranger.text(plane))))
            if stranger.status_of(data) == 0:
                self.seen[plane] = stranger.value_of(data, "pmixfab.generation")
                self.answers += 1
        self.over.wait(0.2)


class Node(threading.Thread):
    """Delivers what is another one each time; what is not acknowledged, again."""

    def __init__(self, site, number):
        super().__init__(daemon=True)
        self.site, self.number, self.name, self.version, self.failed = site, number, f"node{number:04}", 0, None
        self.random = random.Random(number)
        self.acked = None
        self.given = []  # since then, and the one that was acknowledged

    def run(self):
        try:
            while not self.site.delivered.is_set():
                self.turn()
                self.site.delivered.wait(self.random.uniform(0.5, 1.5))
        except Exception as error:  # pylint: disable=broad-except
            self.failed = error

    def turn(self):
        self.version += 1
        firmware = f"20.{self.number}.{self.version}"
        path, digest = self.site.delivery(self.name, machines.machine(self.number, host=self.name, firmware=firmware))
        self.given.append((digest, firmware))
        done = lab.run([*self.site.host.prefix(), lab.program("deliver"), "127.0.0.1:7135", f"host={self.name},file={path}"])
        code = int(done.stdout.split()[0]) if done.returncode == 0 else None
        if code == 0:
            self.acked = self.version
            self.given = self.given[-1:]
        elif code not in (None, BUSY):
            raise ValueError(f"{self.name}: refused: {done.stdout}")


class Site:
    """A scheduler, its tools and its nodes."""

    def __init__(self):
        self.over, self.delivered = threading.Event(), threading.Event()
        self.host = hosts.Host("head", network=types.SimpleNamespace(prefix=lambda: []))  # this machine's
        self.munged = hosts.Munged(self.host, "127.0.0.1")
        self.host.knows({f"node{i:04}": "127.0.0.1" for i in range(1, NODES + 1)})
        self.munged.show_on(self.host)
        text = lab.fabric("fattree2:4,2,4", "capture")
        self.captures = [text, fabric_text.slower(text, "leaf1")]
        self.dir = lab.tmpdir()
        self.capture = os.path.join(self.dir, "fabric.txt")
        lab.replace_file(self.capture, text)
        self.daemon = hosts.Fabricd(self.host, config={"fabricd": {"probe": f"file:{self.capture}", "host": "scheduler"},
                                                       "ethernet": {"storage": machines.CIDR}, "nodes": {"listen": "127.0.0.1"}})
        self.nodes = [Node(self, i) for i in range(1, NODES + 1)]
        self.tools = [Tool(self) for _ in range(TOOLS)]
        self.kills, self.changes = 0, 0
        self.moments = [None, "pending", "updated"]  # before a change begins, in its middle, at its end

    def delivery(self, name, recorded):
        """A file with its bytes, and the digest of what is in it."""
        path = os.path.join(self.dir, name)
        lab.replace_file(path, json.dumps(recorded))
        with open(path + ".bytes", "wb") as out:
            made = lab.run([lab.program("report_tool"), path], stdout=out)
        digest = lab.run([lab.program("report_tool"), "--digest", path])
        if made.returncode != 0 or digest.returncode != 0:
            raise lab.LabError(f"no delivery: {made.stderr}{digest.stderr}")
        return path + ".bytes", digest.stdout.strip()

    # -- what happens to it

    def change(self):
        self.changes += 1
        lab.replace_file(self.capture, self.captures[self.changes % 2])
        return self.daemon.ask("refresh")

    def row(self):
        for _ in range(IN_A_ROW):
            server, events = lab.Held(self.daemon.pmix_pid()), self.daemon.until("pending", after=-1)["count"]
            asked = self.change()
            moment = self.moments[self.kills % len(self.moments)]
            if moment is not None:
                self.daemon.until(moment, after=events)  # as many of the one as of the other
            server.signal(signal.SIGKILL)
            self.kills, killed = self.kills + 1, time.monotonic()
            self.answered(asked)
            self.answered(self.change())  # while the next one begins
            self.daemon.replaced(self.kills)
        for tool in self.tools:
            tool.wait(lambda tool=tool: tool.since > killed, "a tool to be back")

    def answered(self, asked):
        answer = self.daemon.answer(asked)
        if not answer["ok"]:
            raise lab.LabError(f"refresh: {answer}")

    def run(self):
        for row in range(ROWS):
            if row > 0:
                time.sleep(GOOD_S)  # a server that has lived for so long is replaced at once
            self.row()

    def stop(self):
        self.over.set()
        self.delivered.set()
        for one in (*self.nodes, *self.tools):
            if one.is_alive():
                one.join(lab.HUNG)
        if self.daemon.alive():
            self.daemon.stop()
        self.munged.stop()
        self.host.stop()


class Load(unittest.TestCase):
    def test_killed_under_load(self):
        hosts.need()
        lab.require("munge", "munged")
        site = Site()
        self.addCleanup(site.stop)
        for one in (*site.nodes, *site.tools):
            one.start()
        for tool in site.tools:
            tool.wait(lambda tool=tool: tool.seen.keys() == set(PLANES), "a tool to be answered")
        site.run()
        self.settle(site)
        self.check_deliveries(site)
        self.check_events(site)
        self.assertEqual(site.kills, ROWS * IN_A_ROW)
        self.assertGreaterEqual(site.daemon.status()["generation"] - 1, 2 * site.kills)

    def settle(self, site):
        """Nodes end; then every tool that has connected again sees the last generation of every plane."""
        site.delivered.set()
        for node in site.nodes:
            node.join(lab.HUNG)
            self.assertIsNone(node.failed)
        site.daemon.refresh()
        planes = {plane["name"]: plane["generation"] for plane in site.daemon.ctl_json("planes")}
        for tool in site.tools:
            tool.wait(lambda tool=tool: tool.seen == planes, f"{planes} at a tool")
        self.assertEqual([tool.failed for tool in site.tools], [None] * TOOLS)
        self.assertGreater(min(tool.connections for tool in site.tools), ROWS)
        status = site.daemon.status()
        self.assertEqual((status["pid"], status["pmix"]["replaced"]), (site.daemon.process.pid, site.kills))

    def check_deliveries(self, site):
        """Of each host what was acknowledged last is held and published, or what it delivered since."""
        held = {node["host"]: node["digest"] for node in site.daemon.control("nodes")["nodes"]}
        devices = {device["host"]: device["firmware"] for device in site.daemon.ctl_json("devices") if device["plane"] == "ib0"}
        self.assertEqual([node.name for node in site.nodes if node.acked is None], [])
        for node in site.nodes:
            self.assertIn((held[node.name], devices[node.name]), node.given)

    def check_events(self, site):
        """Of each plane one generation after the other, PENDING before UPDATED, each once. A server that begins during a
        publication says the second half only."""
        for tool in site.tools:
            said, last = set(), {}
            for connection, code, index, generation in tool.events:
                self.assertNotIn((code, index, generation), said, tool.events)
                said.add((code, index, generation))
                before = last.get(index, (0, stranger.UPDATED, 0))
                self.assertGreaterEqual(generation, before[2], tool.events)
                if connection == before[0] and before[1] == stranger.PENDING:
                    self.assertEqual((code, generation), (stranger.UPDATED, before[2]), tool.events)
                last[index] = (connection, code, generation)
        self.assertGreater(sum(len(tool.events) for tool in site.tools), TOOLS)


if __name__ == "__main__":
    unittest.main()
