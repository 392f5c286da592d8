"""make_header.py HEADER OUT - write the declarations of pmixfab.h as a module of cffi's out-of-line ABI mode."""
import os
import re
import sys

import cffi


def declarations(text):
    """Return pmixfab.h for cffi's parser: without comments, directives, C++, and parts that need PMIx's own headers."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = text.replace("\\\n", " ")
    text = re.sub(r"^#ifdef (?:__cplusplus|PMIx_SERVER_API_H)\n.*?^#endif\n", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^static inline [^{;]*\{.*?^\}\n", "", text, flags=re.DOTALL | re.MULTILINE)
    numbers = re.findall(r"^#define (PMIXFAB_\w+) +(0x[0-9a-fA-F]+|[0-9]+)u? *$", text, re.MULTILINE)
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    for name, value in numbers: # cffi accepts only numbers as the length of an array
        text = text.replace(f"[{name}]", f"[{value}]")
    return "".join(f"#define {name} {value}\n" for name, value in numbers) + text + "void free(void *);\n"


def main(header, out):
    builder = cffi.FFI()
    builder.set_source("pmixfab._header", None)
    with open(header, encoding="utf-8") as file:
        builder.cdef(declarations(file.read()))
    builder.emit_python_code(out + ".new")
    os.replace(out + ".new", out)


if __name__ == "__main__":
    main(*sys.argv[1:])
