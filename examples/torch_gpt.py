# SPDX-License-Identifier: Apache-2.0
"""Train a small GPT on tensors of l0rt's device: its own tokeniser, on text that is made on the spot.

`--graph` captures a step of training, backward and optimizer included, and replays it. `--device cpu` trains on torch's
CPU, for comparison. `--plot FILE` writes the losses as a picture, if matplotlib is installed.
"""

import argparse
import random
import time

import l0rt.interop.torch_device as torch_device
import torch
from torch import nn
from torch.nn import functional

PARTS = {
    "subject": ["the stream", "an event", "the graph", "a kernel", "the queue"],
    "verb": ["waits for", "records", "replays", "launches", "orders"],
    "object": ["a copy", "the fence", "two events", "all work", "its memory"],
}


def make_text(sentences, seed=0):
    """Return text of simple sentences."""
    choose = random.Random(seed).choice
    return " ".join(" ".join(choose(words) for words in PARTS.values()) + "." for _ in range(sentences))


class Tokeniser:
    """A token is a word, a space or a full stop."""

    def __init__(self, text):
        self.words = sorted(set(self.split(text)))
        self.numbers = {word: number for number, word in enumerate(self.words)}

    @staticmethod
    def split(text):
        for mark in " .":
            text = text.replace(mark, f"\0{mark}\0")
        return [word for word in text.split("\0") if word]

    def encode(self, text):
        return [self.numbers[word] for word in self.split(text)]

    def decode(self, numbers):
        return "".join(self.words[number] for number in numbers)


class Block(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.register_buffer("future", torch.ones(length, length, dtype=torch.bool).triu(1))

    def attend(self, x):
        batch, length, width = x.shape
        parts = self.query_key_value(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.mT / (width // self.heads) ** 0.5
        scores = scores.masked_fill(self.future[:length, :length], float("-inf"))
        return self.project((scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.norm_1(x))
        return x + self.feed(self.norm_2(x))


class GPT(nn.Module):
    def __init__(self, tokens, width=32, heads=4, length=32, blocks=2):
        super().__init__()
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, length) for _ in range(blocks)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.norm(self.blocks(self.tokens(x) + self.places(places))))


class Training:
    """A model, its optimizer, and the batch that a step reads."""

    def __init__(self, tokens, data, device, batch=8, length=32, is_captured=False):
        torch.manual_seed(0)
        self.model = GPT(tokens, length=length).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3, capturable=is_captured, foreach=False)
        self.data, self.choose, self.batch, self.length = data, random.Random(1), batch, length
        self.x = torch.zeros(batch, length, dtype=torch.long, device=device)
        self.target = torch.zeros_like(self.x)

    def load(self):
        """Copy the next batch to the device."""
        starts = [self.choose.randrange(len(self.data) - self.length) for _ in range(self.batch)]
        self.x.copy_(torch.stack([self.data[start : start + self.length] for start in starts]))
        self.target.copy_(torch.stack([self.data[start + 1 : start + 1 + self.length] for start in starts]))

    def step(self):
        """Return the loss before the step."""
        self.optimizer.zero_grad(set_to_none=False)
        loss = functional.cross_entropy(self.model(self.x).flatten(0, 1), self.target.flatten())
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def train(training, steps):
    """Return the losses of as many steps."""
    losses = []
    for _ in range(steps):
        training.load()
        losses.append(training.step().item())
    return losses


def train_by_graph(training, steps):
    """Do the same: the first steps run as they are, and the others replay a captured one."""
    stream = torch.Stream(training.x.device)
    with stream:
        losses = train(training, 2)  # what is allocated at the first use is allocated before the capture
        graph = torch.accelerator.Graph()
        graph.capture_begin()
        loss = training.step()
        graph.capture_end()
        for _ in range(steps - 2):
            training.load()
            graph.replay()
            losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="lzrt")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--graph", action="store_true", help="capture a step, and replay it")
    parser.add_argument("--plot", metavar="FILE")
    arguments = parser.parse_args()
    text = make_text(400)
    tokeniser = Tokeniser(text)
    data = torch.tensor(tokeniser.encode(text))
    training = Training(len(tokeniser.words), data, arguments.device, is_captured=arguments.graph)
    torch_device.forget_fallbacks()
    begin = time.perf_counter()
    losses = (train_by_graph if arguments.graph else train)(training, arguments.steps)
    seconds = time.perf_counter() - begin
    rate = arguments.steps * training.x.numel() / seconds
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f} on {training.x.device}, {rate:.0f} tokens per second")
    print("losses:", *(f"{loss:.6f}" for loss in losses))
    print("on the CPU:", [(row.name, row.calls) for row in torch_device.fallbacks()])
    if arguments.plot:
        try:
            from matplotlib import pyplot
        except ImportError:
            parser.exit(1, "the plot needs matplotlib: pip install matplotlib\n")
        pyplot.plot(losses)
        pyplot.xlabel("step")
        pyplot.ylabel("loss")
        pyplot.savefig(arguments.plot)


if __name__ == "__main__":
    main()
