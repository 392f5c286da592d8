#!/usr/bin/env python3
"""run - show the faults of docs/upstream.md against a PMIx library, or write what was found into its tables.

    run.py [--pmix PREFIX] [--json FILE] [--jobs N] [FAULT...]     a line for each fault: NAME there|fixed|n/a WHY
    run.py --table FILE...                                          docs/upstream.md, of the files that --json wrote
    run.py --list

The status is 1 if a check did not come to its question ("error").
"""
import argparse
import concurrent.futures
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import play  # noqa: E402
import connections  # noqa: E402,F401
import messages  # noqa: E402,F401
import tool_requests  # noqa: E402,F401
import fabric_calls  # noqa: E402,F401
import tables  # noqa: E402

# Faults of docs/upstream.md without a check of their own, and why.
UNSHOWN = {
    "F22": "fabricd's former role node hung with 5.0.8 and 5.0.9; the same calls in a program of their own (PMIx_tool_init, "
           "PMIx_server_init, PMIx_tool_attach_to_server, PMIx_tool_finalize) end with 4.2.2, 4.2.9, 5.0.1 and 5.0.9",
}


class Library:
    """A PMIx library, and the programs of this folder compiled for it."""

    def __init__(self, prefix, to):
        self.env = dict(os.environ)
        if prefix:
            found = [folder for folder, _, files in os.walk(prefix) if "pmix.pc" in files and os.path.basename(folder) == "pkgconfig"]
            if not found:
                raise SystemExit(f"run.py: {prefix}: there is no pmix.pc")
            self.env["PKG_CONFIG_PATH"] = found[0]
        self.to = to
        said = self.config("--modversion")
        self.version = re.match(r"[.\d]+" if said < "6" else r"[.\d]+(rc\d+)?", said).group()  # releases before 6 may say rc, too
        self.libdir = self.config("--variable=libdir")
        # Debian's prefix has no programs.
        self.bin = [path for path in (os.path.join(self.config("--variable=prefix"), "bin"), *([] if prefix else ["/usr/bin"]))
                    if os.path.isdir(path)]
        self.compile()

    def config(self, *what):
        done = subprocess.run(["pkg-config", *what, "pmix"], env=self.env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"run.py: pkg-config: {done.stderr.strip()}")
        return done.stdout.strip()

    def compile(self):
        headers = os.path.join(self.to, "headers")
        os.makedirs(headers)
        include = next(word[2:] for word in shlex.split(self.config("--cflags")) + ["-I" + self.config("--variable=includedir")]
                       if os.path.exists(os.path.join(word[2:], "pmix_server.h")))
        os.symlink(include, os.path.join(headers, "include"))  # private headers include "include/pmix_server.h"
        folders = [include, os.path.join(include, "pmix"), headers]
        flags = ["-std=gnu17", "-O1", "-g", "-Wall", "-Wextra", "-D_GNU_SOURCE", f"-I{ROOT}"]
        flags += [word for folder in folders for word in ("-isystem", folder)]
        link = [*shlex.split(self.config("--libs")), f"-Wl,-rpath,{self.libdir}", "-lpthread", "-ldl"]

        def compiled(name):
            shared = name.endswith(".so")
            command = ["cc", *flags, *(["-shared", "-fPIC"] if shared else []), os.path.join(HERE, name.removesuffix(".so") + ".c"), "-o",
                       os.path.join(self.to, name), *([] if shared else link)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0 or done.stderr:
                raise SystemExit(f"run.py: {name}: {done.stderr}")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(compiled, ("host", "tool", "watch.so", "component.so")))
        os.rename(os.path.join(self.to, "component.so"), os.path.join(self.to, "pmix_mca_pmdl_upstream.so"))

    def program(self, name):
        return os.path.join(self.to, name)

    def installed(self, name):
        """A program of the library's own; None: this installation has it not."""
        return shutil.which(name, path=":".join(self.bin))


def check(library, function, names):
    """Results by name."""
    try:
        with play.Scene(library, names[0]) as scene:
            found = function(scene)
            if scene.late:
                raise play.Late("no answer within the deadline")
    except Exception as error:  # pylint: disable=broad-except
        found = play.Result("error", f"{type(error).__name__}: {error}")
    return found if isinstance(found, dict) else dict.fromkeys(names, found)


def run(library, wanted, jobs, report=lambda name, result: None):
    """Results of the faults with these names, by name."""
    found, lock = {}, threading.Lock()
    checks = dict(play.FAULTS[name] for name in wanted)

    def one(item):
        results = check(library, *item)
        with lock:
            for name in item[1]:
                found[name] = results[name]
                report(name, results[name])
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, checks.items()))
    return found


def order(name):
    return tables.LETTERS.index(name[0]), int(name[1:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pmix", metavar="PREFIX")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--table", nargs="+", metavar="FILE")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("faults", nargs="*", metavar="FAULT")
    args = parser.parse_args()
    if args.table:
        tables.write(os.path.join(ROOT, "docs", "upstream.md"), args.table, play.FAULTS, UNSHOWN)
        return 0
    if args.list:
        for name in sorted(play.FAULTS.keys() | UNSHOWN.keys(), key=order):
            print(name, UNSHOWN.get(name) or f"{play.FAULTS[name][0].__module__}.py {play.FAULTS[name][0].__name__}()")
        return 0
    unknown = [name for name in args.faults if name not in play.FAULTS]
    if unknown:
        parser.error(f"no check of {', '.join(unknown)}")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="upstream-") as folder:
        os.chmod(folder, 0o755)  # some hosts are another user's
        library = Library(args.pmix, folder)
        print(f"PMIx {library.version}", flush=True)
        found = run(library, args.faults or sorted(play.FAULTS, key=order), args.jobs,
                    lambda name, result: print(f"{name:4}{result.answer:6} {result.why}", flush=True))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            faults = {name: list(found[name]) for name in sorted(found, key=order)}
            json.dump({"version": library.version, "faults": faults}, file, indent=1)
            file.write("\n")
    return 1 if any(result.answer == "error" for result in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
