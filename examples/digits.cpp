// Trains a small convolutional network on handwritten digits, three times: with max, average and smooth max pooling.
// One program, planned once, runs on several threads with a workspace each; pieces of a batch are always the same, and
// their gradients are added in the same order, so the numbers do not depend on how many threads there are.
//
//   digits [--threads N] [--seed N] [--quick]        from the root of the tree; --quick trains for a moment only
#include <cenote/graph.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>

using namespace cenote;

namespace {

// ---- the network, for any scalar --------------------------------------------------------------------------------

enum class Pooling { max, average, smooth_max };
constexpr std::array pooling_names{"max", "average", "smooth max"};

constexpr Index piece = 8;  // images that one run looks at; a batch is several
constexpr Index classes = 10;
using Images = Shape<piece, 1, 8, 8>;
using Labels = Shape<piece, classes>;

// Halves the image.
template <class T, TypedHandle H>
auto halved(Graph<T>& g, Pooling how, const H& x) {
  constexpr Sliding windows{.kernel = {2, 2}};
  switch (how) {
    case Pooling::average: return avg_pool<windows>(g, x);
    case Pooling::smooth_max: return smooth_max_pool<windows>(g, x, {.beta = 4});
    case Pooling::max: break;
  }
  return max_pool<windows>(g, x);
}

// Inputs are the images, the labels and six arrays of parameters, in this order.
template <class T>
std::vector<Handle> add_network(Graph<T>& g, Pooling how) {
  const auto images = g.template input<Images>("images");
  const auto labels = g.template input<Labels>("labels");
  const auto w1 = g.template input<Shape<16, 1, 3, 3>>("w1");
  const auto b1 = g.template input<Shape<16>>("b1");
  const auto w2 = g.template input<Shape<32, 16, 3, 3>>("w2");
  const auto b2 = g.template input<Shape<32>>("b2");
  const auto w3 = g.template input<Shape<classes, 128>>("w3");
  const auto b3 = g.template input<Shape<classes>>("b3");
  constexpr Convolution same_size{.padding = 1};
  const auto first = halved(g, how, relu(g, conv<same_size>(g, images, w1, b1)));  // 16 x 4 x 4
  const auto second = halved(g, how, relu(g, conv<same_size>(g, first, w2, b2)));  // 32 x 2 x 2
  const auto logits = linear(g, flatten(g, second), w3, b3);
  g.output("loss", softmax_cross_entropy(g, logits, labels));
  g.output("logits", logits);
  return {w1, b1, w2, b2, w3, b3};
}

// ---- random numbers that are the same everywhere ----------------------------------------------------------------

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {  // splitmix64
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  double between(double low, double high) { return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53; }
  void shuffle(std::vector<std::size_t>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[bits() % i]);
  }

 private:
  std::uint64_t state_;
};

// Weights for inputs of `fan` numbers each, after He; biases begin at 0.
template <class T>
Tensors<T> first_parameters(const Graph<T>& g, const std::vector<Handle>& parameters, Random& random) {
  Tensors<T> out;
  for (const Handle& parameter : parameters) {
    const Dims& dims = g.dims(parameter);
    Tensor<T>& tensor = out.emplace_back(dims);
    if (dims.rank == 1) continue;
    const Index fan = volume(dims) / dims[0];
    const double reach = std::sqrt(6.0 / static_cast<double>(fan));
    for (T& weight : tensor.data()) weight = static_cast<T>(random.between(-reach, reach));
  }
  return out;
}

// ---- the data ---------------------------------------------------------------------------------------------------

struct Digits {
  std::vector<std::array<float, 64>> images;
  std::vector<int> labels;
};

Digits read_digits(const char* path) {
  Digits out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.size() != 66 || line[0] == '#') continue;
    std::array<float, 64>& image = out.images.emplace_back();
    for (std::size_t i = 0; i < 64; ++i) {
      const char c = line[i + 2];
      image[i] = static_cast<float>(c >= 'a' ? c - 'a' + 10 : c - '0') / 16.0F;
    }
    out.labels.push_back(line[0] - '0');
  }
  return out;
}

// Some of the images as the network takes them.
template <class T>
struct Piece {
  Tensor<T, Images> images;
  Tensor<T, Labels> labels;

