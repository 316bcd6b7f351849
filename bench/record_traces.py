# SPDX-License-Identifier: Apache-2.0
"""Records what small models allocate and free on the CPU: `python bench/record_traces.py FOLDER [NAME ...]`.

It needs torch (2.13.0, as `pip install torch` gives it) and NumPy, in an environment of its own; nothing of l0rt. Each
workload becomes FOLDER/NAME.npz with one structured array `trace`: `op` (0 allocates, 1 frees), `id` and `size`. Sizes
come from torch's profiler, as requested. Weights of the models are part of the trace: they are made under the
profiler too.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

WORKLOADS = {}


def workload(function):
    WORKLOADS[function.__name__] = function
    return function


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        self.skip = nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        y = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(y)) + self.skip(x))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x, mask=None, cache=None):
        batch, length, width = x.shape
        q, k, v = self.inputs(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = (torch.cat(pair, 2) for pair in zip(cache, (k, v), strict=True)) if cache else (k, v)
            cache[:] = [k, v]
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        scores = scores if mask is None else scores.masked_fill(mask, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        return x + self.output(y)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.rest = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, mask=None, cache=None):
        x = self.attention(x, mask, cache)
        return x + self.rest(x)


class UNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        widths = [width * 2**i for i in range(depth)]
        self.start = nn.Conv2d(3, width, 3, 1, 1)
        self.time = nn.Sequential(nn.Linear(64, 4 * width), nn.SiLU(), nn.Linear(4 * width, widths[-1]))
        self.down = nn.ModuleList(Residual(w, 2 * w, 2) for w in widths[:-1])
        self.middle = Layer(widths[-1], 4)
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.join = nn.ModuleList(Residual(2 * w, w) for w in reversed(widths[:-1]))
        self.end = nn.Conv2d(width, 3, 3, 1, 1)

    def forward(self, x, step):
        angles = step[:, None] * torch.exp(torch.arange(32) * -0.3)
        embedding = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        x, skips = self.start(x), []
        for down in self.down:
            skips.append(x)
            x = down(x)
        shape = x.shape
        x = self.middle((x + embedding[:, :, None, None]).flatten(2).transpose(1, 2)).transpose(1, 2).reshape(shape)
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([up(x), skips.pop()], 1))
        return self.end(x)


def classifier(width=16, blocks=(1, 2, 2, 2), classes=100):
    layers, inputs = [nn.Conv2d(3, width, 3, 2, 1)], width
    for i, count in enumerate(blocks):
        for k in range(count):
            layers.append(Residual(inputs, width << i, 2 if i > 0 and k == 0 else 1))
            inputs = width << i
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def step_of(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@workload
def classify_serve(random):
    """A convolutional classifier that serves images of any size, in batches as they come."""
    model = classifier().eval()
    with torch.no_grad():
        for _ in range(120):
            batch, height, width = random.integers(1, 7), *random.integers(64, 321, 2)
            image = torch.randint(0, 255, (batch, 3, height, width), dtype=torch.uint8)
            scale = 224 / min(height, width)
            crop = functional.interpolate(image.float() / 255, scale_factor=max(0.5, scale * random.uniform(0.7, 1.2)))
            model(crop).softmax(-1).topk(5)


@workload
def classify_train(random):
    """A small convolutional classifier with Adam, a fixed batch but for each epoch's last."""
    model = classifier(8, (1, 1, 1), 10)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    for i in range(60):
        images = torch.rand(17 if i % 12 == 11 else 64, 3, 32, 32)
        loss = functional.cross_entropy(model(images), torch.randint(0, 10, (len(images),)))
        step_of(optimizer, loss)


