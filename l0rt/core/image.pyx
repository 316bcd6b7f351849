# SPDX-License-Identifier: Apache-2.0
"""Images and samplers: what a device's sampler reads, and how."""

cimport cython
from libc.string cimport memset

from l0rt.core.device cimport Device
from l0rt.core.driver cimport Context
from l0rt._base.factory cimport made_by
from l0rt.ze cimport table
from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK, DROP
from l0rt.ze.table cimport ze


cdef l0rt_image_limits image_limits(Device device) except *:
    cdef ze_device_image_properties_t p
    cdef l0rt_image_limits limits
    memset(&p, 0, sizeof(p))
    p.stype = ZE_STRUCTURE_TYPE_DEVICE_IMAGE_PROPERTIES
    if ze.zeImageCreate != NULL and ze.zeSamplerCreate != NULL and ze.zeDeviceGetImageProperties != NULL:
        with nogil:
            CHECK(ze.zeDeviceGetImageProperties(device._h, &p))
    limits.extents = [p.maxImageDims1D, p.maxImageDims2D, p.maxImageDims3D]
    limits.elements, limits.samplers = p.maxImageArraySlices, p.maxSamplers
    return limits


cdef ze_result_t list_copy_image(
        ze_command_list_handle_t list, ze_image_handle_t image, const ze_image_region_t* region, void* memory,
        bint reads) noexcept nogil:
    """Rows follow each other without gaps in memory."""
    if reads:
        return ze.zeCommandListAppendImageCopyToMemory(list, memory, image, region, NULL, 0, NULL)
    return ze.zeCommandListAppendImageCopyFromMemory(list, image, memory, region, NULL, 0, NULL)


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Image:
    """Texels that kernels read through a sampler, or one by one. Made by ``Image.create()``."""

    def __init__(self):
        raise TypeError("core.Image is made by Image.create()")

    @staticmethod
    cdef Image create(Context context, Device device, const l0rt_image_desc* desc):
        cdef Image self = Image.__new__(Image)
        cdef ze_image_desc_t d
        memset(&d, 0, sizeof(d))
        d.stype = ZE_STRUCTURE_TYPE_IMAGE_DESC
        d.flags = ZE_IMAGE_FLAG_KERNEL_WRITE
        d.type = <ze_image_type_t>desc.type
        d.format.layout = <ze_image_format_layout_t>desc.layout
        d.format.type = <ze_image_format_type_t>desc.number
        d.format.x = <ze_image_format_swizzle_t>desc.channels[0]
        d.format.y = <ze_image_format_swizzle_t>desc.channels[1]
        d.format.z = <ze_image_format_swizzle_t>desc.channels[2]
        d.format.w = <ze_image_format_swizzle_t>desc.channels[3]
        d.width, d.height, d.depth, d.arraylevels = desc.width, desc.height, desc.depth, desc.elements
        self.context = context
        with nogil:
            CHECK(ze.zeImageCreate(context._h, device._h, &d, &self._h))
        return self

    def close(self):
        """Destroy the image; closing twice is harmless."""
        Image_release(self)

    def __dealloc__(self):
        Image_release(self)


made_by(Image, "core.Image is made by Image.create()")


cdef void Image_release(Image self) noexcept:
    cdef ze_image_handle_t h = self._h
    self._h = NULL
    if h != NULL and table.alive:
        with nogil:
            DROP(ze.zeImageDestroy(h), b"zeImageDestroy")


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Sampler:
    """How an image is sampled. Made by ``Sampler.create()``."""

    def __init__(self):
        raise TypeError("core.Sampler is made by Sampler.create()")

    @staticmethod
    cdef Sampler create(Context context, Device device, int addressing, bint linear, bint normalized):
        cdef Sampler self = Sampler.__new__(Sampler)
        cdef ze_sampler_desc_t desc
        memset(&desc, 0, sizeof(desc))
        desc.stype = ZE_STRUCTURE_TYPE_SAMPLER_DESC
        desc.addressMode = <ze_sampler_address_mode_t>addressing
        desc.filterMode = <ze_sampler_filter_mode_t>linear
        desc.isNormalized = normalized
        self.context = context
        with nogil:
            CHECK(ze.zeSamplerCreate(context._h, device._h, &desc, &self._h))
        return self

    def close(self):
        """Destroy the sampler; closing twice is harmless."""
        Sampler_release(self)

    def __dealloc__(self):
        Sampler_release(self)


made_by(Sampler, "core.Sampler is made by Sampler.create()")


cdef void Sampler_release(Sampler self) noexcept:
    cdef ze_sampler_handle_t h = self._h
    self._h = NULL
    if h != NULL and table.alive:
        with nogil:
            DROP(ze.zeSamplerDestroy(h), b"zeSamplerDestroy")
