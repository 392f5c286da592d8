"""The probe ethernet against `ip`: on this host, and on hosts of veth cables, bridges, bonds and VLANs."""
import ipaddress
import json
import os
import unittest

import hosts
import lab


def looked(run, sysfs="/sys"):
    """What the probe says and what it should say, by interface; sysfs: the same folder as the probe sees, or None."""
    done = run([lab.program("scan_dump"), "ethernet"])
    links = json.loads(run(["ip", "-j", "-d", "addr"]).stdout)
    items = json.loads(done.stdout)["items"] if done.returncode == 0 else []
    return {item["interface"]: item for item in items}, expected(links, sysfs), done


def expected(links, sysfs):
    by_name = {link["ifname"]: link for link in links if "ifname" in link}

    def below(link, depth=4):
        """The interfaces that it stands on: a VLAN's own, a bond's and a bridge's ports."""
        for other in links:
            if depth and (other.get("ifname") == link.get("link") or other.get("master") == link["ifname"]):
                yield other
                yield from below(other, depth - 1)

    def is_hardware(link):
        if sysfs is None:
            return link.get("linkinfo", {}).get("info_kind") not in ("veth", "bridge", "dummy")
        return any(os.path.exists(os.path.join(sysfs, "class/net", one["ifname"], "device"))
                   for one in (link, *below(link)))

    found = {}
    for name, link in by_name.items():
        if link["link_type"] not in ("ether", "infiniband"):
            continue
        addresses = sorted(f"{entry['local']}/{entry['prefixlen']}" for entry in link["addr_info"]
                           if not (entry["family"] == "inet6" and ipaddress.ip_address(entry["local"]).is_link_local))
        if not addresses and not is_hardware(link):
            continue
        item = {"type": "Ethernet" if link["link_type"] == "ether" else "InfiniBand"}
        if link["link_type"] == "ether":
            item["mac"] = link["address"]
        if addresses:
            item["address"] = addresses
        if not is_hardware(link):
            item["software"] = "yes"
        item["mtu"] = str(link["mtu"])
        if sysfs is not None:
            item["state"] = {"UP": "up", "UNKNOWN": "unknown"}.get(link["operstate"], "down")
        found[name] = item
    return found


class Base(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        lab.require("ip")

    def same(self, run, sysfs="/sys"):
        """The probe and ip agree in everything that both tell; the items are returned."""
        items, wanted, done = looked(run, sysfs)
        self.assertEqual(sorted(items), sorted(wanted), done.stderr)
        for name, facts in wanted.items():
            self.assertEqual({key: sorted(value) if isinstance(value, list) else value
                              for key, value in items[name].items() if key in facts}, facts, name)
            self.assertEqual("software" in items[name], "software" in facts)
        return items


class ThisHost(Base):
    def test_as_ip_says(self):
        items = self.same(lab.run)
        for item in items.values():
            self.assertEqual(item["source"], "ethernet")
            device = os.path.realpath(f"/sys/class/net/{item['interface']}/device/driver")
            if os.path.exists(device):
                self.assertEqual(item["driver"], os.path.basename(device))
        done = lab.run([lab.program("scan_dump"), "--available", "ethernet"])
        if items:
            self.assertRegex(done.stdout, f"^{len(items)} network interface")
            path = os.path.join(lab.tmpdir(), "record.json")
            done = lab.run([lab.program("scan_dump"), "ethernet"])
            lab.replace_file(path, done.stdout)
            self.assertEqual(lab.run([lab.program("scan_dump"), f"ethernet:{path}"]).stdout, done.stdout)


class OtherHosts(Base):
    def setUp(self):
        super().setUp()
        hosts.need()
        self.addCleanup(lab.cleanup)
        self.a, self.b = hosts.Host("a"), hosts.Host("b")
        self.a.cable(self.b, "10.91.0.1", "10.91.0.2")

    @staticmethod
    def own_sysfs(host):
        host.do("mount", "-t", "sysfs", "none", "/sys")
        return f"/proc/{host.process.pid}/root/sys"

    def test_cable(self):
        sysfs = self.own_sysfs(self.a)
        self.a.do("ip", "addr", "add", "fd00::1/64", "dev", "eth0", "nodad")
        self.a.do("ip", "addr", "add", "10.92.0.1/30", "dev", "eth0", "label", "eth0:1")
        self.a.do("ip", "link", "set", "eth0", "mtu", "9000")
        self.b.do("ip", "link", "set", "eth0", "mtu", "9000")
        lab.wait_for(lambda: '"operstate":"UP"' in self.a.do("ip", "-j", "link", "show", "eth0"), what="the cable")
        item = self.same(self.a.run, sysfs)["eth0"]
        self.assertEqual(sorted(item["address"]), ["10.91.0.1/24", "10.92.0.1/30", "fd00::1/64"])
        self.assertEqual((item["driver"], item["bus"], item["state"], item["mtu"], item["software"]),
                         ("veth", "virtual", "up", "9000", "yes"))
        self.assertNotIn("speed", item)
        self.assertRegex(item["estimates"]["speed"], "^[1-9][0-9]*$")
        # Changes are seen: an address gone, the cable pulled at the other end.
        self.a.do("ip", "addr", "del", "10.92.0.1/30", "dev", "eth0")
        self.b.do("ip", "link", "set", "eth0", "down")
        lab.wait_for(lambda: '"operstate":"UP"' not in self.a.do("ip", "-j", "link", "show", "eth0"), what="no cable")
        item = self.same(self.a.run, sysfs)["eth0"]
        self.assertEqual((item["state"], "10.92.0.1/30" in item["address"]), ("down", False))

    def test_software_on_software(self):
        """Bridges, VLANs, dummies: all of it software; only what has an address is told."""
        sysfs = self.own_sysfs(self.a)
        for words in (("br0", "type", "bridge"), ("d0", "type", "dummy"), ("d1", "type", "dummy"),
                      ("v7", "link", "eth0", "type", "vlan", "id", "7")):
            done = self.a.run(["ip", "link", "add", *words])
            if done.returncode != 0:
                continue  # this kernel has none of that kind
            self.a.do("ip", "link", "set", words[0], "up")
        self.a.run(["ip", "link", "set", "d0", "master", "br0"])
        self.a.run(["ip", "addr", "add", "10.93.0.1/24", "dev", "br0"])
        self.a.run(["ip", "addr", "add", "10.94.0.1/24", "dev", "v7"])
        items = self.same(self.a.run, sysfs)
        self.assertIn("eth0", items)
        self.assertNotIn("d1", items)
        self.assertTrue(all(item.get("software") == "yes" for item in items.values()))

    def test_sysfs_of_another_namespace(self):
        """/sys is still that of the whole machine, whose eth0 is another one: nothing of it is taken. And where no interface is."""
        item = self.same(self.a.run, sysfs=None)["eth0"]
        self.assertEqual((item["driver"], item["state"]), ("veth", "up"))
        for key in ("pci", "bus", "speed", "vendor-id"):
            self.assertNotIn(key, item)
        done = hosts.Host("alone").run([lab.program("scan_dump"), "ethernet"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("no network interface but loopback", done.stderr)


if __name__ == "__main__":
    unittest.main()
