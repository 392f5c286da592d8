"""simgrid_platform - a platform of SimGrid as fabricctl writes it, read by itself: its cables, and the way from host to host."""
import collections
import re
import xml.etree.ElementTree as ElementTree

Cable = collections.namedtuple("Cable", "ends mbps latency_ns")  # ends: two (switch or host:device, port)


class Platform:
    def __init__(self, text):
        assert text.startswith("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"), text[:200]
        self.root = ElementTree.fromstring(text)
        self.cables, self.leaf, self.parts = {}, {}, {}
        for link in self.root.iter("link"):
            if link.get("id") != "loopback":
                ends = tuple((end.rpartition("/")[0], int(end.rpartition("/")[2])) for end in (prop.get("value") for prop in link.iter("prop")))
                assert link.get("sharing_policy") == "SPLITDUPLEX" and len(ends) == 2
                self.cables[link.get("id")] = Cable(ends, int(re.fullmatch(r"(\d+)Mbps", link.get("bandwidth")).group(1)),
                                                    int(re.fullmatch(r"(\d+)ns", link.get("latency")).group(1)))
        for leaf in self.root.iter("zone"):
            if leaf.get("routing") == "Floyd":
                for host in leaf.iter("host"):
                    self.leaf[host.get("id")] = leaf.get("id")
        for route in (*self.root.iter("zoneRoute"), *self.root.iter("bypassZoneRoute")):
            key = route.get("src").removeprefix("at/"), route.get("dst").removeprefix("at/")
            assert key not in self.parts, key
            self.parts[key] = [(step.get("id"), step.get("direction") == "UP") for step in route.iter("link_ctn")]
        self.hosts = list(self.leaf)

    def step(self, cable, forward):
        """(end from, end to) of a cable."""
        ends = self.cables[cable].ends
        return ends if forward else ends[::-1]

    def route(self, source, target):
        """The cables from one host to another one, as SimGrid joins its parts."""
        switch = self.leaf[source].replace("leaf/", "switch/")
        up = self.parts[source, switch]
        if self.leaf[source] == self.leaf[target]:
            return up + self.parts[switch, target]
        return up + self.parts[self.leaf[source], target]

    def latency(self, source, target):
        return sum(self.cables[cable].latency_ns for cable, _ in self.route(source, target)) * 1e-9

    def loads(self, messages):
        """{(end from, end to): [bytes, Mb/s]} of (host, host, bytes)."""
        loads = {}
        for source, target, size in messages:
            for cable, forward in self.route(source, target) if source != target else ():
                load = loads.setdefault(self.step(cable, forward), [0, self.cables[cable].mbps])
                load[0] += size
        return loads
