"""cmake --install as a user says it: to a prefix that is given then only, also one with spaces; what is installed works
from there, and where it cannot be installed nothing is. Also the source tarball, built where there is no git."""
import glob
import os
import re
import shlex
import shutil
import unittest

import lab
import test_pnet

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
cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C)
find_package(pmixfab 0.1 REQUIRED)
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE pmixfab::pmixfab)
"""


# Everything that depends on where it is installed.
UNITS = ("fabricd.service", "fabricd-node.service", "fabricd-pmix.service", "fabricd-slurm@.service")
STARTS = dict(zip(UNITS, ("fabricd", "fabricd", "fabricd-pmix", "fabricctl")))


def check(argv, **options):
    done = lab.run(argv, **{"timeout": 240, **options})
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def install(prefix, build=lab.BUILD, **env):
    """What it says."""
    return check(["cmake", "--install", build, "--prefix", prefix], env=dict(os.environ, **env))


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def version():
    return re.search(r'PMIXFAB_VERSION +"(.*)"', read(lab.ROOT, "libpmixfab", "pmixfab.h")).group(1)


def find(prefix, name):
    for folder, _, files in os.walk(prefix):
        if name in files:
            return os.path.join(folder, name)
    raise AssertionError(f"{name} is not installed below {prefix}")


def program(prefix, name):
    return glob.glob(os.path.join(glob.escape(prefix), "*bin", name))[0]


def consumer():
    """A folder with the source of a program that links the library."""
    folder = lab.tmpdir()
    for name, text in (("consumer.c", CONSUMER), ("CMakeLists.txt", CMAKELISTS)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    return folder


def verify_units(folder):
    """What systemd says of the units in a folder, beside manual pages that are not where man looks."""
    lab.require("systemd-analyze")
    return check(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                  *(os.path.join(folder, unit) for unit in UNITS)])


class Namespace:
    """Commands that see /usr/local empty, and changes of /etc and /var/lib that nobody else sees."""

    SETUP = ("set -e; mount -t tmpfs t {0}; mkdir {0}/up {0}/work; "
             "mount -t overlay o -o lowerdir=/etc,upperdir={0}/up,workdir={0}/work /etc; "
             "mount -t tmpfs t /usr/local; mount -t tmpfs t /var/lib; ")

    def __init__(self):
        self.setup = self.SETUP.format(lab.tmpdir())
        if self.run("true").returncode != 0:
            raise unittest.SkipTest("this kernel refuses a mount namespace with an overlay")

    def run(self, script):
        return lab.run(["unshare", "--mount", "bash", "-c", self.setup + script])


class Installed(unittest.TestCase):
    """In a prefix with a space that is given at install time only; and moved from there."""

    @classmethod
    def setUpClass(cls):
        cls.prefix = os.path.join(lab.tmpdir(), "a prefix")
        cls.said = install(cls.prefix)
        cls.moved = os.path.join(lab.tmpdir(), "moved on")
        shutil.copytree(cls.prefix, cls.moved, symlinks=True)
        cls.libdir = os.path.dirname(find(cls.moved, "libpmixfab.so"))

    def test_files_and_programs(self):
        for name in ("pmixfab.h", "libpmixfab.so", "libpmixfab.so.0", "pmixfab.pc", "pmixfabConfig.cmake",
                     "fabricd", "fabricd-pmix", "libpmix-guard.so.0", "fabricctl", "fabric-host", "fabric-host.1",
                     "fabricd.8", "fabricd-pmix.8", "fabricd.conf.5", "fabricctl.1", "pmixfab.3",
                     "README.md", "LICENSE", "NEWS", "operations.md", "91-fabricd.rules", *UNITS):
            find(self.prefix, name)
        for path in ("lib/sysusers.d", "lib/tmpfiles.d", "share/doc/fabricd/examples"):
            self.assertTrue(os.path.exists(os.path.join(self.prefix, path, "fabricd.conf")), path)
        headers = [name for _, _, files in os.walk(os.path.join(self.prefix, "include")) for name in files]
        self.assertEqual(headers, ["pmixfab.h"], "one public header")
        for folder, _, files in os.walk(self.prefix):
            for name in files:
                with open(os.path.join(folder, name), "rb") as file:
                    start = file.read(4)
                if start == b"\x7fELF":
                    self.assertNotIn(lab.BUILD, check(["readelf", "-d", os.path.join(folder, name)]), name)
        self.assertIn("Library soname: [libpmixfab.so.0]", check(["readelf", "-d", find(self.prefix, "libpmixfab.so")]))
        for prefix in (self.prefix, self.moved):
            for name in ("fabricd", "fabricctl"):
                self.assertIn(version(), check([program(prefix, name), "--version"]))
            # Its probes are modules beside it.
            probes = check([program(prefix, "fabricd"), "--available"])
            self.assertNotIn("not built in", "".join(
                line for line in probes.splitlines() if lab.probe_built(line.split()[0])))

    def test_the_page_of_each_function(self):
        """man(1) finds it by the name of the function, and apropos(1) in NAME."""
        folder = os.path.dirname(find(self.moved, "pmixfab.3"))
        functions = set(re.findall(r"\b(pmixfab_\w+)\(", re.sub(r"(?s)/\*.*?\*/", "", read(find(self.moved, "pmixfab.h")))))
        self.assertGreater(len(functions), 50)
        for function in functions:
            with self.subTest(function):
                path = os.path.join(folder, f"{function}.3")
                self.assertNotIn("/", os.readlink(path) if os.path.islink(path) else "")
                self.assertIn(function.removesuffix("_sized"), re.findall(r"(?m)^\.Nm (\w+)", read(path)))
        names = {name.removesuffix(".3") for name in os.listdir(folder)}
        self.assertEqual(names - functions, {"pmixfab", "pmixfab_open", "pmixfab_relay"})

    def test_units(self):
        folder = os.path.join(self.prefix, "lib/systemd/system")
        self.assertEqual(verify_units(folder), "")
        for unit in UNITS:
            command = re.search(r"^ExecStart=(\S+)", read(folder, unit), re.MULTILINE).group(1)
            self.assertEqual(command.replace("\\x20", " "), os.path.join(self.prefix, "bin" if "slurm" in unit else "sbin", STARTS[unit]))
            # systemd looks elsewhere: what is to be done is said, and right.
            linked = re.search(r"systemctl link (.*)", self.said).group(1)
            self.assertIn(os.path.join(folder, unit), shlex.split(linked))
        for unit in ("fabricd-slurm@.path", "fabricd-slurm@.timer"):
            self.assertIn(os.path.join(folder, unit), shlex.split(linked))

    def test_a_launcher_loads_the_component(self):
        lab.require_component()
        path = re.search(r'^ +PMIX_MCA_mca_base_component_path="(.*)"$', self.said, re.MULTILINE).group(1)
        env = test_pnet.environment("/nonexistent", PMIX_MCA_mca_base_component_path=path,
                                    PMIX_MCA_pnet_fabricd_probes="ethernet", PMIX_MCA_pnet_base_verbose="2")
        server = lab.Watch([lab.program("stock_inventory"), "node1"], env, talk=True)
        self.addCleanup(server.stop)
        server.wait("^ready$")
        inventory = os.path.join(lab.tmpdir(), "inventory")
        # The installed fabricd makes it.
        self.assertRegex(server.say(f"collect {inventory}", r"^collected .*$", 60).group(0),
                         r"^collected SUCCESS 1 [1-9]", server.output.text)

    def test_programs_that_link_the_library(self):
        # On a host with the development files of this library only.
        env = dict(os.environ, PKG_CONFIG_LIBDIR=os.path.join(self.libdir, "pkgconfig"), PKG_CONFIG_PATH="")
        self.assertEqual(check(["pkg-config", "--modversion", "pmixfab"], env=env).strip(), version())
        flags = shlex.split(check(["pkg-config", "--cflags", "--libs", "pmixfab"], env=env))
        source = consumer()
        binary = os.path.join(source, "by-pkg-config")
        check(["cc", "-Wall", "-Wextra", "-Werror", os.path.join(source, "consumer.c"), "-o", binary, *flags])
        self.assertEqual(check([binary], env=dict(os.environ, LD_LIBRARY_PATH=self.libdir)).strip(), version())
        build = os.path.join(source, "build")
        check(["cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.moved}"])
        check(["cmake", "--build", build])
        self.assertEqual(check([os.path.join(build, "consumer")]).strip(), version())


class Prefixes(unittest.TestCase):
    def test_other_prefixes(self):
        """Below DESTDIR, one that units hide the program in, and a relative one."""
        dest = lab.tmpdir()
        said = install("/usr", DESTDIR=dest)
        self.assertEqual(os.listdir(dest), ["usr"])
        for unit in UNITS[:3]:
            self.assertIn(f"\nExecStart=/usr/sbin/{STARTS[unit]} --", read(dest, "usr/lib/systemd/system", unit))
        check([os.path.join(dest, "usr/sbin/fabricd"), "--version"])
        for word in ("What is left", "ldconfig"):
            self.assertNotIn(word, said, "a package's scripts do the rest")
        install("/run/user/1", DESTDIR=dest)
        for unit in UNITS:
            self.assertIn("\nProtectHome=read-only\n", read(dest, "run/user/1/lib/systemd/system", unit))
        check(["cmake", "--install", lab.BUILD, "--prefix", "below"], cwd=dest)
        self.assertIn(f"\nExecStart={dest}/below/sbin/fabricd ", read(dest, "below/lib/systemd/system/fabricd.service"))

    def refused(self, done, folder):
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(len(re.findall(r"^ +fabricd: not installed: .*$", done.stderr, re.MULTILINE)), 1, done.stderr)
        self.assertIn(folder, done.stderr)
        self.assertNotIn("Installing", done.stdout)

    def test_not_writable(self):
        with self.subTest("a file is in the way"):
            file = os.path.join(lab.tmpdir(), "file")
            shutil.copy(__file__, file)
            self.refused(lab.run(["cmake", "--install", lab.BUILD, "--prefix", f"{file}/below"]), file)
        folder = lab.tmpdir()
        os.mkdir(os.path.join(folder, "lib"))
        if os.getuid() != 0:
            os.chmod(os.path.join(folder, "lib"), 0o555)
            self.refused(lab.run(["cmake", "--install", lab.BUILD, "--prefix", folder]), folder)
        else: # whom only a read-only file system stops; here in one folder of the prefix
            done = lab.run(["unshare", "--mount", "bash", "-c", f"mount -t tmpfs -o ro t {folder}/lib || exit 77; "
                            f"cmake --install {shlex.quote(lab.BUILD)} --prefix {folder}"])
            if done.returncode == 77:
                self.skipTest("this kernel refuses a mount namespace")
            self.refused(done, f"{folder}/lib")
        self.assertEqual([files for _, _, files in os.walk(folder) if files], [])

    def test_usr_local(self):
        """As root to the default prefix: what is said then, done as it is said, is all that is needed."""
        if os.getuid() != 0:
            self.skipTest("only root installs there")
        lab.require("systemd-sysusers", "systemd-tmpfiles")
        source, build = consumer(), shlex.quote(lab.BUILD)
        with open(os.path.join(source, "id"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho 1000\n")
        os.chmod(os.path.join(source, "id"), 0o755)
        done = Namespace().run(
            f"cmake --install {build} --prefix /usr/local >{source}/said; "
            f"cc {source}/consumer.c -o {source}/consumer $(pkg-config --cflags --libs pmixfab); {source}/consumer; "
            f"eval $(sed -n 's/^  \\(systemd-sysusers.*\\) && systemctl daemon-reload$/\\1/p' {source}/said); "
            "stat -c '%U:%G %a' /var/lib/fabricd; id -Gn fabricd; getent passwd fabricd | cut -d: -f6; "
            "fabricd --check-config --config /usr/local/share/doc/fabricd/examples/fabricd.conf; "
            f"PATH={source}:$PATH cmake --install {build} --prefix /usr/local >{source}/said-to-others")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:4], [version(), "fabricd:fabricd 755", "fabricd rdma", "/var/lib/fabricd"])
        said = read(source, "said")
        self.assertIn("ldconfig was run", said)
        self.assertNotIn("systemctl link", said, "systemd looks there by itself")
        self.assertIn("\n  ldconfig\n", read(source, "said-to-others"))


class ExampleConfiguration(unittest.TestCase):
    """system/fabricd.conf against the table of settings in fabricd/config."""

    # What an example names and a machine need not have.
    THERE = {"map": os.devnull, "above": os.devnull, "user": "root", "hook": "/bin/true", "admins": "root", "file": "/tmp/fabricd.prom"}

    def setUp(self):
        source = "".join(read(path) for path in sorted(glob.glob(f"{lab.ROOT}/fabricd/config/*.c")))
        choices = {name: re.findall('"(.*?)"', values)
                   for name, values in re.findall(r"choices_(\w+)\[\] = \{(.*?)\}", source)}
        self.table = {}
        for section, name, kind, more in re.findall(
                r'^ +\{"([a-z.]+)", "(\w+)", ([A-Z]+), (?:LIVE|FIXED), AT\(\w+\)([^}]*)\},', source, re.MULTILINE):
            number = re.search(r"\.initial = (\d+)", more)
            text = re.search(r'\.text = "(.*?)"', more)
            choice = re.search(r"\.choices = choices_(\w+)", more)
            chosen = re.search(r"\.initial = \w+_([A-Z]+)\b", more)  # an enum's constant ends with the word
            default = {"TEXT": text and text.group(1), "NUMBER": number.group(1) if number else "0",
                       "BOOLEAN": "yes" if ".initial = true" in more else "no",
                       "CHOICE": choice and (chosen.group(1).lower() if chosen else choices[choice.group(1)][0])}.get(kind)
            self.table[section, name] = {"interval": "60", "log": "info"}.get(name, default)
        self.assertGreater(len(self.table), 30)
        self.example = {}
        section = None
        for line in read(lab.ROOT, "system", "fabricd.conf").splitlines():
            if line.startswith("["):
                section = line[1:-1]
            elif re.match(r"#[\w.]+ = ", line):
                name, value = line[1:].split(" = ", 1)
                self.example[section, name] = value
            else:
                self.assertRegex(line, "^$|^# ", "either text or a setting")

    def accepted(self, leave_out, **values):
        sections = {}
        for (section, name), value in self.example.items():
            if name not in leave_out:
                sections.setdefault(section, {})[name] = {**self.THERE, **values}.get(name, value)
        daemon = lab.Fabricd(start=False)
        daemon.configure(sections)
        done = daemon.run_once("--check-config", "--rundir", daemon.rundir, "--store", daemon.store)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_setting_with_its_default_is_accepted(self):
        own_names = ("ethernet", "sweep.env", "endpoints.pools", "exports.files", "exports.commands")
        settings = {key: value for key, value in self.example.items() if key[0] not in own_names}
        self.assertEqual(sorted(settings), sorted(self.table))
        for key, default in self.table.items():
            if default is not None:
                self.assertEqual(settings[key], default, key)
        self.accepted(("scheduler", "listen"))
        self.accepted(("listen",), role="node", probe="hwloc")


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = os.path.join(lab.BUILD, "system")
        cls.ctl = check([lab.program("fabricctl"), "--help"])
        cls.commands = re.findall(r"^  (\w+) ", cls.ctl.split("Options:")[0], re.MULTILINE)

    def bash(self, program, *words):
        path = os.path.join(self.folder, program + ".bash")
        script = (f". {shlex.quote(path)}; COMP_WORDS=({' '.join(map(shlex.quote, (program, *words)))}); "
                  f'COMP_CWORD={len(words)}; _{program}; printf "%s\\n" "${{COMPREPLY[@]}}"')
        return check(["bash", "-euc", script]).split()

    def test_bash_knows_all_commands_and_options(self):
        self.assertIn("refresh", self.commands)
        self.assertCountEqual(self.bash("fabricctl", ""), self.commands + re.findall(
            r"^ +(?:-., )?(--[a-z-]+)", self.ctl, re.MULTILINE))
        for command in self.commands:
            own = re.findall(r"^ +(?:-., )? *(--[a-z-]+)", check([lab.program("fabricctl"), command, "--help"]),
                             re.MULTILINE)
            self.assertCountEqual(self.bash("fabricctl", command, "--"), own, command)
        self.assertEqual(self.bash("fabricctl", "ref"), ["refresh"])
        self.assertEqual(self.bash("fabricctl", "--plane", "ib0", "refresh", "--acc"), ["--accept-partial"])
        self.assertEqual(self.bash("fabricd", "--che"), ["--check-config"])
        self.assertEqual(self.bash("fabricd", "-"), re.findall(
            r"^ +(?:-., )? *(--[a-z-]+)", check([lab.program("fabricd"), "--help"]), re.MULTILINE))

    def test_zsh(self):
        lab.require("zsh")
        folder = lab.tmpdir()
        for program in ("fabricctl", "fabricd"):
            shutil.copy(os.path.join(self.folder, program + ".zsh"), os.path.join(folder, "_" + program))
        # A shell on a terminal of its own, which is asked by a tab.
        script = f"""zmodload zsh/zpty; zpty shell zsh -f -i
            ask() {{ zpty -w shell "$1"; zpty -r shell line "*$2*" && print -r -- "$line" }}
            ask 'fpath=({folder} $fpath); autoload -U compinit; compinit -u -D; PS1=; print rea''dy' ready
            zpty -w -n shell $'fabricctl ref\t'; zpty -r shell line '*refresh*'; print -r -- "$line"
            zpty -w -n shell $'--acc\t'; zpty -r shell line '*--accept-partial*'; print -r -- "$line"
            zpty -w -n shell $'\C-ufabricd --che\t'; zpty -r shell line '*--check-config*'; print -r -- "$line"
            zpty -d shell"""
        said = check(["zsh", "-fc", script])
        for word in ("refresh", "--accept-partial", "--check-config"):
            self.assertIn(word, said)


class Tarball(unittest.TestCase):
    def test_builds_without_git(self):
        if lab.find_command("git") is None or lab.run(["git", "-C", lab.ROOT, "rev-parse"]).returncode != 0:
            self.skipTest("a tarball is made from a git repository")
        folder = lab.tmpdir()
        check([os.path.join(lab.ROOT, "dev"), "dist", folder])
        name = f"fabricd-{version()}"
        self.assertEqual(os.listdir(folder), [name + ".tar.gz"])
        check(["tar", "-xzf", os.path.join(folder, name + ".tar.gz"), "-C", folder])
        git = os.path.join(folder, "bin", "git")
        os.mkdir(os.path.dirname(git))
        with open(git, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho no git >&2\nexit 1\n")
        os.chmod(git, 0o755)
        env = dict(os.environ, PATH=os.path.dirname(git) + ":" + os.environ["PATH"])
        build, prefix = os.path.join(folder, "build"), os.path.join(folder, "prefix")
        check(["cmake", "-S", os.path.join(folder, name), "-B", build, "-G", "Ninja", "-DBUILD_TESTING=OFF",
               "-DCMAKE_BUILD_TYPE=Debug"], env=env)
        if not lab.ALL:  # every file is there that a build is made of
            inputs = check(["ninja", "-C", build, "-t", "inputs", "all"]).splitlines()
            self.assertGreater(len([path for path in inputs if path.startswith(folder) and path.endswith(".c")]), 300)
            self.assertEqual([path for path in inputs if path.startswith(os.path.join(folder, name)) and not os.path.exists(path)], [])
            return
        check(["cmake", "--build", build, "-j", "2"], env=env, timeout=900)  # all of it, beside other tests
        install(prefix, build)
        self.assertIn(version(), check([os.path.join(prefix, "bin", "fabricctl"), "--version"]))
        # Warnings are errors where ./dev builds, and only there.
        self.assertNotIn("-Werror", read(build, "compile_commands.json"))
        self.assertIn("-Werror", read(lab.BUILD, "compile_commands.json"))


if __name__ == "__main__":
    unittest.main()
