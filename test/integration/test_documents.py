"""Every command that README.md and docs/operations.md show is run as it stands there, in the order in which a reader
meets it: in a booted machine, on a fabric whose hosts and switches have the names of the documents."""
import os
import re
import unittest

import booted
import lab

PROGRAM = re.compile(r"(?:\./dev|cmake|apt|systemctl|systemd-\w+|udevadm|modprobe|journalctl|fabricd|fabricctl|pquery|"
                     r"ibnetdiscover|srun|mpirun|scontrol|pmix_info|ompi_info|ldconfig)\s")
# What is written like a command and is none.
MENTIONED = {"fabricctl slurm apply", "fabricd does not answer", "fabricctl --rundir", "cmake --install"}
# What cannot be done in such a machine, or has a test of its own. One that no document shows any more is refused.
ELSEWHERE = {
    "./dev run": "test_tour", "./dev run --real": "test_tour", "./dev test": "this is it",
    "./dev bench node": "a bench", "./dev bench slurm": "a bench", "./dev bench placement": "a bench",
    "./dev package": "test_package", "apt install ./build-package/{fabricd,fabricctl,libpmixfab0}_*.deb": "test_package",
    "apt remove fabricd": "test_package", "apt purge fabricd": "test_package",
    "udevadm control --reload && udevadm trigger --subsystem-match=infiniband_mad": "the machine has no udev",
    "modprobe ib_umad": "the kernel is everybody's",
    "systemctl edit fabricd": "an editor on a terminal",
    "fabricd --role node": "test_node; the unit does it here",
    "ibnetdiscover > site.txt": "the machine has no subnet; test_probes reads such a file",
    "fabricctl slurm diff /var/lib/fabricd/exports/topology.conf": "test_slurm_kept, with a slurmctld",
    "fabricctl run": "test_run",
    "fabricctl watch": "test_watch; it goes on until somebody ends it",
    "fabricctl endpoints --free JOB PID": "test_endpoints; it needs a job that has some",
    "fabricctl diff before.txt after.txt": "test_fabricctl_lists",
    "fabricctl run -- mpirun ...": "test_run_launchers",
    "pmix_info --path libdir": "of a library that Debian 12 does not have",
}
LAUNCHES = re.compile(r"(?:fabricctl run .*)?\b(?:srun|mpirun|mpiexec)\s") # test_launch and test_run_launchers have three nodes for them
STATUS = {"systemctl status munge": 3} # no munged runs there
WORDS = {"HOST": "node017", "DIR": "/srv/scratch", "FILE": "/srv/scratch/site.db"} # what the reader fills in
CAPTURE, CONFIG, BACKUP = "/etc/fabric.txt", "/etc/fabricd.conf", "/var/backups/fabricd/fabricd.db"
SCHEDULER = f"[fabricd]\nprobe = file:{CAPTURE}\ninterval = 0\n[exports.files]\nlist = hostlist\n"


def commands(text):
    """What a reader would type: lines of indented blocks, and what stands in backquotes with an argument (once)."""
    found = []
    for part in re.finditer(r"(?m)^    +(\S.*)$|`([^`\n]+(?:\n[^`\n]+)?)`", text):
        line = re.sub(r"\s+# .*", "", part.group(1) or "")
        command = line or " ".join((part.group(2) or "").split())
        if PROGRAM.match(command + " " if line else command) and command not in MENTIONED and (line or command not in found):
            found.append(command)
    return found


def document(name):
    with open(os.path.join(lab.ROOT, name), encoding="utf-8") as file:
        return file.read()


def kinds():
    """{name: severity}, as the table in finding_list.c has them."""
    found = re.findall(r'\{\s*"([a-z-]+)",\s*FAB_SEVERITY_([A-Z]+)', document("libpmixfab/topo/changes/finding_list.c"))
    return {name: severity.lower() for name, severity in found}


