"""Run one unittest module for ctest: status 0 passed, 1 failed, 77 when every test of it was skipped.

usage: run_test.py FILE [K/N | NAME...]

K/N: the K-th of N parts of its tests, for modules whose parts run side by side. Parts have no say in conforms.py.

What a test leaves behind (leftovers.py) fails it. To a failure belongs its evidence (failures.py), in a folder below
FABRICD_FAILURES, too, where that is set. FABRICD_KEEP=1 keeps the folders of tests that failed.

Its last lines are for summary.py: how many single tests passed, failed and were skipped, and why so many were.
"""
import collections
import faulthandler
import functools
import importlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import conforms
import failures
import leftovers
import processes
import versions

EVIDENCE_S = 60  # gathering evidence takes no longer
PRINTED = 100000  # so many characters of the evidence of a failure, ctest keeps a million of a module


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


class Hung(Exception):
    """The module's time is nearly up, and ctest would kill it without a word."""


def bound(result):
    """End the test that runs when FABRICD_TIMEOUT seconds are nearly up, and begin no other."""
    seconds = int(os.environ.get("FABRICD_TIMEOUT", "0")) - EVIDENCE_S
    if seconds <= 0:
        return

    def hung(*_):
        result.stop()
        raise Hung(f"the module has run for {seconds} s")
    signal.signal(signal.SIGALRM, hung)
    signal.alarm(seconds)


class LeftBehind(AssertionError):
    """Something of a test goes on after its end."""


class Scope:
    """What one test, class or module makes."""

    def __init__(self):
        self.since = processes.scope()
        self.seen, self.sockets = leftovers.Seen(), leftovers.sockets()

    def end(self, failed, sockets=True):
        """End what the laboratory made for it; nothing else may be left. failed: its folders stay, where that is wanted."""
        processes.end_since(self.since, keep=failed and bool(os.environ.get("FABRICD_KEEP")))
        left = self.seen.left()
        if sockets and not failed:
            left += leftovers.left_sockets(self.sockets)
        if left:
            raise LeftBehind("left behind: " + "; ".join(left))


class Result(unittest.TextTestResult):
    """Counts, adds evidence to failures, and ends the scopes of tests. What is registered first for a test, class or module
    is called last for it."""

    def __init__(self, module, suite, *args, **options):
        super().__init__(*args, **options)
        self.passed = 0
        self.module, self.suite = module, suite
        self.within = None  # what a class makes is made since then

    def startTestRun(self):
        """Nothing of a class may be left when it has been torn down, nor of the module."""
        bound(self)
        unittest.addModuleCleanup(self.end_of_module, Scope())
        self.within = Scope()  # the module's fixture is none of a class
        set_up = getattr(self.module, "setUpModule", None)
        if set_up is not None:
            def set_up_module():
                set_up()
                self.within = Scope()
            self.module.setUpModule = set_up_module
        for one in dict.fromkeys(type(test) for test in self.suite):
            one.addClassCleanup(lambda one=one: self.within.end(self.holds(one)))

    def end_of_module(self, scope):
        leftovers.look_again()
        scope.end(self.failed())

    def holds(self, one):
        """Does the result keep tests of this class, which failed or were skipped, and with them what they hold?"""
        return any(isinstance(getattr(test, "test_case", test), one) for test, _ in self.failures + self.errors + self.skipped)

    def failed(self, test=None):
        """How often this test failed, or all."""
        return sum(test in (None, other, getattr(other, "test_case", None)) for other, _ in self.failures + self.errors)

    def startTest(self, test):
        super().startTest(test)
        failures.forget()
        scope = Scope()
        test.addCleanup(lambda: scope.end(self.failed(test) > 0, sockets=False))  # the test has its sockets until it is forgotten

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
    name, which = os.path.splitext(os.path.basename(sys.argv[1]))[0], sys.argv[2:]
    conforms.begin(name)
    faulthandler.enable()
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    os.environ["FABRICD_BUILD"] = conforms.BUILD  # absolute
    folder = tempfile.mkdtemp(prefix="lab.")
    os.chmod(folder, 0o755)
    tempfile.tempdir = folder
    leftovers.begin(os.path.join(folder, "tmp"))
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
