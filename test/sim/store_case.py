"""store_case - a site for cases about its store, and what is in that."""
import contextlib
import os
import sqlite3
import unittest

import lab
import sim


def rows(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as store:
        return store.execute(sql).fetchall()


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = lab.tmpdir()
        self.n = 0
        self.backup = os.path.join(self.dir, "backup.db")
        self.site = sim.Site("fattree2:4,2,4")
        self.addCleanup(self.site.free)

    def change(self):
        """Publish one more generation."""
        self.n += 1
        self.site.rename("node0001", f"other{self.n:04}")
        return self.site.refresh()["generation"]

    def restore(self):
        """As an operator who has stopped it; what is said."""
        done = self.site.fabricd("--restore", self.backup)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.site.start()
        return done.stderr
