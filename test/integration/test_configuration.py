"""The configuration while the daemon runs: read again, asked for, and refused with all that is wrong with it."""
import os
import pwd
import re
import subprocess
import unittest

import fabric_text
import lab

SPEC = "fattree2:2,2,2"  # 4 hosts
FORMATS = ("slurm-tree, slurm-block, slurm-yaml, flux-jgf, k8s-labels, volcano, nodemap, hostlist, rankfile, topograph, topograph-graph, "
           "ibnetdiscover, dot, graphml, json, npy, csv")


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = lab.tmpdir()
        self.capture = os.path.join(self.dir, "fabric.txt")
        self.whole = lab.fabric(SPEC, "capture")
        lab.replace_file(self.capture, self.whole)

    def start(self, sections=None, args=(), **fabricd):
        """A daemon with these sections, which are kept to be changed."""
        self.sections = {"fabricd": {"probe": f"file:{self.capture}", "interval": 0, **fabricd},
                         "changes": {"light_sweep": 0}}
        self.daemon = lab.Fabricd(args=args, start=False)
        self.sections["fabricd"].update(rundir=self.daemon.rundir, store=self.daemon.store)
        self.write(sections)
        self.daemon.start()
        self.addCleanup(self.daemon.stop)
        return self.daemon

    def write(self, sections=None):
        for section, settings in (sections or {}).items():
            self.sections.setdefault(section, {}).update(settings)
        self.daemon.configure({section: {key: value for key, value in settings.items() if value is not None}
                               for section, settings in self.sections.items()})

    def reload(self, sections, *lines, daemon=None):
        """What it answers to a file that has these settings, too."""
        self.write(sections)
        done = (daemon or self.daemon).ctl("reload")
        self.assertEqual((done.returncode, done.stderr, done.stdout.splitlines()), (0, "", list(lines)))

    def in_force(self, name):
        """{value: where it comes from}"""
        return {row["value"]: row["from"] for row in self.daemon.ctl_json("config")
                if f'[{row["section"]}] {row["name"]}' == name}

    def log_since(self, start):
        return re.findall(r"^\S+ \S+ fabricd (\w+: .*)$", self.daemon.log()[start:], re.MULTILINE)


