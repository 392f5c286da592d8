"""Hardware is swapped under a running fabricd: exactly the expected words, and a host's story through all of it."""
import re
import unittest

import lab


class Netfile:
    """An ibsim netfile that an operator's hands are laid on."""

    def __init__(self, text):
        self.text = re.sub(r'^Switch \d+ ', 'Switch 20 ', text, flags=re.MULTILINE)  # room for more cables

    def replace(self, node, guid):
        """Another GUID in the place of a node."""
        block = re.search(rf'sysimgguid=\S+\n(ca|switch)guid=\S+\n\w+ \d+ "{node}"', self.text)
        new = re.sub(r"guid=\S+", f"guid={guid:#x}", block.group(0))
        self.text = self.text.replace(block.group(0), new)

    def _line(self, node, port):
        return re.search(rf'^\w+ \d+ "{node}".*\n(?:\[.*\n)*?(\[{port}\] .*\n)', self.text, re.MULTILINE)

    def _cut(self, node, port):
        found = self._line(node, port)
        self.text = self.text[:found.start(1)] + self.text[found.end(1):]
        return found.group(1)

    def move(self, node, port, switch, to_port):
        """The cable in a node's port keeps that end, the other one goes to a switch's port."""
        found = self._line(node, port)
        old, old_port = re.match(r'\[\d+\] "([^"]+)"\[(\d+)\]', found.group(1)).groups()
        line = self._cut(old, old_port)
        head = re.search(rf'^Switch 20 "{switch}".*\n', self.text, re.MULTILINE)
        self.text = self.text[:head.end()] + re.sub(r"^\[\d+\]", f"[{to_port}]", line) + self.text[head.end():]
        found = self._line(node, port)
        near = found.group(1).replace(f'"{old}"[{old_port}]', f'"{switch}"[{to_port}]')
        self.text = self.text[:found.start(1)] + near + self.text[found.end(1):]

    def rate(self, node, port, rate):
        found = self._line(node, port)
        far, far_port = re.match(r'\[\d+\] "([^"]+)"\[(\d+)\]', found.group(1)).groups()
        for end, num in ((node, port), (far, far_port)):
            found = self._line(end, num)
            line = re.sub(r"4xHDR$", rate, found.group(1), flags=re.MULTILINE)
            self.text = self.text[:found.start(1)] + line + self.text[found.end(1):]


def words(changes):
    return [(one["kind"], one["what"], one["before"], one["after"]) for one in changes]


