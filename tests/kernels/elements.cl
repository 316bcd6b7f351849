/* SPDX-License-Identifier: Apache-2.0 */
/* elements.cl: a kernel for each kind of vector and structure, which writes it as it came. */
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

typedef struct {
  int first;
  long second;
} pair;

typedef struct {
  pair pair;
  float2 scale;
  uchar kind;
} nested;

typedef struct __attribute__((packed)) {
  char first;
  float second;
} packed;

kernel void float4s(global float4 *out, float4 v) { out[0] = v; }
kernel void float3s(global float *out, float3 v) { vstore3(v, 0, out); }
kernel void short8s(global short8 *out, short8 v) { out[0] = v; }
kernel void half2s(global half2 *out, half2 v) { out[0] = v; }
kernel void double2s(global double2 *out, double2 v) { out[0] = v; }
kernel void pairs(global pair *out, pair v) { out[0].first = v.first, out[0].second = v.second; }
kernel void nesteds(global nested *out, nested v) { out[0].pair.first = v.pair.first, out[0].kind = v.kind; }
kernel void packeds(global packed *out, packed v) { out[0].first = v.first, out[0].second = v.second; }
