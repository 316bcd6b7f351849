# SPDX-License-Identifier: Apache-2.0
"""Dask on four devices: a worker each, results that move to the host and the disk, and workers that are killed."""

import pytest

from helpers import scaled
from helpers.process import run_python


@pytest.fixture(autouse=True)
def _dask():
    scaled.need("distributed", "dask")


@pytest.fixture
def outcome(tmp_path):
    """Run a program on four devices; its temporary files are in a folder of its own."""

    def outcome(code, timeout=120, **env):
        return run_python(code, {**scaled.DEVICES, "TMPDIR": tmp_path, **env}, timeout=timeout)

    return outcome


@pytest.mark.parametrize("number", [0, 1], ids=["plain", "a-killed-worker"])
def test_a_command_of_the_page_learns_what_one_process_learns(number, tmp_path):
    command, output = scaled.commands("with_dask.py")[number]
    assert ("--kill" in command) == bool(number)
    result = scaled.follow(command, tmp_path)
    assert (result.returncode, result.stdout) == (0, output), result
    assert ("Restarting worker" in result.stderr) == bool(number), result


# Any values under any keys, against a dict. Sizes are bytes; contents tell keys and generations apart.
PROGRAM = """
import gc, os, pathlib, random, tempfile
import dask, numpy as np
import l0rt, l0rt.accelerator as acc
from l0rt.interop import dask as door

DEVICE, HOST, DISK = 40_000, 30_000, 60_000
dask.config.set({"distributed.worker.memory.target": 1.0})

def bytes_of(store, seen):
    return sum(door._device_bytes(value, seen) for value in store.device.values())

def made(rng, depth=0):
    kind = rng.choice("dddhosn" if depth else "dddhosnltmac")
    size = rng.choice([0, 1, 511, rng.randrange(9000), rng.randrange(9000)])
    data = rng.randbytes(size)
    if kind == "d":
        return l0rt.empty(size).copy_from(data) if size else l0rt.empty(0), ("d", data)
    if kind == "s":     # a part of a Buffer
        whole = l0rt.empty(size + 100)
        whole.fill(1)
        return (whole[50:50 + size].copy_from(data) if size else whole[50:50]), ("d", data)
    if kind == "h":
        host = l0rt.empty(size, kind="host")
        return (host.copy_from(data) if size else host), ("h", data)
    if kind == "o":
        return np.frombuffer(data, "u1"), ("n", data)
    if kind == "n":
        number = rng.randrange(99)
        return number, ("=", number)
    if kind == "a":     # one Buffer twice
        value, wanted = made(rng, 1)
        return [value, (value,)], ("a", wanted)
    if kind == "c":     # a list in itself
        value, wanted = l0rt.empty(7).fill(5), ("d", bytes([5] * 7))   # of other values Dask itself can write no circle
        circle = [value]
        circle.append(circle)
        return circle, ("c", wanted)
    pairs = [made(rng, depth + 1) for _ in range(rng.randrange(4))]
    values, wanted = [value for value, _ in pairs], [right for _, right in pairs]
    if kind == "m":
        return dict(enumerate(values)), ("m", wanted)
    return (tuple(values), ("t", wanted)) if kind == "t" else (values, ("l", wanted))

def check(value, wanted):
    kind, right = wanted
    if kind in "dh":
        assert isinstance(value, l0rt.buffers.buffer.Buffer) and value.kind == {"d": "device", "h": "host"}[kind]
        assert value.numpy().tobytes() == right
    elif kind == "n":
        assert value.tobytes() == right
    elif kind == "=":
        assert value == right
    elif kind == "a":
        check(value[0], right)
        assert value[1][0] is value[0] or right[0] != "d" or not right[1]
    elif kind == "c":
        check(value[0], right)
        assert value[1] is value
    else:
        assert type(value) is {"m": dict, "t": tuple, "l": list}[kind] and len(value) == len(right)
        for item, inner in zip(value.values() if kind == "m" else value, right, strict=True):
            check(item, inner)

moved = written = 0
for seed in range(*map(int, os.environ["SEEDS"].split())):
    rng, model = random.Random(seed), {}
    acc.empty_cache()
    with tempfile.TemporaryDirectory() as folder:
        store = door.SpillingStore(folder, DEVICE, HOST, DISK)
        for step in range(150):
            key = ("k", rng.randrange(24))
            what = rng.choice("ssssggggdcel")
            if what == "s":
                value, model[key] = made(rng)
                store[key] = value
                del value
            elif what == "g" and key in model:
                check(store[key], model[key])
            elif what == "d" and key in model:
                del store[key], model[key]
            elif what == "c":
                assert (key in store) == (key in model) == (store.get(key, store) is not store)
                if key not in model:
                    for wrong in (store.__getitem__, store.__delitem__):
                        try:
                            wrong(key)
                        except KeyError:
                            continue
                        raise AssertionError(wrong)
            elif what == "e" and store.fast:
                assert store.evict() >= -1
            elif what == "l":
                store.device_limit = rng.choice([DEVICE, DEVICE // 2, DEVICE // 4])
                limit = store.device_limit
            assert len(store) == len(model) and set(store) == set(model) and len(list(store)) == len(model)
            assert bytes_of(store, set()) <= store.device_limit, (seed, step)
            files = [path for path in pathlib.Path(folder).rglob("*") if path.is_file() and path.name != ".lock"]
            assert len(files) == len(store.disk) and sum(path.stat().st_size for path in files) <= DISK
            moved, written = max(moved, len(store.host)), max(written, len(files))
            if store._host.fast.total_weight > HOST:    # only when the disk is full, too
                assert store.spilled_total.disk > DISK // 2
        for key in list(store):
            check(store[key], model[key])
        store.device_limit = 0                          # all of it leaves the device
        assert not store.device
        for key in list(store):
            check(store[key], model[key])
            del store[key]
        assert not list(store) and not [path for path in pathlib.Path(folder).rglob("*") if path.is_file()]
assert moved > 5 and written > 5, (moved, written)
gc.collect()                                            # the circles
print("ok", acc.memory_allocated())
"""


