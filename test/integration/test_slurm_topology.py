"""The installed service keeps Slurm's topology right: fabricd exports to its own folder, fabricd-slurm puts it in place as
Slurm's user, and Debian's slurmctld has it."""
import json
import os
import re
import subprocess
import unittest

import booted
import lab
import test_service

SERVICE, PATH = "fabricd-slurm@topology.conf.service", "fabricd-slurm@topology.conf.path"
EXPORTED, PLACE, CAPTURE = "/var/lib/fabricd/exports", "/var/lib/fabricd-slurm", "/etc/fabric.txt"
CONFIG = f"[fabricd]\nprobe = file:{CAPTURE}\ninterval = 0\n[exports]\npace = 1\n[exports.files]\ntopology.conf = slurm-tree\n[slurm]\nround = 1\n"
SLURM = """
ClusterName=lab
SlurmctldHost=booted(10.91.7.1)
SlurmUser=slurm
AuthType=auth/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
TopologyPlugin=topology/tree
StateSaveLocation=/var/lib/slurm-state
SlurmctldLogFile=/var/log/slurm-lab.log
NodeName=node[0001-0016],other[0001-0099] NodeAddr=10.91.7.1 CPUs=1
PartitionName=all Nodes=ALL Default=YES State=UP
"""


class Slurm(unittest.TestCase):
    """As docs/operations.md says it, on one machine."""

    @classmethod
    def setUpClass(cls):
        lab.require("slurmctld", "scontrol", "munged")
        if lab.SANITIZE:
            raise unittest.SkipTest("sanitizers need what the units forbid: ptrace, personality")
        cls.machine = machine = booted.Machine()
        cls.addClassCleanup(machine.shutdown)
        test_service.install(machine)
        cls.text, cls.n = lab.fabric("fattree2:4,2,4", "capture"), 0
        # Slurm takes no address of a host that has only the loopback interface.
        machine.do("ip", "link", "add", "net0", "type", "veth", "peer", "name", "net1")
        machine.do("ip", "addr", "add", "10.91.7.1/24", "dev", "net0")
        machine.do("ip", "link", "set", "net0", "up")
        machine.write(CAPTURE, cls.text)
        machine.write("/etc/fabricd.conf", CONFIG)
        machine.write("/etc/slurm/slurm.conf", SLURM)
        machine.do("install", "-d", "-o", "slurm", "/var/lib/slurm-state")
        machine.do("install", "-o", "slurm", "/dev/null", "/var/log/slurm-lab.log")
        machine.start_munge()
        machine.do("ln", "-sf", f"{PLACE}/topology.conf", "/etc/slurm/topology.conf")
        machine.do("systemctl", "start", "fabricd")
        machine.do("systemctl", "start", PATH)
        lab.wait_for(lambda: machine.run(["test", "-e", f"{PLACE}/topology.conf"]).returncode == 0, what="the first one")
        machine.do("systemctl", "start", "slurmctld")

    @classmethod
    def change(cls):
        """Another host is at the first leaf; what Slurm is to say of that then."""
        cls.n += 1
        cls.machine.write(CAPTURE, cls.text.replace('"node0001', f'"other{cls.n:04}'))
        cls.machine.do("fabricctl", "refresh")
        cls.machine.until("idle")  # it is exported
        return f"node[0002-0004],other{cls.n:04}"

    def wait_leaf(self, nodes):
        def told():
            shown = self.machine.run(["scontrol", "show", "topology"]).stdout + "\n"  # how one is named depends on the version
            return any(line.startswith("SwitchName=leaf1 ") and line.endswith(f"Nodes={nodes}") for line in shown.splitlines())
        try:
            lab.wait_for(told, what=f"{nodes} at leaf1")
            lab.wait_for(lambda: self.machine.show(SERVICE, "ActiveState") == "inactive", what="that Slurm was told")
        except lab.LabError as error:
            units = [f"--unit={unit}" for unit in ("fabricd", SERVICE, PATH, "slurmctld")]
            raise AssertionError(f"{error}: {self.machine.do('journalctl', '--no-pager', '--quiet', '-n', '40', *units)}") from None

    def told(self):
        """How often Slurm was told."""
        return self.machine.text("slurmctld").count("Processing Reconfiguration Request")

    def exports(self):
        return json.loads(self.machine.do("fabricctl", "--format", "json", "status"))["exports"]

    def test_slurm_has_what_fabricd_serves(self):
        machine = self.machine
        self.assertEqual(machine.show(SERVICE, "StartLimitIntervalUSec"), "0")  # it is started as often as something changes
        for _ in range(2):
            self.wait_leaf(self.change())
        self.assertRegex(machine.do("fabricctl", "status"), r"(?m)^export +topology.conf, of generation \d+, ")
        lab.wait_for(lambda: re.search(rf"(?m)^slurm +agrees with {EXPORTED}/topology.conf, ", machine.do("fabricctl", "status")),
                     what="fabricd's own comparison")
        self.assertEqual(machine.do("stat", "-c", "%U %a", f"{EXPORTED}/topology.conf").split(), ["fabricd", "644"])
        self.assertEqual(machine.do("stat", "-c", "%U %a", f"{PLACE}/topology.conf").split(), ["slurm", "644"])
        self.assertEqual(machine.show(PATH, "ActiveState"), "active")
        self.assertEqual(machine.read(f"{PLACE}/topology.conf"), machine.read(f"{EXPORTED}/topology.conf"))
        self.assertEqual(machine.do("scontrol", "show", "topology").count("SwitchName="), 5)
        inode, log = machine.do("stat", "-c", "%i", f"{PLACE}/topology.conf"), self.told()
        machine.write(CAPTURE, machine.read(CAPTURE).replace("4xHDR", "4xEDR"))  # nothing to Slurm
        machine.do("fabricctl", "refresh")
        machine.do("systemctl", "restart", "fabricd")
        machine.until("idle")
        machine.do("systemctl", "start", SERVICE)
        self.assertEqual((machine.do("stat", "-c", "%i", f"{PLACE}/topology.conf"), self.told()), (inode, log))
        machine.do("systemctl", "stop", PATH)  # what changes while nobody watches
        nodes = self.change()
        machine.do("systemctl", "start", PATH)
        self.wait_leaf(nodes)

    def test_a_controller_that_hangs_or_is_away(self):
        machine = self.machine
        self.wait_leaf(self.change())
        machine.write(f"/run/systemd/system/{SERVICE}.d/lab.conf", "[Service]\nTimeoutStartSec=3\nRestartSec=1\n")
        machine.do("systemctl", "daemon-reload")
        machine.do("systemctl", "kill", "--signal=STOP", "slurmctld")
        nodes = self.change()
        lab.wait_for(lambda: "start operation timed out" in machine.text(SERVICE), what="the end of a command that hangs")
        self.assertEqual(machine.read(f"{PLACE}/topology.conf"), machine.read(f"{EXPORTED}/topology.conf"))
        machine.do("systemctl", "kill", "--signal=CONT", "slurmctld")
        self.wait_leaf(nodes)
        machine.do("systemctl", "stop", "slurmctld")
        nodes = self.change()
        lab.wait_for(lambda: machine.read(f"{PLACE}/topology.conf") == machine.read(f"{EXPORTED}/topology.conf"), what="the file")
        machine.do("systemctl", "start", "slurmctld")
        self.wait_leaf(nodes)
        self.assertEqual(machine.show(SERVICE, "Result"), "success")

    def test_outside_of_its_folders_the_unit_writes_nothing(self):
        self.machine.write("/etc/fabricd.conf", CONFIG.replace("[slurm]", "/etc/slurm/fabric.conf = slurm-tree\n[slurm]") + "\n")
        self.machine.do("systemctl", "restart", "fabricd")
        self.machine.until("idle")
        self.assertRegex(self.exports()[1]["why"], "/etc/slurm/fabric.conf: Read-only file system")
        self.assertEqual(self.machine.run(["test", "-e", "/etc/slurm/fabric.conf"]).returncode, 1)


class Program(unittest.TestCase):
    def test_what_is_no_file_is_not_followed(self):
        other, runs = os.path.join(lab.tmpdir(), "other"), []
        lab.replace_file(other, "what only Slurm's user can read\n")
        for make in (lambda path: os.symlink(other, path), lambda path: os.symlink("/dev/zero", path), os.mkfifo):
            folder = lab.tmpdir()
            source, target = (os.path.join(folder, name) for name in ("from", "to"))
            make(source)
            runs.append((source, subprocess.Popen([lab.program("fabricctl"), "slurm", "apply", source, "-o", target], text=True,
                                                  stderr=subprocess.PIPE)))
        for source, process in runs:
            self.assertEqual(process.communicate(timeout=lab.HUNG)[1], f"fabricctl: {source}: not a regular file\n")
            self.assertEqual(process.returncode, 1)
            self.assertEqual(os.listdir(os.path.dirname(source)), ["from"])


if __name__ == "__main__":
    unittest.main()
