/* SPDX-License-Identifier: Apache-2.0 */
// copies.cpp: copies between tensors of any devices, strides and types.
#include "copies.h"

#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "compiled.h"
#include "operators.h"
#include "tensors.h"

namespace l0rt_torch {
namespace {

bool is_alike(const Tensor &a, const Tensor &b) {
  return a.is_non_overlapping_and_dense() && (a.strides() == b.strides() || (a.is_contiguous() && b.is_contiguous()));
}

// Copies of elements as they are, by their bytes.
Kernel &kernel_of(size_t bytes) {
  static Kernel kernels[] = {{0, "copy_1"}, {0, "copy_2"}, {0, "copy_4"}, {0, "copy_8"}, {0, "copy_16"}};
  for (size_t i = 0; i < 4; i++) {
    if (bytes == size_t{1} << i) return kernels[i];
  }
  return kernels[4];
}

bool copy_strided(const Tensor &to, const Tensor &from) {
  Extents extents;
  for (int64_t d = 0; d < to.dim(); d++) extents.add(to.size(d), {step(to, d), step(from, d), 0, 0});
  Strides strides{};
  if (!extents.fill(strides)) return false;
  Arguments arguments;
  arguments << to.mutable_data_ptr() << from.const_data_ptr() << strides;
  launch(to.get_device(), kernel_of(to.element_size()), arguments, static_cast<uint32_t>(to.numel()), 4);
  return true;
}

// Bytes of the host that work of a stream reads or writes: pinned ones are recorded, others are waited for.
void settle(const void *host, bool non_blocking) {
  l0rt_stream *stream = current(-1);
  if (non_blocking && is_pinned(host)) {
    ok(api->record_use(const_cast<void *>(host), stream));
  } else {
    ok(api->stream_synchronize(stream));
    check_errors(api->current_device());
  }
}

void copy_through_host(const Tensor &to, const Tensor &from) {
  Tensor host = at::empty(from.sizes(), from.options().device(at::kCPU));
  copy_values(host, from, false);
  copy_values(to, host, false);
}

void copy_on_device(const Tensor &to, const Tensor &from) {
  bool is_plain = to.scalar_type() == from.scalar_type() && to.is_conj() == from.is_conj() &&
                  to.is_neg() == from.is_neg();
  if (is_plain && is_alike(to, from)) {
    ok(api->memcpy_async(to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes(), nullptr));
  } else if (is_plain ? copy_strided(to, from) : convert(to, from)) {
    return;
  } else if (is_plain && to.dim() > 1) {
    for (int64_t i = 0; i < to.size(0); i++) copy_on_device(to.select(0, i), from.select(0, i));
  } else {
    copy_through_host(to, from);
  }
}

void copy_between_devices(const Tensor &to, const Tensor &from) {
  if (to.scalar_type() != from.scalar_type() || !is_alike(to, from) || to.is_conj() != from.is_conj() ||
      to.is_neg() != from.is_neg()) {
    Tensor near = at::empty_like(from, from.options().device(to.device()), at::MemoryFormat::Contiguous);
    copy_values(near, from.contiguous(), false);
    copy_values(to, near, false);
    return;
  }
  l0rt_stream *stream = current(to.get_device()), *source = current(from.get_device());
  ok(api->stream_wait_stream(stream, source));
  ok(api->memcpy_async(to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes(), stream));
  ok(api->stream_wait_stream(source, stream)); // what is freed in its order is not reused before
}

void copy_to_device(const Tensor &to, const Tensor &from, bool non_blocking) {
  Tensor bits = to; // as they are in memory
  Tensor source = from.to(to.scalar_type()).resolve_conj().resolve_neg();
  if (to.is_conj()) {
    bits = at::_conj(bits);
    source = at::_conj(source).resolve_conj();
  }
  if (to.is_neg()) {
    bits = at::_neg_view(bits);
    source = at::_neg_view(source).resolve_neg();
  }
  if (!is_alike(bits, source)) {
    Tensor dense = at::empty(bits.sizes(), bits.options());
    copy_to_device(dense, source.contiguous(), false);
    copy_on_device(bits, dense);
    return;
  }
  ok(api->memcpy_async(bits.mutable_data_ptr(), source.const_data_ptr(), bits.nbytes(), nullptr));
  settle(source.const_data_ptr(), non_blocking);
}

void copy_to_host(const Tensor &to, const Tensor &from, bool non_blocking) {
  bool is_plain = to.scalar_type() == from.scalar_type() && to.is_conj() == from.is_conj() &&
                  to.is_neg() == from.is_neg();
  if (is_plain && is_alike(to, from)) {
    ok(api->memcpy_async(to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes(), nullptr));
    settle(to.const_data_ptr(), non_blocking);
    return;
  }
  Tensor bits = from; // as they are in memory
  if (from.is_conj()) bits = at::_conj(bits);
  if (from.is_neg()) bits = at::_neg_view(bits);
  bits = bits.contiguous();
  Tensor host = at::empty(bits.sizes(), bits.options().device(at::kCPU));
  copy_to_host(host, bits, false);
  if (from.is_conj()) host = at::_conj(host);
  if (from.is_neg()) host = at::_neg_view(host);
  to.copy_(host);
}

} // namespace

void copy_values(const Tensor &to, const Tensor &from, bool non_blocking) {
  if (to.numel() == 0) return;
  if (to.sizes() != from.sizes()) {
    copy_values(to, from.expand_as(to), non_blocking);
    return;
  }
  c10::DeviceGuard guard(to.is_privateuseone() ? to.device() : from.device());
  if (from.is_cpu()) {
    copy_to_device(to, from, non_blocking);
  } else if (to.is_cpu()) {
    copy_to_host(to, from, non_blocking);
  } else if (to.device() == from.device()) {
    copy_on_device(to, from);
  } else {
    copy_between_devices(to, from);
  }
}

} // namespace l0rt_torch
