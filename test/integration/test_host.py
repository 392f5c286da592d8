"""fabric-host: a user's own PMIx host starts programs, which know nothing but the stock library, and serves them.

Each line that a member writes is "RANK ACTION: STATUS VALUE" (stock_member.c).
"""
import os
import pwd
import re
import signal
import struct
import subprocess
import tempfile
import unittest

import conforms
import fabric_text
import lab
import news
import stranger

OK = "SUCCESS"


class Host:
    """fabric-host with a folder of its own; it stays up until it is stopped."""

    def __init__(self, start=True, scheduler=None, args=()):
        self.dir = lab.tmpdir()
        self.rundir = os.path.join(self.dir, "run")
        self.log_path = os.path.join(self.dir, "log")
        self.scheduler = scheduler or os.path.join(self.dir, "none")
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("PMIX_")}
        self.env.update(lab.sanitizer_env())
        self.args = args
        self.process = None
        if start:
            self.start()

    def command(self, *args):
        return [lab.program("fabric-host"), "--rundir", self.rundir, "--scheduler", self.scheduler,
                *self.args, *args]

    def start(self):
        notices = news.Notices(self.dir)
        with open(self.log_path, "ab") as log:
            self.process = lab.spawn(self.command("--foreground"), of=self.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     env=dict(self.env, NOTIFY_SOCKET=notices.path), cwd=self.dir)
        notices.follow(self.process)
        notices.wait("READY=1")

    def logged(self, text):
        """Wait until this text stands in the log."""
        news.until_file(self.log_path, lambda: text in self.log(), text, self.process)

    def uri_path(self):
        return os.path.join(self.rundir, "fabricd.uri")

    def uri(self):
        with open(self.uri_path(), encoding="ascii") as file:
            return file.read().strip()

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def stop(self):
        self.process.terminate()
        return self.process.wait(lab.HUNG)

    def kill9(self):
        self.process.kill()
        self.process.wait()

    def run(self, n, *actions, args=(), **options):
        """A host of its own for one program: its members do these actions."""
        return lab.run(self.command("-n", str(n), *args, lab.program("stock_member"), *actions), env=self.env,
                       cwd=self.dir, **options)

    def tool_command(self, *actions, name=None):
        named = ("--name", name) if name else ()
        return [lab.program("stock_member"), "--tool", self.uri(), *named, *actions]

    def tool(self, *actions, name=None, **options):
        """stock_member as a tool of the host that is up."""
        return lab.run(self.tool_command(*actions, name=name), env=self.env, cwd=self.dir, **options)

    def start_tool(self, *actions, name=None):
        return lab.spawn(self.tool_command(*actions, name=name), env=self.env, cwd=self.dir, stdout=subprocess.PIPE,
                         text=True)


def said(text):
    """{(rank, action): what came of it}"""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"(-?\d+) (.*?): ([A-Z0-9 _-]+)(?: (.*))?", line)
        if match:
            found[int(match[1]), match[2]] = (match[3] if match[4] is None else f"{match[3]} {match[4]}").rstrip()
    return found


class Case(conforms.Shows):
    def members(self, n, *actions, status=0, args=(), **options):
        """What each of n members said of each action."""
        done = Host(start=False).run(n, *actions, args=args, **options)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return said(done.stdout)

    def all_said(self, found, n, action, what):
        self.assertEqual([found.get((rank, action)) for rank in range(n)], [what] * n, found)

    def said_shows(self, found, at, what, *names, kind="function", how="call", without=None):
        """What came of a member's action, as said() has it, is what comes of these functions, directives or keys."""
        for name in names:
            self.shows_given(name, at[1], found.get(at), what, how, "client", without=without, kind=kind)


