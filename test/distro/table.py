"""table - docs/versions.md's tables of what works where, from the reports of test runs.

usage: table.py PAGE NAME=REPORT...    NAME: the column, as "trixie" or "5.0.9"; REPORT: ctest's JUnit report

Between the page's lines `<!-- NAME of the first column -->` and `<!-- end -->`: a column a report, a row a feature. A cell
is "yes" where all single tests of the feature passed, "no, N" where they are skipped for the reason N of the list below
the table, and "FAILED". A feature with passed and skipped tests is "in part, N".
"""
import glob
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

# (the row, the modules of tests that show it; NAME:WORD only their tests with this word in the name)
FEATURES = (
    ("logic: unit tests, simulated sites, fuzzers' corpus", ("unit.", "sim.", "fuzz.")),
    ("a scheduler's own calls, in its process (component pnet)", ("integration.pnet",)),
    ("tools of this host: register, query, events", ("integration.daemon", "integration.events", "integration.facts")),
    ("tools of other hosts (`remote = yes`)", ("integration.remote",)),
    ("relays (`pmixfab_relay_open()`)", ("integration.relay",)),
    ("untrusted clients (libpmix-guard)", ("integration.untrusted_clients",)),
    ("a job's launch information (component pmdl)", ("integration.launch_host",)),
    ("jobs of the system's launchers on three nodes", ("integration.launch",)),
    ("endpoints of jobs", ("integration.endpoints",)),
    ("nodes with a PMIx server of their own, of a scheduler with `remote = yes`", ("integration.node", "integration.whole_node")),
    ("fabric-host", ("integration.host", "integration.host_jobs")),
    ("probes of this host", ("integration.probes", "integration.probe_verbs", "integration.probe_hwloc")),
    ("Slurm's topology files, read by slurmctld", ("integration.export_slurm", "integration.slurm_topology")),
    ("the page of `fabricctl report` (Chromium)", ("integration.report",)),
    ("systemd units, installed", ("integration.service",)),
    ("Python package", ("integration.python_package",)),
    ("installation, options of the build", ("style.install", "style.options")),
)


# These reasons say that a thing is not installed, or how long a test takes: nothing of the distribution.
BESIDE = re.compile(r"is not installed|are not installed|not here|beside|neighbouring|names no|takes half|build folder|--all|compat|about 5\.0|"
                    r"about pquery|git repository|sets none|clang-format|bindings")


def cases(report):
    """{module: (status, [a reason for each skipped single case], number of passed ones)}"""
    found = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        said = case.findtext("system-out", "")
        counts = re.search(r"^cases: (\d+) passed, (\d+) failed", said, re.MULTILINE)
        reasons = re.findall(r"^skipped: \d+: (.*)$", said, re.MULTILINE)
        failed = case.get("status") == "fail" or bool(counts and int(counts.group(2)))
        found[case.get("name")] = (failed, reasons, int(counts.group(1)) if counts else 1)
    return found


def cell(modules, report, notes):
    def results(module):
        return [result for name, result in report.items() if (name.startswith(module) if module.endswith(".") else name == module)]
    if modules[0].endswith(".") and not all(map(results, modules)):
        return "not run"  # a run of some of these only
    chosen = [result for module in modules for result in results(module)]
    if not chosen:
        return "not run"
    if any(failed for failed, _, _ in chosen):
        return "FAILED"
    reasons = sorted({reason for _, reasons, _ in chosen for reason in reasons if not BESIDE.search(reason)})
    for reason in reasons:
        if reason not in notes:
            notes.append(reason)
    numbers = ", ".join(str(notes.index(reason) + 1) for reason in reasons)
    if not sum(passed for _, _, passed in chosen):
        return f"no, {numbers}" if numbers else "not run"
    return f"in part, {numbers}" if numbers else "yes"


PACKAGES = (("PMIx", "libpmix-dev"), ("Slurm", "slurmctld"), ("Open MPI", "openmpi-bin"), ("libfabric", "libfabric-dev"), ("compiler", "gcc"))


def of_distributions(roots):
    """Rows about roots of distributions: {column: root}; versions of packages, and what across.py has shown."""
    versions = {}
    for name, root in roots.items():
        with open(os.path.join(root, "var", "lib", "dpkg", "status"), encoding="utf-8") as file:
            versions[name] = dict(re.findall(r"^Package: (\S+)\n(?:(?!\n\n)[\s\S])*?^Version: (?:\d+:)?([\w.~]+)", file.read(), re.MULTILINE))
    rows = [[title, *(versions[name].get(package, "-").replace("~", "") for name in roots)] for title, package in PACKAGES]
    shown = []
    for path in sorted(glob.glob(os.path.join(os.path.dirname(next(iter(roots.values()))), "across-*.json"))):
        with open(path, encoding="ascii") as file:
            shown.append(json.load(file))
    rows.append(["scheduler here, nodes on", *(", ".join(node for one in shown if one["scheduler"] == name for node in one["nodes"]) or "not run"
                                              for name in roots)])
    rows.append(["node here, scheduler on", *(", ".join(one["scheduler"] for one in shown if name in one["nodes"]) or "not run"
                                             for name in roots)])
    return [f"| {' | '.join(row)} |" for row in rows]


def main():
    page, *columns = sys.argv[1:]
    reports = {name: cases(path) for name, path in (column.split("=", 1) for column in columns)}
    notes = []
    lines = ["| | " + " | ".join(reports) + " |", "|---" * (len(reports) + 1) + "|"]
    roots = {name: os.path.join(os.path.dirname(path), "..", "..") for name, path in (column.split("=", 1) for column in columns)}
    if all(os.path.exists(os.path.join(root, "var", "lib", "dpkg")) for root in roots.values()):
        lines += of_distributions({name: os.path.realpath(root) for name, root in roots.items()})
    lines += [f"| {feature} | " + " | ".join(cell(modules, report, notes) for report in reports.values()) + " |"
              for feature, modules in FEATURES]
    lines = [line for line in lines if line.count("not run") < len(reports)]
    text = "\n".join(lines + [""] + [f"{number}. {note}" for number, note in enumerate(notes, 1)])
    with open(page, encoding="utf-8") as file:
        before = file.read()
    start = f"<!-- table {next(iter(reports))} -->\n"
    if start not in before:
        sys.exit(f"{page}: no line {start.strip()}")
    head, rest = before.split(start, 1)
    with open(page, "w", encoding="utf-8") as file:
        file.write(head + start + "\n" + text + "\n\n" + rest[rest.index("<!-- end -->"):])
    return 1 if "FAILED" in text else 0


if __name__ == "__main__":
    sys.exit(main())
