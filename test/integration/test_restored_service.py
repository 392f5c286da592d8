"""The installed service, with its own user, restored by root as docs/operations.md says, under a real systemd."""
import json
import unittest

import booted
import lab

CAPTURE, STORE = "/etc/fabric.txt", "/var/lib/fabricd/fabricd.db"


class RestoredService(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if lab.SANITIZE:
            raise unittest.SkipTest("the units forbid what sanitizers need")
        cls.machine = machine = booted.Machine()
        cls.addClassCleanup(machine.shutdown)
        machine.do("cmake", "--install", lab.BUILD, timeout=120)
        machine.do("ldconfig")
        machine.do("systemd-sysusers", "fabricd.conf")
        machine.do("systemd-tmpfiles", "--create", "fabricd.conf")
        machine.do("systemctl", "daemon-reload")
        cls.text = lab.fabric("fattree2:4,2,4", "capture")
        machine.write("/etc/fabricd.conf", f"[fabricd]\nprobe = file:{CAPTURE}\ninterval = 0\n")

    def setUp(self):
        self.machine.write(CAPTURE, self.text)
        self.machine.do("systemctl", "start", "fabricd")
        self.addCleanup(self.machine.do, "sh", "-c", "systemctl stop fabricd; rm -rf /var/lib/fabricd/* /srv/fabricd.db "
                                                     "/run/fabricd; systemctl reset-failed")
        self.n = 0
        self.wait_generation(1)
        self.machine.do("install", "-d", "-o", "fabricd", "/var/backups/fabricd")
        self.machine.do("fabricctl", "backup", "/var/backups/fabricd/fabricd.db")
        # As it comes back from wherever backups are kept: root's.
        self.machine.do("mv", "/var/backups/fabricd/fabricd.db", "/srv/fabricd.db")
        self.machine.do("chown", "root:root", "/srv/fabricd.db")
        for _ in range(3):
            self.change()
        self.newest = self.status()["generation"]

    def status(self):
        done = self.machine.run(["fabricctl", "--format", "json", "status"])
        return json.loads(done.stdout) if done.returncode == 0 else None

    def wait_generation(self, least):
        def there():
            status = self.status()
            return status if status and status["generation"] >= least and status["daemon"] else None
        try:
            return lab.wait_for(there, 30, f"generation {least}")
        except lab.LabError as error:
            raise lab.LabError(f"{error}\n{self.machine.text('fabricd')}") from None

    def change(self):
        self.n += 1
        self.machine.write(CAPTURE, self.text.replace('"node0001', f'"other{self.n:04}'))
        self.machine.do("fabricctl", "refresh")

    def check_runs_again(self):
        """Restored, published with higher numbers by the service's user, and it goes on."""
        generation = self.wait_generation(self.newest + 1)["generation"]
        self.change()
        self.assertGreater(self.status()["generation"], generation)
        self.assertIn(f"generation 1 -> generation {self.newest + 1}", self.machine.do("fabricctl", "history"))
        owners = self.machine.do("stat", "--format", "%U", "/var/lib/fabricd", *self.machine.do(
            "sh", "-c", "ls -d /var/lib/fabricd/* /run/fabricd /run/fabricd/*").split())
        self.assertEqual(set(owners.split()), {"fabricd"})
        self.assertEqual(self.machine.do("stat", "--format", "%a", STORE).strip(), self.mode)
        self.machine.do("systemctl", "restart", "fabricd")
        self.assertGreater(self.wait_generation(generation + 1)["generation"], generation)
        self.assertEqual(self.machine.show("fabricd", "NRestarts"), "0")

    def test_while_it_runs(self):
        self.mode = self.machine.do("stat", "--format", "%a", STORE).strip()
        pid = self.machine.main_pid("fabricd")
        self.machine.do("fabricctl", "restore", "/srv/fabricd.db")
        self.assertEqual((self.machine.main_pid("fabricd"), self.machine.show("fabricd", "ActiveState")), (pid, "active"))
        self.check_runs_again()

    def test_while_it_is_stopped(self):
        self.mode = self.machine.do("stat", "--format", "%a", STORE).strip()
        self.machine.do("systemctl", "stop", "fabricd")
        done = self.machine.run(["fabricctl", "restore", "/srv/fabricd.db"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("as root: fabricd --restore /srv/fabricd.db", done.stderr)
        self.machine.do("fabricd", "--restore", "/srv/fabricd.db")
        self.machine.do("systemctl", "start", "fabricd")
        self.check_runs_again()


if __name__ == "__main__":
    unittest.main()
