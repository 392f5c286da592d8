"""The configuration while the daemon runs: read again, asked for, and refused with all that is wrong with it. (Other users, and the
store of a service: test/integration/test_configuration.py.)"""
import os
import re
import unittest

import lab
import sim

FORMATS = ("slurm-tree, slurm-block, slurm-yaml, slurm-torus3d, slurm-ring, flux-jgf, k8s-labels, volcano, nodemap, hostlist, rankfile, mpich-coords, topograph, topograph-graph, "
           "ibnetdiscover, dot, graphml, simgrid, json, npy, csv")


class Case(unittest.TestCase):
    def start(self, **sections):
        self.site = sim.Site("fattree2:2,2,2", sections)  # 4 hosts
        self.addCleanup(self.site.free)
        self.conf = self.site.save()
        return self.site

    def reload(self, sections, *lines):
        """What it answers to a file that has these settings, too."""
        self.site.configure(sections)
        self.site.save()
        done = self.site.ctl("reload")
        self.assertEqual((done.returncode, done.stderr, done.stdout.splitlines()), (0, "", list(lines)))

    def in_force(self, name):
        """{value: where it comes from}"""
        return {row["value"]: row["from"] for row in self.site.ctl_json("config")
                if f'[{row["section"]}] {row["name"]}' == name}

    def log_since(self, start):
        return re.findall(r"^ *\d+d \S+ (\w+: .*)$", self.site.log()[start:], re.MULTILINE)

    def hosts(self):
        return {device["host"] for device in self.site.ctl_json("devices")}


