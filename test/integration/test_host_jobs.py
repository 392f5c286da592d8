"""fabric-host's jobs: programs and tools start them, hear how they end, read what they write and write what they read."""
import contextlib
import os
import re
import resource
import socket
import unittest

import lab
import news
import stranger
import test_host
from test_host import OK, Host, said

END, BY_SIGNAL, NONZERO = -145, -402, -404 # PMIX_EVENT_JOB_END, PMIX_ERR_PROC_ABORTED_BY_SIG, PMIX_ERR_EXIT_NONZERO_TERM
TRUE, SHELL = "/bin/true", "/bin/sh,-c"


def member(*actions):
    """A program to spawn, in an argument of another member's: "^" is a comma there."""
    return ",".join([lab.program("stock_member"), *(action.replace(",", "^") for action in actions)])


class Up(test_host.Case):
    """A host that is up, for a tool of it."""

    def setUp(self):
        self.host = Host()
        self.addCleanup(self.host.stop)

    def tool(self, *actions, **options):
        """What came of each of a tool's actions, in their order, and all that it wrote."""
        done = self.host.tool(*actions, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in done.stdout.splitlines() if line.startswith("-1 ")]
        self.assertEqual(len(lines), len(actions), done.stdout)
        return [line[len(f"-1 {action}: "):] for line, action in zip(lines, actions)], done

    def children(self):
        pid = self.host.process.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return file.read().split()

    def descriptors(self):
        """But for one: the watch of the fabric's run directory begins in its own time."""
        folder, found = f"/proc/{self.host.process.pid}/fd", []
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(os.path.join(folder, name)))
        return len(found) - ("anon_inode:inotify" in found)

    def resident(self):
        with open(f"/proc/{self.host.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

    @contextlib.contextmanager
    def as_before(self, grows=512):
        """What happens in between leaves neither memory (but for so many KB) nor descriptors behind."""
        before, resident = self.descriptors(), self.resident()
        yield
        lab.wait_for(lambda: self.descriptors() <= before, what="the descriptors to be as before")
        if not lab.SANITIZE:
            self.assertLess(self.resident() - resident, grows)


class Spawn(Up):
    def test_a_program_starts_others(self):
        child = member("get=self/0,pmix.parent", "get=*,pmix.parent", "get=*,pmix.spawned", "get=parent/0,left", "fence")
        found = self.members(2, "0:put=left,here", "0:commit", "fence", "0:listen", f"0:spawn=-,3,-,{child}", f"0:hear={END},child",
                             "get=*,pmix.spawned")
        spawned = found[0, f"spawn=-,3,-,{child}"]
        parent = spawned.split()[1].replace("@2", "@1")
        self.said_shows(found, (0, f"spawn=-,3,-,{child}"), f"{OK} {parent[:-1]}2", "PMIx_Spawn", "pmix_server_spawn_fn_t")
        for rank in range(3):
            self.said_shows(found, (rank, "get=self/0,pmix.parent"), f"{OK} {parent} 0", "PMIX_PARENT_ID", kind="key", how="get")
            self.assertEqual(found[rank, "get=*,pmix.parent"], f"{OK} {parent} 0")
            self.assertEqual(found[rank, "get=parent/0,left"], f"{OK} here")
            self.assertEqual(found[rank, "fence"], OK)
        self.said_shows(found, (2, "get=*,pmix.spawned"), f"{OK} true", "PMIX_SPAWNED", kind="key", how="get")
        self.assertEqual(found[0, f"hear={END},child"], f"{OK} -2 {OK} 0")

    def test_it_is_told_how_they_end(self):
        """The first that fails by itself, and the end of the whole."""
        for how, code, what, status in ((f"{SHELL},[ $PMIX_RANK = 0 ] || exit 3; sleep 1000", NONZERO, "PROC-EXIT-NONZERO-TERM", 3),
                                        (member("fence", "1:kill=9", "await=/no/such"), BY_SIGNAL, "PROC-ABORTED-BY-SIG", 137)):
            found = self.members(1, "listen", f"spawn=notify,2,-,{how}", f"hear={code}", f"hear={END}")
            self.assertEqual(found[0, f"hear={code}"], f"{OK} 1 {what} {status}")
            ends = [f"{END} {found[0, f'hear={END}']}"]
            self.shows_events(ends, {"PMIX_EVENT_JOB_END": [f"{END} {OK} 1 {what} {status}"]}, "client")
            self.shows_given("PMIX_NOTIFY_COMPLETION", f"spawn=notify,2,-,{how}", ends, [f"{END} {OK} 1 {what} {status}"], "call", "client")
        spawn = (f"spawn=recoverable,2,-,{SHELL},[ $PMIX_RANK = 1 ] || exit 3; until [ -e go ]; do :; done; "
                 f"echo '1 goes on: {OK}'")
        found = self.members(1, "listen", spawn, f"hear={NONZERO}", "touch=go", f"hear={END}")
        self.assertEqual(found[0, f"hear={END}"], f"{OK} 0 PROC-EXIT-NONZERO-TERM 3")
        self.shows_given("PMIX_JOB_RECOVERABLE", spawn, found.get((1, "goes on")), OK, "call", "client")

    def test_several_applications(self):
        one, two = member("get=self/1,pmix.appnum", "fence"), member("get=self/2,pmix.appnum", "get=*,pmix.job.napps", "fence")
        (_, spawned, end), done = self.tool("listen", f"spawn=out,2,-,{one},/,1,-,{two}", f"hear={END}")
        self.shows_call("PMIx_Spawn", "spawn", (spawned[:7], end), (OK, f"{OK} -2 {OK} 0"), "tool")
        found = said(done.stdout)
        self.assertEqual([found[rank, "fence"] for rank in range(3)], [OK] * 3, done.stdout)
        self.assertEqual([found[at] for at in ((0, "get=self/1,pmix.appnum"), (2, "get=self/2,pmix.appnum"),
                                               (2, "get=*,pmix.job.napps"))], [f"{OK} 0", f"{OK} 1", f"{OK} 2"])
        # on behalf of another
        answers, done = self.tool("listen", "spawn=-,2,-,/bin/sleep,1000", f"spawn=for:1,1,-,{member('get=self/0,pmix.parent')}",
                                  f"hear={END}")
        self.assertEqual(said(done.stdout)[0, "get=self/0,pmix.parent"], f"{OK} {answers[1].split()[1]} 1")

    def test_where_and_with_which_variables(self):
        show = f"{SHELL},echo $PMIX_RANK $A $B [$HOME] $C $D $(pwd)"
        spawn = (f"spawn=out+set:A:1+unset:HOME+set:C:c+set:D:d,1,cwd:/usr+add:A:2+add:B:2+prepend:C:first+append:D:last,{show},"
                 f"/,1,-,{show}")
        (_, spawned, _), done = self.tool("listen", spawn, f"hear={END}")
        self.assertEqual(spawned[:7], OK)
        names = ("SET_ENVAR", "ADD_ENVAR", "UNSET_ENVAR", "PREPEND_ENVAR", "APPEND_ENVAR", "WDIR")
        shown = next(line for line in done.stdout.splitlines() if line.startswith("0 ")).split()[1:]
        for name, got, expected in zip(names, shown, ("1", "2", "[]", "first/c", "d/last", "/usr"), strict=True):
            self.shows_given(f"PMIX_{name}", spawn, got, expected, "call", "tool")
        self.assertIn(f"1 1 [] c d {self.host.dir}\n", done.stdout)

    def test_what_cannot_be_started(self):
        """It is said why, and nothing is left of it."""
        plain = os.path.join(self.host.dir, "plain")
        with open(plain, "w", encoding="ascii") as file:
            file.write("no program")
        cases = [("spawn=-,2,-,/no/such", "EXECUTABLE NOT FOUND"), (f"spawn=-,1,-,{plain}", "APPLICATION NOT EXECUTABLE"),
                 (f"spawn=-,1,cwd:/no/such,{TRUE}", "WORKING DIRECTORY NOT FOUND"), ("spawn=-,1,-,", "NO EXECUTABLE SPECIFIED"),
                 (f"spawn=-,0,-,{TRUE}", "BAD-PARAM"), (f"spawn=-,4097,-,{TRUE}", "BAD-PARAM"),
                 (f"spawn=-,4000,-,{TRUE},/,100,-,{TRUE}", "INSUFFICIENT RESOURCES"), (f"spawn=odd!,1,-,{TRUE}", "NOT-SUPPORTED"),
                 (f"spawn=-,1,odd!,{TRUE}", "NOT-SUPPORTED"), ("spawn=-,2,-,/bin/sleep,1000,/,1,-,/no/such", "EXECUTABLE NOT FOUND")]
        self.tool("pid")
        before = self.descriptors()
        answers, _ = self.tool(*(spawn for spawn, _ in cases), "spawn_nb=-,1,-,/no/such", f"spawn_nb=odd,1,odd,{TRUE}")
        self.assertEqual(answers[:-1], [*(what for _, what in cases), "EXECUTABLE NOT FOUND"])
        # who does not insist may say what nobody knows
        self.shows_call("PMIx_Spawn_nb", "spawn_nb", answers[-1], re.compile(rf"^{OK} fabricd\.host\.\S+@\d+$"), "tool", without=answers[-2])
        lab.wait_for(lambda: not self.children() and self.descriptors() <= before, what="everything to be gone")

    def test_more_than_the_host_may_open(self):
        """One that cannot have all its streams is not started; the next one is."""
        pid = self.host.process.pid
        limit = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (self.descriptors() + 20, limit[1]))
        answers, _ = self.tool("listen", "spawn=-,100,-,/bin/sleep,1000", f"spawn=-,2,-,{TRUE}", f"hear={END}")
        self.assertEqual((answers[1], answers[3]), ("SYSTEM OPERATION FAILED", f"{OK} -2 {OK} 0"))
        lab.wait_for(lambda: not self.children(), what="all of it to be gone")

    def test_jobs_outlive_their_tool_and_end_with_the_host(self):
        pids = os.path.join(self.host.dir, "pids")
        self.tool(f"spawn=-,2,-,{SHELL},echo $$ >> {pids}; exec sleep 1000")
        news.until_file(pids, lambda: os.path.exists(pids) and len(self.children()) == 2, "the job to run", self.host.process)
        children = self.children()
        self.assertEqual(self.host.stop(), 0)
        self.assertFalse([pid for pid in children if os.path.exists(f"/proc/{pid}")])

    def test_many_one_after_the_other(self):
        """Memory and descriptors are as before: of programs that know nothing of the host, of its members, and of tools."""
        times = 1000 if lab.ALL else 50
        self.tool("listen", f"spawns=600,1,-,{TRUE}")  # the library keeps the latest events, and their number is bounded
        for program in (TRUE, member("put=left,here", "commit", "fence")):
            self.tool("listen", f"spawns=50,4,-,{program}")
            with self.as_before():
                self.tool("listen", f"spawns={times},4,-,{program}", timeout=600)
            self.assertFalse(self.children())
        with self.as_before(512 + 4 * times):  # it was 52 KB each; what is left is in the library
            for _ in range(times):
                self.tool("pid")

    def test_messages_in_pieces(self):
        """A header byte by byte; messages that end before their end leave nothing behind."""
        uri, asked = self.host.uri(), (stranger.QUERY, stranger.query("pmix.qry.ns"))
        with stranger.tool(uri) as channel, stranger.tool(uri) as other:
            message = stranger.item(bytes([asked[0]])) + asked[1]
            for byte in stranger.HEADER.pack(*map(socket.htonl, (0, 500, len(message), 0))):
                channel.send(bytes([byte]))
                self.assertEqual(stranger.status_of(other.ask(*asked)), 0) # the host has seen the byte
            channel.send(message)
            tag, data = channel.answer()
            self.assertEqual((tag, stranger.status_of(data)), (500, 0))

        def break_off(times):
            for nbytes in [16 << 20] * times + [1 << 31]:
                with stranger.tool(uri) as channel, contextlib.suppress(ConnectionError):
                    channel.post(bytes(1 << 20), nbytes=nbytes)
                self.tool("pid")
        break_off(5)
        resident = self.resident()
        break_off(20)
        if not lab.SANITIZE:
            self.assertLess(self.resident() - resident, 2048)


