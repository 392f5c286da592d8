"""fabric-host: its programs and tools tell each other events, connect, log, and ask about its jobs."""
import os
import re
import unittest

import lab
import news
import test_host
from test_host import OK, Host
from test_host_jobs import BY_SIGNAL, END, member

ALL_OF_THEM = ("local", "namespace", "session", "global")


class Events(test_host.Case):
    def heard(self, n, *actions):
        """What each of n members had heard when all had told theirs: what is told comes before the fence after it."""
        found = self.members(n, "register=1", "fence", *actions, "fence", "events=0")
        return [found[rank, "events=0"].removeprefix(OK).split() for rank in range(n)]

    def test_ranges(self):
        """Each in its order, to whom it is for."""
        told = [f"1:{reach}:1" for reach in ALL_OF_THEM * 4]
        self.assertEqual(self.heard(3, *(f"1:notify=1,{reach}" for reach in (*ALL_OF_THEM * 4, "proc"))), [told, [*told, "1:proc:1"], told])
        heard = self.heard(3, "1:notify=1,custom,0+2")
        for name in ("PMIx_Register_event_handler", "PMIx_Notify_event", "pmix_server_register_events_fn_t", "pmix_server_notify_event_fn_t"):
            self.shows_call(name, "register=1, 1:notify=1,custom,0+2", heard, [["1:custom:1"], [], ["1:custom:1"]], "client")
        self.shows_given("PMIX_EVENT_CUSTOM_RANGE", "1:notify=1,custom,0+2", [bool(texts) for texts in heard], [True, False, True], "call",
                         "client")

    def test_who_has_not_asked_for_it_does_not_hear_it(self):
        heard = self.heard(2, "0:notify=2,session", "1:deregister", "fence", "0:notify_nb=1,session")
        self.shows_call("PMIx_Deregister_event_handler", "1:deregister", heard, [["1:session:0"], []], "client")

    def test_between_namespaces(self):
        """What is for a namespace does not leave it; what comes after is heard."""
        host = Host()
        self.addCleanup(host.stop)
        ready = os.path.join(host.dir, "ready")
        for number, reach in enumerate(("local", "session", "global")): # a newcomer is told what was told before it
            listener = host.start_tool(f"register={number}", f"touch={ready}", "events=1", name="listener")
            news.until_file(ready, lambda: os.path.exists(ready), "the listener to have registered")
            os.unlink(ready)
            done = host.tool(*(f"notify={number},{one}" for one in ("namespace", "proc", reach)), name="teller")
            self.assertEqual(done.returncode, 0, done.stderr)
            out, _ = listener.communicate(timeout=lab.HUNG)
            self.shows_call("PMIx_Notify_event", f"notify={number},{reach}", test_host.said(out).get((-1, "events=1")),
                            f"{OK} {number}:{reach}:0", "tool")


class Connect(test_host.Case):
    def test_within_a_job(self):
        found = self.members(3, "0+1:connect=0+1", "0+1:fence=0+1", "0+1:disconnect=0+1", "connect_nb=*", "disconnect_nb=*")
        for action in ("connect=0+1", "disconnect=0+1"):
            self.assertEqual([found[rank, action] for rank in (0, 1)], [OK] * 2)
        for action in ("connect_nb=*", "disconnect_nb=*"):
            self.all_said(found, 3, action, OK)
        for name, action in (("PMIx_Connect", "connect=0+1"), ("PMIx_Disconnect", "disconnect=0+1"), ("PMIx_Connect_nb", "connect_nb=*"),
                             ("PMIx_Disconnect_nb", "disconnect_nb=*")):
            self.said_shows(found, (0, action), OK, name)

    def test_with_the_one_who_spawned(self):
        both = "parent/0+self/*"
        child = member(f"connect={both}", f"fence={both}", f"disconnect={both}")
        mine = "self/0+child/*"
        found = self.members(2, "0:listen", f"0:spawn=-,2,-,{child}", f"0:connect={mine}", "0:get=child/*,pmix.job.size",
                             f"0:fence={mine}", f"0:disconnect={mine}", f"0:hear={END},child", f"0:connect={mine},1")
        for action in ("connect", "fence", "disconnect"):
            self.assertEqual(found[0, f"{action}={mine}"], OK)
            self.assertEqual([found[rank, f"{action}={both}"] for rank in (0, 1)], [OK] * 2)
        self.assertEqual(found[0, "get=child/*,pmix.job.size"], f"{OK} 2")
        # They have ended: the library knows them still, or waits for them to come.
        self.assertIn(found[0, f"connect={mine},1"], ("PARTIAL SUCCESS", "TIMEOUT"))

    def test_who_does_not_come(self):
        found = self.members(2, "0:connect=*,1", "fence", "connect=*")
        self.assertEqual(found[0, "connect=*,1"], "TIMEOUT")
        self.all_said(found, 2, "connect=*", OK)
        found = self.members(3, "fence", "2:kill=9", "connect=*", "0+1:connect=0+1", args=("--recoverable",), status=128 + 9)
        self.assertEqual([found[rank, "connect=0+1"] for rank in (0, 1)], [OK] * 2, found)

    def test_who_dies_when_another_is_gone(self):
        """The library asks the host then, and forgets who waits unless it answers."""
        for call in ("connect=*", "disconnect=*", "fence=*"):
            found = self.members(3, "0:listen", "fence", "2:kill=9", f"0:hear={BY_SIGNAL}", "0:touch=ready", f"0:{call}",
                                 "1:await=ready", "1:kill=9", args=("--recoverable",), status=128 + 9)
            function = {"fence=*": "fencenb"}.get(call, call.removesuffix("=*"))
            self.said_shows(found, (0, call), "PARTIAL SUCCESS", f"pmix_server_{function}_fn_t")


