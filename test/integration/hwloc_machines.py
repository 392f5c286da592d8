"""hwloc_machines - what the probe `hwloc` must say of a machine in hwloc's XML, worked out from the XML itself; and
machines made up at random.

Nothing here knows hwloc: an element's ancestors, a few attributes, a few <info>.
"""
import ipaddress
import random
import re
import xml.etree.ElementTree as ET

NETWORK, OPENFABRICS = "2", "3"
MOST_GIDS = 32
# Classes of PCI devices that hwloc keeps: storage, network, display, processor, serial InfiniBand, accelerators, memory.
KEPT_CLASSES = ("01", "02", "03", "05", "0b", "0c06", "12")


# ---- what must be said ----------------------------------------------------------------------------------

def _mask(text):
    """A bitmap as hwloc writes it: "0x0000ffff,0xff000000", the highest word first."""
    value = 0
    for word in (text or "0").split(","):
        value = value << 32 | (int(word, 16) if word else 0)
    return value


def _words(mask):
    """As _mask() reads it."""
    words = []
    while mask or not words:
        words.insert(0, f"0x{mask & 0xffffffff:08x}")
        mask >>= 32
    return ",".join(words)


def _cpus(element):
    """As taskset(1) lists them; runs of at least three are written with their step."""
    mask, runs = _mask(element.get("cpuset")), []
    cpus = [cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1]
    while cpus:
        step = cpus[1] - cpus[0] if len(cpus) > 1 else 1
        n = next((n for n in range(1, len(cpus)) if cpus[n] - cpus[n - 1] != step), len(cpus))
        n = 1 if n == 2 and step > 1 else n
        runs.append(f"{cpus[0]}-{cpus[n - 1]}" + (f":{step}" if step > 1 else "") if n > 1 else str(cpus[0]))
        del cpus[:n]
    return ",".join(runs) or None


def _infos(element):
    return [(info.get("name"), info.get("value")) for info in element.findall("info")]


def _pci(busid):
    domain, bus, device, function = re.fullmatch(r"(\w+):(\w+):(\w+)\.(\w)", busid).groups()
    return f"{domain}:{bus}:{device}:0{function}"


def _device_number(bridge):
    return int(bridge.get("pci_busid").split(":")[2].split(".")[0], 16)


def _pci_bridge(element):
    return element.get("type") == "Bridge" and element.get("bridge_type") == "1-1"


def _switch(above):
    """Of the PCI bridges above a device, topmost first."""
    if len(above) > 1 and any(_pci_bridge(child) and _device_number(child) for child in above[0]):
        return above[0]
    return above[1] if len(above) > 2 else None


def _place(ancestors, machine):
    """NUMA node and package of what the device hangs on."""
    near = [element for element in ancestors if element.get("cpuset")][-1]
    facts = {}
    nodes = [node for node in machine.iter("object") if node.get("type") == "NUMANode"
             and _mask(node.get("nodeset")) & _mask(near.get("nodeset"))]
    if len({node.get("cpuset") for node in nodes}) == 1:
        facts["numa"] = str(min(int(node.get("os_index")) for node in nodes))
    for package in machine.iter("object"):
        if package.get("type") == "Package" and _mask(near.get("cpuset")) & ~_mask(package.get("cpuset")) == 0:
            facts["package"] = package.get("os_index")
            facts["package-cpus"] = _cpus(package)
    if facts:
        facts["cpus"] = _cpus(near)
    return facts


def _guid(text):
    digits = (text or "").replace(":", "")
    return "0x" + digits if re.fullmatch("[0-9a-f]{16}", digits) and int(digits, 16) else None


def _interface(device, pci):
    infos = dict(_infos(device))
    address = infos.get("Address", "").lower()
    facts = {"interface": device.get("name")}
    if re.fullmatch("([0-9a-f]{2}:){19}[0-9a-f]{2}", address):
        facts |= {"type": "InfiniBand", "port-guid": _guid(address[36:]), "port": infos.get("Port")}
    elif re.fullmatch("([0-9a-f]{2}:){5}[0-9a-f]{2}", address):
        facts["mac"] = address if address.strip("0:") else None
        if pci is not None and pci.get("pci_type")[:4] in ("0200", "0207"):
            facts["type"] = "Ethernet"
    return facts


