"""fabric-host's jobs are signalled and ended by who may, monitored, and cleaned up after; and what this host does not do."""
import os
import re
import sys
import unittest

import lab
import news
import test_host
import test_host_jobs
from test_host import OK
from test_host_jobs import BY_SIGNAL, END, SHELL, member

SLEEP = "/bin/sleep,1000"
BEAT, FILE, BY_COMMAND = -109, -110, -400 # PMIX_MONITOR_HEARTBEAT_ALERT, _FILE_ALERT, PMIX_ERR_PROC_KILLED_BY_CMD
KILLED = "PROC-KILLED-BY-CMD"


class Control(test_host_jobs.Up):
    def ends(self, spawn, *actions):
        """A tool starts a job, does something about it, and hears what its end was."""
        answers, _ = self.tool("listen", spawn, *actions, f"hear={END}")
        self.assertEqual((answers[1][:7], answers[2:-1]), (OK, [OK] * len(actions)))
        return answers[-1]

    def test_a_whole_job(self):
        def ends(spawn, control, how, *names):
            end = self.ends(spawn, *control)
            for name in names:
                kind = "directive" if name.startswith("PMIX_") else "function"
                self.shows_given(name, control[0], end, re.compile(f"^{OK} [01] {KILLED} {how}$"), "call", "tool", kind=kind)
        ends(f"spawn=-,2,-,{SLEEP}", ["control=child/*,kill"], 137, "PMIX_JOB_CTRL_KILL", "PMIx_Job_control", "pmix_server_job_control_fn_t")
        ends(f"spawn=-,1,-,{SLEEP}", ["control_nb=child/*,id:mine,term"], 143, "PMIX_JOB_CTRL_TERMINATE", "PMIx_Job_control_nb")
        self.assertEqual(self.ends(f"spawn=-,1,-,{SLEEP}", "control=child/*,pause", "control=child/*,term"), f"{OK} 0 {KILLED} 143")
        ready = os.path.join(self.host.dir, "ready")
        deaf = f"{SHELL},trap '' TERM; > {ready}; while :; do sleep 0.01; done"
        self.assertEqual(self.ends(f"spawn=-,1,-,{deaf}", f"await={ready}", "control=child/*,term"), f"{OK} 0 {KILLED} 137")

    def test_pause_and_resume(self):
        """What a program that counts has counted stays as it is while it is paused, and grows again."""
        count = os.path.join(self.host.dir, "count")
        job = self.host.start_tool("listen", f"spawn=-,1,-,{SHELL},while :; do echo >> {count}; done", f"await={count}", "control=child/*,pause",
                                   f"touch={count}.paused", f"await={count}.go", "control=child/*,resume", f"touch={count}.resumed",
                                   f"await={count}.end", "control=child/*,kill", f"hear={END}")
        def states():
            found = []
            for pid in self.children():
                with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                    found.append(file.read().rpartition(") ")[2][0])
            return found
        def go_on(name):
            with open(f"{count}.{name}", "w", encoding="ascii"):
                pass
        news.until_file(count, lambda: os.path.exists(count + ".paused"), "the job to be paused")
        self.shows_given("PMIX_JOB_CTRL_PAUSE", "control=child/*,pause", lab.wait_for(lambda: states() == ["T"] and states(), what="it to stop"),
                         ["T"], "call", "tool")
        size = os.path.getsize(count)
        self.assertEqual(os.path.getsize(count), size)
        go_on("go")
        news.until_file(count, lambda: os.path.exists(count + ".resumed"), "the job to be resumed")
        news.until_file(count, lambda: os.path.getsize(count) > size, "it to go on")
        self.shows_given("PMIX_JOB_CTRL_RESUME", "control=child/*,resume", "T" in states(), False, "call", "tool")
        go_on("end")
        out, _ = job.communicate(timeout=lab.HUNG)
        self.assertIn(f"hear={END}: {OK} 0 {KILLED} 137\n", out)

    def test_who_is_in_a_processs_group(self):
        """They end when it does; one that leads another group hears its signals all the same."""
        pid = os.path.join(self.host.dir, "pid")
        self.assertEqual(self.ends(f"spawn=-,1,-,{SHELL},sleep 1000 & echo $! > {pid}; exit 4"), f"{OK} 0 PROC-EXIT-NONZERO-TERM 4")
        with open(pid, encoding="ascii") as file:
            self.assertTrue(lab.Held(int(file.read())).ended())
        script, ready = (os.path.join(self.host.dir, name) for name in ("script", "ready"))
        with open(script, "w", encoding="ascii") as file:
            file.write(f"import os, signal\nos.setpgid(0, os.getpgid(os.getppid()))\nopen('{ready}', 'w')\nsignal.pause()\n")
        self.assertEqual(self.ends(f"spawn=-,1,-,{sys.executable},{script}", f"await={ready}", "control=child/*,term"),
                         f"{OK} 0 {KILLED} 143")

    def test_signals(self):
        counts = f"{SHELL},trap 'exit 5' USR1; trap 'exit 6' USR2; while :; do sleep 0.01; done"
        ready = os.path.join(self.host.dir, "ready")
        for signo, status in ((10, 5), (12, 6)):
            spawn = f"spawn=-,1,-,{counts.replace('while', f'> {ready}{signo}; while')}"
            end = self.ends(spawn, f"await={ready}{signo}", "control=child/0,pause", f"control=child/0,sig:{signo}", "control=child/*,resume")
            self.shows_given("PMIX_JOB_CTRL_SIGNAL", f"control=child/0,sig:{signo}", end, f"{OK} 0 PROC-EXIT-NONZERO-TERM {status}", "call",
                             "tool")
        answers, _ = self.tool("listen", f"spawn=-,1,-,{SLEEP}", "control=child/*,sig:9", f"hear={BY_SIGNAL}")
        self.assertEqual(answers[2:], [OK, f"{OK} 0 PROC-ABORTED-BY-SIG 137"], "a signal is no order to end")

    def test_one_process_some_and_oneself(self):
        """The others of its job follow, unless the job is recoverable. Where no process is named it is all of the caller's job."""
        self.assertEqual(self.ends(f"spawn=-,3,-,{SLEEP}", "control=child/1,kill"), f"{OK} 1 {KILLED} 137")
        answers, _ = self.tool("listen", f"spawn=recoverable,2,-,{SLEEP}", "control=child/1,term", f"hear={BY_COMMAND}",
                               "control=child/0,kill", f"hear={END}")
        self.assertEqual(answers[2:], [OK, f"{OK} 1 {KILLED} 143"] * 2)
        done = test_host.Host(start=False).run(2, "fence", "1:control=-,term", "await=/no/such")
        self.shows_call("PMIx_Job_control", "control=-,term", done.returncode, 143, "client")
        found = self.members(1, "listen", f"spawn=recoverable,2,-,{SLEEP}", "abort=3,enough,child/1+child/0", f"hear={END}",
                             "pid", status=3)
        self.assertRegex(found[0, f"hear={END}"], f"^{OK} [01] {KILLED} 137$")
        self.assertEqual(found[0, "pid"][:7], OK, "who aborts others lives")

    def test_what_is_refused(self):
        """Nothing is done then, of several directives neither."""
        cases = [("control=-,kill", "NOT-FOUND"), ("control=nobody/*,kill", "NOT-FOUND"), ("control=child/1,kill", "NOT-FOUND"),
                 ("control=child/*+nobody/0,kill", "NOT-FOUND"), ("control=child/*", "NOT-SUPPORTED"),
                 ("control=child/*,sig:0", "BAD-PARAM"), ("control=child/*,sig:999", "BAD-PARAM"), ("control=child/*,sig:x", "BAD-PARAM")]
        cases += [(f"control=child/*,{key},kill", "NOT-SUPPORTED")
                  for key in ("cancel:x", "restart:x", "ckpt:x", "ckptev", "ckptsig:1", "pvn:x", "pvnimg:x", "preempt")]
        answers, _ = self.tool("listen", f"spawn=-,1,-,{SLEEP}", *(action for action, _ in cases), "control=child/0,pause",
                               "control=child/0,kill", f"hear={END}")
        self.assertEqual(answers[2:], [*(what for _, what in cases), OK, OK, f"{OK} 0 {KILLED} 137"])
        unserved = ("allocate", "group=name", "credential", "query=pmix.strg.id")
        found = self.members(1, *unserved)
        self.assertEqual([found[0, action] for action in unserved], ["NOT-SUPPORTED"] * 3 + ["NOT-FOUND"])


