"""tables - the tables of docs/upstream.md: the words of a fault stand there, and its signs are made of what run.py has found."""
import json
import re

LETTERS = "CMRF"
MARK = re.compile(r"(?ms)^<!-- results (\w) -->\n(.*?)^<!-- end -->\n")
SIGN = {"there": "x", "fixed": "-", "n/a": "n/a"}
UNSHOWN = "o"


def key(version):
    return tuple(map(int, re.findall(r"\d+", version)))


def read(paths):
    """Of each version, in their order, the faults: [answer, why]."""
    found = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            one = json.load(file)
        found.setdefault(one["version"], {}).update(one["faults"])
    wrong = [f"{version} {name}: {why}" for version, faults in found.items() for name, (answer, why) in faults.items()
             if answer not in SIGN]
    if wrong:
        raise SystemExit(f"run.py: {'; '.join(wrong)}")
    return dict(sorted(found.items(), key=lambda item: key(item[0])))


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def remarks(rows, found):
    """Why a check did not apply."""
    of = {}
    for name, _ in rows:
        for version, faults in found.items():
            if faults.get(name, [""])[0] == "n/a":
                of.setdefault(faults[name][1], {}).setdefault(name, []).append(version)
    return "".join(f"\nn/a: {why} ({'; '.join(name + ' with ' + ', '.join(versions) for name, versions in names.items())}).\n"
                   for why, names in of.items())


def table(rows, found, unshown):
    lines = ["| | fault | " + " | ".join(found) + " |", "|---" * (2 + len(found)) + "|"]
    for name, words in rows:
        missing = [version for version, faults in found.items() if name not in faults and name not in unshown]
        if missing:
            raise SystemExit(f"run.py: {name} was not looked at with {', '.join(missing)}")
        signs = [UNSHOWN if name in unshown else SIGN[faults[name][0]] for faults in found.values()]
        lines.append(f"| {name} | {words} | " + " | ".join(signs) + " |")
    return "\n".join(lines) + "\n" + remarks(rows, found)


def rows_of(text):
    return [(row[0], row[1]) for row in map(cells, re.findall(r"(?m)^\| [A-Z]\d+ \|.*", text))]


def write(path, results, checks, unshown):
    """Give each fault its signs. The tables and the checks have the same faults."""
    found = read(results)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    told = {name for match in MARK.finditer(text) for name, _ in rows_of(match.group(2))}
    if told != set(checks) | set(unshown):
        raise SystemExit(f"run.py: {path} or the checks lack {', '.join(sorted(told ^ (set(checks) | set(unshown))))}")

    def again(match):
        return f"<!-- results {match.group(1)} -->\n{table(rows_of(match.group(2)), found, unshown)}<!-- end -->\n"
    text = MARK.sub(again, text)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def nearest(path, version):
    """The version, or the last one before it, or the first one, that has a column."""
    with open(path, encoding="utf-8") as file:
        head = cells(MARK.search(file.read()).group(2).splitlines()[0])[2:]
    return max([other for other in head if key(other) <= key(version)] or head[:1], key=key)


def column(path, version):
    """What the tables say of a version, fault: answer. Empty: it has no column."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found, answers = {}, {sign: answer for answer, sign in SIGN.items()}
    for match in MARK.finditer(text):
        head, *lines = [cells(line) for line in match.group(2).splitlines() if line.startswith("|")]
        if version in head:
            found.update((line[0], answers[line[head.index(version)]]) for line in lines if line[head.index(version)] in answers)
    return found
