"""A site in its days, in short: tools stay and listen, others come and go, the fabric changes, and neither fabricd nor its server
grows by it. With --all it takes ten minutes, with a change a second."""
import os
import re
import time
import unittest

import fabric_text
import lab
import stranger as s

TOOLS, ROUNDS, PER_ROUND, EVERY_S = (100, 600, 6, 1) if lab.ALL else (100, 45, 40, 0)
MOST_MB = 3


def held(daemon):
    """MiB of memory that is fabricd's own, and its PMIx server's."""
    found = []
    for pid in (daemon.process.pid, daemon.pmix_pid()):
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            found.append(int(re.search(r"RssAnon:\s+(\d+)", file.read()).group(1)) / 1024)
    return found


class Days(unittest.TestCase):
    def setUp(self):
        self.capture = os.path.join(lab.tmpdir(), "capture")
        fast = lab.fabric("fattree2:4,2,4", "capture")
        self.states = fast, fabric_text.slower(fast, "leaf1")
        lab.replace_file(self.capture, fast)
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}, "changes": {"flap_count": 0}})
        self.addCleanup(self.daemon.stop)
        self.tools = [s.tool(self.daemon.uri()) for _ in range(TOOLS)]
        for tool in self.tools:
            self.addCleanup(tool.close)
            codes = s.size(2) + s.item(s.signed(s.PENDING) + s.signed(s.UPDATED), 2) + s.infos()
            self.assertEqual(s.status_of(tool.ask(s.REGEVENTS, codes)), 0)

    def round(self, number):
        for i in range(PER_ROUND):
            with s.tool(self.daemon.uri()) as visitor:
                self.assertEqual(s.status_of(visitor.ask(s.QUERY, s.query("pmix.fab.idx"))), 0)
                if i % 3 == 0:
                    visitor.ask(s.FINALIZE)
        lab.replace_file(self.capture, self.states[number % 2])
        generation = self.daemon.refresh()["generation"]
        for tool in self.tools:
            told = [s.event_of(tool.answer()[1]) for _ in range(2)]
            self.assertEqual([(code, of) for code, _, of in told], [(s.PENDING, generation), (s.UPDATED, generation)])

    def test_nothing_grows(self):
        before, pids = None, (self.daemon.process.pid, self.daemon.pmix_pid())
        start = time.monotonic()
        for number in range(1, ROUNDS + 1):
            self.round(number)
            if number == ROUNDS // 3:
                before = held(self.daemon)
            time.sleep(max(0, start + number * EVERY_S - time.monotonic()))
        after = held(self.daemon)
        self.assertEqual((self.daemon.process.pid, self.daemon.pmix_pid()), pids)
        if not lab.SANITIZE:
            for was, now in zip(before, after):
                self.assertLess(now - was, MOST_MB, (before, after))


if __name__ == "__main__":
    unittest.main()
