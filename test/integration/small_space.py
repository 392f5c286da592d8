"""small_space - run modules of tests side by side in a PID namespace whose numbers are soon used again.

usage: unshare -p --fork --kill-child --mount-proc python3 small_space.py MODULE...

It starts each module with run_test.py. Meanwhile it starts and kills sentinels, which sleep. It prints {"died": number of
sentinels that another process killed, "rounds": how often the numbers went round, "status": exit status of each module}.
"""
import json
import os
import random
import signal
import sys
import unittest

import lab

NUMBERS = 700  # of which the kernel uses those below 300 once only
SENTINELS = 60
ENDED, RUNS = 40, 8


class Stale(unittest.TestCase):
    """Processes that ended without kill_group(), and enough others that a number could be used again."""

    def test_numbers_go_round(self):
        for _ in range(ENDED):
            self.assertEqual(lab.spawn(["true"]).wait(lab.HUNG), 0)
            for _ in range(RUNS):
                self.assertEqual(lab.run(["true"]).returncode, 0)


class Space:
    def __init__(self, modules):
        with open("/proc/sys/kernel/pid_max", "w", encoding="ascii") as file:
            file.write(str(NUMBERS))
        self.sentinels, self.died, self.rounds, self.last = [], 0, 0, 0
        self.random = random.Random(NUMBERS)
        self.status = []
        run_test = os.path.join(lab.HERE, "run_test.py")
        self.modules = {os.posix_spawn(sys.executable, [sys.executable, "-B", run_test, *module.split()], os.environ)
                        for module in modules}

    def run(self):
        os.nice(5)  # the modules come first
        while self.modules:
            self.add()
            self.reap()
            if len(self.sentinels) > SENTINELS:
                self.end(self.random.randrange(len(self.sentinels)))
        while self.sentinels:
            self.end(0)

    def add(self):
        pid = os.posix_spawn("/bin/sleep", ["sleep", "600"], os.environ, setsid=True)
        self.rounds += pid < self.last
        self.last = pid
        self.sentinels.append(pid)

    def end(self, which):
        """End one of any age, so that sentinels are spread over the numbers. It is not reaped, so the number is its own."""
        pid = self.sentinels.pop(which)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def reap(self):
        """Reap all children that ended, orphans of the modules included."""
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid in self.modules:
                self.modules.remove(pid)
                self.status.append(os.waitstatus_to_exitcode(status))
            elif pid in self.sentinels:
                self.sentinels.remove(pid)
                self.died += 1


def main():
    space = Space(sys.argv[1:])
    space.run()
    print(json.dumps({"died": space.died, "rounds": space.rounds, "status": space.status}))


if __name__ == "__main__":
    main()
