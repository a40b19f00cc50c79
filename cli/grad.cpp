// `cenote grad`: what a small change of the input does to the output (JVP), what the output asks of the input (VJP),
// and who won.
#include "arguments.hpp"
#include "cenote/run.hpp"
#include "loaded.hpp"

namespace cenote::cli {

namespace {

constexpr Index no_limit = std::numeric_limits<Index>::max();  // arrays are held as wholes here

void check_type(const Loaded& array, const Loaded& input) {
  if (array.header().type == input.header().type) return;
  throw FileError(array.name() + ": holds " + std::string(name_of(array.header().type)) + ", and " + input.name() +
                  " holds " + std::string(name_of(input.header().type)) + "; both must be the same");
}

// Files that all appear, or none.
class Results {
 public:
  void add(const std::string& path, const Header& header, const void* data) {
    sinks_.push_back(open_sink(path, Format::npy, header));
    sinks_.back()->write(static_cast<const std::byte*>(data), header.elements());
  }
  void finish() {
    for (const auto& sink : sinks_) sink->finish();
  }

 private:
  std::vector<std::unique_ptr<Sink>> sinks_;
};

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
  std::vector<T> data;
  View<T> view;
};

template <class T, class Op>
void run(const GradArguments& a, const Op& op, const Geometry& g, const Loaded& input, const Execution& exec) {
  const Element type = input.header().type;
  const bool fortran = input.header().fortran;
  const View<const T> x = input.view<T>();
  Results results;
  if (!a.jvp.empty()) {
    const Loaded dx(a.jvp, {.memory = no_limit, .raw_pairs_are_bf16 = a.dtype == Element::bf16});
    check_type(dx, input);
    Stored<T> dy(g.out(), fortran);
    jvp<T>(op, g, x, dx.view<T>(), dy.view, exec, "grad");
    results.add(a.output, header_of(type, g.out(), fortran), dy.data.data());
  }
  if (!a.vjp.empty()) {
    const Loaded gy(a.vjp, {.memory = no_limit, .raw_pairs_are_bf16 = a.dtype == Element::bf16});
    check_type(gy, input);
    Stored<T> gx(g.in(), fortran);
    vjp<T>(op, g, x, gy.view<T>(), gx.view, exec, "grad");
    results.add(a.output, header_of(type, g.in(), fortran), gx.data.data());
  }
  if (!a.value.empty()) {
    Stored<T> y(g.out(), fortran);
    forward<T>(op, g, x, y.view, exec, "grad");
    results.add(a.value, header_of(type, g.out(), fortran), y.data.data());
  }
  if constexpr (Selecting<Op>) {
    if (!a.winners.empty()) {
      const Winners won = winners<T>(op, g, x, exec, "grad");
      if (a.flat_winners) {
        const auto flat = spec::flat_indices(g, won);
        results.add(a.winners, header_of(Element::i64, g.out(), false), flat.data().data());
      } else {
        constexpr std::array widths{Element::u8, Element::u8, Element::u16, Element::u16, Element::u32};
        const Element width = won.bytes_each() == 8 ? Element::u64 : widths[static_cast<std::size_t>(won.bytes_each())];
        results.add(a.winners, header_of(width, g.out(), false), won.bytes().data());
      }
    }
  }
  results.finish();
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
  const Loaded input(a.input, {.memory = no_limit, .raw_pairs_are_bf16 = a.dtype == Element::bf16});
  Header header = input.header();
  if (a.windows.channels_last && header.dims.rank > 0) header.channels = true;
  const Geometry g = make_geometry(a.windows, header, "grad");
  const Execution exec = make_execution(a.run);
  if (is_integer(header.type))
    throw FileError(a.input + ": holds " + std::string(name_of(header.type)) +
                    "; derivatives are of f64, f32, f16 and bf16");
  with_element(header.type, [&]<class T>() {
    if constexpr (Field<T>) std::visit([&](const auto& o) { run<T>(a, o, g, input, exec); }, op);
  });
  return 0;
}

}  // namespace cenote::cli