class Streams(Up):
    def test_output_goes_to_the_tool_that_spawned(self):
        """Where it gave a directive; the library writes it there, and says whose it is where it is to."""
        write = f"{SHELL},echo out; echo err >&2"
        _, done = self.tool("listen", f"spawn=tag,2,-,{write}", f"hear={END}")
        for rank in (0, 1):
            self.shows_given("PMIX_IOF_TAG_OUTPUT", f"spawn=tag,2,-,{write}", done.stdout, re.compile(rf"(?m)^\[.*,{rank}\]<stdout>: out$"), "call",
                             "tool")
            self.assertRegex(done.stderr, rf"(?m)^\[.*,{rank}\]<stderr>: err")
        _, both = self.tool("listen", f"spawn=out+err,1,-,{write}", f"hear={END}")
        _, done = self.tool("listen", f"spawn=err-,1,-,{write}", f"hear={END}")
        self.shows_given("PMIX_FWD_STDOUT", "spawn=out+err", both.stdout.count("\nout\n"), 1, "call", "tool")
        self.assertEqual((done.stdout.count("\nout\n"), done.stderr), (1, ""))
        self.shows_given("PMIX_FWD_STDERR", "spawn=err-", done.stderr, "", "call", "tool", without=both.stderr)
        self.assertEqual([line for line in self.host.log().splitlines() if line in ("out", "err")], ["err"], "what nobody takes")
        # a program's jobs write to the host, also where it asks for their output: its library would throw that away
        done = Host(start=False).run(1, "listen", f"spawn=tag+out,2,-,{SHELL},echo x", f"hear={END}")
        for rank in (0, 1):
            self.assertRegex(done.stdout, rf"(?m)^\[.*@2,{rank}\]<stdout>: x$")

    def test_a_tool_that_leaves(self):
        """Nobody reads what its job writes, and the host does not keep it."""
        go, done = (os.path.join(self.host.dir, name) for name in ("go", "done"))
        self.tool(f"spawn=out,1,-,{SHELL},until [ -e {go} ]; do sleep 0.01; done; yes | head -c 50000000; touch {done}")
        before = self.resident()
        with open(go, "w", encoding="ascii"):
            pass
        news.until_file(done, lambda: os.path.exists(done), "the job to have written all", self.host.process)
        if not lab.SANITIZE:
            self.assertLess(self.resident() - before, 16384)

    def test_a_tool_pulls(self):
        """What is written from then on, of the ranks and channels that it names; the host writes it, too."""
        write = f"{SHELL},read go; echo $PMIX_RANK out; echo $PMIX_RANK err >&2"
        (*_, end), done = self.tool("listen", f"spawn=out-+err-+stdin:*,2,-,{write}", "pull=child/1,out", "pull=child/0,err",
                                    "pull=nobody/0", "push=child/*,go", f"hear={END}")
        self.assertEqual(end, f"{OK} -2 {OK} 0")
        lines = sorted(line for line in done.stdout.splitlines() if "<" in line and not line.startswith("-1"))
        for name in ("PMIx_IOF_pull", "pmix_server_iof_fn_t", "PMIx_server_IOF_deliver"):
            self.shows_call(name, "pull=child/1,out pull=child/0,err", lines, ["0<err> 0 err", "1<out> 1 out"], "tool")
        self.assertIn("1 out\n", self.host.log())

    def test_input_goes_to_one_rank(self):
        echo = f"{SHELL},sed s/$/$PMIX_RANK/"
        for stdin, rank in (("in", 0), ("stdin:1", 1)):
            answers, done = self.tool("listen", f"spawn={stdin}+out,2,-,{echo}", f"push=child/{rank},one", "push=child/*,two",
                                      f"push=child/{1 - rank},x", f"push=child/{rank}", f"push=child/{rank},late", f"hear={END}",
                                      f"push=child/{rank},x")
            self.assertEqual(answers[2:6], [OK, OK, "NOT_AVAILABLE", OK])
            self.assertIn(answers[6], ("NOT_AVAILABLE", "NOT-FOUND"))
            self.assertEqual(answers[7:], [f"{OK} -2 {OK} 0", "NOT-FOUND"])
            lines = [line for line in done.stdout.splitlines() if not line.startswith("-1")]
            for name in ("PMIx_IOF_push", "pmix_server_stdin_fn_t"):
                self.shows_call(name, f"push=child/{rank},one", lines, [f"one{rank}", f"two{rank}"], "tool")
            self.shows_given("PMIX_STDIN_TGT" if rank else "PMIX_FWD_STDIN", f"spawn={stdin}+out", lines, [f"one{rank}", f"two{rank}"], "call",
                             "tool")

        # of one that has ended
        answers, _ = self.tool("listen", f"spawn=recoverable+stdin:0,2,-,{SHELL},[ $PMIX_RANK = 1 ] || exit 3; exec sleep 1000",
                               f"hear={NONZERO}", "push=child/0,x")
        self.assertEqual(answers[-1], "NOT_AVAILABLE")


if __name__ == "__main__":
    unittest.main()
