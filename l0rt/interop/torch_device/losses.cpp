/* SPDX-License-Identifier: Apache-2.0 */
// losses.cpp: the negative log likelihood of classes, and its gradient.
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "operators.h"

namespace l0rt_torch {
namespace {

enum { REDUCTION_NONE, REDUCTION_MEAN, REDUCTION_SUM };

// Of each target: the class, 0 where it is ignored, and its weight, 0 there.
struct Targets {
  Tensor classes, weights, is_kept;
};

Targets targets_of(const Tensor &target, const Tensor &weight, int64_t ignored, const Tensor &like) {
  Tensor is_kept = target != ignored, classes = target.masked_fill(target == ignored, 0), weights;
  if (weight.defined()) weights = weight.index_select(0, classes) * is_kept;
  else weights = is_kept.to(like.dtype());
  return {classes, weights, is_kept};
}

bool is_computable(const Tensor &self, const Tensor &target) {
  return is_served(self) && is_served(target) && target.scalar_type() == at::kLong && self.dim() >= 1 &&
         at::isFloatingType(self.scalar_type()) && self.numel() > 0;
}

bool nll_loss_forward(Call &call) { // self, target, weight, reduction, ignore_index, output, total_weight
  Tensor self = call.tensor(0), target = call.tensor(1), output = call.tensor(5), total = call.tensor(6);
  if (!is_computable(self, target)) return false;
  int64_t reduction = call.integer(3);
  Targets targets = targets_of(target.reshape({-1}), call.tensor(2), call.integer(4), self);
  Tensor rows = self.dim() == 1 ? self.unsqueeze(0) : self;
  Tensor chosen = rows.gather(1, targets.classes.unsqueeze(1)).squeeze(1).neg();
  chosen = chosen.masked_fill(targets.is_kept.logical_not(), 0); // an infinity there is no NaN
  Tensor losses = chosen * targets.weights;
  if (reduction == REDUCTION_NONE && self.dim() > 1) {
    output.copy_(losses);
    total.zero_();
    return call.done(output, total);
  }
  Tensor weight = targets.weights.sum(), sum = losses.sum();
  output.copy_((reduction == REDUCTION_MEAN ? sum / weight : sum).view(output.sizes()));
  total.copy_(weight);
  return call.done(output, total);
}

// grad, self, target, weight, reduction, ignore_index, total_weight, grad_input
bool nll_loss_backward(Call &call) {
  Tensor grad = call.tensor(0), self = call.tensor(1), target = call.tensor(2), out = call.tensor(7);
  if (!is_computable(self, target) || !is_served(grad) || !is_served(out)) return false;
  Targets targets = targets_of(target.reshape({-1}), call.tensor(3), call.integer(5), self);
  Tensor scale = grad;
  if (call.integer(4) == REDUCTION_MEAN) scale = grad / call.tensor(6);
  Tensor values = (targets.weights * scale).neg();
  out.zero_();
  Tensor rows = self.dim() == 1 ? out.unsqueeze(0) : out;
  rows.scatter_(1, targets.classes.unsqueeze(1), values.to(out.dtype()).unsqueeze(1));
  return call.done(out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  OPERATOR("nll_loss_forward.output", nll_loss_forward);
  OPERATOR("nll_loss_backward.grad_input", nll_loss_backward);
}

} // namespace
} // namespace l0rt_torch