class Library(test_host_jobs.Up):
    """What the library's server does by itself once there is a host."""

    def test_monitored(self):
        """Heartbeats that do not come, and a file that does not grow. Who leaves is not missed."""
        answers, _ = self.tool("monitor=beat", "monitor_nb=beat")
        self.assertEqual(answers[0], OK)
        self.shows_call("PMIx_Process_monitor_nb", "monitor_nb=beat", answers[1], OK, "tool")
        file = os.path.join(self.host.dir, "file")
        with open(file, "w", encoding="ascii"):
            pass
        found = self.members(2, "listen", "fence", "0:monitor=beat", f"0:monitor={file}", f"1:hear={BEAT},self", f"1:hear={FILE},self", "fence")
        self.said_shows(found, (0, "monitor=beat"), OK, "PMIx_Process_monitor")
        for name, what, event in (("PMIX_MONITOR_HEARTBEAT", "beat", BEAT), ("PMIX_MONITOR_FILE", file, FILE)):
            heard = f"{event} {found[1, f'hear={event},self']}"
            self.shows_given(name, f"monitor={what}", heard, f"{event} {OK} 0 {OK} 0", "call", "client")
            self.shows_events([heard], {f"{name}_ALERT": [f"{event} {OK} 0 {OK} 0"]}, "client")
        self.tool("pid")

    def test_files_are_removed_at_the_end(self):
        names = [os.path.join(self.host.dir, name) for name in ("one", "two", "kept")]
        for name in names:
            with open(name, "w", encoding="ascii"):
                pass
        spawn = member(f"control=-,pmix.reg.cleanup:{names[0]}", f"control=self/0,pmix.reg.cleanup:{names[1]}")
        _, done = self.tool("listen", f"spawn=out,1,-,{spawn}", f"hear={END}")
        self.assertEqual(done.stdout.count(f": {OK}"), 5, done.stdout)
        news.until_file(names[0], lambda: not os.path.exists(names[0]) and not os.path.exists(names[1]), "the files to be gone")
        self.shows_given("PMIX_REGISTER_CLEANUP", spawn, [os.path.exists(name) for name in names], [False, False, True], "call", "client")


if __name__ == "__main__":
    unittest.main()
