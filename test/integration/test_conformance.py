"""docs/conformance.md says what the tests have shown: run after all of them."""
import ast
import glob
import os
import re
import unittest

import conformance
import conforms


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


def functions():
    """(module, function) of all tests."""
    for path in sorted(glob.glob(os.path.join(conforms.HERE, "*.py"))):
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield os.path.basename(path), node


def called(function):
    """(line, name) of what it calls."""
    return [(node.lineno, getattr(node.func, "attr", getattr(node.func, "id", "")))
            for node in ast.walk(function) if isinstance(node, ast.Call)]


class Claims(unittest.TestCase):
    def test_each_comes_after_an_assertion(self):
        """In the test that makes it, which asserts something itself, or by a function that does."""
        calls = [(module, function.name, called(function)) for module, function in functions()]
        asserting = {"wait_for", "wait", "say"}  # they raise what never comes
        while True:
            more = {name for _, name, names in calls for _, what in names if what.startswith("assert") or what in asserting}
            if more <= asserting:
                break
            asserting |= more
        claims, bare = 0, []
        for module, name, names in calls:
            for line, what in names:
                if what == "conforms" and name != "conforms":
                    claims += 1
                    if not any(before < line and (other.startswith("assert") or other in asserting) for before, other in names):
                        bare.append(f"{module}:{line}: {name}")
        self.assertGreater(claims, 50)
        self.assertEqual(bare, [])


class Page(unittest.TestCase):
    maxDiff = None

    def test_it_is_what_the_tests_say(self):
        self.assertEqual(conformance.differences(), [],
                         "\ntest/integration/conformance.py --write puts it right, if that is what is meant")

    def test_every_name_of_the_chapter_has_a_row(self):
        with open(conformance.PAGE, encoding="utf-8") as file:
            page = file.read()
        for name in conformance.NODE + conformance.FABRIC + conformance.EVENTS + conformance.FUNCTIONS:
            self.assertIn(f"| `{name[0].partition(' ')[0]}`", page)

    def test_every_duty_has_a_row(self):
        names = [name for _, rows in conformance.SECTIONS for name, _, _ in rows]
        self.assertEqual([(name, names.count(name)) for name in DUTIES], [(name, 1) for name in DUTIES])

    def test_where_it_is_done(self):
        rows = {name for _, rows in conformance.SECTIONS for name, _, _ in rows}
        self.assertLessEqual(conformance.CODE.keys(), rows)
        for path in " ".join(conformance.CODE.values()).split():
            self.assertTrue(os.path.exists(os.path.join(conforms.ROOT, path)), path)

    def test_words(self):
        """Lines that were edited by hand would show here."""
        for what, how, whom, module in conformance.committed():
            self.assertIn(how, conforms.HOW)
            self.assertIn(whom, conforms.WHOM)
            self.assertRegex(what, r"^[A-Za-z_0-9.]+( \([a-z ]+\))?$")
            self.assertTrue(re.fullmatch(r"test_\w+", module) and conformance.exists(module), module)


if __name__ == "__main__":
    unittest.main()