class Reload(Case):
    def test_nothing_has_changed(self):
        self.start()
        before, start = self.site.status(), len(self.site.log())
        self.reload({}, "nothing has changed")
        self.assertEqual(self.site.ctl_json("reload"), {"changed": [], "restart": []})
        self.site.hup()
        self.assertEqual(self.site.status(), before)  # also the time of the last sweep
        self.assertEqual(self.log_since(start), ["info: reload requested by uid 0",
                                                 "info: the configuration was reloaded: nothing has changed"] * 2
                         + ["info: SIGHUP: reloading the configuration",
                            "info: the configuration was reloaded: nothing has changed"])

    def test_what_can_change_does(self):
        site = self.start()
        hooks = []
        site.programs(lambda program: hooks.append(program.what) or {})
        hook, mapped = os.path.join(site.dir, "hook"), os.path.join(site.dir, "map")
        lab.replace_file(hook, "#!/bin/sh\n")
        os.chmod(hook, 0o755)
        lab.replace_file(mapped, '0x0000000000100000 "login1"\n')
        metrics = [os.path.join(site.rundir, name) for name in ("a.prom", "b.prom")]
        self.reload({"metrics": {"file": metrics[0]}, "names": {"map": mapped}, "changes": {"hook": hook}},
                    "changed: [names] map, [changes] hook, [metrics] file")
        self.assertTrue(os.path.exists(metrics[0]))
        self.assertTrue(site.refresh()["changed"])
        self.assertIn("login1", self.hosts())
        self.assertEqual(len(hooks), 1)
        os.unlink(metrics[0])
        self.reload({"metrics": {"file": metrics[1]}, "names": {"map": None, "pattern": "^(no)de"}},
                    "changed: [names] pattern, [names] map, [metrics] file")
        site.refresh()
        self.assertEqual(self.hosts(), {"no"})
        self.assertEqual([os.path.exists(path) for path in metrics], [False, True])

    def test_when_it_sweeps(self):
        site = self.start()
        last = site.status()["last_sweep"]
        self.reload({"fabricd": {"interval": 5}}, "changed: [fabricd] interval")
        site.advance(6)
        self.assertNotEqual(site.status()["last_sweep"], last)
        self.reload({"fabricd": {"interval": 0}}, "changed: [fabricd] interval")
        self.assertEqual(site.status()["interval"], 0)
        self.reload({"changes": {"light_sweep": 1, "debounce": 0}}, "changed: [changes] light_sweep, [changes] debounce")
        site.advance(2)
        site.pull("leaf1", 1)
        site.advance(3)
        self.assertEqual(site.generation(), 2)  # nobody asked for a sweep
        self.reload({"changes": {"light_sweep": 0}}, "changed: [changes] light_sweep")
        status = site.status()
        self.assertEqual((status["light_sweep"], status["monitoring"]), (0, None))
        self.assertFalse(site.refresh(switch="leaf1")["changed"])  # what was swept last is still known

    def test_what_is_retained_and_suppressed(self):
        site = self.start(changes={"retain_seconds": 31536000, "flap_count": 0})
        port = site.cable("leaf1", "node0001")
        site.pull("leaf1", port)
        generation = site.refresh()["generation"]
        self.assertEqual(site.status()["missing"], 1)
        self.reload({"changes": {"retain_seconds": 1}}, "changed: [changes] retain_seconds")
        site.advance(2)  # it is lost, without a sweep
        self.assertEqual((site.generation(), site.status()["missing"]), (generation + 1, 0))
        self.reload({"changes": {"flap_count": 2, "suppress": 600}}, "changed: [changes] flap_count, [changes] suppress")
        for hand in (site.plug, site.pull, site.plug):
            hand("leaf1", port)
            suppressed = site.refresh()["suppressed"]
        self.assertEqual(suppressed, 1)
        self.reload({"changes": {"flap_count": 0}}, "changed: [changes] flap_count")
        self.assertEqual(site.refresh()["suppressed"], 0)
        self.assertEqual(len(site.ctl_json("devices")), 4)

    def test_what_cannot_change_is_named(self):
        site = self.start(nodes={"debounce_ms": 500})
        lines = ("nothing has changed", "restart for: [fabricd] store, [fabricd] vendor, [nodes] user")
        before = [(row["name"], row["value"]) for row in site.ctl_json("config")]
        for _ in range(2):  # as long as it is so
            self.reload({"fabricd": {"store": site.store + ".other", "vendor": "ACME"}, "nodes": {"user": "root"}}, *lines)
        self.assertEqual([(row["name"], row["value"]) for row in site.ctl_json("config")], before)
        self.assertFalse(os.path.exists(site.store + ".other"))
        self.assertIn(f"warning: settings have changed that need a restart of fabricd: {lines[1].removeprefix('restart for: ')}", self.log_since(0))
        self.reload({"nodes": {"debounce_ms": 400}}, "changed: [nodes] debounce_ms", lines[1])
        self.assertEqual(site.ctl("--format", "csv", "reload").stdout.splitlines(), [
            "setting,what", "[fabricd] store,restart", "[fabricd] vendor,restart", "[nodes] user,restart"])
        site.stop()
        site.start()
        self.assertIn("ACME", self.in_force("[fabricd] vendor"))
        self.assertTrue(os.path.exists(site.store + ".other"))

    def test_every_setting_can_change_or_is_named(self):
        """As fabricd.conf(5) says it: of each section, and RELOAD. No value is the default."""
        site = self.start()
        other = {"fabricd": dict(host="other", rundir=site.rundir + "2", store=site.store + "2", probe="file:/etc/fabric", interval=77, deadline=7,
                                 log="error", cost_model="hops", groups="pod", default_plane="ib9", vendor="ACME"),
                 "fabric": dict(compute="mlx5_*"),
                 "names": dict(pattern="^(no)de", switch_pattern="^(le)af", map="/dev/null"),
                 "ibnetdisc": dict(max_smps=7, timeout_ms=7, retries=7),
                 "nodes": dict(user="root", listen="lo", port=7, debounce_ms=77, mirror_delay_ms=7), "node": dict(scheduler_user="root", serve="yes"),
                 "ethernet": {"roce": "10.0.0.0/8"}, "sweep.env": {"A": "b"},
                 "changes": dict(light_sweep=7, debounce=7, debounce_max=77, counters=7, hook="/bin/true", hook_deadline=7,
                                 retain_seconds=7, flap_count=7, flap_window=7, suppress=7, suppress_max=77),
                 "exports": dict(folder=f"{site.dir}/exports", pace=7, deadline=7, max_shrink=7), "groups": dict(above="/dev/null"),
                 "slurm": dict(topologies="a=flat", round=7, apply="yes", repair="yes"), "exports.files": {"a": "slurm-tree"},
                 "exports.commands": {"a": "/bin/true"},
                 "check": dict(inactive_seconds=7, capture_seconds=7, counters_round=7, counters_rate=7), "metrics": dict(file=f"{site.dir}/m.prom", listen="127.0.0.1:9407"), "history": dict(days=7, changes=7),
                 "store": dict(keep_days=7), "endpoints": dict(quota=7), "endpoints.pools": {"ib0": "1-7"},
                 "security": dict(admins="root", remote="yes"), "pmix": dict(start="no", listen="lo", port=7, foreign_tools="no")}
        told = {(row["section"], row["name"]) for row in site.ctl_json("config")}
        lists = {("ethernet", "roce"), ("sweep.env", "A"), ("endpoints.pools", "ib0"), ("exports.files", "a"),
                 ("exports.commands", "a")}
        left_out = {("fabricd", "role"), ("fabricd", "scheduler")}  # these make it another daemon
        self.assertEqual({(section, name) for section in other for name in other[section]}, told - left_out | lists)
        with open(os.path.join(lab.ROOT, "docs", "fabricd.conf.5"), encoding="utf-8") as file:
            manual = file.read()
        for section, text in re.findall(r"^\.Ss \[(\S+)\]\n((?:(?!^\.Ss|^\.Sh).*\n)*)", manual, re.MULTILINE):
            self.assertEqual({name for there, name in told if there == section}, set(re.findall(r"^\.It Cm (\w+)$", text, re.MULTILINE)), section)
        lab.replace_file(self.conf, lab.ini(other))
        answer = site.ctl_json("reload")
        page = manual.partition(".Sh RELOAD\n")[2].partition(".El\n")[0]
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
        site = self.start(changes={"debounce": 3})
        before = site.ctl_json("config")
        lab.replace_file(self.conf, "[fabricd]\ninterval = 5\nintervall = 5\nlog = loud\nprobe = none\n[chnges]\nx = 1\n"
                                    "[changes]\nhook = x\nhook = y\n[security]\nadmins = root no-such\n"
                                    "[metrics]\nfile = m\n[names]\npattern = (\nmap = /none\n[ethernet]\nib0 = x\nword\n"
                                    "[exports.files]\na.conf = dot\nb.conf =  slurm-tre --plane ib0\n")
        lines = [f"{self.conf}:{line}" for line in (
            '3:1: there is no setting "intervall" in section [fabricd]: is it interval?',
            '4:7: log is "loud": give one of error, warning, info, debug',
            '5:9: probe "none": there is no probe of this name (fabricd --help lists them)',
            '6:1: there is no section [chnges]: is it [changes]?',
            '9:8: [changes] hook: "x": give the program\'s whole path',
            '10:1: hook is set in line 9 already: remove one of them',
            '12:15: admins: there is no user "no-such" on this host',
            '14:8: file is "m": give the file\'s whole path',
            '16:11: host pattern "(": Unmatched ( or \\(',
            '17:7: map: /none: cannot be read: No such file or directory',
            '19:1: "ib0" cannot be the name of an Ethernet plane',
            '20:1: neither a [section], nor name = value, nor a comment',
            f'23:11: b.conf is "slurm-tre --plane ib0": give a format of fabricctl export, then its options: {FORMATS}')]
        lines.append("the configuration is rejected: 13 mistakes; the old settings stay in force")
        done = site.ctl("reload")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr.splitlines(), [f"fabricctl: {line}" for line in lines])
        self.assertEqual([error.replace("fabricd.conf", self.conf, 1) if error.startswith("fabricd.conf") else error for error in site.errors()],
                         lines)
        answer = site.control("reload")
        self.assertEqual((answer["ok"], answer["error"], answer["mistakes"] + [answer["message"]]), (False, -5, lines))
        os.unlink(self.conf)
        done = site.ctl("reload")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"fabricctl: {self.conf}: cannot be read: No such file or directory\n", done.stderr)
        self.assertEqual(site.ctl_json("config"), before)
        self.reload({"changes": {"debounce": 4}}, "changed: [changes] debounce")

    def test_while_it_sweeps(self):
        site = self.start()
        site.sweeps_take(10)
        asked = site.ask("refresh")
        self.assertTrue(site.status()["sweeping"])
        self.reload({"changes": {"debounce": 7}, "names": {"pattern": "^(no)de"}, "fabricd": {"interval": 3000}},
                    "changed: [fabricd] interval, [names] pattern, [changes] debounce")
        answer = asked.answer()
        self.assertEqual((answer["ok"], answer["generation"], answer["changed"]), (True, 2, True))
        self.assertEqual(self.hosts(), {"no"})

    def test_nobody_reads_the_answer(self):
        site = self.start()
        site.configure({"changes": {"debounce": 9}})
        site.save()
        for _ in range(50):
            site.ask("reload").close()
        site.idle()
        self.assertIn("9", self.in_force("[changes] debounce"))
        self.reload({}, "nothing has changed")


