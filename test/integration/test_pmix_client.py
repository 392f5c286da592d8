"""libpmixfab in a program that is connected to fabricd: what the wire does not carry is there all the same."""
import os
import re
import unittest

import conforms
import fabric_text
import lab
import versions

NEAR, FAR = "node0001", "node0016"
INVAL, NOTFOUND, UNREACH = -1, -4, -16


class Case(conforms.Shows):
    """A recorded fabric in which one cable makes the paths from leaf1 cheap; a client that is connected."""

    def setUp(self):
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        self.fast = fabric_text.slower(lab.fabric("fattree2:4,2,4", "capture"), "spine2")
        self.pulled = fabric_text.without_cables(self.fast, "leaf1", "spine1")
        lab.replace_file(self.path, self.fast)
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}"}})
        self.addCleanup(self.daemon.stop)
        self.client = self.connect()

    def connect(self):
        client = lab.Watch([lab.program("client_tool"), self.daemon.uri()], self.daemon.tool_env(), talk=True)
        self.addCleanup(client.stop)
        client.wait("^ready$")
        return client

    def say(self, text, client=None):
        """Its answer: a line that begins with the command."""
        return (client or self.client).say(text, f"^{text.split()[0]} .*$").group(0)

    def change(self, text):
        lab.replace_file(self.path, text)
        return self.daemon.refresh()["generation"]

    def snapshot(self, plane="ib0"):
        return os.path.join(self.daemon.rundir, f"{plane}.snap")


class OnTheSameHost(Case):
    def test_open_and_list(self):
        self.assertEqual(self.say("list"), "list 0 ib0")
        here = "open 0 plane ib0 index 1 generation 1 devices 16 mapped"
        for directives in ("", " plane=ib0", " index=1", " vendor=Mellanox index=1 plane=ib0",
                           " identifier=InfiniBand-fe80000000000000"):
            self.assertEqual(self.say("open" + directives), here)
        for directives in (" plane=ib1", " plane=ib0 index=2"):
            self.assertEqual(self.say("open" + directives), f"open {NOTFOUND}")
        self.assertEqual(self.say("open plane=ib0 plane=ib1"), f"open {INVAL}")  # it contradicts itself
        self.assertEqual(self.say("nulls"), "nulls 0")
        self.assertEqual(self.client.lines()[0], f"before {UNREACH}")  # before PMIx_tool_init()
        self.client.process.stdin.close()
        self.client.wait(f"^after {UNREACH}$")  # and after PMIx_tool_finalize()
        self.assertEqual(self.client.process.wait(lab.HUNG), 0)

    def test_register_update_deregister(self):
        told = "plane ib0 index 1 generation {0} devices 16 mapped object 1 told {0} wrong 0"
        # "object": its own index; "wrong": cells of the matrix, of the attribute, that are not what one cost after the other says.
        self.shows_given("pmix_fabric_t", "register 0", self.say("register 0"), "register 0 " + told.format(1), "libpmixfab", "tool",
                         kind="structure")
        self.cost(40)
        self.assertEqual(self.say("update 0"), "update 0 same " + told.format(1))
        self.daemon.refresh()  # finds nothing new
        self.assertEqual(self.say("update 0"), "update 0 same " + told.format(1))

        self.assertEqual(self.change(self.pulled), 2)
        self.assertEqual(self.say(f"cost 0 {NEAR} {FAR}"), "cost 0 40")  # until it is updated
        self.assertEqual(self.say("update 0"), "update 0 new " + told.format(2))
        self.cost(60)
        self.assertEqual(self.daemon.ctl_json("cost", NEAR, FAR)["cost"], 60)
        self.assertEqual(self.say("update 0"), "update 0 same " + told.format(2))

        self.assertEqual(self.change(self.fast), 3)
        self.assertEqual(self.say("update 0"), "update 0 new " + told.format(3))
        self.assertEqual(self.say(f"cost 0 {NEAR} {FAR}"), "cost 0 40")
        self.assertEqual(self.say("deregister 0"), "deregister 0 info null")
        self.assertEqual(self.say("deregister 0"), f"deregister {INVAL} info null")
        self.assertEqual(self.say("update 0"), f"update {INVAL} same")

    def cost(self, cost):
        """The cell that the program finds behind the pointer of its object."""
        asked = f"cost 0 {NEAR} {FAR}"
        self.shows_given("PMIX_FABRIC_COST_MATRIX", asked, self.say(asked), f"cost 0 {cost}", "libpmixfab", "tool", kind="key")

    def test_objects_stand_alone(self):
        self.say("register 0")
        self.assertEqual(self.say("register 0"), f"register {INVAL}")  # it is registered
        self.change(self.pulled)
        self.assertIn("generation 2", self.say("register 1 plane=ib0"))
        self.assertEqual((self.say(f"cost 0 {NEAR} {FAR}"), self.say(f"cost 1 {NEAR} {FAR}")), ("cost 0 40", "cost 0 60"))
        self.say("deregister 1")
        self.assertEqual(self.say(f"cost 0 {NEAR} {FAR}"), "cost 0 40")
        self.assertIn("update 0 new", self.say("update 0"))
        self.assertEqual(self.say("stock 2"), "stock 0")
        self.assertEqual(self.say("update 2"), f"update {INVAL} same")  # none of libpmixfab's
        self.assertEqual(self.say("deregister 2"), f"deregister {INVAL} info set")
        self.assertEqual(self.say("register 3 plane=none"), f"register {NOTFOUND}")

    def test_many_rounds(self):
        answer = re.match(r"rounds 0 grown (-?\d+) kB$", self.say("rounds 200 1"))
        self.assertIsNotNone(answer)
        # A sanitizer keeps what was freed; from 5.0 on the caller's library keeps its copies of each query.
        if not lab.SANITIZE and not versions.LATER:
            self.assertLess(int(answer.group(1)), 512)
        self.assertRegex(self.say("rounds 50 4"), "^rounds 0 ")  # in several threads

    def test_a_plane_that_goes(self):
        cut = self.fast
        for spine in ("spine1", "spine2"):
            cut = fabric_text.without_cables(cut, "leaf1", spine)
        self.change(cut)
        self.assertEqual(self.say("list"), "list 0 ib0 ib1")
        self.assertEqual(self.say("register 0 plane=ib1"), "register 0 plane ib1 index 2 generation 2 devices 4 mapped "
                                                           "object 2 told 2 wrong 0")
        self.assertIn("devices 12 mapped", self.say("register 1"))  # the default plane is the larger one
        self.change(self.fast)
        self.assertRegex(self.say("update 0"), f"^update {NOTFOUND} same plane ib1 .* wrong 0$")  # it stays as it was
        self.assertIn("devices 16", self.say("update 1"))
        self.assertEqual(self.say("list"), "list 0 ib0")


