# SPDX-License-Identifier: Apache-2.0
"""A model of memory that the entries of a history drive: what is allocated, waiting, mapped, and the peak."""


class Model:
    """What a trace comes to, entry by entry. An entry that does not follow from those before is an AssertionError."""

    def __init__(self, segments=()):
        """Begin with what these segments have."""
        blocks = [block for segment in segments for block in segment["blocks"]]
        self.allocated = {b["address"]: b["requested_size"] for b in blocks if b["state"] == "active_allocated"}
        self.waiting = {b["address"]: b["requested_size"] for b in blocks if b["state"] == "active_pending_free"}
        self.mapped = {s["address"]: s["address"] + s["total_size"] for s in segments}  # start -> end
        self.peak = self.now = sum(self.allocated.values()) + sum(self.waiting.values())

    def play(self, trace, is_whole=True):
        """Take all entries; not ``is_whole``: what they free may be older than they are."""
        for entry in trace:
            step = getattr(self, "_" + entry["action"])
            if entry["action"] in ("snapshot", "oom"):
                step(entry)
            else:
                step(entry["addr"], entry["size"], is_whole)
        return self

    def _alloc(self, address, size, _):
        assert address not in self.allocated, hex(address)
        assert address not in self.waiting, hex(address)
        self.allocated[address] = size
        self.now += size
        self.peak = max(self.peak, self.now)

    def _free_requested(self, address, size, is_whole):
        if not is_whole and address not in self.allocated:
            return
        assert self.allocated.pop(address) == size
        self.waiting[address] = size

    def _free_completed(self, address, size, is_whole):
        if not is_whole and address not in self.waiting:
            return
        assert self.waiting.pop(address) == size
        self.now -= size

    def _segment_alloc(self, address, size, _):
        self._segment_map(address, size, _)

    def _segment_free(self, address, size, is_whole):
        self._segment_unmap(address, size, is_whole)

    def _segment_map(self, address, size, _):
        end = address + size
        assert not any(start < end and address < stop for start, stop in self.mapped.items()), hex(address)
        self.mapped[address] = end

    def _segment_unmap(self, address, size, is_whole):
        end = address + size
        for start, stop in list(self.mapped.items()):
            if start < end and address < stop:
                del self.mapped[start]
                if start < address:
                    self.mapped[start] = address
                if end < stop:
                    self.mapped[end] = stop
                size -= min(end, stop) - max(start, address)
        assert size == 0 or not is_whole, (hex(address), size)

    def _snapshot(self, entry):
        assert entry["addr"] == 0

    def _annotate(self, address, size, is_whole):
        assert not is_whole or self.allocated[address] == size

    def _oom(self, entry):
        assert entry["device_free"] >= 0

    def check(self, segments):
        """What the trace comes to is what the segments show."""
        blocks = [block for segment in segments for block in segment["blocks"]]
        for state, expected in ("active_allocated", self.allocated), ("active_pending_free", self.waiting):
            shown = {block["address"]: block["requested_size"] for block in blocks if block["state"] == state}
            assert shown == expected, (state, len(shown), len(expected))
        shown = sorted((segment["address"], segment["address"] + segment["total_size"]) for segment in segments)
        assert _joined(shown) == _joined(sorted(self.mapped.items()))


def _joined(spans):
    """Spans without neighbours that touch: a range gets memory in parts, and is shown as one segment."""
    found = []
    for start, end in spans:
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


FRAME = {"filename": str, "line": int, "name": str}
BLOCK = {"address": int, "size": int, "requested_size": int, "state": str, "frames": list}
SEGMENT = {
    "device": int, "address": int, "total_size": int, "stream": int, "segment_type": str, "allocated_size": int,
    "active_size": int, "requested_size": int, "is_expandable": bool, "segment_pool_id": tuple, "frames": list,
    "blocks": list,
}  # fmt: skip
ENTRY = {
    "action": str, "addr": int, "size": int, "stream": int, "time_us": int, "pool_id": tuple, "compile_context": str,
    "user_metadata": str,
}  # fmt: skip
ANNOTATION = {"device": int, "time_us": int, "name": str, "stage": str}
SETTINGS = {
    "PYTORCH_ALLOC_CONF": str, "max_split_size": int, "garbage_collection_threshold": float,
    "expandable_segments": bool, "roundup_power2_divisions": dict,
}  # fmt: skip
WHOLE = {
    "segments": list, "device_traces": list, "host_segments": list, "host_traces": list, "allocator_settings": dict,
    "external_annotations": list,
}  # fmt: skip
ACTIONS = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
           "segment_unmap", "snapshot", "oom", "annotate"}  # fmt: skip


def check_schema(snapshot, devices):
    """Is it a snapshot as torch 2.13 writes them?"""
    _check(snapshot, WHOLE)
    _check(snapshot["allocator_settings"], SETTINGS)
    assert len(snapshot["device_traces"]) == len(snapshot["host_traces"]) == devices
    for segment in snapshot["segments"] + snapshot["host_segments"]:
        _check(segment, SEGMENT)
        assert segment["segment_type"] in ("small", "large")
        address = segment["address"]
        for block in segment["blocks"]:
            _check(block, BLOCK, {"category": str})
            assert block["state"] in ("active_allocated", "active_pending_free", "inactive")
            assert block["address"] == address, "blocks follow each other without gaps"
            address += block["size"]
            _check_frames(block["frames"])
        assert address == segment["address"] + segment["total_size"]
    addresses = [(segment["device"], segment["address"]) for segment in snapshot["segments"]]
    assert addresses == sorted(addresses)
    for trace in snapshot["device_traces"] + snapshot["host_traces"]:
        for entry in trace:
            kind = dict(ENTRY)
            if entry["action"] == "oom":
                kind["device_free"] = kind.pop("addr")
            _check(entry, kind, {"frames": list, "category": str})
            assert entry["action"] in ACTIONS
            _check_frames(entry.get("frames", []))
    for annotation in snapshot["external_annotations"]:
        _check(annotation, ANNOTATION)
        assert annotation["stage"] in ("START", "END")


def _check_frames(frames):
    for frame in frames:
        _check(frame, FRAME)


def _check(found, schema, optional=()):
    assert set(schema) <= set(found) <= {*schema, *optional}, found
    for key, kind in {**schema, **dict(optional)}.items():
        assert key not in found or type(found[key]) is kind, (key, found[key])
