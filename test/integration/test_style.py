"""Rules of the house that a compiler does not hold: who may include whom, what leaves the library, how it looks."""
import concurrent.futures
import glob
import json
import os
import re
import shlex
import subprocess
import tempfile
import unittest

import lab
import rooms

# Other people's headers that only some folders may see.
ONLY_IN = {
    r"pmix": ["libpmixfab/pmix", "libpmixfab/mca", "guard", "fabricd", "fabric-host", "fabricctl", "examples", "test"],
    r"pmix/src/|src/": ["libpmixfab/mca", "libpmixfab/pmix/relay", "guard", "test/unit/guard", "test/unit/mca", "test/upstream"],
    r"infiniband/": ["probes", "test"],
    r"hwloc|rdma/|uct/|ucs/": ["probes", "test"],
    r"munge\.h": ["fabricd", "guard", "test"],
    r"sqlite3\.h": ["fabricd", "fabric-host", "test"],
    r"event2/": ["fabricd", "fabric-host", "libpmixfab/mca", "guard", "test"],  # mca, guard: the PMIx library runs on libevent
    r"cmocka\.h": ["test"],
}

CODE = ["libpmixfab", "probes", "guard", "fabricd", "fabric-host", "fabricctl", "examples", "test"]
SKIPPED_FOLDERS = re.compile(r"^(build.*|\.git|__pycache__)$")

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]


def tree(*suffixes):
    """All source files (relative) with one of these endings."""
    found = []
    for folder, folders, files in os.walk(lab.ROOT):
        folders[:] = sorted(name for name in folders if not SKIPPED_FOLDERS.match(name) and os.path.join(folder, name) != lab.BUILD)
        found += [os.path.relpath(os.path.join(folder, name), lab.ROOT) for name in sorted(files)
                  if name.endswith(suffixes or "") and name != ".git"]  # as a worktree has it
    return found


