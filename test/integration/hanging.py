"""hanging - a test that never ends by itself, for test_lab.py."""
import contextlib
import unittest

import lab


class Hangs(unittest.TestCase):
    def test_a_hangs(self):
        lab.spawn(["sleep", "616"])
        while True:
            with contextlib.suppress(lab.LabError):
                lab.wait_for(lambda: False, what="what never comes")

    def test_b_never(self):
        """The module's time is up before it begins."""


if __name__ == "__main__":
    unittest.main()
