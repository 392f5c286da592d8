"""fuzz_listener - strangers at the listener of fabricd-pmix: what do they say that ends it, or holds it up?

Sessions (test/integration/sessions.py) of several connections each: first messages, then messages of every command,
well-made in their structure, with counts, lengths and types that are not so. A session is made of the seed and its
number alone. Between sessions a good tool asks. Where it loses its connection, or waits for more than a second, the
sessions since it last asked are said again, one by one, to a new fabricd; the one that did it is made as short as it can
be and saved, with the end of the log beside it. Copied to test/fuzz/corpus/listener it is a test.

usage: fuzz_listener.py SECONDS FOLDER [--seed N] [--role scheduler|node]      without a role half of the time each
"""
import argparse
import glob
import hashlib
import json
import os
import random
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

import hosts  # noqa: E402
import isolate  # noqa: E402
import lab  # noqa: E402
import sessions  # noqa: E402
import stranger as s  # noqa: E402

AT_ONCE = 10  # sessions between two questions of the good tool
PATIENCE = 1.0  # seconds, of the good tool
TRIES = 60  # to make a session shorter
TYPES = 70
PROC, COMMAND, SCOPE, RANGE, UNDEF = 22, 34, 32, 33, 0
BYTES = (1, 2, 11, 7, 30, 32, 33, 34, 37, 51)  # types of one byte
NUMBERS = (4, 10, 13, 14, 15, 19, 36, 40, 57)
SIGNED = (6, 8, 9, 20)
KEYS = ("pmix.fab.idx", "pmix.fab.plane", "pmix.fab.devs", "pmix.fab.coord", "pmix.fabdev", "pmix.hname", "pmix.nspace", "pmix.rank",
        "pmix.procid", "pmix.evproc", "pmix.evaffected", "pmix.evrange", "pmix.timeout", "pmix.qual", "pmix.qry.ns", "pmix.qry.attr",
        "pmix.nodeid", "pmix.job.term.status", "pmix.cred", "pmix.evnondef", "pmixfab.relay.register", "pmixfab.relay.update",
        "pmixfab.relay.query", "pmixfab.relay.queries", "pmixfab.relay.subscribe", "pmixfab.relay.deliver", "pmixfab.relay.indices",
        "pmixfab.relay.generations", "pmixfab.relay.names", "pmixfab.relay.requestor", "pmixfab.generation", "x")
NAMES = ("victim", "fabricd", "fabricd.tool", "job", "a" * 255)
CODES = (-175, -176, -1, 0, -25, -200, 1 << 30)


