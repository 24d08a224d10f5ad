"""Checks the documents: links lead to files and headings, and the names of types and files in code spans exist.

    documents.py

Prints one line for each breach and exits 1 if there is one.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: These documents name parts of the code.
INTERNAL = [ROOT / "docs" / "glossary.md", ROOT / "docs" / "internals", ROOT / "docs" / "decisions", ROOT / "CONTRIBUTING.md"]

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.M)
BLOCK = re.compile(r"^```.*?^```", re.M | re.S)
TYPE = re.compile(r"`([A-Z][a-z]+[A-Z]\w+|[A-Z]{2,}[a-z]\w+)(?:\.\w+)*(?:\([^`]*\))?`")
PATH = re.compile(r"`((?:Sources|Tests|scripts|docs|examples|Benchmarks)/[\w+./-]+)`")
#: Names of other projects, formats and standards.
FOREIGN = {"AVPlayer", "SwiftNIO", "OpenSSL", "ETag", "WebM", "EventSource", "DispatchQueue", "ByteBuffer", "TaskGroup"}


def anchor(heading):
    """The fragment that GitHub gives to a heading."""
    text = re.sub(r"[`*]", "", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def links(document, text):
    for target in LINK.findall(BLOCK.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        file = (document.parent / name).resolve() if name else document
        if not file.exists():
            yield f"the link {target} leads to no file"
        elif fragment and file.suffix == ".md":
            if fragment not in map(anchor, HEADING.findall(BLOCK.sub("", file.read_text()))):
                yield f"the link {target} leads to no heading"


def names(text, code):
    for name in sorted(set(TYPE.findall(text)) - FOREIGN):
        if not re.search(rf"\b{name}\b", code):
            yield f"`{name}` is not in the sources"
    for path in sorted(set(PATH.findall(text))):
        if not (ROOT / path).exists():
            yield f"there is no {path}"


def main():
    places = [ROOT / "Sources", ROOT / "Tests", ROOT / "Benchmarks"]
    files = [ROOT / "Package.swift", *(file for place in places for file in place.rglob("*.swift"))]
    code = "\n".join(f"{file}\n{file.read_text()}" for file in files)
    breaches = []
    for document in DOCUMENTS:
        text = document.read_text()
        found = list(links(document, text))
        if any(document == place or place in document.parents for place in INTERNAL):
            found += names(text, code)
        breaches += [f"{document.relative_to(ROOT)}: {breach}" for breach in found]
    for breach in breaches:
        print(breach)
    print(f"documents: {len(DOCUMENTS)} checked, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
