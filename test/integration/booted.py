"""booted - a machine in namespaces, booted by a real systemd, for tests of what is installed.

    booted.need()                                    # skips the test where that cannot be done
    machine = booted.Machine()
    machine.do("cmake", "--install", lab.BUILD, "--prefix", "/usr")
    machine.write("/etc/fabricd.conf", "[fabricd]\n")
    machine.do("systemctl", "daemon-reload")
    machine.run(["systemctl", "start", "fabricd"])   # .returncode, .stdout, .stderr
    machine.wait_state("fabricd", "active")
    machine.journal("fabricd")                       # [(priority, text), ...]
    machine.shutdown()

It has a process tree, mounts, a host name, System V objects, a network (lo only) and control groups of its own. Its
root is this machine's, with a layer in memory above: what it writes is gone with it, and this machine never sees it.
/dev, /run and /tmp begin empty, but for the source tree and the build folder, should they be there. No udev, no message bus, no service but the journal runs, until a
test starts one. Everything of it ends with the process that made it, however that ends.
"""
import functools
import json
import os
import re
import socket
import subprocess
import unittest

import lab

SYSTEMD = next((path for path in ("/usr/lib/systemd/systemd", "/lib/systemd/systemd") if os.path.exists(path)), None)
# What a machine without hardware does not need, and what would write settings of the kernel that all share.
MASKED = """dev-hugepages.mount kmod-static-nodes.service proc-sys-fs-binfmt_misc.automount proc-sys-fs-binfmt_misc.mount
    sys-fs-fuse-connections.mount sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount
    systemd-binfmt.service systemd-firstboot.service systemd-modules-load.service systemd-pstore.service
    systemd-random-seed.service systemd-repart.service systemd-sysctl.service systemd-sysusers.service
    systemd-timesyncd.service systemd-tmpfiles-setup-dev.service systemd-update-utmp.service
    systemd-remount-fs.service systemd-logind.service dbus.service dbus.socket systemd-journal-flush.service
    systemd-udevd.service systemd-udev-trigger.service systemd-hwdb-update.service ldconfig.service
    console-getty.service getty@tty1.service timers.target systemd-ask-password-console.path
    systemd-ask-password-wall.path""".split()
# What this machine's administrator enabled is none of ours.
DISABLED = "sysinit multi-user network-online timers getty graphical sockets"

SETUP = r"""
refused() { echo "refused: $*"; exit 1; }
top=$1 systemd=$2 target=$3; shift 3
mount -t tmpfs -o mode=755 none "$top" && mkdir "$top/upper" "$top/work" "$top/root" || refused "a tmpfs"
root=$top/root
mount -t overlay -o "lowerdir=/,upperdir=$top/upper,workdir=$top/work" overlay "$root" || refused "an overlay"
cd "$root" || refused "the root"
mount -t proc proc proc && mount --bind -o ro proc/sys proc/sys || refused "proc"
[ ! -e proc/sysrq-trigger ] || mount --bind /dev/null proc/sysrq-trigger || refused "proc"
mount -t sysfs -o ro sysfs sys && mount -t cgroup2 cgroup sys/fs/cgroup || refused "cgroup2"
mount -t tmpfs -o mode=755 none dev && mount -t tmpfs -o mode=755 none run && mount -t tmpfs none tmp || refused "a tmpfs"
chmod 1777 tmp
mkdir dev/pts dev/shm && mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts || refused "devpts"
mount -t tmpfs -o mode=1777 none dev/shm || refused "a tmpfs" # else systemd mounts one above the places there
while read -r name minor; do mknod -m 666 "dev/$name" c 1 "$minor" || refused "devices"; done <<END
null 3
zero 5
full 7
random 8
urandom 9
END
ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd; ln -s null dev/console
n=0
for place; do # after the folders that begin empty; by a name that mount's options have no signs of their own for
    n=$((n + 1))
    mkdir -p "$top/lower$n" "$top/upper$n" "$top/work$n" ".$place" && mount --bind "$place" "$top/lower$n" || refused "$place"
    mount -t overlay -o "lowerdir=$top/lower$n,upperdir=$top/upper$n,workdir=$top/work$n" overlay ".$place" || refused "$place"
done
echo 0123456789abcdef0123456789abcdef >etc/machine-id
echo booted >etc/hostname
mkdir -p run/systemd/system run/systemd/journald.conf.d
for unit in @MASKED@; do ln -s /dev/null "run/systemd/system/$unit"; done
for target_wants in @DISABLED@; do rm -rf "etc/systemd/system/$target_wants.target.wants"; done
printf '[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\nRateLimitBurst=0\nForwardToSyslog=no\nForwardToConsole=no\n' \
    >run/systemd/journald.conf.d/lab.conf
mkdir old && pivot_root . old && umount -l old && rmdir old || refused "pivot_root"
ip link set lo up 2>/dev/null
exec env -i container=lab PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    "$systemd" --system "--unit=$target" --log-target=journal --show-status=0 --crash-reboot=0
"""


