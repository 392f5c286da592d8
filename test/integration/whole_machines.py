"""whole_machines - hosts with devices of all kinds: what each probe is shown of one, and what must be known of its
devices then, worked out from the descriptions alone.

A machine is hwloc's XML. What libibverbs, libfabric, UCX and the kernel would say of it is made up to go with it; the
subnet is cabled with its ports that are up. The simulator's GUID of a port is the node's plus the number of the port,
so the node GUIDs are made to be that.
"""
import json
import os
import xml.etree.ElementTree as ET

import hwloc_machines
import lab
import verbs_machines as vm

STANDIN = os.path.join(lab.BUILD, "lib", "standin")
FIRMWARE = "20.31.1014"
MANY = {"gid", "address", "provider", "protocol", "transport"}
ESTIMATES = {"bandwidth": "98000", "latency": "600"}
SLOW = ("mlx5_2", "mlx5_4")  # whose cables are EDR
# Of what sources contradict each other here: who is believed first.
ORDER = {"lid": ["subnet", "verbs"], "mtu": ["verbs", "libfabric", "ethernet"], "speed": ["subnet", "verbs"],
         "name": ["verbs"]}


def quads(guid):
    return ":".join(guid[2:][at:at + 4] for at in range(0, 16, 4))


def with_fitting_guids(path):
    """A machine's XML, as text, in which the GUID of a node is that of its port less the port's number."""
    tree = ET.parse(path)
    for device in tree.iter("object"):
        infos = {info.get("name"): info for info in device.findall("info")}
        gid = infos.get("Port1GID0")
        if device.get("osdev_type") == hwloc_machines.OPENFABRICS and gid is not None and "NodeGUID" in infos:
            guid = int(gid.get("value").replace(":", "")[16:], 16)
            if guid > 1 and gid.get("value").startswith("fe80"):
                infos["NodeGUID"].set("value", quads(f"{guid - 1:#018x}"))
    return ET.tostring(tree.getroot(), encoding="unicode")