def _port(infos, port):
    state, lid, gids, port_guid = None, 0, [], None
    for name, value in infos:
        match = re.fullmatch(rf"Port{port}(State|LID|GID)(\d*)", name)
        if match and match[1] == "State":
            state = {"4": "up", "1": "down", "2": "down", "3": "down", "5": "down"}.get(value, "unknown")
        elif match and match[1] == "LID":
            lid = int(value, 16)
        elif match and int(value.replace(":", ""), 16):
            gids.append(ipaddress.ip_address(value))
            if match[2] == "0":
                port_guid = gids[0]
    facts = {"port": str(port), "state": state}
    if lid:
        facts |= {"lid": str(lid), "type": "InfiniBand"}
    if port_guid is not None:
        of_mac = port_guid.packed[11:13] == b"\xff\xfe"
        if lid or (not of_mac and port_guid.packed[0] == 0xfe):
            facts["port-guid"] = _guid(port_guid.packed[8:].hex())
    unique = list(dict.fromkeys(gids))[:MOST_GIDS]
    facts["gid"] = sorted(_gid_text(gid) for gid in unique) or None
    return facts


def _gid_text(gid):
    """As inet_ntop() of the C library writes it."""
    mapped = gid.ipv4_mapped
    return f"::ffff:{mapped}" if mapped else str(gid)


def _rdma(device):
    infos = _infos(device)
    named = dict(infos)
    name = device.get("name")
    facts = {"name": name if len(name) < 64 else None, "node-guid": _guid(named.get("NodeGUID")),
             "system-guid": _guid(named.get("SysImageGUID"))}
    ports = {int(match[1]) for match in (re.match(r"Port(\d+)", key) for key, _ in infos) if match}
    for port in sorted(port for port in ports if 1 <= port <= 254):
        yield facts | _port(infos, port)
    if not ports:
        yield facts


def _common(ancestors, machine):
    parent = ancestors[-1]
    facts = _place(ancestors, machine)
    above = [element for element in ancestors if _pci_bridge(element)]
    if parent.get("type") == "PCIDev" and parent.get("pci_type").startswith(KEPT_CLASSES):
        vendor, part = re.search(r"\[(\w+):(\w+)\]", parent.get("pci_type")).groups()
        named = dict(_infos(parent))
        speed = round(float(parent.get("pci_link_speed")) * 8000)
        facts |= {"bus": "PCI", "pci": _pci(parent.get("pci_busid")), "vendor-id": "0x" + vendor,
                  "part-id": "0x" + part, "vendor": named.get("PCIVendor"), "part": named.get("PCIDevice"),
                  "slot-speed": str(speed) if speed else None}
        switch = _switch(above)
        facts["switch"] = None if switch is None else _pci(switch.get("pci_busid"))
    elif parent.get("type") not in ("PCIDev", "Bridge"):
        facts["bus"] = "virtual"
    return facts


def _walk(element, ancestors):
    for child in element.findall("object"):
        yield child, [*ancestors, element]
        yield from _walk(child, [*ancestors, element])


def expect(xml):
    """The items of a machine, in no order: dicts as scan_dump prints them, without their source."""
    machine = ET.fromstring(xml)
    items = []
    for device, ancestors in _walk(machine, []):
        kind = device.get("osdev_type")
        if device.get("type") != "OSDev" or kind not in (NETWORK, OPENFABRICS):
            continue
        parent = ancestors[-1]
        pci = parent if parent.get("type") == "PCIDev" else None
        common = _common(ancestors, machine)
        for facts in ([_interface(device, pci)] if kind == NETWORK else _rdma(device)):
            items.append({key: value for key, value in (common | facts).items() if value is not None})
    return items


# ---- machines made up -----------------------------------------------------------------------------------

