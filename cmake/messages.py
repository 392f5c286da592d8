"""messages.py - the messages of the programs as a table, for translators and for those who search for one: file, line, text.
Tabs divide the columns; a conversion of printf stands as it is. SQL and texts below three words are left out."""
import os
import re

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*(?:PRI\w+)?\s*"(?:[^"\\\n]|\\.)*")*')
TREES = ("fabricctl", "fabricd", "fabricd-pmix", "fabric-host", "guard", "libpmixfab", "probes")


def files():
    return sorted(os.path.join(folder, name) for tree in TREES for folder, _, names in os.walk(tree) for name in names
                  if name.endswith((".c", ".h")))


def is_message(text):
    return (len(text.split()) >= 3 and re.search("[a-z]{2,} [a-z]{2,}", text)
            and not text.startswith(("SELECT", "INSERT", "DELETE", "UPDATE", "CREATE", "PRAGMA", "<")))


def main():
    for path in files():
        with open(path, encoding="utf-8") as file:
            source = re.sub(r"/\*.*?\*/", lambda comment: re.sub(r"[^\n]", " ", comment.group()), file.read(), flags=re.DOTALL)
        for found in LITERALS.finditer(source):
            text = "".join(LITERAL.findall(found.group()))
            if is_message(text):
                number = source.count("\n", 0, found.start()) + 1
                print(f"{path}\t{number}\t{text}")


main()