class Maker:
    """A message. described: types stand before what is packed; half of all messages have nothing wrong in their structure."""

    def __init__(self, rng, described=False):
        self.rng, self.described = rng, described
        self.faults = rng.choice((0, 0, 0.02, 0.08))

    # -- values

    def number(self):
        return self.rng.choice((0, 1, 1, 1, 2, 3, 7, 127, 128, 1000, 65535, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63), (1 << 64) - 1)) \
            if self.faults and self.rng.random() < 0.4 else self.rng.randrange(4)

    def lie(self, n):
        """A count or a length: mostly the right one."""
        return self.number() if self.rng.random() < self.faults else n

    def length(self, n):
        """The same as it stands before texts and what is packed."""
        return s.signed(min(self.lie(n), 1 << 62))

    def kind(self, likely):
        """A type."""
        return self.rng.randrange(TYPES) if self.rng.random() < 4 * self.faults else self.rng.choice(likely)

    def text(self, words=KEYS):
        value = self.rng.choice(words)
        if self.rng.random() < self.faults / 2:
            return s.signed(min(self.number(), 1 << 62)) + value.encode()
        if self.rng.random() < self.faults / 2:
            return s.text(None)
        return s.text(value + "y" * 600 if self.rng.random() < self.faults / 2 else value)

    def proc(self):
        return self.text(NAMES) + s.flex(self.rng.choice((0, 1, 3, 4294967294, 4294967293, 4294967295, self.rng.getrandbits(32))))

    def array(self, depth):
        kind = self.kind((3, 4, 14, 15, 22, 24, 41))
        n = self.rng.choice((0, 1, 2, 5))
        return s.flex(kind) + s.flex(self.lie(n)) + b"".join(self.value(kind, depth + 1) for _ in range(n))

    def typed(self, depth):
        kind = self.kind((1, 3, 3, 4, 15, 20, 22, 27, 39, 40))
        return s.flex(kind) + (self.value(kind, depth + 1) if kind != UNDEF else b"")

    def query(self, depth):
        keys, n = self.rng.choice((0, 1, 1, 1, 2) if self.faults else (1, 2)), self.rng.choice((0, 0, 1, 2))
        return self.length(keys) + b"".join(self.text() for _ in range(keys)) + s.flex(self.lie(n)) + \
            b"".join(self.value(s.INFO, depth + 1) for _ in range(n))

    def value(self, kind, depth=0):
        if kind in BYTES or depth > 8:
            return bytes([self.rng.randrange(256)])
        if kind in NUMBERS:
            return s.flex(self.number())
        if kind in SIGNED:
            return s.signed(self.rng.choice(CODES))
        if kind == s.STRING:
            return self.text(KEYS + NAMES)
        if kind == PROC:
            return self.proc()
        if kind in (s.BYTE_OBJECT, 49, 59):
            data = self.rng.randbytes(self.rng.randrange(40))
            return s.flex(self.lie(len(data))) + data
        if kind == s.DATA_ARRAY:
            return self.array(depth)
        if kind == s.INFO:
            return self.text() + s.flex(self.rng.choice((0, 0, 1, 16))) + self.typed(depth)
        if kind == s.QUERIES:
            return self.query(depth)
        if kind == s.VALUE:
            return self.typed(depth)
        return self.rng.randbytes(self.rng.randrange(12))

    # -- as calls pack them

    def packed(self, kind, *values):
        n = self.length(len(values))
        return (s.flex(9) + n + s.flex(kind) if self.described else n) + b"".join(values)

    def one(self, kind):
        return self.packed(kind, self.value(kind))

    def counted(self, kind, n=None):
        """How many, and so many."""
        n = self.rng.choice((0, 0, 1, 1, 2, 6)) if n is None else n
        count = self.packed(s.SIZE, s.flex(self.lie(n)))
        return count + (self.packed(kind, *(self.value(kind) for _ in range(n))) if n else b"")

    def keys(self):
        n = self.rng.choice((0, 1, 1, 1, 2))
        return self.packed(s.SIZE, s.flex(self.lie(n))) + b"".join(self.one(s.STRING) for _ in range(n))

    def body(self, command):
        """Each command's own order of parts."""
        infos, procs = s.INFO, PROC
        parts = {
            s.ABORT: (s.STATUS, s.STRING, [procs]), s.COMMIT: (SCOPE, s.BYTE_OBJECT), s.FENCE: ([procs], [infos], s.BYTE_OBJECT),
            s.GET: (s.STRING, s.RANK, [infos], s.STRING), s.PUBLISH: (s.UINT32, [infos]), s.UNPUBLISH: (s.UINT32, "keys", [infos]),
            s.LOOKUP: (s.UINT32, "keys", [infos]), s.SPAWN: ([infos], [23]), s.CONNECT: ([procs], [infos]),
            s.DISCONNECT: ([procs], [infos]), s.NOTIFY: (s.STATUS, RANGE, [infos]), s.REGEVENTS: ([s.STATUS], [infos]),
            s.DEREGEVENTS: (s.STATUS, s.STATUS), s.QUERY: ([s.QUERIES],), s.LOG: (19, [infos], [infos]), s.ALLOC: (43, [infos]),
            s.JOB_CONTROL: ([procs], [infos]), s.MONITOR: (infos, s.STATUS, [infos]), s.GET_CREDENTIAL: ([infos],),
            s.VALIDATE: (s.BYTE_OBJECT, [infos]), s.IOF_PULL: ([procs], [infos], 45), s.IOF_PUSH: ([procs], [infos], s.BYTE_OBJECT),
            s.FABRIC_REGISTER: ([infos],), s.FABRIC_UPDATE: (s.SIZE,), s.DISTANCES: (56, 52, [infos]),
        }.get(command, (s.STRING, [procs], [infos]))
        return b"".join(self.keys() if part == "keys" else self.counted(part[0]) if isinstance(part, list) else self.one(part)
                        for part in parts)

    def message(self):
        """The bytes of a message with its header."""
        rng = self.rng
        answered = (s.GET, s.LOOKUP, s.LOOKUP, s.REGEVENTS, s.DEREGEVENTS, s.QUERY, s.QUERY, s.FABRIC_REGISTER, s.FABRIC_UPDATE)
        command = rng.choice((*answered, *answered, rng.randrange(33), rng.randrange(256)))
        data = self.packed(COMMAND, bytes([command])) + self.body(command)
        if self.faults and rng.random() < 0.4:
            data = s.altered(data, rng)
        nbytes = rng.choice((0, 1, len(data) + 1, max(len(data), 1) - 1, 1 << 20, 1 << 30, (1 << 32) - 1)) \
            if rng.random() < 0.02 else len(data)
        tag = rng.choice((0, 1, 2, 3, 100, 101, 102, 0xffffffff, rng.getrandbits(32)))
        return struct.pack("!iIII", rng.choice((0, 0, 0, 1, -1, 7)), tag, nbytes, 0) + data


