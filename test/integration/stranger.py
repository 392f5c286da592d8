"""stranger - what somebody may send to a PMIx server who has read its protocol (version 4 of it), well-made or altered.

    with stranger.knock(daemon.uri(), stranger.first()) as channel:    # a tool without a name of its own
        channel.handshake()                                            # its name, and the server's
        channel.ask(stranger.QUERY, stranger.size(1), ...)             # the status that comes back
"""
import os
import socket
import struct

HUNG = 120 * (6 if os.environ.get("FABRICD_SANITIZE") else 1)  # seconds, as in processes.py, which needs more than this user may have
HEADER = struct.Struct("=iIII")  # who, tag, bytes, padding: a first message's in this machine's order, later ones' in the network's
NAME_SIZE = 256  # of a namespace in an answer

# Kinds of connection
CLIENT, OLD_TOOL, OLD_LAUNCHER, TOOL, NAMED_TOOL, STARTED_TOOL, LAUNCHER, NAMED_LAUNCHER, STARTED_LAUNCHER, SINGLETON = range(10)

# Commands
(REQ, ABORT, COMMIT, FENCE, GET, FINALIZE, PUBLISH, LOOKUP, UNPUBLISH, SPAWN, CONNECT, DISCONNECT, NOTIFY, REGEVENTS, DEREGEVENTS,
 QUERY, LOG, ALLOC, JOB_CONTROL, MONITOR, GET_CREDENTIAL, VALIDATE, IOF_PULL, IOF_PUSH, GROUP_CONSTRUCT, GROUP_JOIN, GROUP_INVITE,
 GROUP_LEAVE, GROUP_DESTRUCT, IOF_DEREG, FABRIC_REGISTER, FABRIC_UPDATE, DISTANCES) = range(33)
UNREACH = -25

# Types of values
BOOL, BYTE, STRING, SIZE, UINT32, STATUS, VALUE, PROC, INFO, BYTE_OBJECT, DATA_ARRAY, RANK, QUERIES = \
    1, 2, 3, 4, 14, 20, 21, 22, 24, 27, 39, 40, 41


# ---- numbers and values, as they are packed --------------------------------------------------------------------------

def flex(value):
    """A number, seven bits a byte."""
    out = bytearray()
    while len(out) < 8 and value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value):
    return flex((value << 1) if value >= 0 else ((~value) << 1) + 1)


def item(values, n=1):
    """n values, as one call packs them."""
    return signed(n) + values


def text(value):
    return signed(0) if value is None else signed(len(value) + 1) + value.encode() + b"\0"


def size(n):
    return item(flex(n))


def info(key, kind, value):
    return text(key) + flex(0) + flex(kind) + value


def infos(*all_of_them):
    return size(len(all_of_them)) + (item(b"".join(all_of_them), len(all_of_them)) if all_of_them else b"")


def query(key, *qualifiers):
    """One query of one key."""
    return size(1) + item(signed(1) + text(key) + flex(len(qualifiers)) + b"".join(qualifiers))


# ---- the first message ------------------------------------------------------------------------------------------------

def first(kind=TOOL, psec="native", uid=None, gid=None, cred=None, name=("stranger", 0), version="4.2.2", bfrops="v41", buffer=1, gds="hash",
          more=b""):
    """What the library's own tools send first, without the header."""
    uid = os.geteuid() if uid is None else uid
    gid = os.getegid() if gid is None else gid
    cred = struct.pack("=II", uid, gid) if cred is None else cred
    out = psec.encode() + b"\0" + struct.pack("!I", len(cred)) + cred + bytes([kind])
    if kind != CLIENT:
        out += struct.pack("!II", uid, gid)
    if kind not in (OLD_TOOL, OLD_LAUNCHER, TOOL, LAUNCHER):
        out += name[0].encode() + b"\0" + struct.pack("!I", name[1])
    return out + version.encode() + b"\0" + bfrops.encode() + b"\0" + bytes([buffer]) + gds.encode() + b"\0" + more


