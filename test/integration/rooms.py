"""rooms.py - the rooms of the house, from the ground floor up, which arrows run between their files, and the seam.

An arrow runs from a file to each header that it includes, and from a source to each source whose functions or objects
it uses. `python3 test/integration/rooms.py` prints the rooms with their arrows and what breaks the rule.
"""
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("FABRICD_BUILD", os.path.join(ROOT, "build"))

# A room, and the rooms that it may include, all of them above it in this list. The public header is the ground.
# "TREE:" is the folder of the rooms that follow; a room of another tree is named by its whole path.
PLAN = """
libpmixfab:
    .           -
libpmixfab/topo:
    base        libpmixfab
    model       libpmixfab base
    join        libpmixfab base model
    snapshot    libpmixfab base model
    plane       libpmixfab base model join snapshot
    changes     libpmixfab base model join plane snapshot
libpmixfab:
    place       libpmixfab topo/base topo/snapshot
libpmixfab/pmix:
    answers     libpmixfab topo/base topo/model topo/snapshot
    rundir      libpmixfab topo/base topo/snapshot answers
    launch      libpmixfab topo/base topo/model topo/snapshot answers
    relay       libpmixfab topo/base answers rundir
    client      libpmixfab topo/base answers relay
libpmixfab/mca:
    library     libpmixfab pmix/answers
    job         libpmixfab topo/base topo/model pmix/launch library
    pnet        libpmixfab topo/base topo/model pmix/answers pmix/launch pmix/rundir library job
    pmdl        libpmixfab topo/base topo/model place pmix/answers pmix/launch pmix/rundir library job
probes:
    core        libpmixfab topo/base topo/model
    fabric      libpmixfab topo/base topo/model core
    ibnetdisc   libpmixfab topo/base topo/model core fabric
    capture     libpmixfab topo/base topo/model core fabric
    import      libpmixfab topo/base topo/model core capture
    hwloc       libpmixfab topo/base topo/model core
    verbs       libpmixfab topo/base topo/model core
    libfabric   libpmixfab topo/base topo/model core
    ucx         libpmixfab topo/base topo/model core
    ethernet    libpmixfab topo/base topo/model core
    lldp        libpmixfab topo/base topo/model core
    .           libpmixfab topo/base core capture import ibnetdisc
guard:
    .           libpmixfab topo/model
fabricd:
    base        libpmixfab topo/base
    config      libpmixfab topo/base topo/model topo/plane probes/core probes base
    store       libpmixfab topo/base topo/model topo/changes base
    serving     libpmixfab topo/base topo/model topo/snapshot base
    process     libpmixfab topo/base base config
    channel     libpmixfab topo/base topo/model base config serving
    control     libpmixfab topo/base topo/model base config serving
    endpoints   libpmixfab topo/base base config store
    jobs        libpmixfab topo/base topo/changes base config store serving process control
    server      libpmixfab topo/base topo/model topo/join topo/snapshot pmix/answers pmix/relay pmix/rundir guard base config serving
    pmix        libpmixfab topo/base base config process control
    sources     libpmixfab topo/base topo/model topo/join probes/core probes base config process store channel
    node        libpmixfab topo/base topo/model base config
                serving process control sources channel pmix
    engine      libpmixfab topo/base topo/model topo/join topo/plane topo/snapshot topo/changes probes/core probes
                base config store serving process control jobs sources channel pmix
    operations  libpmixfab topo/base topo/model topo/join topo/changes probes/core base config
                store serving control endpoints jobs channel pmix sources engine
    main        libpmixfab topo/base topo/model guard base config store process control
                jobs channel pmix sources node engine operations endpoints
fabricd-pmix:
    .           libpmixfab topo/base topo/snapshot pmix/answers pmix/relay guard
                fabricd/base fabricd/config fabricd/serving fabricd/process fabricd/pmix fabricd/server
fabric-host:
    data        libpmixfab topo/base pmix/relay fabricd/base
    job         pmix/relay guard fabricd/base fabricd/process fabricd/server
    .           libpmixfab topo/base pmix/answers pmix/relay guard fabricd/base fabricd/config fabricd/serving
                fabricd/process fabricd/server data job
fabricctl:
    core        libpmixfab topo/base
    show        libpmixfab topo/base topo/model topo/changes probes/core probes/capture core
    slurm       libpmixfab topo/base core
    export      libpmixfab topo/base topo/model core show slurm
    simulate    libpmixfab topo/base core export
    report      libpmixfab topo/base core show export
    service     libpmixfab topo/base core show
    run         libpmixfab topo/base core
    .           libpmixfab topo/base core show slurm export simulate report service run
"""
TREES = ("libpmixfab", "probes", "guard", "fabricd", "fabricd-pmix", "fabric-host", "fabricctl")
# The guard stands in for other people's functions: that such a one is used is no arrow to the guard.
STANDS_IN = re.compile(r"pmix_|PMIx_|munge_|accept$|bind$|close$|shutdown$")
# What the library exports: who is above it uses the public header, wherever the function stands.
PUBLIC, PUBLIC_HEADER = re.compile(r"pmixfab_"), "libpmixfab/pmixfab.h"

