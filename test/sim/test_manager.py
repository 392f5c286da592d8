"""The subnet manager: one that dies is told at the third light sweep, so is one that takes over."""
import re
import unittest

from site_case import Case

FIRST, OTHER = "node0001", "node0002"


class Manager(Case):
    fabric = "fattree2:4,2,4"

    def setUp(self):
        self.start(start=False, light_sweep=None)  # the default
        self.site.manager(FIRST)
        self.site.start()
        self.site.advance(10)

    def manager(self):
        """As `status` has it."""
        manager, = self.site.status()["managers"]
        return manager

    def kinds(self):
        return {finding["kind"] for finding in self.findings()}

    def metric(self, name):
        return re.search(rf"^{name}(?:\{{.*\}})? (\S+)$", self.site.ctl("metrics").stdout, re.MULTILINE).group(1)

    def test_one_that_dies_and_is_started_again(self):
        before = self.manager()
        self.assertTrue(before["answers"])
        self.assertRegex(before["manager"], rf"^{FIRST} \S+\[1\] \(LID {before['lid']}\)$")
        self.assertRegex(self.site.ctl("status").stdout, rf"(?m)^manager +{FIRST} ")
        self.assertEqual(self.metric("fabricd_subnet_manager_up"), "1")
        self.site.manager(None)
        self.site.advance(2)
        self.assertTrue(self.manager()["answers"])
        self.site.advance(1)
        self.assertFalse(self.manager()["answers"])
        self.assertRegex(self.site.ctl("status").stdout, r"(?m)^NO MANAGER +since \S+: no subnet manager answers; "
                         rf"the last one is {FIRST} ")
        self.assertRegex(self.site.journal(), rf"error: subnet manager: {FIRST} .* does not answer")
        self.assertEqual(self.metric("fabricd_subnet_manager_up"), "0")
        self.assertEqual(self.kinds(), {"manager-gone"})
        self.site.manager(FIRST)
        self.site.advance(5)
        after = self.manager()
        self.assertTrue(after["answers"])
        self.assertFalse(after["another"])
        self.assertEqual(after["guid"], before["guid"])
        self.assertIn("answers again", self.site.journal())
        self.assertEqual(self.kinds(), set())

    def test_another_one_takes_over_and_the_first_comes_back(self):
        first = self.manager()
        self.site.manager(None)
        self.site.advance(1)
        self.site.manager(OTHER)
        self.site.advance(5)
        after = self.manager()
        self.assertTrue(after["another"] and after["answers"])
        self.assertNotEqual(after["guid"], first["guid"])
        self.assertIn(OTHER, after["manager"])
        self.assertRegex(self.site.journal(), rf"warning: subnet manager: {OTHER} .* took over from {FIRST} ")
        self.assertIn("it took over at", self.site.ctl("status").stdout)
        self.assertEqual(self.metric("fabricd_subnet_manager_takeovers_total"), "1")
        self.assertEqual(self.kinds(), {"manager-changed"})
        self.site.manager(FIRST)
        self.site.advance(5)
        back = self.manager()
        self.assertEqual((back["answers"], back["guid"], back["another"]), (True, first["guid"], False))
        self.assertEqual(self.kinds(), set())


if __name__ == "__main__":
    unittest.main()
