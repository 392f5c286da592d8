"""What both logs say of a node that may not, or delivers too often; and what the kernel tells of a device."""
import glob
import os
import pwd
import unittest

import lab
import test_node

LISTEN = """
import socket, sys
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)
s.bind((0, 1))
s.settimeout(5)
print("listening", flush=True)
try:
    while b"SUBSYSTEM=pci" not in s.recv(65536):
        pass
    print("heard", flush=True)
except socket.timeout:
    print("nothing", flush=True)
"""


class Case(test_node.Case):
    def both_say(self, node, text):
        node.logged(text)
        self.scheduler.logged(text)

    def test_another_user(self):
        """A node that runs as somebody who may not; the last good report stays."""
        node = self.node(firmware="20.31.1014")
        node.wait_delivered()
        self.wait_published("20.31.1014")
        node.kill9()
        self.record("node0001", "20.40.2000")
        nobody = pwd.getpwnam("nobody").pw_uid
        os.chmod(self.dir, 0o755)
        for folder, _, files in os.walk(node.dir):
            for path in (folder, *(os.path.join(folder, file) for file in files)):
                os.chown(path, nobody, -1)
        whole = node.command
        node.command = lambda *args: [*node.on.prefix(), "setpriv", f"--reuid={nobody}", "--clear-groups",
                                      *whole(*args)[len(node.on.prefix()):]]
        node.start(wait=False)
        node.wait_status(lambda status: status["refused"], "to be refused")
        self.both_say(node, f"node0001: uid {nobody} on {test_node.NODES['node0001']} may not report for a host: "
                            "only root")
        self.assertTrue(self.published("20.31.1014"))

    def test_too_often(self):
        """The rate is bounded; nothing is lost of it: in the end the last one is there."""
        node = self.node(firmware="20.0.0")
        node.wait_delivered()
        text = "node0001 delivers more often than once a second: try again later"
        for turn in range(100):
            self.record("node0001", f"20.1.{turn}")
            before = node.status()["last_scan"]
            node.look()
            node.wait_status(lambda status, old=before: status["last_scan"] != old, "to look")
            if text in node.log():
                break
        self.both_say(node, text)
        self.wait_published(f"20.1.{turn}")

    def test_an_event_of_a_device(self):
        node = self.node(firmware="20.31.1014")
        node.wait_delivered()
        listener = lab.Watch([*node.on.prefix(), "/usr/bin/python3", "-c", LISTEN], dict(os.environ))
        self.addCleanup(listener.stop)
        listener.wait("listening")
        before = node.status()["last_scan"]
        try:
            with open(sorted(glob.glob("/sys/bus/pci/devices/*/uevent"))[0], "w", encoding="ascii") as file:
                file.write("change")
        except (IndexError, OSError) as error:
            self.skipTest(f"the kernel makes no event of a PCI device here: {error}")
        if listener.wait("^(heard|nothing)$").group(1) == "nothing":
            self.skipTest("the kernel tells this namespace nothing of PCI devices")
        node.wait_status(lambda status: status["last_scan"] != before, "to look")
        self.assertIn("devices: a device has changed", node.log())


if __name__ == "__main__":
    unittest.main()