class Start(Case):
    def test_programs(self):
        """It starts copies and ends with their status; output says whose it is, and standard input is rank 0's."""
        host = Host(start=False)
        done = lab.run(host.command("-n", "3", "/bin/sh", "-c", "echo $PMIX_RANK; echo bad >&2"), env=host.env)
        self.shows_call("PMIx_server_setup_fork", "fork: $PMIX_RANK", (done.returncode, sorted(done.stdout.split())), (0, ["0", "1", "2"]),
                        "in process")
        self.assertEqual(done.stderr.count("bad\n"), 3)
        for before in ([], ["/usr/bin/env", "--ignore-signal=CHLD"]):
            done = lab.run([*before, *host.command("/bin/sh", "-c", "exit 7")], env=host.env)
            self.assertEqual(done.returncode, 7, done.stderr)
        done = lab.run(host.command("-n", "2", "--tag-output", "/bin/sh", "-c", "printf 'a\\nb'"), env=host.env)
        lines = sorted(re.sub(r"\[.*@1,(\d)\]", r"\1", line) for line in re.findall(r"\[[^[]+", done.stdout))
        self.assertEqual(lines, ["0<stdout>: a\n", "0<stdout>: b", "1<stdout>: a\n", "1<stdout>: b"])
        with tempfile.TemporaryFile() as file:
            file.write(b"one\ntwo\n")
            file.seek(0)
            done = lab.run(host.command("-n", "2", "/bin/sh", "-c", "sed s/^/$PMIX_RANK/"), env=host.env, stdin=file)
        self.assertEqual(done.stdout, "0one\n0two\n")

    def test_a_descendant_that_goes_on_writing(self):
        """What is there at the end comes out, and the end is not put off."""
        host = Host(start=False)
        done = lab.run(host.command("/bin/sh", "-c", "setsid yes & until grep -qs '^yes' /proc/$!/comm; do :; done; echo end; exit 5"),
                       env=host.env)
        self.assertEqual((done.returncode, done.stdout.count("end\n")), (5, 1), done.stderr)

    def test_what_cannot_be_started(self):
        """A program, arguments, and a second one in a run directory."""
        host = Host()
        plain = os.path.join(host.dir, "plain")
        with open(plain, "w", encoding="ascii") as file:
            file.write("no program")
        other = Host(start=False)
        for program, why in (("/no/such", "No such file"), (plain, "Permission denied")):
            done = lab.run(other.command(program), env=host.env)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{program} cannot be started: {why}", done.stderr)
        for args, status, why in ((("-n", "0", "true"), 2, "-n 0: give a number"), (("-n", "x", "true"), 2, "-n x: give a number"),
                                  (("true",), 1, "another fabricd")):
            done = lab.run(host.command(*args), env=host.env)
            self.assertEqual(done.returncode, status)
            self.assertIn(why, done.stderr)
        self.assertEqual(host.stop(), 0)
        self.assertFalse(os.path.exists(host.uri_path()))
        done = lab.run([lab.program("fabricd"), "--role", "node", "--scheduler", "x", "true"], env=host.env)
        self.assertEqual(done.returncode, 2)
        self.assertIn("unexpected argument: true", done.stderr)
        for args in (("--role", "host"), ("--role=host", "-n", "4", "true")):
            done = lab.run([lab.program("fabricd"), *args], env=host.env)
            self.assertEqual((done.returncode, done.stderr), (2, "fabricd: the role host is a program of its own: "
                                                                 "fabric-host, see fabric-host(1)\n"))

    def test_another_user_is_not_let_in(self):
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root, to be another user")
        host = Host()
        member, env = lab.readable_copy(lab.program("stock_member"), host.env)
        nobody = pwd.getpwnam("nobody")
        refused = subprocess.run([member, "--tool", host.uri()], env=dict(env, TMPDIR="/tmp"), user=nobody.pw_uid,
                                 group=nobody.pw_gid, capture_output=True, text=True, timeout=lab.HUNG, check=False)
        self.assertEqual(refused.returncode, 1, refused.stdout)
        host.logged("a PMIx connection of another user was refused")
        self.assertEqual(said(host.tool("pid").stdout)[-1, "pid"][:7], OK)
        self.assertEqual(host.stop(), 0)

    def test_who_is_refused_spoils_nothing(self):
        """A process of another group, of modules that nobody has; a good one of the same name comes after it."""
        host = Host()
        self.addCleanup(host.stop)
        go, here = (os.path.join(host.dir, name) for name in ("go", "here"))
        member = lab.plain(lab.program("stock_member"))
        tool = host.start_tool("listen", f"spawn=out,2,-,/bin/sh,-c,echo $PMIX_NAMESPACE > {here}; until [ -e {go} ]; do sleep 0.01; done; exec "
                               f"{member} fence get=self/0^pmix.appnum", "hear=-145")
        news.until_file(here, lambda: os.path.exists(here) and os.path.getsize(here) > 1, "the job to run")
        with open(here, encoding="ascii") as file:
            name = file.read().strip()
        odd = struct.pack("=II", os.geteuid(), os.getegid() + 1)
        for bad in ({"cred": odd}, {"psec": "nosuch"}, {"bfrops": "v9"}, {"gds": "nosuch"}, {"cred": b""}, {"name": (name, 7)},
                    {"name": ("nobody", 0)}, {"kind": stranger.STARTED_TOOL, "gid": os.getegid() + 1}) * 20:
            with stranger.knock(host.uri(), stranger.first(**{"kind": stranger.CLIENT, "name": (name, 0), **bad})) as channel:
                self.assertTrue(channel.ended(), bad)
        with open(go, "w", encoding="ascii"):
            pass
        out, _ = tool.communicate(timeout=lab.HUNG)
        found = said(out)
        for rank in range(2):
            self.assertEqual(found[rank, "fence"], OK, out)
        self.assertEqual(found[0, "get=self/0,pmix.appnum"], f"{OK} 0")

    def test_it_ends_when_what_is_written_after_the_signal_is_not_read(self):
        host = Host(start=False)
        started = os.path.join(host.dir, "started")
        program = f"trap 'while :; do echo at the end; done' TERM; touch {started}; while :; do sleep 0.1; done"
        with open(host.log_path, "wb") as log:
            process = lab.spawn(host.command("/bin/sh", "-c", program), env=host.env, stdout=subprocess.PIPE, stderr=log)
        news.until_file(started, lambda: os.path.exists(started), "the program to be there", process)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(lab.HUNG), 128 + signal.SIGKILL)
        process.stdout.close()

    def test_jobs_end_with_it(self):
        host = Host(start=False)
        started = os.path.join(host.dir, "started")
        process = lab.spawn(host.command("-n", "2", lab.program("stock_member"), "pid", "fence", f"0:touch={started}",
                                         "await=/no/such"), env=host.env, stdout=subprocess.PIPE, text=True)
        news.until_file(started, lambda: os.path.exists(started), "the members to be there", process)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=lab.HUNG)
        pids = [what.split()[1] for (_, action), what in said(out).items() if action == "pid"]
        self.assertEqual(len(pids), 2)
        self.assertFalse([pid for pid in pids if os.path.exists(f"/proc/{pid}")])


