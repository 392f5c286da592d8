"""Packages in a fresh Debian 12: installed with all that they need, used, upgraded, removed, purged. And in a machine
with a running systemd: what starts, starts anew and stops by itself."""
import functools
import glob
import json
import os
import re
import shutil
import subprocess
import unittest

import booted
import debian
import lab

OURS = ["fabric-host", "fabricctl", "fabricd", "libpmixfab-dev", "libpmixfab0", "pmix-fabricd", "pmix-guard", "python3-pmixfab"]
CONFIG = "[fabricd]\nprobe = file:/srv/fabric\n"
AS_USER = ["setpriv", "--reuid=fabricd", "--regid=fabricd", "--init-groups"]


def field(deb, *names):
    return lab.run(["dpkg-deb", "--field", deb, *names]).stdout.strip()


def change(path, *changes):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for old, new in changes:
        text = text.replace(old, new)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def before_the_server(tree):
    """As it was while the daemon was one unit, which started its own PMIx server."""
    units = os.path.join(tree, "lib", "systemd", "system")
    os.unlink(os.path.join(units, "fabricd-pmix.service"))
    for unit in glob.glob(os.path.join(units, "*")):
        change(unit, (" --pmix-unit", ""), ("Wants=fabricd-pmix.service\n", ""), ("rdma", "rdma"))
    change(os.path.join(tree, "usr", "lib", "sysusers.d", "fabricd.conf"), ("u fabricd-pmix", "#"))
    for script in glob.glob(os.path.join(tree, "DEBIAN", "p*")):
        change(script, ("'fabricd-pmix.service'", ""), ("fabricd-pmix.service", ""))
    with open(os.path.join(tree, "DEBIAN", "md5sums"), "w", encoding="ascii"):
        pass


def older(deb, folder):
    """The same package with a lower version."""
    tree = os.path.join(lab.tmpdir(), "tree")
    subprocess.run(["dpkg-deb", "--raw-extract", deb, tree], check=True)
    if os.path.exists(os.path.join(tree, "lib", "systemd", "system")):
        before_the_server(tree)
    control = os.path.join(tree, "DEBIAN", "control")
    change(control, (field(deb, "Version"), field(deb, "Version") + "~before"))
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, folder], check=True, stdout=subprocess.DEVNULL)


@functools.lru_cache(maxsize=None)
def built():
    """{folder: its packages}: "new", as ./dev package makes them, and "old", the same with a lower version."""
    lab.require("dpkg-buildpackage", "dh", "lintian", "chrpath")
    if lab.SANITIZE:
        raise unittest.SkipTest("packages are built by themselves, without sanitizers")
    new, old = lab.tmpdir(), lab.tmpdir()
    done = lab.run([os.path.join(lab.ROOT, "dev"), "package", new], timeout=1200)
    if done.returncode != 0:
        raise AssertionError(f"./dev package, or lintian:\n{done.stderr[-6000:]}")
    for deb in glob.glob(os.path.join(new, "*.deb")):
        older(deb, old)
    return {"new": glob.glob(os.path.join(new, "*.deb")), "old": glob.glob(os.path.join(old, "*.deb"))}


def setUpModule():
    built()  # what it makes lives as long as the module


