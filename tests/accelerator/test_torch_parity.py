# SPDX-License-Identifier: Apache-2.0
"""Name by name against torch 2.13.0's CPU build; docs/parity.md lists every difference, with its reason."""

import inspect
import json
import os
import re
from functools import cache

import l0rt.accelerator
import l0rt.interface
import l0rt.xpu
import pytest

from helpers.process import run_python
from helpers.signature import bare
from helpers.source import ROOT

TORCH = "2.13.0"
MODULES = {
    "accelerator": "torch.accelerator",
    "accelerator.memory": "torch.accelerator.memory",
    "xpu": "torch.xpu",
}
CLASSES = {
    "interface.DeviceInterface": "torch._dynamo.device_interface.DeviceInterface",
    "accelerator.Stream": "torch.Stream",
    "accelerator.Event": "torch.Event",
    "accelerator.Generator": "torch.Generator",
    "accelerator.Graph": "torch.accelerator.Graph",
    "xpu.XPUGraph": "torch.xpu.XPUGraph",
}

# What they define, private or not, and where it is here.
MEMORY = {"torch.xpu.memory": ("xpu.memory",), "torch.cuda.memory": ("xpu.memory", "memory")}

# What a machine without an accelerator sees. `acc` and `xpu` are torch's modules, or ours.
CALLS = """
acc.is_available()
acc.device_count()
acc.current_accelerator()
acc.current_accelerator(True)
acc.current_device_index()
acc.current_device_idx()
acc.set_device_index(None)
acc.set_device_index(1.5)
acc.set_device_index('x')
acc.set_device_index(-1)
acc.set_device_index(0)
acc.set_device_index(device=0)
acc.set_device_index()
acc.set_device_idx(-1)
acc.set_stream(None)
acc.set_stream(1)
acc.set_stream()
acc.synchronize()
acc.synchronize(device=0)
acc.current_stream()
acc.current_stream(0)
acc.current_stream(device=0)
acc.current_stream(1.5)
acc.device_index()
acc.device_index(device=0)
acc.device_index(None).__enter__()
acc.device_index(0).__enter__()
acc.device_index(-1).__enter__()
acc.device_index('x').__enter__()
acc.device_index(10**12).__enter__()
acc.memory_stats()
acc.memory_stats(device_index=0)
acc.memory_allocated()
acc.memory_allocated(1.5)
acc.memory_reserved()
acc.max_memory_allocated()
acc.max_memory_reserved()
acc.get_memory_info()
acc.empty_cache()
acc.empty_host_cache()
acc.reset_peak_memory_stats()
acc.reset_accumulated_memory_stats()
acc.get_device_capability()
acc.get_device_capability(device=1)
acc.get_device_capability(1.5)
xpu.is_available()
xpu.device_count()
xpu.is_initialized()
xpu.get_arch_list()
xpu.get_gencode_flags()
xpu.is_bf16_supported()
xpu.is_bf16_supported(False)
xpu.is_tf32_supported()
xpu.set_stream(None)
xpu.stream(None).__enter__()
xpu.empty_cache()
xpu.memory_stats()
xpu.memory_stats_as_nested_dict()
xpu.memory_allocated()
xpu.manual_seed(3)
xpu.manual_seed_all(3)
xpu.manual_seed(-3)
xpu.manual_seed('a')
xpu.manual_seed()
xpu.seed()
xpu.seed_all()
xpu.get_rng_state_all()
xpu.set_rng_state_all([])
xpu.default_generators
xpu.device('cpu')
xpu.device(1.5)
xpu.device()
xpu.device_of(3).__enter__()
""".split("\n")[1:-1]

