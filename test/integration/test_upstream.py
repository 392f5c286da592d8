"""Faults of the PMIx library that this tree is built with, as docs/upstream.md has them. If a test fails, the library has
learned something: run ./dev upstream, and see which workaround is needed no longer."""
import os
import subprocess
import sys
import unittest

import lab

sys.path.insert(1, os.path.join(lab.ROOT, "test", "upstream"))
import play  # noqa: E402
import run  # noqa: E402
import tables  # noqa: E402

DOCUMENT = os.path.join(lab.ROOT, "docs", "upstream.md")
# A second or less each but C1, with which the server hangs for five.
QUICK = ("C1", "C2", "C3", "C5", "C8", "C14", "C15", "M1", "R2", "R3", "R4", "R5", "R6", "R7", "R13", "R14", "F1", "F2", "F5", "F20", "F21")


@unittest.skipIf(lab.SANITIZE, "the library's crash is not ours to look at")
class Column(unittest.TestCase):
    def test_quick_ones(self):
        """A newer library without a column shows what it has learned since the last one with a column."""
        lab.require_component()  # the headers that they need, too
        folder = lab.tmpdir()
        os.chmod(folder, 0o755)
        library = run.Library(None, os.path.join(folder, "programs"))
        version = tables.nearest(DOCUMENT, library.version)
        told = tables.column(DOCUMENT, version)
        found = run.run(library, [name for name in QUICK if os.geteuid() == 0 or name != "C8"], 4)
        self.assertEqual({name: result.answer for name, result in found.items() if name in QUICK},
                         {name: told[name] for name in found if name in QUICK}, f"against the column of {version}: {found}")


class Table(unittest.TestCase):
    def test_every_fault_has_a_check(self):
        """Or a reason why it has none."""
        with open(DOCUMENT, encoding="utf-8") as file:
            text = file.read()
        told = [name for match in tables.MARK.finditer(text) for name, _ in tables.rows_of(match.group(2))]
        self.assertEqual(sorted(told), sorted(play.FAULTS.keys() | run.UNSHOWN.keys()))
        for name in told:
            self.assertIn(f"**{name}", text.replace(", ", "** **"), "a description")

    def test_a_column(self):
        path = os.path.join(lab.tmpdir(), "upstream.md")
        with open(path, "w", encoding="utf-8") as file:
            file.write("<!-- results C -->\n| | fault |\n|---|---|\n| C1 | one |\n| C2 | two |\n| C3 | three |\n<!-- end -->\nrest\n")
        results = os.path.join(lab.tmpdir(), "results")
        with open(results, "w", encoding="utf-8") as file:
            file.write('{"version": "9.0.10", "faults": {"C1": ["there", "dies"], "C2": ["n/a", "no munge"]}}')
        tables.write(path, [results], ["C1", "C2"], {"C3": "once a day"})
        self.assertEqual(tables.column(path, "9.0.10"), {"C1": "there", "C2": "n/a"})
        self.assertEqual([tables.nearest(path, version) for version in ("9.0.9", "9.0.10", "10.0.0")], ["9.0.10"] * 3)
        with open(path, encoding="utf-8") as file:
            self.assertIn("| C3 | three | o |\n\nn/a: no munge (C2 with 9.0.10).\n<!-- end -->\nrest\n", file.read())


class Program(unittest.TestCase):
    def test_a_prefix_without_a_library(self):
        done = subprocess.run([sys.executable, "-B", run.__file__, "--pmix", lab.tmpdir()], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, "there is no pmix.pc" in done.stderr), (1, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
