"""export_names - what exports call switches, read of each format that has names of them; and fabrics where that is not simple."""
import json

import yaml

from test_export_slurm import PODS, spelled

# No regular tree: two pods, a leaf at a core, a host amid a pod.
CABLES = PODS + [("leafx", "core1"), ("leafx", "core2"), ("leafx", "nx1"), ("mida1", "nm1")]
LOW = [("low", "mida1"), ("low", "mida2"), ("low", "nlow")]
TWIN = [("twin", "midb1"), ("twin", "midb2"), ("twin", "ntwin")]
HIGHER = [("top", "core1"), ("top", "core2"), ("top", "side"), ("side", "leafy"), ("leafy", "ny")]
GUIDS = {"low": 0x10, "nlow": 0x20, "twin": 0x30, "ntwin": 0x40,  # lower than all others
         "top": 0x9010, "side": 0x9020, "leafy": 0x9030, "ny": 0x9040}


def paths(leaves, above):
    """{host: what it is in, from its leaf up}"""
    def up(name):
        return (name, *up(above[name])) if name in above else (name,)
    return {host: up(leaf) for leaf, hosts in leaves.items() for host in hosts}


def of_slurm(text):
    lines = [dict(word.split("=", 1) for word in line.split()) for line in text.splitlines() if not line.startswith("#")]
    return paths({line["SwitchName"]: spelled(line["Nodes"]) for line in lines if "Nodes" in line},
                 {child: line["SwitchName"] for line in lines for child in spelled(line.get("Switches", ""))})


def of_blocks(text):
    lines = [dict(word.split("=", 1) for word in line.split()) for line in text.splitlines() if line.startswith("BlockName")]
    return paths({line["BlockName"]: spelled(line.get("Nodes", "")) for line in lines}, {})


def of_yaml(text):
    (topology,) = yaml.safe_load(text)
    switches = topology["tree"]["switches"]
    return paths({switch["switch"]: spelled(switch["nodes"]) for switch in switches if "nodes" in switch},
                 {child: switch["switch"] for switch in switches for child in spelled(switch.get("children", ""))})


def of_model(text):
    model = yaml.safe_load(text)
    return paths({block["switch"]: spelled(",".join(block["nodes"])) for block in model["blocks"]},
                 {child: name for name, switch in model["switches"].items() for child in switch.get("switches", ())})


def of_graph(text):
    return {instance["id"]: tuple(instance["network_layers"]) for instance in json.loads(text)["instances"]}


def of_flux(text):
    nodes = [node["metadata"] for node in json.loads(text)["graph"]["nodes"]]
    return {node["name"]: tuple(reversed(node["paths"]["containment"].split("/")[2:-1])) for node in nodes if node["type"] == "node"}


def of_labels(text):
    nodes = [node["metadata"] for node in yaml.safe_load_all(text) if node["kind"] == "Node"]
    return {node["name"]: tuple(dict.fromkeys(node["labels"][tier] for tier in sorted(node["labels"]))) for node in nodes}


def of_hypernodes(text):
    below = {node["metadata"]["name"]: [(member["type"], member["selector"]["exactMatch"]["name"]) for member in node["spec"]["members"]]
             for node in yaml.safe_load_all(text)}
    return paths({name: [member for kind, member in members if kind == "Node"] for name, members in below.items()},
                 {member: name for name, members in below.items() for kind, member in members if kind == "HyperNode"})


FORMATS = {"slurm-tree": of_slurm, "slurm-block": of_blocks, "slurm-yaml": of_yaml, "topograph": of_model,
           "topograph-graph": of_graph, "flux-jgf": of_flux, "k8s-labels": of_labels, "volcano": of_hypernodes}
