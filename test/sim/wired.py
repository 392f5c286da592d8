"""wired - captures of fabrics that a test wires by itself, node by node and cable by cable."""


class Fabric:
    """A capture of leaves that all have cables to all spines."""

    def __init__(self, leaves=3, spines=2, model="0xd2f0"):
        self.nodes, self.cables = {}, []
        for i in range(leaves):
            self.node(f"leaf{i + 1}", model, 40)
        for i in range(spines):
            self.node(f"spine{i + 1}", model, 40)
            for k in range(leaves):
                self.cable(f"leaf{k + 1}", 31 + i, f"spine{i + 1}", k + 1, "4xHDR")

    def node(self, name, model, ports=1, system=None):
        """Its GUID. A switch has more than two ports."""
        guid = 0x5000000000 + 16 * len(self.nodes)
        self.nodes[name] = (guid, model, ports, system or guid)
        return guid

    def cable(self, a, a_port, b, b_port, rate):
        self.cables.append((a, a_port, b, b_port, rate))

    def host(self, name, leaf, port, rate="4xHDR", model="0x101b", system=None):
        guid = self.node(name, model, system=system)
        self.cable(name, 1, f"leaf{leaf}" if isinstance(leaf, int) else leaf, port, rate)
        return guid

    def lid(self, name):
        return 1 + list(self.nodes).index(name)

    def text(self):
        keys = {name: f"{'S' if ports > 2 else 'H'}-{guid:016x}" for name, (guid, _, ports, _) in self.nodes.items()}
        lines = {}
        for cable in self.cables:
            for name, port, far, far_port in (cable[:4], cable[2:4] + cable[:2]):
                guid, there = self.nodes[name][0], self.nodes[far][0]
                mine, its = (f"({node + p:x})" if keys[n][0] == "H" else "" for n, node, p in ((name, guid, port), (far, there, far_port)))
                comment = f'"{far}" lid {self.lid(far)} {cable[4]}'
                lines.setdefault(name, []).append(
                    f'[{port}]{mine}\t"{keys[far]}"[{far_port}]{its}\t\t# ' + ("" if keys[name][0] == "S" else f"lid {self.lid(name)} lmc 0 ") + comment)
        out = []
        for name, (guid, model, ports, system) in self.nodes.items():
            out.append(f"vendid=0x2c9\ndevid={model}\nsysimgguid=0x{system:x}\n" +
                       (f'switchguid=0x{guid:x}({guid:x})\nSwitch\t{ports} "{keys[name]}"\t\t# "{name}" base port 0 lid {self.lid(name)} lmc 0'
                        if keys[name][0] == "S" else f'caguid=0x{guid:x}\nCa\t{ports} "{keys[name]}"\t\t# "{name}"'))
            out += sorted(lines.get(name, []), key=lambda line: int(line[1:line.index("]")]))
            out.append("")
        return "\n".join(out)