def control_groups():
    """The folder of this process in the unified hierarchy, or None."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = re.findall(r"^\S+ \S+ \S+ (\S+) (\S+) .* - cgroup2 ", file.read(), re.MULTILINE)
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        here = re.search(r"^0::(/.*)$", file.read(), re.MULTILINE)
    for root, point in mounts:
        if here and root == "/":
            return os.path.join(point, here.group(1).lstrip("/"))
    return None


@functools.lru_cache(maxsize=None)
def refusal():
    """Why no machine can be booted here, or None."""
    for command in ("unshare", "nsenter", "mount", "pivot_root", "journalctl"):
        if lab.find_command(command) is None:
            return f"{command} is not installed"
    if SYSTEMD is None:
        return "systemd is not installed"
    if os.geteuid() != 0:
        return "namespaces need root"
    folder = control_groups()
    if folder is None:
        return "no unified control groups are mounted"
    if not os.access(folder, os.W_OK):
        return f"{folder} is not writable"
    done = lab.run(["unshare", "-m", "-p", "-u", "-i", "-n", "-C", "--fork", "true"])
    return f"no namespaces here: {done.stderr.strip()}" if done.returncode != 0 else None


def need():
    why = refusal()
    if why is not None:
        raise unittest.SkipTest(why)


class Machine:
    """One booted machine. Call shutdown(); what is left of it ends at exit.

    target: the unit that boot reaches
    places: folders of this machine that are visible in it wherever they are, beside the source tree and the build folder
    """

    _count = 0

    def __init__(self, target="basic.target", places=()):
        need()
        self.places = dict.fromkeys((lab.ROOT, lab.BUILD, *places))
        Machine._count += 1
        _remove_left_behind(control_groups())
        self.group = os.path.join(control_groups(), f"fabricd-lab-{os.getpid()}-{Machine._count}")
        os.mkdir(self.group)
        try:
            self._boot(target)
            self.wait_state(target, "active")
        except BaseException:
            self.shutdown()
            raise

    def _boot(self, target):
        setup = SETUP.replace("@MASKED@", " ".join(MASKED)).replace("@DISABLED@", DISABLED)
        # The control group first: a namespace of control groups has as its root the one where it is made.
        argv = ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', self.group,
                "unshare", "-m", "--propagation", "private", "-p", "-u", "-i", "-n", "-C", "--fork", "--kill-child",
                "sh", "-c", setup, "setup", lab.tmpdir(), SYSTEMD, target, *map(os.path.realpath, self.places)]
        self.process = lab.spawn(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.console = lab.Lines(self.process.stdout)
        self.pid = lab.wait_for(self._first, what="systemd to start")
        self.process.more = self.text

    def _first(self):
        """The process that has become systemd."""
        if self.process.poll() is not None:
            said = self.console.text.strip()
            if "refused: " in said:
                raise unittest.SkipTest(f"no machine can be booted here: {said}")
            raise lab.LabError(f"no boot: {said}")
        for pid in _children(self.process.pid):
            if os.path.basename(SYSTEMD) == _comm(pid):
                return pid
        return None

    # -- inside

    def prefix(self):
        """What stands before a command that is to run in the machine."""
        return [lab.find_command("nsenter"), "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p", "-C", "--wd=/", "env", "-i",
                "--chdir=/", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "SYSTEMD_PAGER=cat",
                "SYSTEMD_COLORS=0"]

    def run(self, argv, **options):
        """A command in the machine, as root: what lab.run() gives."""
        return lab.run([*self.prefix(), *argv], **options)

    def do(self, *argv, timeout=None):
        """A command that has to work; what it printed."""
        done = self.run(argv, timeout=timeout)
        if done.returncode != 0:
            raise lab.LabError(f"{' '.join(argv)}: status {done.returncode}: {done.stderr.strip()} {done.stdout.strip()}")
        return done.stdout

    def write(self, path, text, mode=0o644):
        """A whole file in the machine; folders above it are made."""
        done = self.run(["sh", "-c", 'mkdir -p "$(dirname "$1")" && printf %s "$3" >"$1" && chmod "$2" "$1"',
                         "write", path, f"{mode:o}", text])
        if done.returncode != 0:
            raise lab.LabError(f"{path}: {done.stderr.strip()}")

    def read(self, path):
        return self.do("cat", path)

    def start_munge(self):
        """munged with a key of this machine's own: the overlay shows the key of the machine below."""
        self.do("sh", "-c", "mkdir -p -m 700 /etc/munge && dd if=/dev/urandom of=/etc/munge/munge.key bs=128 count=1 && "
                "chmod 400 /etc/munge/munge.key && chown -R munge: /etc/munge && systemctl start munge")

    # -- units

    def show(self, unit, name):
        """A property of a unit: ActiveState, MainPID, NRestarts, StatusText..."""
        return self.do("systemctl", "show", "--property", name, "--value", unit).rstrip("\n")

    def wait_state(self, unit, *states):
        """Wait until the unit is in one of the states (active, inactive, failed...); that one."""
        seen = None

        def there():
            nonlocal seen
            seen = self.run(["systemctl", "show", "--property", "ActiveState", "--value", unit]).stdout.strip()
            return seen if seen in states else None
        try:
            return lab.wait_for(there, what=f"{unit} to be {' or '.join(states)}")
        except lab.LabError as error:
            raise lab.LabError(f"{error}; it is '{seen}':\n{self.text(unit)}") from None

    def main_pid(self, unit):
        """The number of the unit's main process in the machine, 0 without one."""
        return int(self.show(unit, "MainPID"))

    # -- a fabricd in it

    def until(self, what, rundir="/run/fabricd", **request):
        """Wait for what the operation `await` of its control socket waits for; the answer."""
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(lab.HUNG + 10)
            channel.connect(f"/proc/{self.pid}/root{rundir}/control.sock")
            channel.sendall((json.dumps(dict(request, op="await", until=what, deadline=min(lab.HUNG, 600))) + "\n").encode())
            with channel.makefile(encoding="utf-8") as lines:
                answer = json.loads(lines.readline())
        if not answer["ok"]:
            raise lab.LabError(f"{answer['message']}\n{self.text()}")
        return answer

    # -- the journal

    def entries(self, unit=None, *options):
        """The entries of the journal as journalctl has them, oldest first: of a unit, systemd's words on it included."""
        self.run(["journalctl", "--sync"])
        of = ["--unit", unit] if unit else []
        done = self.run(["journalctl", "--quiet", "--all", "--output", "json", *of, *options])
        return [json.loads(line) for line in done.stdout.splitlines()]

    def journal(self, unit, *options):
        """[(priority, text)] of what the unit's own processes wrote."""
        return [(int(entry["PRIORITY"]), _text(entry.get("MESSAGE"))) for entry in self.entries(unit, *options)
                if entry.get("_TRANSPORT") in ("stdout", "journal", "syslog") and entry.get("_PID") != "1"]

    def text(self, unit=None, *options):
        """The journal for people, for messages of tests."""
        return "\n".join(f"<{entry.get('PRIORITY')}> {entry.get('SYSLOG_IDENTIFIER')}: {_text(entry.get('MESSAGE'))}"
                         for entry in self.entries(unit, *options))

    # -- the end

    def shutdown(self, timeout=30):
        """Stop all units and power off, as an administrator does; then whatever is left is killed and removed."""
        process = getattr(self, "process", None)
        if process is not None and process.poll() is None and getattr(self, "pid", None):
            self.run(["systemctl", "--no-block", "poweroff"])
            try:
                process.wait(timeout * lab.SLOW)
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def kill(self):
        """The plug is pulled."""
        process = getattr(self, "process", None)
        if process is not None:
            lab.kill_group(process)
        # Its processes end with its first one, and the folders of their groups stay.
        lab.wait_for(self._remove_groups, what=f"the end of {self.group}")

    def _remove_groups(self):
        return _remove_groups(self.group)


def _remove_groups(group):
    """A control group with those in it; False: there are processes in one."""
    try:
        for folder, _, _ in os.walk(group, topdown=False):
            os.rmdir(folder)
    except OSError:
        return False
    return not os.path.exists(group)


def _remove_left_behind(folder):
    """The groups of machines whose makers were killed."""
    for name in os.listdir(folder):
        maker = re.fullmatch(r"fabricd-lab-(\d+)-\d+", name)
        if maker and not os.path.exists(f"/proc/{maker.group(1)}"):
            _remove_groups(os.path.join(folder, name))


def _children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def _comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _text(message):
    """journalctl gives bytes that are no text as numbers."""
    if isinstance(message, list):
        return bytes(message).decode("utf-8", "replace")
    return message or ""
