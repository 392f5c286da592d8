"""Run one unittest module for ctest: status 0 passed, 1 failed, 77 when every test of it was skipped.

usage: run_test.py FILE [K/N | NAME...]

K/N: the K-th of N parts of its tests, for modules whose parts run side by side. Parts have no say in conforms.py.

Its last lines are for summary.py: how many single tests passed, failed and were skipped, and why so many were.
"""
import collections
import importlib
import os
import re
import sys
import tempfile
import unittest

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)

# They need the machine's own network: packages from a mirror, the interfaces of the host.
OUTSIDE = ("test_install", "test_package", "test_tour")


def tests(suite):
    """The single tests of a suite of suites."""
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from tests(one)
        else:
            yield one


def chosen(module, which):
    """The tests of a module: all, those that are named, or a part of them."""
    load = unittest.defaultTestLoader
    part = re.fullmatch(r"(\d+)/(\d+)", which[0]) if which else None
    if which and not part:
        return load.loadTestsFromNames(which, module)
    suite = load.loadTestsFromModule(module)
    if part:
        number, of = int(part.group(1)), int(part.group(2))
        suite = unittest.TestSuite(list(tests(suite))[number - 1::of])
    return suite


class Result(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def say(self):
        """Each test once, however many parts of it failed; a class that was left out is one."""
        failed = {getattr(test, "test_case", test) for test, _ in self.failures + self.errors}
        print(f"cases: {self.passed} passed, {len(failed)} failed, {len(self.skipped)} skipped", file=sys.stderr)
        for reason, number in collections.Counter(reason for _, reason in self.skipped).items():
            print(f"skipped: {number}: {reason}", file=sys.stderr)


def main():
    import conforms
    import isolate
    name, which = os.path.splitext(os.path.basename(sys.argv[1]))[0], sys.argv[2:]
    conforms.begin(name)
    with tempfile.TemporaryDirectory(prefix="fabricd-lab.") as folder:
        os.chmod(folder, 0o1777)
        os.environ["TMPDIR"] = folder  # what PMIx servers of 5.0.3 to 5.0.5 empty when they end (docs/upstream.md)
        isolate.enter(folder, network=name in OUTSIDE)
        return run(name, which)


def run(name, which):
    import conforms
    import versions
    suite = versions.served(tests(chosen(importlib.import_module(name), which)))
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
    result.say()
    if not result.wasSuccessful():
        return 1
    if result.testsRun == 0 and not result.skipped:
        print(f"{name}: no tests in it", file=sys.stderr)
        return 1
    if not which and all(isinstance(test, versions.Unserved) for test, _ in result.skipped):
        conforms.finish(name)
    return 77 if len(result.skipped) >= result.testsRun else 0  # a skipped class counts no runs


if __name__ == "__main__":
    sys.exit(main())
