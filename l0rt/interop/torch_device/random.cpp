/* SPDX-License-Identifier: Apache-2.0 */
// random.cpp: random fills and dropout by the kernels of l0rt's own random numbers: the same numbers for the same state.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <cmath>
#include <limits>

#include "hooks.h"
#include "operators.h"

namespace l0rt_torch {
namespace {

constexpr uint64_t kBlock = 4; // words

// A kernel by its name, in the modules for launches outside and in captures.
struct Random {
  explicit Random(const std::string &name, bool is_double = false)
      : plain(is_double ? kRandomDouble : kRandom, name),
        captured(is_double ? kRandomGraphDouble : kRandomGraph, name) {}
  Kernel plain, captured;
};

optional<at::Generator> generator_of(const c10::IValue &value) {
  return value.isNone() ? std::nullopt : optional(value.toGenerator());
}

// Fill a dense tensor; a block of words makes `of_block` numbers.
template <typename... Parameters>
void draw_into(Random &kernels, const Tensor &out, uint64_t of_block, const optional<at::Generator> &generator,
               const Parameters &...parameters) {
  auto count = static_cast<uint64_t>(out.numel()), blocks = (count + of_block - 1) / of_block;
  Beginning beginning = draw(generator, out.get_device(), blocks * kBlock);
  Arguments arguments;
  arguments << out.mutable_data_ptr() << count;
  if (beginning.state != nullptr) arguments << beginning.within << beginning.state;
  else arguments << beginning.offset / kBlock << beginning.seed;
  (arguments << ... << parameters);
  const uint32_t groups[3] = {static_cast<uint32_t>((blocks + 255) / 256), 1, 1}, size[3] = {256, 1, 1};
  launch_groups(out.get_device(), beginning.state != nullptr ? kernels.captured : kernels.plain, arguments, groups,
                size);
}

bool is_fillable(const Tensor &self) {
  return is_served(self) && self.numel() < (int64_t{1} << 32) && can_compute(compute_of(self.scalar_type()), self);
}

// Let a function fill a dense tensor of a type, and copy what it is not.
template <typename Function>
void fill_dense(const Tensor &self, at::ScalarType type, Function function) {
  if (self.numel() == 0) return;
  bool is_direct = self.scalar_type() == type && self.is_contiguous();
  Tensor dense = is_direct ? self : at::empty(self.sizes(), self.options().dtype(type));
  function(dense);
  if (!is_direct) self.copy_(dense);
}

template <typename T>
double below(double high) { // the next number of the type
  T value(static_cast<float>(high));
  if (static_cast<float>(value) == 0) value.x = 0x8000;
  value.x += static_cast<float>(value) > 0 ? -1 : 1;
  return static_cast<double>(static_cast<float>(value));
}

double last_below(double high, double low, at::ScalarType type) {
  if (high == low) return high;
  switch (type) {
    case at::kHalf: return below<c10::Half>(high);
    case at::kBFloat16: return below<c10::BFloat16>(high);
    case at::kFloat: return std::nextafterf(static_cast<float>(high), static_cast<float>(low));
    default: return std::nextafter(high, low);
  }
}

// The type of the kernel that makes numbers of a type.
at::ScalarType drawn(at::ScalarType type) { return type == at::kBFloat16 ? at::kFloat : type; }

template <typename... Parameters>
void draw_floats(std::array<Random, 3> &kernels, const Tensor &self, const optional<at::Generator> &generator,
                 const Parameters &...parameters) {
  fill_dense(self, drawn(self.scalar_type()), [&](const Tensor &out) {
    bool is_double = out.scalar_type() == at::kDouble;
    Compute compute = is_double ? Compute::Double : Compute::Float;
    Random &kernel = kernels[is_double ? 2 : out.scalar_type() == at::kFloat ? 1 : 0];
    draw_into(kernel, out, is_double ? 2 : kBlock, generator, Value(compute, parameters)...);
  });
}

std::array<Random, 3> *of_floats(const std::string &name) {
  return new std::array<Random, 3>{Random(name + "_half"), Random(name + "_float"), Random(name + "_double", true)};
}

bool is_float(const Tensor &self) { return is_fillable(self) && at::isFloatingType(self.scalar_type()); }

bool uniform_(Call &call) { // self, from, to, generator
  static auto &kernels = *of_floats("uniform");
  Tensor self = call.tensor(0);
  double low = call[1].toDouble(), high = call[2].toDouble();
  if (!is_float(self)) return false;
  TORCH_CHECK(low <= high, "uniform_ expects to return a [from, to) range, but found from=", low, " > to=", high);
  bool fits = self.scalar_type() == at::kDouble || std::isfinite(static_cast<float>(high - low));
  if (!fits) return false;
  draw_floats(kernels, self, generator_of(call[3]), low, high - low, last_below(high, low, self.scalar_type()));
  return call.done(self);
}

bool normal_(Call &call) { // self, mean, std, generator
  static auto &kernels = *of_floats("normal");
  Tensor self = call.tensor(0);
  double std = call[2].toDouble();
  if (!is_float(self)) return false;
  TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  draw_floats(kernels, self, generator_of(call[3]), call[1].toDouble(), std);
  return call.done(self);
}

bool exponential_(Call &call) { // self, lambd, generator
  static auto &kernels = *of_floats("exponential");
  Tensor self = call.tensor(0);
  double lambd = call[1].toDouble();
  if (!is_float(self)) return false;
  TORCH_CHECK(lambd > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
  draw_floats(kernels, self, generator_of(call[2]), lambd);
  return call.done(self);
}

size_t place_of(size_t bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3; }

std::array<Random, 4> *of_bytes(const std::string &name) {
  return new std::array<Random, 4>{Random(name + "_char"), Random(name + "_short"), Random(name + "_int"),
                                   Random(name + "_long")};
}

// Whole numbers from [low, low + span); a span of 0 is 2**64.
bool whole(Call &call, int64_t low, uint64_t span, const c10::IValue &generator) {
  static auto &kernels = *of_bytes("randint");
  Tensor self = call.tensor(0);
  if (!is_fillable(self)) return false;
  bool is_whole = at::isIntegralType(self.scalar_type(), false);
  fill_dense(self, is_whole ? self.scalar_type() : at::kLong, [&](const Tensor &out) {
    size_t place = place_of(out.element_size());
    draw_into(kernels[place], out, place == 3 ? 2 : kBlock, generator_of(generator), static_cast<uint64_t>(low), span);
  });
  return call.done(self);
}

bool random_(Call &call) { // self, generator
  auto most = [&]() -> uint64_t { // the numbers from 0 on that the type has without a gap
    switch (call.tensor(0).scalar_type()) {
      case at::kBool: return 2;
      case at::kByte: return 1 << 8;
      case at::kChar: return 1 << 7;
      case at::kShort: return 1 << 15;
      case at::kInt: return uint64_t{1} << 31;
      case at::kLong: return uint64_t{1} << 63;
      case at::kHalf: return (1 << 11) + 1;
      case at::kBFloat16: return (1 << 8) + 1;
      case at::kFloat: return (1 << 24) + 1;
      default: return (uint64_t{1} << 53) + 1;
    }
  };
  return whole(call, 0, most(), call[1]);
}

bool random_to(Call &call) { // self, to, generator
  TORCH_CHECK(call.integer(1) > 0,
              "random_ expects 'from' to be less than 'to', but got from=0 >= to=", call.integer(1));
  return whole(call, 0, static_cast<uint64_t>(call.integer(1)), call[2]);
}

bool random_from(Call &call) { // self, from, to, generator
  int64_t from = call.integer(1);
  if (call[2].isNone()) return false;
  int64_t to = call.integer(2);
  TORCH_CHECK(from < to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", to);
  return whole(call, from, static_cast<uint64_t>(to) - static_cast<uint64_t>(from), call[3]);
}

uint64_t one_of(at::ScalarType type) { // its bits
  switch (type) {
    case at::kHalf: return 0x3C00;
    case at::kBFloat16: return 0x3F80;
    case at::kFloat: return 0x3F800000;
    case at::kDouble: return 0x3FF0000000000000;
    default: return 1;
  }
}

void fill_bernoulli(const Tensor &self, double p, const optional<at::Generator> &generator) {
  static auto &kernels = *of_bytes("bernoulli");
  auto limit = static_cast<uint64_t>(std::ceil(p * 0x1p32));
  fill_dense(self, self.scalar_type(), [&](const Tensor &out) {
    draw_into(kernels[place_of(out.element_size())], out, kBlock, generator, limit, one_of(out.scalar_type()));
  });
}

bool bernoulli_(Call &call) { // self, p, generator
  Tensor self = call.tensor(0);
  double p = call[1].toDouble();
  if (!is_fillable(self)) return false;
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  fill_bernoulli(self, p, generator_of(call[2]));
  return call.done(self);
}

bool bernoulli_of_tensor(Call &call, const Tensor &p, const Tensor &out, const c10::IValue &generator) {
  static auto &kernels = *of_floats("uniform");
  if (!is_fillable(out) || !is_served(p) || p.scalar_type() == at::kDouble) return false;
  Tensor drawn = at::empty(out.sizes(), out.options().dtype(at::kFloat).memory_format(std::nullopt));
  draw_floats(kernels, drawn, generator_of(generator), 0.0, 1.0, last_below(1, 0, at::kFloat));
  out.copy_(drawn < p);
  return call.done(out);
}

bool bernoulli_out(Call &call) { // self, generator, out
  Tensor out = call.out();
  if (out.sizes() != call.tensor(0).sizes()) out.resize_(call.tensor(0).sizes());
  return bernoulli_of_tensor(call, call.tensor(0), out, call[1]);
}

bool bernoulli_tensor_(Call &call) { return bernoulli_of_tensor(call, call.tensor(1), call.tensor(0), call[2]); }

bool dropout(Call &call) { // self, p, train
  Tensor self = call.tensor(0);
  if (!is_float(self)) return false;
  double p = call[1].toDouble();
  bool training = call[2].isNone() || call[2].toBool();
  Tensor mask = at::empty_like(self, self.options().dtype(at::kBool), at::MemoryFormat::Contiguous);
  if (!training) return call.done(self.clone(), mask.fill_(true));
  if (self.numel() != 0) fill_bernoulli(mask, 1 - p, std::nullopt);
  Tensor out = compute_pointwise("dropout", {}, {self, mask}, {p == 1 ? 0 : 1 / (1 - p)});
  return call.done(out, mask);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  OPERATOR("uniform_", uniform_);
  OPERATOR("normal_", normal_);
  OPERATOR("exponential_", exponential_);
  OPERATOR("random_", random_);
  OPERATOR("random_.to", random_to);
  OPERATOR("random_.from", random_from);
  OPERATOR("bernoulli_.float", bernoulli_);
  OPERATOR("bernoulli_.Tensor", bernoulli_tensor_);
  OPERATOR("bernoulli.out", bernoulli_out);
  OPERATOR("native_dropout", dropout);
}

} // namespace
} // namespace l0rt_torch
