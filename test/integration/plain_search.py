"""plain_search - costs, groups and places as a plain search finds them in the text of a recorded fabric, which knows nothing of
how fabricd does it."""
import heapq
import re

RATES = {"HDR": 200, "EDR": 100}  # of four lanes, as the recorded fabrics have them


class Fabric:
    """What stands in a capture: {switch or HCA: {port: (neighbour, its port, Gb/s)}}, and what they are called."""

    def __init__(self, text):
        self.ports, self.names, self.hosts = {}, {}, {}
        for record in text.split("\n\n"):
            node = re.search(r'^(Switch|Ca)\s+\d+ "(\S+)"\s+# "(\S+)', record, re.MULTILINE)
            if node is None:
                continue
            kind, node_id, name = node.groups()
            self.names[node_id] = name.rstrip('"')
            self.ports[node_id] = {
                int(port): (other, int(other_port), RATES[rate])
                for port, other, other_port, rate in re.findall(
                    r'^\[(\d+)\](?:\([0-9a-f]+\))?\s+"(\S+)"\[(\d+)\].* 4x(\w+)$', record, re.MULTILINE)}
            if kind == "Ca":
                self.hosts[self.names[node_id]] = node_id
        self.order = sorted(self.hosts, key=lambda host: int(re.sub(r"\D", "", host)))

    def is_switch(self, node):
        return node not in self.hosts.values()

    def edge(self, host):
        """The switch that a host is on, and the port of it."""
        (switch, port, _), = self.ports[self.hosts[host]].values()
        return switch, port

    def costs(self, host):
        """Dijkstra's search, from one host to all: 10 for a link of the fastest rate, in proportion more for others."""
        fastest = max(rate for ports in self.ports.values() for _, _, rate in ports.values())
        found, queue = {}, [(0, self.hosts[host])]
        while queue:
            cost, node = heapq.heappop(queue)
            if node in found:
                continue
            found[node] = cost
            for other, _, rate in self.ports[node].values():
                heapq.heappush(queue, (cost + -(-10 * fastest // rate), other))
        return [found[self.hosts[other]] for other in self.order]

    def groups(self):
        """Hosts by their switch, in the order of the first of them."""
        on = {}
        for host in self.order:
            on.setdefault(self.edge(host)[0], []).append(host)
        return ";".join(f"{number}:{','.join(hosts)}" for number, hosts in enumerate(on.values()))
