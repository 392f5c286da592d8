"""The last line of a test run: how many passed, failed and were skipped, from ctest's JUnit report."""
import sys
import xml.etree.ElementTree as ElementTree


def count(report):
    """(passed, failed, skipped)"""
    numbers = {"run": 0, "fail": 0, "notrun": 0, "disabled": 0}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        status = case.get("status")
        if status == "notrun" and case.find("skipped") is None:
            status = "fail"
        numbers[status if status in numbers else "fail"] += 1
    return numbers["run"], numbers["fail"], numbers["notrun"] + numbers["disabled"]


def main():
    try:
        passed, failed, skipped = count(sys.argv[1])
    except (OSError, ElementTree.ParseError) as error:
        print(f"no test results: {error}", file=sys.stderr)
        return 1
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