  void fill(const Digits& digits, std::span<const std::size_t> which) {
    for (std::size_t n = 0; n < which.size(); ++n) {
      for (std::size_t i = 0; i < 64; ++i) images.data()[n * 64 + i] = static_cast<T>(digits.images[which[n]][i]);
      for (std::size_t c = 0; c < classes; ++c)
        labels.data()[n * classes + c] = static_cast<T>(static_cast<int>(c) == digits.labels[which[n]] ? 1 : 0);
    }
  }
};

// ---- training ---------------------------------------------------------------------------------------------------

// What one thread needs for one piece of a batch.
struct Worker {
  explicit Worker(const Program<float>& program) : workspace(program) {}
  Workspace<float> workspace;
  Piece<float> data;
  Tensors<float> gradients;
  double loss = 0;
  int right = 0;
};

class Trainer {
 public:
  static constexpr std::size_t pieces = 4;  // of a batch: fixed, so that the sums are

  Trainer(Pooling how, std::uint64_t seed, unsigned threads) : threads_(threads), random_(seed) {
    const std::vector<Handle> parameters = add_network(graph_, how);
    program_.emplace(graph_, ProgramOptions{.by = parameters, .exec = {.threads = 1}});
    values_ = first_parameters(graph_, parameters, random_);
    for (const Tensor<float>& value : values_) {
      first_moments_.emplace_back(value.dims());
      second_moments_.emplace_back(value.dims());
    }
    for (std::size_t i = 0; i < pieces; ++i) workers_.emplace_back(*program_);
  }

  // One pass over `which` in random order; the mean loss.
  double epoch(const Digits& digits, std::vector<std::size_t> which, float rate) {
    random_.shuffle(which);
    double loss = 0;
    std::size_t batches = 0;
    constexpr std::size_t size = pieces * static_cast<std::size_t>(piece);
    for (std::size_t at = 0; at + size <= which.size(); at += size, ++batches) {
      each_piece(digits, std::span(which).subspan(at, size), [this](Worker& worker) { learn(worker); });
      step(rate);
      for (const Worker& worker : workers_) loss += worker.loss / static_cast<double>(pieces);
    }
    return loss / static_cast<double>(batches);
  }

  // The part of `which` that the network names rightly.
  double accuracy(const Digits& digits, std::span<const std::size_t> which) {
    constexpr std::size_t size = pieces * static_cast<std::size_t>(piece);
    int right = 0;
    for (std::size_t at = 0; at < which.size(); at += size) {
      each_piece(digits, which.subspan(at, std::min(size, which.size() - at)),
                 [this](Worker& worker) { judge(worker); });
      for (const Worker& worker : workers_) right += worker.right;
    }
    return static_cast<double>(right) / static_cast<double>(which.size());
  }

