"""Stories of a site, told by its journal: what hands do, what the daemon logs, which events it announces, each with its
virtual time. A story's journal stands in stories/NAME.txt and repeats to the byte. After a change that is meant to change
some: `FABRICD_BUILD=build python3 -B test/sim/test_stories.py --write`, and read the difference."""
import os
import re
import sys
import unittest

import sim

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stories")
TREE = "fattree2:3,2,2"
MINUTE, HOUR, DAY = 60, 3600, 86400

STORIES = {}


def story(fabric=TREE, **config):
    def register(function):
        STORIES[function.__name__] = (fabric, config, function)
        return function
    return register


def out(site, host="node0002", leaf="leaf1"):
    """Pull the host's cable; its port."""
    port = site.cable(leaf, host)
    site.pull(leaf, port)
    return port


@story()
def a_first_start(site):
    site.refresh()


@story()
def a_host_is_gone_for_a_moment(site):
    port = out(site)
    site.refresh()
    site.advance(MINUTE)
    site.plug("leaf1", port)
    site.refresh()


@story(changes={"retain_seconds": 600})
def a_host_is_gone_for_too_long(site):
    out(site)
    site.refresh()
    site.advance(HOUR)


@story()
def a_card_is_swapped(site):
    site.guid("node0002", 0x990000)
    site.refresh()


@story()
def a_card_is_swapped_while_its_cable_is_out(site):
    port = out(site)
    site.refresh()
    site.advance(HOUR)
    site.guid("node0002", 0x990000)
    site.plug("leaf1", port)
    site.refresh()


@story()
def a_host_moves_to_another_leaf(site):
    port = site.cable("leaf3", "node0006")
    site.lose("node0006")
    site.ctl("forget", "node0006")
    site.refresh()
    site.move("node0002", 1, "leaf3", port)
    site.refresh()


@story()
def two_hosts_change_their_cables(site):
    site.exchange("node0001", 1, "node0003", 1)
    site.refresh()


@story()
def a_leaf_reboots(site):
    site.pull("leaf2")
    site.refresh()
    site.advance(3 * MINUTE)
    site.plug("leaf2")
    site.refresh()
    site.advance(MINUTE)


@story()
def a_leaf_is_swapped(site):
    site.guid("leaf2", 0x880000)
    site.refresh()
    site.advance(MINUTE)


@story()
def a_spine_dies(site):
    site.lose("spine2")
    site.refresh()
    site.advance(MINUTE)


@story(changes={"retain_seconds": 600})
def a_spine_dies_for_good(site):
    site.lose("spine2")
    site.refresh()
    site.advance(HOUR)


@story(changes={"flap_count": 3, "flap_window": 600, "suppress": 300})
def a_cable_flaps(site):
    site.oracle(0)
    for _ in range(4):
        port = out(site)
        site.refresh()
        site.advance(10)
        site.plug("leaf1", port)
        site.refresh()
        site.advance(10)
    site.advance(HOUR)


@story(changes={"flap_count": 3, "flap_window": 600, "suppress": 300})
def a_switch_flaps(site):
    site.oracle(0)
    for _ in range(4):
        site.pull("leaf3")
        site.refresh()
        site.advance(10)
        site.plug("leaf3")
        site.refresh()
        site.advance(10)
    site.advance(HOUR)


@story("fattree2:4,2,4")
def a_cable_is_slow(site):
    site.rate("leaf1", site.cable("leaf1", "spine1"), 1, "HDR")
    site.refresh()
    site.advance(MINUTE)


@story()
def a_cable_goes_elsewhere(site):
    site.exchange("leaf1", site.cable("leaf1", "spine1"), "leaf2", site.cable("leaf2", "node0004"))
    site.refresh()
    site.advance(MINUTE)


@story()
def a_port_stays_inactive(site):
    site.state("leaf1", site.cable("leaf1", "node0001"), 2)
    site.refresh()
    site.advance(DAY)


@story(changes={"light_sweep": 1}, fabricd={"interval": 60})
def the_subnet_manager_dies(site):
    site.manager("node0001")
    site.advance(10)
    site.manager(None)
    site.advance(10)
    site.manager("node0003")
    site.advance(10)


@story(fabricd={"interval": 60})
def sweeps_fail(site):
    site.sweeps(sim.FAIL)
    site.advance(3 * MINUTE)
    site.sweeps(sim.GOOD)
    site.advance(2 * MINUTE)


