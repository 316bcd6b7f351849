# SPDX-License-Identifier: Apache-2.0
# Its functions are for `from l0rt.capi cimport ...` and for <l0rt/l0rt.h>.
