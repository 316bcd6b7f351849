# SPDX-License-Identifier: Apache-2.0
"""Keys of a terminal while something is shown on it, and its state before and after."""

import errno
import os
import re
import select
import signal
import sys
import termios
import threading
import time
import tty
from contextlib import contextmanager, suppress

PATIENCE = 0.1  # seconds for the rest of what one key sends
LONGEST = 16  # bytes that one key sends
NAMES = {
    b"[A": "up", b"OA": "up", b"[B": "down", b"OB": "down", b"[5~": "page up", b"[6~": "page down",
    b"[H": "home", b"OH": "home", b"[1~": "home", b"[7~": "home", b"[F": "end", b"OF": "end", b"[4~": "end",
    b"[8~": "end",
}  # fmt: skip
WHOLE = re.compile(rb"\x1b(\[[0-9;]*[@-Z\\-~]|O[@-~])")
PART = re.compile(rb"\x1b(\[[0-9;]*|O)?")


class Gone(OSError):
    """The terminal is gone."""


class Ended(BaseException):
    """A signal asked the process to end. It is not an Exception: nothing on the way handles it."""


class Keys:
    """The terminal's keys, one at a time and without echo; none where the input is no terminal, or another's."""

    def __enter__(self):
        self.file = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
        self.read = b""  # and not yet asked for
        if self.file is not None and not is_ours(self.file):
            self.file = None
        if self.file is not None:
            self.before = termios.tcgetattr(self.file)
            tty.setcbreak(self.file)
        return self

    def __exit__(self, *_):
        if self.file is not None:
            with suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(self.file, termios.TCSADRAIN, self.before)

    def wait(self, limit):
        """Return the next key: a character, or a name such as "page up"; "" for other keys, and if none comes within
        ``limit`` seconds. `Gone` if no key can come any more."""
        if not self.read and not self._more(limit):
            return ""
        while PART.fullmatch(self.read) and len(self.read) < LONGEST and self._more(PATIENCE):
            pass
        match = WHOLE.match(self.read)
        if match:
            self.read = self.read[match.end() :]
            return NAMES.get(match.group(1), "")
        key, self.read = self.read[:1], self.read[1:]
        return "" if key == b"\x1b" else key.decode("ascii", "replace")

    def is_pressed(self, key, limit):
        """Whether a key is pressed within ``limit`` seconds; other keys are ignored."""
        end = time.monotonic() + limit
        while (remaining := end - time.monotonic()) > 0:
            if self.wait(remaining) == key:
                return True
        return False

    def _more(self, limit):
        """Read what the terminal has; return whether there is anything within ``limit`` seconds."""
        if self.file is None:
            time.sleep(max(limit, 0))
            return False
        ready, _, _ = select.select([self.file], [], [], max(limit, 0))
        if not ready:
            return False
        try:
            read = os.read(self.file, 1024)
        except OSError as e:
            if e.errno != errno.EIO:
                raise
            read = b""
        if not read:
            raise Gone
        self.read += read
        return True


def is_ours(file):
    """Whether this process may set a terminal: one of the background would be stopped."""
    try:
        return os.tcgetpgrp(file) == os.getpgrp()
    except OSError:  # it is not the one that controls this process
        return True


@contextmanager
def restored_first():
    """Let a signal that ends the process leave the block first, so that it leaves the terminal as it was."""

    def leave(number, _):
        raise Ended(number)

    may_set = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGTERM, signal.SIGHUP) if may_set else ()
    ends = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in ends:
        signal.signal(number, leave)
    ended = None
    try:
        yield
    except Ended as e:
        ended = e.args[0]
    finally:
        for number in ends:
            signal.signal(number, signal.SIG_DFL)
    if ended is not None:
        signal.raise_signal(ended)


def show(out, function, *args):
    """Call a function that shows something until the user ends it; return whether a terminal stayed."""
    is_terminal = out.is_terminal  # no longer, once it is gone
    try:
        with restored_first():
            function(*args)
    except OSError as e:
        if not is_terminal or not (isinstance(e, Gone) or e.errno == errno.EIO):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.file.fileno())  # what is still buffered has no reader
        return False
    return True
