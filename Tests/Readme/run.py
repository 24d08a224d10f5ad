#!/usr/bin/env python3
"""Runs the calls in the documents and compares their output with the documents.

    run.py --larder .build/release/larder
    run.py --larder .build/release/larder --update
    run.py --larder .build/release/larder docs/quickstart.md

The default documents are README.md, docs/quickstart.md, docs/api.md and docs/signing.md. Each document gets a new Larder process with an
empty store and a new bash session. The file server of `make files` and Larder use the ports that the documents name, or
free ports if those are in use. All shell blocks with curl commands of a document run in its bash session, in order. The
block after the commands is the expected output: `…` matches any text, also across lines, and `,…,` also a single comma;
all other text must be equal. Commands without an output block must not print a problem document. `--update` writes the
printed output into the documents and keeps `…`.

A Python or JavaScript block behind a paragraph that ends with a name in backticks and a colon (`sign.py`:) is saved as
this file in the directory of the session. Blocks that call a program that is missing (node) are skipped.
"""

import difflib
import os
import pathlib
import re
import select
import shutil
import socket
import subprocess
import sys
import time
import tty

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import checks, process, venv  # noqa: E402

ROOT = checks.ROOT
DOCUMENTS = ("README.md", "docs/quickstart.md", "docs/api.md", "docs/signing.md")
#: Settings of the service of a document; `{}` stands for the directory of the session.
SETTINGS = {"docs/signing.md": ["access.token=change-me", "access.signing.keysDirectory={}/keys"]}
#: Files in this directory that exist before the start.
FILES_BEFORE = {"docs/signing.md": {"keys/2026-11": "0123456789abcdef0123456789abcdef\n"}}
#: Programs that a document may call and that need not exist.
OPTIONAL = ("node",)
LARDER, FILES = 8080, 9071
ANY = "…"
TOKEN = re.compile(rf"{ANY}|\w+|\s+|[^\w\s]")
PROBLEM = '"type":"urn:larder:problem:'
BLOCK_SECONDS = 60


# Documents


class Block:
    """The commands of a shell block and, if an output block follows, the expected output."""

    def __init__(self, first_line, commands):
        self.first_line, self.commands = first_line, commands
        self.expected, self.output_lines = None, None


def blocks_of(lines):
    """The shell blocks with curl commands, each with the output block that follows it."""
    found, previous, number = [], None, 0
    while number < len(lines):
        line = lines[number]
        if not line.startswith("```"):
            previous = previous if not line.strip() else None
            number += 1
            continue
        end = lines.index("```", number + 1)
        text = "\n".join(lines[number + 1 : end])
        if line == "```sh":
            previous = Block(number + 1, text) if re.search(r"\bcurl ", text) else None
            found += [previous] if previous else []
        elif previous:
            previous.expected, previous.output_lines = text, (number + 1, end)
            previous = None
        number = end + 1
    return found


def programs_of(lines):
    """The blocks with programs: the name of the file → its text."""
    found = {}
    for number, line in enumerate(lines):
        if line not in ("```python", "```js"):
            continue
        before = next((text for text in reversed(lines[:number]) if text.strip()), "")
        if name := re.search(r"`([\w-]+\.\w+)`:$", before):
            found[name[1]] = "\n".join(lines[number + 1 : lines.index("```", number + 1)]) + "\n"
    return found


def missing(commands):
    """An optional program that the commands call and that does not exist."""
    return next((name for name in OPTIONAL if re.search(rf"\b{name} ", commands) and not shutil.which(name)), None)


# Comparison


def matches(expected, printed):
    """Whether the texts are equal if each `…` stands for any text."""
    first, *rest = expected.split(ANY)
    if not rest:
        return expected == printed
    *middle, last = rest
    if not printed.startswith(first):
        return False
    position, previous = len(first), first
    for piece in middle:
        position = printed.find(piece, position - overlap(previous, piece))
        if position < 0:
            return False
        position, previous = position + len(piece), piece
    return len(printed) - len(last) >= position - overlap(previous, last) and printed.endswith(last)


def overlap(piece, following):
    """1 if one comma or line break may be both the end of a piece and the start of the next one."""
    return int(piece[-1:] == following[:1] and piece[-1:] in (",", "\n"))


def updated(expected, printed):
    """The printed text, with `…` in the places where the expected text has it: the alignment with the fewest changes."""
    if matches(expected, printed):
        return expected
    old, new = TOKEN.findall(expected), TOKEN.findall(printed)
    rows = [list(range(len(new) + 1))]
    for index, token in enumerate(old):
        above, row = rows[-1], [rows[-1][0] + deletion_cost(old, index)]
        for column, other in enumerate(new):
            if token == ANY:
                row.append(min(above[column + 1], row[column]))
            else:
                changed = above[column] + (token != other)
                row.append(min(changed, above[column + 1] + deletion_cost(old, index), row[column] + 1))
        rows.append(row)
    result, index, column = [], len(old), len(new)
    while index or column:
        token, cost = old[index - 1] if index else None, rows[index][column]
        if index and cost == rows[index - 1][column] + deletion_cost(old, index - 1):
            result += [token] if deletion_cost(old, index - 1) == 0 else []
            index -= 1
        elif token == ANY:
            column -= 1
        elif index and column and cost == rows[index - 1][column - 1] + (token != new[column - 1]):
            index, column = index - 1, column - 1
            result.append(new[column])
        else:
            column -= 1
            result.append(new[column])
    return "".join(reversed(result))


def deletion_cost(tokens, index):
    """0 for `…` and for the second separator in `,…,`, which a single separator may match."""
    is_second = index > 1 and tokens[index - 1] == ANY and overlap(tokens[index - 2], tokens[index])
    return int(tokens[index] != ANY and not is_second)


