"""Faults of connections that are being made: C1 to C17."""
import contextlib
import os
import resource
import socket
import struct
import time

from play import ANSWER_S, INDEX, OUTSIDER, Late, answered, fault, fixed, harmed, inapplicable, s, there


@fault("C1")
def released_twice(scene):
    """Clients whose handshake fails give back the record of a process of a job, or of a tool of that name."""
    host = scene.host()
    scene.job(host, ranks=1)
    scene.stranger(host, kind=s.NAMED_TOOL, name=("victim", 0))
    for name in ("job", "victim"):
        all(scene.refused(host, kind=s.CLIENT, name=(name, 0), psec="nosuch") for _ in range(5))
        harm = host.harm(1.5)
        if harm:
            return there(f"{harm}: clients of the name of a {'process' if name == 'job' else 'tool'}")
    client = scene.client(host, need=False)
    if client.wait("init 0", 5):
        return fixed("the server lives, and lets in the process")
    return there(f"the process is not let in: {host.ended(0.5) or client.lines}")


@fault("C2")
def closed_twice(scene):
    host = scene.host(preload=True)
    scene.job(host, ranks=1)
    scene.refused(host, kind=s.CLIENT, name=("job", 0), cred=b"12345678")
    for _ in range(5):
        scene.refused(host, cred=b"12345678")
    harm = host.harm()
    twice = host.stderr().count("close of a closed descriptor")
    if twice:
        return there(f"{twice} failed handshakes close a closed descriptor")
    return inapplicable("the server ends first: C14") if harm else fixed("each descriptor is closed once")


@fault("C3")
def not_on_the_list(scene):
    host = scene.host()
    for i in range(20):
        with contextlib.suppress(OSError):
            scene.knock(host, kind=s.STARTED_TOOL, name=(f"started{i}", 0)).close(abruptly=True)
    harm = host.harm()
    if harm:
        return there(f"{harm}: tools that a server has started are gone before they are answered")
    scene.refused(host, cred=b"12345678")
    if host.harm():
        return fixed("tools that are gone do no harm; refused ones: see C14")
    scene.stranger(host, kind=s.NAMED_TOOL, name=("victim", 0))
    for _ in range(5):
        scene.refused(host, kind=s.STARTED_TOOL, name=("victim", 0), cred=b"12345678")
    return harmed(host)


@fault("C4")
def silence(scene):
    host = scene.host()
    with scene.connect(host):
        time.sleep(0.2)
        if not host.serves(2):
            return there("no tool is answered while one connection is silent")
    return fixed("tools are answered while one connection is silent")


@fault("C5")
def credential_length(scene):
    host = scene.host()
    for length in (0xffffffff, 0x7fffffff, 1 << 20):
        message = s.first()
        at = message.index(b"\0") + 1
        message = message[:at] + struct.pack("!I", length) + message[at + 4:]
        with contextlib.suppress(OSError), s.knock(host.uri(), message, ANSWER_S) as channel:
            channel.ended()
    return harmed(host)


