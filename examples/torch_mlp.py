# SPDX-License-Identifier: Apache-2.0
"""Train a small network on tensors of l0rt's device, with torch's own modules and optimizer."""

import l0rt.interop.torch_device as torch_device
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 2)).to("lzrt")
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
points = torch.rand(1024, 2) * 2 - 1
inside = (points.norm(dim=1) < 0.8).long().to("lzrt")
points = points.to("lzrt")
losses = []
for _ in range(200):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(points), inside)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} on {model[0].weight.device}")
print("on the CPU:", [(row.name, row.calls) for row in torch_device.fallbacks()])
