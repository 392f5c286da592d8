"""fabric_text - netfiles and captures of generated fabrics, changed as texts: slower cables, pulled ones, lost nodes."""
import os
import re

import lab

# A capture of other people that may lie beside the project: ibnetdiscover of a rail-optimised cluster of four rails.
REAL = os.environ.get("FABRICD_RAILS_CAPTURE", os.path.join(
    os.path.dirname(lab.ROOT), "shared", "data", "ibnetdiscover", "multirail-542.txt"))


def one_fast_cable(netfile, leaf, spine):
    """A netfile in which, of the leaf's cables to spines, all but the one to `spine` are slower (EDR)."""
    lines, inside = [], None
    for line in netfile.splitlines():
        start = re.match(r'(?:Switch|Ca|Hca)\s+\d+\s+"([^"]+)"', line)
        cable = re.match(r'\[\d+\]\s+"([^"]+)"', line)
        if start:
            inside = start.group(1)
        elif cable and leaf in (inside, cable.group(1)):
            other = cable.group(1) if inside == leaf else inside
            if other.startswith("spine") and other != spine:
                line = line.replace("4xHDR", "4xEDR")
        lines.append(line)
    return "\n".join(lines) + "\n"


def _records(capture):
    """The records of a capture: (name or None, text)."""
    for text in capture.split("\n\n"):
        name = re.search(r'^(?:Switch|Ca)\s.*?#\s*"([^"]+)"', text, re.MULTILINE)
        yield name and name.group(1), text


def slower(capture, node):
    """A capture in which all cables of a node run at half their rate (EDR)."""
    def line_of(name, line):
        return line.replace("4xHDR", "4xEDR") if name == node or f'"{node}"' in line else line
    return "\n\n".join("\n".join(line_of(name, line) for line in text.splitlines())
                       for name, text in _records(capture)).rstrip("\n") + "\n"


def slower_cables(capture, a, b, rate):
    """A capture in which the cables between nodes a and b run at this rate ("1xHDR")."""
    def line_of(name, line):
        between = line.startswith("[") and (name == a and f'"{b}"' in line or name == b and f'"{a}"' in line)
        return re.sub(r"\d+x[A-Z]+DR$", rate, line) if between else line
    return "\n\n".join("\n".join(line_of(name, line) for line in text.splitlines())
                       for name, text in _records(capture)).rstrip("\n") + "\n"


def without_cables(capture, a, b):
    """A capture without the cables between nodes a and b: pulled, so their ports are down."""
    def kept(name, line):
        return not (line.startswith("[") and (name == a and f'"{b}"' in line or name == b and f'"{a}"' in line))
    return "\n\n".join("\n".join(line for line in text.splitlines() if kept(name, line))
                       for name, text in _records(capture)).rstrip("\n") + "\n"


def without_record(capture, node):
    """A capture in which a node did not answer: its neighbours' ports are up and lead nowhere."""
    return "\n\n".join(text for name, text in _records(capture) if name != node).rstrip("\n") + "\n"


def without(capture, *nodes):
    """A capture without these nodes and their cables, in one pass."""
    nodes = set(nodes)
    gone = {re.search(r'^(?:Switch|Ca)\s+\d+\s+("[^"]+")', text, re.MULTILINE).group(1)
            for name, text in _records(capture) if name in nodes}

    def kept(line):
        cable = re.match(r'\[\d+\](?:\([0-9a-f]+\))?\s+("[^"]+")', line)
        return cable is None or cable.group(1) not in gone
    return "\n\n".join("\n".join(line for line in text.splitlines() if kept(line))
                       for name, text in _records(capture) if name not in nodes).rstrip("\n") + "\n"


def swapped(capture, a, b):
    """A capture in which the cables of two HCAs with one port, by their descriptions, have changed places at their
    switches."""
    at_switch = {node: re.search(rf'"H-[0-9a-f]+"\[1\].*# "{node}" .*', capture).group() for node in (a, b)}
    at_card = {name: re.search(r'("S-[0-9a-f]+"\[\d+\])(\s+# lid \d+ lmc \d+ )(.*)', text)
               for name, text in _records(capture) if name in (a, b)}
    for node, other in ((a, b), (b, a)):
        capture = capture.replace(at_switch[node], f"the place of {node}")
        here, there = at_card[node], at_card[other]
        capture = capture.replace(here.group(), there.group(1) + here.group(2) + there.group(3), 1)
    return capture.replace(f"the place of {a}", at_switch[b]).replace(f"the place of {b}", at_switch[a])