# What torch's sources say of a process with one device: a value, or an error's class and how its text begins ("": the
# text is of an assertion inside torch, or of Python).
OUT = "The device index is out of range. It must be in [0, 1), but got "
AN_OBJECT = object()
BAD = {
    **dict.fromkeys((1, 2, 127, "'xpu:1'", "l0rt_device"), ("RuntimeError", OUT)),
    "'cpu'": ("ValueError", ""), "'xpu:-1'": ("RuntimeError", "Invalid device string: 'xpu:-1'"),
}  # fmt: skip
BY_INDEX = """
xpu.set_device xpu.get_device_name xpu.get_device_properties xpu.get_device_capability xpu.current_stream
xpu.synchronize xpu.Stream acc.set_device_index acc.current_stream acc.synchronize acc.get_device_capability
""".split()
BY_ALLOCATOR = """
xpu.memory_stats xpu.memory_allocated xpu.memory_reserved xpu.max_memory_allocated xpu.max_memory_reserved
xpu.mem_get_info xpu.reset_peak_memory_stats xpu.reset_accumulated_memory_stats xpu.get_per_process_memory_fraction
acc.memory_stats acc.memory_allocated acc.memory_reserved acc.max_memory_allocated acc.max_memory_reserved
acc.get_memory_info acc.reset_peak_memory_stats acc.reset_accumulated_memory_stats
""".split()
WITH_A_DEVICE = {
    **{f"{name}({bad})": outcome for name in BY_INDEX for bad, outcome in BAD.items()},
    **{f"{name}({bad})": (BAD[bad][0], "") for name in BY_ALLOCATOR for bad in (1, 2, 127, "'xpu:1'", "'cpu'")},
    **{f"xpu.{way}.__enter__()": ("RuntimeError", OUT) for way in ("device(1)", "_DeviceGuard(1)", "device('xpu:1')")},
    "acc.device_index(1).__enter__()": ("RuntimeError", OUT),
    "xpu.device(-1).__enter__()": None,
    "xpu.device(None).__enter__()": None,
    "xpu.set_device(-1)": None,
    "acc.set_device_index(-1)": None,
    "xpu.get_device_properties(-1)": AN_OBJECT,
    "xpu.current_stream(-1)": AN_OBJECT,
    "xpu.synchronize(-1)": None,
    "acc.current_stream(-1)": AN_OBJECT,
    "acc.synchronize(-1)": None,
    "xpu.can_device_access_peer(0, 1)": ("RuntimeError", OUT),
    "xpu.can_device_access_peer(1, 0)": ("RuntimeError", OUT),
    "xpu.get_rng_state(1)": ("IndexError", ""),
    "xpu.set_rng_state(bytes(16), 1)": ("IndexError", ""),
    "xpu.set_per_process_memory_fraction(0.5, 1)": ("RuntimeError", ""),
    "xpu.set_per_process_memory_fraction(2.0)": ("RuntimeError", "invalid fraction:2"),
    "xpu.set_per_process_memory_fraction(-1.0)": ("RuntimeError", "invalid fraction:-1"),
    "xpu.set_per_process_memory_fraction(1)": ("TypeError", "Invalid type for fraction argument, must be `float`"),
    "xpu.Event().elapsed_time(xpu.Event())": ("RuntimeError", ""),
    "acc.Event().elapsed_time(acc.Event())": ("ValueError", "Both events must be created with argument"),
    "acc.current_accelerator(True)": AN_OBJECT,
    "acc.device_count()": 1,
    "acc.is_available()": True,
    "acc.current_device_index()": 0,
    "acc.set_device_index(None)": ("ValueError", "Expected a torch.device with a specified index or an integer, but"),
    "acc.set_device_index('cpu')": ("ValueError", "cpu doesn't match the current accelerator xpu."),
    "acc.set_stream(None)": ("TypeError", ""),
    "xpu.set_stream(None)": None,
    "xpu.get_device_properties().uuid.bytes": AN_OBJECT,
    "len(str(xpu.get_device_properties().uuid))": 36,
}

OUTCOMES = """
import json, sys, warnings
def outcome(call):
    try:
        value = eval(call)
    except Exception as e:
        return {"error": [c.__name__ for c in type(e).__mro__], "text": str(e)}
    return {"value": value if isinstance(value, PLAIN) else repr(value)}
PLAIN = (bool, int, str, list, tuple, dict, type(None))
warnings.simplefilter("ignore")
print(json.dumps({call: outcome(call) for call in CALLS}))
"""

FACTS = """
import inspect, json, torch, torch._dynamo.device_interface
def resolve(path):
    value = torch
    for name in path.split(".")[1:]:
        value = getattr(value, name)
    return value
def signature(f):
    try:
        found = inspect.signature(f)
    except (TypeError, ValueError):
        return None
    return [[p.name, p.kind.name, None if p.default is p.empty else repr(p.default)] for p in found.parameters.values()]
print(json.dumps({
    "version": torch.__version__,
    "names": {path: {n: signature(getattr(resolve(path), n)) for n in resolve(path).__all__} for path in MODULES},
    "defined": {path: {n: signature(f) for n, f in vars(resolve(path)).items()
                       if callable(f) and getattr(f, "__module__", "") == path} for path in MEMORY},
    "members": {path: [n for n in dir(resolve(path)) if n[0] != "_" or n == "_set_stream_by_id"] for path in CLASSES},
}))
"""


