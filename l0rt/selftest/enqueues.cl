// SPDX-License-Identifier: Apache-2.0
// A kernel that enqueues another, which Intel's compiler does not support.
kernel void spread(global int *to, int value) {
  queue_t queue = get_default_queue();
  enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(4), ^{ to[get_global_id(0)] = value; });
}
