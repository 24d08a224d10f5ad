"""Runs the client: in a pipe, or on a pseudo-terminal."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

#: Seconds after which a command that does not end is killed.
LIMIT = 60


class Client:
    """The program with the URL of a service; `variables` are added to the environment."""

    def __init__(self, program, url, **variables):
        self.program = program
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LARDER_")}
        self.environment = {**kept, "LARDER_URL": url, "TERM": "xterm", **variables}

    def run(self, *arguments, given=None):
        """Runs a command without a terminal; returns exit status, output and errors."""
        done = subprocess.run(
            [self.program, *arguments], env=self.environment, input=given, stdin=None if given else subprocess.DEVNULL,
            capture_output=True, text=True, timeout=LIMIT,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def start(self, *arguments):
        """Starts a command without a terminal."""
        return subprocess.Popen(
            [self.program, *arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def console(self, *arguments, columns=100, rows=30):
        """Starts a command on a terminal of that size."""
        return Console([self.program, *arguments], self.environment, columns, rows)


class Console:
    """A command with a pseudo-terminal as its controlling terminal; `text` is its output so far."""

    def __init__(self, command, environment, columns, rows):
        self.terminal, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

        def attach():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            command, env=environment, stdin=inner, stdout=inner, stderr=inner, preexec_fn=attach
        )
        self.inner = inner
        self.text = ""

    @property
    def has_echo(self):
        return bool(termios.tcgetattr(self.inner)[3] & termios.ECHO)

    def read(self, seconds):
        """Reads the available output, and waits for it if there is none."""
        ready, _, _ = select.select([self.terminal], [], [], seconds)
        if ready:
            self.text += os.read(self.terminal, 65536).decode(errors="replace")

    def wait_for(self, text, limit=LIMIT):
        """Whether the text appears within that time."""
        until = time.monotonic() + limit
        while text not in self.text and time.monotonic() < until:
            if self.process.poll() is not None:
                self.read(0.2)
                break
            self.read(0.1)
        return text in self.text

    def type(self, text):
        os.write(self.terminal, text.encode())

    def interrupt(self):
        """Presses Ctrl-C."""
        self.type("\x03")

    def end(self, limit=LIMIT):
        """The exit status, after all output was read."""
        until = time.monotonic() + limit
        while self.process.poll() is None:
            self.read(0.1)
            if time.monotonic() > until:
                self.process.send_signal(signal.SIGKILL)
        self.read(0.2)
        os.close(self.inner)
        os.close(self.terminal)
        return self.process.returncode
