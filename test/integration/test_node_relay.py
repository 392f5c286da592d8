"""PMIx servers of a node, which know its run directory only. One that relays is answered from the mirrored snapshots, in its own process,
or by a server there. A scheduler with the component is served as at the scheduler's own host."""
import os
import re
import unittest

import fabric_text
import lab
import test_node
import test_pnet
import test_relay
import versions

PENDING, UPDATED = test_node.PENDING, test_node.UPDATED


class Case(test_node.Case):
    def watch(self, program, *args):
        watch = lab.Watch([*self.one.on.prefix(), lab.program(program), *args], self.one.tool_env(), talk=True)
        self.addCleanup(watch.stop)
        return watch

    def host(self, *args):
        host = self.watch("relay_host", self.one.rundir, *args)
        host.uri = host.wait("(?m)^uri (.*)$").group(1)
        host.wait("(?m)^ready$")
        return host

    def client(self, host):
        client = self.watch("stock_client", host.uri)
        client.wait("(?m)^connected$")
        return client

    def registered(self, client):
        return int(client.say("register", r"register SUCCESS attributes (?!0 )\d+ generation (\d+)").group(1))

    def ask(self, host, *args, status=0):
        done = lab.run([*self.one.on.prefix(), lab.program("stock_tool"), host.uri, *args], env=self.one.tool_env())
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def follow(self, text):
        """Published, and mirrored; the generation."""
        generation = self.change(text)
        self.one.until("generation", generation=generation)
        return generation

    def events(self, client, n):
        """The first n events, as (name, generation)."""
        client.wait(rf"(?s)(^PMIX_FABRIC_UPDATE[^\n]*generation \d+.*?){{{n}}}")
        return [(name, int(generation)) for name, generation in
                re.findall(r"^(PMIX_FABRIC_UPDATE\S*).* generation (\d+)", client.output.text, re.MULTILINE)]


class FromSnapshots(Case):
    def test_answers_and_events(self):
        self.one = self.node()
        self.equal(self.one)
        for args in ((), ("own-query",)):
            with self.subTest(args):
                host = self.host(*args)
                self.assertEqual(test_node.facts(self.ask(host, "register")),
                                 test_node.facts(self.tool(self.scheduler, "register")))
        self.assertEqual(self.ask(host, "query", "pmixfab.generation"), "pmixfab.generation uint64 1\n")
        self.assertEqual(self.ask(host, "query", "pmixfab.generation", "plane=nowhere", status=int(test_relay.ERRORS_ARRIVE)), "")
        self.assertEqual(self.ask(host, "query", "host.own"), "host.own string mine\n")
        client = self.client(host)
        client.say("watch", "watching")
        self.assertEqual(self.registered(client), 1)
        second = self.follow(fabric_text.without_cables(self.whole, "leaf1", "spine1"))
        self.assertEqual(self.events(client, 2), [(PENDING, second), (UPDATED, second)])
        self.assertIn(f"generation {second}", client.say("update", "update SUCCESS.*\n").group(0))
        self.one.kill9()  # the snapshots stay
        self.scheduler.stop()
        self.assertEqual(self.registered(client), second)

    def test_a_server_comes_and_goes(self):
        """The connection is taken when there is a URI, and what was published meanwhile is told once."""
        self.one = self.node()
        self.equal(self.one)
        host = self.host()
        client = self.client(host)
        client.say("watch", "watching")
        self.assertEqual(self.registered(client), 1)
        told = []
        for serve, text in (("yes", fabric_text.without_cables(self.whole, "leaf1", "spine1")), ("no", self.whole)):
            self.assertEqual(self.one.stop(), 0)
            with open(self.one.conf, encoding="utf-8") as file:
                conf = file.read().partition("[node]")[0]
            lab.replace_file(self.one.conf, f"{conf}[node]\nserve = {serve}\n")
            self.one.start()
            self.assertEqual(os.path.exists(self.one.uri_path()), serve == "yes")
            host.wait("relay: connected to" if serve == "yes" else "connection to the scheduler is lost")
            generation = self.follow(text)
            told += [(PENDING, generation), (UPDATED, generation)]
            self.assertEqual(self.events(client, len(told)), told)
            self.assertEqual(self.registered(client), generation)

    def test_nothing_is_there_yet(self):
        self.one = self.node(start=False)
        os.mkdir(self.one.rundir)
        host = self.host()
        client = self.client(host)
        client.say("update", "update UNREACHABLE")
        self.one.start()
        lab.wait_for(lambda: "update SUCCESS" in client.say("update", "update .*\n").group(0), what="an answer")
        self.assertEqual(self.registered(client), 1)


class Component(test_node.Case):
    """It serves a scheduler, and leaves other servers to their own `fabric` function."""

    def server(self, *args):
        server = lab.Watch([*self.one.on.prefix(), lab.program("stock_scheduler"), *args],
                           test_pnet.environment(self.one.rundir, PMIX_MCA_pnet_base_verbose="2"), talk=True)
        self.addCleanup(server.stop)
        server.wait("^uri (.*)$")
        return server

    def asked(self, server, what):
        return server.say(what, r"^(?:registered|updated) (\S+) (-?\d+) (.*)$").group(1)

    def test_of_a_scheduler_and_of_others(self):
        lab.require_component()
        self.one = self.node()
        self.equal(self.one)
        server, plain, answers = self.server(), self.server("plain"), self.server("plain", "host")
        self.assertEqual(self.asked(server, "register 0"), "SUCCESS")
        self.assertNotEqual(self.asked(plain, "register 0"), "SUCCESS")
        self.assertIn("not the scheduler", plain.output.text)
        # From 5 on the library does not ask a server's function for what the server itself registers.
        self.assertEqual(self.asked(answers, "register 0"), "SUCCESS" if versions.PMIX[0] < 5 else "NOT-FOUND")
        self.change(fabric_text.without_cables(self.whole, "leaf1", "spine1"))
        self.equal(self.one)
        self.assertEqual(self.asked(server, "update 0"), "OPERATION-SUCCEEDED")
        self.assertEqual(self.scheduler.stop(), 0)
        self.one.wait_status(lambda status: status["stale"], "to notice")
        self.assertEqual(self.asked(server, "register 1"), "SUCCESS")
        self.one.kill9()  # and the node's own daemon
        self.assertEqual(self.asked(server, "register 2"), "SUCCESS")


if __name__ == "__main__":
    unittest.main()
