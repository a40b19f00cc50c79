// Whole programs as candidates of the benchmark: networks that are mostly pooling, and a chain of empty nodes that
// shows what the graph itself costs. bench/graphs.py loads this library.
#include <cenote/graph.hpp>
#include <memory>

namespace {

using namespace cenote;

// One program with the arrays of its runs.
struct Bench {
  Graph<float> graph;
  std::unique_ptr<Program<float>> program;
  std::unique_ptr<Workspace<float>> workspace;
  Dims in, out;

  void finish(const Handle& x, const Handle& y, int threads) {
    in = graph.dims(x);
    out = graph.dims(y);
    graph.output("y", y);
    program = std::make_unique<Program<float>>(graph, ProgramOptions{.exec = {.threads = threads}});
    workspace = std::make_unique<Workspace<float>>(*program);
  }
};

Handle resnet_pools(Graph<float>& g, const Handle& x) {
  return global_avg_pool(g, max_pool(g, x, {.kernel = {3, 3}, .stride = 2, .padding = 1}), {.last = 2});
}

Handle unet_pools(Graph<float>& g, Handle x) {
  for (int level = 0; level < 4; ++level) x = max_pool(g, x, {.kernel = {2, 2}});
  return x;
}

Handle sppf(Graph<float>& g, const Handle& x) {
  const Sliding windows{.kernel = {5, 5}, .stride = 1, .padding = 2};
  const Handle once = max_pool(g, x, windows);
  const Handle twice = max_pool(g, once, windows);
  return concatenate(g, {x, once, twice, max_pool(g, twice, windows)}, 1);
}

Handle chain(Graph<float>& g, Handle x) {
  for (int i = 0; i < 100; ++i) x = neg(g, x);
  return x;
}

}  // namespace

extern "C" {

// By name: resnet, unet, sppf or chain. Null: there is no such network.
void* cenote_graph_open(const char* name, const std::int64_t* sizes, int rank, int threads) {
  auto bench = std::make_unique<Bench>();
  const Handle x = bench->graph.input("x", Dims(std::span<const Index>(sizes, static_cast<std::size_t>(rank))));
  const std::string_view which(name);
  Handle y;
  if (which == "resnet") y = resnet_pools(bench->graph, x);
  if (which == "unet") y = unet_pools(bench->graph, x);
  if (which == "sppf") y = sppf(bench->graph, x);
  if (which == "chain") y = chain(bench->graph, x);
  if (y == Handle()) return nullptr;
  bench->finish(x, y, threads);
  return bench.release();
}
void cenote_graph_close(void* handle) { std::unique_ptr<Bench>(static_cast<Bench*>(handle)); }

// Forward and backward `times` times; the last gradient goes to gx and the last value to y, unless they are null.
void cenote_graph_run(void* handle, const float* x, const float* gy, float* y, float* gx, int times) {
  Bench& bench = *static_cast<Bench*>(handle);
  const View<const float> input(x, bench.in), seed(gy, bench.out);
  for (int i = 0; i < times; ++i) {
    const auto [values, gradients] = bench.program->value_and_vjp(*bench.workspace, {input}, {seed});
    if (i + 1 < times) continue;
    if (y != nullptr) std::copy_n(values[0].data(), values[0].size(), y);
    if (gx != nullptr) std::copy_n(gradients[0].data(), gradients[0].size(), gx);
  }
}

std::int64_t cenote_graph_peak_bytes(void* handle) {
  return static_cast<std::int64_t>(static_cast<Bench*>(handle)->program->peak_memory().vjp);
}
}
