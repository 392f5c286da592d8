"""The options of the build (cmake/parts.cmake): each part is built, left out with its reason, or the error of configuring. A
folder of pkg-config files stands for the libraries that a machine has."""
import os
import re
import unittest

import lab

PARTS = ("LIB", "CTL", "REPORT", "SCOTCH", "DAEMON", "PMIX", "HOST", "COMPONENTS", "GUARD", "PYTHON")
TARGETS = {"LIB": "pmixfab", "CTL": "fabricctl", "DAEMON": "fabricd", "PMIX": "fabricd-pmix", "HOST": "fabric-host",
           "COMPONENTS": "pmix_mca_pnet_fabricd", "GUARD": "pmix-guard", "PYTHON": "python"}
BASE = ("pmix", "libxxhash")
CTL = (*BASE, "jansson", "smartcols")
CORE = (*BASE, "sqlite3", "libevent", "libevent_pthreads", "jansson", "yaml-0.1", "nettle", "munge")


class Configured:
    """The result of cmake with these options, on a machine that has only these libraries."""

    def __init__(self, have, *on, off=(), **more):
        folder = lab.tmpdir()
        self.build, libraries = os.path.join(folder, "build"), os.path.join(folder, "libraries")
        os.mkdir(libraries)
        for name in have:
            at = lab.run(["pkg-config", "--variable=pcfiledir", name]).stdout.strip()
            os.symlink(os.path.join(at, f"{name}.pc"), os.path.join(libraries, f"{name}.pc"))
        options = {**dict.fromkeys((f"FABRICD_{part}" for part in off), "OFF"), **dict.fromkeys((f"FABRICD_{part}" for part in on), "ON"), **more}
        env = {key: value for key, value in os.environ.items() if key not in ("PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH")}
        done = lab.run(["cmake", "-S", lab.ROOT, "-B", self.build, "-G", "Ninja", *(f"-D{key}={value}" for key, value in options.items())],
                       env={**env, "PKG_CONFIG_LIBDIR": libraries}, timeout=120)
        self.failed, self.said = done.returncode != 0, re.sub(r"\s+", " ", done.stdout + done.stderr)
        self.lines = dict(re.findall(r"^--   (\w+) +(.*)$", done.stdout, re.MULTILINE))

    def read(self, *path):
        with open(os.path.join(self.build, *path), encoding="utf-8") as file:
            return file.read()

    def parts(self):
        """The parts that have a target."""
        rules = lab.run(["ninja", "-C", self.build, "-t", "targets", "all"]).stdout
        return {part for part, target in TARGETS.items() if re.search(rf"^{target}: phony", rules, re.MULTILINE)}

    def installed(self):
        """The names of all files in the install rules."""
        rules = "".join(self.read(folder, "cmake_install.cmake") for folder in ("", "docs", "system", "fabricctl", "fabricd", "libpmixfab")
                        if os.path.exists(os.path.join(self.build, folder, "cmake_install.cmake")))
        return set(re.findall(r'[^/"]+(?=")', rules))


