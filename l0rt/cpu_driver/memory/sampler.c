/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.c: samplers. */
#include "memory/sampler.h"

#include "base/gate.h"
#include "simulate/profile.h"
#include "spirv/spirv.h"

ze_result_t cpu_sampler_read(const ze_sampler_desc_t *desc, uint32_t *bits) {
  static const uint8_t modes[] = {SPIRV_SAMPLER_NONE, SPIRV_SAMPLER_REPEAT, SPIRV_SAMPLER_CLAMP_TO_EDGE,
                                  SPIRV_SAMPLER_CLAMP, SPIRV_SAMPLER_REPEAT_MIRRORED};
  CPU_REFUSE_IF((uint32_t)desc->addressMode > ZE_SAMPLER_ADDRESS_MODE_MIRROR, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF((uint32_t)desc->filterMode > ZE_SAMPLER_FILTER_MODE_LINEAR, ERROR_INVALID_ENUMERATION);
  *bits = modes[desc->addressMode] | (desc->isNormalized ? SPIRV_SAMPLER_NORMALIZED : 0) |
          (desc->filterMode == ZE_SAMPLER_FILTER_MODE_LINEAR ? SPIRV_SAMPLER_LINEAR : 0);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeSamplerCreate(ze_context_handle_t context_handle, ze_device_handle_t device_handle,
                                       const ze_sampler_desc_t *desc, ze_sampler_handle_t *out) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle);
  CPU_REFUSE_IF(context == NULL || device == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  if (!cpu_context_has(context, device))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the device is none of the context");
  uint32_t bits;
  ze_result_t result = cpu_sampler_read(desc, &bits);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(!cpu_device_has_images(), ERROR_UNSUPPORTED_FEATURE);
  cpu_sampler *sampler = cpu_new(CPU_SAMPLER);
  CPU_REFUSE_IF(sampler == NULL, ERROR_OUT_OF_HOST_MEMORY);
  cpu_context_hold(context);
  sampler->context = context;
  sampler->bits = bits;
  *out = (ze_sampler_handle_t)sampler;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeSamplerDestroy(ze_sampler_handle_t handle) {
  CPU_ENTER();
  cpu_sampler *sampler = cpu_sampler_cast(handle);
  CPU_REFUSE_IF(sampler == NULL, ERROR_INVALID_NULL_HANDLE);
  cpu_context *context = sampler->context;
  cpu_delete(sampler);
  cpu_context_let_go(context);
  return ZE_RESULT_SUCCESS;
}