# ---- sessions ----------------------------------------------------------------------------------------


def first_step(rng, name):
    """How a connection begins: mostly well."""
    described = rng.random() < 0.3
    kind = rng.choice((s.TOOL, s.NAMED_TOOL, s.STARTED_TOOL, s.LAUNCHER, s.NAMED_LAUNCHER, s.STARTED_LAUNCHER, s.SINGLETON))
    options = {"kind": kind, "name": [rng.choice(NAMES), rng.randrange(3)], "buffer": 2 if described else 1}
    if rng.random() < 0.7:
        return [("tool", name, json.dumps(options))], described
    if rng.random() < 0.5:
        options["kind"] = rng.randrange(11)
    options[rng.choice(("psec", "bfrops", "gds", "version"))] = rng.choice(("native", "nosuch", "", "v41", "v4,v41", "hash", "4.2.2", "5.0.0"))
    if rng.random() < 0.2:
        options["cred"] = rng.randbytes(rng.randrange(12))
    message = s.first(more=Maker(rng, described).counted(s.INFO) if rng.random() < 0.5 else b"", **options)
    if rng.random() < 0.7:
        message = s.altered(message, rng)
    nbytes = rng.choice((0, 1, len(message) + 1, 10240, 10241, 1 << 31)) if rng.random() < 0.1 else len(message)
    whole = s.HEADER.pack(-1, 0xffffffff, nbytes, 0) + message
    return [("open", name), ("send", name, whole.hex())] + [("hear", name)] * rng.randrange(2), described


def session(seed, number):
    """The steps of a session; how many messages are in it."""
    rng = random.Random(f"{seed} {number}")
    steps, live = [], {}
    names = "ABCD"[:rng.choice((1, 2, 3, 4))]
    for _ in range(rng.randrange(5, 60)):
        name = rng.choice(names)
        if name not in live or rng.random() < 0.02:
            begin, live[name] = first_step(rng, name)
            steps += begin
            continue
        chance = rng.random()
        if chance < 0.01:
            steps.append((rng.choice(("close", "reset")), name))
            del live[name]
        elif chance < 0.02:
            steps.append(("hear", name))
        elif chance < 0.0225:
            steps.append(("change",))
        else:
            message = Maker(rng, live[name]).message()
            cut = rng.randrange(1, len(message)) if rng.random() < 0.03 else len(message)
            steps.append(("send", name, message[:cut].hex()))
            if cut < len(message) and rng.random() < 0.8:
                steps.append(("send", name, message[cut:].hex()))
    steps += [(rng.choice(("close", "reset")), name) for name in names if rng.random() < 0.5]
    return steps


def reports(options):
    """Where sanitizers write what they have found: fabricd's log would have the last line of it only."""
    return os.path.join(os.path.abspath(options.folder), "listener-sanitizer")


def reported(options):
    text = ""
    for path in sorted(glob.glob(reports(options) + ".*")):
        with open(path, encoding="utf-8", errors="replace") as file:
            text += file.read()
        os.unlink(path)
    return text


# ---- fabricd -----------------------------------------------------------------------------------------