def read(path):
    with open(os.path.join(lab.ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def code(*suffixes):
    return [path for path in tree(*suffixes) if path.split("/")[0] in CODE]


def side_by_side(work, things):
    """What a function that waits for a program returns for each of these."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, things))


INLINE = r"(?m)^static inline [^;{(]*?"


def header():
    """The public header without its comments."""
    return re.sub(r"/\*.*?\*/", "", read("libpmixfab/pmixfab.h"), flags=re.DOTALL)


def public(before=r"\b"):
    """The functions of the public header; INLINE: those that stand wholly in it."""
    return set(re.findall(before + r"(pmixfab_\w+)\(", header()))


def includes(path):
    """(line number, own or system, header)"""
    for number, line in enumerate(read(path).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


class Layers(unittest.TestCase):
    def test_rooms(self):
        """No room includes upward, and neither rooms nor files go round in a circle: rooms.py has the plan."""
        self.assertEqual(rooms.broken(), [], "python3 test/integration/rooms.py shows them, too")

    @unittest.skipIf(lab.SANITIZE, "sanitizers add variables")
    def test_state_is_in_handles(self):
        """Two schedulers can be in one process: rooms.py names the files whose variables are the process's."""
        self.assertEqual(rooms.state_of_the_process(), [])

    def test_what_is_state(self):
        """The check behind it finds variables, and neither constants nor functions."""
        source = """
            static int zero; static int one = 1; int shared; static int *pointer = &one; static _Thread_local int own;
            static const int fixed[4] = {1}; static const char *const texts[2] = {"a", "b"}; int *all(int which);
            int *all(int which) { static int inside; return which ? &zero + *pointer + fixed[which & 3] +
            *texts[which & 1] + ++inside + ++shared + ++own + ++one : (pointer = &inside); }"""
        lab.require("cc")
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "state.o")
            subprocess.run(["cc", "-O2", "-fPIC", "-w", "-c", "-x", "c", "-o", file, "-"], input=source, text=True,
                           check=True)
            out = subprocess.run(["nm", "--format=sysv", file], capture_output=True, text=True, check=True).stdout
        self.assertEqual(rooms.state_of(out), ["inside", "one", "own", "pointer", "shared", "zero"])

    def test_what_the_seam_is_for(self):
        """The check behind test_rooms finds calls in code, and none in comments, strings and longer names."""
        for call in ("clock_gettime(CLOCK_MONOTONIC, &now);", "x = time(NULL);", "evtimer_new(base, fn, NULL);",
                     "event_new (base, -1, 0, fn, NULL);", "event_add(event, NULL);", "nanosleep(&left, NULL);",
                     "event_base_once(base, -1, EV_TIMEOUT, fn, NULL, NULL);", "clock_nanosleep(0, 0, &left, NULL);",
                     "usleep(1);", "pthread_create(&thread, NULL, fn, NULL);", "pid_t pid = fork();",
                     "posix_spawn(&pid, program, NULL, NULL, argv, env);", "/* a */ fork(); /* b */",
                     'log("\\"", fork(), "");', "c = '\"'; fork(); c = '\"';"):
            name = rooms.OF_THE_SEAM.search(call).group(1)
            self.assertEqual(rooms.calls_of_the_seam(f"a;\n/*\n*/ {call}\n"), [(3, name)], call)
        for other in ("/* fork() */", "// usleep(1)", 'log("no time(s), fork()");', "clock_now(CLOCK_REALTIME);",
                      "struct timespec time = {0};", "run_time(1); forked(); my_fork();", '"a\\" fork(" ;'):
            self.assertEqual(rooms.calls_of_the_seam(other), [], other)

    def test_public_header_includes_the_c_library_only(self):
        headers = [header for _, _, header in includes("libpmixfab/pmixfab.h")]
        self.assertEqual(headers, ["stddef.h", "stdint.h"])

    def test_other_peoples_headers(self):
        wrong = []
        for path in code(".c", ".h"):
            for number, own, header in includes(path):
                if own:
                    continue
                for pattern, folders in ONLY_IN.items():
                    if re.match(pattern, header) and not any(path.startswith(name + "/") for name in folders):
                        wrong.append(f"{path}:{number}: <{header}> is for {', '.join(folders)}")
        self.assertEqual(wrong, [])

    def test_own_headers_have_quotes(self):
        wrong = [f"{path}:{number}: <{header}>" for path in code(".c", ".h")
                 for number, own, header in includes(path)
                 if not own and re.match(r"(topo|pmix|mca|probes|fabricd|fabricctl)/|pmixfab\.h", header)]
        self.assertEqual(wrong, [])


class Headers(unittest.TestCase):
    @staticmethod
    def folders():
        """-I options for other people's headers, as the build uses them."""
        with open(os.path.join(lab.BUILD, "compile_commands.json"), encoding="utf-8") as file:
            commands = [shlex.split(entry["command"]) for entry in json.load(file)]
        found = {}
        for words in commands:
            for word, following in zip(words, words[1:] + [""]):
                if word.startswith("-I"):
                    found[word] = None
                elif word == "-isystem":
                    found["-I" + following] = None
        return list(found)

    def compile(self, language, header, *flags):
        compiler = {"c": "cc", "c++": "c++"}[language]
        lab.require(compiler)
        done = subprocess.run(
            [compiler, *WARNINGS, *flags, f"-I{lab.ROOT}", f"-I{lab.ROOT}/libpmixfab", "-x", language, "-"],
            input=f'#include "{header}"\nint main(void) {{ return 0; }}\n', capture_output=True, text=True,
            check=False)
        return done.stderr

    def test_public_header_alone(self):
        for language, standard in (("c", "c99"), ("c", "c17"), ("c++", "c++11"), ("c++", "c++20")):
            with self.subTest(standard):
                self.assertEqual(self.compile(language, "pmixfab.h", f"-std={standard}", "-pedantic"), "")

    def test_every_header_alone(self):
        headers, flags = code(".h"), ["-std=gnu17", "-D_GNU_SOURCE", *self.folders()]
        for path, said in zip(headers, side_by_side(lambda path: self.compile("c", path, *flags), headers)):
            with self.subTest(path):
                self.assertEqual(said, "")

    def test_every_header_has_a_guard_and_says_what_it_is(self):
        for path in code(".h"):
            with self.subTest(path):
                text = read(path)
                self.assertTrue(text.startswith("/*"), "opens with a comment")
                self.assertRegex(text, r"#ifndef (\w+)\n#define \1\n")


class Library(unittest.TestCase):
    def setUp(self):
        self.library = os.path.join(lab.BUILD, "lib", "libpmixfab.so")

    def test_header_map_and_library_name_the_same(self):
        out = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", self.library], capture_output=True,
                             text=True, check=True).stdout
        symbols = [line.split()[:2] for line in out.splitlines()]
        exported = [name.replace("@@", "@") for name, kind in symbols if kind != "A"]
        listed = [f"{name}@{version}" for version, names in re.findall(
            r"^([\w.]+) \{\nglobal:\n((?: {4}\w+;\n)+)", read("libpmixfab/pmixfab.map"), re.MULTILINE)
                  for name in re.findall(r"\w+", names)]
        self.assertEqual(sorted(exported), sorted(listed))
        self.assertEqual(sorted(name.split("@")[0] for name in exported), sorted(public() - public(INLINE)))
        # The newest version of the map is that of the header.
        newest = max(tuple(map(int, name.split("_")[-1].split("."))) for name in listed)
        version = re.search(r'PMIXFAB_VERSION +"(\d+)\.(\d+)', read("libpmixfab/pmixfab.h")).groups()
        self.assertEqual(newest, tuple(map(int, version)))

    def test_what_fills_a_struct_is_told_its_size(self):
        filling = set(re.findall(r"\b(pmixfab_\w+)\([^;{]*struct pmixfab_\w+ \*out\b", header()))
        self.assertGreater(len(filling), 5)
        self.assertEqual({name.removesuffix("_sized") for name in filling}, public(INLINE))

    def test_it_never_prints_and_never_exits(self):
        out = subprocess.run(["nm", "-D", "--undefined-only", self.library], capture_output=True, text=True,
                             check=True).stdout
        used = {name.split("@")[0] for name in out.split()}
        for name in ("printf", "__printf_chk", "puts", "putchar", "perror", "exit", "_exit", "abort", "stdout",
                     "stderr"):
            self.assertNotIn(name, used)


