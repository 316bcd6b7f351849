// SPDX-License-Identifier: Apache-2.0
// Kernels that not every device can run, and one that each can.
kernel void plain(global int *to, int value) { to[get_global_id(0)] = value; }

kernel void blur(global float4 *to, read_only image2d_t picture, sampler_t how) {
  int at = get_global_id(0);
  to[at] = read_imagef(picture, how, (int2)(at, 0));
}

kernel void size(global int *to) {
  to[0] = 1;
  to[1] = get_enqueued_local_size(0) == 0;
}

kernel void drain(global int *to, read_only pipe int from) {
  int packet = 0;
  if (read_pipe(from, &packet) == 0) to[get_global_id(0)] = packet;
}

kernel void spread(global int *to, int value) {
  queue_t queue = get_default_queue();
  enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(4), ^{ to[get_global_id(0)] = value; });
}

kernel void onto(global int *to, queue_t queue) {
  clk_event_t event;
  to[0] = enqueue_marker(queue, 0, (clk_event_t *)0, &event);
  release_event(event);
}