class Machine:
    """One host. number: its own, for addresses. gone: devices that were taken out, by name."""

    def __init__(self, host, number, path):
        self.host, self.number, self.folder = host, number, lab.tmpdir()
        self.xml = with_fitting_guids(path)
        self.firmware, self.gone, self.lids = {}, set(), {}
        self.taken_macs = set()

    def items(self):
        return [item for item in hwloc_machines.expect(self.xml) if item.get("name") not in self.gone]

    def rdma(self):
        """The ports of RDMA devices, by device: each has one here."""
        return {item["name"]: item for item in self.items() if "name" in item and "port" in item}

    def cabled(self):
        """Those that the subnet has: up, with a GUID of their own."""
        return {name: item for name, item in self.rdma().items()
                if item["state"] == "up" and "port-guid" in item and "node-guid" in item}

    # -- what the probes are shown

    def show(self):
        """Write all of it; anew after a change."""
        self._write("hwloc.xml", self._xml_without_what_is_gone())
        self._write_verbs()
        for source, items in (("libfabric", self._libfabric()), ("ucx", self._ucx()), ("ethernet", self._ethernet())):
            self._write(f"{source}.json", json.dumps({"host": self.host, "items": [{"source": source, **item}
                                                                                   for item in items]}))

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _write(self, name, text):
        lab.replace_file(self._path(name), text)

    def probes(self):
        return [f"hwloc:{self._path('hwloc.xml')}", "verbs"] + [
            f"{source}:{self._path(source)}.json" for source in ("libfabric", "ucx", "ethernet")]

    def environment(self):
        """Of the children that look: the stand-in of libibverbs."""
        return {"LD_LIBRARY_PATH": STANDIN, "STANDIN_VERBS": os.path.join(self.folder, "machine.json")}

    def _xml_without_what_is_gone(self):
        root = ET.fromstring(self.xml)
        for parent in list(root.iter("object")):
            for child in parent.findall("object"):
                if child.get("type") == "OSDev" and child.get("name") in self.gone:
                    parent.remove(child)
        return ET.tostring(root, encoding="unicode")

    def _write_verbs(self):
        folder = lab.tmpdir()
        host = vm.of_hwloc(folder, self.items())
        for device in host.machine["devices"]:
            device["firmware"] = self.firmware.get(device["name"], FIRMWARE)
            for port in device["ports"]:
                port.update(width=vm.X4, speed=self._rate(device["name"])[0], mtu=5,
                            lid=self.lids.get(device["name"], 0))
        lab.replace_file(self.environment()["STANDIN_VERBS"], json.dumps(host.machine))

    @staticmethod
    def _rate(name):
        """(in verbs' words, in the subnet's, Mb/s)"""
        return (vm.EDR, "EDR", "100000") if name in SLOW else (vm.HDR, "HDR", "200000")

    def width_and_rate(self, name):
        """As ibnetdiscover writes it."""
        return f"4x{self._rate(name)[1]}"

    def _libfabric(self):
        """Its MTU is another one."""
        for name, item in self.rdma().items():
            yield {"name": name, "provider": ["verbs", "verbs;ofi_rxm"], "protocol": ["FI_PROTO_RDMA_CM_IB_RC"],
                   **({"mtu": "2048"} if item["state"] == "up" else {})}

    def _ucx(self):
        for name in self.rdma():
            yield {"name": name, "port": "1", "transport": ["rc_mlx5", "ud_mlx5"], "estimates": ESTIMATES}

    def _ethernet(self):
        """Of the interfaces that have a MAC: one that another host has is in no plane, so it has no address."""
        place = 0
        for item in self.items():
            if "interface" not in item or "mac" not in item:
                continue
            place += 1
            yield {"interface": item["interface"], "mac": item["mac"], "state": "up", "mtu": "1500", "speed": "10000",
                   "type": "Ethernet",
                   **({} if item["mac"] in self.taken_macs else {"address": [f"10.92.{self.number}.{place}/16"]})}

    # -- what must be known then

    def devices(self):
        """Device name -> {(kind, text): sources}: those of RDMA, and the interfaces that are in a plane."""
        found, by_interface = {}, {}
        for item in self.items():
            if "name" in item and "port" in item:
                found[item["name"]] = self._said_of_rdma(item)
        for item in self.items():
            if "interface" in item:
                by_interface[item["interface"]] = device = self._device_of(item, found)
                self._say(found.setdefault(device, {}), "hwloc", item)
        for item in self._ethernet():
            self._say(found[by_interface[item["interface"]]], "ethernet", item)
        rdma = self.rdma()
        return {name: facts for name, facts in found.items()
                if name in rdma or any(kind == "address" for kind, _ in facts)}

    def _device_of(self, item, found):
        """An interface is that of an RDMA port by GUID, else by PCI function; else a device by itself."""
        for key in ("port-guid", "pci"):
            names = [name for name in found if key in item and (key, item[key]) in found[name]]
            if len(names) == 1:
                return names[0]
        return item["interface"]

    def _said_of_rdma(self, item):
        facts, name = {}, item["name"]
        self._say(facts, "hwloc", item)
        self._say(facts, "verbs", self._verbs(item))
        for source, items in (("libfabric", self._libfabric()), ("ucx", self._ucx())):
            for one in items:
                if one["name"] == name:
                    self._say(facts, source, {**one, **one.get("estimates", {})})
        if name in self.cabled():
            self._say(facts, "subnet", self._subnet(item))
        return facts

    def _subnet(self, item):
        return {"name": item["name"], "port": "1", "node-guid": item["node-guid"], "system-guid": item["system-guid"],
                "port-guid": item["port-guid"], "type": "InfiniBand", "state": "up",
                "speed": self._rate(item["name"])[2], "lid": str(self.lids[item["name"]])}

    def _verbs(self, item):
        """As verbs_machines tells the stand-in of it."""
        name = item["name"]
        same = ("name", "port", "node-guid", "system-guid", "port-guid", "pci", "bus", "vendor-id", "part-id", "state",
                "gid")
        said = {key: item[key] for key in same if key in item}
        said |= {"firmware": self.firmware.get(name, FIRMWARE),
                 "type": "InfiniBand" if "port-guid" in item or item.get("type") == "InfiniBand" else "Ethernet"}
        if "pci" in item:
            said["driver"] = "mlx5_core"
        else:
            said |= {"software": "yes"}
        if item["state"] == "up":
            said |= {"mtu": "4096", "speed": self._rate(name)[2]}
        if name in self.lids:
            said["lid"] = str(self.lids[name])
        return said

    @staticmethod
    def _say(facts, source, item):
        for kind, texts in item.items():
            if kind in ("source", "estimates"):
                continue
            for text in texts if isinstance(texts, list) else [texts]:
                facts.setdefault((kind, text), set()).add(source)

    @staticmethod
    def believed(facts, kind):
        """The one text that is believed, None: nobody says any."""
        texts = {text: sources for (of, text), sources in facts.items() if of == kind}
        if len(texts) < 2:
            return next(iter(texts), None)
        for source in ORDER[kind]:
            for text, sources in texts.items():
                if source in sources:
                    return text
        raise AssertionError(f"nobody is believed about {kind}: {texts}")