class Archives(unittest.TestCase):
    def test_a_function_has_a_name_of_its_own(self):
        """Of two functions with one name the linker takes whichever it comes across first, and says nothing."""
        of = {}
        archives = glob.glob(os.path.join(lab.BUILD, "**", "libfab*.a"), recursive=True)
        self.assertGreater(len(archives), 4)
        for path in archives:
            out = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", path], capture_output=True,
                                 text=True, check=True).stdout
            for fields in (line.split() for line in out.splitlines()):
                if len(fields) >= 2 and fields[1] in "TDBR":
                    of.setdefault(fields[0], set()).add(os.path.basename(path))
        self.assertEqual({name: sorted(where) for name, where in of.items() if len(where) > 1}, {})


class Names(unittest.TestCase):
    def test_a_static_function_has_a_name_of_its_own(self):
        """A debugger, a backtrace and a reader tell them apart. Inline functions of a header stand there once."""
        of = {}
        for path in tree(".c"):
            if path.split("/")[0] not in rooms.TREES:
                continue
            for name in set(re.findall(r"^static (?:[\w*]+[ *]+)+(\w+)\([^;]*?\)\n\{", read(path), re.MULTILINE)):
                of.setdefault(name, []).append(path)
        self.assertEqual({name: paths for name, paths in of.items() if len(paths) > 1}, {})


