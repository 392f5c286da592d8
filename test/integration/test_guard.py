"""libpmix-guard.so is the only library of ours that stands in for other people's functions; and who hosts a PMIx server can do without it."""
import glob
import os
import re
import shutil
import unittest

import lab
import stranger

# A line of `nm -D`: what an object has for others, and functions alone.
FUNCTION = re.compile(r"^(\S+?)(?:@\S*)? [TWi] ")


def functions(path):
    out = lab.run(["nm", "-D", "--defined-only", "--format=posix", path]).stdout
    return {match.group(1) for match in map(FUNCTION.match, out.splitlines()) if match}


def loaded(program):
    """{name: path} of the libraries that a program is linked with."""
    found = (line.split() for line in lab.run(["ldd", program]).stdout.splitlines() if " => /" in line)
    return {os.path.basename(line[0]): line[2] for line in found}


@unittest.skipIf(lab.SANITIZE, "a sanitizer's functions are in all programs")
class Symbols(unittest.TestCase):
    def test_no_function_of_others(self):
        lab.require("nm")
        libraries = loaded(lab.program("fabricd-pmix"))
        others = {}
        for library in ("libc.so", "libmunge.so", "libpmix.so"):
            found = [path for name, path in libraries.items() if name.startswith(library)]
            path, = found or glob.glob(f"/usr/lib/*/{library}.2")  # from 7 on only a component is linked with munge's
            others.update(dict.fromkeys(functions(path), library))
        self.assertIn("PMIx_server_init", others)
        ours = [lab.program(name) for name in ("fabricd", "fabricd-pmix", "fabric-host", "fabricctl")]
        ours += [path for pattern in ("libpmix*.so.*.*.*", "fabricd/*.so", "pmix/*.so")
                 for path in glob.glob(os.path.join(lab.BUILD, "lib", pattern))]
        self.assertGreater(len(ours), 6)
        for path in ours:
            found = sorted(functions(path) & set(others) - {"_init", "_fini"})
            if "libpmix-guard.so" in path:
                self.assertIn("accept", found)
            else:
                self.assertEqual(found, [], path)


class Without(unittest.TestCase):
    def daemon(self, **settings):
        """fabricd and its PMIx server of a folder in which there is no guard."""
        folder = lab.tmpdir()
        for name in ("bin", "lib"):
            os.mkdir(os.path.join(folder, name))
        for path in glob.glob(os.path.join(lab.BUILD, "lib", "*")):
            if "libpmix-guard" not in path:
                os.symlink(path, os.path.join(folder, "lib", os.path.basename(path)))
        for name in ("fabricd", "fabricd-pmix"):
            shutil.copy(lab.program(name), os.path.join(folder, "bin"))
        capture = os.path.join(folder, "capture")
        lab.replace_file(capture, lab.fabric("fattree2:2,1,2", "capture"))
        return lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}, "security": settings}, start=False,
                           binary=os.path.join(folder, "bin", "fabricd"))

    def test_on_loopback_it_serves_and_says_so(self):
        daemon = self.daemon()
        daemon.start()
        self.addCleanup(daemon.stop)
        self.assertIn("some repairs of the PMIx library are off, and libpmix-guard.so was not preloaded", daemon.log())
        with stranger.tool(daemon.uri()) as channel:
            self.assertEqual(stranger.status_of(channel.ask(stranger.QUERY, stranger.query("pmix.fab.idx"))), 0)

    def test_other_hosts_are_refused(self):
        daemon = self.daemon(remote="yes")
        daemon.start(wait=False)
        self.assertEqual(daemon.process.wait(lab.HUNG), 1)
        self.assertIn("remote = yes needs all repairs of the PMIx library, and libpmix-guard.so was not preloaded", daemon.log())


if __name__ == "__main__":
    unittest.main()