class _Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.gp = 1
        self.devices = 0
        self.bus = 0
        self.above = None  # the topmost switch above what is being made
        self.switches = {}  # of each PCI device

    def element(self, kind, inner="", **attributes):
        self.gp += 1
        text = "".join(f' {name}="{value}"' for name, value in attributes.items())
        return f'<object type="{kind}" gp_index="{self.gp}"{text}>\n{inner}</object>\n'

    def placed(self, kind, cpus, nodes, inner="", **attributes):
        return self.element(kind, inner, cpuset=_words(cpus), complete_cpuset=_words(cpus), nodeset=hex(nodes),
                            complete_nodeset=hex(nodes), **attributes)

    def hex(self, digits):
        return f"{self.random.getrandbits(4 * digits):0{digits}x}"

    def info(self, name, value):
        return f'<info name="{name}" value="{value}"/>\n'

    def quads(self):
        return ":".join(self.hex(4) for _ in range(4))

    def interface(self):
        length = self.random.choice([6, 6, 20, 19])
        inner = self.info("Address", ":".join(self.hex(2) for _ in range(length)))
        if self.random.random() < 0.5:
            inner += self.info("Port", self.random.randint(1, 2))
        return self.element("OSDev", inner, name=f"eth{self.devices}", osdev_type=NETWORK)

    def rdma(self):
        inner = self.info("NodeGUID", self.quads()) + self.info("SysImageGUID", self.quads())
        for port in range(1, self.random.randint(0, 3) + 1):
            inner += self.info(f"Port{port}State", self.random.randint(0, 6))
            inner += self.info(f"Port{port}LID", hex(self.random.choice([0, self.random.randint(1, 49151)])))
            inner += self.info(f"Port{port}LMC", 0)
            for index in range(self.random.randint(0, 40)):
                low = self.random.choice([self.quads(), "0202:c9ff:fe0e:0b74", "0000:0000:0000:0000"])
                high = self.random.choice(["fe80:0000:0000:0000", "2001:0db8:0000:0001", "0000:0000:0000:0000"])
                inner += self.info(f"Port{port}GID{index}", f"{high}:{low}")
        return self.element("OSDev", inner, name=f"mlx5_{self.devices}", osdev_type=OPENFABRICS)

    def os_devices(self):
        made = ""
        for _ in range(self.random.randint(0, 3)):
            self.devices += 1
            made += self.random.choice([self.interface, self.rdma])()
        return made

    def card(self, bus):
        made = ""
        for function in range(self.random.randint(1, 3)):
            self.switches[f"0000:{bus:02x}:00:0{function}"] = self.above
            names = self.info("PCIVendor", "Vendor " + self.hex(3)) + self.info("PCIDevice", "Part &amp; " + self.hex(3))
            speed = self.random.choice([0, 2.0, 15.753846, 31.507692])
            made += self.element("PCIDev", (names if self.random.random() < 0.8 else "") + self.os_devices(),
                                 pci_busid=f"0000:{bus:02x}:00.{function}", pci_link_speed=f"{speed:f}",
                                 pci_type=f"{self.random.choice(['0200', '0207', '0280', '0108', '0302'])} "
                                          f"[{self.hex(4)}:{self.hex(4)}] [0000:0000] 00")
        return made

    def bridge(self, bus, device, depth, make_below):
        self.bus += 1
        first = self.bus
        below = make_below(first, depth + 1)
        return self.element("Bridge", below, bridge_type="1-1", depth=depth, pci_link_speed="0.000000",
                            bridge_pci=f"0000:[{first:02x}-{self.bus:02x}]", pci_type="0604 [15b3:1976] [0000:0000] 00",
                            pci_busid=f"0000:{bus:02x}:{device:02x}.0")

    def inside_switch(self, bus, depth):
        # Under a root port that is not seen, a switch with number 0 alone is as a root port with a card.
        numbers = sorted(self.random.sample(range(1 if depth == 2 else 0, 8), self.random.randint(1, 3)))
        return "".join(self.bridge(bus, number, depth, self.below_link) for number in numbers)

    def switch(self, bus, device, depth):
        outer = self.above
        self.above = outer or f"0000:{bus:02x}:{device:02x}:00"
        made = self.bridge(bus, device, depth, self.inside_switch)
        self.above = outer
        return made

    def below_link(self, bus, depth):
        """What is at the end of a link: a switch, a card with a bridge, a card."""
        roll = self.random.random()
        if roll < 0.35 and depth < 6:
            return self.switch(bus, 0, depth)
        if roll < 0.45 and depth < 6:
            return self.bridge(bus, 0, depth, lambda below, _: self.card(below))
        return self.card(bus)

    def host_bridge(self):
        self.bus += 1
        bus = self.bus
        below = "".join(self.switch(bus, device, 1) if self.random.random() < 0.3 else
                        self.bridge(bus, device, 1, self.below_link) for device in range(1, self.random.randint(2, 4)))
        return self.element("Bridge", below, bridge_type="0-1", depth=0, bridge_pci=f"0000:[{bus:02x}-{self.bus:02x}]")

    def machine(self):
        packages, node, cpu = "", 0, 0
        for number in range(self.random.randint(1, 3)):
            cpus, nodes, memories = 1 << cpu, 0, ""
            for _ in range(self.random.randint(1, 2)):
                memories += self.placed("NUMANode", cpus, 1 << node, os_index=node, local_memory=1 << 30)
                nodes |= 1 << node
                node += 1
            core = self.placed("Core", cpus, nodes, self.placed("PU", cpus, nodes, os_index=cpu), os_index=cpu)
            bridges = "".join(self.host_bridge() for _ in range(self.random.randint(0, 2)))
            packages += self.placed("Package", cpus, nodes, memories + core + bridges, os_index=number + 3)
            cpu += 1
        bridges = self.host_bridge() if self.random.random() < 0.5 else ""
        cpus, nodes = (1 << cpu) - 1, (1 << node) - 1
        whole = self.placed("Machine", cpus, nodes, packages + bridges + self.os_devices(), os_index=0,
                            allowed_cpuset=hex(cpus), allowed_nodeset=hex(nodes))
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<topology version="2.0">\n{whole}</topology>\n'


