// oneDNN as a candidate of the benchmark: inference and training primitives, in the problem's layout or, for
// comparison, in oneDNN's own blocked one.
#include <oneapi/dnnl/dnnl.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "job.hpp"

namespace bench {
namespace {

void expect(dnnl_status_t status, const char* step) {
  if (status == dnnl_unimplemented) throw std::runtime_error("oneDNN does not offer this pooling");
  if (status != dnnl_success)
    throw std::runtime_error(std::string("oneDNN: ") + step + " gives status " + std::to_string(status));
}

struct Engine {
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
  Engine() {
    expect(dnnl_engine_create(&engine, dnnl_cpu, 0), "engine");
    expect(dnnl_stream_create(&stream, engine, dnnl_stream_in_order), "stream");
  }
  static Engine& the() {
    static Engine one;
    return one;
  }
};

dnnl_data_type_t type_of(Type type) {
  switch (type) {
    case Type::f32: return dnnl_f32;
    case Type::f64: return dnnl_f64;
    case Type::f16: return dnnl_f16;
    case Type::bf16: return dnnl_bf16;
    case Type::u8: return dnnl_u8;
    case Type::i8: return dnnl_s8;
    default: throw std::runtime_error("oneDNN does not pool this type");
  }
}

// Owns descriptors and memories until the job ends.
struct Pooling final : Job {
  Engine& on = Engine::the();
  const bool blocked = std::getenv("CENOTE_BENCH_BLOCKED") != nullptr;
  std::vector<dnnl_memory_desc_t> descriptors;
  std::vector<dnnl_primitive_desc_t> primitive_descriptors;
  std::vector<dnnl_memory_t> memories;
  std::vector<dnnl_primitive_t> primitives;
  std::vector<dnnl_exec_arg_t> arguments;
  dnnl_primitive_t timed = nullptr;

  // The problem's array: logical order batch, channels, space, whatever the memory order.
  dnnl_memory_desc_t descriptor(const Problem& p, const std::int64_t* sizes) {
    std::array<dnnl_dim_t, rank_limit> dims{}, strides{};
    const int rank = p.rank;
    std::array<int, rank_limit> where{};  // logical axis -> memory axis
    for (int a = 0; a < rank; ++a) where[static_cast<std::size_t>(a)] = a;
    if (p.channels_last != 0) {
      where[1] = rank - 1;
      for (int a = 2; a < rank; ++a) where[static_cast<std::size_t>(a)] = a - 1;
    }
    for (int a = 0; a < rank; ++a) {
      const auto at = static_cast<std::size_t>(a);
      dims[at] = sizes[where[at]];
      strides[at] = 1;
      for (int b = where[at] + 1; b < rank; ++b) strides[at] *= sizes[b];
    }
    dnnl_memory_desc_t out = nullptr;
    if (blocked) {
      const dnnl_format_tag_t tag = rank == 3 ? dnnl_nCw16c : (rank == 4 ? dnnl_nChw16c : dnnl_nCdhw16c);
      expect(dnnl_memory_desc_create_with_tag(&out, rank, dims.data(), type_of(p.type), tag), "layout");
    } else {
      expect(dnnl_memory_desc_create_with_strides(&out, rank, dims.data(), type_of(p.type), strides.data()), "layout");
    }
    descriptors.push_back(out);
    return out;
  }
  dnnl_memory_t memory(const_dnnl_memory_desc_t md, void* data) {
    dnnl_memory_t out = nullptr;
    expect(dnnl_memory_create(&out, md, on.engine, data), "memory");
    memories.push_back(out);
    return out;
  }
  dnnl_primitive_t primitive(dnnl_primitive_desc_t pd) {
    dnnl_primitive_t out = nullptr;
    expect(dnnl_primitive_create(&out, pd), "primitive");
    primitives.push_back(out);
    return out;
  }

