"""The self-test of language.py: texts of small files, the limits, and a repository with one commit after the base."""

import os
import pathlib
import subprocess
import tempfile

import language

SWIFT = r'''/// The state of a fill, who reads it.
let a = "one two \(what("who")) three", b = "who x" // a note
let c = """
    The path has
    what is left.
    """
let d = "SELECT who FROM what WHERE whose = 1"
/* first
   whom */
@Test("An evicted segment is fetched again") func f() {}
let e = #"raw "what" of it"#
'''

PYTHON = '''#!/usr/bin/env python3
"""The module."""
x = "who what whose"  # a remark


def f():
    """The effect.

    More text."""
'''

#: Path, source, the texts found with their line numbers (empty ones left out).
TEXTS = [
    (
        "A.swift", SWIFT,
        [
            (1, "The state of a fill, who reads it."), (2, "one two  three"), (2, "a note"), (4, "The path has"),
            (5, "what is left."), (8, "first"), (9, "whom"), (10, "An evicted segment is fetched again"),
            (11, 'raw "what" of it'),
        ],
    ),
    ("a.py", PYTHON, [(3, "a remark"), (2, '"""The module."""'), (7, '"""The effect.'), (9, 'More text."""')]),
    ("run", "#!/bin/sh\n# a comment\necho $#  # another\necho a#b\n", [(2, "a comment"), (3, "another")]),
    ("Makefile", "a: b ## the help\n\t@echo x\n", [(1, "the help")]),
    ("A.md", "# Who calls?\ntext\n```sh\nwho\n```\n## Title\n", [(2, "text"), (6, "## Title")]),
    ("data.json", '{"who": 1}', None),
]  # fmt: skip

#: Words, clauses, whether the limit of comments is exceeded.
RATES = [(0, 0, False), (199, 2, False), (199, 3, True), (200, 1, True), (1000, 2, False), (1000, 3, True)]

#: A line of text, clauses, metaphors.
LINES = [
    ("The reader gets what it requested.", 1, 0), ("`what` and `CurlDesk`, `lane`", 0, 0), ("whatever, somewhat", 0, 0),
    ("Who's there, for whom, by whose leave", 3, 0), ("the desk rings a bell on the lane", 0, 3),
    ("a capital letter, letters and digits", 0, 0), ("takes a letter from the shelf", 0, 2), ("CurlDesk", 0, 0),
]  # fmt: skip


def run():
    failures = []

    def expect(name, found, expected):
        if found != expected:
            failures.append(f"{name}: {found!r} instead of {expected!r}")

    for path, source, expected in TEXTS:
        _, texts = language.reader(path, source)
        found = texts and [(line, text.strip()) for line, text in texts(source) if text.strip()]
        expect(path, found, expected)
    for words, clauses, expected in RATES:
        expect((words, clauses), language.Group(2, words, clauses).is_exceeded, expected)
    for text, clauses, metaphors in LINES:
        findings = language.Findings()
        findings.add("comments", "A.swift:1", text)
        expect(text, (findings.groups["comments"].clauses, len(findings.breaches)), (clauses, metaphors))
    with tempfile.TemporaryDirectory(prefix="larder-language.") as root:
        check_repository(pathlib.Path(root), expect)
    for failure in failures:
        print(failure)
    print(f"language: self-test {'FAILED' if failures else 'passed'}")
    return 1 if failures else 0


def check_repository(root, expect):
    """Committed files, a changed one, a new one, one that is ignored, and the subjects of commits."""

    def git(*arguments):
        identity = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        command = ["git", "-C", root, *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()

    git("init", "--quiet")
    (root / ".gitignore").write_text("ignored.md\n")
    (root / "a.md").write_text("Old: who calls.\nThird line.\n")
    git("add", ".")
    git("commit", "--quiet", "--message", "an old subject; and a second idea")
    base = git("rev-parse", "HEAD")
    (root / "b.md").write_text("For whom the bell tolls.\n")
    git("add", ".")
    git("commit", "--quiet", "--message", "x" * 73)
    git("commit", "--quiet", "--allow-empty", "--message", "docs: one; two")
    (root / "a.md").write_text("Old: who calls.\nThird line.\nWhose line.\n")
    (root / "c.swift").write_text("// The reader who waits.\n")
    (root / "ignored.md").write_text("Who?\n")

    findings = language.measure(root, base)
    places = [line.split(": ")[0] for group in findings.groups.values() for line in group.lines]
    expect("places", places, ["c.swift:1", "a.md:1", "a.md:3", "b.md:1"])
    expect("words", [group.words for group in findings.groups.values()], [4, 12])
    expect("breaches", [breach.split()[0].rstrip(":") for breach in findings.breaches], ["b.md:1", "commit", "commit"])
    expect("is clean", findings.is_clean, False)
