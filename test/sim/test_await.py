"""The operation `await`: answered in the moment in which its condition holds, or at its deadline."""
import unittest

import sim


class Await(unittest.TestCase):
    def setUp(self):
        self.site = sim.Site("fattree2:3,2,2", {"changes": {"debounce": 2, "debounce_max": 10}})
        self.addCleanup(self.site.free)

    def waits(self, **request):
        """The answer to `await`, and the virtual seconds until it came."""
        began = self.site.now()
        answer = self.site.control("await", **request)
        return answer, self.site.now() - began

    def test_idle_comes_at_once_where_nothing_is_under_way(self):
        self.assertEqual(self.waits(until="idle"), ({"ok": True, "generation": 1}, 0))

    def test_idle_waits_for_the_sweep_and_its_publication(self):
        self.site.pull("leaf1")
        self.assertTrue(self.site.control("refresh", wait=False)["taken"])
        answer, _ = self.waits(until="idle")
        self.assertEqual(answer, {"ok": True, "generation": 2})
        self.assertFalse(self.site.status()["sweeping"])

    def test_idle_waits_for_a_sweep_that_hangs_until_its_deadline(self):
        self.site.sweeps(sim.HANG)
        self.site.control("refresh", wait=False)
        answer, seconds = self.waits(until="idle", deadline=5)
        self.assertEqual((answer["error"], answer["message"]),
                         (-15, "await: not idle within 5 s: a sweep is running"))
        self.assertEqual(seconds, 5)
        answer, _ = self.waits(until="idle", deadline=600)
        self.assertTrue(answer["ok"])
        self.assertTrue(self.site.status()["stale"])

    def test_idle_waits_for_the_debounce(self):
        """Reports of several hosts are published together."""
        for host in ("node0001", "node0002"):
            self.assertEqual(self.site.deliver(host), 0)
        self.assertEqual(self.site.generation(), 1)
        self.assertEqual(self.waits(until="idle")[0], {"ok": True, "generation": 2})

    def test_generation(self):
        self.assertEqual(self.waits(until="generation", generation=1), ({"ok": True, "generation": 1}, 0))
        answer, seconds = self.waits(until="generation", generation=2, deadline=7)
        self.assertEqual((answer["error"], answer["message"]),
                         (-15, "await: no generation 2 within 7 s: generation 1 is served"))
        self.assertEqual(seconds, 7)
        self.site.pull("leaf1")
        self.site.control("refresh", wait=False)
        self.assertEqual(self.waits(until="generation", generation=2)[0], {"ok": True, "generation": 2})
        self.assertEqual([event["event"] for event in self.site.control("events")["events"]][-1], "PMIX_FABRIC_UPDATED")

    def test_generation_comes_when_all_is_told(self):
        """One connection watches and awaits: in any order of what the daemon does at one time it reads of the generation first."""
        for seed in range(1, 9):
            with self.subTest(seed=seed):
                site = sim.Site("fattree2:3,2,2", seed=seed)
                self.addCleanup(site.free)
                channel = sim.Channel(site, {"op": "watch"}, {"op": "await", "until": "generation", "generation": 2})
                site.pull("leaf1", site.cable("leaf1", "node0002"))
                site.control("refresh", wait=False)
                self.assertEqual(channel.line(), {"ok": True, "generation": 1})
                self.assertNotIn("ok", channel.line())
                self.assertEqual(channel.answer(), {"ok": True, "generation": 2})

    def test_events(self):
        """Each kind is counted from the start, so one that came before the request is not missed."""
        before, _ = self.waits(until="sweep", after=0)
        self.assertEqual(before, {"ok": True, "generation": 1, "count": 1})
        self.site.pull("leaf1", self.site.cable("leaf1", "node0002"))  # one plane stays one
        self.site.control("refresh", wait=False)
        for kind, generation in (("pending", 2), ("updated", 2), ("sweep", 2)):  # the daemon waits for nobody between the first two
            with self.subTest(kind):
                self.assertEqual(self.waits(until=kind, after=1)[0], {"ok": True, "generation": generation, "count": 2})
        answer, seconds = self.waits(until="export", deadline=3)
        self.assertEqual((answer["error"], answer["message"], seconds), (-15, "await: no export within 3 s: 0 since the start", 3))
        self.site.deliver("node0001")
        self.assertEqual(self.waits(until="delivery", after=0)[0]["count"], 1)

    def test_light_sweeps(self):
        site = self.site
        site.configure({"changes": {"light_sweep": 1}})
        site.stop()
        site.start()
        answer, seconds = self.waits(until="light-sweep", after=3)
        self.assertEqual(answer["count"], 4)
        self.assertLessEqual(seconds, 4)
        site.pull("leaf1")
        self.assertEqual(self.waits(until="generation", generation=2)[0]["generation"], 2)

    def test_mistakes(self):
        for request, error in (({}, -5), ({"until": 3}, -5), ({"until": "noon"}, -5), ({"until": "idle", "deadline": 0}, -7),
                               ({"until": "idle", "deadline": 601}, -7), ({"until": "idle", "deadline": "1"}, -5),
                               ({"until": "generation", "generation": -1}, -7), ({"until": "sweep", "after": "x"}, -5)):
            with self.subTest(request):
                self.assertEqual(self.site.control("await", **request)["error"], error)


if __name__ == "__main__":
    unittest.main()