def _ca(name, node, system, leaf, port, rate):
    return (f'vendid=0x2c9\ndevid=0x101b\nsysimgguid={system}\ncaguid={node}\nCa 1 "{name}"  # "{name}"\n'
            f'[1] "{leaf}"[{port}]  # lid 0 lmc 0 "{leaf}" lid 0 {rate}\n\n')


def _switch(guid, name, cables):
    lines = [f'[{port}] "{other}"[{at}]  # "{other}" lid 0 {rate}\n'
             for port, (other, at, rate) in enumerate(cables, 1)]
    return (f"vendid=0x2c9\ndevid=0xd2f0\nsysimgguid={guid:#x}\nswitchguid={guid:#x}\n"
            f'Switch {len(cables)} "{name}"  # "{name}" enhanced port 0 lid 0 lmc 0\n' + "".join(lines) + "\n")


LEAVES, SPINES = ("leaf1", "leaf2"), ("spine1", "spine2")


def places(machines, strangers):
    """Leaf -> [(name of an HCA, node GUID, system GUID, rate)], in the order of its ports."""
    found = {leaf: [] for leaf in LEAVES}
    for machine in machines:
        for place, (name, item) in enumerate(sorted(machine.cabled().items())):
            found[LEAVES[place % 2]].append((f"{machine.host} {name}", item["node-guid"], item["system-guid"],
                                             machine.width_and_rate(name)))
    for number, name in enumerate(strangers):
        found[LEAVES[number % 2]].append((name, *[f"{0x900000 + 16 * number:#x}"] * 2, "4xHDR"))
    return found


def netfile(machines, strangers=()):
    """A fat tree of two leaves and two spines that all of them are cabled to; strangers: hosts of one HCA each that do
    not report."""
    at_leaf, text = places(machines, strangers), ""
    for number, leaf in enumerate(LEAVES):
        cables = [(name, 1, rate) for name, _, _, rate in at_leaf[leaf]] + [(s, number + 1, "4xHDR") for s in SPINES]
        text += _switch(0x200000 + number, leaf, cables)
    for number, spine in enumerate(SPINES):
        text += _switch(0x300000 + number, spine, [(leaf, len(at_leaf[leaf]) + 1 + number, "4xHDR") for leaf in LEAVES])
    return text + "".join(_ca(name, node, system, leaf, port, rate) for leaf, hcas in at_leaf.items()
                          for port, (name, node, system, rate) in enumerate(hcas, 1))
