// `cenote grad`: what a small change of the input does to the output (JVP), what the output asks of the input (VJP),
// and who won.
#include <algorithm>
#include <limits>
#include <new>

#include "arguments.hpp"
#include "buffer.hpp"
#include "cenote/run.hpp"
#include "files/open.hpp"
#include "parts.hpp"

namespace cenote::cli {

namespace {

// An array that comes slice by slice: axes that are not pooled, outermost in storage, may be cut, and then a slice is
// one piece of the file.
class Slices {
 public:
  Slices(const std::string& path, std::optional<Element> dtype)
      : name_(path == "-" ? "standard input" : path),
        source_(open_source(path, {.raw_pairs_are_bf16 = dtype == Element::bf16})) {
    if (header().format != Format::npy)  // a small picture may unfold into a slice of any size
      throw FileError(name_ + ": is a picture; derivatives are of NPY files (cenote pool makes one, with -k 1)");
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Header& header() const { return source_->header(); }

  // The next slice, which has these sizes.
  template <class T>
  View<const T> next(const Dims& dims) {
    const Index elements = volume(dims);
    const Index bytes = elements * size_of(header().type);
    const std::byte* data = source_->in_place();
    if (data != nullptr) {
      source_->release(0, at_);
      data += at_;
    } else {
      std::byte* to = room(bytes);
      source_->read(to, elements);
      data = to;
    }
    at_ += bytes;
    return {reinterpret_cast<const T*>(data), dims, strides_of(dims, header().fortran)};
  }

 private:
  // Pages of it are taken as they are read, so that an announcement alone costs nothing.
  std::byte* room(Index bytes) {
    try {
      return buffer_.at_least(bytes);
    } catch (const std::bad_alloc&) {
      throw FileError(name_ + ": a slice takes " + bytes_in_words(bytes) + ", which is more memory than there is");
    }
  }

  std::string name_;
  std::unique_ptr<Source> source_;
  Buffer buffer_;
  Index at_ = 0;  // bytes that were given out
};

void check_type(const Slices& array, const Slices& input) {
  if (array.header().type == input.header().type) return;
  throw FileError(array.name() + ": holds " + std::string(name_of(array.header().type)) + ", and " + input.name() +
                  " holds " + std::string(name_of(input.header().type)) + "; both must be the same");
}

Header header_of(Element type, const Dims& dims, bool fortran) {
  Header out;
  out.type = type;
  out.dims = dims;
  out.fortran = fortran && dims.rank > 1;
  return out;
}

// A result in the storage order of the input.
template <class T>
struct Stored {
  Stored(const Dims& dims, bool fortran)
      : data(static_cast<std::size_t>(volume(dims))), view(data.data(), dims, strides_of(dims, fortran)) {}
  void write(Sink& sink) const {
    sink.write(reinterpret_cast<const std::byte*>(data.data()), static_cast<Index>(data.size()));
  }
  std::vector<T> data;
  View<T> view;
};

// Everything that is read and written. Files all appear, or none.
struct Files {
  Files(const GradArguments& a, const Operator& op) : input(a.input, a.dtype) {
    const Header& x = input.header();
    if (is_integer(x.type))
      throw FileError(input.name() + ": holds " + std::string(name_of(x.type)) +
                      "; derivatives are of f64, f32, f16 and bf16");
    Header described = x;
    if (a.windows.channels_last && x.dims.rank > 0) described.channels = true;
    const Geometry pooling = make_geometry(a.windows, described, input.name());
    g = with_axes_kept(pooling);
    const bool pushes = !a.jvp.empty();
    if (pushes || !a.vjp.empty()) {
      other.emplace(pushes ? a.jvp : a.vjp, a.dtype);
      check_type(*other, input);
      spec::detail::check_shape(other->name(), pushes ? "dx" : "gy", other->header().dims,
                                pushes ? pooling.in() : pooling.out());
    }
    winner = width_of(Winners::bytes_each(g));
    plan(a, op);
    const auto sink = [&](const std::string& path, Element type, const Dims& dims) {
      return path.empty() ? nullptr : open_sink(path, Format::npy, header_of(type, dims, x.fortran));
    };
    derivative = sink(a.output, x.type, pushes ? pooling.out() : pooling.in());
    value = sink(a.value, x.type, pooling.out());
    winners = sink(a.winners, a.flat_winners ? Element::i64 : winner, pooling.out());
  }
  void finish() const {
    for (const auto* sink : {&derivative, &value, &winners})
      if (*sink) (*sink)->finish();
  }

  Slices input;
  std::optional<Slices> other;  // a tangent or a gradient
  Geometry g;
  Element winner{};  // the type of winners inside a window
  Cut cut;
  std::unique_ptr<Sink> derivative, value, winners;

 private:
  static Element width_of(int bytes) {
    return bytes == 1 ? Element::u8 : bytes == 2 ? Element::u16 : bytes == 4 ? Element::u32 : Element::u64;
  }

