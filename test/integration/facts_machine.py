"""facts_machine - a recorded machine of six RDMA ports and a network interface, three processors' memory in two packages
(test/data/hwloc/distances.xml), with what verbs, UCX, libfabric and ethernet would say of them."""
import os

import lab

HOST = "node0001"
MACHINE = os.path.join(lab.ROOT, "test", "data", "hwloc", "distances.xml")
GUID = "b8599f0300fd0000"  # of mlx5_0, its port, and its card
# Same card, below one PCI switch, of one NUMA node, in one package, in two.
COSTS = {("mlx5_0", "mlx5_1"): 1, ("mlx5_0", "mlx5_2"): 2, ("mlx5_1", "mlx5_2"): 2, ("mlx5_0", "mlx5_3"): 4,
         ("mlx5_2", "mlx5_3"): 4, ("mlx5_0", "mlx5_4"): 6, ("mlx5_3", "mlx5_4"): 6, ("mlx5_0", "mlx5_5"): 9,
         ("mlx5_4", "mlx5_5"): 9}


def verbs(name, guid, **more):
    return {"source": "verbs", "name": name, "port": "1", "node-guid": guid, "firmware": "20.31.1014",
            "driver": "mlx5_core", "type": "InfiniBand", "state": "up", "mtu": "4096", **more}


ITEMS = [
    verbs("mlx5_0", "0x" + GUID, **{"port-guid": "0x" + GUID}, speed="200000"),
    verbs("mlx5_1", "0xb8599f0300fd0001", **{"port-guid": "0xb8599f0300fd0001"}, speed="100000"),
    {"source": "verbs", "name": "mlx5_5", "port": "1", "node-guid": "0xb8599f0300fd0400", "state": "down"},
    {"source": "ucx", "name": "mlx5_0", "port": "1", "transport": ["rc_mlx5"], "estimates": {"latency": "600"}},
    {"source": "libfabric", "name": "mlx5_0", "mtu": "2048", "provider": ["verbs"]},
    {"source": "ethernet", "interface": "eno1", "mac": "a4:93:4c:aa:61:1e", "address": ["10.91.0.2/16"], "mtu": "9000",
     "speed": "1000", "state": "up", "driver": "igb", "type": "Ethernet", "firmware": "1.63, 0x800009fa"}]


def sweep(text, mine):
    """A capture of a fattree2:2,1,2, with `mine` as one in which the first host is this one, and its HCA mlx5_0 of the machine."""
    if mine:
        for before, after in (("0000000000100000", GUID), ("0x100000\n", f"0x{GUID}\n"), ("(100001)", f"({GUID})"),
                              ("0000000000100001", GUID), ('"node0001"', f'"{HOST} mlx5_0"')):
            assert before in text, before
            text = text.replace(before, after)
    return text
