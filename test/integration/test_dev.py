"""./dev: what it says, what it asks for, and that nothing of what it starts outlives it."""
import os
import shlex
import signal
import subprocess
import tempfile
import unittest

import lab
import summary

DEV = os.path.join(lab.ROOT, "dev")


def bash(script, **options):
    return lab.run(["bash", "-c", f"source {shlex.quote(DEV)}; {script}"], **options)


def fake_command(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


class Usage(unittest.TestCase):
    def test_help_and_what_is_refused(self):
        """Before anything is built."""
        done = lab.run([DEV, "--help"])
        self.assertEqual(done.returncode, 0)
        for command in ("run", "test", "compat", "build", "package", "bench", "fuzz", "san", "lint", "dist"):
            self.assertIn(f"  {command} ", done.stdout)
        for args, status, says in ((["dance"], 2, ""), (["--pmix"], 1, "give the prefix"), (["compat"], 1, "give the prefixes"),
                                   (["--pmix", lab.tmpdir(), "build"], 1, "no PMIx library is installed there"),
                                   (["compat", lab.tmpdir()], 1, "no PMIx library is installed there"),
                                   (["fuzz", "nothing", "1"], 1, "NAME is one of: ")):
            with self.subTest(args=args):
                done = lab.run([DEV, *args])
                self.assertEqual((done.returncode, done.stdout), (status, ""))
                self.assertIn(says, done.stderr)


class BuildFolder(unittest.TestCase):
    """One command at a time uses it: another one is refused, and says which has it."""

    def setUp(self):
        self.build = os.path.join(lab.tmpdir(), "a build")
        os.mkdir(self.build)
        self.env = dict(os.environ, FABRICD_BUILD=self.build)
        self.hold = f"source {shlex.quote(DEV)}; said=(test door); hold {shlex.quote(self.build)}; "

    def test_a_second_command_is_refused(self):
        first = lab.Watch(["bash", "-c", self.hold + "echo held; read -r end"], talk=True)
        self.addCleanup(first.stop)
        first.wait("held")
        done = lab.run([DEV, "test", "--all", "lab"], env=self.env)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"dev: {self.build}: in use by process {first.process.pid}, ./dev test door: wait", done.stderr)
        self.assertEqual(os.listdir(self.build), [".in-use"])
        other = dict(self.env, FABRICD_BUILD=self.build + " of another")
        self.assertEqual(bash('mkdir "$base"; hold "$base"', env=other).returncode, 0)
        first.stop()
        self.assertEqual(lab.run(["bash", "-c", self.hold]).returncode, 0)

    def test_what_was_started_keeps_it(self):
        """A ./dev that is killed leaves builders and test runners for a while."""
        script = self.hold + "supervised bash -c 'echo started; read -r end' <&0"
        first = lab.Watch(["bash", "-c", script], dict(os.environ, TMPDIR=lab.tmpdir()), talk=True)
        self.addCleanup(first.stop)
        first.wait("started")
        first.process.kill()
        first.process.wait()
        self.assertIn("in use by process", lab.run(["bash", "-c", self.hold]).stderr)
        first.process.stdin.close()  # which ends what is left
        lab.run(["flock", os.path.join(self.build, ".in-use"), "true"])  # waits for its end
        self.assertEqual(lab.run(["bash", "-c", self.hold]).returncode, 0)