class OverTheWire(Case):
    """What stands in for another host: the file that the server names is not there, or is another one."""

    def check_copied(self, generation, cost, how="copied"):
        self.assertRegex(self.say("register 0"), f"^register 0 plane ib0 index 1 generation {generation} devices 16 "
                                                 f"({how}) object 1 told {generation} wrong 0$")
        self.assertEqual(self.say(f"cost 0 {NEAR} {FAR}"), f"cost 0 {cost}")

    def test_no_file(self):
        os.rename(self.snapshot(), self.snapshot() + ".away")
        self.check_copied(1, 40)
        self.assertIn("update 0 same", self.say("update 0"))
        self.change(self.pulled)  # puts a file there again
        self.assertRegex(self.say("update 0"), "^update 0 new .* generation 2 .* mapped .* wrong 0$")
        self.assertEqual(self.say(f"cost 0 {NEAR} {FAR}"), "cost 0 60")

    def test_an_older_file(self):
        """A whole snapshot of this plane, of an older generation: what is said is of one generation."""
        other = self.snapshot() + ".old"
        os.link(self.snapshot(), other)
        self.change(self.pulled)
        os.rename(other, self.snapshot())
        found = re.fullmatch(r"register 0 plane ib0 index 1 generation ([12]) devices 16 (copied|mapped) object 1 told \1 wrong 0",
                             self.say("register 0"))
        self.assertTrue(found)
        self.assertEqual(self.say(f"cost 0 {NEAR} {FAR}"), f"cost 0 {40 if found[1] == '1' else 60}")

    def test_a_broken_file(self):
        self.change(self.pulled)
        with open(self.snapshot(), "rb") as file:
            good = file.read()
        for bad in (b"", good[:-1], bytes([good[0] ^ 1]) + good[1:]):
            self.say("deregister 0")
            with open(self.snapshot() + ".x", "wb") as file:
                file.write(bad)
            os.rename(self.snapshot() + ".x", self.snapshot())
            self.check_copied(2, 60, "copied|mapped")  # fabricd may have put it right by then


class WithoutServer(Case):
    def test_the_daemon_goes(self):
        """What is registered stays usable; what needs the daemon says so, and does not hang."""
        self.say("register 0")
        self.daemon.kill9()
        self.assertEqual(self.say(f"cost 0 {NEAR} {FAR}"), "cost 0 40")
        self.client.wait("^lost$")
        self.assertRegex(self.say("update 0"), f"^update {UNREACH} same .* wrong 0$")
        self.assertEqual(self.say("open"), f"open {UNREACH}")
        self.assertEqual(self.say("register 1"), f"register {UNREACH}")
        self.assertEqual(self.say("deregister 0"), "deregister 0 info null")
        self.client.process.stdin.close()
        self.assertEqual(self.client.process.wait(lab.HUNG), 0)

    def test_nothing_is_published_yet(self):
        self.daemon.stop()
        feed = lab.Feed()
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": feed.probe}}, start=False)
        self.daemon.start(wait=False)
        self.addCleanup(self.daemon.stop)
        self.daemon.wait_up()
        client = self.connect()
        for command in ("open", "list", "register 0"):
            self.assertEqual(self.say(command, client), f"{command.split()[0]} {NOTFOUND}")
        self.assertIn("NOT-FOUND", self.daemon.tool("query", "pmix.fab.vndr").stderr)
        feed.give(self.fast)
        self.daemon.wait_ready()
        self.assertIn("register 0 plane ib0", self.say("register 0", client))


if __name__ == "__main__":
    unittest.main()