  [[nodiscard]] const Program<float>& program() const { return *program_; }
  [[nodiscard]] std::uint64_t fingerprint() const {  // of every bit of the parameters
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const Tensor<float>& value : values_)
      for (const float x : value.data()) hash = (hash ^ std::bit_cast<std::uint32_t>(x)) * 0x100000001b3U;
    return hash;
  }

 private:
  // Runs work(worker) for every piece of `which`, on the threads there are.
  template <class F>
  void each_piece(const Digits& digits, std::span<const std::size_t> which, F&& work) {
    const auto run = [&](std::size_t first) {
      for (std::size_t i = first; i < pieces; i += threads_) {
        constexpr auto size = static_cast<std::size_t>(piece);
        const std::size_t begin = std::min(which.size(), i * size), end = std::min(which.size(), begin + size);
        workers_[i].data.fill(digits, which.subspan(begin, end - begin));
        count_[i] = end - begin;
        work(workers_[i]);
      }
    };
    std::vector<std::thread> others;
    for (std::size_t t = 1; t < threads_ && t < pieces; ++t) others.emplace_back(run, t);
    run(0);
    for (std::thread& thread : others) thread.join();
  }

  [[nodiscard]] std::vector<View<const float>> inputs(const Worker& worker) const {
    std::vector<View<const float>> out{worker.data.images.view(), worker.data.labels.view()};
    for (const Tensor<float>& value : values_) out.emplace_back(value.view());
    return out;
  }

  void learn(Worker& worker) const {
    const Tensor<float> one(Dims{}, 1.0F), nothing({piece, classes});
    const std::vector<View<const float>> seeds{one.view(), nothing.view()};
    const auto [values, gradients] = program_->value_and_vjp(worker.workspace, inputs(worker), seeds);
    worker.loss = static_cast<double>(values[0].data()[0]);
    worker.gradients.clear();
    for (const View<const float>& gradient : gradients)
      worker.gradients.emplace_back(gradient.dims(),
                                    std::vector<float>(gradient.data(), gradient.data() + gradient.size()));
  }

  void judge(Worker& worker) const {
    const View<const float> logits = program_->evaluate(worker.workspace, inputs(worker))[1];
    worker.right = 0;
    const std::size_t images = count_[static_cast<std::size_t>(&worker - workers_.data())];
    for (std::size_t n = 0; n < images; ++n) {
      const float* row = logits.data() + n * classes;
      const auto best = static_cast<std::size_t>(std::max_element(row, row + classes) - row);
      if (worker.data.labels.data()[n * classes + best] == 1.0F) ++worker.right;
    }
  }

  // Adam, on the mean of the pieces' gradients, added in the order of the pieces.
  void step(float rate) {
    ++steps_;
    const float correct1 = 1 - std::pow(0.9F, static_cast<float>(steps_));
    const float correct2 = 1 - std::pow(0.999F, static_cast<float>(steps_));
    for (std::size_t k = 0; k < values_.size(); ++k)
      for (std::size_t i = 0; i < values_[k].data().size(); ++i) {
        float gradient = 0;
        for (const Worker& worker : workers_) gradient += worker.gradients[k].data()[i] / static_cast<float>(pieces);
        float& m = first_moments_[k].data()[i];
        float& v = second_moments_[k].data()[i];
        m += 0.1F * (gradient - m);
        v += 0.001F * (gradient * gradient - v);
        values_[k].data()[i] -= rate * (m / correct1) / (std::sqrt(v / correct2) + 1e-8F);
      }
  }

  std::size_t threads_;
  Random random_;
  Graph<float> graph_;
  std::optional<Program<float>> program_;
  Tensors<float> values_, first_moments_, second_moments_;
  std::vector<Worker> workers_;
  std::array<std::size_t, pieces> count_{};
  int steps_ = 0;
};

// ---- gradients against finite differences -----------------------------------------------------------------------

// The same network in f64 on a few images: for each array of parameters, the derivative in a random direction from the
// VJP and from the difference of two losses. Returns the largest relative difference.
double check_gradients(const Digits& digits, Pooling how, std::uint64_t seed) {
  Random random(seed);
  Graph<double> g;
  const std::vector<Handle> parameters = add_network(g, how);
  const Program<double> program(g, {.by = parameters});
  Workspace<double> workspace(program);
  Tensors<double> values = first_parameters(g, parameters, random);
  for (Tensor<double>& value : values)  // biases of 0 would stand on the corner of relu wherever an image is white
    for (double& x : value.data()) x += random.between(-0.1, 0.1);
  Piece<double> data;
  std::vector<std::size_t> first(static_cast<std::size_t>(piece));
  std::iota(first.begin(), first.end(), std::size_t{0});
  data.fill(digits, first);
  const auto inputs = [&] {
    std::vector<View<const double>> out{data.images.view(), data.labels.view()};
    for (const Tensor<double>& value : values) out.emplace_back(value.view());
    return out;
  };
  const Tensor<double> one(Dims{}, 1.0), nothing({piece, classes});
  const auto gradients = detail::owned<double>(
      program.vjp(workspace, inputs(), std::vector<View<const double>>{one.view(), nothing.view()}));
  double worst = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    Tensor<double> direction(values[k].dims());
    double derivative = 0;
    for (std::size_t i = 0; i < direction.data().size(); ++i) {
      direction.data()[i] = random.between(-1, 1);
      derivative += direction.data()[i] * gradients[k].data()[i];
    }
    const auto loss_at = [&](double h) {
      const Tensor<double> before = values[k];
      for (std::size_t i = 0; i < direction.data().size(); ++i) values[k].data()[i] += h * direction.data()[i];
      const double loss = program.evaluate(workspace, inputs())[0].data()[0];
      values[k] = before;
      return loss;
    };
    constexpr double h = 1e-6;
    const double difference = (loss_at(h) - loss_at(-h)) / (2 * h);
    const double apart = std::abs(derivative - difference) / std::max(1e-3, std::abs(difference));
    worst = std::max(worst, apart);
    std::printf("  %-10s  %-2s  %14.9f  %14.9f  %8.1e\n", pooling_names[static_cast<std::size_t>(how)],
                g.record(parameters[k].index()).node.name.c_str(), derivative, difference, apart);
  }
  return worst;
}

