"""doc_anchors.py FILE - a Markdown page for Doxygen before 1.9.6, which has no anchors of headings as GitHub makes them: each heading
gets one that is unique among all pages, and links lead to it."""
import os
import re
import sys


def page(path):
    return re.sub(r"\W+", "-", os.path.splitext(os.path.basename(path))[0].lower())


def anchor(text):
    return re.sub(r" ", "-", re.sub(r"[^\w\- ]", "", text.strip().lower()))


def main(path):
    with open(path, encoding="utf-8") as file:
        parts = re.split(r"(?m)^(```.*?^```$)", file.read(), flags=re.DOTALL)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"(?m)^(#{2,4}) (.+)$", lambda m: f"{m[1]} {m[2]} {{#{page(path)}-{anchor(m[2])}}}", parts[i])
        parts[i] = re.sub(r"\]\(([\w./-]*)#([\w-]+)\)", lambda m: f"](#{page(m[1] or path)}-{m[2]})", parts[i])
    print("".join(parts), end="")


main(sys.argv[1])
