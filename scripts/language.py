"""Checks the language of all files, and the subjects of the commits since a base commit.

    language.py [--list] [--self-test]

Counts clauses without a noun (`what`, `who`, `whoever`, `whose`, `whom`) per 1,000 words, in two groups: comments, test
names and messages; and documents. Reports private metaphors for parts of the code. Text in backticks and code blocks is
ignored, and so are headings that ask a question. Exits 1 if a limit is exceeded.
"""

import argparse
import ast
import io
import pathlib
import re
import subprocess
import sys
import tokenize
from dataclasses import dataclass, field

from architecture import literal_end

ROOT = pathlib.Path(__file__).resolve().parent.parent

#: The subjects of commits up to this one are not checked.
BASELINE = "3c8666f9db0eb4e48726ae89e4eecaad219e4a5a"

#: Clauses per 1,000 words.
LIMITS = {"comments": 2, "documents": 4}
#: With fewer words than this, up to `SMALL_TEXT_CLAUSES` are accepted at any rate.
SMALL_TEXT_WORDS = 200
SMALL_TEXT_CLAUSES = 2

SUBJECT_LENGTH = 72

WORD = re.compile(r"[A-Za-z][A-Za-z’'-]*")
CLAUSE = re.compile(r"\b(?:what|who|whoever|whose|whom)\b(?!-)", re.I)
METAPHOR = re.compile(r"\b(?:desks?|shelf|shelves|lanes?|bells?|letter)\b", re.I)
#: The alphabet has letters.
ALPHABET = re.compile(r"\b(?:capital|small|first|last|single|one|ASCII|(?:upper|lower)[- ]?case) letter\b|\ba letter or\b", re.I)
CODE_SPAN = re.compile(r"`[^`]*`")
SQL = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|WITH|BEGIN)\b")


@dataclass
class Group:
    """Counts of one group of texts, and the lines with a clause."""

    limit: float
    words: int = 0
    clauses: int = 0
    lines: list = field(default_factory=list)

    @property
    def rate(self):
        return self.clauses * 1000 / self.words if self.words else 0

    @property
    def is_exceeded(self):
        is_enough = self.words >= SMALL_TEXT_WORDS or self.clauses > SMALL_TEXT_CLAUSES
        return self.clauses > 0 and is_enough and self.rate > self.limit


@dataclass
class Findings:
    groups: dict = field(default_factory=lambda: {name: Group(limit) for name, limit in LIMITS.items()})
    breaches: list = field(default_factory=list)

    def add(self, group, place, text):
        text = CODE_SPAN.sub(" ", text)
        clauses = CLAUSE.findall(text)
        found = self.groups[group]
        found.words += len(WORD.findall(text))
        found.clauses += len(clauses)
        if clauses:
            found.lines.append(f"{place}: {', '.join(clauses)}: {text.strip()[:100]}")
        for word in METAPHOR.findall(ALPHABET.sub(" ", text)):
            self.breaches.append(f"{place}: private metaphor “{word}”: {text.strip()[:100]}")

    @property
    def is_clean(self):
        return not self.breaches and not any(group.is_exceeded for group in self.groups.values())


# --- Texts of a file: (line number, text) of everything a reader reads as prose. ---


def swift_texts(source):
    index, line = 0, 1
    opening = re.compile(r'//+|/\*|(#*)("""|")')
    while match := opening.search(source, index):
        line += source.count("\n", index, match.start())
        if match.group().startswith("//"):
            end = source.find("\n", match.end())
            end = len(source) if end < 0 else end
            yield line, source[match.end() : end]
        elif match.group() == "/*":
            end = source.find("*/", match.end()) + 2
            end = len(source) if end < 2 else end
            yield from numbered(line, source[match.end() : end - 2])
        else:
            end = literal_end(source, match)
            text = without_interpolations(source[match.end() : end - len(match.group())])
            if len(WORD.findall(text)) >= 3 and not SQL.match(text):
                yield from numbered(line, text)
        line += source.count("\n", match.start(), end)
        index = max(end, match.end())


def numbered(first, text):
    return enumerate(text.split("\n"), first)


