"""machines - recorded machines of hosts of a generated fabric."""

CIDR = "10.91.0.0/16"


def machine(number, **changes):
    """What the probes of host `number` of the fabric would record: its HCA, and a network interface. `changes` are
    facts of the HCA as verbs tells them; host, and with extra=N so many HCAs more that have no cable."""
    node = 0x100000 + 2 * (number - 1)
    host, extra = changes.pop("host", f"node{number:04}"), changes.pop("extra", 0)
    hca = {"source": "verbs", "name": "mlx5_0", "port": "1", "node-guid": f"{node:#018x}",
           "port-guid": f"{node + 1:#018x}", "firmware": "20.31.1014", "driver": "mlx5_core", "state": "up"}
    hca.update(changes)
    items = [hca, {"source": "hwloc", "name": "mlx5_0", "pci": "0000:c1:00:00", "numa": "1", "package": "0",
                   "vendor": "Mellanox Technologies"},
             {"source": "ethernet", "interface": "eth0", "mac": f"02:00:00:00:00:{number:02x}", "state": "up",
              "address": [f"10.91.0.{number}/16"], "speed": "10000", "mtu": "1500"}]
    for index in range(1, extra + 1):
        guid = 0xaa000000 + 0x1000 * number + 2 * index
        items.append({"source": "verbs", "name": f"mlx5_{index}", "port": "1", "node-guid": f"{guid:#018x}",
                      "port-guid": f"{guid + 1:#018x}", "state": "down"})
    return {"host": host, "items": items}