@story(fabricd={"interval": 60})
def a_sweep_hangs(site):
    site.sweeps(sim.HANG)
    site.advance(5 * MINUTE)
    site.sweeps(sim.GOOD)
    site.advance(5 * MINUTE)


@story(fabricd={"interval": 60})
def a_sweep_crashes(site):
    site.sweeps(sim.CRASH)
    site.advance(MINUTE)
    site.sweeps(sim.GOOD)
    site.advance(MINUTE)


@story(fabricd={"interval": 600})
def a_sweep_misses_a_leaf(site):
    site.sweeps(sim.MISS, "leaf2")
    site.advance(HOUR)
    site.sweeps(sim.GOOD)
    site.advance(HOUR)


@story()
def an_operator_announces_a_swap(site):
    site.ctl("expect", "node0002")
    port = out(site)
    site.refresh()
    site.advance(HOUR)
    site.guid("node0002", 0x990000)
    site.plug("leaf1", port)
    site.refresh()


@story()
def an_operator_gives_up_a_host(site):
    out(site)
    site.refresh()
    site.advance(MINUTE)
    site.ctl("forget", "node0002")
    site.idle()
    site.advance(MINUTE)


@story()
def a_host_is_renamed(site):
    site.rename("node0002", "gpu7 HCA-1")
    site.refresh()


@story("fattree2:2,1,2+fattree2:2,1,2")
def a_site_with_two_planes(site):
    site.pull("leaf1b", site.cable("leaf1b", "node0001-2"))
    site.refresh()
    site.advance(MINUTE)
    site.lose("spine1")
    site.refresh()


@story(changes={"retain_seconds": 600})
def a_restart_while_a_host_is_missing(site):
    out(site)
    site.refresh()
    site.advance(5 * MINUTE)
    site.stop()
    site.start()
    site.advance(HOUR)


@story()
def a_kill_and_a_power_failure(site):
    out(site)
    site.refresh()
    site.kill9()
    site.start()
    site.advance(MINUTE)
    site.kill9(power=True)
    site.start()


@story(fabricd={"interval": 60})
def the_disk_is_full(site):
    site.disk(sim.DISK_FULL)
    port = out(site)
    site.advance(5 * MINUTE)
    site.disk(sim.DISK_GOOD)
    site.advance(5 * MINUTE)
    site.plug("leaf1", port)
    site.advance(5 * MINUTE)


@story(changes={"retain_seconds": 600})
def the_clock_jumps(site):
    out(site)
    site.refresh()
    site.jump(DAY)
    site.advance(MINUTE)
    site.jump(-2 * DAY)
    site.advance(HOUR)


@story(changes={"light_sweep": 1, "debounce": 2, "debounce_max": 10})
def a_light_sweep_notices(site):
    site.manager("node0001")
    site.advance(5)
    port = out(site)
    site.advance(MINUTE)
    site.plug("leaf1", port)
    site.advance(MINUTE)


@story("fattree2:4,2,4", changes={"light_sweep": 1, "debounce": 2, "debounce_max": 10})
def a_storm_of_changes(site):
    site.manager("node0001")
    site.advance(5)
    for number in range(2, 14):
        site.pull(f"node{number:04}")
        site.advance(0.7)
    site.advance(MINUTE)


@story()
def hosts_report(site):
    for number in range(1, 7):
        site.deliver(f"node{number:04}", "20.31")
    site.advance(MINUTE)
    site.deliver("node0003", "20.40")
    site.advance(MINUTE)


@story("dragonfly:1,2,1")
def a_global_cable_of_a_dragonfly(site):
    site.pull("r0-0", site.cable("r0-0", "r1-0"))
    site.refresh()
    site.advance(MINUTE)


def journal(name):
    fabric, config, play = STORIES[name]
    site = sim.Site(fabric, config)
    try:
        play(site)
        text = re.sub(r"\buid \d+", "uid 0", site.journal())
    finally:
        site.free()
    return f"{play.__name__.replace('_', ' ')}: {fabric}\n\n{text}"


class Stories(unittest.TestCase):
    maxDiff = None

    def test_each_is_told_as_before(self):
        self.assertEqual({f"{name}.txt" for name in STORIES}, set(os.listdir(HERE)))
        for name in STORIES:
            with self.subTest(name), open(os.path.join(HERE, f"{name}.txt"), encoding="utf-8") as file:
                self.assertEqual(journal(name), file.read())


def write():
    os.makedirs(HERE, exist_ok=True)
    for name in STORIES:
        with open(os.path.join(HERE, f"{name}.txt"), "w", encoding="utf-8") as file:
            file.write(journal(name))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        unittest.main()
