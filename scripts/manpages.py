"""Writes the man pages of the program, one for each command: manpages.py PROGRAM DIRECTORY

The source is the program's own description of its command line (`--experimental-dump-help`).
"""

import json
import pathlib
import subprocess
import sys


def escape(text):
    """Text for roff, in ASCII. A line must not begin with a control character."""
    text = text.replace("\\", "\\(rs").replace("-", "\\-").replace("'", "\\(aq")
    text = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in text)
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def spelling(name):
    return ("--" if name["kind"] == "long" else "-") + name["name"]


def is_required(argument):
    return not argument["isOptional"]


class Page:
    """The man page of one command."""

    def __init__(self, path, command, version):
        self.path, self.command, self.version = path, command, version
        self.name = "-".join(path)

    def lines(self):
        yield '.\\" Made from the help of the command; do not edit.'
        yield f'.TH "{escape(self.name.upper())}" 1 "" "Larder {self.version}" "Larder"'
        yield ".SH NAME"
        yield f"{escape(self.name)} \\- {escape(self.command['abstract'].rstrip('.'))}"
        yield from self.synopsis()
        if self.command.get("discussion"):
            yield ".SH DESCRIPTION"
            yield escape(self.command["discussion"]).replace("\n\n", "\n.PP\n")
        yield from self.definitions("OPTIONS", self.shown(), self.label, self.meaning)
        yield from self.definitions(
            "COMMANDS", self.subcommands(), lambda each: f"\\fB{escape(each['commandName'])}\\fR", self.effect)
        yield from self.related()

    def shown(self):
        return [each for each in self.command.get("arguments", []) if each["shouldDisplay"]]

    def subcommands(self):
        return [each for each in self.command.get("subcommands", []) if each["shouldDisplay"] and each["commandName"] != "help"]

    def synopsis(self):
        yield ".SH SYNOPSIS"
        words = [f"\\fB{escape(' '.join(self.path))}\\fR"]
        if self.subcommands():
            words.append("[\\fIcommand\\fR]" if "defaultSubcommand" in self.command else "\\fIcommand\\fR")
        if any(each["kind"] != "positional" for each in self.shown()):
            words.append("[\\fIoptions\\fR]")
        for each in self.shown():
            if each["kind"] != "positional" and not is_required(each):
                continue
            word = self.label(each) if each["kind"] != "positional" else f"\\fI{escape(each['valueName'])}\\fR"
            word += " ..." if each["isRepeating"] else ""
            words.append(word if is_required(each) else f"[{word}]")
        yield " ".join(words)

    def definitions(self, heading, entries, label, meaning):
        if entries:
            yield f".SH {heading}"
        for each in entries:
            yield ".TP"
            yield label(each)
            yield meaning(each)

    @staticmethod
    def label(argument):
        value = f"\\fI{escape(argument['valueName'])}\\fR"
        if argument["kind"] == "positional":
            return value
        # The short form of a name comes first.
        names = sorted(map(spelling, argument["names"]), key=len)
        label = ", ".join(f"\\fB{escape(name)}\\fR" for name in names)
        return label if argument["kind"] == "flag" else f"{label} {value}"

    @staticmethod
    def meaning(argument):
        text = argument.get("abstract", "")
        if argument.get("defaultValue") is not None:
            text += f" The default is {argument['defaultValue']}."
        return escape(text)

    def effect(self, command):
        return escape(f"{command['abstract']} See {'-'.join([*self.path, command['commandName']])}(1).")

    def related(self):
        pages = [self.path[:-1]] if len(self.path) > 1 else []
        pages += [[*self.path, each["commandName"]] for each in self.subcommands()]
        if pages:
            yield ".SH SEE ALSO"
            for path in pages:
                comma = "," if path is not pages[-1] else ""
                yield f".BR {escape('-'.join(path))} (1){comma}"


def pages(command, version, path=()):
    path = [*path, command["commandName"]]
    page = Page(path, command, version)
    yield page
    for each in page.subcommands():
        yield from pages(each, version, path)


def main():
    program, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    version = json.loads(subprocess.check_output([program, "version", "--json"]))["version"]
    command = json.loads(subprocess.check_output([program, "--experimental-dump-help"]))["command"]
    directory.mkdir(parents=True, exist_ok=True)
    for page in pages(command, version):
        (directory / f"{page.name}.1").write_text("\n".join(page.lines()) + "\n")


if __name__ == "__main__":
    main()
