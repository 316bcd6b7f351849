# SPDX-License-Identifier: Apache-2.0
"""llama.cpp computes the tokens of a small random model with its CPU backend and with its SYCL backend.

The arguments are types of weights, such as Q4_0; without any, all of them. docs/cpu-driver.md says what to install.
"""

import struct
import sys
import tempfile
from pathlib import Path

import numpy as np
from cyllama.llama import llama_cpp

WIDTH, HEADS, KEY_HEADS, LAYERS, TOKENS, CONTEXT = 256, 4, 2, 2, 128, 128
PROMPT = [3, 14, 15, 92, 65, 35, 89, 79, 32, 38, 46, 26]
STEPS = 32

# Of each type of weights: its number in GGUF, the fields of a block, how many weights that is, and their standard
# deviation where all fields are random but the scale, which is 1.
TYPES = {
    "F32": (0, [("scale", "f4")], 1, 1),
    "F16": (1, [("scale", "f2")], 1, 1),
    "Q4_0": (2, [("scale", "f2"), ("quants", "u1", 16)], 32, 4.6),
    "Q8_0": (8, [("scale", "f2"), ("quants", "u1", 32)], 32, 74),
    "Q4_K": (12, [("scale", "f2"), ("minimum", "f2"), ("scales", "u1", 12), ("quants", "u1", 128)], 256, 167),
    "Q6_K": (14, [("quants", "u1", 192), ("scales", "u1", 16), ("scale", "f2")], 256, 1367),
}


def matrix(random, name, rows, columns, deviation):
    """Return a random matrix of this type as bytes, a row of the array for each of its own."""
    _, fields, length, unit = TYPES[name]
    layout = np.dtype(fields)
    blocks = np.frombuffer(random.bytes(rows * columns // length * layout.itemsize), layout).copy()
    signs = random.choice([-1, 1], len(blocks))  # the mean of a block's quants is not 0
    blocks["scale"] = deviation / unit * (random.standard_normal(len(blocks)) if length == 1 else signs)
    if name == "Q4_K":
        blocks["minimum"] = 7.5 * blocks["scale"]  # half of the largest quant, times the same factors as the scale:
        blocks["scales"][:, 4:8] = blocks["scales"][:, :4]
        blocks["scales"][:, 8:] = (blocks["scales"][:, 8:] & 15) * 17
    return blocks.view("u1").reshape(rows, -1)


def weights(name):
    """Yield name, shape, type's number and bytes of each tensor; what is multiplied keeps its size."""
    random = np.random.default_rng(37)
    keys = WIDTH * KEY_HEADS // HEADS
    rows = {"attn_q": WIDTH, "attn_k": keys, "attn_v": keys, "attn_output": WIDTH}
    rows |= {"ffn_gate": WIDTH, "ffn_up": WIDTH, "ffn_down": WIDTH}
    ones = np.ones(WIDTH, "f4").tobytes()
    for layer in range(LAYERS):
        for part, count in rows.items():
            data = matrix(random, name, count, WIDTH, WIDTH**-0.5)
            yield f"blk.{layer}.{part}.weight", (WIDTH, count), TYPES[name][0], data.tobytes()
        for part in "attn_norm", "ffn_norm":
            yield f"blk.{layer}.{part}.weight", (WIDTH,), 0, ones
    # The output of a token is the embedding of the one before: the next token wins by far, and rounding, in which the
    # backends differ, does not decide.
    embedding = matrix(random, name, TOKENS, WIDTH, 1)
    yield "token_embd.weight", (WIDTH, TOKENS), TYPES[name][0], embedding.tobytes()
    yield "output.weight", (WIDTH, TOKENS), TYPES[name][0], np.roll(embedding, 1, axis=0).tobytes()
    yield "output_norm.weight", (WIDTH,), 0, ones


METADATA = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "none",
    "llama.vocab_size": TOKENS,
    "llama.context_length": CONTEXT,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": WIDTH,
    "llama.block_count": LAYERS,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KEY_HEADS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def entry(key, value):
    """Return an entry of the metadata: an integer, a float or text."""
    for kind, number, form in (int, 4, "<II"), (float, 6, "<If"):
        if isinstance(value, kind):
            return text(key) + struct.pack(form, number, value)
    return text(key) + struct.pack("<I", 8) + text(value)


def aligned(data):
    return data + bytes(-len(data) % 32)


def gguf(name):
    """Return a file of llama.cpp's format with a model that has weights of this type, and no tokenizer."""
    tensors = list(weights(name))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(METADATA))
    head += b"".join(entry(*item) for item in METADATA.items())
    data = b""
    for tensor, shape, number, content in tensors:
        head += text(tensor) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, number, len(data))
        data += aligned(content)
    return aligned(head) + data


class Model(llama_cpp.LlamaModel):
    n_vocab = TOKENS  # get_logits_ith of cyllama 0.2.18 reads it, and no model has it


def generate(path, layers):
    """Return the most probable tokens, with so many layers on the device, and the logits that they were chosen by."""
    parameters = llama_cpp.LlamaModelParams()
    parameters.n_gpu_layers = layers
    model = Model(str(path), parameters)
    parameters = llama_cpp.LlamaContextParams()
    parameters.n_ctx = CONTEXT
    parameters.n_threads = parameters.n_threads_batch = 1
    parameters.offload_kqv = parameters.op_offload = layers > 0
    context = llama_cpp.LlamaContext(model, parameters)
    tokens, logits = [], []
    batch = llama_cpp.llama_batch_get_one(PROMPT)
    for step in range(STEPS):
        context.decode(batch)
        logits.append(np.array(context.get_logits_ith(-1)))
        tokens.append(int(logits[-1].argmax()))
        batch = llama_cpp.llama_batch_get_one(tokens[-1:], len(PROMPT) + step)
    return tokens, np.array(logits)


def main(names):
    llama_cpp.disable_logging()
    llama_cpp.ggml_backend_load_all()
    print(*(device["description"] for device in llama_cpp.ggml_backend_dev_info() if device["type"] == "GPU"))
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.gguf")
            path.write_bytes(gguf(name))
            (expected, logits), (tokens, others) = generate(path, 0), generate(path, 99)
        same = "the same tokens" if tokens == expected else f"{tokens}, not {expected}"
        print(f"{name}: {same}, logits within {abs(logits - others).max() / logits.std():.4f} of their deviation")


if __name__ == "__main__":
    main(sys.argv[1:] or TYPES)