struct Result {
  double held_out, training, seconds, loss;
  std::uint64_t fingerprint;
  std::size_t bytes;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  std::uint64_t seed = 1;
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--quick") quick = true;
    if (option == "--threads" && i + 1 < argc) threads = std::max(1U, static_cast<unsigned>(std::atoi(argv[i + 1])));
    if (option == "--seed" && i + 1 < argc) seed = static_cast<std::uint64_t>(std::atoll(argv[i + 1]));
  }
  const Digits digits = read_digits("examples/data/digits.txt");
  if (digits.images.size() != 1797) {
    std::printf("examples/data/digits.txt has %zu images; run this from the root of the tree\n", digits.images.size());
    return 2;
  }
  std::vector<std::size_t> order(digits.images.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random(seed).shuffle(order);
  const std::size_t held_out = order.size() / 5;
  const std::span<const std::size_t> test = std::span(order).first(held_out);
  std::vector<std::size_t> training(order.begin() + static_cast<std::ptrdiff_t>(held_out), order.end());
  if (quick) training.resize(96);

  std::printf(
      "Gradients of the network against finite differences, in f64:\n"
      "  pooling     of        VJP             difference   relative\n");
  double worst = 0;
  for (const Pooling how : {Pooling::max, Pooling::average, Pooling::smooth_max})
    worst = std::max(worst, check_gradients(digits, how, seed));

  const int epochs = quick ? 1 : 40;
  std::printf("\nTraining on %zu images, %zu held out, %u threads, seed %llu\n", training.size(), test.size(), threads,
              static_cast<unsigned long long>(seed));
  std::vector<Result> results;
  for (const Pooling how : {Pooling::max, Pooling::average, Pooling::smooth_max}) {
    Trainer trainer(how, seed, threads);
    Result result{};
    const auto start = std::chrono::steady_clock::now();
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      const float rate = 0.006F * (1 - static_cast<float>(epoch - 1) / static_cast<float>(epochs));
      result.loss = trainer.epoch(digits, training, rate);
      result.held_out = trainer.accuracy(digits, test);
      std::printf("  %-10s  epoch %2d of %d   loss %.4f   held out %5.1f %%   %.1f s\n",
                  pooling_names[static_cast<std::size_t>(how)], epoch, epochs, result.loss, 100 * result.held_out,
                  seconds_since(start));
      std::fflush(stdout);
    }
    result.seconds = seconds_since(start);
    result.training = trainer.accuracy(digits, training);
    result.fingerprint = trainer.fingerprint();
    result.bytes = trainer.program().peak_memory().vjp;
    results.push_back(result);
  }

  std::printf("\n  pooling     held out  training    loss   seconds  memory of a run  fingerprint of the parameters\n");
  bool good = true;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    std::printf("  %-10s   %5.1f %%   %5.1f %%  %.4f    %5.1f      %6zu bytes   %016llx\n", pooling_names[i],
                100 * r.held_out, 100 * r.training, r.loss, r.seconds, r.bytes,
                static_cast<unsigned long long>(r.fingerprint));
    good = good && (quick || r.held_out >= 0.97);
  }
  std::printf("  largest relative difference of a gradient: %.1e\n", worst);
  if (worst > 1e-5) std::printf("The gradients are wrong.\n");
  if (!good) std::printf("A variant stays below 97 %%.\n");
  return good && worst <= 1e-5 ? 0 : 1;
}