class Reload(Case):
    def test_nothing_has_changed(self):
        daemon = self.start()
        before, start = daemon.status(), len(daemon.log())
        self.reload({}, "nothing has changed")
        self.assertEqual(daemon.ctl_json("reload"), {"changed": [], "restart": []})
        daemon.hup()
        self.assertEqual(daemon.status(), before)  # also the time of the last sweep
        self.assertEqual(self.log_since(start), [f"info: reload asked for by uid {os.geteuid()}",
                                                 "info: the configuration is read again: nothing has changed"] * 2
                         + ["info: SIGHUP: reading the configuration again",
                            "info: the configuration is read again: nothing has changed"])

    def test_what_can_change_does(self):
        daemon = self.start()
        told = os.path.join(self.dir, "told")
        hook = os.path.join(self.dir, "hook")
        with open(hook, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ncat > {told}.tmp && mv {told}.tmp {told}\n")
        os.chmod(hook, 0o755)
        mapped = os.path.join(self.dir, "map")
        lab.replace_file(mapped, '0x0000000000100000 "login1"\n')
        metrics = [os.path.join(daemon.rundir, name) for name in ("a.prom", "b.prom")]
        self.reload({"metrics": {"file": metrics[0]}, "names": {"map": mapped}, "changes": {"hook": hook}},
                    "changed: [names] map, [changes] hook, [metrics] file")
        self.assertTrue(os.path.exists(metrics[0]))
        self.assertTrue(daemon.refresh()["changed"])
        self.assertIn("login1", {device["host"] for device in daemon.ctl_json("devices")})
        daemon.until("idle")
        self.assertTrue(os.path.exists(told))
        os.unlink(metrics[0])
        self.reload({"metrics": {"file": metrics[1]}, "names": {"map": None, "pattern": "^(no)de"}},
                    "changed: [names] pattern, [names] map, [metrics] file")
        daemon.refresh()
        self.assertEqual({device["host"] for device in daemon.ctl_json("devices")}, {"no"})
        self.assertEqual([os.path.exists(path) for path in metrics], [False, True])

    @unittest.skipIf(os.geteuid() != 0, "only root can try as another user")
    def test_admins(self):
        daemon = self.start()
        for name in ("reload", "config"):
            done = daemon.ctl(name, user="nobody")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{name}: uid {pwd.getpwnam('nobody').pw_uid} may not do that", done.stderr)
        self.assertIn("log: uid", daemon.ctl("log", "debug", user="nobody").stderr)
        self.reload({"security": {"admins": "nobody"}}, "changed: [security] admins")
        self.assertEqual(daemon.ctl("refresh", user="nobody").returncode, 0)
        self.reload({"security": {"admins": None}}, "changed: [security] admins")
        self.assertEqual(daemon.ctl("refresh", "--release", user="nobody").returncode, 1)

    def test_when_it_sweeps(self):
        daemon = self.start()
        sweeps = daemon.until("sweep", after=-1)["count"]
        self.reload({"fabricd": {"interval": 1}}, "changed: [fabricd] interval")
        daemon.until("sweep", after=sweeps)
        self.reload({"fabricd": {"interval": 0}}, "changed: [fabricd] interval")
        self.assertEqual(daemon.status()["interval"], 0)
        daemon.until("idle")
        self.reload({"changes": {"light_sweep": 1, "debounce": 0}}, "changed: [changes] light_sweep, [changes] debounce")
        daemon.until("light-sweep", after=0)
        lab.replace_file(self.capture, self.whole.replace('"node0001', '"other'))
        daemon.wait_ready(2)  # nobody asked for a sweep
        self.reload({"changes": {"light_sweep": 0}}, "changed: [changes] light_sweep")
        status = daemon.status()
        self.assertEqual((status["light_sweep"], status["monitoring"]), (0, None))
        self.assertFalse(daemon.refresh(switch="leaf1")["changed"])  # what was swept last is still known

    def test_what_is_retained_and_suppressed(self):
        daemon = self.start({"changes": {"retain_seconds": 31536000, "flap_count": 0}})
        pulled = fabric_text.without_cables(self.whole, "leaf1", "node0001")
        lab.replace_file(self.capture, pulled)
        generation = daemon.refresh()["generation"]
        self.assertEqual(daemon.status()["missing"], 1)
        self.reload({"changes": {"retain_seconds": 1}}, "changed: [changes] retain_seconds")
        daemon.wait_ready(generation + 1)  # it is lost, without a sweep
        self.assertEqual(daemon.status()["missing"], 0)
        self.reload({"changes": {"flap_count": 2, "suppress": 600}}, "changed: [changes] flap_count, [changes] suppress")
        for text in (self.whole, pulled, self.whole):
            lab.replace_file(self.capture, text)
            suppressed = daemon.refresh()["suppressed"]
        self.assertEqual(suppressed, 1)
        self.reload({"changes": {"flap_count": 0}}, "changed: [changes] flap_count")
        self.assertEqual(daemon.refresh()["suppressed"], 0)
        self.assertEqual(len(daemon.ctl_json("devices")), 4)

    def test_what_cannot_change_is_named(self):
        daemon = self.start({"nodes": {"debounce_ms": 500}})
        lines = ("nothing has changed", "restart for: [fabricd] store, [fabricd] vendor, [nodes] user")
        before = daemon.ctl_json("config")
        self.write({"fabricd": {"store": daemon.store + ".other", "vendor": "ACME"}, "nodes": {"user": "root"}})
        for _ in range(2):  # as long as it is so
            self.reload({}, *lines)
        self.assertEqual([(row["name"], row["value"]) for row in daemon.ctl_json("config")],
                         [(row["name"], row["value"]) for row in before])
        self.assertFalse(os.path.exists(daemon.store + ".other"))
        self.assertIn(f"warning: the configuration has changed where it cannot change now: {lines[1]}",
                      self.log_since(0))
        self.reload({"nodes": {"debounce_ms": 400}}, "changed: [nodes] debounce_ms", lines[1])
        self.assertEqual(daemon.ctl("--format", "csv", "reload").stdout.splitlines(), [
            "setting,what", "[fabricd] store,restart", "[fabricd] vendor,restart", "[nodes] user,restart"])
        self.assertEqual(daemon.stop(), 0)
        daemon.start()
        self.assertIn("ACME", self.in_force("[fabricd] vendor"))
        self.assertTrue(os.path.exists(daemon.store + ".other"))

    def test_every_setting_can_change_or_is_named(self):
        """As fabricd.conf(5), RELOAD, says it. No value is the default."""
        daemon = self.start()
        other = {"fabricd": dict(host="other", rundir=daemon.rundir + "2", store=daemon.store + "2",
                                 probe=f"file:{self.capture},prefix=0xfe80000000000001", interval=77, deadline=7,
                                 log="error", cost_model="hops", groups="pod", default_plane="ib9", vendor="ACME"),
                 "names": dict(pattern="^(no)de", switch_pattern="^(le)af", map="/dev/null"),
                 "ibnetdisc": dict(max_smps=7, timeout_ms=7, retries=7),
                 "nodes": dict(user="root", debounce_ms=77, mirror_delay_ms=7), "node": dict(serve="yes"),
                 "ethernet": {"roce": "10.0.0.0/8"}, "sweep.env": {"A": "b"},
                 "changes": dict(light_sweep=7, debounce=7, debounce_max=77, counters=7, hook="/bin/true", hook_deadline=7,
                                 retain_seconds=7, flap_count=7, flap_window=7, suppress=7, suppress_max=77),
                 "exports": dict(folder=f"{self.dir}/exports", pace=7, deadline=7), "exports.files": {"a": "slurm-tree"},
                 "exports.commands": {"a": "/bin/true"},
                 "check": dict(inactive_seconds=7, capture_seconds=7), "metrics": dict(file=f"{self.dir}/m.prom", listen="127.0.0.1:9407"), "history": dict(days=7, changes=7),
                 "store": dict(keep_days=7), "endpoints": dict(quota=7), "endpoints.pools": {"ib0": "1-7"},
                 "security": dict(admins="root", remote="yes"), "pmix": dict(listen="lo", port=7)}
        told = {(row["section"], row["name"]) for row in daemon.ctl_json("config")}
        lists = {("ethernet", "roce"), ("sweep.env", "A"), ("endpoints.pools", "ib0"), ("exports.files", "a"),
                 ("exports.commands", "a")}
        left_out = {("fabricd", "role"), ("fabricd", "scheduler")}  # these make it another daemon
        self.assertEqual({(section, name) for section in other for name in other[section]}, told - left_out | lists)
        self.write(other)
        answer = daemon.ctl_json("reload")
        with open(os.path.join(lab.ROOT, "docs", "fabricd.conf.5"), encoding="utf-8") as file:
            page = file.read().partition(".Sh RELOAD\n")[2].partition(".El\n")[0]
        live = set()
        for item in page.split(".It\n")[1:]:
            names, sections = re.findall(r"^\.Cm (.*)$", item, re.MULTILINE), re.findall(r"^\.Bq (.*)$", item, re.MULTILINE)
            for section in re.findall(r"[\w.]+", " ".join(sections)):
                named = re.findall(r"\w+", " ".join(names)) or other[section]
                live |= {f"[{section}]" if (section, name) in lists else f"[{section}] {name}" for name in named}
        self.assertEqual(set(answer["changed"]), live)
        everything = {f"[{section}]" if (section, name) in lists else f"[{section}] {name}"
                      for section in other for name in other[section]}
        self.assertEqual(set(answer["restart"]), everything - live)

    def test_a_bad_file_changes_nothing(self):
        daemon = self.start({"changes": {"debounce": 3}})
        before, start = daemon.ctl_json("config"), len(daemon.log())
        lab.replace_file(daemon.conf, "[fabricd]\ninterval = 5\nintervall = 5\nlog = loud\nprobe = none\n[chnges]\nx = 1\n"
                                      "[changes]\nhook = x\nhook = y\n[security]\nadmins = root no-such\n"
                                      "[metrics]\nfile = m\n[names]\npattern = (\nmap = /none\n[ethernet]\nib0 = x\nword\n"
                                      "[exports.files]\na.conf = dot\nb.conf =  slurm-tre --plane ib0\n")
        lines = [f"{daemon.conf}:{line}" for line in (
            '3:1: there is no setting "intervall" in section [fabricd]: is it interval?',
            '4:7: log is "loud": it can be one of error, warning, info, debug',
            '5:9: probe "none": there is none of this name (fabricd --help lists them)',
            '6:1: there is no section [chnges]: is it [changes]?',
            '9:8: [changes] hook: "x": give the program\'s whole path',
            '10:1: hook stands in line 9 already: leave one of them out',
            '12:15: admins: there is no user "no-such" on this host',
            '14:8: file is "m": give the file\'s whole path',
            '16:11: host pattern "(": Unmatched ( or \\(',
            '17:7: map: /none: cannot be read: No such file or directory',
            '19:1: "ib0" cannot be the name of an Ethernet plane',
            '20:1: neither a [section], nor name = value, nor a comment',
            f'23:11: b.conf is "slurm-tre --plane ib0": give a format of fabricctl export, then its options: {FORMATS}')]
        lines.append("the configuration is not taken: 13 mistakes; what was in force stays")
        done = daemon.ctl("reload")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr.splitlines(), [f"fabricctl: {line}" for line in lines])
        self.assertEqual(daemon.errors(), lines)
        answer = daemon.control("reload")
        self.assertEqual((answer["ok"], answer["error"], answer["mistakes"] + [answer["message"]]), (False, -5, lines))
        self.assertEqual(daemon.ctl_json("config"), before)
        start = len(daemon.log())
        daemon.hup()
        daemon.logged(lines[-1], start=start)
        self.assertEqual(daemon.ctl_json("config"), before)
        os.unlink(daemon.conf)
        done = daemon.ctl("reload")
        self.assertEqual((done.returncode, done.stderr.splitlines()), (1, [
            f"fabricctl: {daemon.conf}: cannot be read: No such file or directory",
            "fabricctl: the configuration is not taken: 1 mistake; what was in force stays"]))
        self.reload({"changes": {"debounce": 4}}, "changed: [changes] debounce")

    def test_while_it_sweeps(self):
        feed = lab.Feed()
        self.start_with_feed(feed)
        asked = self.daemon.ask("refresh")
        self.daemon.until_status(lambda status: status["sweeping"])
        self.reload({"changes": {"debounce": 7}, "names": {"pattern": "^(no)de"}, "fabricd": {"interval": 3000}},
                    "changed: [fabricd] interval, [names] pattern, [changes] debounce")
        feed.give(self.whole)
        answer = self.daemon.answer(asked)
        self.assertEqual((answer["ok"], answer["generation"], answer["changed"]), (True, 2, True))
        self.assertEqual({device["host"] for device in self.daemon.ctl_json("devices")}, {"no"})

    def start_with_feed(self, feed):
        self.sections = {"fabricd": {"probe": feed.probe, "interval": 0}, "changes": {"light_sweep": 0}}
        self.daemon = lab.Fabricd(start=False)
        self.sections["fabricd"].update(rundir=self.daemon.rundir, store=self.daemon.store)
        self.write()
        self.daemon.start(wait=False)
        self.addCleanup(self.daemon.stop)
        feed.give(self.whole)
        self.daemon.wait_ready()

    def test_a_restore_is_asked_for(self):
        """A reload meanwhile is answered, or nobody is there to answer for a moment; the restore is done once."""
        daemon = self.start()
        backup = os.path.join(self.dir, "backup.db")
        self.assertEqual(daemon.ctl("backup", backup).returncode, 0)
        self.write({"changes": {"debounce": 7}})
        restore = lab.spawn([lab.program("fabricctl"), "--rundir", daemon.rundir, "restore", backup],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while restore.poll() is None:
            done = daemon.ctl("reload")
            self.assertIn(done.returncode, (0, 1))
            self.assertEqual(done.stderr.count("\n"), done.returncode, done.stderr)
        self.assertEqual(restore.returncode, 0)
        daemon.wait_ready()
        self.assertIn("7", self.in_force("[changes] debounce"))
        self.reload({}, "nothing has changed")
        self.assertEqual(daemon.log().count("is restored"), 1)

    def test_the_command_line_goes_over_the_file(self):
        daemon = self.start(args=["--interval", "3000"])
        self.reload({"fabricd": {"interval": 5}}, "nothing has changed")
        self.assertEqual(self.in_force("[fabricd] interval"), {"3000": "command line"})
        self.assertEqual(daemon.status()["interval"], 3000)

    def test_nobody_reads_the_answer(self):
        daemon = self.start()
        self.write({"changes": {"debounce": 9}})
        for _ in range(50):
            daemon.ask("reload").close()
        daemon.logged("changed: [changes] debounce")
        self.assertIn("9", self.in_force("[changes] debounce"))
        self.reload({}, "nothing has changed")


class Config(Case):
    def test_what_is_in_force_and_where_it_comes_from(self):
        daemon = self.start({"security": {"admins": "root, daemon"}, "sweep.env": {"A": "b"}},
                            args=["--probe", f"file:{self.capture},prefix=0xfe80000000000001"])
        with open(daemon.conf, encoding="utf-8") as file:
            places = {line.split(" = ")[0]: f"{daemon.conf}:{n}" for n, line in enumerate(file, 1)}
        self.assertEqual(self.in_force("[fabricd] probe"), {daemon.args[1]: "command line"})
        self.assertEqual(self.in_force("[fabricd] interval"), {"0": places["interval"]})
        self.assertEqual(self.in_force("[fabricd] deadline"), {"60": "default"})
        self.assertEqual(self.in_force("[fabricd] vendor"), {None: "default"})
        self.assertEqual(self.in_force("[security] admins"), {"root daemon": places["admins"]})
        self.assertEqual(self.in_force("[security] remote"), {"no": "default"})
        self.assertEqual(self.in_force("[sweep.env] A"), {"b": places["A"]})
        text = daemon.ctl("config").stdout
        self.assertRegex(text, r"^SECTION +NAME +VALUE +FROM\n")
        self.assertRegex(text, rf"\nfabricd +interval +0 +{re.escape(places['interval'])}\n")
        self.assertRegex(text, r"\nfabricd +vendor +- +default\n")
        self.assertEqual(daemon.control("config")["file"], daemon.conf)
        with open(daemon.conf, encoding="utf-8") as file:
            moved = "# one line more\n" + file.read()
        lab.replace_file(daemon.conf, moved)
        self.assertEqual(daemon.ctl("reload").stdout, "nothing has changed\n")
        self.assertNotEqual(self.in_force("[fabricd] interval"), {"0": places["interval"]})

    def test_every_setting_of_the_manual_is_told(self):
        daemon = self.start()
        with open(os.path.join(lab.ROOT, "docs", "fabricd.conf.5"), encoding="utf-8") as file:
            manual = file.read()
        for section in re.findall(r"^\.Ss \[(\S+)\]\n((?:(?!^\.Ss|^\.Sh).*\n)*)", manual, re.MULTILINE):
            told = {row["name"] for row in daemon.ctl_json("config") if row["section"] == section[0]}
            self.assertEqual(told, set(re.findall(r"^\.It Cm (\w+)$", section[1], re.MULTILINE)), section[0])

    def test_the_level_of_the_log(self):
        daemon = self.start()
        done = daemon.ctl("log", "error")
        self.assertEqual((done.returncode, done.stdout),
                         (0, "the log has the level error until the daemon reads its configuration again\n"))
        self.assertEqual(self.in_force("[fabricd] log"), {"error": "fabricctl log"})
        start = len(daemon.log())
        lab.replace_file(self.capture, self.whole.replace('"node0001', '"other'))
        daemon.refresh()
        self.assertEqual(self.log_since(start), [])
        self.assertEqual(daemon.ctl_json("log", "debug"), {"level": "debug"})
        lab.replace_file(self.capture, self.whole)
        daemon.refresh()
        self.assertTrue([line for line in self.log_since(start) if line.startswith("debug: ")])
        self.assertEqual(daemon.ctl("--format", "csv", "log", "debug").stdout, "level\ndebug\n")
        done = daemon.ctl("log", "loud")
        self.assertEqual((done.returncode, done.stderr),
                         (1, 'fabricctl: log is "loud": it can be one of error, warning, info, debug\n'))
        self.assertEqual(daemon.control("log")["error"], -5)
        self.assertEqual(self.in_force("[fabricd] log"), {"debug": "fabricctl log"})
        self.reload({}, "changed: [fabricd] log")
        self.assertEqual(self.in_force("[fabricd] log"), {"info": "default"})


class Node(Case):
    def test_reload_config_and_log(self):
        scheduler = self.start()
        node = self.daemon = lab.Fabricd(start=False)
        self.sections = {"fabricd": {"role": "node", "scheduler": scheduler.uri(), "rundir": node.rundir,
                                     "probe": "ethernet"}}
        self.write()
        node.start()
        self.addCleanup(node.stop)
        self.assertEqual(self.in_force("[fabricd] interval"), {"3600": "default"})
        scans, start = node.until("scan", after=0)["count"], len(node.log())
        metrics = os.path.join(node.rundir, "node.prom")
        self.reload({"fabricd": {"interval": 1}, "metrics": {"file": metrics}}, "changed: [fabricd] interval, [metrics] file")
        node.until("scan", after=scans)
        self.assertTrue(os.path.exists(metrics))
        self.reload({"fabricd": {"interval": None, "host": "other"}}, "changed: [fabricd] interval",
                    "restart for: [fabricd] host")
        self.assertEqual(node.status()["interval"], 3600)
        lab.replace_file(node.conf, "[fabricd]\nrole = node\nprobe = ibnetdisc\n")
        done = node.ctl("reload")
        self.assertEqual((done.returncode, done.stderr.splitlines()), (1, [
            f"fabricctl: {node.conf}:2:8: the role node needs to know its scheduler: --scheduler URI, the line in "
            "fabricd.uri on the scheduler's host",
            f'fabricctl: {node.conf}:3:9: probe "ibnetdisc" asks the fabric: that is for the role scheduler',
            "fabricctl: the configuration is not taken: 2 mistakes; what was in force stays"]))
        self.assertEqual(node.status()["interval"], 3600)
        self.write({"fabricd": {"host": None}})
        node.hup()
        self.assertEqual(self.log_since(start)[-1], "info: the configuration is read again: nothing has changed")
        self.assertEqual(node.ctl("log", "debug").returncode, 0)
        self.assertEqual(self.in_force("[fabricd] log"), {"debug": "fabricctl log"})


@unittest.skipIf(os.geteuid() != 0, "only root can try as another user")
class Exports(Case):
    def test_formats_are_those_of_fabricctl(self):
        daemon = self.start({"exports.files": {name: name for name in FORMATS.split(", ")}})
        done = daemon.run_once("--check-config")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name in FORMATS.split(", "):
            self.assertEqual(daemon.ctl("export", name, "-o", os.path.join(self.dir, name)).returncode, 0, name)
        for wrong in ("", "dott", "do", "dot,", "npy, csv", "-o"):
            self.write({"exports.files": {"dot": wrong}})
            done = daemon.run_once("--check-config")
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, rf'^fabricd: {daemon.conf}:\d+:\d+: dot is "{wrong}": give a format of fabricctl export, '
                                          rf"then its options: {FORMATS}\n$")
        self.assertTrue(daemon.ctl("export", "dott").stderr.endswith(f"no such format: dott: there are {FORMATS}\n"))


@unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
class StoreOfTheService(Case):
    """--check-config judges for the user that the service runs as: this one, or asked by root the user fabricd."""

    def setUp(self):
        super().setUp()
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}}, start=False)
        self.folder = os.path.join(self.dir, "store")
        os.mkdir(self.folder)
        self.store = os.path.join(self.folder, "fabricd.db")
        self.daemon.configure({"fabricd": {"rundir": self.daemon.rundir, "probe": f"file:{self.capture}",
                                           "store": self.store}})
        for folder in (self.dir, self.daemon.dir):
            os.chmod(folder, 0o755)
        self.daemon.binary, self.daemon.env = lab.readable_copy(self.daemon.binary, self.daemon.env)
        os.chmod(os.path.dirname(self.daemon.binary), 0o755)

    def check(self, who, **options):
        good = (0, "the configuration is good\n", "")
        done = self.daemon.run_once("--check-config", **options)
        wrong = f'fabricd: {self.daemon.conf}:4:9: store: "%s" cannot be written by user {who}: Permission denied\n'
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", wrong % self.folder))
        os.chown(self.folder, 65534, 65534)
        done = self.daemon.run_once("--check-config", **options)
        self.assertEqual((done.returncode, done.stdout, done.stderr), good)
        with open(self.store, "w", encoding="utf-8"):  # as one that root restored
            pass
        os.chmod(self.store, 0o600)
        done = self.daemon.run_once("--check-config", **options)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", wrong % self.store))
        os.chown(self.store, 65534, 65534)
        done = self.daemon.run_once("--check-config", **options)
        self.assertEqual((done.returncode, done.stdout, done.stderr), good)

    def test_asked_by_the_user(self):
        self.check("nobody", user=65534, group=65534, extra_groups=[])

    def test_asked_by_root(self):
        lab.require("unshare", "mount")
        if lab.run(["unshare", "--mount", "true"]).returncode != 0:
            self.skipTest("no namespaces here")
        users = os.path.join(self.dir, "passwd")
        with open("/etc/passwd", encoding="utf-8") as file:
            known = [line for line in file if not line.startswith("fabricd:")]
        lab.replace_file(users, "".join(known) + "fabricd:x:65534:65534::/nonexistent:/bin/false\n")
        command = self.daemon.command
        self.daemon.command = lambda *args: ["unshare", "--mount", "sh", "-c",
                                             f'mount --bind {users} /etc/passwd && exec "$@"', "sh", *command(*args)]
        self.check("fabricd")

    def test_metrics(self):
        """Of the service's user, too: the node exporter's folder is root's."""
        os.chown(self.folder, 65534, 65534)
        theirs = os.path.join(self.dir, "collector")
        os.mkdir(theirs)
        self.daemon.configure({"fabricd": {"rundir": self.daemon.rundir, "probe": f"file:{self.capture}", "store": self.store},
                               "metrics": {"file": f"{theirs}/fabricd.prom"}})
        done = self.daemon.run_once("--check-config", user=65534, group=65534, extra_groups=[])
        self.assertEqual(done.returncode, 2)
        self.assertIn(f'file: no file can be made in "{theirs}" by user nobody: Permission denied; let that user write there, as by '
                      "setfacl -m u:nobody:rwx, or set [metrics] listen instead\n", done.stderr)
        os.chown(theirs, 65534, 65534)
        self.assertEqual(self.daemon.run_once("--check-config", user=65534, group=65534, extra_groups=[]).returncode, 0)

    def test_there_is_no_folder(self):
        os.rmdir(self.folder)
        done = self.daemon.run_once("--check-config")
        self.assertEqual((done.returncode, done.stderr), (
            2, f'fabricd: {self.daemon.conf}:4:9: store: there is no folder "{self.folder}": make it first\n'))


if __name__ == "__main__":
    unittest.main()
