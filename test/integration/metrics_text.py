"""metrics_text - a strict reader of Prometheus' text format."""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf'({NAME})(?:\{{({NAME})="((?:[^"\\\n]|\\[\\n"])*)"(?:,severity="\w+")?\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)')


def parse(text):
    """A strict reading: {(name, label value or ""): number}, {name: type}."""
    assert text.endswith("\n") and "\n\n" not in text and "\r" not in text
    samples, types, helps = {}, {}, {}
    current = None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, words = line[7:].split(" ", 1)
            assert name not in helps, f"{name} is described twice"
            assert re.fullmatch(NAME, name) and words.endswith(".") and "\\" not in words, line
            helps[name] = words
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name in helps and name not in types and kind in ("counter", "gauge"), line
            assert (kind == "counter") == name.endswith("_total"), f"{name} is a {kind}"
            assert name.startswith("fabricd_") and not re.search(r"_(ms|milli\w*|kb|mib)(_|$)", name), name
            types[name] = kind
            current = name
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, _, value, number = match.groups()
            assert name == current, f"{name} does not stand below its type"
            assert (name, value or "") not in samples, f"twice: {line}"
            samples[name, value or ""] = float(number)
    assert set(types) == set(helps)
    assert {name for name, _ in samples} <= set(types)
    return samples, types