class Modules(unittest.TestCase):
    @unittest.skipIf(lab.SANITIZE, "sanitizers add names")
    def test_only_the_probe_leaves_them(self):
        modules = glob.glob(os.path.join(lab.BUILD, "lib*", "**", "fabricd", "probe_*.so"), recursive=True)
        for path in modules:
            with self.subTest(os.path.basename(path)):
                out = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", path], capture_output=True,
                                     text=True, check=True).stdout
                self.assertEqual([line.split()[0] for line in out.splitlines()], ["fabricd_probe"])
        if not modules:
            self.skipTest("no local probe is built")


class Look(unittest.TestCase):
    def test_clang_format(self):
        lab.require("clang-format")
        version = lab.run(["clang-format", "--version"]).stdout
        if " version 14." not in version:
            self.skipTest(f"the sources have the format of clang-format 14, Debian 12's; this is {version.strip()}")
        files = code(".c", ".h")

        def run(some):
            return subprocess.run(["clang-format", "--dry-run", "-Werror", *some], cwd=lab.ROOT, capture_output=True,
                                  text=True, check=False)
        for done in side_by_side(run, [files[first::8] for first in range(8)]):
            self.assertEqual(done.returncode, 0, done.stderr[-3000:] + "\n./dev format repairs that")

    def test_text(self):
        wrong = []
        for path in code(".c", ".h", ".py", ".sql") + tree(".md", ".txt", ".cmake", "dev"):
            if path.startswith(("test/data/", "test/fuzz/corpus/")):
                continue
            text = read(path)
            if text and not text.endswith("\n"):
                wrong.append(f"{path}: no newline at its end")
            for number, line in enumerate(text.splitlines(), 1):
                if line != line.rstrip() or ("\t" in line and not path.endswith(".sql")):
                    wrong.append(f"{path}:{number}: tab or trailing space")
        self.assertEqual(wrong, [])

    def test_no_paths_of_somebodys_machine(self):
        place = re.compile(r"(?<![\w.*}])/(?:home|work|root|Users)/\w|(?<![\w.])\.\./shared\b")
        wrong = []
        for path in tree(""):
            for number, line in enumerate(read(path).splitlines(), 1):
                if place.search(line):
                    wrong.append(f"{path}:{number}: {line.strip()[:100]}")
        self.assertEqual(wrong, [])

    def test_links_in_the_documentation(self):
        wrong = []
        for path in tree(".md"):
            for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", read(path)):
                if "://" not in target and not os.path.exists(
                        os.path.join(lab.ROOT, os.path.dirname(path), target)):
                    wrong.append(f"{path}: {target}")
        self.assertEqual(wrong, [])

    def test_shell_scripts_parse(self):
        for path in ["dev", ".ci/run"] + tree(".sh"):
            with self.subTest(path):
                self.assertTrue(os.access(os.path.join(lab.ROOT, path), os.X_OK), "executable")
                subprocess.run(["bash", "-n", path], cwd=lab.ROOT, check=True)


class Words(unittest.TestCase):
    """Sentences have a subject: none begins with What or Who unless it asks."""
    HEADLESS = re.compile(r"(?:^|(?<=[.!?:] ))(?:What|Who|Whoever|Whose|Whatever|That which|Those who)\b[^.?]*(\?)?")

    def check(self, parts):
        return [f"{path}: {found.group()[:80]}" for path, text in parts for found in self.HEADLESS.finditer(text) if not found.group(1)]

    def test_comments(self):
        parts = [(path, " ".join(re.sub(r"(?m)^\s*\*", "", comment).split()).strip("* "))
                 for path in code(".c", ".h", ".sql") if not path.startswith(("test/", "examples/"))
                 for comment in re.findall(r"(?s)/\*(.*?)\*/", read(path))]
        self.assertGreater(len(parts), 1000)
        self.assertEqual(self.check(parts), [])

    def test_documents(self):
        parts = [(path, " ".join(text.split())) for path in tree(".md") if path not in ("docs/conformance.md", "docs/upstream.md")
                 for text in re.split(r"\n\s*\n|\n- |\n\|", re.sub(r"(?ms)^```.*?^```", "", read(path)))
                 if not text.startswith(("    ", "#"))]
        pages = [path for path in tree() if re.search(r"^docs/.*\.[1-8]$", path)]
        parts += [(path, line) for path in pages for line in read(path).splitlines() if not line.startswith(".") and not line.endswith(":")]
        self.assertGreater(len(parts), 1000)
        self.assertEqual(self.check(parts), [])