def altered(message, rng):
    """The same, with a few bytes that are others, more or fewer."""
    out = bytearray(message)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            out[at:at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            out[at:at + 1] = bytes([rng.choice((0, 1, 2, 0x7f, 0x80, 0xff))])
        elif kind == 2:
            out[at:at] = rng.randbytes(rng.randint(1, 8))
        elif kind == 3:
            del out[at:at + rng.randint(1, 8)]
        elif kind == 4:
            out[at:at + 4] = struct.pack("!I", rng.choice((0, 1, 0x7fffffff, 0x80000000, 0xffffffff, rng.getrandbits(32))))
        else:
            del out[at:]
    return bytes(out)


UPDATED, PENDING = -175, -176  # what is announced


class Channel:
    """A connection to a PMIx server."""

    def __init__(self, uri, timeout=HUNG):
        address = uri.split(";")[1].split("://")[1]
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tag = 100

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self, abruptly=False):
        if abruptly:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def read(self, n):
        """So many bytes; EOFError where the server ends the connection first."""
        out = b""
        while len(out) < n:
            try:
                part = self.socket.recv(n - len(out))
            except ConnectionError:
                part = b""
            if not part:
                raise EOFError(f"{len(out)} of {n} bytes")
            out += part
        return out

    def ended(self):
        """Does the server end the connection?"""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
        return True

    def knock(self, message, nbytes=None):
        self.send(HEADER.pack(-1, 0xffffffff, len(message) if nbytes is None else nbytes, 0) + message)
        return self

    def status(self):
        return struct.unpack("!i", self.read(4))[0]

    def handshake(self, named=False):
        """The server's answers to a good first message."""
        status = self.status()
        if status != 0:
            return status
        if not named:
            self.read(NAME_SIZE + 4)
        self.read(NAME_SIZE + 4)
        return self.status()

    def post(self, data, nbytes=None, tag=None):
        self.tag += 1
        head = struct.pack("!iIII", 0, self.tag if tag is None else tag, len(data) if nbytes is None else nbytes, 0)
        self.send(head + data)
        return self.tag

    def answer(self):
        """The next message: its tag and its bytes."""
        _, tag, n, _ = struct.unpack("!iIII", self.read(HEADER.size))
        return tag, self.read(n)

    def ask(self, command, *parts):
        """The answer to a command, whole; the status is the first number of it."""
        tag = self.post(item(bytes([command])) + b"".join(parts))
        while True:
            got, data = self.answer()
            if got == tag:
                return data


def knock(uri, message, timeout=HUNG, nbytes=None):
    return Channel(uri, timeout).knock(message, nbytes)


def tool(uri, timeout=HUNG, **options):
    """A connected stranger."""
    channel = knock(uri, first(**options), timeout)
    status = channel.handshake(named=options.get("kind", TOOL) not in (TOOL, LAUNCHER))
    if status != 0:
        channel.close()
        raise EOFError(f"status {status}")
    return channel


def status_of(data):
    """The status that an answer begins with; of an answer without a byte what the library takes it for."""
    if not data:
        return UNREACH
    assert data[0] == 2, data  # one value
    return sign(number(data, 1)[0])


def number(data, at=0):
    """The number that begins there, as flex() wrote it, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def sign(value):
    """As signed() wrote it."""
    return ~(value >> 1) if value & 1 else value >> 1


def value_of(data, key, flags=True):
    """The number that an answer or an event says of a key, as it was packed; None: it says nothing of it. What a lookup finds
    has no flags."""
    at = data.find(text(key))
    if at < 0:
        return None
    at += len(text(key))
    if flags:
        _, at = number(data, at)
    kind, at = number(data, at)
    value, _ = number(data, at)
    return sign(value) if kind in (6, 8, 9, 10, STATUS) else value


def event_of(data):
    """What a message says that is no answer: (code, index, generation)."""
    code, _ = number(data, 3)  # behind the command
    return sign(code), value_of(data, "pmix.fab.idx"), value_of(data, "pmixfab.generation")
