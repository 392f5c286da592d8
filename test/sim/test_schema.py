"""`fabricctl schema`: what programs may rely on in the JSON output. sim.Site.ctl_json() compares each output of all tests with it."""
import json
import re
import unittest

import output_schema
import sim

NO_JSON = {"report", "run", "schema"}
NEEDS = unittest.skipUnless(output_schema.jsonschema, "the Python package jsonschema is not installed")


class Schema(unittest.TestCase):
    def setUp(self):
        self.site = sim.Site("fattree2:2,1,2")
        self.addCleanup(self.site.free)

    def shown(self, *command):
        done = self.site.ctl("schema", *command)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_each_command_has_one(self):
        listed = set(re.findall(r"(?m)^  ([a-z]+) ", self.site.ctl("--help").stdout))
        self.assertEqual(output_schema.commands(), listed - NO_JSON)
        for command in output_schema.commands():
            self.assertEqual(self.shown(command), dict(output_schema.schema(), **{"$ref": f"#/$defs/{command}"}))
        self.assertEqual(self.shown(), output_schema.schema())
        self.assertEqual(set(self.site.ctl("--values", "schema").stdout.split()), output_schema.commands())

    @NEEDS
    def test_it_is_a_schema(self):
        output_schema.jsonschema.Draft202012Validator.check_schema(output_schema.schema())

    def test_names_of_keys(self):
        keys = set(re.findall(r'"(\w+)":', json.dumps([value.get("properties", {}) for value in output_schema.schema()["$defs"].values()])))
        self.assertEqual([key for key in keys if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*|additionalProperties|anyOf", key)], [])

    @NEEDS
    def test_another_output_is_noticed(self):
        (plane,) = self.site.ctl_json("planes")
        for wrong in (dict(plane, more=1), {key: plane[key] for key in plane if key != "kind"}, dict(plane, devices="4")):
            with self.assertRaises(AssertionError):
                output_schema.checked(["planes"], [wrong])

    def test_no_such_command(self):
        done = self.site.ctl("schema", "stats")
        self.assertEqual((done.returncode, done.stderr), (2, "fabricctl: no schema: stats: did you mean status?\n"))
        self.assertEqual(self.site.ctl("schema", "_plane").returncode, 2)


if __name__ == "__main__":
    unittest.main()
