"""The probes libfabric and ucx on this host, against fi_info and ucx_info, which ask the same libraries."""
import json
import os
import re
import unittest

import lab


def look(spec):
    """The items of one probe; skips where there is nothing for it."""
    done = lab.run([lab.program("scan_dump"), spec])
    if done.returncode != 0:
        raise unittest.SkipTest(done.stderr.strip())
    return json.loads(done.stdout)["items"], done


def interfaces():
    """Those of this host but loopback."""
    return {name for name in os.listdir("/sys/class/net") if name != "lo"}


class Libfabric(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        lab.require_probe("libfabric")

    def test_as_fi_info_says(self):
        lab.require("fi_info")
        items, done = look("libfabric")
        self.assertEqual(re.sub(r"^libfabric:.*<warn> fi_getinfo: provider \S+ output empty list\n", "", done.stderr), "")  # version 2 says it
        told = lab.run(["fi_info"]).stdout
        wanted = {}
        for provider, domain, protocol in re.findall(
                r"^provider: (\S+)\n    fabric: .*\n    domain: (\S+)\n(?:    .*\n)*?    protocol: (\S+)$", told, re.M):
            if domain != "lo":
                wanted.setdefault(domain, set()).add((provider, protocol))
        self.assertTrue(wanted)
        for domain, pairs in wanted.items():
            name = re.sub("-(xrc|dgram|dgrm|rdm)$", "", domain)
            found = [item for item in items if name in (item.get("interface"), item.get("name"))]
            if not found:  # it has no name of the system's: "shm"
                self.assertNotIn(domain, interfaces())
                found = [item for item in items if "interface" not in item and "name" not in item]
            providers = {provider for item in found for provider in item["provider"]}
            protocols = {protocol for item in found for protocol in item.get("protocol", [])}
            self.assertLessEqual({provider for provider, _ in pairs}, providers, domain)
            self.assertLessEqual({protocol for _, protocol in pairs}, protocols, domain)
        # And nothing that fi_info does not know of.
        for item in items:
            for provider in item["provider"]:
                self.assertIn(provider, {one for pairs in wanted.values() for one, _ in pairs})
            if item.get("software"):  # which makes no device
                self.assertNotIn("name", item)
                self.assertTrue("interface" not in item or item["interface"] in interfaces())
            self.assertNotEqual(item.get("interface"), "lo")


class Ucx(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        lab.require_probe("ucx")

    @staticmethod
    def told():
        """Device -> its transports, the greatest bandwidth in Mbit/s and the least latency in ns."""
        found = {}
        for block in lab.run(["ucx_info", "-d"]).stdout.split("Transport: ")[1:]:
            transport = block.split("\n", 1)[0].strip()
            device = re.search(r"Device: (\S+)", block).group(1)
            shared, dedicated = re.search(r"bandwidth: ([\d.]+)/ppn \+ ([\d.]+) MB/sec", block).groups()
            latency = float(re.search(r"latency: ([\d.]+)(?: \+ [\d.]+ \* N)? nsec", block).group(1))
            entry = found.setdefault(device, {"transport": set(), "bandwidth": 0.0, "latency": latency})
            entry["transport"].add(transport)
            entry["bandwidth"] = max(entry["bandwidth"], (float(shared) + float(dedicated)) * 8 * 1.048576)
            entry["latency"] = min(entry["latency"], latency)
        found.pop("lo", None)
        return found

    def test_as_ucx_info_says(self):
        lab.require("ucx_info")
        items, done = look("ucx")
        self.assertEqual(done.stderr, "")
        wanted = self.told()
        self.assertEqual(len(items), len(wanted))
        for device, entry in wanted.items():
            item, = [one for one in items if set(one["transport"]) == entry["transport"] and
                     (device not in interfaces() or one.get("interface") == device) and
                     (":" not in device or [one.get("name"), one.get("port")] == device.rsplit(":", 1))]
            estimates = item["estimates"]
            # ucx_info rounds to hundredths of a megabyte and to nanoseconds.
            self.assertAlmostEqual(int(estimates["bandwidth"]), entry["bandwidth"], delta=1, msg=device)
            self.assertAlmostEqual(int(estimates["latency"]), entry["latency"], delta=1.5, msg=device)
        # What UCX would say of the environment is not for the log of a daemon.
        done = lab.run([lab.program("scan_dump"), "ucx"], env=dict(os.environ, UCX_NO_SUCH_THING="1"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