class Documents(unittest.TestCase):
    def setUp(self):
        if lab.SANITIZE or os.path.realpath(lab.BUILD) != os.path.realpath(os.path.join(lab.ROOT, "build")):
            self.skipTest("the documents' build folder is build/")
        self.machine = machine = booted.Machine()
        self.addCleanup(machine.shutdown)
        # node0003 and node017, as sites call their hosts.
        self.text = re.sub(r'"node00(?!03)(\d\d)"', r'"node0\1"', lab.fabric("fattree2:8,2,4", "capture"))
        machine.write(CAPTURE, self.text)
        machine.write(CONFIG, SCHEDULER)
        machine.write("/srv/scratch/site.txt", self.text)

    def generation(self):
        return int(re.search(r"generation\s+(\d+)", self.machine.do("fabricctl", "status")).group(1))

    # -- what the text around a command says has been before

    def publish_many(self):
        while self.generation() < 21:
            at = self.generation()
            self.machine.write(CAPTURE, self.text.replace('"node001"', f'"other{at}"'))
            self.machine.do("fabricctl", "refresh")
            self.assertGreater(self.generation(), at)
        self.machine.write(CAPTURE, self.text)
        self.machine.do("fabricctl", "refresh")

    def lose(self, host):
        """Its cable and itself are not in the fabric any more."""
        cut = re.sub(rf'(?m)^\[\d+\]\t"H-.*# "{host}[ "].*\n', "", self.text)
        cut = re.sub(rf'(?ms)^vendid=[^\n]*\n(?:(?!^vendid=).)*?^Ca\t[^\n]*# "{host}[ "][^\n]*\n[^\n]*\n', "", cut)
        self.assertNotIn(f'"{host}', cut)
        self.machine.write(CAPTURE, cut)
        self.machine.do("fabricctl", "refresh")

    def before(self, command):
        do = self.machine.do
        if command in ("fabricctl forget node017", "fabricctl forget node0003"):
            self.lose(command.split()[-1])
        elif command.startswith("fabricctl diff 17"):
            self.publish_many()
        elif command == "systemctl enable --now fabricd-node":
            node = re.search(r"(?m)^ +\[fabricd\]\n +role = node\n.*", document("docs/operations.md")).group()
            self.machine.write(CONFIG, re.sub(r"(?m)^ +", "", node) + "\n")
        elif command.endswith(".schema-10"):
            do("cp", BACKUP, command.split()[-1])
        elif command.startswith("fabricd --restore"):
            do("systemctl", "stop", "fabricd")
        elif command.startswith("fabricctl --rundir"):
            do("sh", "-c", "cp /run/fabricd/*.snap /srv/scratch")
        elif "fabricd.uri" in command:  # it comes a moment after fabricd
            do("sh", "-c", "until [ -s /run/fabricd/fabricd.uri ]; do sleep 0.1; done; mkdir -p /etc/fabricd && cp /run/fabricd/fabricd.uri /etc/fabricd")

    def after(self, command):
        if "forget" in command:
            self.machine.write(CAPTURE, self.text)
            self.machine.do("fabricctl", "refresh")
        elif command == "systemctl enable --now fabricd-node":
            self.machine.do("systemctl", "disable", "--now", "fabricd-node")
            self.machine.write(CONFIG, SCHEDULER)
            if self.machine.run(["systemctl", "is-enabled", "fabricd"]).returncode == 0:
                self.machine.do("systemctl", "start", "fabricd")

    def check(self, text):
        for command in commands(text):
            if command in ELSEWHERE or LAUNCHES.match(command):
                continue
            typed = re.sub(rf"\b({'|'.join(WORDS)})\b", lambda word: WORDS[word.group()], command)
            with self.subTest(command=typed):
                self.before(typed)
                folder = lab.ROOT if re.search(r"\./|\bbuild\b", typed) else "/srv/scratch"
                done = self.machine.run(["bash", "-c", f"cd '{folder}' && {typed}"], timeout=900)
                self.assertEqual(done.returncode, STATUS.get(typed, 0), f"{typed}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
                self.after(typed)

    # -- the tests

    def test_readme(self):
        self.check(document("README.md"))

    def test_operations(self):
        # With packages: test_package.
        self.check(document("docs/operations.md").partition("\nWithout packages, ")[2])


class Findings(unittest.TestCase):
    def test_manual(self):
        """FINDINGS of fabricctl(1) has each kind, with its severity, and no other."""
        text = document("docs/fabricctl.1").partition(".Sh FINDINGS")[2].partition(".Sh ")[0]
        told = {name: severity for names, severity in re.findall(r"(?m)^\.It Cm (.+) No \((\w+)\)$", text)
                for name in names.split(" , ")}
        self.assertEqual(told, kinds())
        self.assertGreater(len(told), 15)

    def test_what_wakes_you(self):
        """Every error is in the page, and what is no error is not."""
        text = document("docs/operations.md").partition("## What wakes you")[2].partition("\n## ")[0]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
                if line.startswith("| `")]
        self.assertEqual({row[0].strip("`") for row in rows},
                         {name for name, severity in kinds().items() if severity == "error"})
        for row in rows:
            self.assertEqual(len(row), 3, row)
            self.assertTrue(all(row), row)


class Shown(unittest.TestCase):
    def test_exceptions_are_shown(self):
        shown = document("README.md") + document("docs/operations.md")
        shown = " ".join(shown.split())
        for command in MENTIONED | set(ELSEWHERE) | set(STATUS):
            with self.subTest(command=command):
                self.assertIn(command, shown)

    def test_commands_are_found(self):
        found = commands(document("docs/operations.md"))
        self.assertGreater(len(found), 50)
        for command in ("systemctl enable --now fabricd", "fabricctl refresh --host node0003", "fabricctl diff 17 21"):
            self.assertIn(command, found)


if __name__ == "__main__":
    unittest.main()
