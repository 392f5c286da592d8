"""The last line of a test run: how many passed, failed and were skipped, from ctest's JUnit report; and how many single
cases of Python modules were skipped, whatever became of their module.

usage: summary.py REPORT, or summary.py --table TREE/REPORT...: a line for each, and what was not passed in it
"""
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


def count(report):
    """{"passed": n, "failed": n, "skipped": n}"""
    numbers = {"passed": 0, "failed": 0, "skipped": 0}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        numbers[outcome(case)] += 1
    return numbers


def skipped_cases(report):
    """As the last line of each module says."""
    said = (case.findtext("system-out", "") for case in ElementTree.parse(report).getroot().iter("testcase"))
    return sum(int(number) for text in said
               for number in re.findall(r"^(?:OK|FAILED) \(.*?\bskipped=(\d+)", text, re.MULTILINE))


def reasons(case):
    """Why single tests in it were skipped, each reason once; else its outcome."""
    found = re.findall(r" skipped ['\"](.*)['\"]$", case.findtext("system-out", ""), re.MULTILINE)
    return list(dict.fromkeys(found)) if outcome(case) != "failed" else ["failed"]


def table(reports):
    """Lines: a table, a row for each report, and below it what did not run as a whole."""
    lines, details = ["| | passed | failed | skipped |", "|---|---|---|---|"], []
    for report in reports:
        name = os.path.basename(os.path.dirname(report)).replace("build-pmix-", "")
        lines.append(f"| {name} | " + " | ".join(map(str, count(report).values())) + " |")
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            details += [f"{name}: {case.get('name')}: {reason}" for reason in reasons(case)]
    return lines + details


def main():
    if sys.argv[1] == "--table":
        print("\n".join(table(sys.argv[2:])))
        return 0
    try:
        numbers, cases = count(sys.argv[1]), skipped_cases(sys.argv[1])
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