class Log(test_host.Case):
    def written(self, *actions, args=()):
        done = Host(start=False).run(1, *actions, args=args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return test_host.said(done.stdout), done

    def test_where_it_goes(self):
        found, done = self.written("log=stdout,to out", "log=stderr,to err", "log_nb=stdout+stderr,to both",
                                   "log=stdout+stderr,to one,once", "log=jrec,x", "log=stdout+jrec,to half")
        self.assertEqual(list(found.values()), [OK] * 4 + ["NOT-SUPPORTED", "PARTIAL SUCCESS"])
        lines = [[line for line in text.splitlines() if line.startswith("to ")] for text in (done.stdout, done.stderr)]
        self.assertEqual(lines, [["to out", "to both", "to one", "to half"], ["to err", "to both"]])
        for name, asked, text, expected, kind in (
                ("PMIx_Log", "log=stdout,to out", "to out", [1, 0], "function"),
                ("pmix_server_log_fn_t", "log=stdout,to out", "to out", [1, 0], "function"),
                ("PMIX_LOG_STDOUT", "log=stdout,to out", "to out", [1, 0], "directive"),
                ("PMIX_LOG_STDERR", "log=stderr,to err", "to err", [0, 1], "directive"),
                ("PMIx_Log_nb", "log_nb=stdout+stderr,to both", "to both", [1, 1], "function"),
                ("PMIX_LOG_ONCE", "log=stdout+stderr,to one,once", "to one", [1, 0], "directive")):
            self.shows_given(name, asked, [of.count(text) for of in lines], expected, "call", "client", kind=kind)

    def test_tags_and_times(self):
        _, done = self.written("log=stderr,text,tag", "log=stderr,later,tsout+gtstmp", args=("--tag-output",))
        self.shows_given("PMIX_LOG_TAG_OUTPUT", "log=stderr,text,tag", done.stderr,
                         re.compile(r"(?m)^\[fabricd\.host\.[^,]*@1,0\]<stderr>: text$"), "call", "client")
        self.shows_given("PMIX_LOG_TIMESTAMP_OUTPUT", "log=stderr,later,tsout+gtstmp", done.stderr,
                         re.compile(r"(?m)\d\d:\d\d:\d\d later$"), "call", "client")


class Questions(test_host.Case):
    def test_jobs(self):
        found = self.members(2, "query=pmix.qry.ns", "query=pmix.job.size,self", "query=pmix.local.size,self",
                             "query=pmix.qry.jst,self", "pid", "fence", "query=pmix.qry.ptable,self",
                             "query=pmix.qry.lptable,self", "get=*,pmix.nspace", "fence=*,plain")
        self.all_said(found, 2, "query=pmix.qry.ns", found[0, "get=*,pmix.nspace"])
        self.all_said(found, 2, "query=pmix.job.size,self", f"{OK} 2")
        self.all_said(found, 2, "query=pmix.local.size,self", f"{OK} 2")
        self.all_said(found, 2, "query=pmix.qry.jst,self", f"{OK} {OK}")
        pids = [found[rank, "pid"].split()[1] for rank in (0, 1)]
        table = " ".join(f"{rank}/{pids[rank]}/stock_member/PROC HAS CONNECTED TO LOCAL PMIX SERVER" for rank in (0, 1))
        for which in ("ptable", "lptable"):
            self.all_said(found, 2, f"query=pmix.qry.{which},self", f"{OK} {table}")
        for name, action, what in (
                ("PMIX_QUERY_NAMESPACES", "query=pmix.qry.ns", found[0, "get=*,pmix.nspace"]), ("PMIX_JOB_SIZE", "query=pmix.job.size,self", f"{OK} 2"),
                ("PMIX_QUERY_JOB_STATUS", "query=pmix.qry.jst,self", f"{OK} {OK}"),
                ("PMIX_QUERY_PROC_TABLE", "query=pmix.qry.ptable,self", f"{OK} {table}"),
                ("PMIX_QUERY_LOCAL_PROC_TABLE", "query=pmix.qry.lptable,self", f"{OK} {table}")):
            self.said_shows(found, (1, action), what, name, kind="key", how="query")
            self.said_shows(found, (1, action), what, "PMIx_Query_info")

    def test_what_is_not_there(self):
        """A job that is not named, or not there; keys of jobs and of the fabric in one question."""
        found = self.members(1, "query=pmix.qry.ptable", "query=pmix.qry.ptable,none", "query=pmix.qry.ns+pmix.fab.grps",
                             "query=pmix.qry.ns+pmix.job.size,self")
        self.assertEqual(found[0, "query=pmix.qry.ptable"], "BAD-PARAM")
        self.assertEqual(found[0, "query=pmix.qry.ptable,none"], "NOT-FOUND")
        self.assertEqual(found[0, "query=pmix.qry.ns+pmix.fab.grps"], "NOT-FOUND")
        self.assertEqual(found[0, "query=pmix.qry.ns+pmix.job.size,self"][:7], OK)

    def test_a_tool_asks(self):
        host = Host()
        self.addCleanup(host.stop)
        self.assertEqual(test_host.said(host.tool("query=pmix.qry.ns").stdout), {(-1, "query=pmix.qry.ns"): OK})


if __name__ == "__main__":
    unittest.main()
