"""conforms - what a test has shown of the standard's chapter, for docs/conformance.md.

    lab.conforms("PMIX_FABRIC_DIMS", "query", "tool")

as the last line of a test that shows it: `what` is the standard's name, `how` and `whom` are of the words below.
Each module of tests has a file of records in the build folder, a line each: what, how, whom, separated by tabs.
Run whole and passed without a skip, it ends with the line "complete". conformance.py makes the page from them.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("FABRICD_BUILD") or os.path.join(ROOT, "build"))
FOLDER = os.path.join(BUILD, "conformance")
COMPLETE = "complete"

# How a caller comes by it: PMIx_Fabric_register's info array, PMIx_Query_info, PMIx_Get, an event, the call itself,
# the launch information of a job, a program that links libpmixfab, a stock program (pattrs).
HOW = ("call", "register", "query", "get", "event", "launch", "libpmixfab", "pattrs")
# Who: the process of a server itself (the component), a tool, a client of fabricd's own job, a process of a launcher
# that has the components, one that is served through a relay.
WHOM = ("in process", "tool", "client", "launched", "relay")


def _path(module):
    return os.path.join(FOLDER, module + ".records")


def _module():
    """The module of tests that is being run: run_test.py's argument, or the program itself."""
    for arg in sys.argv:
        name = os.path.splitext(os.path.basename(arg))[0]
        if name.startswith("test_"):
            return name
    return None


def conforms(what, how, whom):
    """Write down that the running test has shown it. Words that are not known are an error of the test."""
    if how not in HOW or whom not in WHOM:
        raise ValueError(f"conforms({what!r}, {how!r}, {whom!r}): not one of {HOW}, {WHOM}")
    module = _module()
    if module is None:
        return
    os.makedirs(FOLDER, exist_ok=True)
    with open(_path(module), "a", encoding="utf-8") as file:
        file.write(f"{what}\t{how}\t{whom}\n")


def begin(module):
    """A run starts: what an earlier one has shown counts no longer."""
    try:
        os.unlink(_path(module))
    except FileNotFoundError:
        pass


def finish(module):
    """The whole module has passed, and nothing was skipped."""
    if os.path.exists(_path(module)):
        with open(_path(module), "a", encoding="utf-8") as file:
            file.write(COMPLETE + "\n")


def read():
    """{module: (set of (what, how, whom), complete?)} of all modules that have been run."""
    found = {}
    names = os.listdir(FOLDER) if os.path.isdir(FOLDER) else []
    for name in sorted(names):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            lines = file.read().splitlines()
        complete = bool(lines) and lines[-1] == COMPLETE
        rows = {tuple(line.split("\t")) for line in lines if line != COMPLETE}
        found[os.path.splitext(name)[0]] = (rows, complete)
    return found
