/* SPDX-License-Identifier: Apache-2.0 */
// tensors.cpp: tensors and storages of the device, views of them, and copies with any strides and types.
#include "tensors.h"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "copies.h"
#include "hooks.h"

namespace l0rt_torch {
namespace {

using at::Tensor;
using c10::IntArrayRef;
using c10::SymIntArrayRef;
using std::optional;

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

Tensor empty(IntArrayRef sizes, optional<c10::ScalarType> dtype, optional<c10::Layout>, optional<c10::Device> device,
             optional<bool> pin_memory, optional<c10::MemoryFormat> format) {
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "only memory of the host can be pinned");
  c10::DeviceGuard guard(c10::device_or_default(device));
  return at::detail::empty_generic(sizes, device_allocator(), kKeys, c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, optional<c10::ScalarType> dtype, optional<c10::Layout>,
                     optional<c10::Device> device, optional<bool> pin_memory) {
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "only memory of the host can be pinned");
  c10::DeviceGuard guard(c10::device_or_default(device));
  return at::detail::empty_strided_generic(sizes, strides, device_allocator(), kKeys, c10::dtype_or_default(dtype));
}

void grow(c10::TensorImpl *tensor, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  size_t nbytes = at::detail::computeStorageNbytes(sizes, strides, tensor->dtype().itemsize(), offset);
  auto *storage = tensor->unsafe_storage().unsafeGetStorageImpl();
  if (nbytes > storage->nbytes()) resize_storage(storage, nbytes);
}

const Tensor &resize_(const Tensor &self, SymIntArrayRef symbolic, optional<at::MemoryFormat> format) {
  auto sizes = C10_AS_INTARRAYREF_SLOW(symbolic);
  if (self.sizes() == sizes && !format) return self;
  auto *tensor = self.unsafeGetTensorImpl();
  tensor->set_sizes_contiguous(sizes);
  if (format && *format != at::MemoryFormat::Preserve) tensor->empty_tensor_restride(*format);
  grow(tensor, tensor->sizes(), tensor->strides(), tensor->storage_offset());
  return self;
}

Tensor &set_storage_part(Tensor &self, at::Storage storage, c10::SymInt symbolic, SymIntArrayRef size,
                         SymIntArrayRef stride) {
  auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  auto strides = C10_AS_INTARRAYREF_SLOW(stride);
  int64_t offset = symbolic.guard_int(__FILE__, __LINE__);
  TORCH_CHECK(storage.device() == self.device(), "a tensor of ", self.device(), " cannot have a storage of ",
              storage.device());
  auto *tensor = self.unsafeGetTensorImpl();
  tensor->set_storage_keep_dtype(std::move(storage));
  if (strides.size() == sizes.size()) {
    tensor->set_sizes_and_strides(sizes, strides, offset);
  } else {
    tensor->set_storage_offset(offset);
    tensor->set_sizes_contiguous(sizes);
  }
  grow(tensor, tensor->sizes(), tensor->strides(), offset);
  return self;
}

Tensor &set_storage(Tensor &self, at::Storage storage) {
  auto count = static_cast<int64_t>(storage.nbytes() / self.dtype().itemsize());
  const c10::SymInt sizes[] = {c10::SymInt(count)};
  return set_storage_part(self, std::move(storage), 0, sizes, {});
}

Tensor &set_tensor(Tensor &self, const Tensor &source) {
  if (self.is_same(source)) return self;
  return set_storage_part(self, source.storage(), source.sym_storage_offset(), source.sym_sizes(),
                          source.sym_strides());
}

Tensor as_strided(const Tensor &self, SymIntArrayRef sizes, SymIntArrayRef strides, optional<c10::SymInt> offset) {
  optional<int64_t> at;
  if (offset) at = offset->guard_int(__FILE__, __LINE__);
  return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), at);
}

Tensor view(const Tensor &self, SymIntArrayRef sizes) { return at::native::view(self, C10_AS_INTARRAYREF_SLOW(sizes)); }

Tensor reshape_alias(const Tensor &self, SymIntArrayRef sizes, SymIntArrayRef strides) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides));
}

Tensor copy_from(const Tensor &self, const Tensor &dst, bool non_blocking) {
  copy_values(dst, self, non_blocking);
  return dst;
}

Tensor copy_from_and_resize(const Tensor &self, const Tensor &dst) {
  dst.resize_(self.sizes());
  copy_values(dst, self, false);
  return dst;
}

at::Scalar local_scalar(const Tensor &self) {
  Tensor host = at::empty({}, self.options().device(at::kCPU));
  copy_values(host, self, false);
  return host.item();
}

Tensor &fill(Tensor &self, const at::Scalar &value) {
  if (self.numel() == 0) return self;
  Tensor one = at::scalar_tensor(value, self.options().device(at::kCPU));
  if (!self.is_non_overlapping_and_dense() || self.is_conj() || self.is_neg()) {
    Tensor dense = at::empty_like(self, at::MemoryFormat::Contiguous);
    fill(dense, value);
    copy_values(self, dense, true);
    return self;
  }
  c10::DeviceGuard guard(self.device());
  ok(api->fill_async(self.mutable_data_ptr(), one.const_data_ptr(), self.element_size(), self.nbytes(), nullptr));
  return self;
}

Tensor &zero(Tensor &self) { return fill(self, 0); }

void record_stream(Tensor &self, c10::Stream stream) {
  void *ptr = self.storage().mutable_data();
  if (ptr != nullptr) ok(api->record_stream(ptr, native(stream)));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("resize_", resize_);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Storage_storage_offset", set_storage_part);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("as_strided", as_strided);
  m.impl("view", view);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("unfold", at::native::unfold);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", local_scalar);
  m.impl("fill_.Scalar", fill);
  m.impl("zero_", zero);
  m.impl("record_stream", record_stream);
}

// A copy reads the bits of conjugate and negative views itself: torch would resolve them by such a copy.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

} // namespace
} // namespace l0rt_torch
