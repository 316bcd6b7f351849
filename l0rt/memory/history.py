# SPDX-License-Identifier: Apache-2.0
"""The history of memory: recording, snapshots in torch's schema, annotations and tags."""

from __future__ import annotations

import os
import pickle
import re
import sys
import time
from collections import deque
from contextlib import contextmanager

from l0rt import config
from l0rt._base.integers import whole_number
from l0rt._base.paths import numbered_file, plain_path, whole_file
from l0rt.errors import InvalidArgumentError
from l0rt.memory.stats import is_opened
from l0rt.runtime.memory import trace
from l0rt.runtime.memory.observers import set_reporter
from l0rt.runtime.memory.pools import index_or_current
from l0rt.runtime.streams.devices import lazy

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal, SupportsIndex

    from l0rt._base.paths import _Path
    from l0rt.buffers.buffer import Buffer
    from l0rt.runtime.streams.naming import _Device

_ENTRIES, _BLOCKS, _ALLOC, _FREE, _PINNED = 1, 2, 4, 8, 32
_CONTEXTS = {None: 0, "state": _BLOCKS, "alloc": _BLOCKS | _ALLOC, "all": _BLOCKS | _ALLOC | _FREE}
_MOST_ANNOTATIONS = 100_000

_annotations: deque = deque(maxlen=_MOST_ANNOTATIONS)


def record_memory_history(
    enabled: Literal["all", "state"] | None = "all",
    context: Literal["all", "alloc", "state"] | None = "all",
    stacks: Literal["all", "python"] = "all",
    max_entries: int = sys.maxsize,
    clear_history: bool = False,
    skip_actions: list[str] | None = None,
    *,
    record_pinned_host_memory: bool = True,
) -> None:
    """Record each allocation and each free with its stack, on all devices, until this is called with ``enabled=None``.

    `snapshot` returns what was recorded. While nothing is recorded, an allocation costs no more for it.

    Parameters
    ----------
    enabled : "all", "state" or None, optional
        ``"state"`` keeps the stacks of what is allocated, and ``"all"`` every allocation and free too. None stops, and
        drops what was recorded.
    context : "all", "alloc", "state" or None, optional
        Which Python stacks are kept: none, those of what is allocated, also those of every allocation, or also those
        of every free.
    stacks : "all" or "python", optional
        Both keep the frames of Python.
    max_entries : int, optional
        How many entries are kept for each device: the last ones. An entry takes 64 bytes.
    clear_history : bool, optional
        Drop what was recorded before.
    skip_actions : list of str, optional
        The actions of entries that are not kept, such as ``"free_requested"``.
    record_pinned_host_memory : bool, optional
        Record pinned memory too.

    Raises
    ------
    InvalidArgumentError
        There is no such mode.

    Notes
    -----
    The arguments are those of ``torch.xpu.memory._record_memory_history``.
    """
    if enabled not in (None, "state", "all"):
        raise InvalidArgumentError(f"expected state to be 'state', 'all', or None, got {enabled!r}")
    if context not in (None, "state", "alloc", "all"):
        raise InvalidArgumentError(f"expected context to be 'state', 'alloc', 'all', or None, got {context!r}")
    if stacks not in ("python", "all"):
        raise InvalidArgumentError(f"expected stacks to be 'python', or 'all', got {stacks!r}")
    most = whole_number(max_entries, "max_entries")
    if most < 0:
        raise InvalidArgumentError(f"max_entries must not be negative, got {most}")
    actions = _actions(skip_actions)
    if lazy.opened:
        lazy.init()
    if enabled is None:
        trace.record(0, 0, (), True)
        _forget_annotations()
        return
    flags = _CONTEXTS[context] | (_PINNED if record_pinned_host_memory else 0)
    flags |= _ENTRIES if enabled == "all" else 0
    trace.record(flags or _BLOCKS, max(1, min(most, sys.maxsize)), actions, bool(clear_history))
    if clear_history:
        _forget_annotations()


def _forget_annotations():
    global _annotations
    _annotations = deque(maxlen=_MOST_ANNOTATIONS)  # whose ranges have not ended yet end them in the old one


def _actions(skipped):
    if skipped is None:
        return ()
    if isinstance(skipped, str):
        raise TypeError("skip_actions is a list of actions, not a str")
    names = [action for action in trace.ACTIONS if action not in ("", "free")]
    for action in skipped:
        if action not in names:
            raise InvalidArgumentError(f"skip_actions: there is no action {action!r}; there are {', '.join(names)}")
    return tuple(skipped)


