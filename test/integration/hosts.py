"""hosts - several hosts on this machine: namespaces of their own, joined by cables.

    need()                                  # skips the test where that cannot be done
    a, b = Host("a"), Host("b")
    a.cable(b, "10.91.0.1", "10.91.0.2")
    a.run(["ip", "addr"])

A host is a process that sleeps in a network and a mount namespace of its own. Everything of it - interfaces, mounts -
is gone when that process is, and that ends with the test that made it, however the test ends.
"""
import os
import subprocess
import unittest

import lab


def need():
    lab.require("ip", "unshare", "nsenter", "mount")
    if os.geteuid() != 0:
        raise unittest.SkipTest("network namespaces need root")
    done = lab.run(["unshare", "-n", "-m", "true"])
    if done.returncode != 0:
        raise unittest.SkipTest(f"no namespaces here: {done.stderr.strip()}")


class Host:
    """A network and a mount namespace; commands run in it by prefix(). network: another host whose network it has."""

    def __init__(self, name, network=None):
        self.name = name
        self.links = 0
        apart = ["-m", "--propagation", "private", "sleep", "infinity"]
        self.process = lab.spawn([*network.prefix(), "unshare", *apart] if network else ["unshare", "-n", *apart],
                                 stdin=subprocess.DEVNULL)
        lab.wait_for(self._apart, what=f"the namespaces of host {name}")
        if network is None:
            self.do("ip", "link", "set", "lo", "up")

    def _apart(self):
        """unshare has become sleep, so it is in the namespaces."""
        with open(f"/proc/{self.process.pid}/comm", encoding="ascii") as file:
            return file.read().strip() == "sleep"

    def prefix(self):
        """What stands before a command that is to run on this host."""
        return [lab.find_command("nsenter"), f"--net=/proc/{self.process.pid}/ns/net",
                f"--mount=/proc/{self.process.pid}/ns/mnt"]

    def run(self, argv, **options):
        return lab.run([*self.prefix(), *argv], **options)

    def do(self, *argv):
        """Run a command that has to work."""
        done = self.run(argv)
        if done.returncode != 0:
            raise lab.LabError(f"host {self.name}: {' '.join(argv)}: {done.stderr.strip()}")
        return done.stdout

    def cable(self, other, here, there):
        """A cable to another host, with an address at each end."""
        mine, theirs = f"eth{self.links}", f"eth{other.links}"
        self.do("ip", "link", "add", mine, "type", "veth", "peer", "name", theirs, "netns", str(other.process.pid))
        for host, interface, address in ((self, mine, here), (other, theirs, there)):
            host.do("ip", "addr", "add", f"{address}/24", "dev", interface)
            host.do("ip", "link", "set", interface, "up")
            host.links += 1

    def show(self, folder, at):
        """Let this host alone see a folder at another place, one that need not exist."""
        # The nearest folder above that exists becomes an empty one, in which the place is made.
        above = at
        while not os.path.isdir(above):
            above = os.path.dirname(above)
        if above != at:
            self.do("mount", "-t", "tmpfs", "none", above)
            self.do("mkdir", "-p", at)
        self.do("mount", "--bind", folder, at)

    def hide(self, folder):
        """Let this host see an empty folder there."""
        self.do("mount", "-t", "tmpfs", "none", folder)

    def stop(self):
        lab.kill_group(self.process)


class Munged:
    """A munged with a key and a socket of its own, which stands on no host but those that it is shown on."""

    PLACE = "/run/munge"  # compiled into its library

    def __init__(self):
        lab.require("munged")
        self.dir = lab.tmpdir()
        key = os.path.join(self.dir, "key")
        with open(key, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(os.urandom(128))
        self.socket = os.path.join(self.dir, "munge.socket.2")
        self.process = lab.spawn(["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.socket}",
                                  *(f"--{name}-file={self.dir}/{name}" for name in ("pid", "log", "seed"))],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lab.wait_for(lambda: os.path.exists(self.socket), what="munged")

    def show_on(self, host):
        host.show(self.dir, self.PLACE)

    def stop(self):
        lab.kill_group(self.process)


class Fabricd(lab.Fabricd):
    """fabricd on a host."""

    def __init__(self, host, *args, **options):
        self.on = host
        super().__init__(*args, **options)

    def command(self, *args):
        return [*self.on.prefix(), *super().command(*args)]