def difference(expected, printed):
    lines = difflib.unified_diff(
        expected.split("\n"), updated(expected, printed).split("\n"), "documented", "printed", n=1, lineterm=""
    )
    return "\n".join(f"    {line}" for line in lines)


# Processes


def port_for(documented):
    for port in (documented, 0):
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
                return listener.getsockname()[1]
            except OSError:
                continue
    raise SystemExit("readme: no free port on 127.0.0.1")


def environment(directory):
    """The caller's environment without settings of Larder, proxies and curl."""
    dropped = re.compile(r"LARDER_.*|.*_proxy|BASH_ENV", re.I)
    kept = {name: value for name, value in os.environ.items() if not dropped.fullmatch(name)}
    return {**kept, "CURL_HOME": str(directory), "LC_ALL": "C.UTF-8"}


class Shell:
    """A bash session with a pseudo-terminal as its output, as in a terminal window."""

    MARK = re.compile(rb"\x1e(\d+)\x1e")

    def __init__(self, directory):
        self.directory = directory
        self.output, terminal = os.openpty()
        tty.setraw(terminal)
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=terminal, stderr=terminal,
            env=environment(directory), cwd=directory, start_new_session=True,
        )  # fmt: skip
        os.close(terminal)
        process.STARTED.append(self.process)

    def run(self, commands):
        """The output and the exit status of the commands."""
        script = self.directory / "block.sh"
        script.write_text(commands + "\n")
        self.process.stdin.write(f". {script} </dev/null; printf '\\036%s\\036' $?\n".encode())
        self.process.stdin.flush()
        printed, deadline = b"", time.monotonic() + BLOCK_SECONDS
        while not (mark := self.MARK.search(printed)):
            ready, _, _ = select.select([self.output], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise SystemExit(f"readme: no end after {BLOCK_SECONDS} s:\n{commands}\n{printed.decode(errors='replace')}")
            try:
                printed += os.read(self.output, 1 << 16)
            except OSError:
                raise SystemExit(f"readme: bash ended in:\n{commands}\n{printed.decode(errors='replace')}") from None
        text = printed[: mark.start()].decode(errors="replace")
        return text.replace("\r\n", "\n").rstrip("\n"), int(mark[1])


# The run


def with_ports(text, ports):
    return re.sub(r"127\.0\.0\.1:(\d+)", lambda match: f"127.0.0.1:{ports.get(int(match[1]), match[1])}", text)


def check(block, shell, ports):
    """Runs a block; the fault, or nothing, and the printed output with the documented ports."""
    printed, status = shell.run(with_ports(block.commands, ports))
    printed = with_ports(printed, {port: documented for documented, port in ports.items()})
    if block.expected is None:
        fault = f"    an error was printed: {printed}" if PROBLEM in printed else None
    else:
        fault = None if matches(block.expected, printed) else difference(block.expected, printed)
    if status and not fault:
        fault = f"    the exit status is {status}; printed: {printed}"
    return fault, printed


def check_document(path, larder_program, ports, directory, part):
    """Runs all blocks of a document against a new Larder; the text with the output if it differs."""
    lines = path.read_text().split("\n")
    blocks = blocks_of(lines)
    if not blocks:
        raise checks.Broken(f"{path} has no shell blocks with curl commands")
    directory.mkdir()
    name = str(path.relative_to(ROOT))
    for file, text in {**FILES_BEFORE.get(name, {}), **programs_of(lines)}.items():
        (directory / file).parent.mkdir(exist_ok=True)
        (directory / file).write_text(text)
    settings = [value.format(directory) for value in SETTINGS.get(name, [])]
    larder = process.Larder(
        larder_program, directory, settings=settings, address=f"127.0.0.1:{ports[LARDER]}",
        environment=environment(directory), level="info",
    )  # fmt: skip
    larder.port = ports[LARDER]
    larder.start()
    shell = Shell(directory)
    replaced = {}
    for number, block in enumerate(blocks, 1):
        title = f"block {number:>2}, line {block.first_line:>3}"
        if program := missing(block.commands):
            part.note(f"{title}: skipped, because {program} is missing")
            continue
        fault, printed = check(block, shell, ports)
        part.check(not fault, title, fault)
        if fault and block.expected is not None:
            replaced[block.output_lines] = updated(block.expected, printed)
    part.equal(larder.stop(), 0, "the exit code of Larder after SIGTERM")
    for (first, end), text in sorted(replaced.items(), reverse=True):
        lines[first:end] = text.split("\n")
    return "\n".join(lines) if replaced else None


def main():
    parser = checks.arguments(__doc__, brief=None)
    parser.add_argument("--update", action="store_true", help="write the printed output into the documents")
    parser.add_argument("documents", nargs="*", default=DOCUMENTS, help="paths below the root of the repository")
    options = parser.parse_args()
    program = checks.program_of(parser, options)
    if not venv.has_programs("curl"):
        venv.packages("curl")
    directory, results = checks.directory("readme"), checks.Checks("readme")
    ports = {FILES: port_for(FILES)}
    files = [sys.executable, "-B", ROOT / "scripts/files.py", f"127.0.0.1:{ports[FILES]}"]
    process.Process(files, directory / "files.log", ports[FILES], name="files").start()
    ports[LARDER] = port_for(LARDER)
    for number, name in enumerate(options.documents):
        with results.part(name) as part:
            text = check_document(ROOT / name, program, ports, directory / str(number), part)
            if options.update and text is not None:
                (ROOT / name).write_text(text)
                part.note("rewritten")
    sys.exit(results.finish())


if __name__ == "__main__":
    main()
