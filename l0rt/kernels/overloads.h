/* SPDX-License-Identifier: Apache-2.0 */
/* overloads.h: declarations of OpenCL's functions by shape. zig's clang finds these functions only under names that the
 * source does not define; where it defines one with other parameters, and calls both, they must be declared before. */
/* clang-format off */
#define __l0rt_widths(m, f, t) m(f, t, t) m(f, t##2, t) m(f, t##3, t) m(f, t##4, t) m(f, t##8, t) m(f, t##16, t)
#define __l0rt_short(m, f, t) m(f, t, t) m(f, t##2, t) m(f, t##3, t) m(f, t##4, t)
#define __l0rt_vectors(m, f, t) m(f, t##2, t) m(f, t##3, t) m(f, t##4, t) m(f, t##8, t) m(f, t##16, t)
#ifdef cl_khr_fp64
#define __l0rt_double(each, m, f) each(m, f, double)
#else
#define __l0rt_double(each, m, f)
#endif
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define __l0rt_half(each, m, f) each(m, f, half)
#else
#define __l0rt_half(each, m, f)
#endif
#define __l0rt_floats(each, m, f) each(m, f, float) __l0rt_double(each, m, f) __l0rt_half(each, m, f)
#define __l0rt_ints(each, m, f) \
  each(m, f, char) each(m, f, uchar) each(m, f, short) each(m, f, ushort) \
  each(m, f, int) each(m, f, uint) each(m, f, long) each(m, f, ulong)
#define __l0rt_overload __attribute__((overloadable, const))
#define __l0rt_t(f, t, s) t __l0rt_overload f(t);
#define __l0rt_tt(f, t, s) t __l0rt_overload f(t, t);
#define __l0rt_ttt(f, t, s) t __l0rt_overload f(t, t, t);
#define __l0rt_ts(f, t, s) t __l0rt_overload f(t, s);
#define __l0rt_tts(f, t, s) t __l0rt_overload f(t, t, s);
#define __l0rt_tss(f, t, s) t __l0rt_overload f(t, s, s);
#define __l0rt_stt(f, t, s) t __l0rt_overload f(s, t);
#define __l0rt_sst(f, t, s) t __l0rt_overload f(s, s, t);
#define __l0rt_of_t(f, t, s) s __l0rt_overload f(t);
#define __l0rt_of_tt(f, t, s) s __l0rt_overload f(t, t);
/* What OpenCL has under a name, by the number and kind of parameters. */
#define __l0rt_float1(f) __l0rt_floats(__l0rt_widths, __l0rt_t, f)
#define __l0rt_float2(f) __l0rt_floats(__l0rt_widths, __l0rt_tt, f)
#define __l0rt_float3(f) __l0rt_floats(__l0rt_widths, __l0rt_ttt, f)
#define __l0rt_int1(f) __l0rt_ints(__l0rt_widths, __l0rt_t, f)
#define __l0rt_int2(f) __l0rt_ints(__l0rt_widths, __l0rt_tt, f)
#define __l0rt_int3(f) __l0rt_ints(__l0rt_widths, __l0rt_ttt, f)
#define __l0rt_fbound(f) __l0rt_float2(f) __l0rt_floats(__l0rt_vectors, __l0rt_ts, f)
#define __l0rt_bound(f) __l0rt_fbound(f) __l0rt_int2(f) __l0rt_ints(__l0rt_vectors, __l0rt_ts, f)
#define __l0rt_clamp(f) \
  __l0rt_float3(f) __l0rt_floats(__l0rt_vectors, __l0rt_tss, f) __l0rt_int3(f) __l0rt_ints(__l0rt_vectors, __l0rt_tss, f)
#define __l0rt_mix(f) __l0rt_float3(f) __l0rt_floats(__l0rt_vectors, __l0rt_tts, f)
#define __l0rt_step(f) __l0rt_float2(f) __l0rt_floats(__l0rt_vectors, __l0rt_stt, f)
#define __l0rt_smoothstep(f) __l0rt_float3(f) __l0rt_floats(__l0rt_vectors, __l0rt_sst, f)
#define __l0rt_length(f) __l0rt_floats(__l0rt_short, __l0rt_of_t, f)
#define __l0rt_dot(f) __l0rt_floats(__l0rt_short, __l0rt_of_tt, f)
#define __l0rt_normalize(f) __l0rt_floats(__l0rt_short, __l0rt_t, f)
#define __l0rt_cross(f) float3 __l0rt_overload f(float3, float3); float4 __l0rt_overload f(float4, float4);
/* clang-format on */
