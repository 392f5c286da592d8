"""bench - how a bench in Python reports: the same table, and with --json the same lines, as bench.c.

A bench is a program: it measures, reports each figure with report(), and leaves with main()'s status.
"""
import json
import math
import os
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("FABRICD_BUILD", os.path.join(ROOT, "build-bench"))
sys.path.insert(0, os.path.join(ROOT, "test", "integration"))

_as_json = "--json" in sys.argv[1:]
_headed = False


def note(text):
    """What is worth knowing about a run and is no figure; not among the figures."""
    print(text, file=sys.stderr, flush=True)


def report(bench, figure, value, unit, baseline=None, baseline_value=None, to_reach=0, at_least=False):
    """One figure. With a baseline, to_reach is the largest ratio value/baseline_value allowed (at_least: the
    smallest baseline_value/value); without, the largest value. 0: write down only."""
    ratio = ok = None
    if baseline is not None:
        ratio = baseline_value / value if at_least else value / baseline_value
    if to_reach > 0:
        compared = value if ratio is None else ratio
        ok = compared >= to_reach if at_least else compared <= to_reach
    if _as_json:
        _line(bench, figure, value, unit, baseline, baseline_value, ratio, to_reach, ok)
    else:
        _row(bench, figure, value, unit, baseline, baseline_value, ratio, to_reach, at_least, ok)


def _number(value):
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def _line(bench, figure, value, unit, baseline, baseline_value, ratio, to_reach, ok):
    print(json.dumps({"bench": bench, "figure": figure, "value": _number(value), "unit": unit, "baseline": baseline,
                      "baseline_value": _number(baseline_value), "ratio": _number(ratio),
                      "to_reach": to_reach if to_reach > 0 else None, "ok": ok}), flush=True)


def _row(bench, figure, value, unit, baseline, baseline_value, ratio, to_reach, at_least, ok):
    global _headed
    if not _headed:
        print(f"{'bench':<8} {'figure':<44} {'value':>16}  {'against':<28} {'ratio':>8} {'to reach':>10}")
    _headed = True
    against = "" if baseline is None else f"{baseline} {baseline_value:.3g} {unit}"
    rate = "" if ratio is None else f"{ratio:.3g}"
    goal = f"{'>=' if at_least else '<='} {to_reach:g}" if to_reach > 0 else ""
    verdict = {None: "", True: "ok", False: "MISSED"}[ok]
    print(f"{bench:<8} {figure:<44} {value:10.4g} {unit:<5}  {against:<28} {rate:>8} {goal:>10}  {verdict}",
          flush=True)


def median(values):
    return statistics.median(values)


def rounded(values):
    """Values in the order they came, for a note."""
    return " ".join(f"{value:.3g}" for value in values)


def timed(work):
    """How many milliseconds a call takes by the wall clock, and what it returns."""
    start = time.monotonic()
    result = work()
    return (time.monotonic() - start) * 1e3, result


def main(name, work):
    """Run a bench; its exit status: 0, or 1 with a line that says why it could not measure."""
    import unittest

    import lab
    for arg in sys.argv[1:]:
        if arg != "--json":
            note(f"usage: bench_{name}.py [--json]")
            return 2
    try:
        work()
    except unittest.SkipTest as why:
        note(f"bench_{name}: not measured: {why}")
    except (lab.LabError, OSError) as why:
        note(f"bench_{name}: {why}")
        return 1
    return 0
