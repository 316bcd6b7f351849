# SPDX-License-Identifier: Apache-2.0
"""The parent of the self-test: it asks child processes, watches the clock, and keeps what they answered.

It opens no driver itself. A child that crashes or hangs has answered the question at hand; another child goes on.
"""

import contextlib
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from l0rt import config
from l0rt._base.paths import known_interpreter
from l0rt.bench.report import end_text
from l0rt.selftest.questions import BAD, BY_ID, GROUPS, MARK, QUESTIONS, Answer

NEEDS = {"quirks": 8, "capabilities": 6, "traps": 18, "measurements": 18}  # seconds; programs have the rest
PROGRAMS = 0.2  # of the time, at least
PATIENCE = 8.0  # seconds that any question may take, once asked, however little there is for it
OPENING = 60.0  # seconds for a driver that is opened, if there are as many


class Clock:
    """How long the whole test, a group and a question may take."""

    def __init__(self, seconds):
        self.start = time.monotonic()
        self.end = self.start + seconds
        self.seconds = seconds

    def spent(self):
        """Return the seconds since the start."""
        return time.monotonic() - self.start


class Examination:
    """The questions, and what was answered."""

    def __init__(self, ids, seconds, provoke, device, progress=lambda text: None):
        self.ids = ids
        self.clock = Clock(seconds)
        self.provoke, self.device, self.progress = provoke, device, progress
        self.answers: dict = {}
        self.facts = None
        self.ends = None  # when the group's time is up, once a child has opened the driver
        self.error = None
        self.interrupted = False

    def run(self):
        """Ask everything, as long as there is time and no interrupt."""
        try:
            groups = [group for group in (*NEEDS, "programs") if any(BY_ID[id].group == group for id in self.ids)]
            for place, group in enumerate(groups):
                if self.error is None:
                    self.ask_group(group, self.share(groups[place:]))
        except KeyboardInterrupt:
            self.interrupted = True
        why = "interrupted" if self.interrupted else "no driver" if self.error else "no time left"
        for id in self.ids:
            self.answers.setdefault(id, Answer("untestable", why))
        return self

    def share(self, groups):
        """Return how many of the seconds that are left the first of these groups gets; the last one gets all."""
        remaining = max(0.0, self.clock.end - time.monotonic())
        if len(groups) == 1:
            return remaining
        total = sum(NEEDS.get(group, 0) for group in groups)
        most = remaining * (1 - PROGRAMS if "programs" in groups else 1)
        return NEEDS[groups[0]] * min(1, most / total)

    def of(self, group):
        """Return those of a group's questions that are asked of a child."""
        return [id for id in self.ids if BY_ID[id].group == group and not BY_ID[id].untestable]

    def ask_group(self, group, seconds):
        """Ask a group's questions of one child after another until all are answered or the time is up.

        The time counts from when a child has opened the driver.
        """
        for id in self.ids:
            if BY_ID[id].group == group and BY_ID[id].untestable:
                self.answers[id] = Answer("untestable", BY_ID[id].untestable)
        ids = self.of(group)
        self.progress(f"{GROUPS[group]}: {len(ids)} questions, {seconds:.0f} s")
        self.ends = None
        while ids and self.error is None and self.has_time():
            last = self.ask_child(ids, seconds if self.ends is None else self.ends - time.monotonic())
            ids = [id for id in ids if id not in self.answers]
            if last is None and ids and self.error is None and self.has_time():
                self.answers[ids.pop(0)] = Answer("untestable", "the child process ended before it")

    def has_time(self):
        """Is there time left for the group that is asked now?"""
        return time.monotonic() < min(self.ends or self.clock.end, self.clock.end)

    def ask_child(self, ids, seconds):
        """Let a child answer questions; return the last one asked, None if it came to none."""
        orders = {
            "parent": os.getpid(),
            "driver": config.get("driver"),
            "device": self.device,
            "provoke": self.provoke,
            "questions": ids,
            "seconds": seconds,
            "end": self.clock.end,  # by a clock that all processes share
        }
        # -c puts the working directory first, which may hold another l0rt: a clone that was not built, say
        code = f"import sys; sys.path[:] = {sys.path}; from l0rt.selftest.child import main; main(sys.argv[1])"
        with tempfile.TemporaryFile() as complaints:
            child = subprocess.Popen(
                [known_interpreter(), "-c", code, json.dumps(orders)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                start_new_session=True,  # Ctrl-C is the parent's; and a signal that ends it ends its children
            )
            try:
                return self.listen(child, complaints)
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)
                if child.stdout is not None:
                    child.stdout.close()
                child.wait()

    def listen(self, child, complaints):
        """Take a child's answers until it ends, hangs or has no time left; return the question asked last."""
        current, limit, rest = None, min(self.clock.end, time.monotonic() + OPENING), b""
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(max(0.0, limit - time.monotonic())):
                    self.too_long(current, limit)
                    return current
                more = os.read(child.stdout.fileno(), 1 << 16)
                if not more:
                    break
                *lines, rest = (rest + more).split(b"\n")
                for line in lines:
                    if not line.startswith(MARK.encode()):
                        continue
                    message = json.loads(line[len(MARK) :])
                    if "error" in message:
                        self.error = scrubbed(message["error"])
                    elif "facts" in message:
                        self.facts, self.ends = self.facts or message["facts"], self.ends or message["ends"]
                    elif "asked" in message:
                        if not self.has_time():
                            return current
                        current = message["asked"]
                        limit = min(self.clock.end + 1, time.monotonic() + max(PATIENCE, 2 * message["seconds"]))
                    elif "id" in message:
                        id = message.pop("id")
                        self.answers[id] = self.scrub(Answer(**message))
                        limit = self.clock.end + 1
                    else:
                        limit = time.monotonic() + PATIENCE  # for its end
        status = child.wait()
        if status and self.error is None:
            self.ended(current, status, complaints)
        return current

    def scrub(self, answer):
        """Return an answer without anything private."""
        answer.detail = scrubbed(answer.detail)
        return answer

    def too_long(self, current, limit):
        """A child was silent until its limit."""
        if current is None:
            if self.facts is None:
                self.error = f"the driver was not open after {self.clock.spent():.0f} seconds"
        elif current not in self.answers:
            hung = limit < self.clock.end
            self.answers[current] = (
                bad(current, "no answer: it hangs") if hung else Answer("untestable", "no time left")
            )

    def ended(self, current, status, complaints):
        """A child ended by itself, and not well."""
        complaints.seek(0)
        lines = complaints.read().decode("utf-8", "replace").strip().splitlines()
        why = scrubbed(end_text(status) + (f": {lines[-1].strip()}" if lines else ""))
        if current is None and self.facts is None:
            self.error = f"the driver {why} while it was opened"
        elif current is not None and current not in self.answers:
            self.answers[current] = bad(current, f"it {why}")

    def report(self):
        """Return everything as plain values."""
        return {
            "facts": self.facts,
            "error": self.error,
            "interrupted": self.interrupted,
            "provoke": self.provoke,
            "seconds": self.clock.seconds,
            "spent": round(self.clock.spent(), 1),
            "answers": {id: asdict(self.answers[id]) for id in self.ids},
        }


