"""Run one unittest module for ctest: status 0 passed, 1 failed, 77 when every test of it was skipped.

usage: run_test.py FILE [NAME...]

A leftover (leftovers.py) fails its test. A failure prints its evidence (failures.py) and writes it to a folder below
FABRICD_FAILURES, if that is set. FABRICD_KEEP=1 keeps the folders of failed tests. The test that runs shortly before the
end of FABRICD_TIMEOUT seconds fails, and is the last one.

Its last lines are for summary.py: how many single tests passed, failed and were skipped, and why so many were.
"""
import collections
import faulthandler
import functools
import glob
import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import conforms
import failures
import isolate
import leftovers
import processes
import versions

EVIDENCE_S = 60  # seconds for the evidence, between the last test and FABRICD_TIMEOUT
PRINTED = 100000  # characters of the evidence of a test; ctest keeps a million for a module

# Modules that need the machine's own network: its interfaces, which probes find, or a mirror of packages.
OUTSIDE = ("test_host_scan", "test_install", "test_package", "test_probe_ethernet", "test_probe_libraries", "test_tour")


def tests(suite):
    """The single tests of a suite of suites."""
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from tests(one)
        else:
            yield one


def chosen(module, which):
    """The tests of a module: all, or those that are named."""
    load = unittest.defaultTestLoader
    return load.loadTestsFromNames(which, module) if which else load.loadTestsFromModule(module)


class Hung(Exception):
    """The module takes as long as ctest allows."""


def bound(result):
    """Raise Hung in the test that runs EVIDENCE_S seconds before FABRICD_TIMEOUT, and stop after it."""
    seconds = int(os.environ.get("FABRICD_TIMEOUT", "0")) - EVIDENCE_S
    if seconds <= 0:
        return

    def hung(*_):
        result.stop()
        raise Hung(f"the module has run for {seconds} s")
    signal.signal(signal.SIGALRM, hung)
    signal.alarm(seconds)


class LeftBehind(AssertionError):
    """A test has leftovers."""


class Scope:
    """The beginning of a test, class or module."""

    def __init__(self):
        self.since = processes.scope()
        self.seen, self.sockets = leftovers.Seen(), leftovers.sockets()

    def end(self, failed, sockets=True):
        """End processes and remove folders; raise LeftBehind if there are leftovers. failed: FABRICD_KEEP=1 keeps the folders."""
        processes.end_since(self.since, keep=failed and bool(os.environ.get("FABRICD_KEEP")))
        left = self.seen.left()
        if sockets and not failed:
            left += leftovers.left_sockets(self.sockets)
        if left:
            raise LeftBehind("left behind: " + "; ".join(left))


class Result(unittest.TextTestResult):
    """Count the tests, add evidence to failures, and end the scopes of tests, classes and modules. The end of a scope is the
    cleanup that is registered first, so it runs last."""

    def __init__(self, module, suite, *args, **options):
        super().__init__(*args, **options)
        self.passed = 0
        self.module, self.suite = module, suite
        self.within = None  # the scope of a class begins here

    def startTestRun(self):
        """Register the ends of the scopes of all classes and the module."""
        bound(self)
        unittest.addModuleCleanup(self.end_of_module, Scope())
        self.within = Scope()
        set_up = getattr(self.module, "setUpModule", None)
        if set_up is not None:
            def set_up_module():
                set_up()
                self.within = Scope()  # after the fixture of the module
            self.module.setUpModule = set_up_module
        for one in dict.fromkeys(type(test) for test in self.suite):
            one.addClassCleanup(lambda one=one: self.within.end(self.holds(one)))

    def end_of_module(self, scope):
        leftovers.look_again()
        scope.end(self.failed())

    def holds(self, one):
        """Return whether the result refers to failed or skipped tests of this class, and so to their sockets."""
        return any(isinstance(getattr(test, "test_case", test), one) for test, _ in self.failures + self.errors + self.skipped)

    def failed(self, test=None):
        """Return the number of failures of this test, or of all."""
        return sum(test in (None, other, getattr(other, "test_case", None)) for other, _ in self.failures + self.errors)

    def startTest(self, test):
        super().startTest(test)
        scope = Scope()
        test.addCleanup(failures.forget, scope.since)
        test.addCleanup(lambda: scope.end(self.failed(test) > 0, sockets=False))  # attributes of the test may be sockets

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.explain(self.failures, test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.explain(self.errors, test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.explain(self.failures if issubclass(err[0], test.failureException) else self.errors, test, err)

    def explain(self, failed, test, err):
        """Add the evidence to the first failure of a test."""
        if self.failed(test) > 1 or issubclass(err[0], LeftBehind):
            return
        what, trace = failed[-1]
        hung = issubclass(err[0], (processes.LabError, Hung, TimeoutError, subprocess.TimeoutExpired))
        text = f"{trace}\n{failures.evidence(hung)}\n"
        failures.write(test.id(), text)
        failed[-1] = (what, text[:PRINTED])

    def say(self):
        """Each test once, however many parts of it failed; a class that was left out is one."""
        failed = {getattr(test, "test_case", test) for test, _ in self.failures + self.errors}
        print(f"cases: {self.passed} passed, {len(failed)} failed, {len(self.skipped)} skipped", file=sys.stderr)
        for reason, number in collections.Counter(reason for _, reason in self.skipped).items():
            print(f"skipped: {number}: {reason}", file=sys.stderr)


def main():
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[1])))
    name, which = os.path.splitext(os.path.basename(sys.argv[1]))[0], sys.argv[2:]
    conforms.begin(name)
    faulthandler.enable()
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    os.environ["FABRICD_BUILD"] = conforms.BUILD  # absolute
    # Debian 13 has the bindings of PMIx in a folder where Python does not look.
    os.environ["PYTHONPATH"] = ":".join(filter(None, [os.environ.get("PYTHONPATH"), *glob.glob("/usr/lib/python3/dist-packages/pypmix-*.egg")]))
    folder = tempfile.mkdtemp(prefix="lab.")
    os.chmod(folder, 0o755)
    tempfile.tempdir = folder
    isolate.enter(folder, network=name in OUTSIDE)
    leftovers.begin(os.path.join(tempfile.tempdir, "tmp"))
    os.chdir(os.environ["TMPDIR"])  # where a command without a folder writes its core
    try:
        return run(name, which)
    finally:
        os.chdir("/")
        processes.cleanup()
        if processes.kept:
            print(f"kept: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def run(name, which):
    module = importlib.import_module(name)
    suite = versions.served(tests(chosen(module, which)))
    result = unittest.TextTestRunner(verbosity=2, resultclass=functools.partial(Result, module, suite)).run(suite)
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
