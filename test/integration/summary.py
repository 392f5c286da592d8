"""The last line of a test run: how many passed, failed and were skipped, from ctest's JUnit report; and how many single
cases were skipped, whatever became of their module.

usage: summary.py REPORT, or summary.py --table TREE/REPORT...: a line for each, and below what failed, and why how much
of what was skipped
"""
import collections
import os
import re
import sys
import xml.etree.ElementTree as ElementTree


def outcome(case):
    """What became of one test. A test that could not even be started is ctest's "notrun", as is a skipped one."""
    status = case.get("status")
    reason = case.find("skipped")
    if status == "run":
        return "passed"
    if status == "disabled" or (reason is not None and reason.get("message", "").startswith("SKIP_")):
        return "skipped"
    return "failed"


def testcases(report):
    return list(ElementTree.parse(report).getroot().iter("testcase"))


def count(report):
    """{"passed": n, "failed": n, "skipped": n}"""
    numbers = {"passed": 0, "failed": 0, "skipped": 0}
    for case in testcases(report):
        numbers[outcome(case)] += 1
    return numbers


def single(case):
    """The same of the single cases in it, as run_test.py's line says them, or cmocka's lines."""
    said = case.findtext("system-out", "")
    match = re.search(r"^cases: (\d+) passed, (\d+) failed, (\d+) skipped$", said, re.MULTILINE)
    if match:
        return dict(zip(("passed", "failed", "skipped"), map(int, match.groups())))
    lines = {name.lower(): int(number) for name, number in re.findall(r"^\[ +(\w+) +\] (\d+) test\(s\)", said, re.MULTILINE)}
    return {name: lines.get(name, 0) for name in ("passed", "failed", "skipped")}


def single_cases(report):
    total = collections.Counter()
    for case in testcases(report):
        total.update(single(case))
    return total


def reasons(report):
    """{why single cases were skipped: [how many, in which modules]}"""
    found = {}
    for case in testcases(report):
        for number, reason in re.findall(r"^skipped: (\d+): (.*)$", case.findtext("system-out", ""), re.MULTILINE):
            one = found.setdefault(reason, [0, []])
            one[0] += int(number)
            one[1].append(case.get("name"))
    return found


def table(reports):
    """Lines: a table, a row for each report, and below it what was not passed."""
    lines = ["| | tests passed | failed | skipped | single cases passed | failed | skipped |", "|---|---|---|---|---|---|---|"]
    details = []
    for report in reports:
        name = os.path.basename(os.path.dirname(report)).replace("build-pmix-", "")
        cases = single_cases(report)
        numbers = [*count(report).values(), *(cases[kind] for kind in ("passed", "failed", "skipped"))]
        lines.append(f"| {name} | " + " | ".join(map(str, numbers)) + " |")
        details += [f"{name}: failed: {case.get('name')}" for case in testcases(report) if outcome(case) == "failed"]
        details += [f"{name}: skipped: {number}: {reason} ({', '.join(modules)})" for reason, (number, modules) in reasons(report).items()]
    return lines + details


def main():
    if sys.argv[1] == "--table":
        print("\n".join(table(sys.argv[2:])))
        return 0
    try:
        numbers, cases = count(sys.argv[1]), single_cases(sys.argv[1])["skipped"]
    except (OSError, ElementTree.ParseError) as error:
        print(f"no test results: {error}", file=sys.stderr)
        return 1
    if numbers["skipped"] == 0:
        del numbers["skipped"]
    if cases > 0:
        numbers["single cases skipped"] = cases
    print(", ".join(f"{number} {name}" for name, number in numbers.items()))
    return 0 if numbers["failed"] == 0 and numbers["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