def test_random_programs_keep_every_byte_and_every_limit(outcome, extent):
    result = outcome(PROGRAM, SEEDS=f"0 {extent(6, 60)}", timeout=600)
    assert (result.returncode, result.stdout) == (0, "ok 0\n"), result


def test_what_cannot_move_stays_and_what_is_in_use_is_not_made_twice(outcome):
    result = outcome("""
import logging, tempfile
import l0rt, l0rt.accelerator as acc
from l0rt.interop import dask as door

lines = []
handler = logging.Handler()
handler.emit = lines.append
logging.getLogger("l0rt.interop.dask").addHandler(handler)
with tempfile.TemporaryDirectory() as folder:
    store = door.SpillingStore(folder, 10_000)
    real = store._device.slow.data.dump

    def full(value):
        raise MemoryError("no host memory")

    store._device.slow.data.dump = full
    for key in range(4):
        store[key] = l0rt.empty(4096).fill(key)
    assert len(store.device) == 4 and lines and "stay on the device" in lines[0].getMessage()
    lines.clear()                                       # their tracebacks keep Buffers
    store._device.slow.data.dump = real
    store[4] = l0rt.empty(4096).fill(4)
    assert list(store.device) == [3, 4] and len(store.host) == 3
    for key in range(5):
        assert set(store[key].numpy()) == {key}

    task = store[0]                                     # a task that runs while its argument leaves the device
    store.device_limit = 0
    assert not store.device
    store.device_limit = 10_000
    assert store[0] is task
    heavy = l0rt.empty(20_000).fill(9)
    store["heavy"] = heavy
    del heavy
    assert "heavy" not in store.device and set(store["heavy"].numpy()) == {9}

    del task
    store.device_limit = None
    for key in (0, 1, 2, 3, 4):
        store[key]
    assert len(store.device) >= 5 and store.device_limit is None
    peak = 0
    store.device_limit = 8192                            # a value that comes back finds others gone before it is made
    for key in (0, 1, 2, 3, 4) * 3:
        acc.reset_peak_memory_stats()
        store[key]
        peak = max(peak, acc.max_memory_allocated())
    assert peak <= 8192, peak

    released = l0rt.empty(4096)
    released.free()
    store["freed"] = released
    store.device_limit = 0
    assert "freed" in store
print("ok")
""")
    assert (result.returncode, result.stdout) == (0, "ok\n"), result


CLUSTER = """
import os, pathlib, tempfile, warnings
import dask, numpy as np
from distributed import Client, LocalCluster
import l0rt
from l0rt.interop.dask import DevicePlugin, LocalDeviceCluster

MIB = 1 << 20

def make(i):
    return l0rt.empty(MIB).fill(i)

def check(buffer, i):
    assert str(buffer.device) == "xpu:0" and buffer.kind == "device"
    return bool((buffer.numpy() == i).all())

def look(dask_worker):
    import l0rt.accelerator as acc
    from l0rt.interop import worker
    data = dask_worker.data
    found = {"claimed": worker.claimed(), "mask": os.environ["ZE_AFFINITY_MASK"], "count": acc.device_count(),
             "limit": l0rt.memory.get_memory_limit(), "reserved": acc.memory_reserved(), "pid": os.getpid(),
             "peak": acc.max_memory_reserved()}
    if hasattr(data, "device"):
        found |= {"device": sum(value.nbytes for value in data.device.values()), "target": data.device_limit,
                  "host": int(data._host.fast.total_weight), "disk": data.spilled_total[1], "files": len(data.disk)}
    return found

def files(folder):
    return [path for path in pathlib.Path(folder).rglob("*") if path.is_file() and "storage" in path.parts]
"""