@fault("C6", "C16")
def no_descriptor(scene):
    """No descriptor is left when a connection comes."""
    host = scene.host()
    used = {int(fd) for fd in os.listdir(f"/proc/{host.pid}/fd")}
    least = min(set(range(len(used) + 1)) - used)
    before = resource.prlimit(host.pid, resource.RLIMIT_NOFILE, (least, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with contextlib.suppress(OSError), scene.connect(host):
        time.sleep(1)
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(host.pid, resource.RLIMIT_NOFILE, before)
    time.sleep(0.5)
    if host.serves():
        both = fixed("connections are accepted again when there are descriptors")
        return {"C6": both, "C16": both}
    ended = host.ended(1)
    try:
        scene.connect(host)
        closed = False
    except OSError:
        closed = True
    if ended:
        return {"C6": fixed("see C16"), "C16": there(f"{ended} of the server")}
    if closed:
        return {"C6": fixed("see C16"), "C16": there("the listening socket is closed for good")}
    return {"C6": there("connections are not accepted any more"), "C16": fixed("the listening socket stays; see C6")}


@fault("C7")
def no_delay(scene):
    host = scene.host()
    scene.stranger(host)
    with_it, without = map(int, host.must("sockets", r"sockets (\d+) (\d+)").groups())
    if with_it + without != 1:
        raise Late(f"{with_it + without} sockets")
    return there("an accepted socket has no TCP_NODELAY") if without else fixed("an accepted socket has TCP_NODELAY")


@fault("C8")
def said_uid(scene):
    """Two numbers of a first message are the user."""
    if os.geteuid() != 0:
        return inapplicable("only root can try as another user")
    host = scene.host()
    script = ("try:\n    s.tool(uri, 3, uid=0, gid=0)\n    print('root')\n"
              "except (EOFError, OSError):\n    print('refused')\n")
    said = scene.outsider(host, script)
    return there("another user who writes two zeros is root") if said == ["root"] else fixed("another user who writes two zeros is refused")


def munge_connection(scene, host, credential):
    channel = scene.knock(host, psec="munge", cred=credential)
    time.sleep(0.5)
    return channel if "credential of bytes" in host.stderr() else None


@fault("C9")
def credentials_hold_up(scene):
    host = scene.host(preload=True, UPSTREAM_MUNGE_DELAY="4")
    if munge_connection(scene, host, b"MUNGE:0123456789:\0") is None:
        return inapplicable("this build has no psec/munge")
    if host.serves(2):
        return fixed("tools are answered while munge opens a credential")
    return there("no tool is answered while munge opens a credential")


@fault("C13")
def credential_without_end(scene):
    """24 bytes fill what malloc() gives for them: the byte behind them belongs to it, and is not zero."""
    host = scene.host(preload=True)
    if munge_connection(scene, host, b"MUNGE:" + b"x" * 18) is None:
        return inapplicable("this build has no psec/munge")
    read = int(host.stderr().split("credential of bytes ")[1].split()[0])
    return there(f"{read} bytes are read of a credential of 24") if read > 24 else fixed("no byte behind the credential is read")


@fault("C10")
def events_of_closed(scene):
    host = scene.host(preload=True)
    scene.stranger(host)
    busy = scene.stranger(host)
    for _ in range(8):
        busy.post(s.item(bytes([s.QUERY])) + s.query("big"))
    time.sleep(0.5)
    host.must("finalize", "finalized 0")
    found = host.stderr().count("event of a closed descriptor")
    return there(f"{found} events are deleted after their descriptor is closed") if found else fixed("events are deleted first")


def on_port(scene, port):
    """A host that is told its port: whether it has it, and the host."""
    host = scene.bare(PMIX_MCA_ptl_base_ipv4_port=str(port))
    return host.uri(5) is not None and host.port() == port and host.serves(), host


def free_port():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        return other.getsockname()[1]


@fault("C11")
def port_is_kept(scene):
    if not on_port(scene, free_port())[0]:
        raise Late("a free port is not taken")
    host = scene.host()
    scene.stranger(host)
    port = host.port()
    host.kill()
    good, second = on_port(scene, port)
    if good:
        return fixed("the next server has the port")
    return there(f"the next server does not get the port: {second.ended() or 'it has ' + ('another one' if second.uri(0.1) else 'none')}")


@fault("C12")
def no_port(scene):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        good, host = on_port(scene, other.getsockname()[1])
        if good:
            raise Late("the port was free")
        init = host.wait(r"init (-?\d+)", 0)
        if init and init.group(1) != "0":
            return fixed(f"PMIx_server_init() returns {init.group(1)}")
        uri = host.uri(0.1)
        if uri is not None:
            return fixed("the server has taken another port")
        ended = host.ended(0)
        return there(f"PMIx_server_init() {'returns success' if init else 'does not return'}: {ended or 'no address'}")


@fault("C14", "F13")
def namespace_not_on_list(scene):
    host = scene.host()
    for _ in range(5):
        scene.refused(host, psec="nosuch")
    return harmed(host)


@fault("C15")
def same_name(scene):
    """The bytes behind the list, which are taken for the first tool's user, may be zero: the user is not root."""
    user = OUTSIDER if os.geteuid() == 0 else None
    ids = {} if user is None else {"uid": user, "gid": user}
    host = scene.host(user=user)
    scene.stranger(host, kind=s.NAMED_TOOL, name=("again", 0), **ids)
    try:
        second = scene.stranger(host, kind=s.NAMED_TOOL, name=("again", 1), **ids)
    except (EOFError, OSError) as error:
        return there(f"the second tool of a namespace is refused: {host.ended(0.5) or error}")
    if answered(second, s.QUERY, s.query(INDEX)) != 0:
        return there("the second tool of a namespace is not answered")
    return fixed("two tools of one namespace are served")


@fault("C17")
def never_read(scene):
    host = scene.host()
    scene.job(host)
    first = scene.client(host, rank=0)
    first.must("register", "fabric")
    host.must("forget job 0", "forgotten")
    second = scene.client(host, rank=1, need=False)
    if second.wait("init 0", 6) is None:
        return there("PMIx_Init() of the next process hangs")
    return fixed("the next process is served")
