"""Faults of what a server does for the requests of its tools: R1 to R18."""
import contextlib
import os
import time

from play import COUNT, INDEX, VENDOR, Late, answered, fault, fixed, harmed, inapplicable, s, there

CODE = -1000  # of an event
TOPOLOGY = 56
GLOBAL, NAMESPACE = 5, 3  # ranges
ATTRIBUTES, HOST_ATTRIBUTES = "pmix.qry.attrs", "pmix.host.attrs"


def each_harms(scene, messages):
    """Which of these messages, by name, harm a server of their own."""
    found = []
    for name, message in messages.items():
        host = scene.host()
        answered(scene.stranger(host), *message)
        harm = host.harm()
        host.kill()
        if harm:
            found.append(f"{name}: {harm}")
    return there("; ".join(found)) if found else fixed("the server lives and answers")


@fault("R1")
def counts(scene):
    """Arrays are made for a count, whatever the message holds."""
    found = []
    for name, n, message in (("query", 20_000_000, (s.QUERY,)), ("log", 1_000_000, (s.LOG, s.item(s.flex(0)))),
                             ("registration for events", 100_000_000, (s.REGEVENTS,))):
        host = scene.host()
        channel = scene.stranger(host)
        before = host.memory("VmPeak")
        answered(channel, *message, s.size(n))
        grown = host.memory("VmPeak") - before
        harm = host.harm()
        host.kill()
        if harm or grown > 300:
            found.append(harm or f"{grown:.0f} MiB for a {name} of 20 bytes")
    return there("; ".join(found)) if found else fixed("a count that the message does not hold makes no array")


@fault("R2")
def string_without_end(scene):
    """24 bytes fill what malloc() gives for them: the byte behind them belongs to it, and is not zero."""
    host = scene.host()
    start = len(host.lines)
    answered(scene.stranger(host), s.LOOKUP, s.item(s.flex(0)), s.size(1), s.item(s.signed(24) + b"A" * 24), s.size(0))
    seen = host.wait(r"lookup (\d+)", 2, start)
    if seen is None:
        harm = host.harm()
        return there(harm) if harm else fixed("it is refused")
    read = int(seen.group(1))
    return there(f"a string of 24 bytes has {read}") if read > 24 else fixed(f"a string of 24 bytes without an end has {read}")


@fault("R3")
def null_key(scene):
    return each_harms(scene, {"lookup of a null key": (s.LOOKUP, s.item(s.flex(0)), s.size(1), s.item(s.text(None)), s.size(0))})


@fault("R4")
def types_of_infos(scene):
    registration = s.REGEVENTS, s.size(1), s.item(s.signed(CODE))
    return each_harms(scene, {key: (*registration, s.infos(s.info(key, s.BOOL, b"\1"))) for key in ("pmix.evproc", "pmix.evaffected")})


@fault("R5")
def odd_queries(scene):
    return each_harms(scene, {
        "without a key": (s.QUERY, s.size(1), s.item(s.signed(0) + s.flex(0))),
        "a rank without a namespace": (s.QUERY, s.query(COUNT, s.info("pmix.rank", s.RANK, s.flex(3)))),
        "for attributes": (s.QUERY, s.query(ATTRIBUTES, s.info(HOST_ATTRIBUTES, s.STRING, s.text("PMIx_Query_info"))))})


@fault("R6")
def directives_lost(scene):
    host = scene.host()
    tool = scene.tool(host)
    said = tool.ask("register pmix.fab.plane=ib0", "fabric.*")
    seen = host.wait(r"fabric \d+ directives (\d+) (\S+)", 1)
    if seen and seen.group(2) == "pmix.fab.plane":
        return fixed("the host gets a tool's directive")
    return there(f"a register with a directive does not reach the host ({said.group() if said else 'no answer'})")


def growth(host, channel, n, *message):
    """Bytes that stay allocated for each message."""
    host.must("quiet", "quiet")

    def ask():
        for _ in range(n):
            if answered(channel, *message) is None:
                raise Late(f"no answer: {host.ended()}")
        return host.heap()
    first = ask()
    return (ask() - first) / n


@fault("R7")
def register_kept(scene):
    host = scene.host()
    channel = scene.stranger(host)
    each = [growth(host, channel, 300, command, s.size(0 if command == s.FABRIC_REGISTER else 7))
            for command in (s.FABRIC_REGISTER, s.FABRIC_UPDATE)]
    said = "{:.0f} bytes stay of a register, {:.0f} of an update".format(*each)
    return there(said) if max(each) > 60 else fixed(said)


def listener(scene, host, times=1, **options):
    channel = scene.stranger(host, **options)
    for _ in range(times):
        if answered(channel, s.REGEVENTS, s.size(1) + s.item(s.signed(CODE)) + s.infos()) != 0:
            raise Late("no registration for an event")
    channel.socket.settimeout(1.5)
    return channel


def events(channel):
    """How many messages come until there is none for a while."""
    n = 0
    with contextlib.suppress(OSError, EOFError):
        while True:
            channel.answer()
            n += 1
    return n


@fault("R8")
def event_of_a_tool(scene):
    """The host would refuse it."""
    host = scene.host()
    channel = listener(scene, host)
    status = answered(scene.stranger(host), s.NOTIFY, s.item(s.signed(CODE)), s.item(bytes([GLOBAL])), s.infos())
    if events(channel):
        return there("a tool raises an event for another tool, and the host is not asked first")
    return fixed(f"the event does not reach another tool (status {status})")


