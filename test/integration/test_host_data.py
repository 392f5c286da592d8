"""fabric-host keeps what its programs and tools publish, for as long as they say and for whom they say."""
import contextlib
import os
import sqlite3
import unittest

import lab
import test_host
from test_host import OK, Host, said


class Published(test_host.Case):
    def setUp(self):
        self.host = Host()
        self.addCleanup(self.host.stop)

    def tool(self, *actions, name=None):
        done = self.host.tool(*actions, name=name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {action: what for (_, action), what in said(done.stdout).items()}

    def test_between_processes(self):
        found = self.members(2, "0:publish=key,value", "fence", "lookup=key", "fence", "0:unpublish=key", "fence",
                             "1:lookup=key,session", "fence", "0:publish=key,again", "0:lookup=key,session")
        self.all_said(found, 2, "lookup=key", f"{OK} value")
        self.assertEqual([found[at] for at in ((0, "unpublish=key"), (1, "lookup=key,session"), (0, "publish=key,again"))],
                         [OK, "NOT-FOUND", OK])
        self.assertEqual(found[0, "lookup=key,session"], f"{OK} again")
        for action, who, what, names in (("publish=key,value", 0, OK, ("PMIx_Publish", "pmix_server_publish_fn_t")),
                                         ("lookup=key", 1, f"{OK} value", ("PMIx_Lookup", "pmix_server_lookup_fn_t")),
                                         ("unpublish=key", 0, OK, ("PMIx_Unpublish", "pmix_server_unpublish_fn_t"))):
            self.said_shows(found, (who, action), what, *names)
        # a key twice in a range
        found = self.members(2, "0:publish=key,one", "fence", "1:publish=key,two", "1:publish=other,three,session,app,key",
                             "1:lookup=other", "1:publish=key,four,global", "lookup=key,global", "lookup=key")
        self.assertEqual(found[1, "publish=key,two"], "DUPLICATE KEY")
        self.assertEqual(found[1, "publish=other,three,session,app,key"], "DUPLICATE KEY")
        self.assertEqual(found[1, "lookup=other"], "NOT-FOUND", "all of a publish, or nothing")
        self.assertEqual(found[1, "publish=key,four,global"], OK)
        self.assertEqual(found[1, "lookup=key,global"], f"{OK} four")
        self.all_said(found, 2, "lookup=key", f"{OK} one")
        # another's
        found = self.members(2, "0:publish=key,one", "fence", "1:unpublish=key", "1:unpublish=*", "1:lookup=key", "fence",
                             "0:unpublish=*", "0:lookup=key,session")
        self.assertEqual((found[1, "unpublish=key"], found[1, "lookup=key"]), ("NO-PERMISSIONS", f"{OK} one"))
        self.assertEqual((found[0, "unpublish=*"], found[0, "lookup=key,session"]), (OK, "NOT-FOUND"))

    def test_ranges(self):
        found = self.members(2, "0:publish=a,x,proc", "0:publish=b,y,namespace", "0:publish=c,z,custom", "fence",
                             "lookup=a,proc", "lookup=b,namespace", "lookup=b")
        self.assertEqual([found[rank, "lookup=a,proc"] for rank in (0, 1)], [f"{OK} x", "NOT-FOUND"])
        self.said_shows(found, (1, "lookup=a,proc"), "NOT-FOUND", "PMIX_RANGE", kind="directive", without=found[0, "lookup=a,proc"])
        self.all_said(found, 2, "lookup=b,namespace", f"{OK} y")
        self.all_said(found, 2, "lookup=b", "NOT-FOUND")
        self.assertEqual(found[0, "publish=c,z,custom"], "NOT-SUPPORTED")
        self.assertEqual(self.tool("publish=d,w,namespace,session", name="one")["publish=d,w,namespace,session"], OK)
        self.assertEqual(self.tool("lookup=d,namespace", name="two")["lookup=d,namespace"], "NOT-FOUND")
        self.assertEqual(self.tool("lookup=d,namespace", name="one")["lookup=d,namespace"], f"{OK} w")

    def test_forms_that_do_not_block(self):
        found = self.members(2, "0:publish_nb=key,value", "fence", "lookup_nb=key", "fence", "1:unpublish_nb=key", "fence",
                             "0:unpublish_nb=key", "0:lookup_nb=key,session", "0:publish_nb=more,x", "0:lookup_nb=more,session,5")
        self.all_said(found, 2, "lookup_nb=key", f"{OK} value")
        self.assertEqual([found[at] for at in ((1, "unpublish_nb=key"), (0, "unpublish_nb=key"), (0, "lookup_nb=key,session"))],
                         ["NO-PERMISSIONS", OK, "NOT-FOUND"])
        self.assertEqual(found[0, "lookup_nb=more,session,5"], f"{OK} x")
        for name, action, looked_up, who, what in (  # each with what is found then
                ("PMIx_Publish_nb", "publish_nb=key,value", "lookup_nb=key", 1, f"{OK} value"),
                ("PMIx_Unpublish_nb", "unpublish_nb=key", "lookup_nb=key,session", 0, "NOT-FOUND")):
            self.shows_call(name, action, (found[0, action], found[who, looked_up]), (OK, what), "client")
        self.said_shows(found, (1, "lookup_nb=key"), f"{OK} value", "PMIx_Lookup_nb")

        # a range that is none must not become everybody's; a name of the standard's is not kept
        found = self.members(1, "publish=a,x,wrong", "publish=pmix.a,x", "lookup=a,wrong", "unpublish=a,wrong", "lookup=a")
        for action in ("publish=a,x,wrong", "publish=pmix.a,x", "lookup=a,wrong", "unpublish=a,wrong"):
            self.assertEqual(found[0, action], "BAD-PARAM", action)
        self.assertEqual(found[0, "lookup=a"], "NOT-FOUND")

    def test_waiting(self):
        # The longer time is set first, and the timer is one.
        found = self.members(3, "0:lookup=never,session,2", "1:lookup=never,session,1", "2:lookup=late,session,20",
                             "1:publish=late,x", "fence")
        self.assertEqual((found[0, "lookup=never,session,2"], found[1, "lookup=never,session,1"]), ("TIMEOUT", "TIMEOUT"))
        self.said_shows(found, (2, "lookup=late,session,20"), f"{OK} x", "PMIX_WAIT", kind="directive")
        self.said_shows(found, (1, "lookup=never,session,1"), "TIMEOUT", "PMIX_TIMEOUT", kind="directive")

    def test_persistence(self):
        self.tool("publish=first,a,session,first", "publish=proc,b,session,proc", "publish=app,c,session,app",
                  "publish=stays,d,session,session", name="publisher")
        lab.wait_for(lambda: self.tool("lookup=proc")["lookup=proc"] == "NOT-FOUND", what="the publisher's end to be seen")
        self.assertEqual(self.tool("lookup=first")["lookup=first"], f"{OK} a")
        self.assertEqual(self.tool("lookup=first")["lookup=first"], "NOT-FOUND")
        left = [self.tool(f"lookup={key}")[f"lookup={key}"] for key in ("first", "proc", "stays")]
        self.shows_given("PMIX_PERSISTENCE", "publish=first,a,session,first", left, ["NOT-FOUND", "NOT-FOUND", f"{OK} d"], "call", "tool")

    def test_a_restart(self):
        """In order and by SIGKILL; the owner may take it back afterwards."""
        self.tool("publish=session,a,session,session", "publish=app,b,session,app", "publish=ever,c,session,indef",
                  "publish=proc,d,session,proc", name="publisher")
        for end in (self.host.stop, self.host.kill9):
            end()
            if os.path.exists(self.host.uri_path()):
                os.unlink(self.host.uri_path())
            self.host.start()
            found = self.tool("lookup=session", "lookup=app", "lookup=ever", "lookup=proc")
            self.assertEqual([found[f"lookup={key}"] for key in ("session", "app", "ever", "proc")],
                             [f"{OK} a", f"{OK} b", f"{OK} c", "NOT-FOUND"])
        self.assertEqual(self.tool("publish=session,z")["publish=session,z"], "DUPLICATE KEY")
        self.assertEqual(self.tool("unpublish=session")["unpublish=session"], "NO-PERMISSIONS")
        self.assertEqual(self.tool("unpublish=session", name="publisher")["unpublish=session"], OK)
        self.assertEqual(self.tool("lookup=session")["lookup=session"], "NOT-FOUND")

    def test_two_of_one_name(self):
        """What lives as long as its process does, lives as long as one of that name is connected."""
        done = os.path.join(self.host.dir, "done")
        first = self.host.start_tool("publish=proc,a,session,proc", f"await={done}", name="twins")
        lab.wait_for(lambda: self.tool("lookup=proc")["lookup=proc"] == f"{OK} a", what="the value to be published")
        self.assertEqual(self.tool("lookup=proc", name="twins")["lookup=proc"], f"{OK} a")
        self.assertEqual(self.tool("lookup=proc")["lookup=proc"], f"{OK} a")
        with open(done, "w", encoding="ascii"):
            pass
        first.communicate(timeout=lab.HUNG)
        lab.wait_for(lambda: self.tool("lookup=proc")["lookup=proc"] == "NOT-FOUND", what="the other one's end to be seen")

    def test_the_store_of_another_program(self):
        foreign = os.path.join(self.host.dir, "foreign.db")
        with contextlib.closing(sqlite3.connect(foreign)) as base:
            base.execute("CREATE TABLE theirs (x)")
        host = Host(start=False, args=("--store", foreign))
        done = lab.run(host.command("true"), env=host.env)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"store {foreign}: not a store of fabric-host", done.stderr)
        with contextlib.closing(sqlite3.connect(foreign)) as base:
            self.assertEqual(base.execute("SELECT name FROM sqlite_schema").fetchall(), [("theirs",)])

    def test_a_flood(self):
        found = self.tool("flood=4194304", name="flooder")
        self.assertEqual(found["flood=4194304"], "OUT-OF-RESOURCE 63")
        lab.wait_for(lambda: self.tool("lookup=flood0")["lookup=flood0"] == "NOT-FOUND",
                     what="what the flooder published to go with it")


if __name__ == "__main__":
    unittest.main()