  // Gradients do not mix along axes that are not pooled: slices along them are cut to fit.
  void plan(const GradArguments& a, const Operator& op) {
    constexpr Index comfortable = Index{64} << 20;
    const bool fortran = input.header().fortran;
    const Index size = size_of(input.header().type);
    const Index memory = a.memory ? *a.memory / 2 : comfortable;  // buffers are not all there is
    const double per_input = static_cast<double>(size * (other ? 2 : 1));
    const double per_output = static_cast<double>(size * 2 + (op.index() < 2 && !a.winners.empty() ? 16 : 0));
    const bool may_cut = g.rank() > 1 && (!other || other->header().fortran == fortran);
    double in = per_input * static_cast<double>(volume(g.in()));
    double out = per_output * static_cast<double>(volume(g.out_kept()));
    cut = {0, g.rank() > 0 ? std::max<Index>(1, g.axis(axis_at(g, 0, fortran)).out) : 1, 0};
    double bytes = in + out;
    for (int level = 0; may_cut && level < g.rank() && bytes > static_cast<double>(memory); ++level) {
      const Axis& axis = g.axis(axis_at(g, level, fortran));
      if (axis.pooled() || axis.out == 0) break;
      in /= static_cast<double>(axis.in);
      out /= static_cast<double>(axis.out);
      cut = {level, std::clamp<Index>(static_cast<Index>(static_cast<double>(memory) / (in + out)), 1, axis.out), 0};
      bytes = (in + out) * static_cast<double>(cut.step);
    }
    if (a.memory && bytes > static_cast<double>(memory))
      throw FileError(input.name() + ": the arrays of one slice along the axes that are not pooled take " +
                      bytes_in_words(static_cast<Index>(std::min(bytes, 9e18))) + ", and --memory " +
                      bytes_in_words(*a.memory) + " leaves " + bytes_in_words(memory) + " for them");
  }
};

// Winners come in rows; a file has the storage order of the input.
void write_winners(Sink& sink, Element type, const void* rows, const Dims& dims, bool fortran) {
  with_element(type, [&]<class U>() {
    const View<const U> from(static_cast<const U*>(rows), dims);
    Stored<U> stored(dims, fortran);
    copy_elements(from, stored.view);
    stored.write(sink);
  });
}

template <class T, class Op>
void run(const GradArguments& a, const Op& op, Files& files, const Execution& exec) {
  const bool fortran = files.input.header().fortran;
  for_each_part(files.g, files.cut, fortran, [&](const Part& part) {
    const Geometry& g = part.geometry;
    const View<const T> x = files.input.next<T>(g.in());
    if (!a.jvp.empty()) {
      Stored<T> dy(g.out(), fortran);
      jvp<T>(op, g, x, files.other->next<T>(g.in()), dy.view, exec, "grad");
      dy.write(*files.derivative);
    }
    if (!a.vjp.empty()) {
      const View<const T> gy = files.other->next<T>(g.out());
      Stored<T> gx(g.in(), fortran);
      vjp<T>(op, g, x, gy, gx.view, exec, "grad");
      gx.write(*files.derivative);
    }
    if (files.value) {
      Stored<T> y(g.out(), fortran);
      forward<T>(op, g, x, y.view, exec, "grad");
      y.write(*files.value);
    }
    if constexpr (Selecting<Op>) {
      if (!files.winners) return;
      const Winners won = winners<T>(op, g, x, exec, "grad");
      if (a.flat_winners)
        write_winners(*files.winners, Element::i64, spec::flat_indices(g, won).data().data(), g.out(), fortran);
      else
        write_winners(*files.winners, files.winner, won.bytes().data(), g.out(), fortran);
    }
  });
  files.finish();
}

// A stream gives its bytes once, and a file holds one array.
void check_names(const GradArguments& a) {
  const std::string& other = a.jvp.empty() ? a.vjp : a.jvp;
  if (a.input == "-" && other == "-")
    throw UsageError("INPUT and " + std::string(a.jvp.empty() ? "--vjp" : "--jvp") +
                     " are both the standard input; one of them is legal");
  const std::array<std::pair<const char*, const std::string*>, 3> outputs{
      {{"--output", &a.output}, {"--value", &a.value}, {"--winners", &a.winners}}};
  for (std::size_t i = 0; i < outputs.size(); ++i)
    for (std::size_t j = i + 1; j < outputs.size(); ++j)
      if (!outputs[i].second->empty() && *outputs[i].second == *outputs[j].second)
        throw UsageError(std::string(outputs[i].first) + " and " + outputs[j].first + " are both '" +
                         *outputs[i].second + "'; two files are legal");
}

}  // namespace

int grad(const GradArguments& a) {
  const Operator op = make_operator(a.op, a.windows.global);
  if (!a.jvp.empty() && !a.vjp.empty()) throw UsageError("--jvp and --vjp are two questions; ask one at a time");
  const bool derivative = !a.jvp.empty() || !a.vjp.empty();
  if (derivative && a.output.empty()) throw UsageError("--output is missing: say where the derivative goes");
  if (!derivative && !a.output.empty()) throw UsageError("--output needs --jvp or --vjp, which say what goes there");
  if (!derivative && a.value.empty() && a.winners.empty())
    throw UsageError("nothing to do: give --jvp, --vjp, --winners or --value");
  if (!a.winners.empty() && op.index() > 1)
    throw UsageError("--winners belongs to max and min, and the operator is " + a.op.name);
  if (a.flat_winners && a.winners.empty()) throw UsageError("--flat belongs to --winners");
  check_names(a);
  Files files(a, op);
  const Execution exec = make_execution(a.run);
  with_element(files.input.header().type, [&]<class T>() {
    if constexpr (Field<T>) std::visit([&](const auto& o) { run<T>(a, o, files, exec); }, op);
  });
  return 0;
}

}  // namespace cenote::cli
