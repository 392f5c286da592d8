"""What the packages are made of agrees with what is built and installed. The packages themselves: test_package.py."""
import os
import re
import shutil
import unittest

import lab

# In the group "build" for ./dev alone: every package build has the first, the other is for tests.
NOT_FOR_PACKAGES = {"build-essential", "libcmocka-dev"}
FOR_PACKAGES = {"debhelper-compat", "dh-sequence-python3", "chrpath"}
# Below /usr/lib, but the same for every architecture.
COMMON = ("python3", "systemd", "sysusers.d", "tmpfiles.d", "udev")


def read(*path):
    with open(os.path.join(lab.ROOT, *path), encoding="utf-8") as file:
        return file.read()


def check(argv, **options):
    done = lab.run(argv, timeout=120, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Control(unittest.TestCase):
    def test_what_a_build_needs_is_what_dev_installs(self):
        field = re.search(r"^Build-Depends:(.*?)\n(?=\S)", read("debian", "control"), re.MULTILINE | re.DOTALL).group(1)
        needed = {word.split()[0] for word in field.split(",")}
        group = {line.split()[0] for line in read("cmake", "packages.txt").splitlines()
                 if not line.startswith("#") and "build" in line.split()[1:]}
        self.assertEqual(needed - FOR_PACKAGES, group - NOT_FOR_PACKAGES)

    def test_one_version(self):
        project = re.search(r"^project\(fabricd VERSION (\S+)", read("CMakeLists.txt"), re.MULTILINE).group(1)
        self.assertEqual(re.match(r"fabricd \((.*?)\)", read("debian", "changelog")).group(1), project)

    def test_one_licence(self):
        """debian/copyright has the text of LICENSE, in its own form."""
        text = read("debian", "copyright").split("License: BSD-3-Clause\n")[-1]
        text = "".join(line[1:].replace(".", "", line == " .") + "\n" for line in text.splitlines())
        self.assertIn(text.strip(), read("LICENSE"))


class Files(unittest.TestCase):
    def test_each_installed_file_is_of_one_package(self):
        lab.require("dh_install", "dh_missing", "dpkg-architecture")
        if lab.SANITIZE:
            self.skipTest("packages are not built so")
        tree = os.path.join(lab.tmpdir(), "tree")
        shutil.copytree(os.path.join(lab.ROOT, "debian"), os.path.join(tree, "debian"))
        check(["cmake", "--install", lab.BUILD, "--prefix", "/usr"], env=dict(os.environ, DESTDIR=f"{tree}/debian/tmp"))
        # As a package's build has it: libraries in the architecture's folder, the component in PMIx's own.
        library = os.path.join(tree, "debian", "tmp", "usr", "lib")
        triplet = check(["dpkg-architecture", "-qDEB_HOST_MULTIARCH"]).strip()
        os.makedirs(os.path.join(library, triplet, "pmix2", "lib"))
        for name in sorted(set(os.listdir(library)) - {*COMMON, triplet}):
            to = os.path.join(triplet, "pmix2", "lib", name) if name == "pmix" else os.path.join(triplet, name)
            os.rename(os.path.join(library, name), os.path.join(library, to))
        # The rules export a folder that depends on the distribution.
        lab.replace_file(os.path.join(tree, "show"), "include debian/rules\nshow:\n\t@echo $(LIB)\n")
        lib = check(["make", "-s", "-f", "show", "show"], cwd=tree).strip()
        check(["dh_install"], cwd=tree, env=dict(os.environ, LIB=lib))
        check(["dh_missing", "--fail-missing"], cwd=tree)
        of = {}
        for package in re.findall(r"^Package: (\S+)", read("debian", "control"), re.MULTILINE):
            for folder, _, files in os.walk(os.path.join(tree, "debian", package)):
                for name in files:
                    of.setdefault(os.path.relpath(os.path.join(folder, name), os.path.join(tree, "debian", package)),
                                  []).append(package)
        self.assertIn("usr/sbin/fabricd", of)
        self.assertEqual({path: packages for path, packages in of.items() if len(packages) > 1}, {})


if __name__ == "__main__":
    unittest.main()
