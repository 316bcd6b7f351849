# SPDX-License-Identifier: Apache-2.0
"""Learn with Dask, a worker process for each device. With --kill a worker is killed in the middle."""

import os
import signal
import sys

import model
import numpy as np
from distributed import Client
from l0rt.interop.dask import LocalDeviceCluster


def fetch(found):
    """Return a gradient as an array; the task runs where the gradient is."""
    return found.numpy("f4")


def main():
    with LocalDeviceCluster() as cluster, Client(cluster) as client:
        devices = len(cluster.workers)
        parts = client.map(model.load, range(model.PARTS), pure=False)  # they stay on the devices
        weights = model.start()
        for step in range(model.STEPS):
            if step == model.STEPS // 2 and "--kill" in sys.argv:
                os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)
            gradients = [client.submit(model.gradient, weights, part, pure=False) for part in parts]
            total = sum(client.gather([client.submit(fetch, found, pure=False) for found in gradients]))
            weights = model.descend(weights, total)
        client.wait_for_workers(devices, timeout=60)
    print(f"{model.STEPS} steps on {devices} devices")
    print("equal to one process:", np.array_equal(weights, model.alone()))


if __name__ == "__main__":
    main()
