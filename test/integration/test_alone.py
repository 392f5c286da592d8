"""What the stock library does by itself works the same beside fabricd, whichever of its roles a program is connected to
(stock_alone.c); and what a launcher's own server does with its processes' data, with the components in it."""
import os
import re
import unittest

import conforms
import fabric_text
import lab
import test_host
import test_launch_host
import test_node
import test_pnet
import versions
from test_pnet import LEAF, SPINE

SAID = """\
store: SUCCESS
get stored: SUCCESS mine
put: SUCCESS
put local: SUCCESS
get put: SUCCESS mine
commit: SUCCESS
get committed: SUCCESS mine
get of a scope: SUCCESS mine
get_nb: SUCCESS mine
get optional: NOT-FOUND
get immediate: NOT-FOUND
get of nobody: NOT-FOUND
finalize: SUCCESS
"""
FUNCTIONS = {"PMIx_Store_internal": "store", "PMIx_Put": "put", "PMIx_Commit": "commit", "PMIx_Get": "get committed", "PMIx_Get_nb": "get_nb"}
QUALIFIERS = {"PMIX_OPTIONAL": "get optional", "PMIX_IMMEDIATE": "get immediate", "PMIX_DATA_SCOPE": "get of a scope"}


class Case(conforms.Shows):
    def says(self, argv, env, whom):
        done = lab.run([*argv], env=env)
        self.assertEqual((done.returncode, done.stdout), (0, SAID), done.stderr)
        said, expected = [dict(line.split(": ", 1) for line in text.splitlines()) for text in (done.stdout, SAID)]
        for names, kind in ((FUNCTIONS, "function"), (QUALIFIERS, "qualifier")):
            for name, line in names.items():
                self.shows_given(name, line, said[line], expected[line], "call", whom, kind=kind)


class Roles(Case):
    def test_client_of_fabric_host(self):
        host = test_host.Host(start=False)
        self.says(host.command(lab.program("stock_alone")), host.env, "client")

    def test_tool_of_fabric_host(self):
        host = test_host.Host()
        self.says([lab.program("stock_alone"), host.uri()], host.env, "tool")
        self.assertEqual(host.stop(), 0)

    def test_tool_of_the_scheduler(self):
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric("fattree2:4,2,4", "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
        self.addCleanup(daemon.stop)
        self.says([lab.program("stock_alone"), daemon.uri()], daemon.tool_env(), "tool")


class Fabric(test_pnet.Case):
    def test_a_client_of_fabric_host(self):
        """It registers the fabric, hears of a change, and updates."""
        whole = lab.fabric("fattree2:4,2,4", "capture")
        daemon = self.recorded(whole)
        host = test_host.Host(start=False, scheduler=daemon.rundir)
        client = lab.Watch(host.command(lab.program("stock_client"), "client"), host.env, talk=True)
        self.addCleanup(client.stop)
        client.wait("^connected$")
        self.shows_call("PMIx_Fabric_register", "register", client.say("register", "^register .*$").group(0),
                        re.compile("^register SUCCESS attributes [1-9].* generation 1 plane ib0$"), "client")
        client.say("watch", "^watching")
        self.put(daemon, fabric_text.without_cables(whole, LEAF, SPINE))
        client.wait("^PMIX_FABRIC_UPDATE_PENDING .*generation 2 .*\n(?:.*\n)*?PMIX_FABRIC_UPDATED .*generation 2 .*\n")
        updated = client.say("update", "^update .*$").group(0)
        for name in ("PMIx_Fabric_update", "pmix_server_fabric_fn_t"):
            self.shows_call(name, "update", updated, re.compile("^update SUCCESS .* generation 2 plane ib0$"), "client")
        client.process.stdin.close()
        self.assertEqual(client.process.wait(lab.HUNG), 0)
        self.shows_events(client.lines(), {name: [f"{name} index 1 generation 2 plane ib0"]
                                           for name in ("PMIX_FABRIC_UPDATE_PENDING", "PMIX_FABRIC_UPDATED")}, "client")


class Node(test_node.Case, Case):
    def test_tool_of_a_node(self):
        node = self.node(serve=True)
        self.says([*node.on.prefix(), lab.program("stock_alone"), node.uri()], node.tool_env(), "tool")


class Launcher(test_launch_host.Case, Case):
    """A host that is a launcher's, with the components in it."""

    def test_direct_modex(self):
        """What a process has put is asked for before it has: for another node, when the process has committed it."""
        self.make()
        done = lab.run([lab.program("stock_host"), "-m", "-1", test_launch_host.HERE, test_launch_host.NODES, test_launch_host.RANKS,
                        lab.program("stock_alone")], env=self.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        said, expected = done.stdout.splitlines(), [*SAID.splitlines(), "modex SUCCESS mine", "deregister_client SUCCESS"]
        if versions.PMIX >= (5,):  # of a scope it finds values of all scopes, in an array
            said, expected = ([line for line in lines if not line.startswith("get of a scope: SUCCESS ")] for lines in (said, expected))
        self.assertEqual(sorted(said), sorted(expected))
        said = dict(line.split(" ", 1) for line in said if line.startswith(("modex", "deregister_client")))
        self.shows_call("PMIx_server_dmodex_request", "modex", said["modex"], "SUCCESS mine", "in process")
        self.shows_call("PMIx_server_deregister_client", "deregister_client", said["deregister_client"], "SUCCESS", "in process")


if __name__ == "__main__":
    unittest.main()
