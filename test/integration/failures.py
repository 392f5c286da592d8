"""failures - collect the evidence of a failed test.

    failures.story(process)         # exit status or signal, and the last lines of its log
    failures.evidence(hung=True)    # of all processes; hung: with backtraces of living ones
    failures.seed("walk")           # a seed that the evidence names
"""
import contextlib
import glob
import os
import random
import re
import shutil
import signal
import subprocess

import processes

STACK_S, STACKS = 20, 8  # seconds for one gdb, which takes about two; backtraces of living processes
_seeds = {}
more = []  # functions that return further evidence, or ""


def seed(name, default=None):
    """Return the seed of a random test: FABRICD_SEED, else `default`, else a new one. The evidence of a failure has it."""
    chosen = os.environ.get("FABRICD_SEED", default)
    _seeds[name] = int(chosen) if chosen is not None else random.SystemRandom().randrange(1 << 32)
    return _seeds[name]


def forget(since):
    """At the end of a test: drop its seeds, and the ended processes that were started after `since`."""
    _seeds.clear()
    for process in [process for process in processes.commands if process.number > since]:
        processes.commands.remove(process)


def outcome(process):
    """Return the exit status or signal of a process as text, or "is alive"."""
    if process.poll() is None and processes.ending(process.pid):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(processes.HUNG)
    code = process.poll()
    if code is None:
        return "is alive"
    if code >= 0:
        return f"ended with status {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def _end_of(path):
    """Return the last lines of a file of any length."""
    try:
        with open(path, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - 65536, 0))
            return processes.tail(file.read().decode("utf-8", "replace"))
    except OSError as error:
        return f"{path}: {error.strerror}\n"


def said(process):
    """Return the last lines of the output and logs of a process; 10 lines for a command with status 0."""
    if isinstance(process.output, str):
        text = processes.tail(process.output, 10 if process.returncode == 0 else processes.LINES)
    else:
        text = processes.tail(process.output.text) if process.output else ""
    return text + "".join(_end_of(path) for path in process.logs)


def title(process):
    argv = [process.args] if isinstance(process.args, str) else process.args
    return f"process {process.pid} ({' '.join(map(str, argv))[:300]})"


def story(process):
    """Return the outcome of a process and the last lines of its log."""
    return f"{title(process)} {outcome(process)}\n{said(process)}".rstrip("\n")


# ---- what /proc says -----------------------------------------------------------------------------------


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        return f"({error.strerror})"


def children(pid):
    """Return the descendants of a process."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            for child in map(int, file.read().split()):
                found += [child, *children(child)]
    return found


def command_of(pid):
    line = _read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()[:300]
    return line or _read(f"/proc/{pid}/comm").strip()  # without a command line between fork and exec


def of_proc(pid):
    """Return status, wchan, stack and descriptors of a process from /proc."""
    folder = f"/proc/{pid}"
    shown = [f"{folder}: {command_of(pid)}"]
    shown += [f"{name}: {_read(f'{folder}/{name}').strip()}" for name in ("status", "wchan", "stack")]
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(folder + "/fd"), key=int):
            with contextlib.suppress(OSError):
                shown.append(f"fd {name}: {os.readlink(f'{folder}/fd/{name}')}")
    return "\n".join(shown)


# ---- stacks --------------------------------------------------------------------------------------------


def _gdb(*arguments):
    if not shutil.which("gdb"):
        return "(gdb is not installed)"
    try:
        done = subprocess.run(["gdb", "-nx", "-batch", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=STACK_S * processes.SLOW, check=False)
    except subprocess.TimeoutExpired:
        return "(gdb did not end)"
    return done.stdout.decode("utf-8", "replace")


BACKTRACE = ("-ex", "set pagination off", "-ex", "thread apply all bt 40")


def stack(pid):
    """Return a backtrace of all threads of a living process."""
    return f"stack of {pid}:\n" + _gdb("-p", str(pid), *BACKTRACE)


def cores(directories):
    """Return the paths of core files in these folders, or in the folder of core_pattern where it names one."""
    pattern = _read("/proc/sys/kernel/core_pattern").strip()
    if pattern.startswith("|"):
        return []
    name = re.sub(r"%.", "*", os.path.basename(pattern)).replace("%", "*")
    absolute = os.path.dirname(pattern)
    found = set()
    for directory in [absolute] if absolute.startswith("/") else directories:
        for path in glob.glob(os.path.join(glob.escape(directory), name)) + glob.glob(os.path.join(glob.escape(directory), name + ".*")):
            found.add(os.path.realpath(path))
    return sorted(path for path in found if os.path.isfile(path))


def of_core(path):
    """Return the backtrace of a core file. Its auxiliary vector has the path of the program; gdb shows the arguments cut."""
    program = re.search(r'AT_EXECFN.*"(.*)"', _gdb("-c", path, "-ex", "info auxv"))
    return f"{path}:\n" + _gdb(*([program.group(1)] if program else []), "-c", path, *BACKTRACE)


# ---- all of it -----------------------------------------------------------------------------------------


def evidence(hung=False):
    """Return all evidence of a test as text. hung: add backtraces of living processes."""
    running, done = processes.started(), list(processes.commands)
    parts = [f"seed of {name}: {value} (FABRICD_SEED={value} repeats it)" for name, value in _seeds.items()]
    parts += filter(None, (one() for one in more))
    for process in done + running:
        parts.append(story(process))
    living = [pid for process in running if process.poll() is None for pid in (process.pid, *children(process.pid))]
    for process in running:
        if process.more is not None:
            with contextlib.suppress(Exception):  # the failure of the test is the news
                parts.append(process.more())
    parts += map(of_proc, living)
    if hung:
        parts += [stack(pid) for pid in list(filter(_ours, living))[:STACKS]]
    folders = {process.folder for process in done + running} | set(processes.folders())
    parts += [of_core(path) for path in cores(folders)]
    if os.environ.get("FABRICD_KEEP"):
        parts += [f"kept: {path}" for path in processes.folders()]
    return "\n\n".join(parts)


def _ours(pid):
    """Return whether the program is not one of the system's (a shell, sleep, munged)."""
    with contextlib.suppress(OSError):
        return not os.readlink(f"/proc/{pid}/exe").startswith(("/usr/bin/", "/bin/"))
    return False


def logs():
    """Return the paths of the log files of a test's processes."""
    return sorted({path for process in [*processes.commands, *processes.started()] for path in process.logs if os.path.isfile(path)})


def write(name, text):
    """Write the evidence and whole logs of a test to a folder of its own below FABRICD_FAILURES, if that is set."""
    place = os.environ.get("FABRICD_FAILURES")
    if not place:
        return
    folder = os.path.join(place, re.sub(r"[^\w.()-]+", "_", name)[:200])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "evidence.txt"), "w", encoding="utf-8") as file:
        file.write(text + "\n")
    for number, path in enumerate(logs(), 1):
        with contextlib.suppress(OSError):
            shutil.copyfile(path, os.path.join(folder, f"{number}-{os.path.basename(path)}"))