def machine(seed):
    """(XML of a machine, the topmost switch above each of its PCI devices or None); a seed gives always the same."""
    maker = _Maker(seed)
    return maker.machine(), maker.switches


def two_sockets(cores=12, hcas=2, interleaved=False, threads=2):
    """XML of a machine of two sockets with so many cores (of two threads) and so many HCAs, all of which are up, on each.

    interleaved: processors are numbered across the sockets, else socket by socket, the second threads behind."""
    maker, packages, name = _Maker(0), "", 0

    def processor(socket, core, thread):
        return (thread * cores + core) * 2 + socket if interleaved else (thread * 2 + socket) * cores + core

    for socket in range(2):
        inner, cpus = "", 0
        for core in range(cores):
            numbers = [processor(socket, core, thread) for thread in range(threads)]
            units = "".join(maker.placed("PU", 1 << cpu, 1 << socket, os_index=cpu) for cpu in numbers)
            inner += maker.placed("Core", sum(1 << cpu for cpu in numbers), 1 << socket, units, os_index=core)
            cpus |= sum(1 << cpu for cpu in numbers)
        node = maker.placed("NUMANode", cpus, 1 << socket, os_index=socket, local_memory=1 << 30)
        first, below = 64 * socket, ""
        for hca in range(hcas):
            guid = ":".join(f"{number:04x}" for number in (0xb859, 0x9f03, 0xfc, 16 * name))
            port = ":".join(f"{number:04x}" for number in (0xb859, 0x9f03, 0xfc, 16 * name + 1))
            device = maker.element("OSDev", "".join([
                maker.info("NodeGUID", guid), maker.info("SysImageGUID", guid), maker.info("Port1State", 4),
                maker.info("Port1LID", hex(16 + name)), maker.info("Port1GID0", f"fe80:0000:0000:0000:{port}")]),
                name=f"mlx5_{name}", osdev_type=OPENFABRICS)
            bus = first + 1 + hca
            card = maker.element("PCIDev", device, pci_busid=f"0000:{bus:02x}:00.0", pci_link_speed="31.507692",
                                 pci_type="0207 [15b3:101b] [15b3:101b] 00")
            below += maker.element("Bridge", card, bridge_type="1-1", depth=1, pci_link_speed="31.507692",
                                   bridge_pci=f"0000:[{bus:02x}-{bus:02x}]", pci_type="0604 [8086:1976] [0000:0000] 00",
                                   pci_busid=f"0000:{first:02x}:{1 + hca:02x}.0")
            name += 1
        bridge = maker.element("Bridge", below, bridge_type="0-1", depth=0,
                               bridge_pci=f"0000:[{first:02x}-{first + hcas:02x}]")
        packages += maker.placed("Package", cpus, 1 << socket, node + inner + bridge, os_index=socket)
    every = (1 << 2 * threads * cores) - 1
    whole = maker.placed("Machine", every, 3, packages, os_index=0, allowed_cpuset=_words(every), allowed_nodeset="0x3")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<topology version="2.0">\n{whole}</topology>\n'
