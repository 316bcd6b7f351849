# SPDX-License-Identifier: Apache-2.0
"""A network learns to tell two spirals apart: forward, backward and SGD are kernels of its own, in train_spirals.cl.

It draws the loss and what was learnt to spirals.png, or to the file that the first argument names, if matplotlib is
installed.
"""

import sys
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np

POINTS, BATCH, HIDDEN = 512, 128, 32
EPOCHS, RATE, MOMENTUM = 300, 0.1, 0.9
ENOUGH = 0.1  # the loss that a run must reach


def spirals(count, seed=1):
    """Return points (x, y) of two spirals, and 0 or 1 for each, in random order."""
    rng = np.random.default_rng(seed)
    label = np.arange(count) % 2
    along = rng.uniform(0.15, 1, count)
    angle = 3 * np.pi * along + np.pi * label
    points = along[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1) + rng.normal(0, 0.015, (count, 2))
    return points.astype("f4"), label.astype("f4")


class Layer:
    """Weights and biases, the outputs of a batch, and the derivatives of the loss by the sums that made them."""

    def __init__(self, kernels, inputs, outputs, generator, is_last=False):
        self.inputs, self.outputs, self.kernels = inputs, outputs, kernels
        self.is_last = is_last
        count = (inputs + 1) * outputs  # the last row has the biases
        self.weights = l0rt.empty(4 * count).normal_(0, (1.5 / inputs) ** 0.5, generator=generator)
        self.weights[4 * inputs * outputs :].fill(0)
        self.velocity = l0rt.empty(4 * count).fill(0)

    def forward(self, x, rows):
        """Return the outputs for some rows, in new memory: after the first batch the allocator has it cached."""
        to = l0rt.empty(4 * rows * self.outputs)
        size = self.outputs, rows
        self.kernels["forward"].launch(to, x, self.weights, self.inputs, int(self.is_last), global_size=size)
        return to

    def backward(self, x, delta, rows):
        """Change the weights; return the derivatives by the sums of the layer before."""
        before = None
        if self.inputs > 2:
            before = l0rt.empty(4 * rows * self.inputs)
            size = self.inputs, rows
            self.kernels["backward"].launch(before, x, delta, self.weights, self.outputs, global_size=size)
        self.kernels["descend"].launch(
            self.weights, self.velocity, x, delta, self.inputs, rows, RATE, MOMENTUM,
            global_size=(self.outputs, self.inputs + 1),
        )  # fmt: skip
        return before


class Network:
    def __init__(self):
        generator = l0rt.Generator().manual_seed(2)
        self.kernels = l0rt.compile(Path(__file__).with_suffix(".cl"))
        sizes = (2, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1)
        self.layers = [Layer(self.kernels, *size, generator, is_last=size[1] == 1) for size in sizes]

    def forward(self, x, rows):
        """Return what each layer makes of the rows, the rows themselves first."""
        found = [x]
        for layer in self.layers:
            found.append(layer.forward(found[-1], rows))
        return found

    def step(self, x, labels, loss, rows):
        """Learn from a batch, and add its mean loss to ``loss``."""
        found = self.forward(x, rows)
        delta = l0rt.empty(4 * rows)
        scratch = l0rt.LocalMemory(4 * rows)
        self.kernels["compare"][1, rows](delta, loss, found[-1], labels, scratch)
        for layer, inputs in zip(reversed(self.layers), reversed(found[:-1]), strict=True):
            delta = layer.backward(inputs, delta, rows)


def train(network, points, labels):
    """Return the loss of each epoch. Nothing waits for the computation but the line that tells of it."""
    compute, report = acc.Stream(), acc.Stream()
    history = l0rt.pinned(EPOCHS, "f4")
    with compute:
        x, y = l0rt.from_numpy(points), l0rt.from_numpy(labels)
        losses = l0rt.empty(4 * EPOCHS).fill(0)
        for epoch in range(EPOCHS):
            loss = losses[4 * epoch : 4 * epoch + 4]
            for at in range(0, POINTS, BATCH):
                end = at + BATCH
                network.step(x[8 * at : 8 * end], y[4 * at : 4 * end], loss, BATCH)  # slices: nothing is copied
            if (epoch + 1) % 100 == 0:  # the other stream fetches the losses, and the next epoch may begin
                first = epoch - 99
                report.wait_event(compute.record_event())
                l0rt.memcpy(history[first : epoch + 1], losses[4 * first : 4 * epoch + 4], 400, stream=report)
                print(f"epoch {epoch + 1}: loss {history[epoch] / (POINTS // BATCH):.4f}", flush=True)
    return history / (POINTS // BATCH)


def predict(network, points):
    """Return the probability of label 1 for each point."""
    found = network.forward(l0rt.from_numpy(points), len(points))[-1].numpy("f4", len(points))
    return 1 / (1 + np.exp(-found))


def draw(path, losses, network, points, labels):
    """Draw the loss of each epoch, and the plane as the network divides it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    left.semilogy(np.arange(1, len(losses) + 1), losses)
    left.axhline(ENOUGH, color="grey", linestyle="--", linewidth=1)
    left.annotate("enough", (0, ENOUGH), xytext=(4, 4), textcoords="offset points", color="grey")
    left.set(xlabel="epoch", ylabel="mean loss", title="Loss")
    edge = np.linspace(-1.15, 1.15, 80, dtype="f4")
    grid = np.stack(np.meshgrid(edge, edge), -1).reshape(-1, 2)
    chance = predict(network, np.ascontiguousarray(grid)).reshape(80, 80)
    right.contourf(edge, edge, chance, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.6)
    right.scatter(*points.T, c=labels, cmap="RdBu_r", s=9, edgecolors="black", linewidths=0.3)
    right.set(aspect="equal", title="What was learnt")
    figure.savefig(path, dpi=100)


def main():
    l0rt.config.set("driver", "auto")  # a GPU if there is one, else the CPU driver, with a warning
    points, labels = spirals(POINTS)
    network = Network()
    losses = train(network, points, labels)
    right = ((predict(network, points) > 0.5) == labels).mean()
    print(f"{right:.1%} of the points are on the right side")
    path = sys.argv[1] if len(sys.argv) > 1 else "spirals.png"
    try:
        draw(path, losses, network, points, labels)
    except ModuleNotFoundError as missing:
        print(f"no picture: {missing.name} is not installed (pip install matplotlib)")
    if not losses[-1] < ENOUGH:
        sys.exit(f"the loss is {losses[-1]:.4f}, and should have fallen below {ENOUGH}")


if __name__ == "__main__":
    main()