@cache
def torch_says(code, **names):
    result = run_python("".join(f"{k} = {v}\n" for k, v in names.items()) + code, timeout=300)
    return json.loads(result.stdout.splitlines()[-1]) if result.returncode == 0 else str(result)


@pytest.fixture(scope="module")
def torch_facts():
    have = run_python("import importlib.metadata as m; print(m.version('torch'))", timeout=60)
    if have.returncode != 0 or have.stdout.split("+")[0].strip() != TORCH:
        told = f"needs torch=={TORCH} (CPU) beside l0rt: the extra `torch`"
        (pytest.fail if os.environ.get("L0RT_TEST_TORCH") == "1" else pytest.skip)(told)
    paths = {"MODULES": MODULES.values(), "CLASSES": CLASSES.values(), "MEMORY": MEMORY}
    found = torch_says(FACTS, **{name: repr(list(values)) for name, values in paths.items()})
    assert isinstance(found, dict), found
    return found


def table(title, of=0):
    """Return the rows of a table under this heading of docs/parity.md, the first by default, without backquotes."""
    text = (ROOT / "docs/parity.md").read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip("` ") for cell in row] for row in rows]
    heads = [number for number, row in enumerate(rows) if set("".join(row)) <= set("-|")]
    ends = [*(number - 1 for number in heads[1:]), len(rows)]
    return rows[heads[of] + 1 : ends[of]]


def ours(path):
    value = l0rt
    for name in path.split("."):
        value = getattr(value, name)
    return value


def parameters(value):
    """Return what callers can tell apart: a positional-only parameter's name is not."""
    try:
        found = inspect.signature(value).parameters.values()
    except TypeError:
        return None
    return [[p.name, p.kind.name, None if p.default is p.empty else repr(p.default)] for p in found]


def without_hidden_names(found):
    return [["", *p[1:]] if p[1] == "POSITIONAL_ONLY" else p for p in found] if found else found


ROWS_WITH_A_DEVICE = table("Other behaviour", 1)
LATER = {(module, name) for module, name, _ in table("Not here yet")}
OTHER = {(module, name): here for module, name, here, _ in table("Other parameters")}


@pytest.mark.parametrize("module", MODULES)
def test_every_name_is_here_with_torchs_parameters(module, torch_facts):
    complaints = []
    for name, theirs in torch_facts["names"][MODULES[module]].items():
        if (module, name) in LATER:
            if hasattr(ours(module), name):
                complaints.append(f"{name} is here: docs/parity.md says that it is not yet")
        elif not hasattr(ours(module), name) or name not in ours(module).__all__:
            complaints.append(f"{name} is missing")
        elif (module, name) in OTHER:
            if str(bare(inspect.signature(getattr(ours(module), name)))) != OTHER[module, name]:
                complaints.append(f"{name} has other parameters than docs/parity.md says")
            if without_hidden_names(parameters(getattr(ours(module), name))) == without_hidden_names(theirs):
                complaints.append(f"{name} has torch's parameters: docs/parity.md says others")
        elif theirs is not None:
            mine = without_hidden_names(parameters(getattr(ours(module), name)))
            if mine != without_hidden_names(theirs):
                complaints.append(f"{name} has {mine}, torch has {theirs}")
    assert complaints == []
    assert LATER | set(OTHER) <= {
        (m, n) for m, path in MODULES.items() for n in torch_facts["names"][path]
    }, "docs/parity.md names what torch has not"


@pytest.mark.parametrize("path", MEMORY)
def test_what_the_memory_modules_define_is_here_or_listed(path, torch_facts):
    """Private names too: programs call `_record_memory_history` and `_dump_snapshot`."""
    listed = {name: here for module, name, here, _ in table("Memory: private names and other parameters")
              if module == path}  # fmt: skip
    complaints = []
    for name, theirs in torch_facts["defined"][path].items():
        found = [getattr(ours(m), name) for m in MEMORY[path] if hasattr(ours(m), name)]
        here = str(bare(inspect.signature(found[0]))) if found else "none"
        is_same = without_hidden_names(theirs) in [without_hidden_names(parameters(one)) for one in found]
        if name in listed and is_same:
            complaints.append(f"{name} is as in torch: docs/parity.md lists a difference")
        elif listed.get(name, here if is_same else None) != here:
            complaints.append(f"{name} is {here}, torch has {theirs}")
    assert complaints == []
    assert set(listed) <= set(torch_facts["defined"][path]), "docs/parity.md names what torch has not"


