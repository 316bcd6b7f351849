# SPDX-License-Identifier: Apache-2.0
"""tinygrad's captured steps as graphs of l0rt: recorded once, changed where the inputs have changed, and replayed."""

from contextlib import ExitStack
from typing import Any

from tinygrad.device import Device, MultiBuffer
from tinygrad.engine.jit import MultiGraphRunner
from tinygrad.engine.realize import get_call_arg_uops
from tinygrad.uop.ops import Ops

from l0rt.accelerator import Graph
from l0rt.buffers.copies import memcpy
from l0rt.interop.tinygrad.timing import timed
from l0rt.runtime.current.lease import lease


def address(opaque):
    """Return the address of what the allocator has made."""
    return opaque if isinstance(opaque, int) else opaque.ptr


class L0RTGraph(MultiGraphRunner):
    """A graph of l0rt with one stream for each device, and waits where one device needs what another has done."""

    def __init__(self, linear, input_uops=()):
        super().__init__(linear, input_uops)
        self.devices: list[Any] = []
        for _, _, bufs, _ in self.calls:
            self.devices += [dev for dev in dict.fromkeys(Device[b.device] for b in bufs) if dev not in self.devices]
        self.first = self.devices[0]
        # What each node has now, so that only what differs is changed: addresses and numbers by position, and sizes.
        self.given: list[dict[int, Any]] = [{} for _ in self.calls]
        self.sizes = {}
        self.changing = [j for j, replace in enumerate(self.uop_replace) if replace]
        self.graph = Graph(capture_error_mode="relaxed")
        with ExitStack() as block:
            streams = {dev: block.enter_context(lease(dev.name)) for dev in self.devices}
            self.capture(streams)
        self.nodes = [node for node in self.graph.nodes if node.kind in ("kernel", "copy")]

    def capture(self, streams):
        """Record all calls, each on the stream of its device."""
        homes = [streams[Device[bufs[0].device]] for _, _, bufs, _ in self.calls]
        needs = [self.predecessors(j) for j in range(len(self.calls))]
        crossing = {i for j, waits in enumerate(needs) for i in waits if homes[i] is not homes[j]}
        root = streams[self.first]
        events: dict[int, Any] = {}
        with root, self.graph:
            for stream in streams.values():
                if stream is not root:
                    stream.wait_stream(root)
            for j, home in enumerate(homes):
                for i in needs[j]:
                    if homes[i] is not home:
                        home.wait_event(events[i])
                self.issue(j, home)
                if j in crossing:
                    events[j] = home.record_event()
            for stream in streams.values():
                if stream is not root:
                    root.wait_stream(stream)

    def predecessors(self, j):
        """Return the numbers of the earlier calls that a call must come behind."""
        _, ast, bufs, _ = self.calls[j]
        outputs = ast.arg.outs if ast.op is Ops.PROGRAM else (0,)
        return self._access_resources(bufs, list(outputs), j)

    def issue(self, j, stream):
        _, ast, bufs, constants = self.calls[j]
        opaques = [buf._buf for buf in bufs]
        if ast.op is Ops.PROGRAM:
            values = {**dict.fromkeys(self.vars, 0), **constants}
            groups, group_size = [tuple(max(1, size) for size in sizes) for sizes in ast.arg.launch_dims(values)]
            runtime = self.runtimes[j]
            args = runtime.arguments(opaques, [values[variable.expr] for variable in ast.arg.vars])
            runtime.kernel[groups, group_size, stream](*args)
            self.sizes[j] = [groups, group_size]
        else:
            memcpy(opaques[0], opaques[1], bufs[0].nbytes, stream, non_blocking=True)
        self.given[j] = {position: address(opaque) for position, opaque in enumerate(opaques)}

    def __call__(self, input_uops, var_vals, wait=False):
        self.change(input_uops, var_vals)
        for dev in self.devices[1:]:
            self.first.stream.wait_stream(dev.stream)
        seconds = timed(self.first.stream, self.replay) if wait else self.replay()
        for dev in self.devices[1:]:
            dev.stream.wait_stream(self.first.stream)
        return seconds

    def replay(self):
        with self.first.stream:
            self.graph.replay()

    def change(self, input_uops, var_vals):
        """Change the nodes whose inputs, variables or sizes are not what they were."""
        changes: dict[int, dict[int, Any]] = {}
        for j in self.changing:
            number, current = self.calls[j][0], self.given[j]
            for position, slot in self.uop_replace[j]:
                buf = input_uops[slot].buffer
                opaque = (buf.bufs[number] if isinstance(buf, MultiBuffer) else buf).ensure_allocated()._buf
                if current[position] != address(opaque):
                    changes.setdefault(j, {})[position] = opaque
        for j, i, value in self.updated_vars(var_vals):
            position = len(self.calls[j][2]) + i
            if self.given[j].get(position) != value:
                changes.setdefault(j, {})[position] = value
        sizes = {j: size for j, *size in self.updated_launch_dims(var_vals) if self.sizes[j] != size}
        for j in {**changes, **sizes}:
            self.change_node(j, changes.get(j, {}), sizes.get(j))

    def change_node(self, j, changes, sizes):
        """Change what one node has at the given positions, and its sizes if there are any."""
        node = self.nodes[j]
        if node.kind == "copy":
            node.update(**{("dst", "src")[position]: opaque for position, opaque in changes.items()})
        else:
            slots = self.runtimes[j].slots
            args = {position if slots is None else slots.index(position): what for position, what in changes.items()}
            groups, group_size = sizes or (None, None)
            node.update(args=args, groups=groups, group_size=group_size)
        self.given[j].update({position: address(what) for position, what in changes.items()})  # what is so now
        if sizes:
            self.sizes[j] = sizes

    @staticmethod
    def supports_uop(batch_devs, new_call):
        ast = new_call.src[0]
        count = len(get_call_arg_uops(new_call))
        if ast.op is Ops.PROGRAM and (ast.arg.globals != tuple(range(count)) or ast.arg.local_size is None):
            return False  # a node is changed by the call's positions: the kernel takes all of them, its sizes are known
        return MultiGraphRunner.supports_uop(batch_devs, new_call)