class Target:
    """A fabricd whose PMIx server is tried; a new one for each try at a find, so that no pause of the one before counts."""

    def __init__(self, role):
        self.role, self.daemons = role, []
        self.player = sessions.Player(None, self.change)
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        self.texts = [lab.fabric(f"fattree2:2,1,{n}", "capture") for n in (2, 3)]
        self.start()

    def start(self):
        self.turn = 0
        lab.replace_file(self.path, self.texts[0])
        scheduler = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}"}, "nodes": {"listen": "127.0.0.1", "port": 0}})
        self.daemons = [scheduler]
        if self.role == "node":
            node = lab.Fabricd(config={"fabricd": {"role": "node", "host": "node0001", "scheduler": scheduler.nodes_at(), "store": None},
                                       "node": {"serve": "yes"}},
                               start=False)
            self.daemons.append(node.start(wait=False))
            node.wait_up()
            munged = hosts.own_munged()  # for the mirror alone: strangers come without munge
            node.until_status(lambda status: not status["stale"])
            munged.stop()
        self.daemon = self.daemons[-1]
        self.begin()

    def begin(self):
        lab.wait_for(self.daemon.pmix_pid, 60, what="a PMIx server")
        self.good = sessions.resident(self.daemon.uri(), 30)
        self.player.uri = self.daemon.uri()

    def change(self):
        self.turn += 1
        lab.replace_file(self.path, self.texts[self.turn % 2])
        self.daemons[0].look()

    def end(self):
        """Where it does not end as it should, what it says."""
        self.good.close()
        said = ""
        for daemon in reversed(self.daemons):
            if daemon.alive() and daemon.stop() != 0:
                said += daemon.log()[-3000:]
        return said

    def again(self):
        for daemon in reversed(self.daemons):
            if daemon.alive():
                daemon.kill9()
        self.start()

    def wrong(self):
        """What has happened to it since the last question; None: nothing."""
        begin = time.monotonic()
        try:
            sessions.ping(self.good)
        except (EOFError, OSError) as error:
            if not self.daemon.alive():
                return "the daemon has ended"
            status = self.daemon.status()["pmix"] or {"why": None}
            return f"the good tool is not answered ({type(error).__name__} {error}); PMIx server: {status['why']}"
        took = time.monotonic() - begin
        return f"the good tool waited for {took:.1f} s" if took > PATIENCE * lab.SLOW else None

    def tried(self, steps):
        self.again()
        self.player.play(steps)
        return self.wrong()


def shorter(target, steps):
    """Without what it does not need, as far as so many tries go."""
    tries, part = 0, max(1, len(steps) // 2)
    while part >= 1 and tries < TRIES:
        at = 0
        while at < len(steps) and tries < TRIES:
            less = steps[:at] + steps[at + part:]
            tries += 1
            if less and target.tried(less):
                steps = less
            else:
                at += part
        part //= 2
    return steps


def save(folder, steps, why, log):
    text = json.dumps(steps).encode()
    path = os.path.join(folder, f"listener-{hashlib.sha1(text).hexdigest()[:10]}")
    sessions.write(path, steps, why.replace("\n", " ")[:300])
    with open(path + ".log", "w", encoding="utf-8") as file:
        file.write(log)
    print(f"fuzz_listener: {why}\n  saved as {path}", flush=True)


def find(target, several, why, options):
    """Which of these sessions was it?"""
    folder, log = options.folder, reported(options) + target.daemon.log()[-20000:]
    print(f"fuzz_listener: {why}; looking for which of {len(several)} sessions it was", flush=True)
    for steps in several:
        if target.tried(steps):
            save(folder, shorter(target, steps), why, log)
            break
    else:
        steps = [step for one in several for step in one]
        seen = target.tried(steps)
        save(folder, shorter(target, steps) if seen else steps, why if seen else f"(once, not again) {why}", log)
    target.again()
    reported(options)


# ---- the program -------------------------------------------------------------------------------------


def search(role, seconds, options):
    target = Target(role)
    number, found, last, worst, player = 0, 0, [], 0.0, target.player
    begin = told = time.monotonic()
    while time.monotonic() - begin < seconds:
        last.append(session(options.seed, number))
        number += 1
        player.play(last[-1])
        if number % AT_ONCE != 0:
            continue
        asked = time.monotonic()
        why = target.wrong()
        worst = max(worst, time.monotonic() - asked)
        if why:
            found += 1
            find(target, last, why, options)
        last = []
        if time.monotonic() - told > 30:
            told = time.monotonic()
            print(f"fuzz_listener: {number} sessions, {player.sent} messages, {player.sent / (told - begin):.0f} a second", flush=True)
    said = target.end() + reported(options)
    spent = time.monotonic() - begin
    print(f"fuzz_listener: {role}, seed {options.seed}: {number} sessions, {player.sent} messages in {spent:.0f} s ({player.sent / spent:.0f} a "
          f"second), slowest answer {worst * 1e3:.0f} ms, finds: {found}")
    if said:
        print(f"fuzz_listener: at its end it said:\n{said}")
    return 1 if found or said else 0


def main():
    parser = argparse.ArgumentParser(prog="fuzz_listener")
    parser.add_argument("seconds", type=int)
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--role", choices=("scheduler", "node"))
    options = parser.parse_args()
    isolate.enter(lab.tmpdir())  # a munged of this machine would have all sessions refused
    if lab.SANITIZE:
        os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + f":quarantine_size_mb=32:log_path={reports(options)}"
    roles = [options.role] if options.role else ["scheduler", "node"]
    return max(search(role, options.seconds / len(roles), options) for role in roles)


if __name__ == "__main__":
    sys.exit(main())
