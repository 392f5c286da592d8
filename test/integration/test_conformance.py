"""docs/conformance.md says what the tests have shown: run after all of them."""
import ast
import glob
import os
import shutil
import unittest

import conformance
import conforms
import lab


# Of the chapters about servers and about data, and of the first header's table of a host's functions.
DUTIES = [
    "PMIx_generate_regex", "PMIx_generate_ppn", "PMIx_Register_attributes",
    *(f"PMIx_server_{name}" for name in (
        "register_nspace", "deregister_nspace", "register_client", "deregister_client", "setup_fork", "dmodex_request",
        "setup_application", "setup_local_support", "IOF_deliver", "collect_inventory", "deliver_inventory")),
    "PMIx_Put", "PMIx_Store_internal", "PMIx_Commit",
    *(f"PMIx_{name}{how}" for name in ("Fence", "Get", "Publish", "Lookup", "Unpublish") for how in ("", "_nb")),
    *(f"pmix_server_{name}_fn_t" for name in (
        "client_connected", "client_finalized", "abort", "fencenb", "dmodex_req", "publish", "lookup", "unpublish", "spawn",
        "connect", "disconnect", "register_events", "deregister_events", "listener"))]


COMPARED = {"shows_keys": (0, 1), "shows_events": (0, 1), "shows_structure": (1, 2)}  # of others the third and the fourth argument
ASSERTIONS = {name for name in vars(conforms.Shows) if name.startswith("shows_")}


def modules():
    """(name, syntax tree) of all modules of tests."""
    for path in sorted(glob.glob(os.path.join(conforms.HERE, "*.py"))):
        with open(path, encoding="utf-8") as file:
            yield os.path.basename(path), ast.parse(file.read())


class Assertions(conforms.Shows):
    """What they write down they have compared."""

    def setUp(self):
        folder, self.folder = conforms.FOLDER, os.path.join(lab.tmpdir(), "conformance")
        conforms.FOLDER = self.folder
        self.addCleanup(setattr, conforms, "FOLDER", folder)

    def recorded(self):
        """What stands in the records now; they are empty then."""
        rows = set().union(*(rows for rows, _ in conforms.read().values()))
        shutil.rmtree(self.folder, ignore_errors=True)
        return rows

    def good(self):
        """Each assertion as it holds, with the one row that it writes."""
        answer, typed = {"pmix.fab.dims": 3, "pmix.fab.idx": 1}, {"type": "PMIX_COORD", "value": {"view": 1, "coord": [0, 1]}}
        query, dims, told = ("query", "tool"), "PMIX_FABRIC_DIMS", ["PMIX_FABRIC_UPDATED generation 2", "PMIX_FABRIC_UPDATE_PENDING"]
        return [
            (self.shows_keys, [answer, {dims: 3}, *query], {}, (dims, "key", *query)),
            (self.shows_call, ["PMIx_Fence_nb", "fences=*", "SUCCESS", "SUCCESS", "client"], {"without": "TIMEOUT"},
             ("PMIx_Fence_nb", "function", "call", "client")),
            (self.shows_given, ["PMIX_FABRIC_PLANE", "pmix.fab.plane=s:ib1", 4, 4, *query], {"without": 16, "kind": "qualifier"},
             ("PMIX_FABRIC_PLANE", "qualifier", *query)),
            (self.shows_events, [told, {"PMIX_FABRIC_UPDATED": told[:1]}, "tool"], {}, ("PMIX_FABRIC_UPDATED", "event", "event", "tool")),
            (self.shows_constant, ["PMIX_LINK_DOWN", 1, *query], {}, ("PMIX_LINK_DOWN", "constant", *query)),
            (self.shows_structure, ["pmix_coord_t", typed, typed["value"], *query], {}, ("pmix_coord_t", "structure", *query))]

    def test_what_holds_is_recorded(self):
        tried = set()
        for assertion, args, options, row in self.good():
            assertion(*args, **options)
            self.assertEqual(self.recorded(), {(*row, conforms.VERSION)})
            tried.add(assertion.__name__)
        self.assertEqual(tried, ASSERTIONS)

    def test_what_does_not_hold_is_not(self):
        """Every assertion with another answer, another expectation, nothing expected, another name, or as without it."""
        other = {dict: {"PMIX_FABRIC_DIMS": 4}, list: [], str: "PMIX_FABRIC_INDEX", int: 7}
        for assertion, args, options, (name, *_) in self.good():
            tried = 0
            for at, arg in enumerate(args[:4]):
                if arg in conforms.HOW or arg in conforms.WHOM:
                    continue
                for wrong in (other[type(arg)], None):
                    with self.subTest(assertion=assertion.__name__, at=at, wrong=wrong):
                        with self.assertRaises((AssertionError, ValueError, TypeError, LookupError, AttributeError)):
                            assertion(*args[:at], wrong, *args[at + 1:], **options)
                        self.assertEqual(self.recorded(), set())
                        tried += 1
            self.assertGreaterEqual(tried, 4, name)
            if "without" in options:
                with self.assertRaises(AssertionError):
                    assertion(*args, **{**options, "without": args[2]})
                self.assertEqual(self.recorded(), set())

    def test_words(self):
        """Kinds, ways, callers and names that there are not."""
        for args in (["PMIX_FABRIC_NONE", "dims", 3, 3, "query", "tool"], ["PMIX_FABRIC_DIMS", "dims", 3, 3, "guess", "tool"],
                     ["PMIX_FABRIC_DIMS", "dims", 3, 3, "query", "somebody"]):
            with self.assertRaises(ValueError):
                self.shows_given(*args)
        with self.assertRaises(ValueError):
            self.shows_given("PMIX_FABRIC_DIMS", "dims", 3, 3, "query", "tool", kind="rumour")
        self.assertEqual(self.recorded(), set())

    def test_what_was_asked(self):
        for name, asked, is_named in (("PMIX_FABRIC_DIMS", "query pmix.fab.dims", True), ("PMIX_FABRIC_DIMS", "pmix.fab.dimsum", False),
                                      ("PMIx_Get_nb", "get", False), ("PMIx_Get_nb", "get_nb: SUCCESS", True), ("PMIx_Get", "get_nb", False),
                                      ("PMIX_COORD_VIEW_UNDEF", ["pmixfab.view=u:0"], True), ("PMIX_LINK_UP", "1", False)):
            self.assertEqual(conforms.named(name, asked), is_named, (name, asked))

    def test_words_that_stand_for_names(self):
        """A program of the tests, or the host's functions, know both."""
        text = ""
        for pattern in ("test/integration/*.[ch]", "examples/*.c", "fabricd/host/**/*.c", "fabricd/server/*.c"):
            for path in glob.glob(os.path.join(conforms.ROOT, pattern), recursive=True):
                with open(path, encoding="utf-8") as file:
                    text += file.read()
        text += conforms.header()  # functions of a server's module have their types there only
        for name in conforms.WORDS:
            self.assertRegex(text, rf"\b{name}\b")

    def test_nothing_else_records(self):
        """No module of tests writes records, or has an assertion of one of these names; none compares something with itself."""
        claims = 0
        for module, tree in modules():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef) and module != "conforms.py":
                    self.assertNotIn(node.name, ASSERTIONS, module)
                if isinstance(node, (ast.Name, ast.Attribute)) and module != "conforms.py":
                    self.assertNotIn(getattr(node, "attr", getattr(node, "id", "")), ("_record", "_given"), f"{module}:{node.lineno}")
                if isinstance(node, ast.Constant) and module not in ("conforms.py", "test_conformance.py"):
                    self.assertNotIn(".records", str(node.value), f"{module}:{node.lineno}")
                if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ASSERTIONS and module != "test_conformance.py":
                    claims += 1
                    got, expected = COMPARED.get(node.func.attr, (2, 3))
                    if node.func.attr != "shows_constant" and len(node.args) > expected:
                        self.assertNotEqual(ast.dump(node.args[got]), ast.dump(node.args[expected]), f"{module}:{node.lineno}: the same")
        self.assertGreater(claims, 100)


