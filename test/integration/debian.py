"""debian - a fresh Debian 12 in a folder, for tests of packages.

    debian.need()                            # skips the test where that cannot be done
    root = debian.Root()                     # debootstrap, from where this machine's apt gets its packages
    root.do("apt-get", "install", "/debs/x.deb")
    root.spawn(["sleep", "9"])

Its mounts and processes are in namespaces of their own, which end with the process that made them, however that ends.
"""
import os
import subprocess
import unittest

import lab

RELEASE = "bookworm"


def sources():
    """The lines of a sources.list with what this machine's apt knows of Debian 12."""
    done = lab.run(["apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
                    "Created-By: Packages", "Origin: Debian"])
    lines = [line for line in done.stdout.splitlines() if line.split()[2].split("-")[0] == RELEASE]
    return sorted(dict.fromkeys(lines), key=lambda line: len(line.split()[2]))  # the release itself comes first


def need():
    """Skip the test where no such root can be made."""
    lab.require("apt-get", "debootstrap", "unshare", "nsenter")
    if os.geteuid() != 0:
        raise unittest.SkipTest("debootstrap needs root")
    if not sources():
        raise unittest.SkipTest(f"this machine's apt knows no mirror of {RELEASE} (apt-get update?)")
    done = lab.run(["unshare", "--mount", "--pid", "--fork", "true"])
    if done.returncode != 0:
        raise unittest.SkipTest(f"no namespaces here: {done.stderr.strip()}")


class Root:
    def __init__(self):
        need()
        self.path = lab.tmpdir()
        # Whatever folder that is: debootstrap makes devices in it.
        hold = 'mount --bind "$0" "$0" && mount -o remount,bind,dev,suid,exec "$0" && echo up && read -r end'
        self.holder = lab.spawn(["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
                                 "sh", "-c", hold, self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "up\n":
            raise unittest.SkipTest("a folder cannot be mounted here")
        lines = sources()
        self.proxy = lab.run(["apt-config", "dump", "--format", "%v%n", "Acquire::http::Proxy"]).stdout.strip()
        self._check(self._inside(["debootstrap", "--variant=minbase", RELEASE, self.path, lines[0].split()[1]],
                                 env=self._env(), timeout=900))
        self.write("/etc/apt/sources.list", "".join(line + "\n" for line in lines))
        self.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)  # no service starts here
        self._check(self._inside(["mount", "-t", "proc", "proc", self.path + "/proc"]))
        self.do("apt-get", "-q", "update")

    def _env(self):
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive"}
        return dict(env, http_proxy=self.proxy) if self.proxy else env

    def _enter(self, argv):
        namespaces = f"/proc/{self.holder.pid}/ns"
        return ["nsenter", f"--mount={namespaces}/mnt", f"--pid={namespaces}/pid_for_children", *argv]

    def _inside(self, argv, **options):
        return lab.run(self._enter(argv), **options)

    @staticmethod
    def _check(done):
        if done.returncode != 0:
            said = done.stdout[-3000:] + done.stderr[-3000:]
            raise lab.LabError(f"{' '.join(done.args)}: status {done.returncode}\n{said}")
        return done.stdout

    def run(self, argv, **options):
        """A command in it, as root: what lab.run() gives."""
        return self._inside(["chroot", self.path, *argv], env=self._env(), **options)

    def do(self, *argv, timeout=900):
        """A command that has to work; what it printed."""
        return self._check(self.run(argv, timeout=timeout))

    def spawn(self, argv, **options):
        """A command in it that goes on: what lab.spawn() gives."""
        return lab.spawn(self._enter(["chroot", self.path, *argv]), env=self._env(), **options)

    def inside(self, path):
        """Where this machine has a path of it."""
        return self.path + path

    def write(self, path, text, mode=0o644):
        with open(self.inside(path), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.inside(path), mode)

    def files(self, *without):
        """{path: (mode, user, group)} of all that is in it but proc and what is below the folders `without`."""
        found = {}
        for folder, folders, names in os.walk(self.path):
            here = folder[len(self.path):]
            folders[:] = [name for name in folders if f"{here}/{name}" not in ("/proc", *without)]
            for name in folders + names:
                info = os.lstat(os.path.join(folder, name))
                found[f"{here}/{name}"] = (oct(info.st_mode), info.st_uid, info.st_gid)
        return found

    def end(self):
        """Its processes and mounts; the folder goes with the lab's."""
        lab.kill_group(self.holder)
        self.holder.stdin.close()
        self.holder.stdout.close()