@workload
def decode(random):
    """Text generation: prompts of any length, then a token at a time with key and value caches that grow."""
    width, layers = 192, nn.ModuleList(Layer(192, 6) for _ in range(5))
    tokens, head = nn.Embedding(4000, width), nn.Linear(width, 4000, bias=False)
    with torch.no_grad():
        for _ in range(8):
            batch, length = random.integers(1, 6), random.integers(20, 260)
            caches = [[] for _ in layers]
            ids = torch.randint(0, 4000, (batch, length))
            for _ in range(random.integers(12, 50)):
                x = tokens(ids)
                mask = torch.ones(length, length, dtype=torch.bool).triu(1) if ids.shape[1] > 1 else None
                for layer, cache in zip(layers, caches, strict=True):
                    x = layer(x, mask, cache)
                probabilities = (head(x[:, -1]) / 0.8).softmax(-1)
                ids = torch.multinomial(probabilities, 1)


@workload
def detect_serve(random):
    """Detection: an image of any size in three scales, and as many boxes as there happen to be."""
    trunk = classifier(12, (1, 1, 2))[:-3].eval()
    heads = nn.ModuleList([nn.Conv2d(48, 9, 3, 1, 1), nn.Conv2d(48, 36, 3, 1, 1)])
    with torch.no_grad():
        for _ in range(50):
            image = torch.rand(1, 3, *(32 * random.integers(5, 14, 2)).tolist())
            boxes, scores = [], []
            for scale in (1, 0.75, 0.5):
                features = trunk(functional.interpolate(image, scale_factor=scale, mode="bilinear"))
                scores.append(heads[0](features).flatten())
                boxes.append(heads[1](features).view(4, -1).T)
            boxes, scores = torch.cat(boxes), torch.cat(scores).sigmoid()
            kept = scores.topk(int(random.integers(50, 700))).indices
            boxes = boxes[kept]
            low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
            high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
            overlap = (high - low).clamp(min=0).prod(-1)
            boxes[(overlap > 0.5).any(1)]


@workload
def diffuse_sample(random):
    """Diffusion: 12 denoising steps for each request, in its own size."""
    model = UNet(12, 4).eval()
    with torch.no_grad():
        for _ in range(12):
            x = torch.randn(random.integers(1, 5), 3, *(8 * random.integers(4, 17, 2)).tolist())
            for i in range(12):
                step = torch.full((len(x),), float(12 - i))
                guided = model(torch.cat([x, x]), torch.cat([step, step]))
                plain, prompted = guided.chunk(2)
                x = x - 0.1 * (plain + 3 * (prompted - plain)) + 0.01 * torch.randn_like(x)
            ((x.clamp(-1, 1) + 1) * 127).to(torch.uint8)


@workload
def diffuse_train(random):
    """The same network in training, with AdamW and an average of its weights."""
    model, average = UNet(12, 4), UNet(12, 4)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(24):
        clean, step = torch.rand(random.integers(6, 11), 3, 64, 64), torch.rand(1) * 100
        noise = torch.randn_like(clean)
        noisy = clean * 0.7 + noise * 0.3
        step_of(optimizer, functional.mse_loss(model(noisy, step.expand(len(clean))), noise))
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), model.parameters(), strict=True):
                mean.lerp_(weight, 0.01)


@workload
def embed_serve(random):
    """A text encoder that embeds batches of any size and length."""
    layers, tokens = nn.ModuleList(Layer(256, 8) for _ in range(6)), nn.Embedding(8000, 256)
    with torch.no_grad():
        for _ in range(60):
            lengths = torch.tensor(random.integers(4, random.integers(20, 220), random.integers(1, 17)))
            ids = torch.randint(0, 8000, (len(lengths), int(lengths.max())))
            mask = torch.arange(ids.shape[1])[None] >= lengths[:, None]
            x = tokens(ids)
            for layer in layers:
                x = layer(x, mask[:, None, None])
            x = (x * ~mask[..., None]).sum(1) / lengths[:, None]
            functional.normalize(x)


