"""sessions - what strangers said to a PMIx server, over one or several connections, as a file that can be said again.

A line is a step; the first lines say what the file shows:

    # a count that no message has room for
    tool A {"kind": 4, "name": ["victim", 0]}     a good first message (stranger.first()) and what the server answers
    open A                                        a connection, and nothing said
    send A 00ff...                                these bytes
    hear A                                        up to a moment's wait for what the server says
    close A, reset A                              the end of it, by FIN or by RST
    change                                        what is served changes, and events go out

What the server ends goes on as if nothing had happened: it may. At the end all connections are closed.
"""
import contextlib
import json
import socket

import stranger

MOMENT = 0.05


class Player:
    """Says sessions to the server at uri. change() makes another generation."""

    def __init__(self, uri, change=None, timeout=2):
        self.uri, self.change, self.timeout = uri, change or (lambda: None), timeout
        self.channels, self.sent = {}, 0

    def play(self, steps):
        try:
            for verb, *words in steps:
                if verb in ("open", "tool", "change") or words[0] in self.channels:
                    with contextlib.suppress(OSError, EOFError):
                        getattr(self, "_" + verb)(*words)
        finally:
            for channel in self.channels.values():
                channel.close()
            self.channels.clear()

    def _open(self, name):
        if name in self.channels:
            self._close(name)
        self.channels[name] = stranger.Channel(self.uri, self.timeout)

    def _tool(self, name, options="{}"):
        options = json.loads(options)
        self._open(name)
        channel = self.channels[name].knock(stranger.first(**options))
        self.sent += 1
        channel.handshake(named=options.get("kind", stranger.TOOL) not in (stranger.TOOL, stranger.LAUNCHER))

    def _send(self, name, data):
        try:
            self.channels[name].send(bytes.fromhex(data))
            self.sent += 1
        except OSError:
            self._close(name)

    def _hear(self, name):
        channel = self.channels[name]
        channel.socket.settimeout(MOMENT)
        try:
            channel.socket.recv(65536)
        finally:
            channel.socket.settimeout(self.timeout)

    def _close(self, name):
        self.channels.pop(name).close()

    def _reset(self, name):
        self.channels.pop(name).close(abruptly=True)

    def _change(self):
        self.change()


def write(path, steps, why):
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"# {line}\n" for line in why.splitlines())
        file.writelines(" ".join(step) + "\n" for step in steps)


def read(path):
    with open(path, encoding="ascii") as file:
        return [tuple(line.rstrip("\n").split(" ", 2)) for line in file if not line.startswith("#")]


def ping(channel, key="pmix.fab.idx"):
    """A good tool's question, answered. EOFError, or TimeoutError, where it is not."""
    if stranger.status_of(channel.ask(stranger.QUERY, stranger.query(key))) != 0:
        raise EOFError("not answered")


def resident(uri, timeout):
    """A good tool that stays: when its connection ends, so has the server."""
    channel = stranger.tool(uri, timeout)
    channel.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return channel
