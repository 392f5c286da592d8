"""Make the rest of a stand-in for a library: rest_of.py LIBRARY OUT.c OUT.map SOURCE...

The sources define some functions of the library. OUT.c has all its other ones, which fail, since nothing works with a
device that is only described: a number is ENOSYS, a pointer NULL. OUT.map gives all of them the library's versions.
"""
import re
import subprocess
import sys

POINTER = re.compile(r"^(ibv_(alloc|create|open|import|reg)_|ibv_qp_to_qp_ex$|_verbs_init_and_alloc_context$|verbs_open_device$)")


def symbols(library):
    """[(name, version, is it data)], the default version of each."""
    said = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\S+ +\w +(D[FO]) (?!\*)\S+\s+\S+  ([\w.]+) +(\w+)$", said, re.MULTILINE)
    return sorted((name, version, kind == "DO") for kind, version, name in found)


def main():
    library, out_c, out_map, *sources = sys.argv[1:]
    own = set()
    for path in sources:
        with open(path, encoding="ascii") as file:
            own |= set(re.findall(r"\b(\w+)\(", "".join(line for line in file if re.match(r"\w", line))))
    versions = {}
    with open(out_c, "w", encoding="ascii") as file:
        file.write("#include <errno.h>\n#include <stddef.h>\n\n")
        for name, version, is_data in symbols(library):
            versions.setdefault(version, []).append(name)
            if name in own:
                continue
            if is_data:
                file.write(f"extern char {name}[64];\nchar {name}[64];\n")
            else:
                result = ("void *", "NULL") if POINTER.match(name) else ("int ", "ENOSYS")
                file.write(f"{result[0]}{name}(void);\n{result[0]}{name}(void)\n{{\n    errno = ENOSYS;\n    return {result[1]};\n}}\n")
    with open(out_map, "w", encoding="ascii") as file:
        for version, names in sorted(versions.items()):
            hidden = "local: *; " if version == min(versions) else ""
            file.write(f"{version} {{ global: {' '.join(name + ';' for name in names)} {hidden}}};\n")


main()