class Life(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        debian.need()
        debs = built()
        cls.root = debian.Root()
        cls.addClassCleanup(cls.root.end)
        for folder, paths in debs.items():
            os.mkdir(cls.root.inside("/" + folder))
            for path in paths:
                shutil.copy(path, cls.root.inside("/" + folder))

    def deb(self, folder, name):
        """Its path in the root."""
        found = glob.glob(self.root.inside(f"/{folder}/{name}_*.deb"))
        return f"/{folder}/{os.path.basename(found[0])}"

    def install(self, folder):
        return self.root.do("apt-get", "-q", "-y", "install", *(self.deb(folder, name) for name in OURS))

    def fabricd(self, generation):
        """Start it as the service's unit does, and wait until it serves this generation."""
        unit = self.root.do("cat", "/lib/systemd/system/fabricd.service")
        command = re.search(r"^ExecStart=(.*)", unit, re.MULTILINE).group(1).split()
        self.assertIn("User=fabricd", unit)
        if "--pmix-unit" in command:
            self.pmix_pid()
        self.root.do("install", "-d", "-o", "fabricd", "-g", "fabricd", "/run/fabricd")  # RuntimeDirectory=
        daemon = self.root.spawn([*AS_USER, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)
        log = lab.Lines(daemon.stdout)

        def served():
            self.assertIsNone(daemon.poll(), log.text)
            done = self.root.run(["fabricctl", "--format", "json", "status"])
            return done.returncode == 0 and json.loads(done.stdout).get("generation") == generation
        try:
            lab.wait_for(served, what=f"generation {generation}")
        except lab.LabError as error:
            raise AssertionError(f"{error}:\n{log.text}") from None
        return daemon

    def pmix_pid(self):
        """Start the PMIx server as its unit does."""
        unit = self.root.do("cat", "/lib/systemd/system/fabricd-pmix.service")
        command = re.search(r"^ExecStart=(.*)", unit, re.MULTILINE).group(1).replace("${RUNTIME_DIRECTORY}", "/run/fabricd-pmix")
        self.root.do("install", "-d", "-o", "fabricd-pmix", "-g", "fabricd-pmix", "/run/fabricd-pmix")
        self.root.spawn([word.replace("fabricd", "fabricd-pmix") for word in AS_USER] + command.split(),
                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self, daemon):
        self.root.do("sh", "-c", "kill $(grep -lx fabricd /proc/[0-9]*/comm | cut -d/ -f3)")
        self.assertEqual(daemon.wait(lab.HUNG), 0)

    def store(self):
        """Who owns what of the state."""
        return {path: told for path, told in self.root.files().items() if path.startswith("/var/lib/fabricd")}

    def test_install_use_upgrade_purge(self):
        root = self.root
        # What they need is found from a fresh system on, and does not count as theirs.
        plan = root.do("apt-get", "-s", "install", *(self.deb("old", name) for name in OURS))
        needed = [name for name in re.findall(r"^Inst (\S+)", plan, re.MULTILINE) if name not in OURS]
        for name in ("libpmix2", "libucx0", "libfabric1", "libibverbs1", "munge"):
            self.assertIn(name, needed)
        self.assertNotIn("lldpd", needed, "it would speak on the network")
        root.do("apt-get", "-q", "-y", "install", *needed)
        root.write("/srv/fabric", lab.fabric("fattree2:4,2,4", "capture"))
        before = root.files()

        self.install("old")
        self.check_installed()
        for own in (False, True):  # that of the package, and the administrator's
            if own:
                root.write("/etc/fabricd.conf", CONFIG)
            root.do(*AS_USER, "fabricd", "--check-config")
        self.stop(self.fabricd(1))
        state = self.store()
        user = root.do("id", "-u", "fabricd").strip()
        self.assertEqual({str(told[1]) for told in state.values()}, {user})
        self.assertIn("/var/lib/fabricd/fabricd.db", state)

        self.install("new")
        self.assertEqual(root.do("dpkg-query", "-W", "-f", "${Version}", "fabricd"),
                         field(root.inside(self.deb("new", "fabricd")), "Version"))
        self.assertEqual(root.do("cat", "/etc/fabricd.conf"), CONFIG, "the administrator's")
        self.assertEqual(self.store(), state)
        root.write("/srv/fabric", lab.fabric("fattree2:4,2,4", "capture").replace('"node0001', '"other0001'))
        daemon = self.fabricd(2)
        self.assertEqual(root.do("python3", "-c", "import pmixfab; print(pmixfab.open_rundir().info.n_hosts)").strip(), "16")
        self.stop(daemon)

        state = self.store()
        root.do("apt-get", "-q", "-y", "remove", *OURS)
        self.assertFalse(os.path.exists(root.inside("/usr/sbin/fabricd")))
        self.assertEqual(self.store(), state)
        self.assertEqual(root.do("cat", "/etc/fabricd.conf"), CONFIG)

        root.do("apt-get", "-q", "-y", "purge", "fabricd")  # of the others nothing is left to purge
        self.assertNotRegex(root.do("dpkg", "--get-selections"), "|".join(OURS))
        after = root.files()
        self.assertEqual({path: told for path, told in after.items() if before.get(path) != told}, {})
        self.assertEqual(sorted(set(before) - set(after)), [])

    def check_installed(self):
        root = self.root
        enabled = [path for path in root.files() if re.match(r"/etc/systemd/system/.*fabricd", path)]
        self.assertEqual(enabled, [], "which role, if any, is the administrator's to say")
        self.assertIn("rdma", root.do("id", "-Gn", "fabricd").split())
        available = root.run(["fabricd", "--available"]).stdout
        for probe in ("ibnetdisc", "hwloc", "verbs", "libfabric", "ucx", "ethernet"):
            self.assertRegex(available, f"(?m)^{probe} ")
            self.assertNotRegex(available, f"(?m)^{probe} .*(cannot open shared object|not built)")
        version = field(root.inside(self.deb("old", "pmix-fabricd")), "Depends")
        self.assertRegex(version, r"libpmix2 \(>= ([\d.]+)\), libpmix2 \(<< \1\.~\)")
        for name in OURS:
            self.assertEqual(root.run(["dpkg", "--verify", name]).stdout, "")


class Service(unittest.TestCase):
    """The scripts of the package, beside a systemd that runs."""

    def setUp(self):
        booted.need()
        debs = built()
        self.machine = booted.Machine()
        self.addCleanup(self.machine.shutdown)
        self.machine.do("rm", "-f", "/usr/sbin/policy-rc.d")
        for folder, paths in debs.items():
            self.machine.do("mkdir", f"/srv/{folder}")
            for path in paths:
                with open(path, "rb") as file:
                    to = f"/srv/{folder}/{os.path.basename(path)}"
                    self.assertEqual(self.machine.run(["sh", "-c", 'cat >"$0"', to], stdin=file).returncode, 0)

    def install(self, folder):
        self.machine.do("sh", "-c", f"dpkg --install /srv/{folder}/fabric*.deb /srv/{folder}/libpmixfab0*.deb /srv/{folder}/pmix-guard*.deb")

    def states(self, what):
        return [self.machine.run(["systemctl", what, unit]).stdout.strip() for unit in ("fabricd", "fabricd-node")]

    def generation(self):
        done = self.machine.run(["fabricctl", "--format", "json", "status"])
        return json.loads(done.stdout).get("generation") if done.returncode == 0 else None

    def register(self):
        """What a scheduler gets that knows of the stock library only, and sets nothing."""
        return self.machine.run(["sh", "-c", f"printf 'register 0\\nquit\\n' | {lab.program('stock_scheduler')}"]).stdout

    def test_a_role_is_chosen_and_goes_on(self):
        machine = self.machine
        self.install("old")
        self.assertEqual(self.states("is-enabled"), ["disabled", "disabled"])
        self.assertEqual(self.states("is-active"), ["inactive", "inactive"])
        self.install("new")
        self.assertEqual(self.states("is-active"), ["inactive", "inactive"], "nor does an upgrade start one")

        self.install("old")
        machine.write("/srv/fabric", lab.fabric("fattree2:4,2,4", "capture"))
        machine.write("/etc/fabricd.conf", CONFIG)
        machine.do("systemctl", "enable", "--now", "fabricd")
        lab.wait_for(lambda: self.generation() == 1, what="the first generation")
        before = machine.main_pid("fabricd")
        self.install("new")
        machine.wait_state("fabricd", "active")
        self.assertNotIn(machine.main_pid("fabricd"), (0, before), "it is the new program that runs")
        lab.wait_for(lambda: self.generation() == 1, what="what was served before")
        self.assertEqual(self.states("is-active"), ["active", "inactive"])
        server = json.loads(machine.do("fabricctl", "--format", "json", "status"))["pmix"]
        self.assertEqual((server["separated"], server["pid"]), (True, machine.main_pid("fabricd-pmix")))
        self.assertEqual(machine.do("stat", "-c", "%U", f"/proc/{server['pid']}").strip(), "fabricd-pmix")
        self.assertNotIn("registered SUCCESS", self.register())
        machine.do("sh", "-c", "dpkg --install /srv/new/pmix-fabricd*.deb")
        self.assertIn("registered SUCCESS", self.register())
        self.assertEqual(machine.read("/etc/fabricd.conf"), CONFIG)

        machine.do("dpkg", "--remove", "fabricd")
        self.assertEqual(machine.run(["pgrep", "-x", "fabricd"]).returncode, 1, "none")
        machine.do("dpkg", "--purge", "fabricd")
        self.assertEqual(self.machine.run(["systemctl", "is-active", "fabricd-pmix"]).stdout, "inactive\n")
        left = machine.do("find", "/etc", "/run", "/var/lib", "-name", "*fabricd*")
        self.assertEqual([path for path in left.split() if "/dpkg/" not in path], [])


if __name__ == "__main__":
    unittest.main()