class Data(Case):
    def test_launch_information(self):
        """What the host has told the library of the job, each process finds; the peers come from both maps."""
        told = {"get=*,pmix.job.size": "4", "get=*,pmix.local.size": "4", "get=*,pmix.num.nodes": "1", "get=self/3,pmix.lrank": "3",
                "get=self/2,pmix.appnum": "0", "get=*,pmix.lpeers": "0,1,2,3"}
        found = self.members(4, *told)
        for action, what in told.items():
            self.all_said(found, 4, action, f"{OK} {what}")
        for name, action in (("PMIx_server_register_nspace", "get=*,pmix.job.size"), ("PMIx_server_register_client", "get=self/3,pmix.lrank"),
                             ("PMIx_generate_regex", "get=*,pmix.num.nodes"), ("PMIx_generate_ppn", "get=*,pmix.lpeers")):
            self.shows_call(name, action, found[3, action], f"{OK} {told[action]}", "in process")

    def test_put_commit_fence_get(self):
        collected = {}
        for fence in ("fence=*,collect", "fence=*,plain"):
            found = self.members(3, "put=key,mine", "put=large,#1024", "commit", fence, "get=0,key", "get=1,key",
                                 "get=2,large", "get=2,none,1")
            self.all_said(found, 3, fence, OK)
            self.all_said(found, 3, "get=0,key", f"{OK} mine")
            self.all_said(found, 3, "get=1,key", f"{OK} mine")
            self.all_said(found, 3, "get=2,large", f"{OK} 1024 bytes")
            self.assertNotIn(OK, found[0, "get=2,none,1"])
            for action, name in (("put=key,mine", "PMIx_Put"), ("commit", "PMIx_Commit"), (fence, "PMIx_Fence")):
                self.said_shows(found, (0, action), OK, name)
            self.said_shows(found, (0, "get=1,key"), f"{OK} mine", "PMIx_Get")
            collected[fence] = found[0, "get=1,key"]
        self.shows_given("PMIX_COLLECT_DATA", "fence=*,collect", collected["fence=*,collect"], collected["fence=*,plain"], "call", "client")

    def test_fences(self):
        """Of subsets, several at once, and one that does not block: what was committed before it is there after it."""
        found = self.members(4, "0+1:fence=0+1", "2+3:fence=2+3", "fences=0+1+2,1+2+3,*,0+3", "put=key,mine", "commit", "fences=*", "get=0,key",
                             "get=2,key", "get=nobody/0,key,10")
        self.assertEqual([found[rank, f"fence={one}"] for rank, one in ((0, "0+1"), (1, "0+1"), (2, "2+3"), (3, "2+3"))],
                         [OK] * 4)
        self.all_said(found, 4, "fences=0+1+2,1+2+3,*,0+3", OK)
        self.all_said(found, 4, "get=0,key", f"{OK} mine")
        self.shows_call("PMIx_Fence_nb", "fences=*", (found[0, "fences=*"], found[0, "get=2,key"]), (OK, f"{OK} mine"), "client")
        self.said_shows(found, (0, "get=nobody/0,key,10"), "NOT-FOUND", "pmix_server_dmodex_req_fn_t")

    def test_what_is_not_there_yet(self):
        """Nobody fences: the value comes by direct modex. A fence that not all come to times out."""
        found = self.members(2, "1:get=0,late,20", "0:put=late,x", "0:commit", "0:fence=0", "0:fence=*,plain,1", "1:await=done", "0:touch=done",
                             "fence=*,collect")
        self.assertEqual((found[1, "get=0,late,20"], found[0, "fence=0"]), (f"{OK} x", OK))
        self.said_shows(found, (0, "fence=*,plain,1"), "TIMEOUT", "PMIX_TIMEOUT", kind="directive")