class Config(Case):
    def test_what_is_in_force_and_where_it_comes_from(self):
        site = self.start(security={"admins": "root, daemon"}, **{"sweep.env": {"A": "b"}})
        with open(self.conf, encoding="utf-8") as file:
            text = file.read()
        places = {line.split(" = ")[0]: f"{self.conf}:{n}" for n, line in enumerate(text.splitlines(), 1)}
        for name, value, place in (("[fabricd] interval", "0", places["interval"]), ("[fabricd] deadline", "60", "default"),
                                   ("[fabricd] vendor", None, "default"), ("[security] admins", "root daemon", places["admins"]),
                                   ("[security] remote", "no", "default"), ("[sweep.env] A", "b", places["A"])):
            self.assertEqual(self.in_force(name), {value: place})
        told = site.ctl("config").stdout
        self.assertRegex(told, r"^SECTION +NAME +VALUE +FROM\n")
        self.assertRegex(told, rf"\nfabricd +interval +0 +{re.escape(places['interval'])}\n")
        self.assertRegex(told, r"\nfabricd +vendor +- +default\n")
        self.assertEqual(site.control("config")["file"], self.conf)
        lab.replace_file(self.conf, "# one line more\n" + text)
        self.assertEqual(site.ctl("reload").stdout, "nothing has changed\n")
        self.assertNotEqual(self.in_force("[fabricd] interval"), {"0": places["interval"]})

    def test_the_level_of_the_log(self):
        site = self.start()
        done = site.ctl("log", "error")
        self.assertEqual((done.returncode, done.stdout),
                         (0, "the log has the level error until the daemon reads its configuration again\n"))
        self.assertEqual(self.in_force("[fabricd] log"), {"error": "fabricctl log"})
        self.assertEqual(site.ctl_json("log", "debug"), {"level": "debug"})
        self.assertEqual(site.ctl("--format", "csv", "log", "debug").stdout, "level\ndebug\n")
        done = site.ctl("log", "loud")
        self.assertEqual((done.returncode, done.stderr),
                         (1, 'fabricctl: log is "loud": give one of error, warning, info, debug\n'))
        self.assertEqual(site.control("log")["error"], -5)
        self.assertEqual(self.in_force("[fabricd] log"), {"debug": "fabricctl log"})
        self.reload({}, "changed: [fabricd] log")
        self.assertEqual(self.in_force("[fabricd] log"), {"info": "default"})


class Node(Case):
    def test_reload_config_and_log(self):
        site = self.start()
        node = sim.Node(site, "node0001")
        metrics = os.path.join(site.dir, "node.prom")

        for sections, said in (({"fabricd": {"interval": 1}, "metrics": {"file": metrics}}, "changed: [fabricd] interval, [metrics] file"),
                               ({"fabricd": {"interval": None, "host": "other"}}, "changed: [fabricd] interval"),
                               ({"fabricd": {"probe": "file:/etc/fabric"}}, 'probe "file:/etc/fabric" reads the fabric: it is for the role scheduler only')):
            node.configure(sections)
            node.hup()
            self.assertIn(said, node.log())
        self.assertIn("need a restart of fabricd: [fabricd] host", node.log())
        self.assertTrue(os.path.exists(metrics))
        self.assertEqual(node.status()["interval"], 3600)
        self.assertEqual(node.ctl("log", "debug").returncode, 0)


if __name__ == "__main__":
    unittest.main()