class Options(unittest.TestCase):
    def setUp(self):
        lab.require("cmake", "ninja", "pkg-config")

    def only(self, *parts):
        return [part for part in PARTS if part not in parts]

    def test_the_library_alone(self):
        """It needs the PMIx library and xxhash."""
        made = Configured(BASE, off=self.only("LIB"))
        self.assertFalse(made.failed, made.said)
        self.assertEqual(made.parts(), {"LIB"})
        self.assertRegex(made.lines["LIB"], "^yes .*without relays")
        self.assertEqual(made.lines["tests"], "no   the tests: fabricctl is not built")
        self.assertIn("pmixfab.pc", made.installed())
        self.assertEqual(made.installed() & {"fabricd.8", "fabricctl.1", "fabricd.conf", "fabricd-slurm@.path", "_fabricctl"}, set())

    def test_what_is_missing_is_left_out_and_named(self):
        made = Configured(CTL, FABRICD_PYTHON="OFF")
        self.assertFalse(made.failed, made.said)
        self.assertEqual(made.parts(), {"LIB", "CTL"})
        self.assertRegex(made.lines["DAEMON"], r"^no .*not found: sqlite3 \(Debian: libsqlite3-dev\), .*munge")
        self.assertRegex(made.lines["PMIX"], "^no .*libseccomp")
        self.assertRegex(made.lines["GUARD"], "^no .*private headers")
        self.assertRegex(made.lines["PYTHON"], "^no .*FABRICD_PYTHON is OFF")
        self.assertIn("fabricctl.1", made.installed())
        self.assertNotIn("fabricd.8", made.installed())

    def test_what_is_wanted_and_impossible_fails(self):
        made = Configured(BASE, "DAEMON")
        self.assertTrue(made.failed)
        self.assertRegex(made.said, r"FABRICD_DAEMON is ON, but this is missing: sqlite3 \(Debian: libsqlite3-dev\), .*Install it, or "
                                    r"leave out this part \(fabricd\) with -DFABRICD_DAEMON=OFF")
        made = Configured(BASE, "REPORT", off=["CTL"])
        self.assertTrue(made.failed)
        self.assertRegex(made.said, "FABRICD_REPORT is ON, but fabricctl is not built .*-DFABRICD_CTL=ON")
        made = Configured(BASE, "SCOTCH", off=["CTL"])
        self.assertRegex(made.said, "FABRICD_SCOTCH is ON, but fabricctl is not built .*leave out the mapping of fabricctl run by Scotch")
        made = Configured(BASE, FABRICD_GUARD="sometimes")
        self.assertTrue(made.failed)
        self.assertIn('FABRICD_GUARD is "sometimes": give AUTO, ON or OFF', made.said)
        made = Configured((), off=["PYTHON"])
        self.assertTrue(made.failed)
        self.assertRegex(made.said, r"no part of fabricd can be built: libpmixfab: not found: PMIx 4.2 or later \(Debian: libpmix-dev\)")

    def test_the_library_of_a_part_that_is_off_is_not_looked_for(self):
        """All are there."""
        every = (*CORE, "smartcols", "libseccomp", "libevent_core")
        made = Configured(every, off=["DAEMON", "PMIX", "HOST", "GUARD"])
        self.assertFalse(made.failed, made.said)
        cache = made.read("CMakeCache.txt")
        self.assertIn("SMARTCOLS_FOUND", cache)
        for name in ("SQLITE_FOUND", "EVENT_FOUND", "YAML_FOUND", "NETTLE_FOUND", "MUNGE_FOUND", "SECCOMP_FOUND", "CMOCKA_FOUND", "HWLOC_FOUND",
                     "IBNETDISC_LIBRARY"):
            self.assertNotIn(name, cache)

    def test_the_daemon_without_the_rest(self):
        """No library of another part is needed, and its files are installed."""
        made = Configured(CORE, off=self.only("DAEMON"))
        self.assertFalse(made.failed, made.said)
        self.assertEqual(made.parts(), {"DAEMON"})
        self.assertRegex(made.lines["DAEMON"], "^yes .*with --pmix-unit or --role node only")
        self.assertTrue({"fabricd.8", "fabricd.conf.5", "fabricd-slurm@.path", "_fabricd"} <= made.installed())
        self.assertEqual(made.installed() & {"fabricctl.1", "fabricd-pmix.8", "pmixfab.pc", "_fabricctl"}, set())
        units = re.search(r'set\(units "(.*)"\)', made.read("system", "at_install.cmake")).group(1).split(";")
        self.assertEqual(units, ["fabricd.service", "fabricd-node.service", "fabricd-slurm@.service"])

    def test_without_the_report(self):
        made = Configured(CTL, off=["REPORT"])
        self.assertFalse(made.failed, made.said)
        rules = made.read("build.ninja")
        self.assertIn("no_report.c.o", rules)
        self.assertNotIn("report_page.c.o", rules)

    def test_scotch(self):
        made = Configured(CTL, off=["SCOTCH"])
        self.assertNotIn("SCOTCH_LIBRARY", made.read("CMakeCache.txt"))
        self.assertNotRegex(made.read("build.ninja"), "HAVE_SCOTCH|libscotch")
        self.assertRegex(made.lines["SCOTCH"], "^no .*FABRICD_SCOTCH is OFF")
        old = lab.tmpdir()
        lab.replace_file(os.path.join(old, "scotch.h"), "#define SCOTCH_VERSION 6\n")
        made = Configured(CTL, SCOTCH_INCLUDE=old)
        self.assertFalse(made.failed, made.said)
        self.assertRegex(made.lines["SCOTCH"], r"^no .*not found: Scotch 7 \(Debian: libscotch-dev\)")

    def test_without_tests(self):
        """A truth value of the guard, as it was given to its option before, and BUILD_TESTING of CTest."""
        made = Configured((*CORE, "smartcols", "libseccomp", "cmocka"), "DAEMON", BUILD_TESTING="OFF", FABRICD_GUARD="0")
        self.assertFalse(made.failed, made.said)
        self.assertRegex(made.lines["PMIX"], "^yes .*rejects connections from other hosts")
        self.assertRegex(made.lines["tests"], "^no .*BUILD_TESTING is OFF")
        self.assertFalse(os.path.exists(os.path.join(made.build, "test")))


if __name__ == "__main__":
    unittest.main()