class Swaps(unittest.TestCase):
    def setUp(self):
        lab.require("ibsim", "opensm")
        self.net = Netfile(lab.fabric("fattree2:3,2,3"))
        self.sim = lab.Ibsim(self.net.text)
        self.addCleanup(self.sim.quit)
        self.manager = None
        self.addCleanup(lambda: self.manager.stop())
        self.bring_up()
        self.daemon = lab.Fabricd(self.sim, config={"fabricd": {"interval": 0}})
        self.addCleanup(self.daemon.stop)
        self.daemon.wait_ready()

    def bring_up(self):
        self.manager = lab.OpenSM(self.sim)
        self.manager.wait_up()

    def ctl_json(self, *args):
        return self.daemon.ctl_json(*args)

    def swap(self):
        """The fabric as it is written now, swept: what `diff` says of it."""
        self.manager.stop()
        self.sim.quit()
        with open(self.sim.netfile, "w", encoding="utf-8") as file:
            file.write(self.net.text)
        self.sim.restart()
        self.bring_up()
        answer = self.ctl_json("refresh")
        self.assertTrue(answer["changed"], answer)
        # LIDs are dealt anew by the subnet manager when it starts
        return [one for one in self.ctl_json("diff")["changes"] if one["kind"] != "lid"]

    def test_one_story_of_a_host(self):
        self.net.replace("node0002", 0x990002)
        changes = self.swap()
        self.assertEqual(words(changes), [
            ("hca-replaced", "node0002 HCA-1", "0x0000000000100002", "0x0000000000990002")])
        self.assertEqual(changes[0]["why"],
                         "another GUID under the same host's and device's name at the same port leaf1[2]")
        self.assertEqual(changes[0]["subjects"], ["node0002", "leaf1"])
        self.assertFalse(changes[0]["planned"])
        self.assertLessEqual(changes[0]["last_seen"], changes[0]["first_seen"])
        self.assertLessEqual(changes[0]["first_seen"], changes[0]["time"])

        self.net.move("node0002", 1, "leaf2", 15)
        self.assertEqual(words(self.swap()), [("host-moved", "node0002 HCA-1[1]", "leaf1[2]", "leaf2[15]")])

        self.net.replace("leaf2", 0x9a0002)
        changes = self.swap()
        self.assertEqual(words(changes), [("switch-replaced", "leaf2", "0x0000000000200001", "0x00000000009a0002")])
        self.assertEqual(changes[0]["why"], "6 of its 6 cables lead to another switch now")

        self.net.replace("node0002", 0x980002)
        self.net.move("node0002", 1, "leaf1", 2)
        self.assertEqual(words(self.swap()), [
            ("hca-replaced", "node0002 HCA-1", "0x0000000000990002", "0x0000000000980002"),
            ("host-moved", "node0002 HCA-1[1]", "leaf2[15]", "leaf1[2]")])

        story = [one for one in self.ctl_json("history", "node0002") if one["kind"] != "lid"]
        self.assertEqual([one["kind"] for one in story], ["host-added", "hca-replaced", "host-moved", "switch-replaced",
                                                          "hca-replaced", "host-moved"])
        self.assertEqual([one["generation"] for one in story], [1, 2, 3, 4, 5, 5])
        self.assertTrue(all("node0002" in one["subjects"] for one in story))
        for at, one in enumerate(story[1:], 1):
            self.assertLessEqual(story[at - 1]["first_seen"], one["first_seen"])
        # what is no subject is looked for in the texts
        self.assertEqual([one["generation"] for one in self.ctl_json("history", "0x0000000000990002")], [2, 5])
        self.assertGreater(len(self.ctl_json("history", "node000")), len(story))
        text = self.daemon.ctl("history", "node0002").stdout
        self.assertRegex(text, r"(?m)^20\S+Z +2 +hca-replaced +node0002 HCA-1 +0x0000000000100002 -> 0x0000000000990002 "
                               r"+another GUID under ")

    def test_cables_and_rates(self):
        spine = self.sim.cable("leaf1", "spine1")
        self.net.move("leaf1", spine, "spine1", 17)
        self.assertEqual(words(self.swap()), [
            ("cable-moved", f"leaf1[{spine}] - spine1[1]", "spine1[1]", "spine1[17]")])
        self.net.rate("leaf1", spine, "4xEDR")
        self.assertEqual(words(self.swap()), [("link-rate", f"leaf1[{spine}] - spine1[17]", "4xHDR", "4xEDR")])
        self.assertEqual([one["kind"] for one in self.ctl_json("history", "spine1")][-2:],
                         ["cable-moved", "link-rate"])

    def test_hosts_that_change_places(self):
        self.net.move("node0002", 1, "leaf2", 15)
        self.net.move("node0004", 1, "leaf1", 2)
        self.net.move("node0002", 1, "leaf2", 1)
        self.assertEqual(words(self.swap()), [("host-moved", "node0002 HCA-1[1]", "leaf1[2]", "leaf2[1]"),
                                              ("host-moved", "node0004 HCA-1[1]", "leaf2[1]", "leaf1[2]")])
        # and their cards: the names stay with the places
        self.net.replace("node0002", 0x77)
        self.net.replace("node0004", 0x100002)
        self.net.replace("node0002", 0x100006)
        self.assertEqual(words(self.swap()), [
            ("hca-replaced", "node0002 HCA-1", "0x0000000000100002", "0x0000000000100006"),
            ("hca-replaced", "node0004 HCA-1", "0x0000000000100006", "0x0000000000100002")])


if __name__ == "__main__":
    unittest.main()
