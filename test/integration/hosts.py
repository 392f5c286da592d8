"""hosts - several hosts on this machine: namespaces of their own, joined by cables.

    need()                                  # skips the test where that cannot be done
    a, b = Host("a"), Host("b")
    a.cable(b, "10.91.0.1", "10.91.0.2")
    a.run(["ip", "addr"])

A host is a process that sleeps in a network and a mount namespace of its own. Everything of it - interfaces, mounts -
is gone when that process is, and that ends with the test that made it, however the test ends.
"""
import json
import os
import subprocess
import unittest

import isolate
import lab
import news


def need():
    lab.require("ip", "unshare", "nsenter", "mount")
    if os.geteuid() != 0:
        raise unittest.SkipTest("network namespaces need root")
    done = lab.run(["unshare", "-n", "-m", "true"])
    if done.returncode != 0:
        raise unittest.SkipTest(f"no namespaces here: {done.stderr.strip()}")


class Host:
    """A network and a mount namespace; commands run in it by prefix(). network: another host whose network it has; of: the
    folder with which it ends (lab.spawn())."""

    def __init__(self, name, network=None, of=None):
        self.name = name
        self.links = 0
        self.process = lab.spawn(self.apart(network), of=of, stdin=subprocess.DEVNULL)
        lab.wait_for(self.is_apart, what=f"the namespaces of host {name}")
        if network is None:
            self.do("ip", "link", "set", "lo", "up")

    def apart(self, network):
        """The command that makes its namespaces and stays in them."""
        apart = ["-m", "--propagation", "private", "sleep", "infinity"]
        return [*network.prefix(), "unshare", *apart] if network else ["unshare", "-n", *apart]

    def is_apart(self):
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
        # In this process's mount namespace, whose /proc has the other host's process.
        done = lab.run([lab.find_command("nsenter"), f"--net=/proc/{self.process.pid}/ns/net", "ip", "link", "add", mine,
                        "type", "veth", "peer", "name", theirs, "netns", f"/proc/{other.process.pid}/ns/net"])
        if done.returncode != 0:
            raise lab.LabError(f"host {self.name}: cable {mine}: {done.stderr.strip()}")
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

    def knows(self, names):
        """Let this host resolve names, {"name": "address"}, and no others."""
        path = os.path.join(lab.tmpdir(), "hosts")
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{address} {name}\n" for name, address in {"localhost": "127.0.0.1", **names}.items())
        self.do("mount", "--bind", path, "/etc/hosts")

    def hide(self, folder):
        """Let this host see an empty folder there."""
        self.do("mount", "-t", "tmpfs", "none", folder)

    def stop(self):
        lab.kill_group(self.process)


class Munged:
    """A munged with a key and a socket of its own, which stands on no host but those that it is shown on.

    on: the host that it runs on; origin: the address that its credentials come from; key: another one's, whose
    credentials it shares.
    """

    PLACE = "/run/munge"  # compiled into its library

    def __init__(self, on=None, origin=None, key=None):
        lab.require("munged")
        self.dir = lab.tmpdir()
        self.key = key.key if key else os.path.join(self.dir, "key")
        if key is None:
            with open(self.key, "wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(os.urandom(128))
        self.socket = os.path.join(self.dir, "munge.socket.2")
        self.process = lab.spawn([*(on.prefix() if on else []), lab.find_command("munged"), "--foreground", "--force",
                                  f"--key-file={self.key}", f"--socket={self.socket}",
                                  *([f"--origin={origin}"] if origin else []),
                                  *(f"--{name}-file={self.dir}/{name}" for name in ("pid", "log", "seed"))],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        news.until_file(self.socket, lambda: os.path.exists(self.socket), "munged", self.process)

    def show_on(self, host):
        host.show(self.dir, self.PLACE)

    def stop(self):
        lab.kill_group(self.process)


def own_munged():
    """A munged of the module's own, which all of it sees at the usual place: call it in setUpModule()."""
    isolate.need()
    munged = Munged(origin="127.0.0.1")
    os.symlink(munged.dir, Munged.PLACE)
    unittest.addModuleCleanup(munged.stop)
    unittest.addModuleCleanup(os.unlink, Munged.PLACE)
    return munged


class Fabricd(lab.Fabricd):
    """fabricd on a host."""

    def __init__(self, host, *args, **options):
        self.on = host
        super().__init__(*args, **options)

    def command(self, *args):
        return [*self.on.prefix(), *super().command(*args)]


class Node(Fabricd):
    """fabricd in the role node on a host; it looks when it is told to, unless configured otherwise."""

    def __init__(self, host, name, scheduler, config=None, **options):
        sections = {"fabricd": {"role": "node", "host": name, "scheduler": scheduler, "store": None, "log": "debug"},
                    "nodes": {"mirror_delay_ms": 0}}
        for section, settings in (config or {}).items():
            sections.setdefault(section, {}).update(settings)
        super().__init__(host, config=sections, **options)

    def start(self, wait=True):
        """wait: until it mirrors the scheduler and that holds what it has delivered."""
        super().start(wait=False)
        if wait:
            self.wait_up()
            self.until_status(lambda status: not status["stale"])
        return self

    def wait_status(self, condition, what):
        """Until its status is as wanted, which is read after each line of its log; the status."""
        def right():
            status = self.try_control("status")
            return status if status and condition(status) else None
        try:
            return self.until_file(self.log_path, right, f"the node {what}")
        except lab.LabError as error:
            raise lab.LabError(f"{error}\n{self.try_control('status')}") from None

    def wait_delivered(self):
        """Until the scheduler has acknowledged what it has."""
        self.until("idle")
        return self.until_status(lambda status: status["digest"] and status["held"] == status["digest"] and
                                 not status["delivering"], "delivery")


class Lldpd:
    """lldpd on a host, by a name of its own, on all its cables. It hides /run and shows the host its own /sys.

    config: lines for lldpcli. Before a munged is shown on the host, since that stands in /run.
    """

    def __init__(self, host, name, *config):
        self.on = host
        self.dir = lab.tmpdir()
        self.socket = os.path.join(self.dir, "socket")
        path = os.path.join(self.dir, "conf")
        with open(path, "wb") as file:
            for line in (f"configure system hostname {name}", "configure lldp tx-interval 1", *config):
                file.write(line.encode("utf-8", "surrogateescape") + b"\n")
        host.hide("/run")
        host.do("mkdir", "/run/lldpd", "/run/munge")
        host.do("mount", "-t", "sysfs", "none", "/sys")  # this namespace's
        self.process = lab.spawn([*host.prefix(), "lldpd", "-d", "-u", self.socket, "-I", "eth*", "-O", path],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def heard(self):
        """Interface -> what lldpctl says of the neighbour in its simplest form."""
        done = self.on.run(["lldpctl", "-u", self.socket, "-f", "keyvalue"])
        found = {}
        for line in done.stdout.splitlines() if done.returncode == 0 else ():
            key, _, value = line.partition("=")
            words = key.split(".", 2)
            if len(words) == 3:
                found.setdefault(words[1], {}).setdefault(words[2], value)
        return found

    def wait(self, *interfaces):
        lab.wait_for(lambda: set(self.heard()) == set(interfaces), what=f"lldpd hearing {interfaces}")

    def look(self, *args):
        env = dict(os.environ, LLDPD_SOCKET=self.socket)
        return self.on.run([lab.program("scan_dump"), *(args or ("lldp",))], env=env)

    def items(self, *args):
        done = self.look(*args)
        if done.returncode != 0:
            raise lab.LabError(done.stderr)
        return json.loads(done.stdout)["items"]

    def stop(self):
        lab.kill_group(self.process)