def snapshot(device: _Device = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Return all memory of this moment, and the recorded history until then, in torch's format.

    ``segments`` has every segment with its blocks, ``device_traces`` one list of entries for each device, oldest first.
    ``host_segments`` and ``host_traces`` are the same of pinned memory. torch's memory viewer reads them.

    Parameters
    ----------
    device : int, str, device or None, optional
        Only this device's memory. None is every device.
    augment_with_fx_traces : bool, optional
        It has no effect: there are no FX graphs.

    Returns
    -------
    dict

    Raises
    ------
    DeviceIndexError
        There is no device with this index.

    Notes
    -----
    The format is that of ``torch.cuda.memory._snapshot``. Memory that the host shares is not in it.
    """
    return _state(device, None)


def snapshot_with_threads():
    """Return `snapshot`, each entry of which has the number of its ``thread`` too."""
    return _state(None, None, True)


def _state(device, most, with_threads=False):
    if lazy.opened:
        lazy.init()  # raises in a forked child, with the reason
    index = None if device is None else index_or_current(device)
    parts = trace.snapshot(index, True, most, with_threads) if is_opened() else ([], [], [], [])
    segments, traces, host_segments, host_traces = parts
    return {
        "segments": segments,
        "device_traces": traces,
        "host_segments": host_segments,
        "host_traces": host_traces,
        "allocator_settings": _settings(),
        "external_annotations": list(_annotations),
    }


def _settings():
    conf = config.alloc_conf()
    split = conf.max_split_size_mb
    return {
        "PYTORCH_ALLOC_CONF": str(conf),
        "max_split_size": -1 if split is None else split << 20,
        "garbage_collection_threshold": float(conf.garbage_collection_threshold),
        "expandable_segments": bool(conf.expandable_segments),
        "roundup_power2_divisions": {
            str(1 << power): steps for power, steps in enumerate(conf.roundup_power2_divisions)
        },
    }


def dump_snapshot(filename: _Path = "dump_snapshot.pickle", augment_with_fx_traces: bool = False) -> None:
    """Write `snapshot` to a file, as a pickle that torch's memory viewer opens.

    The file is complete as soon as it has its name.

    Parameters
    ----------
    filename : str or path, optional
        The file, which is replaced if there is one.
    augment_with_fx_traces : bool, optional
        It has no effect: there are no FX graphs.

    Raises
    ------
    OSError
        The file cannot be written.

    Notes
    -----
    The format is that of ``torch.cuda.memory._dump_snapshot``.
    """
    path = plain_path(filename)
    if not path:
        raise ValueError("a snapshot needs the name of a file, got ''")
    shot = snapshot()
    with whole_file(path) as file:
        pickle.dump(shot, file, protocol=4)


def set_memory_metadata(metadata: str | dict[str, Any]) -> None:
    """Annotate what this thread allocates and frees from now on, in the entries of the history; ``""`` for nothing.

    Parameters
    ----------
    metadata : str or dict
        It is ``user_metadata`` of the entries, a dict as JSON without spaces.

    Notes
    -----
    The contract is that of ``torch.cuda.memory._set_memory_metadata``.
    """
    trace.set_metadata(_text_of(metadata))


def _text_of(metadata):
    if isinstance(metadata, dict):
        import json  # here, not above: few programs annotate, and all of them import this

        return json.dumps(metadata, separators=(",", ":"))
    if not isinstance(metadata, str):
        raise TypeError(f"metadata must be a str or a dict, got {type(metadata).__name__}")
    return metadata


def annotate_memory(buffer: Buffer | SupportsIndex, metadata: str | dict[str, Any]) -> None:
    """Add an entry with the action ``annotate`` to the history, about memory that is allocated.

    What `set_memory_metadata` has annotated stays as it is. While no history is recorded, nothing happens.

    Parameters
    ----------
    buffer : Buffer or int
        The buffer, or any address inside an allocation.
    metadata : str or dict
        It is ``user_metadata`` of the entry, a dict as JSON without spaces.

    Raises
    ------
    InvalidArgumentError
        The address is not inside an allocation.

    Notes
    -----
    The contract is that of ``torch.cuda.memory._annotate_tensor``.
    """
    text = _text_of(metadata)
    trace.annotate(whole_number(getattr(buffer, "ptr", buffer), "buffer must be a Buffer or an address, which"), text)


def get_memory_metadata() -> str:
    """Return what `set_memory_metadata` has set on this thread.

    Returns
    -------
    str
    """
    return trace.metadata()


@contextmanager
def annotate(name: str) -> Iterator[None]:
    """Name a part of the program in the history: the time that a with block takes.

    Parameters
    ----------
    name : str
        The name, which is shown in ``external_annotations`` of a snapshot.

    Returns
    -------
    context manager
    """
    if not isinstance(name, str):
        raise TypeError(f"a name must be a str, got {type(name).__name__}")
    mark = begin_annotation(name)
    try:
        yield
    finally:
        end_annotation(mark)


def begin_annotation(name):
    """Note that a part of the program begins, if the history is recorded; return what `end_annotation` takes."""
    if not trace.recorded() & _ENTRIES:
        return None
    annotations, device = _annotations, index_or_current(None) if lazy.initialized else 0
    _annotation(annotations, device, name, "START")
    return annotations, device, name


def end_annotation(mark):
    """Note that a part of the program ends: on the device where it has begun, and only where that was noted."""
    if mark is not None:
        annotations, device, name = mark
        _annotation(annotations, device, name, "END")


def _annotation(annotations, device, name, stage):
    annotations.append({"device": device, "time_us": time.time_ns() // 1000, "name": name, "stage": stage})


@contextmanager
def tag(name: str) -> Iterator[None]:
    """Count what this thread allocates inside a with block under ``name``.

    `memory_stats` has the bytes under ``component_bytes.<name>``, `host_memory_stats` those of pinned memory;
    `memory_summary` has a row, and snapshots name the tag as ``category``. A nested block has its own tag alone. The
    first tag of a process makes each allocation a little slower from then on.

    Parameters
    ----------
    name : str
        The tag, without a dot.

    Returns
    -------
    context manager

    Raises
    ------
    ValueError
        The name is empty or has a dot.
    """
    if not isinstance(name, str):
        raise TypeError(f"a tag must be a str, got {type(name).__name__}")
    if not name or "." in name:
        raise ValueError(f"a tag must not be empty nor have a dot: it is part of a key of memory_stats; got {name!r}")
    before = trace.tag_exchange(name)
    try:
        yield
    finally:
        trace.tag_exchange(before)


# Of torchrun, MPICH and Intel's MPI, Open MPI, PMIx, Slurm.
RANKS = ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
_MOST_FILES = 10  # of out-of-memory snapshots, by one process: a program that tries smaller sizes fails many times


class _OnOom:
    """What writes a snapshot when an allocation fails."""

    def __init__(self, path, most):
        self.path, self.most = os.path.splitext(path), most
        self.turns = iter(range(_MOST_FILES))  # threads may fail at the same time

    def __call__(self, device):
        """Write the next file, and return a sentence that names it."""
        if next(self.turns, None) is None:
            return ""
        try:
            shot = _state(None, self.most)
            with numbered_file(f"-{_process()}".join(self.path)) as (file, name):
                pickle.dump(shot, file, protocol=4)
            return f"A snapshot of memory is in {name}."
        except Exception as error:  # the error that is being made counts
            return f"No snapshot of memory could be written: {error}."


def _process():
    """Return the machine, the rank of a distributed program if a launcher says one, and the number of this process."""
    rank = next((os.environ[name] for name in RANKS if os.environ.get(name, "").isdecimal()), None)
    host = re.sub(r"[^\w.-]", "_", os.uname().nodename)
    return f"{host}-{'' if rank is None else f'rank{rank}-'}{os.getpid()}"


def enable_oom_snapshot(path: _Path | None, max_entries: int = 1_500_000) -> None:
    """Write a snapshot whenever an allocation fails, with the last entries before it.

    The files have the name of the machine, the rank in a distributed program (`RANK`, or what MPI or Slurm set) and the
    number of the process in their names, and are numbered: ``oom.pickle`` gives ``oom-node7-rank3-4711.1.pickle``,
    ``oom-node7-rank3-4711.2.pickle`` and so on. None is replaced, each is complete as soon as it has its name, and a
    process writes at most ten. The error names its file. Unless the history is recorded already, it is from now on.

    Parameters
    ----------
    path : str, path or None
        The files' name without these. None writes no more files.
    max_entries : int, optional
        The most entries for each device.

    Raises
    ------
    ValueError
        The path is empty, or the number is not positive.

    Notes
    -----
    The environment variable ``L0RT_OOM_SNAPSHOT`` does the same for a whole process.
    """
    if path is None:
        set_reporter(None)
        return
    path = plain_path(path)
    most = whole_number(max_entries, "max_entries")
    if not path:
        raise ValueError("a snapshot needs the name of a file, got ''")
    if most < 1:
        raise ValueError(f"max_entries must be positive, got {most}")
    if not trace.recorded() & _ENTRIES:
        record_memory_history(max_entries=most)
    set_reporter(_OnOom(os.path.abspath(path), most))


def begin():
    """Do what the setting ``oom_snapshot`` says."""
    enable_oom_snapshot(config.get("oom_snapshot"))