  explicit Pooling(const Problem& p) {
    if (p.windows == Windows::adaptive) throw std::runtime_error("oneDNN has no adaptive windows");
    if (p.op == Operator::smooth_max) throw std::runtime_error("oneDNN has no smooth maximum");
    if (p.verb == Verb::jvp) throw std::runtime_error("oneDNN has no forward mode");
    const bool plain = p.verb == Verb::forward;
    if (!plain && p.verb != Verb::vjp && p.verb != Verb::winners) throw std::runtime_error("oneDNN has no such verb");
    if (p.verb == Verb::winners && p.op != Operator::max) throw std::runtime_error("the operator has no winners");
    const dnnl_alg_kind_t kind = p.op == Operator::max       ? dnnl_pooling_max
                                 : p.op == Operator::average ? dnnl_pooling_avg_include_padding
                                                             : dnnl_pooling_avg_exclude_padding;
    std::array<dnnl_dim_t, rank_limit> dilation{}, high{};
    for (int i = 0; i < p.pooled; ++i) {
      const auto at = static_cast<std::size_t>(i);
      dilation[at] = p.dilation[i] - 1;
      // Exactly as much padding as the last window needs: a negative number leaves cells uncovered.
      const std::int64_t size = p.in[i + (p.channels_last != 0 ? 1 : 2)];
      const std::int64_t count = p.out[i + (p.channels_last != 0 ? 1 : 2)];
      high[at] = (count - 1) * p.stride[i] + (p.kernel[i] - 1) * p.dilation[i] + 1 - size - p.pad_low[i];
    }
    const dnnl_memory_desc_t source = descriptor(p, p.in);
    const dnnl_memory_desc_t result = descriptor(p, p.out);
    dnnl_primitive_desc_t forward = nullptr;
    expect(dnnl_pooling_forward_primitive_desc_create(
               &forward, on.engine, plain ? dnnl_forward_inference : dnnl_forward_training, kind, source, result,
               p.stride, p.kernel, dilation.data(), p.pad_low, high.data(), nullptr),
           "forward");
    primitive_descriptors.push_back(forward);
    void* x = data(source, p.x);
    void* y = data(result, p.y);
    arguments = {{DNNL_ARG_SRC, memory(source, x)}, {DNNL_ARG_DST, memory(result, y)}};
    dnnl_memory_t workspace = nullptr;
    if (!plain && p.op == Operator::max) {
      const_dnnl_memory_desc_t kept = dnnl_primitive_desc_query_md(forward, dnnl_query_workspace_md, 0);
      kept_bytes_ = static_cast<std::int64_t>(dnnl_memory_desc_get_size(kept));
      workspace = memory(kept, DNNL_MEMORY_ALLOCATE);
      arguments.push_back({DNNL_ARG_WORKSPACE, workspace});
    }
    timed = primitive(forward);
    if (p.verb != Verb::vjp) return;
    run();
    dnnl_primitive_desc_t backward = nullptr;
    expect(dnnl_pooling_backward_primitive_desc_create(&backward, on.engine, kind, source, result, p.stride, p.kernel,
                                                       dilation.data(), p.pad_low, high.data(), forward, nullptr),
           "backward");
    primitive_descriptors.push_back(backward);
    arguments = {{DNNL_ARG_DIFF_DST, memory(result, data(result, p.gy))},
                 {DNNL_ARG_DIFF_SRC, memory(source, data(source, p.gx))}};
    if (workspace != nullptr) arguments.push_back({DNNL_ARG_WORKSPACE, workspace});
    timed = primitive(backward);
  }
  ~Pooling() override {
    for (dnnl_primitive_t each : primitives) dnnl_primitive_destroy(each);
    for (dnnl_memory_t each : memories) dnnl_memory_destroy(each);
    for (dnnl_primitive_desc_t each : primitive_descriptors) dnnl_primitive_desc_destroy(each);
    for (dnnl_memory_desc_t each : descriptors) dnnl_memory_desc_destroy(each);
  }
  void submit() {
    expect(dnnl_primitive_execute(timed, on.stream, static_cast<int>(arguments.size()), arguments.data()), "execute");
  }
  void run() override {
    submit();
    expect(dnnl_stream_wait(on.stream), "wait");
  }
  // Short calls are queued one behind the other and waited for once: waiting costs several microseconds.
  double seconds(long calls) override {
    const auto start = std::chrono::steady_clock::now();
    for (long i = 0; i < calls; ++i) submit();
    expect(dnnl_stream_wait(on.stream), "wait");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  [[nodiscard]] std::int64_t bytes_kept() const override { return kept_bytes_; }

 private:
  // Blocked arrays are larger where the channels are no multiple of the block, and their contents are not compared.
  void* data(const_dnnl_memory_desc_t md, void* given) {
    if (!blocked) return given;
    own_.emplace_back(dnnl_memory_desc_get_size(md) / sizeof(float) + 16, 1.0F);
    return own_.back().data();
  }
  std::vector<std::vector<float>> own_;
  std::int64_t kept_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Job> make_job(const Problem& p) { return std::make_unique<Pooling>(p); }

std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

}  // namespace bench

CENOTE_BENCH_EXPORTS