@pytest.mark.parametrize("path", CLASSES)
def test_every_member_is_here(path, torch_facts):
    assert [n for n in torch_facts["members"][CLASSES[path]] if not hasattr(ours(path), n)] == []


@pytest.fixture(scope="module")
def outcomes(torch_facts):
    theirs = torch_says(OUTCOMES, CALLS=f"{CALLS!r}\nimport torch.accelerator as acc, torch.xpu as xpu")
    code = f"CALLS = {CALLS!r}\nimport l0rt.accelerator as acc, l0rt.xpu as xpu\n" + OUTCOMES
    result = run_python(code, {"L0RT_DRIVER": "/nonexistent/libze.so"})
    assert result.returncode == 0, result
    return theirs, json.loads(result.stdout)


def same(torchs, here):
    """Do the two outcomes agree? An error may have a more precise class, and words after torch's."""
    if "error" not in torchs or "error" not in here:
        return torchs == here
    if torchs["error"][0] not in here["error"]:
        return False
    listed = re.compile("Expected one of .* device type")  # which types there are is each one's own
    return torchs["error"][0] == "TypeError" or listed.sub("", here["text"]).startswith(listed.sub("", torchs["text"]))


def told(outcome):
    return outcome["error"][0] if "error" in outcome else str(outcome["value"])


@pytest.mark.parametrize("call", CALLS)
def test_without_an_accelerator_a_call_ends_as_in_torch(call, outcomes):
    torchs, here = outcomes[0][call], outcomes[1][call]
    rows = {row[0]: row[1:] for row in table("Other behaviour")}
    if call in rows:
        assert not same(torchs, here), "docs/parity.md lists a difference that is none"
        assert told(here) == rows[call][1]
        assert told(torchs) == rows[call][0] or "error" not in torchs
    else:
        assert same(torchs, here), f"torch: {torchs}\nl0rt: {here}"


@pytest.fixture(scope="module")
def outcomes_with_a_device():
    calls = [call.replace("l0rt_device", "l0rt.device('xpu', 1)") for call in WITH_A_DEVICE]
    code = f"CALLS = {calls!r}\nimport l0rt, l0rt.accelerator as acc, l0rt.xpu as xpu\nl0rt.empty(64)\n" + OUTCOMES
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "1", "L0RT_CPU_PROFILE": None})
    assert result.returncode == 0, result
    return dict(zip(WITH_A_DEVICE, json.loads(result.stdout.splitlines()[-1]).values(), strict=True))


@pytest.mark.parametrize("call", WITH_A_DEVICE)
def test_with_a_device_a_call_ends_as_in_torch(call, outcomes_with_a_device):
    torchs, here = WITH_A_DEVICE[call], outcomes_with_a_device[call]
    if isinstance(torchs, tuple):
        agrees = torchs[0] in here.get("error", ()) and here["text"].startswith(torchs[1])
    else:
        agrees = "value" in here and (torchs is AN_OBJECT or here["value"] == torchs)
    row = {row[0]: row[1:] for row in ROWS_WITH_A_DEVICE}.get(call)
    if row is None:
        assert agrees, f"torch: {torchs}\nl0rt: {here}"
    else:
        assert not agrees, "docs/parity.md lists a difference that is none"
        assert told(here) == row[1]


def test_every_row_with_a_device_is_a_call():
    assert {row[0] for row in ROWS_WITH_A_DEVICE} <= set(WITH_A_DEVICE)


def test_every_listed_call_is_made():
    assert {row[0] for row in table("Other behaviour")} <= set(CALLS)


@pytest.mark.parametrize(("module", "name", "signature"), table("What torch 2.14 and 2.15 add"))
def test_what_later_versions_add_is_here(module, name, signature):
    found = str(bare(inspect.signature(getattr(ours(module), name))))
    assert found.replace("(self, /, ", "(self, ") == signature  # a compiled method takes self by position only