def without_interpolations(text):
    out, index = [], 0
    while (start := text.find("\\(", index)) >= 0:
        out.append(text[index:start])
        index, depth = start + 2, 1
        while index < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[index], 0)
            out.append("\n" if text[index] == "\n" else "")
            index += 1
    return "".join(out) + text[index:]


def python_texts(source):
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            yield token.start[0], token.string.lstrip("#: ")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from enumerate(source.split("\n")[node.lineno - 1 : node.end_lineno], node.lineno)


def hash_texts(source):
    for number, line in enumerate(source.split("\n"), 1):
        if (match := re.match(r"(?:.*\s)?(#+)(?:\s+(.*))?$", line)) and not line.startswith("#!"):
            yield number, match.group(2) or ""


def markdown_texts(source):
    is_code = False
    for number, line in enumerate(source.split("\n"), 1):
        if re.match(r"\s*(```|~~~)", line):
            is_code = not is_code
        elif not is_code and not re.match(r"#+ .*\?\s*$", line):
            yield number, line


def plain_texts(source):
    return enumerate(source.split("\n"), 1)


def reader(path, source):
    """The group of a file and the function that finds its texts. (None, None): the file is not measured."""
    name = path.rsplit("/", 1)[-1]
    if name.endswith(".md"):
        return "documents", markdown_texts
    if name == "openapi.yaml":
        return "documents", plain_texts
    if name.endswith(".swift"):
        return "comments", swift_texts
    if name.endswith(".py"):
        return "comments", python_texts
    if name in ("Makefile", "Dockerfile") or name.endswith((".sh", ".yaml", ".yml")) or source.startswith("#!"):
        return "comments", hash_texts
    return None, None


# --- The project's files. ---


def git(root, *arguments):
    """The output of a git command; None if the command failed."""
    found = subprocess.run(["git", "-C", root, "-c", "core.quotePath=false", *arguments], capture_output=True)
    return found.stdout.decode(errors="replace") if found.returncode == 0 else None


def source_of(root, path):
    file = pathlib.Path(root) / path
    return file.read_text(errors="replace") if file.is_file() and not file.is_symlink() else ""


def paths(root):
    """The files of the repository, new ones included; of a directory without one, all files outside hidden folders."""
    listed = git(root, "ls-files", "--cached", "--others", "--exclude-standard")
    if listed is not None:
        return sorted(set(listed.splitlines()))
    files = (file.relative_to(root) for file in pathlib.Path(root).rglob("*") if file.is_file())
    return sorted(file.as_posix() for file in files if not any(part.startswith(".") for part in file.parts[:-1]))


def measure(root, base):
    """The texts of all files, and the subjects of the commits after `base`, if the repository has that commit."""
    findings = Findings()
    for path in paths(root):
        source = source_of(root, path)
        group, texts = reader(path, source)
        for number, text in texts(source) if group else ():
            findings.add(group, f"{path}:{number}", text)
    for line in (git(root, "log", "--no-merges", "--format=%h %s", f"{base}..HEAD") or "").splitlines():
        name, _, subject = line.partition(" ")
        if len(subject) > SUBJECT_LENGTH:
            findings.breaches.append(f"commit {name}: subject of {len(subject)} characters, limit {SUBJECT_LENGTH}")
        if ";" in subject:
            findings.breaches.append(f"commit {name}: the subject has a semicolon: one commit, one idea")
    return findings


def summary(findings):
    figures = ", ".join(
        f"{name} {group.rate:.1f} of {group.limit} in {group.words:,} words" for name, group in findings.groups.items()
    )
    return f"language: {'kept' if findings.is_clean else 'NOT KEPT'} (clauses per 1,000 words: {figures})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print every line with a clause, also within the limit")
    parser.add_argument("--self-test", action="store_true", help="check this program")
    options = parser.parse_args()
    if options.self_test:
        import language_cases

        return language_cases.run()
    findings = measure(ROOT, BASELINE)
    for group in findings.groups.values():
        if options.list or group.is_exceeded:
            print(*group.lines, sep="\n", end="\n" if group.lines else "")
    print(*findings.breaches, sep="\n", end="\n" if findings.breaches else "")
    print(summary(findings))
    return 0 if findings.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
