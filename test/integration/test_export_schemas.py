"""What other programs refuse: exports for Flux, Kueue, Volcano and topograph against the rules of their readers, written down here
from their grammars (flux-sched 0.38 to 0.54, Kueue 0.15 to 0.19, Volcano 1.12 to 1.15, topograph 1.0). The fabrics have names that
Kubernetes forbids, parts of different depth, two planes, and more levels than Kueue takes."""
import json
import os

import jsonschema
import yaml

import lab
import test_export
import test_fabricctl
from test_export_slurm import PODS, fabric, spelled

PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
OBJECT = {"type": "string", "pattern": rf"^{PART}(\.{PART})*$", "maxLength": 253}
LABEL = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
VALUE = {"type": "string", "pattern": "^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$", "maxLength": 63}


def closed(**properties):
    """An object with all of these and nothing else."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TOPOLOGY = closed(apiVersion={"const": "kueue.x-k8s.io/v1beta2"}, kind={"const": "Topology"}, metadata=closed(name=OBJECT),
                  spec=closed(levels={"type": "array", "minItems": 1, "maxItems": 16, "uniqueItems": True,
                                      "items": closed(nodeLabel={"type": "string", "pattern": LABEL, "maxLength": 316})}))
NODE = closed(apiVersion={"const": "v1"}, kind={"const": "Node"},
              metadata=closed(name=OBJECT, labels={"type": "object", "minProperties": 1, "additionalProperties": VALUE,
                                                   "propertyNames": {"pattern": LABEL}}))
HYPERNODE = closed(apiVersion={"const": "topology.volcano.sh/v1alpha1"}, kind={"const": "HyperNode"},
                   metadata=closed(name=OBJECT, annotations={"type": "object", "additionalProperties": {"type": "string"}}),
                   spec=closed(tier={"type": "integer", "minimum": 0},
                               members={"type": "array", "minItems": 1,
                                        "items": closed(type={"enum": ["Node", "HyperNode"]},
                                                        selector=closed(exactMatch=closed(name=OBJECT)))}))
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
JGF = closed(graph=closed(
    nodes={"type": "array", "items": closed(id=TEXT, metadata=closed(
        type=TEXT, basename=TEXT, name=TEXT, id=WHOLE, uniq_id=WHOLE, rank=WHOLE, exclusive={"type": "boolean"}, unit=TEXT,
        size=WHOLE, paths=closed(containment=TEXT)))},
    edges={"type": "array", "items": closed(source=TEXT, target=TEXT, metadata=closed(subsystem={"const": "containment"}))}))
MODEL = closed(switches={"type": "object", "additionalProperties": {
                   "type": "object", "properties": {"switches": {"type": "array", "items": TEXT}}, "additionalProperties": False}},
               blocks={"type": "array", "items": closed(switch=TEXT, nodes={"type": "array", "items": TEXT, "minItems": 1})})
GRAPH = closed(instances={"type": "array", "items": closed(id=TEXT, network_layers={"type": "array", "items": TEXT, "minItems": 1})})


class Schemas(test_export.Case):
    def capture(self, text):
        path = os.path.join(lab.tmpdir(), "capture")
        lab.replace_file(path, text)
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}}, start=False)
        self.assertEqual(daemon.run_once().returncode, 0)
        self.rundir = daemon.rundir

    def documents(self, name):
        return list(yaml.safe_load_all(self.ctl("export", name)))

    def once(self, names):
        self.assertEqual(len(names), len(set(names)))
        return set(names)

    def kueue(self):
        topology, *nodes = self.documents("k8s-labels")
        jsonschema.validate(topology, TOPOLOGY)
        levels = [level["nodeLabel"] for level in topology["spec"]["levels"]]
        self.assertEqual(levels.index("kubernetes.io/hostname"), len(levels) - 1)
        self.once([node["metadata"]["name"] for node in nodes])
        above = {}
        for node in nodes:
            jsonschema.validate(node, NODE)
            self.assertEqual(set(node["metadata"]["labels"]), set(levels[:-1]))
            at = [node["metadata"]["labels"][level] for level in levels[:-1]]
            self.assertEqual(above.setdefault((len(at), at[-1]), at), at)  # what has one label has one above it
        return len(levels)

    def volcano(self):
        objects = self.documents("volcano")
        tiers, parents = {}, []
        for node in objects:
            jsonschema.validate(node, HYPERNODE)
            tiers[node["metadata"]["name"]] = node["spec"]["tier"]
        for node in objects:
            for member in node["spec"]["members"]:
                name = member["selector"]["exactMatch"]["name"]
                parents.append((member["type"], name))
                if member["type"] == "HyperNode":
                    self.assertLess(tiers[name], node["spec"]["tier"])
        self.once(parents)
        self.assertEqual(len(tiers), len(objects))
        return len(tiers)

    def flux(self):
        value = json.loads(self.ctl("export", "flux-jgf"))
        jsonschema.validate(value, JGF)
        vertices = {vertex["id"]: vertex["metadata"] for vertex in value["graph"]["nodes"]}
        self.assertEqual(len(vertices), len(value["graph"]["nodes"]))
        paths = self.once([vertex["paths"]["containment"] for vertex in vertices.values()])
        self.once([vertex["uniq_id"] for vertex in vertices.values()])
        self.assertEqual([path for path in paths if path.count("/") == 1], ["/cluster0"])
        edges = [(edge["source"], edge["target"]) for edge in value["graph"]["edges"]]
        self.assertEqual(self.once([target for _, target in edges]), set(vertices) - {"0"})
        for source, target in edges:
            self.assertEqual(vertices[target]["paths"]["containment"],
                             f"{vertices[source]['paths']['containment']}/{vertices[target]['name']}")

    def topograph(self):
        model = yaml.safe_load(self.ctl("export", "topograph"))
        jsonschema.validate(model, MODEL)
        below = self.once([name for switch in model["switches"].values() for name in switch.get("switches", [])])
        known = below | set(model["switches"])
        self.assertLessEqual(self.once([block["switch"] for block in model["blocks"]]), known)
        nodes = [node for block in model["blocks"] for item in block["nodes"] for node in spelled(item)]
        graph = json.loads(self.ctl("export", "topograph-graph"))
        jsonschema.validate(graph, GRAPH)
        self.assertEqual(self.once([instance["id"] for instance in graph["instances"]]), self.once(nodes))
        for instance in graph["instances"]:
            self.assertLessEqual(set(instance["network_layers"]), known)

    def all(self):
        self.flux()
        self.topograph()
        return self.kueue(), self.volcano()

    def test_generated(self):
        for spec, levels, objects in (("fattree3:6", 4, 18 + 6 + 1), ("rails:5,4,6,2", 3, 6), ("dragonfly:2,4,2", 4, 36 + 9 + 1),
                                      ("torus:3,3,3:2", 3, 28), ("fattree2:1,1,3", 2, 1)):
            with self.subTest(spec):
                self.fabric(spec)
                self.assertEqual(self.all(), (levels, objects))

    def test_two_planes_and_mixed_depths(self):
        self.fabric("fattree2:6,2,5")
        test_fabricctl.snapshot("fattree3:4", self.rundir, "ib1", "2", "3")
        self.all()
        self.capture(fabric(PODS + [("leafx", "core1"), ("leafx", "core2"), ("leafx", "nx1"), ("mida1", "nm1")]))
        self.all()

    def test_names_that_kubernetes_forbids(self):
        """Hosts are left out, told, and with the last of them their HyperNode; switches are called by their GUIDs."""
        text = fabric(PODS)
        for name, other in (("na11", "n.example.org"), ("na12", "n..a"), ("na21", "n_a"), ("na22", "N-A"), ("leafb1", "Leaf_B.-1"),
                            ("leafb2", "leaf..b")):
            text = text.replace(f'"{name}"', f'"{other}"')
        self.capture(text)
        self.flux()
        self.topograph()
        self.kueue()
        self.assertEqual([host for host in ("n..a", "n_a", "N-A", "n.example.org") if f"lost: host {host}: no node" in self.complaint],
                         ["n..a", "n_a", "N-A"])
        self.volcano()
        objects = {node["metadata"]["name"]: node for node in self.documents("volcano")}
        self.assertNotIn("leafa2", objects)
        self.assertIn("n.example.org", str(objects["leafa1"]))
        self.assertEqual(len([name for name in objects if name.startswith("s")]), 2)

    def test_more_levels_than_kueue_takes(self):
        """A part at each of 17 levels, as deep as the level is high."""
        ways = [["na0", "a0", *(f"up{level}" for level in range(1, 18))]]
        ways += [[f"na{level}", *(f"side{level}x{step}" for step in range(level)), f"up{level}"] for level in range(1, 18)]
        self.capture(fabric([cable for way in ways for cable in zip(way, way[1:])]))
        levels, _ = self.all()
        self.assertEqual(levels, 16)
        self.ctl("export", "k8s-labels")
        self.assertRegex(self.complaint, r"lost: 1[78] tiers of switches: Kueue takes 15, those above are left out")


if __name__ == "__main__":
    import unittest
    unittest.main()