# The seam between the daemon and the machine: outside fabricd/base no file of the daemon calls these functions ...
SEAM = "fabricd/base"
OF_THE_SEAM = re.compile(r"\b(clock_gettime|gettimeofday|time|evtimer_new|evtimer_add|event_new|event_add|event_assign|"
                         r"event_base_once|timerfd_create|sleep|usleep|nanosleep|clock_nanosleep|pthread_create|fork|"
                         r"vfork|posix_spawnp?)\s*\(")
# ... but for these files and functions, each for its reason.
BESIDE_THE_SEAM = {
    ("fabricd/config/config_check.c", "fork"): "a process of the service's user asks whether it may read a file",
    ("fabricd/process/process.c", "fork"): "the daemon goes into the background",
    ("fabricd/process/child.c", "posix_spawn"): "the room process starts the daemon's children",
    ("fabric-host/job/rank_process.c", "posix_spawnp"): "the host starts the ranks of its jobs",
}

# State is in handles, so that two roles can be in one process. These files alone have variables of the process, each
# for its reason.
OF_THE_PROCESS = {
    "fabricd/base/log.c": "where the log goes",
    "fabricd/base/loop.c": "the service manager that has started the process",
    "fabricd/base/file_io.c": "the boot of the machine, read once",
    "fabricd/config/daemon_options.c": "the folder that the process was started in",
    "fabricd/process/process.c": "going into the background, and the limit of descriptors",
    "fabricd/base/metrics.c": "when the process was started",
    "fabricd/sources/host_scan.c": "what the log has said of this host's hardware: once",
    "fabricd/sources/monitor_child.c": "a signal to this child",
    "fabricd/engine/findings.c": "constant words, made once",
    "fabricd/channel/credential.c": "a test puts its own calls in place of munge's and the resolver's",
    "fabricd/server/server_answers.c": "the PMIx library has one server in a process",
    "fabricd/server/long_poll.c": "the PMIx library has one server in a process",
    "fabricd/server/server.c": "the PMIx library has one server in a process",
    "fabricd/server/subscribers.c": "the PMIx library has one server in a process",
}
# The parts of an object that a program writes to.
WRITABLE = re.compile(r"(?!\.data\.rel\.ro)\.t?(bss|data)(\.|$)")


def plan():
    """{room: the rooms that it may include}, in the order of the floors."""
    rooms, tree, room = {}, "", None
    for line in PLAN.strip().splitlines():
        if line.endswith(":"):
            tree = line[:-1]
            continue
        words = line.split()
        if not line.startswith(" " * 12):
            room = os.path.normpath(os.path.join(tree, words.pop(0)))
            rooms[room] = set()
        for word in words:
            beside = os.path.join(tree, word)
            far = os.path.join("libpmixfab", word)
            rooms[room] |= {next(name for name in (beside, far, word) if name in rooms)} if word != "-" else set()
    return rooms


def sources():
    found = []
    for tree in TREES:
        for folder, _, files in os.walk(os.path.join(ROOT, tree)):
            found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in sorted(files)
                      if name.endswith((".c", ".h"))]
    return sorted(found)


def header_of(name):
    """Our own header by the name that stands in an #include; None."""
    for path in (name, os.path.join("libpmixfab", name)):
        if os.path.exists(os.path.join(ROOT, path)):
            return path
    return None


def includes():
    """{(file, file): a header}: arrows by #include."""
    found = {}
    for path in sources():
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', file.read(), re.MULTILINE):
                header = header_of(name)
                if header is not None:
                    found[path, header] = name
    return found


def objects():
    """{file: its object}, of those that are built."""
    found = {}
    for folder, _, files in os.walk(BUILD):
        for name in files:
            if name.endswith(".c.o"):
                head, _, tail = os.path.relpath(os.path.join(folder, name), BUILD).partition("/CMakeFiles/")
                path = os.path.join(head, tail.partition("/")[2])[:-len(".o")]
                if path.startswith(TREES) and os.path.exists(os.path.join(ROOT, path)):
                    found.setdefault(path, os.path.join(folder, name))
    return found


def uses():
    """{(file, file): a name}: arrows by what an object uses of another one."""
    defined, used = {}, collections.defaultdict(set)
    sources_of = {file: path for path, file in objects().items()}
    out = subprocess.run(["nm", "--extern-only", "--format=posix", "--print-file-name", *sources_of], capture_output=True,
                         text=True, check=True).stdout
    for line in out.splitlines():
        file, _, symbol = line.rpartition(": ")
        (name, kind), path = symbol.split()[:2], sources_of[file]
        if kind in "TDBRCVW":
            defined[name] = path
        elif kind == "U":
            used[path].add(name)
    found = {}
    for path, names in used.items():
        for name in sorted(names):
            if PUBLIC.match(name) and not path.startswith("libpmixfab/topo/"):
                found[path, PUBLIC_HEADER] = name
            elif name in defined and defined[name] != path and not STANDS_IN.match(name):
                found[path, defined[name]] = name
    return found


