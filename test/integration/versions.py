"""What fabricd does not serve with another PMIx library than 4.2.2 (docs/versions.md): its tests are skipped there."""
import fnmatch
import re
import subprocess
import unittest

import lab


def _version():
    """Of the library that this tree was built with: ./dev --pmix sets where pkg-config finds it."""
    said = subprocess.run(["pkg-config", "--modversion", "pmix"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", said)
    return tuple(map(int, match.groups())) if match else (4, 2, 2)


PMIX = _version()
LATER = PMIX >= (5,)
GUARDED = lab.guard() is not None
REPAIRED = GUARDED and PMIX == (4, 2, 2)
DOOR = REPAIRED or GUARDED and (PMIX[:2] == (5, 0) and PMIX[2] >= 3 or PMIX[:2] == (6, 1))  # what guards connections is for this one, too

if not DOOR:
    lab.no_remote = "[security] remote = yes needs the repairs of connections, which libpmix-guard.so does not have for this library" \
        if GUARDED else "[security] remote = yes needs libpmix-guard.so, which this build does not have"

# Are processes told anything under keys that are not the library's own? (docs/versions.md)
OWN_KEYS = not 5 <= PMIX[0] <= 6
NO_OWN_KEYS = "this library mixes up keys that are not its own: nothing is told under such"

# How a tool may ask for a key: PMIx_Get is answered by a repair of requests (guard_requests.c)
CALLS = ("query", "get") if DOOR else ("query",)


def registered(status):
    """What a tool's PMIx_Fabric_register returns if the server answers with this error: before 7 an answer with nothing to unpack is one."""
    return status if PMIX >= (7,) else "UNREACHABLE"


# What a scheduler's blocking PMIx_Fabric_update returns
UPDATED = "SUCCESS" if PMIX >= (7,) else "OPERATION-SUCCEEDED"

HOST = "fabric-host needs PMIx 4.2.2" if GUARDED else "fabric-host needs libpmix-guard.so, which this build does not have"
PQUERY = "about pquery of PMIx 4.2.2"
PACKAGES = "packages are made with the system's PMIx library"
STORE = "from 5.0 on the library's store keeps no value with a qualifier"

# What every component says before 5.0.7. None: they serve.
NO_ARRAYS = "the components decline: this library hands no arrays to processes" if (5,) <= PMIX < (5, 0, 7) else None

# A pattern of tests' names, "MODULE.CLASS.TEST", and why they cannot run. The first one that fits counts.
UNSERVED = (
    ("test_host.*", HOST), ("test_host_control.*", HOST), ("test_host_data.*", HOST), ("test_host_jobs.*", HOST),
    ("test_host_talk.*", HOST), ("test_alone.*fabric_host", HOST),
    ("test_daemon.Pquery.test_the_preload_is_still_needed", PQUERY),
    ("test_launch_host.Told.test_a_device_by_its_id", STORE), ("test_package.*", PACKAGES),
    ("test_chapter.Get.test_nobody_waits", HOST),
)
if LATER:
    BINDINGS = "the Python bindings from 5.0 on answer a tool's queries in the tool itself"
    UNSERVED += (("test_python.Bindings.*", BINDINGS), ("test_python_package.Daemon.test_over_pmix", BINDINGS))
if not GUARDED:
    # Faults of the library that the guard repairs, and what keeps untrusted clients apart: docs/design/guard.md.
    NO_GUARD = "needs libpmix-guard.so, which this build does not have"
    UNSERVED += tuple((pattern, NO_GUARD) for pattern in (
        "test_untrusted_clients.*", "test_pmix_credentials.*", "test_chapter.*", "test_come_and_go.*", "test_pmix_load.*", "test_pmix_port.*",
        "test_pmix_server.Life.*", "test_security.PmixPort.*", "test_service.PmixServer.*", "test_facts.Attributes.*",
        "test_events.AtOnce.test_nothing_is_held_back", "test_daemon.Answers.*", "test_alone.Node.*", "test_examples.Relay.*",
        "test_lab.Evidence.test_of_each_failure", "test_python.Bindings.test_the_same_facts", "test_refused.Places.test_run_directories"))
elif not DOOR:
    UNREPAIRED = "libpmix-guard.so has no repairs for this library"
    UNSERVED += tuple((pattern, UNREPAIRED) for pattern in (
        "test_chapter.Get.*", "test_chapter.BadInput.test_requests_leave_nothing_behind", "test_events.AtOnce.test_nothing_is_held_back",
        "test_facts.Attributes.test_the_same_over_get", "test_isolate.Host.test_where_that_is_refused_a_daemon_is_not_started", "test_lab.Evidence.test_of_each_failure", "test_pmix_credentials.*",
        "test_pmix_port.Port.test_nobody_gets_it", "test_pmix_port.Port.test_without_its_daemon",
        "test_pmix_server.Life.test_before_it_is_lost", "test_pmix_server.Life.test_killed",
        "test_service.PmixServer.*", "test_service.Node.test_delivers_mirrors_and_serves",
        "test_security.PmixPort.test_without_descriptors_it_is_deaf_for_a_while_only", "test_untrusted_clients.*"))
    if PMIX < (7,):
        UNSERVED += tuple((pattern, UNREPAIRED) for pattern in (
            "test_daemon.Answers.test_an_update_is_of_the_plane_that_was_registered", "test_facts.Attributes.*", "test_relay.*",
            "test_security.PmixPort*", "test_security.ForeignTools.*", "test_versions.Callers.*", "test_versions.Relays.*"))
if (4, 2, 2) < PMIX < (5,):
    UNSERVED += (("test_launch_host.Scheduler.test_query_and_get", "this library passes a scheduler's own query to nobody"),
                 ("test_daemon.Pquery.test_keys", "this library's pquery divides by zero"))
if PMIX >= (7,):
    UNSERVED += (("test_daemon.Pquery.test_keys", "this library's pquery frees its question before it asks: BAD-PARAM, whatever it asks"),)
if (5,) <= PMIX < (5, 0, 9):
    UNSERVED += (("test_remote.Remote.test_a_host_without_a_network_is_told_so", "this library hangs without a network"),)
if NO_ARRAYS:
    NO_GET = "a caller's library of this version finds answers to PMIx_Get of PMIX_RANK_WILDCARD only"
    UNSERVED += (("test_alone.*", NO_ARRAYS), ("test_endpoints.*", NO_ARRAYS), ("test_examples.Launcher.*", NO_ARRAYS),
                 ("test_examples.Scheduler.*", NO_ARRAYS), ("test_launch*", NO_ARRAYS), ("test_pnet*", NO_ARRAYS),
                 ("test_pmix_examples.*", NO_ARRAYS),
                 ("test_relay.Jobs.*", NO_ARRAYS), ("test_versions.Components.*", NO_ARRAYS), ("test_chapter.Get.*", NO_GET),
                 ("test_chapter.Supported.test_what_may_be_required_of_a_question", NO_GET))


def reason(name):
    """Why this test cannot run with this library; None: it can."""
    if REPAIRED:
        return None
    return next((why for pattern, why in UNSERVED if fnmatch.fnmatchcase(name, pattern)), None)


def unwarned(said):
    """What fabricd wrote, but for the line of one that has not all repairs for its library; with 4.2.2 there is none."""
    return said if REPAIRED else re.sub(r"(?m)^.*\bsome repairs of the PMIx library are off.*\n", "", said)


class Unserved(unittest.TestCase):
    """Stands in for a test that cannot run."""

    def __init__(self, test, why):
        super().__init__("skipped")
        self._name, self._why = str(test), why

    def __str__(self):
        return self._name

    def skipped(self):
        self.skipTest(self._why)


def served(tests):
    """The tests, those that cannot run replaced."""
    return unittest.TestSuite(Unserved(test, reason(test.id())) if reason(test.id()) else test for test in tests)
