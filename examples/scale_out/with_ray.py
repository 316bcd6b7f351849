# SPDX-License-Identifier: Apache-2.0
"""Learn with Ray, an actor for each device. With --kill an actor's process is killed in the middle."""

import os
import signal
import sys

import model
import numpy as np
import ray
from l0rt.interop.ray import RESOURCE, claim, init


@ray.remote(resources={RESOURCE: 1}, num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Learner:
    def __init__(self, part):
        self.device = claim()
        self.data = model.load(part)

    def gradient(self, weights):
        return model.gradient(weights, self.data)  # the Buffer goes to whoever asks, by value

    def place(self):
        return os.getpid(), self.device


def main():
    init(num_cpus=2, object_store_memory=100 << 20, log_to_driver=False, logging_level="ERROR")
    learners = [Learner.remote(part) for part in range(model.PARTS)]
    weights = model.start()
    for step in range(model.STEPS):
        if step == model.STEPS // 2 and "--kill" in sys.argv:
            os.kill(ray.get(learners[1].place.remote())[0], signal.SIGKILL)
        found = ray.get([learner.gradient.remote(weights) for learner in learners])
        weights = model.descend(weights, sum(gradient.numpy("f4") for gradient in found))
    devices = {device for _, device in ray.get([learner.place.remote() for learner in learners])}
    print(f"{model.STEPS} steps on {len(devices)} devices")
    print("equal to one process:", np.array_equal(weights, model.alone()))
    ray.shutdown()


if __name__ == "__main__":
    main()