class Ends(Case):
    def test_one_that_dies_in_a_fence(self):
        """The others are told, and go on where the job is recoverable."""
        found = self.members(3, "1:kill=9", "fence", "fence=0+2", args=("--recoverable",), status=128 + 9)
        self.assertEqual([found[rank, "fence"] for rank in (0, 2)], ["PARTIAL SUCCESS"] * 2)
        self.assertEqual([found[rank, "fence=0+2"] for rank in (0, 2)], [OK] * 2)
        self.said_shows(found, (0, "fence"), "PARTIAL SUCCESS", "pmix_server_fencenb_fn_t", without=found[0, "fence=0+2"])

    def test_one_that_fails_ends_the_others(self):
        for end, status in (("kill=11", 128 + 11), ("exit=3", 3), ("exit=0", 1)):
            self.assertEqual(self.members(3, "fence", f"1:{end}", "await=/no/such", status=status)[1, "fence"], OK)
        host = Host(start=False)
        deaf = "trap '' TERM; [ $PMIX_RANK = 0 ] && exit 4; while :; do read line; done < /dev/zero"
        self.assertEqual(lab.run(host.command("-n", "2", "/bin/sh", "-c", deaf), env=host.env).returncode, 4)

    def test_who_says_good_bye(self):
        """A member that ends with 0 and has not finalized has failed; of one that has, and of one that never was a member, it is no fault."""
        def ends(*program):
            host = Host(start=False)
            return lab.run(host.command(*program), env=host.env, cwd=host.dir).returncode
        connected, finalized, stranger_ = (ends(lab.program("stock_member"), "fence", "exit=0"), ends(lab.program("stock_member"), "fence"),
                                           ends("/bin/true"))
        self.shows_call("pmix_server_client_connected_fn_t", "fence, exit=0", connected, 1, "client", without=stranger_)
        self.shows_call("pmix_server_client_finalized_fn_t", "fence, exit", finalized, 0, "client", without=connected)

    def test_abort(self):
        host = Host(start=False)
        done = host.run(3, "fence", "1:abort=9,enough", "await=/no/such")
        self.assertEqual(said(done.stdout)[1, "fence"], OK)
        for name in ("PMIx_Abort", "pmix_server_abort_fn_t"):
            self.shows_call(name, "abort=9,enough", done.returncode, 9, "client")
        self.members(2, "fence", "1:abort=256,enough", "await=/no/such", status=1)  # of which a byte is told
        done = Host(start=False).run(3, "fence", "1:abort=9,enough,2", "0+1:fence=0+1", args=("--recoverable",))
        found = said(done.stdout)
        self.assertEqual(found[1, "abort=9,enough,2"], OK)
        self.assertEqual([found[rank, "fence=0+1"] for rank in (0, 1)], [OK] * 2, done.stdout + done.stderr)


class Fabric(Case):
    def test_answers_of_the_run_directory(self):
        capture, whole = os.path.join(lab.tmpdir(), "fabric.txt"), lab.fabric("fattree2:4,2,4", "capture")
        lab.replace_file(capture, whole)
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}})
        self.addCleanup(daemon.stop)
        host = Host(scheduler=daemon.rundir)
        hosts = len(daemon.ctl_json("devices"))
        self.assertEqual(said(host.tool("query=pmix.fab.nverts").stdout), {(-1, "query=pmix.fab.nverts"): f"{OK} {hosts}"})
        lab.replace_file(capture, fabric_text.without(whole, "node0003"))
        daemon.refresh()
        host.logged(f"generation {daemon.status()['generation']} of")
        done = host.run(2, "query=pmix.fab.grps", args=("--rundir", os.path.join(host.dir, "other")))
        found = said(done.stdout)
        self.assertEqual(found[0, "query=pmix.fab.grps"][:7], OK, done.stdout + done.stderr)
        self.assertEqual(host.stop(), 0)


if __name__ == "__main__":
    unittest.main()
