"""A PMIx library of the right version that does not call fabricd's repairs: what depends on them is refused by name.

The library is a copy of the machine's with a few bytes changed, as a linker makes them with -Bsymbolic, with
-Bsymbolic-functions, or where a function is hidden.
"""
import os
import struct
import unittest

import lab
import stranger
import versions

PAIR = struct.Struct("<QQ")  # of the dynamic section
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
NULL, PLTRELSZ, STRTAB, SYMTAB, RELA, RELASZ, SYMBOLIC, JMPREL = 0, 2, 5, 6, 7, 8, 16, 23


class Library:
    """An ELF file of 64 bits whose sections lie in the file where they are in memory, but for a shift of each segment."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = bytearray(file.read())
        start, size, n = struct.unpack_from("<Q", self.data, 32)[0], *struct.unpack_from("<HH", self.data, 54)
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.data, start + i * size) for i in range(n)]
        self.dynamic = next(segment for segment in self.segments if segment[0] == 2)
        self.tags = dict(reversed([PAIR.unpack_from(self.data, at) for at in self.entries()]))

    def entries(self):
        _, _, offset, _, _, size, _, _ = self.dynamic
        return range(offset, offset + size, PAIR.size)

    def at(self, address):
        """Where in the file that address is."""
        return next(address - where + offset for kind, _, offset, where, _, size, _, _ in self.segments
                    if kind == 1 and where <= address < where + size)

    def name(self, number):
        start = self.at(self.tags[STRTAB]) + SYMBOL.unpack_from(self.data, self.symbol(number))[0]
        return self.data[start:self.data.index(0, start)].decode()

    def symbol(self, number):
        return self.at(self.tags[SYMTAB]) + number * SYMBOL.size

    def relocations(self, name):
        """Where its relocations by that name are."""
        for table, size in ((RELA, RELASZ), (JMPREL, PLTRELSZ)):
            for at in range(self.at(self.tags[table]), self.at(self.tags[table]) + self.tags[size], RELOCATION.size):
                number = RELOCATION.unpack_from(self.data, at)[1] >> 32
                if number and self.name(number) == name:
                    yield at

    # ---- what a linker may do ----

    def make_symbolic(self):
        spare = [at for at in self.entries() if PAIR.unpack_from(self.data, at)[0] == NULL]
        PAIR.pack_into(self.data, spare[0], SYMBOLIC, 0)  # the last one ends the section

    def bind(self, name, other):
        """Calls of it find the function that `other` calls, as if they had not been looked up by its name."""
        instead = RELOCATION.unpack_from(self.data, next(iter(self.relocations(other))))[1] >> 32
        for at in list(self.relocations(name)):
            offset, info, addend = RELOCATION.unpack_from(self.data, at)
            RELOCATION.pack_into(self.data, at, offset, info & 0xffffffff | instead << 32, addend)

    def protect(self, name):
        at = self.symbol(RELOCATION.unpack_from(self.data, next(iter(self.relocations(name))))[1] >> 32)
        fields = list(SYMBOL.unpack_from(self.data, at))
        fields[2] = 3
        SYMBOL.pack_into(self.data, at, *fields)

    def hide(self, name, other):
        """It is found by the other's name only."""
        here, there = (self.symbol(RELOCATION.unpack_from(self.data, next(iter(self.relocations(one))))[1] >> 32) for one in (name, other))
        self.data[here:here + 4] = self.data[there:there + 4]


@unittest.skipUnless(versions.DOOR and struct.calcsize("P") == 8 and os.uname().machine in ("x86_64", "aarch64"),
                     "no repairs for this library, or another machine")
class Unreached(unittest.TestCase):
    OTHER = "pmix_server_get_credential"

    def start(self, change, remote):
        """fabricd with a library that was changed so, once it has started or ended."""
        path = next(line.split()[2] for line in lab.run(["ldd", lab.program("fabricd-pmix")]).stdout.splitlines() if "libpmix.so" in line)
        library = Library(path)
        change(library)
        folder = lab.tmpdir()
        with open(os.path.join(folder, os.path.basename(path)), "wb") as file:
            file.write(library.data)
        capture = os.path.join(folder, "capture")
        lab.replace_file(capture, lab.fabric("fattree2:4,2,4", "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}, "security": {"remote": "yes" if remote else "no"}},
                             env={"LD_LIBRARY_PATH": folder}, start=False)
        if remote:
            daemon.start(wait=False)
            self.assertEqual(daemon.process.wait(lab.HUNG), 1)
        else:
            daemon.start()
            self.addCleanup(daemon.stop)
        return daemon

    def refused(self, change, name):
        log = self.start(change, True).log()
        self.assertIn("remote = yes needs all repairs of the PMIx library, and ", log)
        self.assertIn(f"does not call the repair of {name}()", log)

    def test_symbolic(self):
        self.refused(Library.make_symbolic, "pmix_bfrops_base_assign_module")

    def test_one_function_is_bound_in_the_library(self):
        for name in ("pmix_server_get", "pmix_ptl_base_send_handler", "pmix_ptl_base_process_msg"):
            with self.subTest(name):
                self.refused(lambda library, name=name: library.bind(name, self.OTHER), name)

    def test_a_protected_function(self):
        self.refused(lambda library: library.protect("pmix_ptl_base_recv_handler"), "pmix_ptl_base_recv_handler")

    def test_a_hidden_function(self):
        self.refused(lambda library: library.hide("pmix_server_fabric_update", self.OTHER), "pmix_server_fabric_update")

    def test_a_system_function_under_another_name(self):
        self.refused(lambda library: library.bind("accept", "close"), "accept")

    def test_without_remote_it_says_so_and_serves(self):
        daemon = self.start(Library.make_symbolic, False)
        self.assertIn("some repairs of the PMIx library are off, and ", daemon.log())
        with stranger.tool(daemon.uri()) as channel:
            self.assertEqual(stranger.status_of(channel.ask(stranger.QUERY, stranger.query("pmix.fab.idx"))), 0)

    @unittest.skipIf(versions.PMIX != (4, 2, 2), versions.HOST)
    def test_host(self):
        path = next(line.split()[2] for line in lab.run(["ldd", lab.program("fabricd-pmix")]).stdout.splitlines() if "libpmix.so" in line)
        library, folder = Library(path), lab.tmpdir()
        library.make_symbolic()
        with open(os.path.join(folder, os.path.basename(path)), "wb") as file:
            file.write(library.data)
        done = lab.run([lab.program("fabric-host"), "--rundir", os.path.join(folder, "run"), "-n", "1", "true"],
                       env={**os.environ, "LD_LIBRARY_PATH": folder})
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"fabric-host needs .*does not call the repair of pmix_server_fabric_register\(\)")


if __name__ == "__main__":
    unittest.main()