@fault("R9")
def output_of_a_tool(scene):
    host = scene.host()
    channel = scene.stranger(host, kind=s.NAMED_TOOL, name=("writer", 0))
    said = b"written by a tool\n"
    source, stdout, nobody = s.item(s.text("writer") + s.flex(0)), s.item(s.flex(2)), s.size(999)
    channel.post(source + stdout + nobody + s.infos() + s.item(s.flex(len(said)) + said), tag=2)
    harm = host.harm()
    if harm:
        return there(f"{harm}, which writes them although it has no output")
    if host.wait("written by a tool", 1):
        return there("a tool's bytes are on the server's standard output")
    return fixed("nothing is written")


@fault("R10")
def removed_for_a_tool(scene):
    host = scene.host()
    path = os.path.join(scene.dir, "file")
    with open(path, "w", encoding="ascii"):
        pass
    proc = s.item(s.text("cleaner") + s.flex(0))
    for targets in (s.size(0), s.size(1) + proc):
        with scene.stranger(host, kind=s.NAMED_TOOL, name=("cleaner", 0)) as channel:
            status = answered(channel, s.JOB_CONTROL, targets, s.infos(s.info("pmix.reg.cleanup", s.STRING, s.text(path))))
    for _ in range(20):
        if not os.path.exists(path):
            return there("a file is removed when the tool that asked for it has gone")
        time.sleep(0.1)
    host.ask("finalize", "finalized")
    if not os.path.exists(path):
        return there("a file is removed at the server's end, which a tool asked for")
    return fixed(f"the file stays (status {status})")


@fault("R11")
def registered_again(scene):
    host = scene.host()
    channel = listener(scene, host)
    each = growth(host, channel, 300, s.REGEVENTS, s.size(1) + s.item(s.signed(CODE)) + s.infos())
    return there(f"{each:.0f} bytes are kept of each registration for the same code") if each > 20 else fixed("a code is kept once")


@fault("R12")
def fabric_key(scene):
    host = scene.host()
    tool = scene.tool(host)
    start = len(host.lines)
    got = tool.ask(f"get {VENDOR} - 0", "got (.*)", 5)
    asked = host.wait("query|fabric|modex", 0, start)
    if asked or (got and got.group(1).startswith("0 ")):
        return fixed(f"the host is asked ({asked.group() if asked else got.group(1)})")
    return there(f"PMIx_Get() of a fabric's key: {got.group(1) if got else 'no answer'}, and the host was not asked")


@fault("R13")
def empty_arrays(scene):
    lookup = s.LOOKUP, s.item(s.flex(0)), s.size(1), s.item(s.text("x"))
    return each_harms(scene, {f"array of type {kind}": (*lookup, s.infos(s.info("list", s.DATA_ARRAY, s.flex(kind) + s.flex(0))))
                              for kind in (TOPOLOGY, s.DATA_ARRAY)})


@fault("R14")
def queries_kept(scene):
    host = scene.host()
    each = growth(host, scene.stranger(host), 500, s.QUERY, s.query(INDEX))
    tool = scene.tool(host)
    tool.must("queries refuse 300", "queries")
    before = tool.heap()
    tool.must("queries refuse 300", "queries")
    own = (tool.heap() - before) / 300
    said = f"{each:.0f} bytes of a query stay at the server, {own:.0f} at the caller"
    return there(said) if each > 40 or own > 40 else fixed(said)


@fault("R15")
def attributes_of_a_function(scene):
    """Some libraries answer only now and then, and then well."""
    host = scene.host()
    host.must("attributes", "attributes 0")
    for attempt in range(1, 11):
        tool = scene.tool(host)
        answer = tool.ask(f"query {ATTRIBUTES} {HOST_ATTRIBUTES}=PMIx_Query_info", "answer (-?[0-9]+) (.*)", 2)
        if host.ended(0.2):
            return inapplicable("the server ends first: R5")
        if answer and answer.group(1) == "0" and answer.group(2).startswith("array"):
            return fixed(f"a function's attributes are told, at request {attempt}")
        if answer:
            return there(f"a function's attributes are not told: status {answer.group(1)} {answer.group(2)}")
        tool.kill()
    return there("no answer to 10 requests")


@fault("R16")
def refresh_of_nobody(scene):
    host = scene.host()
    tool = scene.tool(host)
    tool.ask(f"get {COUNT} - 0 pmix.get.refresh!", "got", 4)
    ended = tool.ended(0.5)
    if ended:
        return there(f"{ended} of the caller")
    return harmed(host)


@fault("R17")
def of_another_node(scene):
    host = scene.host()
    host.must(f"job job here,there 0;1 1 here:{VENDOR}=one there:{VENDOR}=two", "job 0")
    host.must("client job 0", "registered 0")
    client = scene.client(host)
    got = [client.must(f"get {VENDOR} = {rank} pmix.hname=there pmix.node.info!", "got (.*)").group(1) for rank in (0, -2)]
    if got[1] != "0 two":
        raise Late(f"of no process: {got[1]}")
    if got[0] == got[1]:
        return fixed("the named node's value is found")
    return there(f"the value is found for no process, and for a process it is {got[0]}")


@fault("R18", "F14")
def range_namespace(scene):
    host = scene.host()
    own, other = (listener(scene, host, kind=s.NAMED_TOOL, name=(name, 0)) for name in ("one", "other"))
    own.post(s.item(bytes([s.NOTIFY])) + s.item(s.signed(CODE)) + s.item(bytes([NAMESPACE])) + s.infos())
    if events(other):
        return there("an event of one namespace reaches another one")
    return fixed("an event of one namespace does not reach another one")
