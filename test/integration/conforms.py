"""conforms - what assertions have shown of the standard's chapter, for docs/conformance.md.

    class Case(conforms.Shows):
        self.shows_keys(answer, {"PMIX_FABRIC_DIMS": 3}, "query", "tool")

Each assertion of Shows compares something that a program was answered with what it must be, and only then writes down
what that was: name, kind, how, whom, and the version of the PMIx library. Nothing else writes records. Each module of tests
has a file of them in the build folder, a line each, separated by tabs. Run whole and passed, with nothing skipped but what
versions.py says, it ends with the line "complete". conformance.py makes the page from them.
"""
import functools
import glob
import os
import re
import subprocess
import sys
import unittest

import versions

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("FABRICD_BUILD") or os.path.join(ROOT, "build"))
FOLDER = os.path.join(BUILD, "conformance")
COMPLETE = "complete"
VERSION = ".".join(map(str, versions.PMIX))

KINDS = ("function", "event", "key", "key of all planes", "directive", "qualifier", "constant", "structure")
# How a caller comes by it: PMIx_Fabric_register's info array, PMIx_Query_info, PMIx_Get, an event, the call itself,
# the launch information of a job, a program that links libpmixfab, a stock program (pattrs).
HOW = ("call", "register", "query", "get", "event", "launch", "libpmixfab", "pattrs")
# Who: the process of a server itself (the component, or fabricd), a tool, a client of fabricd's own job, a process of a
# launcher that has the components, one that is served through a relay.
WHOM = ("in process", "tool", "client", "launched", "relay")

# What the programs of the tests call some of it in the lines that they are told; all else has a part of its own name there.
WORDS = {
    "PMIx_Fence_nb": "fences", "pmix_server_fencenb_fn_t": "fence", "pmix_server_dmodex_req_fn_t": "get",
    "pmix_server_iof_fn_t": "pull", "PMIx_server_IOF_deliver": "pull", "pmix_server_stdin_fn_t": "push",
    "pmix_server_fabric_fn_t": "register|update", "pmix_fabric_operation_t": "update", "PMIX_SERVER_SCHEDULER": "plain",
    "pmix_server_client_connected_fn_t": "exit", "pmix_server_client_finalized_fn_t": "exit",
    "PMIx_server_register_nspace": "pmix.job.size|register", "PMIx_server_register_client": "pmix.lrank|register",
    "pmix_server_register_events_fn_t": "register", "pmix_server_notify_event_fn_t": "notify", "PMIx_Notify_event": "notify(_nb)?",
    "PMIx_server_setup_application": "app", "PMIx_server_setup_local_support": "local", "PMIx_server_setup_fork": "fork",
    "PMIx_generate_regex": "nodes|pmix.num.nodes",
    "PMIx_generate_ppn": "ranks|pmix.lpeers", "PMIx_server_deregister_nspace": "end",
    "PMIx_server_dmodex_request": "modex", "PMIx_server_deregister_client": "deregister_client",
    "PMIX_SETUP_APP_NONENVARS": "others", "PMIX_ALLOC_NETWORK_SEC_KEY": "key", "PMIX_ALLOC_NETWORK_ENDPTS_NODE": "nodendpts",
    "PMIX_ALLOC_NETWORK": "endpts|qos|bw|type", "PMIX_FWD_STDIN": "in", "PMIX_STDIN_TGT": "stdin", "PMIX_FWD_STDOUT": "out",
    "PMIX_FWD_STDERR": "err-?", "PMIX_WDIR": "cwd", "PMIX_TIMEOUT": "[0-9]+", "PMIX_WAIT": "lookup", "PMIX_RANGE": "proc|namespace",
    "PMIX_PERSISTENCE": "first|proc|session", "PMIX_MONITOR_HEARTBEAT": "beat", "PMIX_LOG_TIMESTAMP_OUTPUT": "tsout",
    "pmix_coord_view_t": "pmixfab[.]view", "pmix_fabric_t": "register", "PMIX_JOB_CTRL_SIGNAL": "sig", "PMIX_JOB_CTRL_TERMINATE": "term", "PMIX_NOTIFY_COMPLETION": "notify",
}


# ---- the library's headers ----------------------------------------------------------------------------


@functools.cache
def header():
    """All public headers of the PMIx library that this tree is built with."""
    done = subprocess.run(["pkg-config", "--cflags-only-I", "pmix"], capture_output=True, text=True, check=False)
    folders = [word[2:] for word in done.stdout.split()] or ["/usr/include"]
    text = ""
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, "pmix*.h"))):
            with open(path, encoding="utf-8", errors="replace") as file:
                text += file.read()
    return text


@functools.cache
def string(name):
    """The text behind an attribute's name; our own have no other."""
    match = re.search(rf'^#define\s+{name}\s+"([^"]+)"', header(), re.MULTILINE)
    return match.group(1) if match else name


@functools.cache
def number(name):
    """The number behind a constant's name; None: it has none."""
    match = re.search(rf"^#define\s+{name}\s+\(?(-?(?:0x)?[0-9a-fA-F]+)\)?\s*(?:/|$)", header(), re.MULTILINE)
    return int(match.group(1), 0) if match else None


@functools.cache
def known(name):
    """Does a header have this name?"""
    return re.search(rf"\b{name}\b", header()) is not None


