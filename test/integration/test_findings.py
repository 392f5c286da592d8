"""What looks wrong: the life of a finding, and that each kind is documented."""
import os
import re
import unittest

import lab


def document(name):
    with open(os.path.join(lab.ROOT, name), encoding="utf-8") as file:
        return file.read()


def kinds():
    """{name: severity}, as the table in check_kinds.c has them."""
    found = re.findall(r'\{\s*"([a-z-]+)",\s*FAB_SEVERITY_([A-Z]+)', document("libpmixfab/topo/check/check_kinds.c"))
    return {name: severity.lower() for name, severity in found}


class Documented(unittest.TestCase):
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


if __name__ == "__main__":
    unittest.main()
