"""ctl_case - fabricctl without a daemon: on a run directory with snapshots of generated fabrics, and with a daemon whose answers
the test gives."""
import csv
import io
import json
import os
import socket
import unittest

import sim

LEAVES, SPINES, HOSTS = 4, 2, 4
FABRIC = f"fattree2:{LEAVES},{SPINES},{HOSTS}"


class Case(unittest.TestCase):
    """A run directory of its own with one plane."""
    facts = False

    def setUp(self):
        self.site = sim.Site("fattree2:2,1,1", start=False)
        self.addCleanup(self.site.free)
        self.rundir = self.site.rundir
        self.site.snapshot(FABRIC, facts=self.facts)

    def ctl(self, *args, status=0, lines=1):
        """Run it, look at its status and at the form of what it complains about; standard output."""
        done = self.site.ctl(*args)
        self.assertEqual(done.returncode, status, f"{args}: {done.stderr}")
        self.complaint = done.stderr
        if status != 0 and done.stderr:
            self.assertEqual(done.stderr.count("\n"), lines, done.stderr)
            self.assertTrue(done.stderr.startswith("fabricctl: "), done.stderr)
        return done.stdout

    def value(self, *args, **options):
        return json.loads(self.ctl("--format", "json", *args, **options))

    def rows(self, *args):
        return list(csv.DictReader(io.StringIO(self.ctl("--format", "csv", *args))))

    def daemon(self, **answers):
        daemon = Daemon(self.site, answers)
        self.addCleanup(daemon.close)
        return daemon


class Daemon:
    """Answers one request a connection, by what `answers` holds for its op: lines, objects, or a function."""

    def __init__(self, site, answers):
        self.answers, self.requests = answers, []
        self.path = os.path.join(site.rundir, "control.sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.listener.setblocking(False)
        site.while_waiting(self.serve)

    def serve(self):
        """Answer whoever has asked."""
        try:
            connection, _ = self.listener.accept()
        except BlockingIOError:
            return False
        connection.setblocking(True)
        with connection, connection.makefile("rwb") as stream:
            request = json.loads(stream.readline())
            self.requests.append(request)
            answer = self.answers[request["op"]]
            for line in answer(request) if callable(answer) else answer:
                stream.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        return True

    def close(self):
        self.listener.close()
        if os.path.exists(self.path):
            os.unlink(self.path)
