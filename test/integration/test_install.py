"""cmake --install into an empty prefix, and a program of somebody else's that finds and uses the library there."""
import os
import shutil
import subprocess
import unittest

import lab

CONSUMER = """\
#include <pmixfab.h>
#include <stdio.h>

int main(void)
{
    struct pmixfab *fab = NULL;
    if (pmixfab_open_file("/nonexistent", &fab) != PMIXFAB_ERR_NOTFOUND || fab != NULL)
        return 1;
    puts(pmixfab_version());
    return 0;
}
"""

CMAKELISTS = """\
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package(pmixfab 0.1 REQUIRED)
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE pmixfab::pmixfab)
"""


def check(argv, **options):
    done = lab.run(argv, timeout=240, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def version():
    with open(os.path.join(lab.ROOT, "libpmixfab", "pmixfab.h"), encoding="utf-8") as header:
        return next(line for line in header if "PMIXFAB_VERSION" in line).split('"')[1]


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Installed, then moved: nothing of what is installed may point at where it was built.
        first = os.path.join(lab.tmpdir(), "first")
        check(["cmake", "--install", lab.BUILD, "--prefix", first])
        cls.prefix = os.path.join(lab.tmpdir(), "moved")
        shutil.move(first, cls.prefix)
        cls.libdir = os.path.dirname(cls.find("libpmixfab.so"))
        cls.source = lab.tmpdir()
        for name, text in (("consumer.c", CONSUMER), ("CMakeLists.txt", CMAKELISTS)):
            with open(os.path.join(cls.source, name), "w", encoding="utf-8") as file:
                file.write(text)

    @classmethod
    def find(cls, name):
        for folder, _, files in os.walk(cls.prefix):
            if name in files:
                return os.path.join(folder, name)
        raise AssertionError(f"{name} is not installed below {cls.prefix}")

    def test_files(self):
        for name in ("pmixfab.h", "libpmixfab.so", "libpmixfab.so.0", "pmixfab.pc", "pmixfabConfig.cmake",
                     "fabricd", "fabricctl", "fabricd.8", "fabricd.conf.5", "fabricctl.1", "pmixfab.3",
                     "fabricd.service", "fabricd-node.service"):
            self.find(name)
        headers = [name for _, _, files in os.walk(os.path.join(self.prefix, "include")) for name in files]
        self.assertEqual(headers, ["pmixfab.h"], "one public header")

    def test_installed_programs_start(self):
        # fabricctl needs the library that was installed beside it, wherever the prefix is.
        for name in ("fabricd", "fabricctl"):
            path = self.find(name)
            self.assertIn(version(), check([path, "--version"]))
            needed = check(["readelf", "-d", path])
            self.assertNotIn(lab.BUILD, needed)

    def test_pkg_config(self):
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(self.libdir, "pkgconfig"))
        self.assertEqual(check(["pkg-config", "--modversion", "pmixfab"], env=env).strip(), version())
        flags = check(["pkg-config", "--cflags", "--libs", "pmixfab"], env=env).split()
        program = os.path.join(self.source, "by-pkg-config")
        check(["cc", "-Wall", "-Wextra", "-Werror", os.path.join(self.source, "consumer.c"), "-o", program, *flags])
        self.assertEqual(check([program], env=dict(os.environ, LD_LIBRARY_PATH=self.libdir)).strip(), version())

    def test_cmake_package(self):
        build = os.path.join(self.source, "build")
        check(["cmake", "-S", self.source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}"])
        check(["cmake", "--build", build])
        self.assertEqual(check([os.path.join(build, "consumer")]).strip(), version())

    def test_the_build_names_the_library_by_its_soname(self):
        dynamic = subprocess.run(["readelf", "-d", self.find("libpmixfab.so")], capture_output=True, text=True,
                                 check=True).stdout
        self.assertIn("Library soname: [libpmixfab.so.0]", dynamic)


if __name__ == "__main__":
    unittest.main()