@workload
def encode_train(random):
    """A text encoder in training: gradients of four batches added up, activations computed twice, AdamW."""
    layers, tokens = nn.ModuleList(Layer(192, 6) for _ in range(6)), nn.Embedding(6000, 192)
    head = nn.Linear(192, 6000)
    optimizer = torch.optim.AdamW([*layers.parameters(), *tokens.parameters(), *head.parameters()])
    for i in range(28):
        ids = torch.randint(0, 6000, (int(random.integers(4, 9)), int(random.integers(24, 140))))
        x = tokens(ids)
        for layer in layers:
            x = checkpoint(layer, x, use_reentrant=False)
        picked = torch.rand(ids.shape) < 0.15
        (functional.cross_entropy(head(x[picked]), ids[picked]) / 4).backward()
        if i % 4 == 3:
            nn.utils.clip_grad_norm_(layers.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


@workload
def gan_train(random):
    """Two networks against each other, each with an optimizer of its own."""
    widths = (96, 64, 32, 16)
    maker = nn.Sequential(nn.Linear(64, 96 * 16), nn.Unflatten(1, (96, 4, 4)))
    for inputs, outputs in zip(widths, (*widths[1:], 3), strict=True):
        maker += nn.Sequential(nn.ConvTranspose2d(inputs, outputs, 4, 2, 1), nn.BatchNorm2d(outputs), nn.ReLU())
    judge = nn.Sequential()
    for inputs, outputs in zip((3, 16, 32, 64), (16, 32, 64, 96), strict=True):
        judge += nn.Sequential(nn.Conv2d(inputs, outputs, 4, 2, 1), nn.LeakyReLU(0.2))
    judge += nn.Sequential(nn.Flatten(), nn.Linear(96 * 16, 1))
    optimizers = [torch.optim.Adam(m.parameters(), 2e-4, (0.5, 0.9), foreach=False) for m in (maker, judge)]
    for _ in range(35):
        real = torch.rand(random.integers(12, 33), 3, 64, 64)
        made = maker(torch.randn(len(real), 64))
        loss = functional.softplus(-judge(real)).mean() + functional.softplus(judge(made.detach())).mean()
        step_of(optimizers[1], loss)
        step_of(optimizers[0], functional.softplus(-judge(made)).mean())


@workload
def graph_train(random):
    """Messages along the edges of graphs, none of the size of another."""
    layers = nn.ModuleList(nn.Linear(2 * 64, 64) for _ in range(4))
    start, head = nn.Linear(16, 64), nn.Linear(64, 7)
    optimizer = torch.optim.SGD([*layers.parameters(), *start.parameters(), *head.parameters()], 0.1, momentum=0.9)
    for _ in range(50):
        nodes = int(random.integers(500, 6000))
        edges = torch.randint(0, nodes, (2, nodes * int(random.integers(2, 7))))
        x = start(torch.rand(nodes, 16)).relu()
        for layer in layers:
            messages = layer(torch.cat([x[edges[0]], x[edges[1]]], 1)).relu()
            x = x + torch.zeros_like(x).index_add(0, edges[1], messages)
        step_of(optimizer, functional.cross_entropy(head(x), torch.randint(0, 7, (nodes,))))


@workload
def lstm_train(random):
    """A recurrent language model, truncated in time, with RMSprop."""
    tokens, network, head = nn.Embedding(3000, 128), nn.LSTMCell(128, 256), nn.Linear(256, 3000)
    parameters = [*tokens.parameters(), *network.parameters(), *head.parameters()]
    optimizer = torch.optim.RMSprop(parameters, foreach=False)
    for _ in range(30):
        batch = int(random.integers(8, 25))
        state = (torch.zeros(batch, 256), torch.zeros(batch, 256))
        ids, loss = torch.randint(0, 3000, (int(random.integers(10, 36)), batch)), 0
        for now, then in zip(ids[:-1], ids[1:], strict=True):
            state = network(tokens(now), state)
            loss = loss + functional.cross_entropy(head(state[0]), then)
        step_of(optimizer, loss / len(ids))


@workload
def recommend_train(random):
    """Embedding tables of many sizes and a small network on top, with Adagrad."""
    tables = nn.ModuleList(nn.EmbeddingBag(int(n), 32, mode="sum") for n in random.integers(100, 20000, 20))
    network = nn.Sequential(nn.Linear(21 * 32 + 13, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))
    dense = nn.Linear(13, 32)
    optimizer = torch.optim.Adagrad(
        [*tables.parameters(), *network.parameters(), *dense.parameters()], 0.01, foreach=False
    )
    for _ in range(40):
        batch = int(random.choice([256, 512, 1024, 777]))
        numbers = torch.rand(batch, 13)
        features = [dense(numbers), numbers]
        for table in tables:
            counts = torch.tensor(random.integers(1, 6, batch))
            picked = torch.randint(0, table.num_embeddings, (int(counts.sum()),))
            features.append(table(picked, counts.cumsum(0) - counts))
        guess = network(torch.cat(features, 1))
        step_of(optimizer, functional.binary_cross_entropy_with_logits(guess, torch.rand(batch, 1).round()))


@workload
def vae_train(random):
    """A variational autoencoder on images, the batch as it comes."""
    shrink = nn.Sequential(
        nn.Conv2d(3, 24, 4, 2, 1), nn.SiLU(), Residual(24, 48, 2), Residual(48, 96, 2), nn.Conv2d(96, 16, 1)
    )
    grow = nn.Sequential(nn.Conv2d(8, 96, 1))
    for inputs, outputs in ((96, 48), (48, 24), (24, 12)):
        grow += nn.Sequential(nn.Upsample(scale_factor=2), Residual(inputs, outputs))
    grow += nn.Sequential(nn.Conv2d(12, 3, 3, 1, 1))
    optimizer = torch.optim.Adam([*shrink.parameters(), *grow.parameters()])
    for _ in range(25):
        images = torch.rand(int(random.integers(4, 15)), 3, 96, 96)
        mean, spread = shrink(images).chunk(2, 1)
        guess = grow(mean + torch.randn_like(mean) * (spread / 2).exp())
        loss = functional.mse_loss(guess, images) - 0.001 * (1 + spread - mean**2 - spread.exp()).mean()
        step_of(optimizer, loss)


@workload
def vision_train(random):
    """An image transformer in training: SGD, images of several sizes, every fifth batch only evaluated."""
    patches, layers, head = nn.Conv2d(3, 160, 8, 8), nn.ModuleList(Layer(160, 5) for _ in range(5)), nn.Linear(160, 50)
    parameters = [*patches.parameters(), *layers.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, 0.01, momentum=0.9)
    for i in range(30):
        side = int(random.choice([64, 80, 96, 112]))
        images = torch.rand(int(random.integers(6, 17)), 3, side, side)
        with torch.set_grad_enabled(i % 5 != 4):
            x = patches(images).flatten(2).transpose(1, 2)
            for layer in layers:
                x = layer(x)
            loss = functional.cross_entropy(head(x.mean(1)), torch.randint(0, 50, (len(images),)))
        if i % 5 != 4:
            step_of(optimizer, loss)


def allocations(event):
    """Yield the allocations and frees below an event of the profiler's tree."""
    if event.typed[0] == torch._C._profiler._EventType.Allocation:
        yield event.start_time_ns, event.typed[1]
    for child in event.children:
        yield from allocations(child)


def record(function, seed):
    torch.manual_seed(seed)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        function(np.random.default_rng(seed))
    roots = profiler.profiler.kineto_results.experimental_event_tree()
    found = sorted((pair for root in roots for pair in allocations(root)), key=lambda pair: pair[0])
    live, rows, count = {}, [], 0
    for _, fields in found:
        if fields.alloc_size > 0:
            live[fields.ptr] = (count, fields.alloc_size)
            rows.append((0, count, fields.alloc_size))
            count += 1
        elif fields.alloc_size < 0 and fields.ptr in live:
            rows.append((1, *live.pop(fields.ptr)))
    return np.array(rows, dtype=[("op", "u1"), ("id", "<u4"), ("size", "<u8")])


def main(folder, *names):
    torch.set_num_threads(1)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names or WORKLOADS:
        trace = record(WORKLOADS[name], sorted(WORKLOADS).index(name))
        path = Path(folder) / f"{name}.npz"
        np.savez_compressed(path, trace=trace)
        live = np.cumsum(np.where(trace["op"] == 0, 1, -1) * trace["size"].astype(np.int64))
        print(f"{name}: {len(trace):,} events, peak {live.max() / 2**20:.1f} MiB, {path.stat().st_size:,} bytes",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