class Packages(unittest.TestCase):
    """./dev as root on a host that has services of its own: apt and systemd are played."""

    APT = """case $* in
*-s*) echo 'Inst opensm (1 Debian [amd64])'; echo 'Inst libosmcomp5 (1 Debian [amd64])' ;;
*install*)
    for unit in opensm.service munge ntp.service; do
        $FAKE_POLICY $unit restart; echo "$unit $?" >> $FAKE_LOG
    done
    echo opensm.service >> $FAKE_ENABLED
    exit $FAKE_STATUS ;;
esac
echo "$@" >> $FAKE_LOG
"""
    SYSTEMCTL = """case $1 in
list-unit-files) sed 's/$/ enabled enabled/' $FAKE_ENABLED ;;
list-units) echo "munge.service loaded active running Munge"; echo "ntp.service loaded active running NTP" ;;
disable) sed -i "/^$2/d" $FAKE_ENABLED; echo "$@" >> $FAKE_LOG ;;
esac
"""

    def setUp(self):
        self.folder = lab.tmpdir()
        self.log = os.path.join(self.folder, "apt.log")
        self.policy = os.path.join(self.folder, "policy-rc.d")
        self.enabled = os.path.join(self.folder, "enabled")
        self.env = dict(os.environ, PATH=self.folder + ":" + os.environ["PATH"], FAKE_LOG=self.log, FAKE_POLICY=self.policy,
                        FAKE_ENABLED=self.enabled, FAKE_STATUS="0")
        with open(self.enabled, "w", encoding="utf-8") as file:
            file.write("munge.service\n")
        fake_command(self.folder, "apt-get", self.APT)
        fake_command(self.folder, "systemctl", self.SYSTEMCTL)
        self.lack()
        self.be(0)

    def lack(self, *names):
        """All packages of the groups are there but these."""
        have = set(bash("packages build tour test").stdout.split()) - set(names)
        fake_command(self.folder, "dpkg-query", "cat <<E\n" + "".join(f"{n} installed\n" for n in have) +
                     "half config-files\nE\n")

    def be(self, uid):
        fake_command(self.folder, "id", f"echo {uid}\n")

    def need(self, *groups, before="", **options):
        return bash(f"policy={shlex.quote(self.policy)}; trap finish EXIT; {before} need {' '.join(groups)}", env=self.env, **options)

    def lines(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            return file.read().splitlines()

    def test_nothing_is_missing(self):
        self.assertEqual(self.need("build").returncode, 0)
        self.assertEqual(self.lines(), [], "apt-get is not called")

    def test_the_tour_needs_little(self):
        tour = set(bash("packages tour").stdout.split())
        self.assertIn("opensm", tour)
        self.assertFalse(tour & {"slurmd", "slurmctld", "munge", "lldpd"})
        self.assertFalse(tour - set(bash("packages test").stdout.split()), "the tour is a test")
        self.lack("slurmd", "munge")
        done = bash('configure() { echo built; exit; }; cmd_run --once', env=self.env)
        self.assertEqual((done.stdout, self.lines()), ("built\n", []), done.stderr)

    def test_root_installs_what_is_missing(self):
        self.lack("opensm")
        done = self.need("build", "tour")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("packages to install: opensm libosmcomp5 \n", done.stderr)
        update, plan, *answers, disable = self.lines()
        self.assertIn("update", update)
        self.assertRegex(plan, " -s install .*--no-remove opensm$")
        # Only what ran before may be restarted.
        self.assertEqual(answers, ["opensm.service 101", "munge 0", "ntp.service 0"])
        self.assertEqual(disable, "disable opensm.service")
        self.assertIn("disabled, not started: opensm.service", done.stderr)
        with open(self.enabled, encoding="utf-8") as file:
            self.assertEqual(file.read(), "munge.service\n")
        self.assertFalse(os.path.lexists(self.policy))

    def test_the_administrators_policy_comes_back(self):
        self.lack("opensm")
        fake_command(self.folder, "mine", 'case $1 in ntp*) exit 101 ;; esac\n')
        for status in ("0", "100"):
            with self.subTest(status):
                self.env["FAKE_STATUS"] = status
                os.symlink("mine", self.policy)
                done = self.need("tour")
                self.assertEqual(done.returncode, 0 if status == "0" else 1, done.stderr)
                self.assertEqual(os.readlink(self.policy), "mine")
                self.assertEqual(self.lines()[2:5], ["opensm.service 101", "munge 0", "ntp.service 101"])
                self.assertIn("disable opensm.service", self.lines())
                os.unlink(self.policy)
                os.unlink(self.log)

    def test_a_killed_one_forbids_nothing(self):
        fake_command(self.folder, "policy-rc.d", 'case $1 in ntp*) exit 101 ;; esac\n')
        bash(f"policy={shlex.quote(self.policy)}; forbid_services; kill -9 $$", env=self.env)
        for unit, answer in (("opensm.service", 0), ("ntp", 101)):
            self.assertEqual(lab.run([self.policy, unit, "start"]).returncode, answer)
        self.lack("opensm")
        self.assertEqual(self.need("tour").returncode, 0)
        with open(self.policy, encoding="utf-8") as file:
            self.assertNotIn("dev", file.read())

    def test_a_terminal_is_asked(self):
        self.lack("opensm")
        for answer, option, installed in (("n", "", False), ("", "", False), ("y", "", True), ("", "yes=1;", True)):
            with self.subTest((answer, option)):
                main, other = os.openpty()
                os.write(main, answer.encode() + b"\n")
                with subprocess.Popen(["bash", "-c", f"source {shlex.quote(DEV)}; policy={shlex.quote(self.policy)}; trap finish EXIT; "
                                       f"{option} need tour"], env=self.env, stdin=other, stdout=other, stderr=other) as process:
                    process.wait(60 * lab.SLOW)
                said = os.read(main, 9999).decode()
                os.close(main)
                os.close(other)
                self.assertIn("packages to install: opensm", said)
                self.assertEqual("install them? [y/N]" in said, not option)
                self.assertEqual((process.returncode == 0, "munge 0" in self.lines()), (installed, installed), said)
                os.unlink(self.log)

    def test_others_are_told(self):
        self.lack("cmake", "opensm")
        self.be(1000)
        done = self.need("build", "tour")
        self.assertEqual(done.returncode, 1)
        self.assertIn("packages are missing: cmake opensm", done.stderr)
        self.assertRegex(done.stderr, r"(?m)type: (sudo |su -c ').*/dev install-deps build tour'?$")
        self.assertEqual(self.lines(), [])

    def test_yes_stands_anywhere(self):
        for args in ("-y install-deps tour", "install-deps -y tour", "install-deps tour --yes"):
            done = bash(f'need() {{ echo "$yes $*"; }}; main {args}')
            self.assertEqual(done.stdout, "1 tour\n", done.stderr)


class CleaningUp(unittest.TestCase):
    SCRIPT = ("trap finish EXIT; trap 'exit 130' INT; trap 'exit 143' TERM; "
              "supervised sh -c 'touch $TMPDIR/file; echo $TMPDIR; setsid sh -c \"echo \\$\\$; exec sleep 611\" & "
              "setsid nohup sh -c \"echo \\$\\$ >&2; exec sleep 611\" 2>&1 & wait'")

    def test_interrupted(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(number):
                process = subprocess.Popen(["bash", "-c", f"source {shlex.quote(DEV)}; {self.SCRIPT}"], stdout=subprocess.PIPE, text=True)
                scratch, *pids = (process.stdout.readline().strip() for _ in range(3))
                self.assertTrue(scratch.startswith(tempfile.gettempdir()) or scratch.startswith("/tmp"))
                sleepers = [lab.Held(int(pid)) for pid in pids]
                process.send_signal(number)
                self.assertEqual(process.wait(30 * lab.SLOW), status)
                process.stdout.close()
                self.assertTrue(all(sleeper.ended() for sleeper in sleepers))
                self.assertFalse(os.path.exists(scratch))


class Summary(unittest.TestCase):
    def report(self, cases):
        path = os.path.join(lab.tmpdir(), "tests.xml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'<?xml version="1.0"?><testsuite tests="{len(cases)}">{"".join(cases)}</testsuite>')
        return path

    def test_counts(self):
        report = self.report([
            '<testcase name="a" status="run"><system-out>no cases: 7 passed, 8 failed, 9 skipped\n'
            'cases: 4 passed, 0 failed, 2 skipped\nskipped: 1: no disk\nskipped: 1: no &lt;name&gt;: none\n</system-out></testcase>',
            '<testcase name="b" status="fail"><system-out>cases: 0 passed, 1 failed, 3 skipped\nskipped: 3: no disk</system-out></testcase>',
            '<testcase name="g" status="fail"><system-out>[==========] 6 test(s) run.\n[  PASSED  ] 3 test(s).\n'
            '[  SKIPPED ] 1 test(s), listed below:\n[  SKIPPED ] reads\n[  FAILED  ] 2 test(s), listed below:\n</system-out></testcase>',
            '<testcase name="c" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>',
            '<testcase name="d" status="disabled"/>',
            '<testcase name="e" status="notrun"><skipped message="Unable to find executable"/></testcase>',
            '<testcase name="f" status="something new"/>'])
        done = lab.run(["python3", summary.__file__, report])
        self.assertEqual((done.returncode, done.stdout), (1, "1 passed, 4 failed, 2 skipped, 6 single cases skipped\n"))
        done = lab.run(["python3", summary.__file__, "--table", report])
        name = os.path.basename(os.path.dirname(report))
        self.assertEqual((done.returncode, done.stdout.splitlines()[2:]), (0, [
            f"| {name} | 1 | 4 | 2 | 7 | 3 | 6 |",
            *(f"{name}: failed: {failed}" for failed in "bgef"),
            f"{name}: skipped: 4: no disk (a, b)", f"{name}: skipped: 1: no <name>: none (a)"]))

    def test_single_cases(self):
        """Of a module, as run_test.py counts them: one that fails in two parts is one."""
        path = os.path.join(lab.tmpdir(), "test_some.py")
        lab.replace_file(path, """
import unittest
class One(unittest.TestCase):
    def test_well(self): pass
    def test_parts(self):
        for part in (1, 2):
            with self.subTest(part): self.assertEqual(part, 0)
    def test_not(self): self.skipTest("no 'disk'")
class Two(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no 'disk'")
    def test_never(self): pass
""")
        env = dict(os.environ, PYTHONPATH=os.path.dirname(path), FABRICD_BUILD=lab.tmpdir(), FABRICD_FAILURES="")
        done = lab.run(["python3", "-B", os.path.join(lab.ROOT, "test", "integration", "run_test.py"), path], env=env)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines()[-2:], ["cases: 1 passed, 1 failed, 2 skipped", "skipped: 2: no 'disk'"])


if __name__ == "__main__":
    unittest.main()
