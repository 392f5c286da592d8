"""Run one unittest module for ctest: status 0 passed, 1 failed, 77 when every test of it was skipped."""
import importlib
import os
import sys
import unittest

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)


def main():
    import conforms
    name = os.path.splitext(os.path.basename(sys.argv[1]))[0]
    conforms.begin(name)
    module = importlib.import_module(name)
    if len(sys.argv) > 2:
        suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[2:], module)
    else:
        suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if not result.wasSuccessful():
        return 1
    if result.testsRun == 0 and not result.skipped:
        print(f"{name}: no tests in it", file=sys.stderr)
        return 1
    if len(sys.argv) == 2 and not result.skipped:
        conforms.finish(name)
    return 77 if len(result.skipped) >= result.testsRun else 0  # a skipped class counts no runs


if __name__ == "__main__":
    sys.exit(main())
