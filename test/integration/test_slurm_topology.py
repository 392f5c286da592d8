"""The installed service keeps Slurm's topology right: fabricd exports to its own folder, fabricd-slurm puts it in place as
Slurm's user, and Debian's slurmctld has it."""
import json
import os
import unittest

import booted
import lab
import test_service

SERVICE, PATH = "fabricd-slurm@topology.conf.service", "fabricd-slurm@topology.conf.path"
EXPORTED, PLACE, CAPTURE = "/var/lib/fabricd/exports", "/var/lib/fabricd-slurm", "/etc/fabric.txt"
CONFIG = f"[fabricd]\nprobe = file:{CAPTURE}\ninterval = 0\n[exports]\npace = 1\n[exports.files]\ntopology.conf = slurm-tree\n"
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
    """As docs/operations.md says it."""

    def setUp(self):
        lab.require("slurmctld", "scontrol", "munged")
        if lab.SANITIZE:
            self.skipTest("sanitizers need what the units forbid: ptrace, personality")
        self.machine = machine = booted.Machine()
        self.addCleanup(machine.shutdown)
        test_service.install(machine)
        self.text = lab.fabric("fattree2:4,2,4", "capture")
        self.n = 0
        # Slurm takes no address of a host that has only the loopback interface.
        machine.do("ip", "link", "add", "net0", "type", "veth", "peer", "name", "net1")
        machine.do("ip", "addr", "add", "10.91.7.1/24", "dev", "net0")
        machine.do("ip", "link", "set", "net0", "up")
        machine.write(CAPTURE, self.text)
        machine.write("/etc/fabricd.conf", CONFIG)
        machine.write("/etc/slurm/slurm.conf", SLURM)
        machine.do("install", "-d", "-o", "slurm", "/var/lib/slurm-state")
        machine.do("install", "-o", "slurm", "/dev/null", "/var/log/slurm-lab.log")
        machine.start_munge()
        machine.do("ln", "-sf", f"{PLACE}/topology.conf", "/etc/slurm/topology.conf")

    def change(self):
        self.n += 1
        self.machine.write(CAPTURE, self.text.replace('"node0001', f'"other{self.n:04}'))
        self.machine.do("fabricctl", "refresh")
        return f"other{self.n:04}"

    def leaf(self):
        """What Slurm says of the first leaf."""
        done = self.machine.run(["scontrol", "show", "topology", "leaf1"])
        return done.stdout if done.returncode == 0 else ""

    def wait_leaf(self, nodes, timeout=30):
        try:
            lab.wait_for(lambda: f"Nodes={nodes}\n" in self.leaf() + "\n", what=f"{nodes} at leaf1")
        except lab.LabError as error:
            raise AssertionError(f"{error}: {self.leaf()}\n{self.journal()}") from None

    def told(self):
        """How often Slurm was told."""
        return self.machine.text("slurmctld").count("Processing Reconfiguration Request")

    def exports(self):
        return json.loads(self.machine.do("fabricctl", "--format", "json", "status"))["exports"]

    def journal(self):
        """The last lines of all that has to do with it, in their order."""
        units = [f"--unit={unit}" for unit in ("fabricd", SERVICE, PATH, "slurmctld")]
        return self.machine.do("journalctl", "--no-pager", "--quiet", "-o", "short-precise", "-n", "40", *units)

    def up(self):
        self.machine.do("systemctl", "start", "fabricd")
        self.machine.do("systemctl", "start", PATH)
        lab.wait_for(lambda: self.machine.run(["test", "-e", f"{PLACE}/topology.conf"]).returncode == 0, what="the first one")
        self.machine.do("systemctl", "start", "slurmctld")
        self.wait_leaf("node[0001-0004]")

    def test_slurm_has_what_fabricd_serves(self):
        machine = self.machine
        self.up()
        status = machine.do("fabricctl", "status")
        self.assertRegex(status, r"(?m)^export +topology.conf, of generation 1, ")
        self.assertEqual(machine.do("stat", "-c", "%U %a", f"{EXPORTED}/topology.conf").split(), ["fabricd", "644"])
        self.assertEqual(machine.do("stat", "-c", "%U %a", f"{PLACE}/topology.conf").split(), ["slurm", "644"])
        for _ in range(8):  # more than systemd starts a unit within ten seconds without a word from us
            name = self.change()
            self.wait_leaf(f"node[0002-0004],{name}")
        self.assertEqual(machine.show(PATH, "ActiveState"), "active")
        self.assertEqual(machine.read(f"{PLACE}/topology.conf"), machine.read(f"{EXPORTED}/topology.conf"))
        self.assertEqual(machine.do("scontrol", "show", "topology").count("SwitchName="), 5)

        inode, log = machine.do("stat", "-c", "%i", f"{PLACE}/topology.conf"), self.told()
        machine.write(CAPTURE, machine.read(CAPTURE).replace("4xHDR", "4xEDR"))  # nothing to Slurm
        machine.do("fabricctl", "refresh")
        machine.do("systemctl", "restart", "fabricd")
        lab.wait_for(lambda: self.exports()[0]["exported"], what="a look at it")
        machine.do("systemctl", "start", SERVICE)
        self.assertEqual((machine.do("stat", "-c", "%i", f"{PLACE}/topology.conf"), self.told()), (inode, log))

    def test_a_controller_that_hangs_or_is_away(self):
        machine = self.machine
        self.up()
        lab.wait_for(lambda: machine.show(SERVICE, "ActiveState") == "inactive", what="that Slurm was told")
        machine.write(f"/run/systemd/system/{SERVICE}.d/lab.conf", "[Service]\nTimeoutStartSec=5\nRestartSec=1\n")
        machine.do("systemctl", "daemon-reload")
        machine.do("systemctl", "kill", "--signal=STOP", "slurmctld")
        name = self.change()
        lab.wait_for(lambda: name in machine.read(f"{PLACE}/topology.conf"), what="the file")
        lab.wait_for(lambda: "start operation timed out" in machine.text(SERVICE), what="the end of a command that hangs")
        machine.do("systemctl", "kill", "--signal=CONT", "slurmctld")
        self.wait_leaf(f"node[0002-0004],{name}")
        machine.do("systemctl", "stop", "slurmctld")
        name = self.change()
        lab.wait_for(lambda: name in machine.read(f"{PLACE}/topology.conf"), what="the file")
        machine.do("systemctl", "start", "slurmctld")
        self.wait_leaf(f"node[0002-0004],{name}")
        lab.wait_for(lambda: machine.show(SERVICE, "Result") == "success", what="that Slurm was told")

    def test_what_changed_while_nobody_watched(self):
        self.up()
        self.machine.do("systemctl", "stop", PATH)
        name = self.change()
        lab.wait_for(lambda: name in self.machine.read(f"{EXPORTED}/topology.conf"), what="the export")
        self.machine.do("systemctl", "start", PATH)
        self.wait_leaf(f"node[0002-0004],{name}")

    def test_outside_of_its_folders_the_unit_writes_nothing(self):
        self.machine.write("/etc/fabricd.conf", CONFIG + "/etc/slurm/fabric.conf = slurm-tree\n")
        self.machine.do("systemctl", "start", "fabricd")
        lab.wait_for(lambda: len(self.exports()) == 2 and self.exports()[0]["generation"] == 1 and self.exports()[1]["failures"],
                     what="both attempts")
        self.assertRegex(self.exports()[1]["why"], "/etc/slurm/fabric.conf: Read-only file system")
        self.assertEqual(self.machine.run(["test", "-e", "/etc/slurm/fabric.conf"]).returncode, 1)


class Program(unittest.TestCase):
    def test_what_is_no_file_is_not_followed(self):
        folder = lab.tmpdir()
        source, target, other = (os.path.join(folder, name) for name in ("from", "to", "other"))
        lab.replace_file(other, "what only Slurm's user can read\n")
        for make in (lambda: os.symlink(other, source), lambda: os.symlink("/dev/zero", source), lambda: os.mkfifo(source)):
            make()
            done = lab.run([os.path.join(lab.ROOT, "system", "slurm-topology"), source, target])
            self.assertEqual((done.returncode, done.stderr), (1, f"{source} is no file\n"))
            self.assertEqual(sorted(os.listdir(folder)), ["from", "other"])
            os.unlink(source)


if __name__ == "__main__":
    unittest.main()
