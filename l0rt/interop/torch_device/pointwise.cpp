/* SPDX-License-Identifier: Apache-2.0 */
// pointwise.cpp: pointwise operators by the kernels of pointwise.h, on operands of any types and strides.
#include <ATen/EmptyTensor.h>
#include <ATen/ScalarOps.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/result_type.h>

#include <limits>
#include <string_view>

#include "operators.h"

namespace l0rt_torch {

struct Pointwise {
  const char *name;
  int operands;
  bool has_integers, has_floats;
  Kernels any;
  Kernel dense;
  Pointwise(const char *name, int operands, bool has_integers, bool has_floats)
      : name(name),
        operands(operands),
        has_integers(has_integers),
        has_floats(has_floats),
        any(name),
        dense(0, std::string(name) + "_dense") {}
};

namespace {

#define ENUMERATE(NAME, OPERANDS, EXPRESSION) OP_##NAME,
enum { FOR_ALL_NUMBERS(ENUMERATE) FOR_INTEGERS(ENUMERATE) FOR_FLOATS(ENUMERATE) kCount };
#undef ENUMERATE

Pointwise &entry(int number) {
#define BOTH(NAME, OPERANDS, EXPRESSION) new Pointwise(#NAME, OPERANDS, true, true),
#define INTEGERS(NAME, OPERANDS, EXPRESSION) new Pointwise(#NAME, OPERANDS, true, false),
#define FLOATS(NAME, OPERANDS, EXPRESSION) new Pointwise(#NAME, OPERANDS, false, true),
  static Pointwise *const entries[] = {FOR_ALL_NUMBERS(BOTH) FOR_INTEGERS(INTEGERS) FOR_FLOATS(FLOATS)};
#undef BOTH
#undef INTEGERS
#undef FLOATS
  return *entries[number];
}

// How an operator differs from others: its result is of truth values; integers become floats; it has no integers.
enum { kPlain, kCompares, kPromotes, kOfBools };

using Operands = c10::ArrayRef<Tensor>;
using Parameters = std::array<double, 3>;
constexpr uint32_t kEach = 8; // elements of a work-item

bool is_dense(const at::TensorIterator &iter) {
  if (iter.ndim() > 1) return false;
  for (int i = 0; i < iter.ntensors(); i++) {
    if (iter.is_cpu_scalar(i)) continue;
    bool is_next = iter.numel() == 1 || iter.strides(i)[0] == sizeof(float);
    if (iter.dtype(i) != at::kFloat || !is_next) return false;
  }
  return true;
}

void launch_iterator(Pointwise &op, at::TensorIterator &iter, Compute compute, const Parameters &parameters) {
  if (iter.numel() == 0) return;
  if (!iter.can_use_32bit_indexing()) {
    for (auto &part : iter.with_32bit_indexing()) launch_iterator(op, part, compute, parameters);
    return;
  }
  int device = iter.device(0).index();
  Arguments arguments;
  arguments << iter.data_ptr(0);
  for (int i = 1; i < 4; i++) {
    bool is_memory = i < iter.ntensors() && !iter.is_cpu_scalar(i);
    arguments << (is_memory ? iter.data_ptr(i) : nullptr);
  }
  bool dense = compute == Compute::Float && is_dense(iter);
  Strides strides{};
  if (!dense) {
    strides.dims = iter.ndim();
    uint32_t letters = 0;
    for (int i = 0; i < iter.ntensors(); i++) {
      if (iter.is_cpu_scalar(i)) continue;
      letters |= letter(iter.dtype(i)) << 8 * i;
      for (int d = 0; d < iter.ndim(); d++) strides.steps[i][d] = static_cast<int32_t>(iter.strides(i)[d]);
    }
    for (int d = 0; d < iter.ndim(); d++) strides.sizes[d] = static_cast<uint32_t>(iter.shape()[d]);
    arguments << strides << letters;
  }
  for (int i = 1; i < 4; i++) {
    bool is_value = i < iter.ntensors() && iter.is_cpu_scalar(i);
    if (compute == Compute::Long) {
      arguments << (is_value ? iter.scalar_value<int64_t>(i) : int64_t{0});
    } else {
      arguments << Value(compute, is_value ? iter.scalar_value<double>(i) : 0.0);
    }
  }
  for (double parameter : parameters) arguments << Value(compute, parameter);
  launch(device, dense ? op.dense : op.any[compute], arguments, static_cast<uint32_t>(iter.numel()), kEach);
}

bool are_served(const Tensor &out, Operands operands) {
  bool is_any = out.defined();
  if (out.defined() && !is_served(out)) return false;
  for (const Tensor &operand : operands) {
    bool is_value = operand.is_cpu() && operand.dim() == 0 && !at::isComplexType(operand.scalar_type());
    if (!is_value && !is_served(operand)) return false;
    if (!is_value && operand.numel() > 0 && letter(operand.scalar_type()) == 0) return false;
    is_any = is_any || !is_value;
  }
  return is_any;
}

// Compute the result, into `out` where it is defined. False: no kernel serves the operands.
bool run(Pointwise &op, int kind, Tensor &out, Operands operands, const Parameters &parameters) {
  if (!are_served(out, operands)) return false;
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(true).allow_cpu_scalars(true).add_output(out);
  for (const Tensor &operand : operands) config.add_const_input(operand);
  config.check_all_same_dtype(false).promote_inputs_to_common_dtype(true);
  if (kind == kPromotes) config.promote_integer_inputs_to_float(true);
  if (kind == kCompares && !out.defined()) config.declare_static_dtype(at::kBool);
  auto iter = config.build();
  at::ScalarType common = iter.common_dtype();
  Compute compute = compute_of(common);
  for (int i = 0; i < iter.ntensors(); i++) {
    if (!iter.is_cpu_scalar(i) && iter.dtype(i) == at::kDouble) compute = Compute::Double;
  }
  if (compute == Compute::Long && op.has_floats && at::isFloatingType(iter.dtype(0))) compute = Compute::Float;
  if (compute == Compute::Long ? !op.has_integers : !op.has_floats) return false;
  if (letter(common) == 0 || iter.ndim() > 8 || !iter.device(0).is_privateuseone()) return false;
  if (compute == Compute::Double && !has_double(iter.device(0).index())) return false;
  launch_iterator(op, iter, compute, parameters);
  out = iter.output();
  return true;
}

bool is_number(const c10::IValue &value) { return value.isScalar() || value.isBool(); }

// An operator by the order of its arguments: the tensors are operands; where there are fewer of them, numbers are the
// other operands. The numbers that follow are parameters.
bool call_pointwise(int number, int kind, Call &call, Parameters parameters) {
  Pointwise &op = entry(number);
  Tensor out = call.out();
  bool has_out = call.op.schema().arguments().back().is_out();
  size_t count = call.count() - has_out;
  int tensors = 0;
  for (size_t i = 0; i < count; i++) tensors += call[i].isTensor();
  int values = op.operands - tensors, place = 0;
  c10::SmallVector<Tensor, 3> operands;
  for (size_t i = 0; i < count; i++) {
    const c10::IValue &value = call[i];
    if (value.isTensor()) {
      operands.push_back(value.toTensor());
    } else if (is_number(value) && values > 0) {
      Tensor wrapped = at::scalar_to_tensor(value.toScalar());
      wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
      operands.push_back(wrapped);
      values--;
    } else if (value.isComplexDouble()) {
      return false;
    } else if (place < 3) {
      if (is_number(value)) parameters[place] = value.toScalar().toDouble();
      place++;
    }
  }
  if (operands.size() != static_cast<size_t>(op.operands)) return false;
  if (!run(op, kind, out, operands, parameters)) return false;
  return call.done(out);
}

template <int NUMBER, int KIND>
bool pointwise(Call &call) {
  return call_pointwise(NUMBER, KIND, call, {0, 0, 0});
}

bool clamp(Call &call) {
  constexpr double kMost = std::numeric_limits<double>::infinity();
  for (size_t i : {1, 2}) { // a bound that integers hold, and floats do not
    bool is_far = call[i].isInt() && std::abs(static_cast<double>(call[i].toInt())) > 0x1p53;
    if (is_far || (call[i].isDouble() && at::isIntegralType(call.tensor(0).scalar_type(), true))) return false;
  }
  if (!at::isFloatingType(call.tensor(0).scalar_type())) {
    if (call[1].isNone() || call[2].isNone()) return false;
  }
  return call_pointwise(OP_clamp, kPlain, call, {-kMost, kMost, 0});
}

bool clamp_min(Call &call) {
  if (!at::isFloatingType(call.tensor(0).scalar_type()) || !is_number(call[1])) return false;
  return call_pointwise(OP_clamp, kPlain, call, {0, std::numeric_limits<double>::infinity(), 0});
}

bool clamp_max(Call &call) {
  Tensor self = call.tensor(0), out = call.out();
  if (!at::isFloatingType(self.scalar_type()) || !is_number(call[1])) return false;
  Parameters bounds = {-std::numeric_limits<double>::infinity(), call[1].toScalar().toDouble(), 0};
  return run(entry(OP_clamp), kPlain, out, {self}, bounds) && call.done(out);
}

bool gelu(Call &call) {
  bool is_tanh = call[1].toStringRef() == "tanh";
  Tensor out = call.out(), self = call.tensor(0);
  return run(entry(is_tanh ? OP_gelu_tanh : OP_gelu), kPlain, out, {self}, {}) && call.done(out);
}

bool gelu_backward(Call &call) {
  bool is_tanh = call[2].toStringRef() == "tanh";
  Tensor out = call.out(), grad = call.tensor(0), self = call.tensor(1);
  return run(entry(is_tanh ? OP_gelu_tanh_backward : OP_gelu_backward), kPlain, out, {grad, self}, {}) &&
         call.done(out);
}

bool elu_backward(Call &call) { // of the operand, not of the result
  return !call[4].toBool() && call_pointwise(OP_elu_backward, kPlain, call, {});
}

bool leaky_relu_backward(Call &call) { return call_pointwise(OP_leaky_relu_backward, kPlain, call, {}); }

bool div_mode(Call &call) {
  if (call[2].isNone()) {
    Tensor out = call.out(), self = call.tensor(0), other = call.tensor(1);
    return run(entry(OP_div), kPromotes, out, {self, other}, {}) && call.done(out);
  }
  int number = call[2].toStringRef() == "floor" ? OP_div_floor : OP_div_trunc;
  Tensor out = call.out(), self = call.tensor(0), other = call.tensor(1);
  return run(entry(number), kPlain, out, {self, other}, {}) && call.done(out);
}

bool round_decimals(Call &call) { return call.integer(1) == 0 && call_pointwise(OP_round, kPlain, call, {}); }

// Bitwise operators are logical ones on truth values, where ~ is not ^ 1.
bool bitwise_not(Call &call) {
  bool is_bool = call.tensor(0).scalar_type() == at::kBool;
  return call_pointwise(is_bool ? OP_logical_not : OP_bitwise_not, kPlain, call, {});
}

template <int NUMBER>
bool of_loss(Call &call) { // with a reduction
  Tensor self = call.tensor(0), target = call.tensor(1), out = call.out(), losses;
  int64_t reduction = call.integer(2);
  Parameters parameters{};
  if (call.count() > 4) parameters[0] = call[3].toDouble();
  if (NUMBER == OP_smooth_l1_loss && parameters[0] == 0) return false;
  if (reduction == 0) return run(entry(NUMBER), kPlain, out, {self, target}, parameters) && call.done(out);
  if (!run(entry(NUMBER), kPlain, losses, {self, target}, parameters)) return false;
  out.copy_(reduction == 1 ? losses.mean() : losses.sum());
  return call.done(out);
}

bool mse_loss_backward(Call &call) {
  Tensor grad = call.tensor(0), self = call.tensor(1), target = call.tensor(2), out = call.out();
  double scale = call.integer(3) == 1 ? 2.0 / static_cast<double>(std::max<int64_t>(self.numel(), 1)) : 2.0;
  return run(entry(OP_mse_loss_backward), kPlain, out, {grad, self, target}, {scale}) && call.done(out);
}

bool dropout_backward(Call &call) {
  Tensor grad = call.tensor(0), mask = call.tensor(1), out;
  return run(entry(OP_dropout), kPlain, out, {grad, mask}, {call[2].toDouble()}) && call.done(out);
}

// A type that an operator's results have, of two dense tensors of floats: without an iterator, since it is most of the
// time of a small operator.
bool is_plain(const Tensor &tensor) {
  return tensor.is_privateuseone() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous() && !tensor.is_neg();
}

bool run_plain(int number, const Tensor &self, const Tensor *other, double parameter, const Tensor &out) {
  if (out.numel() > INT32_MAX) return false;
  if (out.numel() == 0) return true;
  Arguments arguments;
  const void *none = nullptr;
  arguments << out.mutable_data_ptr() << self.const_data_ptr() << (other == nullptr ? none : other->const_data_ptr())
            << none << 0.0f << 0.0f << 0.0f << static_cast<float>(parameter) << 0.0f << 0.0f;
  launch(out.get_device(), entry(number).dense, arguments, static_cast<uint32_t>(out.numel()), kEach);
  return true;
}

Tensor like(const Tensor &self) {
  c10::DeviceGuard guard(self.device());
  return at::detail::empty_generic(self.sizes(), device_allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   at::kFloat, std::nullopt);
}

Tensor call_by_name(const char *name, const char *overload, torch::jit::Stack stack) {
  auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  fall_back(op, &stack);
  return stack.back().toTensor();
}

template <int NUMBER, int KIND>
Tensor binary(const char *name, const Tensor &self, const Tensor &other, optional<at::Scalar> alpha) {
  bool is_real = !alpha || !alpha->isComplex();
  double parameter = alpha && is_real ? alpha->toDouble() : 1;
  if (is_plain(self) && is_plain(other) && is_real && self.sizes() == other.sizes() &&
      self.device() == other.device()) {
    Tensor out = like(self);
    if (run_plain(NUMBER, self, &other, parameter, out)) return out;
  }
  Tensor out;
  if (is_real && run(entry(NUMBER), KIND, out, {self, other}, {parameter, 0, 0})) return out;
  if (alpha) return call_by_name(name, "Tensor", {self, other, *alpha});
  return call_by_name(name, "Tensor", {self, other});
}

template <int NUMBER, int KIND>
Tensor &binary_(const char *name, Tensor &self, const Tensor &other, optional<at::Scalar> alpha) {
  bool is_real = !alpha || !alpha->isComplex();
  double parameter = alpha && is_real ? alpha->toDouble() : 1;
  if (is_plain(self) && is_plain(other) && is_real && self.sizes() == other.sizes() &&
      self.device() == other.device() && !self.is_alias_of(other)) {
    if (run_plain(NUMBER, self, &other, parameter, self)) return self;
  }
  Tensor out = self;
  bool can_hold = at::canCast(at::result_type(self, other), self.scalar_type());
  if (is_real && can_hold && run(entry(NUMBER), KIND, out, {self, other}, {parameter, 0, 0})) return self;
  if (alpha) call_by_name(name, "Tensor", {self, other, *alpha});
  else call_by_name(name, "Tensor", {self, other});
  return self;
}

Tensor add(const Tensor &a, const Tensor &b, const at::Scalar &alpha) {
  return binary<OP_add, kPlain>("aten::add", a, b, alpha);
}
Tensor &add_(Tensor &a, const Tensor &b, const at::Scalar &alpha) {
  return binary_<OP_add, kPlain>("aten::add_", a, b, alpha);
}
Tensor sub(const Tensor &a, const Tensor &b, const at::Scalar &alpha) {
  return binary<OP_sub, kPlain>("aten::sub", a, b, alpha);
}
Tensor &sub_(Tensor &a, const Tensor &b, const at::Scalar &alpha) {
  return binary_<OP_sub, kPlain>("aten::sub_", a, b, alpha);
}
Tensor mul(const Tensor &a, const Tensor &b) { return binary<OP_mul, kPlain>("aten::mul", a, b, std::nullopt); }
Tensor &mul_(Tensor &a, const Tensor &b) { return binary_<OP_mul, kPlain>("aten::mul_", a, b, std::nullopt); }
Tensor div(const Tensor &a, const Tensor &b) { return binary<OP_div, kPromotes>("aten::div", a, b, std::nullopt); }
Tensor &div_(Tensor &a, const Tensor &b) { return binary_<OP_div, kPromotes>("aten::div_", a, b, std::nullopt); }

#define PLAIN(ATEN, NUMBER) OPERATOR(ATEN, (pointwise<OP_##NUMBER, kPlain>))
#define FLOAT(ATEN, NUMBER) OPERATOR(ATEN, (pointwise<OP_##NUMBER, kPromotes>))
#define COMPARES(NAME)                                                                                                 \
  OPERATOR(#NAME ".Tensor_out", (pointwise<OP_##NAME, kCompares>));                                                    \
  OPERATOR(#NAME ".Scalar_out", (pointwise<OP_##NAME, kCompares>))

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("add.Tensor", add);
  m.impl("add_.Tensor", add_);
  m.impl("sub.Tensor", sub);
  m.impl("sub_.Tensor", sub_);
  m.impl("mul.Tensor", mul);
  m.impl("mul_.Tensor", mul_);
  m.impl("div.Tensor", div);
  m.impl("div_.Tensor", div_);
  PLAIN("add.out", add);
  PLAIN("sub.out", sub);
  PLAIN("mul.out", mul);
  FLOAT("div.out", div);
  OPERATOR("div.out_mode", div_mode);
  PLAIN("neg.out", neg);
  PLAIN("abs.out", abs);
  PLAIN("sign.out", sign);
  PLAIN("sgn.out", sign);
  PLAIN("relu", relu);
  PLAIN("relu_", relu);
  PLAIN("threshold.out", threshold);
  PLAIN("threshold_backward.grad_input", threshold_backward);
  PLAIN("maximum.out", maximum);
  PLAIN("minimum.out", minimum);
  PLAIN("fmax.out", fmax);
  PLAIN("fmin.out", fmin);
  OPERATOR("clamp.out", clamp);
  OPERATOR("clamp_min.out", clamp_min);
  OPERATOR("clamp_max.out", clamp_max);
  PLAIN("hardtanh", clamp);
  PLAIN("hardtanh_", clamp);
  PLAIN("hardtanh.out", clamp);
  COMPARES(eq);
  COMPARES(ne);
  COMPARES(lt);
  COMPARES(le);
  COMPARES(gt);
  COMPARES(ge);
  OPERATOR("logical_not.out", (pointwise<OP_logical_not, kCompares>));
  OPERATOR("logical_and.out", (pointwise<OP_logical_and, kCompares>));
  OPERATOR("logical_or.out", (pointwise<OP_logical_or, kCompares>));
  OPERATOR("logical_xor.out", (pointwise<OP_logical_xor, kCompares>));
  OPERATOR("bitwise_not.out", bitwise_not);
  PLAIN("bitwise_and.Tensor_out", bitwise_and);
  PLAIN("bitwise_or.Tensor_out", bitwise_or);
  PLAIN("bitwise_xor.Tensor_out", bitwise_xor);
  PLAIN("where.self", where);
  PLAIN("where.self_out", where);
  PLAIN("masked_fill_.Scalar", masked_fill);
  PLAIN("masked_fill_.Tensor", masked_fill);
  PLAIN("addcmul.out", addcmul);
  PLAIN("addcdiv.out", addcdiv);
  PLAIN("lerp.Scalar_out", lerp);
  PLAIN("lerp.Tensor_out", lerp);
  FLOAT("exp.out", exp);
  FLOAT("exp2.out", exp2);
  FLOAT("expm1.out", expm1);
  FLOAT("log.out", log);
  FLOAT("log2.out", log2);
  FLOAT("log10.out", log10);
  FLOAT("log1p.out", log1p);
  FLOAT("sqrt.out", sqrt);
  FLOAT("rsqrt.out", rsqrt);
  FLOAT("reciprocal.out", reciprocal);
  FLOAT("sin.out", sin);
  FLOAT("cos.out", cos);
  FLOAT("tan.out", tan);
  FLOAT("asin.out", asin);
  FLOAT("acos.out", acos);
  FLOAT("atan.out", atan);
  FLOAT("sinh.out", sinh);
  FLOAT("cosh.out", cosh);
  FLOAT("tanh.out", tanh);
  FLOAT("asinh.out", asinh);
  FLOAT("acosh.out", acosh);
  FLOAT("atanh.out", atanh);
  FLOAT("erf.out", erf);
  FLOAT("erfc.out", erfc);
  FLOAT("sigmoid.out", sigmoid);
  PLAIN("floor.out", floor);
  PLAIN("ceil.out", ceil);
  PLAIN("round.out", round);
  OPERATOR("round.decimals_out", round_decimals);
  PLAIN("trunc.out", trunc);
  PLAIN("frac.out", frac);
  PLAIN("silu.out", silu);
  PLAIN("mish.out", mish);
  PLAIN("hardsigmoid.out", hardsigmoid);
  PLAIN("hardswish", hardswish);
  PLAIN("hardswish_", hardswish);
  PLAIN("hardswish.out", hardswish);
  OPERATOR("gelu.out", gelu);
  OPERATOR("gelu_backward.grad_input", gelu_backward);
  PLAIN("leaky_relu.out", leaky_relu);
  PLAIN("elu.out", elu);
  PLAIN("softplus.out", softplus);
  PLAIN("pow.Tensor_Scalar_out", pow);
  PLAIN("pow.Tensor_Tensor_out", pow);
  PLAIN("pow.Scalar_out", pow);
  FLOAT("atan2.out", atan2);
  PLAIN("fmod.Tensor_out", fmod);
  PLAIN("remainder.Tensor_out", remainder);
  PLAIN("hypot.out", hypot);
  FLOAT("copysign.out", copysign);
  FLOAT("xlogy.OutTensor", xlogy);
  OPERATOR("mse_loss.out", of_loss<OP_mse_loss>);
  OPERATOR("mse_loss_backward.grad_input", mse_loss_backward);
  OPERATOR("mse_loss_backward", mse_loss_backward);
  OPERATOR("smooth_l1_loss.out", of_loss<OP_smooth_l1_loss>);
  PLAIN("sigmoid_backward.grad_input", sigmoid_backward);
  PLAIN("tanh_backward.grad_input", tanh_backward);
  PLAIN("silu_backward.grad_input", silu_backward);
  PLAIN("mish_backward", mish_backward);
  OPERATOR("leaky_relu_backward.grad_input", leaky_relu_backward);
  OPERATOR("elu_backward.grad_input", elu_backward);
  PLAIN("softplus_backward.grad_input", softplus_backward);
  PLAIN("hardtanh_backward", hardtanh_backward);
  PLAIN("hardsigmoid_backward.grad_input", hardsigmoid_backward);
  PLAIN("hardswish_backward", hardswish_backward);
  OPERATOR("native_dropout_backward", dropout_backward);
}

} // namespace

Tensor compute_pointwise(const char *name, const Tensor &out, std::initializer_list<Tensor> operands,
                         std::initializer_list<double> parameters) {
  Parameters values{};
  std::copy(parameters.begin(), parameters.end(), values.begin());
  Tensor result = out;
  for (int number = 0; number < kCount; number++) {
    if (std::string_view(entry(number).name) != name) continue;
    TORCH_CHECK(run(entry(number), kPlain, result, operands, values), "no kernel serves the operands of ", name);
    return result;
  }
  TORCH_CHECK(false, "there is no kernel of the name ", name);
}

bool convert(const Tensor &to, const Tensor &from) {
  Tensor out = to;
  return run(entry(OP_identity), kPlain, out, {from}, {});
}

} // namespace l0rt_torch
