// XNNPACK as a candidate of the benchmark. It is found at run time in the library that CENOTE_BENCH_XNNPACK names, so
// nothing of it is needed to build; the few functions used are declared here as XNNPACK's header has them since 2025.
#include <dlfcn.h>

#include <cstdlib>
#include <limits>

#include "job.hpp"

namespace bench {
namespace {

using Handle = struct xnn_operator*;
using Pool = struct pthreadpool*;
using Dimension = std::uint32_t;

template <class F>
F* symbol(const char* name) {
  static void* const library = [] {
    const char* path = std::getenv("CENOTE_BENCH_XNNPACK");
    return path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }();
  if (library == nullptr) throw std::runtime_error("XNNPACK is not there: CENOTE_BENCH_XNNPACK names no library");
  void* found = dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(std::string("XNNPACK has no ") + name);
  return reinterpret_cast<F*>(found);
}

// Padding is top, right, bottom, left; then window, stride, dilation, clamp, flags.
template <class T>
using CreateMax = int(Dimension, Dimension, Dimension, Dimension, Dimension, Dimension, Dimension, Dimension, Dimension,
                      Dimension, T, T, Dimension, Handle*);
using CreateAverage = int(Dimension, Dimension, Dimension, Dimension, Dimension, Dimension, Dimension, Dimension, float,
                          float, Dimension, Handle*);
using Reshape = int(Handle, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t*,
                    std::size_t*, Pool);
using Setup = int(Handle, const void*, void*);
using Run = int(Handle, Pool);

void expect(int status, const char* step) {
  if (status != 0)
    throw std::runtime_error(std::string("XNNPACK: ") + step + " gives status " + std::to_string(status));
}

struct Pooling final : Job {
  Handle handle = nullptr;
  Pool pool = nullptr;
  Run* run_operator = symbol<Run>("xnn_run_operator");

  template <class T>
  void create_max(const Problem& p, const char* name, T lowest, T largest) {
    const auto [top, right, bottom, left, height, width] = window(p);
    expect(symbol<CreateMax<T>>(name)(top, right, bottom, left, height, width, number(p.stride[0]), number(p.stride[1]),
                                      number(p.dilation[0]), number(p.dilation[1]), lowest, largest, 0, &handle),
           "create");
  }
  void create_average(const Problem& p, const char* name) {
    const auto [top, right, bottom, left, height, width] = window(p);
    constexpr float all = std::numeric_limits<float>::infinity();
    expect(symbol<CreateAverage>(name)(top, right, bottom, left, height, width, number(p.stride[0]),
                                       number(p.stride[1]), -all, all, 0, &handle),
           "create");
  }

  explicit Pooling(const Problem& p) {
    constexpr float all = std::numeric_limits<float>::infinity();
    expect(symbol<int(const void*)>("xnn_initialize")(nullptr), "initialize");
    const bool largest = p.op == Operator::max;
    std::string name = largest ? "max" : "average";
    switch (p.type) {
      case Type::f32: name += "_pooling2d_nhwc_f32"; break;
      case Type::f16: name += "_pooling2d_nhwc_f16"; break;
      case Type::u8: name += "_pooling2d_nhwc_u8"; break;
      case Type::i8: name += "_pooling2d_nhwc_s8"; break;
      default: throw std::runtime_error("XNNPACK does not pool this type");
    }
    const std::string create = "xnn_create_" + name;
    if (!largest)
      create_average(p, create.c_str());
    else if (p.type == Type::u8)
      create_max<std::uint8_t>(p, create.c_str(), 0, 255);
    else if (p.type == Type::i8)
      create_max<std::int8_t>(p, create.c_str(), -128, 127);
    else
      create_max<float>(p, create.c_str(), -all, all);
    if (p.threads > 1) pool = symbol<Pool(std::size_t)>("pthreadpool_create")(static_cast<std::size_t>(p.threads));
    const bool last = p.channels_last != 0;
    const auto channels = static_cast<std::size_t>(p.in[last ? 3 : 1]);
    std::size_t height = 0, width = 0;
    expect(symbol<Reshape>(("xnn_reshape_" + name).c_str())(
               handle, static_cast<std::size_t>(p.in[0]), static_cast<std::size_t>(p.in[last ? 1 : 2]),
               static_cast<std::size_t>(p.in[last ? 2 : 3]), channels, channels, channels, &height, &width, pool),
           "reshape");
    if (height != static_cast<std::size_t>(p.out[last ? 1 : 2]) ||
        width != static_cast<std::size_t>(p.out[last ? 2 : 3]))
      throw std::runtime_error("XNNPACK gives another output size");
    expect(symbol<Setup>(("xnn_setup_" + name).c_str())(handle, p.x, p.y), "setup");
  }
  ~Pooling() override {
    if (handle != nullptr) symbol<int(Handle)>("xnn_delete_operator")(handle);
    if (pool != nullptr) symbol<void(Pool)>("pthreadpool_destroy")(pool);
  }
  void run() override { expect(run_operator(handle, pool), "run"); }

 private:
  struct Window {
    Dimension top, right, bottom, left, height, width;
  };
  static Dimension number(std::int64_t n) { return static_cast<Dimension>(n); }
  static Window window(const Problem& p) {
    return {number(p.pad_low[0]), number(p.pad_high[1]), number(p.pad_high[0]),
            number(p.pad_low[1]), number(p.kernel[0]),   number(p.kernel[1])};
  }
};

}  // namespace

std::unique_ptr<Job> make_job(const Problem& p) {
  if (p.verb != Verb::forward) throw std::runtime_error("XNNPACK has no derivatives and no winners like these");
  if (p.pooled != 2) throw std::runtime_error("XNNPACK pools two axes");
  if (p.windows == Windows::adaptive) throw std::runtime_error("XNNPACK has no adaptive windows");
  if (p.channels_last == 0 && p.in[1] != 1) throw std::runtime_error("XNNPACK wants channels last");
  if (p.op == Operator::smooth_max) throw std::runtime_error("XNNPACK has no smooth maximum");
  bool padded = false;
  for (int i = 0; i < p.pooled; ++i) padded = padded || p.pad_low[i] > 0 || p.pad_high[i] > 0;
  if (p.op == Operator::average && padded)
    throw std::runtime_error("XNNPACK's average leaves padding out of the count");
  if (p.op != Operator::max && (p.dilation[0] != 1 || p.dilation[1] != 1))
    throw std::runtime_error("XNNPACK's average has no dilation");
  return std::make_unique<Pooling>(p);
}

std::string version() { return ""; }

}  // namespace bench

CENOTE_BENCH_EXPORTS
