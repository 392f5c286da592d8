"""Hardware is swapped under a running fabricd: exactly the expected words, and a host's story through all of it."""
import unittest

import sim


def words(changes):
    return [(one["kind"], one["what"], one["before"], one["after"]) for one in changes if one["kind"] != "plane-shape"]


class Swaps(unittest.TestCase):
    def setUp(self):
        self.site = sim.Site("fattree2:3,2,3", room=20)
        self.addCleanup(self.site.free)

    def swap(self):
        """The fabric as it is now, swept: what `diff` says of it."""
        self.assertTrue(self.site.refresh()["changed"])
        return self.site.ctl_json("diff")["changes"]

    def test_one_story_of_a_host(self):
        self.site.guid("node0002", 0x990002)
        changes = self.swap()
        self.assertEqual(words(changes), [
            ("hca-replaced", "node0002 HCA-1", "0x0000000000100002", "0x0000000000990002")])
        self.assertEqual(changes[0]["why"],
                         "another GUID under the same host's and device's name at the same port leaf1[2]")
        self.assertEqual(changes[0]["subjects"], ["node0002", "leaf1"])
        self.assertFalse(changes[0]["planned"])
        self.assertLessEqual(changes[0]["last_seen"], changes[0]["first_seen"])
        self.assertLessEqual(changes[0]["first_seen"], changes[0]["time"])

        self.site.move("node0002", 1, "leaf2", 15)
        self.assertEqual(words(self.swap()), [("host-moved", "node0002 HCA-1[1]", "leaf1[2]", "leaf2[15]")])

        self.site.guid("leaf2", 0x9a0002)
        changes = self.swap()
        self.assertEqual(words(changes), [("switch-replaced", "leaf2", "0x0000000000200001", "0x00000000009a0002")])
        self.assertEqual(changes[0]["why"], "6 of its 6 cables lead to another switch now")

        self.site.guid("node0002", 0x980002)
        self.site.move("node0002", 1, "leaf1", 2)
        self.assertEqual(words(self.swap()), [
            ("hca-replaced", "node0002 HCA-1", "0x0000000000990002", "0x0000000000980002"),
            ("host-moved", "node0002 HCA-1[1]", "leaf2[15]", "leaf1[2]")])

        story = [one for one in self.site.ctl_json("history", "node0002") if one["kind"] != "lid"]
        self.assertEqual([one["kind"] for one in story], ["host-added", "hca-replaced", "host-moved", "switch-replaced",
                                                          "hca-replaced", "host-moved"])
        self.assertEqual([one["generation"] for one in story], [1, 2, 3, 4, 5, 5])
        self.assertTrue(all("node0002" in one["subjects"] for one in story))
        for at, one in enumerate(story[1:], 1):
            self.assertLessEqual(story[at - 1]["first_seen"], one["first_seen"])
        # what is no subject is looked for in the texts
        self.assertEqual([one["generation"] for one in self.site.ctl_json("history", "0x0000000000990002")], [2, 5])
        self.assertGreater(len(self.site.ctl_json("history", "node000")), len(story))
        text = self.site.ctl("history", "node0002").stdout
        self.assertRegex(text, r"(?m)^20\S+Z +2 +hca-replaced +node0002 HCA-1 +0x0000000000100002 -> 0x0000000000990002 "
                               r"+another GUID under ")

    def test_cables_and_rates(self):
        spine = self.site.cable("leaf1", "spine1")
        self.site.move("leaf1", spine, "spine1", 17)
        self.assertEqual(words(self.swap()), [
            ("cable-moved", f"leaf1[{spine}] - spine1[1]", "spine1[1]", "spine1[17]")])
        self.site.rate("leaf1", spine, 4, "EDR")
        self.assertEqual(words(self.swap()), [("link-rate", f"leaf1[{spine}] - spine1[17]", "4xHDR", "4xEDR")])
        self.assertEqual([one["kind"] for one in self.site.ctl_json("history", "spine1")][-2:],
                         ["cable-moved", "link-rate"])

    def test_hosts_that_change_places(self):
        self.site.move("node0002", 1, "leaf2", 15)
        self.site.move("node0004", 1, "leaf1", 2)
        self.site.move("node0002", 1, "leaf2", 1)
        self.assertEqual(words(self.swap()), [("host-moved", "node0002 HCA-1[1]", "leaf1[2]", "leaf2[1]"),
                                              ("host-moved", "node0004 HCA-1[1]", "leaf2[1]", "leaf1[2]")])
        # and their cards: the names stay with the places
        self.site.guid("node0002", 0x77)
        self.site.guid("node0004", 0x100002)
        self.site.guid("node0002", 0x100006)
        self.assertEqual(words(self.swap()), [
            ("hca-replaced", "node0002 HCA-1", "0x0000000000100002", "0x0000000000100006"),
            ("hca-replaced", "node0004 HCA-1", "0x0000000000100006", "0x0000000000100002")])


if __name__ == "__main__":
    unittest.main()