def bad(id, detail):
    """Return the answer of a question that its process did not survive."""
    return Answer("present" if id[0] in "QT" else "fails", detail)


def select(words):
    """Return the questions that IDs and names of groups name, all for none; ValueError for a word that is neither."""
    if not words:
        return [question.id for question in QUESTIONS]
    ids = set()
    for word in words:
        matches = {q.id for q in QUESTIONS if word.lower() in (q.id.lower(), q.group, q.name)}
        if not matches:
            raise ValueError(f"no question is called {word!r}: expected {', '.join(GROUPS)}, or IDs from C1 to T40")
        ids |= matches
    return [question.id for question in QUESTIONS if question.id in ids]


def scrubbed(text):
    """Return a text without what is private: paths, and the names of the user and the machine."""
    text = re.sub(r"(?<![\w.:/])(?:/[\w.+@~-]+){2,}/?", "<path>", text)
    for name in {Path.home().name, os.environ.get("USER", ""), socket.gethostname()}:
        if len(name) > 1:
            text = re.sub(rf"\b{re.escape(name)}\b", "<name>", text)
    return text


def problems(report):
    """Return the questions whose answers are bad, and not something that l0rt copes with."""
    mended = (report["facts"] or {}).get("mended", [])
    return [
        id
        for id, answer in report["answers"].items()
        if answer["state"] in BAD
        and not (BY_ID[id].name and (BY_ID[id].name in mended or answer["by"] == "rule"))
        and not (BY_ID[id].subject == "driver" and not BY_ID[id].name and answer["state"] == "present")
    ]
