"""verbs_machines - hosts with RDMA devices for the stand-in of libibverbs: what it says, the sysfs that goes with it,
and what the probe `verbs` must report of them.

The sysfs tree has the shape of the kernel's: class/infiniband/NAME leads to the device's folder, whose "device" leads to
the PCI function, where "driver", "subsystem", "vendor" and "net" are.
"""
import ipaddress
import json
import os

# Numbers of verbs.h
DOWN, INIT, ARMED, ACTIVE = 1, 2, 3, 4
INFINIBAND, ETHERNET = 1, 2
X1, X4, X8, X12, X2 = 1, 2, 4, 8, 16
SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR = (1 << bit for bit in range(8))
RNIC = 4  # node type
IB, IWARP, USNIC = 0, 1, 2  # transport


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Host:
    def __init__(self, folder):
        self.folder = folder
        self.sysfs = os.path.join(folder, "sys")
        self.machine = {"sysfs": self.sysfs, "devices": []}

    def add(self, name, ports, pci=None, driver=None, pci_vendor=None, tree=True, **said):
        """A device. ports: what the stand-in says of each, with "rate" and "ndev" for sysfs."""
        self.machine["devices"].append(
            {"name": name, **said, "ports": [{key: value for key, value in port.items() if key not in ("rate", "ndev")}
                                             for port in ports]})
        if tree:
            self._tree(name, ports, pci, driver, pci_vendor)
        return self

    def _tree(self, name, ports, pci, driver, vendor):
        above = f"{self.sysfs}/devices/pci0000:00/{pci}" if pci else f"{self.sysfs}/devices/virtual"
        folder = f"{above}/infiniband/{name}"
        for number, port in enumerate(ports, 1):
            if "rate" in port:
                write(f"{folder}/ports/{number}/rate", port["rate"] + "\n")
            if "ndev" in port:
                write(f"{folder}/ports/{number}/gid_attrs/ndevs/0", port["ndev"] + "\n")
        os.makedirs(folder, exist_ok=True)
        os.makedirs(f"{self.sysfs}/class/infiniband", exist_ok=True)
        os.symlink(os.path.relpath(folder, f"{self.sysfs}/class/infiniband"), f"{self.sysfs}/class/infiniband/{name}")
        if pci:
            os.symlink("../../../" + pci, f"{folder}/device")
            self._function(above, driver, vendor)

    @staticmethod
    def _function(folder, driver, vendor):
        for link, target in (("subsystem", "../../../bus/pci"), ("driver", f"../../../bus/pci/drivers/{driver}")):
            if not os.path.lexists(f"{folder}/{link}"):
                os.symlink(target, f"{folder}/{link}")
        if vendor:
            write(f"{folder}/vendor", vendor + "\n")

    def interface(self, pci, name, dev_port=0, dev_id="0x0", **files):
        """A network interface of a PCI function."""
        folder = f"{self.sysfs}/devices/pci0000:00/{pci}/net/{name}"
        for file, text in {"dev_port": dev_port, "dev_id": dev_id, **files}.items():
            write(f"{folder}/{file}", f"{text}\n")
        return self

    def parent(self, name, interface):
        """The interface that a device of software stands on, as rxe says it."""
        write(f"{self.sysfs}/devices/virtual/infiniband/{name}/parent", interface + "\n")
        return self

    def fails(self, **how):
        self.machine["fails"] = how
        return self

    def file(self):
        path = os.path.join(self.folder, "machine.json")
        write(path, json.dumps(self.machine, indent=1))
        return path


def gid(guid, prefix=0xfe80000000000000):
    return str(ipaddress.ip_address(prefix << 64 | int(guid, 16)))


def ib_port(guid, lid, speed=HDR, width=X4, state=ACTIVE, **more):
    return {"state": state, "lid": lid, "link": INFINIBAND, "width": width, "speed": speed, "mtu": 5,
            "gids": [gid(guid)], **more}


def roce_port(gids, speed=EDR, width=X4, state=ACTIVE, mtu=3, **more):
    return {"state": state, "lid": 0, "link": ETHERNET, "width": width, "speed": speed, "mtu": mtu, "gids": gids, **more}


def of_hwloc(folder, items):
    """The host whose RDMA devices are those that hwloc reports (hwloc_machines.expect)."""
    host = Host(folder)
    devices = {}
    for item in items:
        if "name" in item:
            devices.setdefault(item["name"], []).append(item)
    for name, ports in devices.items():
        domain, function = ports[0].get("pci", "").rpartition(":")[::2]
        host.add(name, [_port_of_hwloc(item) for item in ports if "port" in item],
                 f"{domain}.{function[1]}" if domain else None, "mlx5_core", ports[0].get("vendor-id"),
                 guid=ports[0].get("node-guid", "0x0"), system=ports[0].get("system-guid", "0x0"),
                 part=int(ports[0].get("part-id", "0x0"), 16))
    return host


def _port_of_hwloc(item):
    guid = item.get("port-guid")
    infiniband = item.get("type") == "InfiniBand" or guid is not None
    gids = sorted(item.get("gid", []), key=lambda text: not (guid and _ends_with(text, guid)))
    if infiniband and guid is None:
        gids.insert(0, "fe80::")
    return {"state": {"up": ACTIVE, "down": DOWN, "unknown": 0}[item["state"]], "lid": int(item.get("lid", 0)),
            "link": INFINIBAND if infiniband else ETHERNET, "gids": gids}


def _ends_with(text, guid):
    return int(ipaddress.ip_address(text)) & (1 << 64) - 1 == int(guid, 16)
