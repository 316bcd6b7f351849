/* SPDX-License-Identifier: Apache-2.0 */
// graph.cpp: torch.accelerator.Graph over l0rt's graphs.
#include <ATen/core/GraphImplInterface.h>

#include "device.h"

namespace l0rt_torch {
namespace {

const char *mode_named(at::GraphCaptureMode mode) {
  switch (mode) {
    case at::GraphCaptureMode::Global: return "global";
    case at::GraphCaptureMode::ThreadLocal: return "thread_local";
    case at::GraphCaptureMode::Relaxed: return "relaxed";
    default: return "default";
  }
}

struct Graph final : at::GraphImplInterface {
  explicit Graph(const at::GraphImplArgs &args)
      : graph_(ok(api->graph_create_with(args.keep_graph ? L0RT_GRAPH_KEEP : 0))) {}
  ~Graph() override {
    if (api->graph_release(graph_) < 0) forget();
  }

  void capture_begin(c10::MempoolId_t id, at::GraphCaptureMode mode) override {
    l0rt_pool *pool = nullptr;
    if (id.first != 0 || id.second != 0) {
      const uint64_t words[2] = {id.first, id.second};
      pool = ok(api->pool_find(words));
    }
    int status = api->graph_begin_with(graph_, pool, mode_named(mode));
    if (api->pool_release(pool) < 0 || status < 0) fail();
  }
  void capture_end() override { ok(api->graph_end(graph_)); }
  void instantiate() override { ok(api->graph_instantiate(graph_)); }
  void replay() override { ok(api->graph_replay(graph_)); }
  void reset() override { ok(api->graph_reset(graph_)); }
  c10::MempoolId_t pool() const override {
    l0rt_pool *pool = ok(api->graph_pool(graph_));
    uint64_t id[2] = {0, 0};
    int status = api->pool_id(pool, id);
    if (api->pool_release(pool) < 0 || status < 0) fail();
    return {id[0], id[1]};
  }
  void enable_debug_mode() override {}  // a graph is described without it
  void debug_dump(const std::string &path) override { ok(api->graph_dump(graph_, path.c_str())); }

 private:
  l0rt_graph *graph_;
};

} // namespace
} // namespace l0rt_torch

// torch asks for the name that the device type has after rename_privateuse1_backend(), in capital letters.
namespace at {
C10_REGISTER_CLASS(GraphImplRegistry, LZRT, l0rt_torch::Graph)
} // namespace at
