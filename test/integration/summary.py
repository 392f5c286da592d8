"""The last line of a test run: how many passed, failed and were skipped, from ctest's JUnit report."""
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


def main():
    try:
        numbers = count(sys.argv[1])
    except (OSError, ElementTree.ParseError) as error:
        print(f"no test results: {error}", file=sys.stderr)
        return 1
    if numbers["skipped"] == 0:
        del numbers["skipped"]
    print(", ".join(f"{number} {name}" for name, number in numbers.items()))
    return 0 if numbers["failed"] == 0 and numbers["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