class ManPages(unittest.TestCase):
    def test_lint(self):
        lab.require("mandoc")
        pages = [path for path in tree() if re.search(r"^docs/.*\.[1-8]$", path)]
        self.assertNotEqual(pages, [])
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], cwd=lab.ROOT, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.stdout, "")

    # The pages of the library, by name.
    @staticmethod
    def library():
        return {os.path.basename(path)[:-2]: read(path) for path in tree(".3") if path.startswith("docs/")}

    @staticmethod
    def section(page, name):
        return re.search(rf"(?ms)^\.Sh {name}\n(.*?)(?=^\.Sh |\Z)", page).group(1)

    @staticmethod
    def literal(section):
        return re.search(r"(?ms)^\.Bd -literal\n(.*?)^\.Ed", section).group(1).replace("\\e", "\\")

    def compiles(self, source):
        flags = shlex.split(subprocess.run(["pkg-config", "--cflags", "pmix"], capture_output=True, text=True, check=True).stdout)
        done = subprocess.run(["cc", *WARNINGS, "-Wstrict-prototypes", *flags, f"-I{lab.ROOT}/libpmixfab", "-x", "c", "-"],
                              input=source, capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "", source)

    def test_every_public_function_is_described(self):
        # pmixfab_NAME_sized() is described with pmixfab_NAME().
        names = {name for name in public() if name.removesuffix("_sized") not in public(INLINE)} | public(INLINE)
        for section, place in (("SYNOPSIS", r"\b(pmixfab_\w+)\("), ("DESCRIPTION", r"\bFn (pmixfab_\w+)")):
            found = [name for page in self.library().values() for name in re.findall(place, self.section(page, section))]
            self.assertEqual(sorted(found), sorted(names), section)

    def test_every_error_is_described(self):
        page = self.section(self.library()["pmixfab"], "ERRORS")
        codes = re.findall(r"\b(PMIXFAB_ERR_\w+) = ", read("libpmixfab/pmixfab.h"))
        self.assertEqual(re.findall(r"\bPMIXFAB_ERR_[A-Z]+\b(?!\")", re.sub("(?m)^\\.Bl.*", "", page)), codes)

    def test_every_member_is_described(self):
        described = {}
        for page in self.library().values():
            for name, items in re.findall(r"(?ms)^\.It Vt (\w+)\n(.*?)(?=^\.It Vt|^\.El)", page):
                described[name] = sorted(" ".join(re.findall(r"(?m)^\.It (.*)", items)).split())
        members = {}
        for name, body in re.findall(r"(?ms)^struct (\w+) \{\n(.*?)^\};", header()):
            members[name] = sorted(set(re.findall(r"(\w+)(?:\[\w+\])*[,;]", body)) - {"reserved"})
        self.assertEqual(described, members)

    def test_prototypes(self):
        """The header must agree with SYNOPSIS."""
        for name, page in self.library().items():
            with self.subTest(name):
                self.compiles(self.literal(self.section(page, "SYNOPSIS")))

    def test_examples(self):
        """Each example is a program, or lines of a function for a snapshot."""
        for name, page in self.library().items():
            with self.subTest(name):
                example = self.literal(self.section(page, "EXAMPLES"))
                if "main(" not in example:
                    example = ("#include <poll.h>\n#include <pmix_server.h>\n#include <pmixfab.h>\n#include <stdio.h>\n"
                               "void example(const struct pmixfab *fab);\n"
                               f"void example(const struct pmixfab *fab)\n{{\n(void)fab;\n{example}}}\n")
                self.compiles(example)


if __name__ == "__main__":
    unittest.main()
