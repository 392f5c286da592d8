"""fabricctl top where there is no terminal: one page."""
import csv
import unittest

import ctl_case
import sim

NODE = {"ok": True, "daemon": True, "role": "node", "pid": 4712, "version": "0.1.0", "uri": "x;tcp4://127.0.0.1:1", "host": "node0003",
        "scheduler": "s;tcp4://10.0.0.1:2", "connected": True, "generation": 3, "published": "2023-11-14T22:13:20.123456Z", "stale": False,
        "stale_since": None, "stale_reason": None, "scanning": False, "last_scan": "2023-11-14T22:10:00Z", "scan_ms": 17, "interval": 600,
        "probes": 5, "probes_failed": 0, "probe_error": None, "digest": None, "held": None, "delivered": None, "delivering": False,
        "refused": False, "reason": None}


class Top(ctl_case.Case):
    def test_one_page(self):
        site = sim.Site("fattree2:4,2,4")
        self.addCleanup(site.free)
        site.rename("node0001", "other0001 HCA-1")
        site.advance(50)
        site.refresh()
        site.advance(7)
        page = site.ctl("top").stdout
        self.assertEqual(page, site.ctl("top", "--once", "--plane", "ib0").stdout)
        self.assertRegex(page, r"(?s)role scheduler.*\nPLANE +KIND.*\nib0 .*\n\nTIME +GENERATION")
        lines = page.splitlines()
        self.assertEqual(lines[0], f"fabricd       {site.status()['version']}, role scheduler, on manager, 2023-11-14 22:14:17 UTC")
        self.assertEqual(lines[1:5], ["generation    2, published 7 s ago", "last sweep    7 s ago, took 20.0 ms, every 0 s",
                                      "clients       0 connected over PMIx", "reporting     0 hosts"])
        plane, = (line.split() for line in lines if line.startswith("ib0"))
        self.assertEqual(plane, ["ib0", "fat-tree-2", "16", "16", "6", "24", "4", "2", "7", "s"])
        self.assertIn("-> other0001", page)
        newest = site.ctl("history", "-n", "1").stdout.splitlines()[1].split()[:4]
        self.assertIn(newest, [line.split()[:4] for line in lines])  # one source of facts
        head, row = csv.reader(site.ctl("--format", "csv", "status").stdout.splitlines())
        self.assertEqual(len(head), len(row))
        told = dict(zip(head, row))
        self.assertEqual((told["generation"], told["role"], told["interval"]), ("2", "scheduler", "0"))
        site.sweeps(sim.FAIL)
        self.assertFalse(site.control("refresh")["ok"])
        self.assertIn("STALE", site.ctl("top").stdout)
        site.stop()
        page = site.ctl("top").stdout
        self.assertRegex(page, r"(?s)DOES NOT ANSWER.*\nib0 ")
        self.assertNotIn("role scheduler", page)

    def test_what_it_does_not_do(self):
        for args, status, words in ((["--format", "csv", "top"], 2, "programs read status and history"),
                                    (["--plane", "nosuch", "top"], 1, "no plane nosuch"),
                                    (["--rundir", self.site.dir, "top", "--once"], 1, "no fabricd answers"),
                                    (["--uri", "x;tcp4://127.0.0.1:1", "top"], 2, "top does not work over PMIx")):
            self.assertEqual(self.ctl(*args, status=status), "")
            self.assertIn(words, self.complaint)

    def test_a_node(self):
        """Its page has what a node does, and no sweeps."""
        self.daemon(status=[NODE])
        page = self.ctl("top")
        self.assertRegex(page, r"(?s)role node.*\nlast scan +.*\nscheduler .*, connected\n.*\nib0 ")
        self.assertNotIn("sweep", page)


if __name__ == "__main__":
    unittest.main()
