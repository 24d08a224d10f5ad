"""The staged installation that the checks examine."""

import json
import subprocess


class Stage:
    """An installation below a temporary directory, and the checks of the current case."""

    def __init__(self, program, directory, root):
        self.program, self.directory, self.tree = program, directory, directory / "tree"
        self.check = None
        subprocess.run([root / "scripts/stage", program, self.tree], check=True)
        help_text = subprocess.check_output([program, "--experimental-dump-help"])
        self.help = json.loads(help_text)["command"]

    def commands(self):
        """The words after `larder` of each command, except `help`."""

        def below(command, words):
            yield words
            for each in command.get("subcommands", []):
                if each["commandName"] != "help":
                    yield from below(each, [*words, each["commandName"]])

        return list(below(self.help, []))

    def options(self, words):
        """The long options of a command."""
        command = self.help
        for word in words:
            command = next(each for each in command["subcommands"] if each["commandName"] == word)
        for argument in command.get("arguments", []):
            for name in argument.get("names", []):
                if name["kind"] == "long" and argument["shouldDisplay"]:
                    yield "--" + name["name"]
