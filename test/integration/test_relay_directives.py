"""A client behind a relay gets the plane that it names, and its update is about the plane that it was given."""
import json
import os
import unittest

import conforms
import fabric_text
import lab
import versions

LEAF = "leaf1"


class Case(conforms.Shows):
    """A recorded fabric, one leaf of which is cut off: planes ib0 and ib1."""

    @classmethod
    def setUpClass(cls):
        cls.guard = lab.guard()
        if cls.guard is None:
            raise unittest.SkipTest("this build has no libpmix-guard.so")
        text = lab.fabric("fattree2:4,2,4", "capture")
        for spine in ("spine1", "spine2"):
            text = fabric_text.without_cables(text, LEAF, spine)
        cls.path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(cls.path, text)
        cls.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{cls.path}"}})
        cls.addClassCleanup(cls.daemon.stop)
        cls.planes = {plane["name"]: plane for plane in cls.daemon.ctl_json("planes")}

    def watch(self, argv, **env):
        watch = lab.Watch(argv, dict(self.daemon.tool_env(), **env), talk=True)
        self.addCleanup(watch.stop)
        return watch

    def host(self, *args, **env):
        host = self.watch([lab.program("relay_host"), self.daemon.rundir, *args], **env)
        host.uri = host.wait("(?m)^uri (.*)$").group(1)
        host.wait("(?m)^ready$")
        return host

    def repaired(self, *args):
        return self.host(*args, LD_PRELOAD=lab.preload(self.guard))

    def client(self, host):
        client = self.watch([lab.program("stock_client"), host.uri])
        client.wait("(?m)^connected$")
        return client

    @staticmethod
    def register(client, *directives):
        """The plane that it is given; "none" where it is refused, or given nothing."""
        return client.say(" ".join(["register", *directives]), r"^register \S+ .* plane (\S+)$").group(1)

    @staticmethod
    def update(client):
        return client.say("update", r"^update SUCCESS .* plane (\S+)$").group(1)


class Directives(Case):
    def test_what_is_named_is_given(self):
        client = self.client(self.repaired())
        for name, plane in self.planes.items():
            self.shows_given("PMIX_FABRIC_PLANE", f"plane={name}", self.register(client, f"plane={name}"), name, "register", "relay",
                             without="ib1" if name == "ib0" else "ib0")
            self.assertEqual(self.register(client, f"plane={name}", f"vendor={plane['vendor']}"), name)
            self.assertEqual(self.register(client, f"identifier={plane['identifier']}", f"plane={name}"), name)
        self.assertEqual(self.register(client), "ib0")
        # of the fabric, so of both planes
        for name, right, wrong in (("VENDOR", f"vendor={self.planes['ib0']['vendor']}", "vendor=nobody"),
                                   ("IDENTIFIER", f"identifier={self.planes['ib0']['identifier']}", "identifier=nothing")):
            got = [self.register(client, directive) for directive in (right, wrong)]
            self.shows_given(f"PMIX_FABRIC_{name}", right, got, ["ib0", "none"], "register", "relay")
        self.assertEqual(self.register(client, "plane=ib7"), "none")

    def test_the_hole_of_the_stock_library(self):
        """When this fails the library has learned it: libpmix-guard.so is needed no longer."""
        client = self.client(self.host())
        self.assertEqual(self.register(client, "plane=ib1"), "ib1" if versions.PMIX >= (7,) else "none")
        self.assertEqual(self.register(client), "ib0")


class Required(Case):
    def ask(self, host, *args):
        return lab.run([lab.program("stock_chapter"), host.uri, *args], env=self.daemon.tool_env())

    def test_heeded_or_refused(self):
        for args in ((), ("own-query",)):
            with self.subTest(args):
                self.check(self.repaired(*args))

    def check(self, host):
        for name in ("NUM_DEVICES", "GROUPS", "DIMS", "SHAPE", "SHAPE_STRING", "DEVICES"):
            name, key = f"PMIX_FABRIC_{name}", conforms.string(f"PMIX_FABRIC_{name}")
            done = self.ask(host, "register", f"!{key}=b:1")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.shows_given(name, f"!{key}=b:1", key in dict(json.loads(done.stdout)), True, "register", "relay")
        for key in ("pmix.timeout=i:5", "pmix.qry.rfsh=b:1", "pmix.get.refresh=b:1"):
            self.assertEqual(self.ask(host, "register", "!" + key).returncode, 0, key)
            self.assertEqual(self.ask(host, "query", "pmix.fab.dims", "!" + key).returncode, 0, key)
        for key in ("pmix.fab.cm=b:1", "pmix.node.info=b:1", "pmix.hname=s:node0001", "no.such=s:x"):
            for args in (("register",), ("query", "pmix.fab.dims")):
                done = self.ask(host, *args, "!" + key)
                self.assertEqual((done.returncode, done.stdout), (1, ""), (args, key))
                self.assertEqual(self.ask(host, *args, key).returncode, 0, (args, key))


class Updates(Case):
    def test_each_client_gets_its_own_plane(self):
        """Index 0 could mean any of several planes: who was given none or several gets no answer, and not another plane's."""
        host = self.repaired()
        clients = {name: self.client(host) for name in self.planes}
        self.assertEqual(sorted(clients), ["ib0", "ib1"])
        for name, client in clients.items():
            self.assertEqual(self.register(client, f"plane={name}"), name)
        self.client(host).say("update", "^update BAD-PARAM ")
        for _ in range(2):
            for name, client in clients.items():
                self.assertEqual(self.update(client), name)
        self.assertEqual(self.register(clients["ib1"]), "ib0")
        clients["ib1"].say("update", "^update BAD-PARAM ")
        self.assertEqual(self.update(clients["ib0"]), "ib0")

    def test_the_same_name_behind_two_relays(self):
        """Both servers start a client of the same name."""
        clients = {}
        for name in ("ib0", "ib1"):
            host = self.watch([lab.program("relay_host"), self.daemon.rundir, lab.program("stock_client"), "client"],
                              LD_PRELOAD=lab.preload(self.guard))
            host.wait("(?m)^connected$")
            clients[name] = host
            self.assertEqual(self.register(host, f"plane={name}"), name)
        for name, client in clients.items():
            self.assertEqual(self.update(client), name)


class Library(Case):
    def test_nothing_without_directives_changes(self):
        answers = [lab.run([lab.program("stock_tool"), host.uri, "register"], env=self.daemon.tool_env()).stdout
                   for host in (self.host(), self.repaired())]
        self.assertIn("pmix.fab.plane string ib0\n", answers[0])
        self.assertEqual(answers[0], answers[1])


if __name__ == "__main__":
    unittest.main()
