"""Keeps the list of the sentences that users read: errors, log messages, metric help and command help.

    messages.py [--update]

Compares the sentences in Sources with Tests/messages.txt, and exits 1 if they differ or a sentence breaks a rule: an error
begins with a capital letter or a value and ends with a period, and no sentence has two spaces in a row. `--update` writes
the list; review its diff as you review an interface.
"""

import difflib
import pathlib
import re
import sys

from architecture import blanked, literal_end

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "Tests" / "messages.txt"

LITERAL = re.compile(r'(#*)("""|")')
KINDS = {
    "error": re.compile(
        r"\b(?:CacheError|Problem|ReadFailure|ProbeFailure)\(|\bthrow (?:decoder|member|CacheError)?\.invalid\("
        r"|\bexpectation = "
    ),
    "log": re.compile(r"\blogger\.(?:notice|warning|error|critical)\("),
    "metric": re.compile(r"\bFigure\("),
    "setting": re.compile(r"\bSettings?(?:Error|Fault)\("),
    "help": re.compile(r"\b(?:ArgumentHelp|help: |abstract: )\(?"),
}
#: Names and values that may begin an error.
WORDS = {"null", "true", "false", "chunked", "libcurl", "secret.key", "supersede", "freeBytes", "play"}
#: The name of a system call's purpose; the error adds the cause.
OPERATION = re.compile(r"[A-Z]\w+ing [a-z ]+$")
INTERPOLATION = re.compile(r"\\\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")


def arguments(code, opening):
    """The index behind the parenthesis that closes the one before `opening`."""
    depth = 1
    while depth and opening < len(code):
        depth += {"(": 1, ")": -1}.get(code[opening], 0)
        opening += 1
    return opening


def sentence(literal, isFirst=True):
    """The text of a literal on one line; values are written `…`."""
    text = literal.strip("#").strip('"')
    text = re.sub(r"\\\n\s*", "", text)
    text = INTERPOLATION.sub("…", text).replace('\\"', '"')
    text = re.sub(r"\s*\n\s*", " ", text)
    return text.strip() if isFirst else text


def sentences(source):
    code = blanked(source)
    for kind, call in KINDS.items():
        for match in call.finditer(code):
            end = arguments(code, match.end()) if match[0].endswith("(") else code.find("\n", match.end() + 1)
            index = match.end()
            while found := LITERAL.search(source, index, end):
                if code[found.start()] != '"':
                    index = found.end()
                    continue
                index = literal_end(source, found)
                text = sentence(source[found.start() : index])
                while more := re.compile(r"\s*\+\s*(?=\")").match(source, index, end):
                    index = literal_end(source, LITERAL.match(source, more.end()))
                    text += sentence(source[more.end() : index], isFirst=False)
                if re.search(r"[A-Za-z…] [A-Za-z…]", text):
                    yield kind, text


def faults(kind, text):
    if "  " in text:
        yield "has two spaces in a row"
    if kind == "error" and text.split()[0].strip(":") not in WORDS and not re.match(r"[A-Z0-9…\"'`<(]", text):
        yield "begins with a small letter"
    if kind == "error" and text[-1] not in ".…)" and not OPERATION.match(text):
        yield "does not end with a period"


def main():
    found = sorted({entry for file in (ROOT / "Sources").rglob("*.swift") for entry in sentences(file.read_text())})
    text = "".join(f"{kind}\t{sentence}\n" for kind, sentence in found)
    if "--update" in sys.argv[1:]:
        LIST.write_text(text)
    status = 0
    known = LIST.read_text() if LIST.exists() else ""
    for line in difflib.unified_diff(known.splitlines(), text.splitlines(), "Tests/messages.txt", "Sources", "", "", 0):
        status = 1
        print(line)
    for kind, sentence in found:
        for fault in faults(kind, sentence):
            status = 1
            print(f"{kind} {fault}: {sentence}")
    if status:
        print("messages: differ from the list or break a rule; after a review: scripts/messages --update")
    else:
        print(f"messages: {len(found)} as listed")
    return status


if __name__ == "__main__":
    sys.exit(main())
