"""Faults of messages, and of connections that are lost: M1 to M10."""
import contextlib
import struct
import time

from play import ANSWER_S, INDEX, LOST_CONNECTION, Late, answered, fault, fixed, s, there

MIB = 1 << 20


def announce(channel, size):
    """The header of a message of that size, and one byte of it."""
    channel.post(b"x", nbytes=size)


@fault("M1")
def no_limit(scene):
    host = scene.host()
    before = host.memory("VmSize")
    with contextlib.suppress(OSError):
        announce(scene.stranger(host, timeout=2), 1 << 30)
        time.sleep(1)
    grown = host.memory("VmSize") - before
    return there(f"the server takes {grown:.0f} MiB for a message of 1 GiB that is announced") if grown > 900 else fixed("1 GiB is refused")


@fault("M2")
def written_at_once(scene):
    host = scene.host()
    held = scene.stranger(host)
    before = host.memory()
    announce(held, 24 * MIB)
    time.sleep(1)
    grown = host.memory() - before
    return there(f"{grown:.0f} MiB are written for 24 MiB that are announced") if grown > 20 else fixed("memory is written as bytes come")


@fault("M3")
def never_freed(scene):
    host = scene.host()
    host.serves()
    before = host.memory("VmSize")
    for _ in range(5):
        with scene.stranger(host) as channel:
            announce(channel, 24 * MIB)
            time.sleep(0.2)
    host.serves()
    time.sleep(0.5)
    grown = host.memory("VmSize") - before
    if grown > 80:
        return there(f"{grown:.0f} MiB stay of 5 messages of 24 MiB whose connections are lost")
    return fixed("their memory is freed")


@fault("M4")
def header_in_pieces(scene):
    host = scene.host()
    channel = scene.stranger(host)
    data = s.item(bytes([s.QUERY])) + s.query(INDEX)
    with contextlib.suppress(OSError, EOFError):
        for byte in struct.pack("!iIII", 0, 500, len(data), 0):
            channel.send(bytes([byte]))
            time.sleep(0.03)
        channel.send(data)
        if channel.answer()[0] == 500:
            return fixed("a header that comes in pieces is read")
    return there("a request whose header comes in pieces is not answered")


@fault("M5")
def another_ones_answer(scene):
    other, host = scene.host(), scene.host()
    if host.ask(f"attach {other.uri()}", "attached 0", 5) is None:
        raise Late(f"not attached: {host.lines[-3:]}")
    host.must("ask hold", "asked 0")
    other.need("lookup 4")
    liar = scene.stranger(host)
    for tag in range(90, 300):
        with contextlib.suppress(OSError):
            liar.post(s.item(s.signed(-46)), tag=tag)
    if host.wait("answered", 2):
        return there("a tool's message is the answer of the other server")
    ended = host.ended()
    return there(f"{ended} of the server") if ended else fixed("a tool's message is no answer of the other server")


@fault("M6")
def unread_answers(scene):
    host = scene.host()
    host.must("quiet", "quiet")
    channel = scene.stranger(host, timeout=10)
    before = host.memory()
    with contextlib.suppress(OSError):
        for _ in range(400):
            channel.post(s.item(bytes([s.QUERY])) + s.query("big"))
        for _ in range(40):
            if host.memory() - before > 350:
                break
            time.sleep(0.2)
    grown = host.memory() - before
    return there(f"{grown:.0f} MiB of 400 MiB of unread answers are kept") if grown > 350 else fixed(f"{grown:.0f} MiB of 400 are kept")


@fault("M7")
def kept_for_ever(scene):
    host = scene.host()
    host.must("quiet", "quiet")

    def churn(first, n):
        for i in range(first, first + n):
            with s.tool(host.uri(), ANSWER_S, kind=s.NAMED_TOOL, name=(f"visitor{i}", 0)) as channel:
                channel.ask(s.FINALIZE)
        time.sleep(1.5)  # losses are gathered for a second
        return host.heap()
    before = churn(0, 100)
    each = (churn(100, 300) - before) / 300
    return there(f"{each / 1024:.1f} KiB stay of each tool") if each > 500 else fixed(f"{each:.0f} bytes stay of each tool")


@fault("M8")
def called_twice(scene):
    """Memory that is freed is overwritten, so that a call of what is in it is seen; of many requests, as some of it is used again."""
    hosts = [scene.host() for _ in range(2)]
    tool = scene.tool(hosts[0], MALLOC_PERTURB_="165")
    for _ in range(40):
        tool.must("lookup hold", "lookup 0")
    hosts[0].kill()
    if tool.wait("found .* call 40", 5) is None:
        return there(f"requests of a lost connection are not answered: {tool.ended() or tool.lines[-1]}")
    tool.must(f"attach {hosts[1].uri()}", "attached 0")
    hosts[1].kill()
    if tool.wait("found .* call 41", 2):
        return there("callbacks are called again at the next loss")
    ended = tool.ended(0.5)
    return there(f"{ended} of the tool at the next loss") if ended else fixed("each callback is called once")


@fault("M9")
def losses_gathered(scene):
    host = scene.host()
    scene.stranger(host).close()
    host.need(f"event {LOST_CONNECTION}", 5)
    start = len(host.lines)
    for _ in range(12):
        scene.stranger(host).close()
        time.sleep(0.35)
    if host.wait(f"event {LOST_CONNECTION}", 0, start):
        return fixed("losses are reported while others come")
    host.need(f"event {LOST_CONNECTION}", 5, start)
    return there("no loss is reported as long as there is one each 0.35 s")


@fault("M10")
def told_to_the_next(scene):
    host = scene.host()
    scene.stranger(host, kind=s.NAMED_TOOL, name=("again", 0)).close()
    host.need(f"event {LOST_CONNECTION}", 5)
    channel = scene.stranger(host, kind=s.NAMED_TOOL, name=("again", 0))
    codes = s.size(1) + s.item(s.signed(LOST_CONNECTION)) + s.infos()
    if answered(channel, s.REGEVENTS, codes) != 0:
        raise Late("no registration")
    with contextlib.suppress(OSError, EOFError):
        channel.answer()
        return there("a tool is told that the one of its name before it is lost")
    return fixed("the loss of a tool is not told to the next one of its name")