def circles(arrows):
    """The groups of more than one end that lead to each other (Tarjan)."""
    after = collections.defaultdict(list)
    for one, other in arrows:
        after[one].append(other)
    number, low, stack, found = {}, {}, [], []

    def visit(at):
        number[at] = low[at] = len(number)
        stack.append(at)
        for to in after[at]:
            if to not in number:
                visit(to)
                low[at] = min(low[at], low[to])
            elif to in stack:
                low[at] = min(low[at], number[to])
        if low[at] == number[at]:
            group = stack[stack.index(at):]
            del stack[stack.index(at):]
            if len(group) > 1:
                found.append(sorted(group))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100000)
    for start in list(after):
        if start not in number:
            visit(start)
    sys.setrecursionlimit(limit)
    return found


def code_of(text):
    """A source without its comments, and with its strings and characters empty; its lines stay where they are."""
    def blank(match):
        piece = match.group()
        return piece[0] * 2 if piece[0] in "\"'" else " " + "\n" * piece.count("\n")
    return re.sub(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", blank, text, flags=re.DOTALL)


def calls_of_the_seam(text):
    """(line number, function) of each call that only fabricd/base may make."""
    return [(number, name) for number, line in enumerate(code_of(text).splitlines(), 1)
            for name in OF_THE_SEAM.findall(line)]


def around_the_seam():
    """What goes around the seam, and each exception that no file needs, a line each."""
    lines, needed = [], set()
    for path in sources():
        if not path.startswith(("fabricd/", "fabric-host/")) or os.path.dirname(path) == SEAM:
            continue
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            for number, name in calls_of_the_seam(file.read()):
                needed.add((path, name))
                if (path, name) not in BESIDE_THE_SEAM:
                    lines.append(f"{path}:{number}: {name}() is for {SEAM}")
    lines += [f"{path} does not call {name}(): no exception is needed"
              for path, name in sorted(set(BESIDE_THE_SEAM) - needed)]
    return lines


def state_of(symbols):
    """The variables that a program writes to, of `nm --format=sysv`: name|value|class|type|size|line|section."""
    fields = [[field.strip() for field in line.split("|")] for line in symbols.splitlines() if line.count("|") == 6]
    return sorted({name.split(".")[0] for name, _, _, kind, _, _, section in fields
                   if kind in ("OBJECT", "TLS") and not name.startswith("__") and WRITABLE.match(section)})


def state_of_the_process():
    """Variables outside handles, and each exception that no file needs, a line each."""
    lines, needed = [], set()
    built = {file: path for path, file in objects().items() if path.startswith("fabricd/")}
    out = subprocess.run(["nm", "--format=sysv", *built], capture_output=True, text=True, check=True).stdout
    pieces = re.split(r"^Symbols from (.*):$", out, flags=re.MULTILINE)
    for file, symbols in zip(pieces[1::2], pieces[2::2]):
        path, names = built[file], state_of(symbols)
        if names:
            needed.add(path)
        if names and path not in OF_THE_PROCESS:
            lines.append(f"{path}: {', '.join(names)}: state belongs into a handle")
    return sorted(lines) + [f"{path} has no variables: no exception is needed"
                            for path in sorted(set(OF_THE_PROCESS) - needed)]


def arrows():
    """{(file, file): why}"""
    found = {pair: f"uses {name}()" for pair, name in uses().items()}
    found.update({pair: f'includes "{name}"' for pair, name in includes().items()})
    return found


def broken():
    """What breaks the rule, a line each."""
    rooms, all_arrows, lines = plan(), arrows(), []
    for path in sources():
        if os.path.dirname(path) not in rooms:
            lines.append(f"{path}: is in no room")
    between = {}
    for (one, other), why in sorted(all_arrows.items()):
        here, there = os.path.dirname(one), os.path.dirname(other)
        if here != there:
            between[here, there] = f"{one} -> {other}"
            if there not in rooms.get(here, ()):
                lines.append(f"{one} {why} of {other}: {here} does not include {there}")
    lines += [f"circle of rooms: {' '.join(group)}" for group in circles(between)]
    for group in circles(all_arrows):
        lines.append(f"circle of files: {' '.join(group)}")
    return lines + around_the_seam()


def main():
    rooms = plan()
    count = collections.Counter(os.path.dirname(path) for path in sources())
    between = collections.Counter((os.path.dirname(one), os.path.dirname(other)) for one, other in arrows()
                                  if os.path.dirname(one) != os.path.dirname(other))
    for room in rooms:
        to = ", ".join(f"{there} {n}" for (here, there), n in sorted(between.items()) if here == room)
        print(f"{room} ({count[room]} files) -> {to or '-'}")
    lines = broken()
    print(*lines, sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