def named(name, asked):
    """Does what was asked say this: name or text of an attribute, number of a constant, or the word that stands for the name?"""
    words = [name, re.escape(string(name)), WORDS.get(name)]
    if number(name) is not None:
        words.append(re.escape(str(number(name))))
    if name not in WORDS:
        nb = "_nb" if name.endswith("_nb") else ""
        words += [part.lower() + nb for part in re.split("_", name.removesuffix("_nb"))[1:] if part not in ("server", "fn", "t")]
    asked = asked if isinstance(asked, str) else " ".join(asked)
    return any(re.search(rf"(?<![\w.])(?:{word})(?!\w)", asked) for word in filter(None, words))


# ---- the records --------------------------------------------------------------------------------------


def _path(module):
    return os.path.join(FOLDER, module + ".records")


def _module():
    """The module of tests that is being run: run_test.py's argument, or the program itself."""
    for arg in sys.argv:
        name = os.path.splitext(os.path.basename(arg))[0]
        if name.startswith("test_"):
            return name
    return None


def _record(name, kind, how, whom):
    module = _module()
    if module is None:
        return
    os.makedirs(FOLDER, exist_ok=True)
    with open(_path(module), "a", encoding="utf-8") as file:
        file.write(f"{name}\t{kind}\t{how}\t{whom}\t{VERSION}\n")


def begin(module):
    """A run starts: what an earlier one has shown counts no longer."""
    try:
        os.unlink(_path(module))
    except FileNotFoundError:
        pass


def finish(module):
    """The whole module has passed, and nothing was skipped that is served."""
    if os.path.exists(_path(module)):
        with open(_path(module), "a", encoding="utf-8") as file:
            file.write(COMPLETE + "\n")


def read():
    """{module: (set of (name, kind, how, whom, version), complete?)} of all modules that have been run."""
    found = {}
    names = os.listdir(FOLDER) if os.path.isdir(FOLDER) else []
    for name in sorted(names):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            lines = file.read().splitlines()
        complete = bool(lines) and lines[-1] == COMPLETE
        rows = {tuple(line.split("\t")) for line in lines if line != COMPLETE}
        found[os.path.splitext(name)[0]] = (rows, complete)
    return found


# ---- the assertions -----------------------------------------------------------------------------------


class Shows(unittest.TestCase):
    """Assertions that write down what they have compared. An expectation may be a compiled regular expression."""

    def _words(self, name, kind, how, whom):
        """Words that are not known, and names that the library's headers do not have, are an error of the test."""
        if kind not in KINDS or how not in HOW or whom not in WHOM:
            raise ValueError(f"{name}: {kind!r}, {how!r}, {whom!r}: not of {KINDS}, {HOW}, {WHOM}")
        if not name.startswith("pmixfab.") and not known(name):
            raise ValueError(f"{name}: not in the headers of PMIx {VERSION}")

    def _compare(self, got, expected, what):
        if isinstance(expected, re.Pattern):
            self.assertRegex(got, expected, what)
        else:
            self.assertEqual(got, expected, what)

    def shows_keys(self, answer, expected, how, whom, kind="key"):
        """Each of these names stands in the answer, as the library writes it, with this value."""
        answer = dict(answer)
        for name, value in expected.items():
            self._words(name, kind, how, whom)
            self.assertIn(string(name), answer)
            self.assertIsNotNone(value, name)
            self._compare(answer[string(name)], value, name)
            _record(name, kind, how, whom)

    def _given(self, name, kind, asked, got, expected, how, whom, without):
        self._words(name, kind, how, whom)
        self.assertTrue(named(name, asked), f"{name} is not in what was asked: {asked}")
        self.assertIsNotNone(expected, name)
        self._compare(got, expected, f"{name}: {asked}")
        if without is not None:
            self.assertNotEqual(got, without, f"{name}: as without it")
        _record(name, kind, how, whom)

    def shows_call(self, function, asked, got, expected, whom, how="call", without=None):
        """What came of a function that a program was asked to call, or that the server was called with for it. `without`: what
        comes of something else, which must differ."""
        self._given(function, "function", asked, got, expected, how, whom, without)

    def shows_given(self, name, asked, got, expected, how, whom, without=None, kind="directive"):
        """The answer to what was asked with a directive or qualifier. `without`: the answer without it, which must differ where it
        is to change the answer."""
        self._given(name, kind, asked, got, expected, how, whom, without)

    def shows_events(self, told, expected, whom):
        """Of all that somebody was told, what is about each of these events: [what was told] by the event's name."""
        for name, texts in expected.items():
            self._words(name, "event", "event", whom)
            self.assertTrue(texts, name)
            words = rf"\b{name}\b|\b{name.removeprefix('PMIX_').replace('_', '-')}\b"
            if number(name) is not None:
                words += rf"|(?<!\w){number(name)}\b"
            self.assertEqual([one for one in told if re.search(words, str(one))], list(texts), name)
            _record(name, "event", "event", whom)

    def shows_constant(self, name, got, how, whom):
        """An answer is the number of this name."""
        self._words(name, "constant", how, whom)
        self.assertIsNotNone(number(name), name)
        self.assertEqual(got, number(name), name)
        _record(name, "constant", how, whom)

    def shows_structure(self, name, typed, expected, how, whom):
        """A value of this type, or an array of them, as stock programs write values: with this content."""
        self._words(name, "structure", how, whom)
        content = typed["value"]
        of = typed["type"]
        if isinstance(content, dict) and "of" in content:
            of, content = content["of"], content["elements"]
        self.assertEqual(f"{of.lower()}_t", name)
        self.assertTrue(content, name)
        self.assertEqual(content, expected, name)
        _record(name, "structure", how, whom)