def test_a_worker_holds_far_more_than_its_device_and_its_host_memory(outcome, tmp_path):
    result = outcome(
        CLUSTER
        + """
if __name__ == "__main__":
    folder = os.environ["TMPDIR"]
    dask.config.set({"distributed.worker.memory.target": 0.004})      # of 2 GiB: 8 MiB
    with LocalDeviceCluster(n_workers=1, device_memory_limit="16MiB", device_target="8MiB", pool_size=0.5,
                            memory_limit="2GiB", local_directory=folder) as cluster, Client(cluster) as client:
        (begin,) = client.run(look).values()
        assert begin["reserved"] >= 8 * MIB and begin["limit"] == 16 * MIB and begin["target"] == 8 * MIB, begin
        made = client.map(make, range(60), pure=False)
        for _ in range(2):
            assert all(client.gather([client.submit(check, x, i, pure=False) for i, x in enumerate(made)]))
            (found,) = client.run(look).values()
            assert found["device"] <= 8 * MIB and found["peak"] <= 16 * MIB, found
            assert found["host"] <= 0.004 * 2048 * MIB and found["disk"] >= 40 * MIB, found
            assert len(files(folder)) == found["files"] >= 40
        del made
        client.run(lambda dask_worker: None)
    assert not files(folder), files(folder)
    print("ok")
"""
    )
    assert (result.returncode, result.stdout) == (0, "ok\n"), result


def test_buffers_travel_by_value_to_the_device_of_whoever_asks(outcome):
    """The plugin gives devices to a cluster of Dask's own, too."""
    result = outcome(
        CLUSTER
        + """
def several():
    data = np.arange(5000, dtype="u1")
    return {"device": l0rt.from_numpy(data), "host": l0rt.from_numpy(data, kind="host"),
            "shared": l0rt.from_numpy(data, kind="shared"), "none": l0rt.empty(0),
            "cpu": l0rt.empty(5000, device="cpu").copy_from(data)}

def compare(found):
    data = np.arange(5000, dtype="u1")
    kinds = [(name, x.kind, x.device.type, bool((x.numpy() == data[:x.nbytes]).all())) for name, x in found.items()]
    assert kinds == [("device", "device", "xpu", True), ("host", "host", "xpu", True),
                     ("shared", "shared", "xpu", True), ("none", "device", "xpu", True), ("cpu", "host", "cpu", True)]
    return l0rt.accelerator.device_count()

def large():
    return l0rt.empty(150 * MIB).fill(3)

def last(found):
    return found.nbytes, int(found.numpy().min())

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster, \\
            Client(cluster) as client:
        client.register_plugin(DevicePlugin(devices=[1, 3], device_memory_limit=0.5))
        found = client.run(look)
        assert sorted(x["claimed"] for x in found.values()) == [1, 3], found
        assert all(x["mask"] == str(x["claimed"]) and x["count"] == 1 for x in found.values()), found
        assert {x["limit"] for x in found.values()} == {8 << 30}
        one, other = found
        for values, use, right in ((several, compare, 1), (large, last, (150 * MIB, 3))):
            made = client.submit(values, workers=[one], pure=False)
            assert client.submit(use, made, workers=[other], pure=False).result() == right
            if values is several:
                assert compare(made.result()) == 4
                sizes = {name: client.submit(dict.get, made, name).result().nbytes for name in made.result()}
                assert sizes == dict.fromkeys(["device", "host", "shared", "cpu"], 5000) | {"none": 0}
    print("ok")
"""
    )
    assert (result.returncode, result.stdout) == (0, "ok\n"), result


def test_wrong_arguments_are_refused_before_a_process_starts(outcome):
    result = outcome("""
from l0rt.interop.dask import DevicePlugin, LocalDeviceCluster
refused = []
for make in (lambda: LocalDeviceCluster(n_workers=5), lambda: LocalDeviceCluster(n_workers=0),
             lambda: LocalDeviceCluster([0], n_workers=2), lambda: LocalDeviceCluster(device_memory_limit=1.5),
             lambda: LocalDeviceCluster(device_memory_limit=-1), lambda: DevicePlugin(pool_size="4 GB"),
             lambda: DevicePlugin(device_target=True)):
    try:
        make()
    except (TypeError, ValueError) as error:
        refused.append(str(error))
print(*refused, sep="\\n")
""")
    assert result.returncode == 0, result
    assert result.stdout.splitlines() == [
        "n_workers must be from 1 to 4, the number of devices, got 5",
        "n_workers must be from 1 to 4, the number of devices, got 0",
        "n_workers must be from 1 to 1, the number of devices, got 2",
        "device_memory_limit as a float is a part, above 0 and up to 1, got 1.5",
        "device_memory_limit must not be negative, got -1",
        "pool_size must be a whole number of bytes, or a number with KiB, MiB, GiB or TiB; got '4 GB'",
        "device_target must be an int, got bool",
    ]
