# SPDX-License-Identifier: Apache-2.0
"""What a launch needs below Buffers: what a module says of its kernels, built modules, launches, random kernels."""

from l0rt._base.libraries import share

share(__path__, __name__)