class Page(unittest.TestCase):
    maxDiff = None

    def test_it_is_what_the_tests_say(self):
        self.assertEqual(conformance.differences(), [],
                         "\ntest/integration/conformance.py --write puts it right, if that is what is meant")

    def test_every_duty_has_a_row(self):
        names = [name for _, rows in conformance.SECTIONS for name, *_ in rows]
        self.assertEqual([(name, names.count(name)) for name in DUTIES], [(name, 1) for name in DUTIES])
        rows = [row[:2] for _, rows in conformance.SECTIONS for row in rows]
        self.assertEqual(len(rows), len(set(rows)))

    def test_where_it_is_done(self):
        rows = {name for _, rows in conformance.SECTIONS for name, *_ in rows}
        self.assertLessEqual(conformance.CODE.keys(), rows)
        for path in " ".join(conformance.CODE.values()).split():
            self.assertTrue(os.path.exists(os.path.join(conforms.ROOT, path)), path)

    def test_a_row_that_nothing_shows(self):
        """It is found, unless it says itself that nothing is promised."""
        lines = conformance.committed()
        self.assertEqual(conformance.unshown(lines), [])
        without = {line for line in lines if line[:2] != ("PMIX_FABRIC_DIMS", "key")}
        self.assertEqual(conformance.unshown(without), ["PMIX_FABRIC_DIMS, key"])
        self.assertIn("PMIX_FABRIC_DIMS, key", conformance.unshown({(*line[:4], "9.9.9", line[5]) for line in lines}))
        promised = {line[:2] for line in lines}
        for _, rows in conformance.SECTIONS:
            for name, kind, _, remark in rows:
                self.assertFalse((name, kind) in promised and remark.startswith(conformance.NOT_PROMISED), f"{name} is shown")


if __name__ == "__main__":
    unittest.main()
