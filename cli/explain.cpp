// `cenote explain`: one window, drawn.
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>

#include "arguments.hpp"
#include "cenote/run.hpp"
#include "files/output_file.hpp"
#include "loaded.hpp"
#include "picture.hpp"
#include "terminal.hpp"

namespace cenote::cli {

namespace {

constexpr Index most_cells = Index{1} << 22;  // of an input that is held as f64
constexpr Index most_rows = 24, widest = 24, most_slices = 4;
constexpr Index around = 3;  // cells around a window, where the whole does not fit

std::string text_of(Index n) { return std::to_string(n); }

// "axis 1: floor((7 + 1 + 1 - 1*(3-1) - 1) / 2) + 1 = 4".
std::string formula(const Geometry& g, int a) {
  const Axis& axis = g.axis(a);
  const std::string start = "axis " + text_of(a) + ": ";
  if (axis.kind == Axis::Kind::adaptive)
    return start + "window i is [floor(i*" + text_of(axis.in) + "/" + text_of(axis.out) + "), ceil((i+1)*" +
           text_of(axis.in) + "/" + text_of(axis.out) + ")), i = 0.." + text_of(axis.out - 1);
  const Index padded = axis.in + axis.padding.low + axis.padding.high;
  const Index span = (axis.kernel - 1) * axis.dilation + 1;
  const bool up = g.rounding() == Rounding::ceil;
  std::string out = start + (up ? "ceil" : "floor") + "((" + text_of(axis.in) + " + " + text_of(axis.padding.low) +
                    " + " + text_of(axis.padding.high) + " - " + text_of(axis.dilation) + "*(" + text_of(axis.kernel) +
                    "-1) - 1) / " + text_of(axis.stride) + ") + 1 = ";
  const Index rounded = up && padded >= span ? detail::ceil_div(padded - span, axis.stride) + 1 : axis.out;
  out += text_of(rounded);
  if (rounded != axis.out) out += ", less the last window, which would start beyond the input: " + text_of(axis.out);
  return out;
}

// The output to look at: as it was said, for all axes or for the pooled ones, or the middle one.
Dims chosen_output(const Geometry& g, const std::string& at) {
  Dims out = Dims::filled(g.rank(), 0);
  const Dims said = at.empty() ? Dims{} : make_dims(at, "--at");
  Dims pooled;
  for (int a = 0; a < g.rank(); ++a)
    if (g.axis(a).pooled()) pooled.push_back(a);
  if (at.empty()) {
    for (const Index a : pooled) out[static_cast<int>(a)] = g.axis(static_cast<int>(a)).out / 2;
  } else if (said.rank == g.rank()) {
    out = said;
  } else if (said.rank == pooled.rank) {
    for (int i = 0; i < pooled.rank; ++i) out[static_cast<int>(pooled[i])] = said[i];
  } else {
    throw UsageError("--at is '" + at + "', and outputs are " + to_string(g.out_kept()) +
                     "; one index per axis, or per axis that is pooled, is legal");
  }
  for (int a = 0; a < g.rank(); ++a)
    if (out[a] < 0 || out[a] >= g.axis(a).out)
      throw UsageError("--at is '" + at + "', and outputs are " + to_string(g.out_kept()) + "; on axis " + text_of(a) +
                       ", 0 to " + text_of(g.axis(a).out - 1) + " are legal");
  return out;
}

// Numbers of the window: its value, what flows back, who won. From the definition's own verbs, in f64.
struct Answers {
  std::optional<double> value;
  std::optional<Tensor<double>> weights;
  Index winner = Winners::none;  // flat, in the input
};

template <class Op>
Answers answers_of(const Op& op, const Geometry& g, const Tensor<double>* x, const Dims& output) {
  Answers out;
  if (x == nullptr && !Op::linear) return out;
  Tensor<double> gy(g.out());
  gy.view()[output] = 1;
  const Tensor<double> nothing = x == nullptr ? Tensor<double>(g.in()) : Tensor<double>();
  const Tensor<double>& input = x == nullptr ? nothing : *x;
  out.weights = Tensor<double>(g.in());
  vjp<double>(op, g, input.view(), gy.view(), out.weights->view(), {}, "explain");
  if (x == nullptr) return out;
  Tensor<double> y(g.out());
  forward<double>(op, g, input.view(), y.view(), {}, "explain");
  out.value = y.view()[output];
  if constexpr (Selecting<Op>) {
    const Winners won = winners<double>(op, g, input.view(), {}, "explain");
    Index number = 0;
    for (int a = 0; a < g.rank(); ++a) number = number * g.axis(a).out + output[a];
    if (won[number] == Winners::none) return out;
    const Dims box = row_major(g.window_box());
    const Dims strides = row_major(g.in());
    Index rest = won[number];
    out.winner = 0;
    for (int a = 0; a < g.rank(); ++a) {
      out.winner += g.axis(a).position(output[a], rest / box[a]) * strides[a];
      rest %= box[a];
    }
  }
  return out;
}

// What is shown of one axis: positions [first, first + count), and the taps among them.
struct Shown {
  Index first = 0, count = 1;
  bool all = true;
  bool window = true;  // all of the window
};

Index taps_of(const Axis& axis, Index o) {
  return axis.kind == Axis::Kind::adaptive ? axis.window(o).real : axis.kernel;
}

Shown shown_of(const Axis& axis, Index o, Index most) {
  const Index begin = axis.position(o, 0);
  const Index end = axis.position(o, taps_of(axis, o) - 1) + 1;
  Shown out{-axis.padding.low, axis.in + axis.padding.low + axis.padding.high};
  if (end > axis.in + axis.padding.high) out.count = end + axis.padding.low;  // the overhang of this window
  if (out.count <= most) return out;
  // As many cells around it as there is room for.
  const Index margin = std::clamp<Index>((most - (end - begin)) / 2, 0, around);
  const Index first = std::max(out.first, begin - margin);
  const Index last = std::min(out.first + out.count, std::min(end + margin, first + most));
  return {first, last - first, false, last >= end};
}

bool is_tap(const Axis& axis, Index o, Index position) {
  const Index offset = position - axis.position(o, 0);
  return offset >= 0 && offset % axis.dilation == 0 && offset / axis.dilation < taps_of(axis, o);
}

Cell::Kind kind_of(const Axis& axis, Index position) {
  if (position >= 0 && position < axis.in) return Cell::Kind::input;
  return position >= -axis.padding.low && position < axis.in + axis.padding.high ? Cell::Kind::padding
                                                                                 : Cell::Kind::overhang;
}

class Drawing {
 public:
  Drawing(const Geometry& g, Dims output, const Tensor<double>* x, Answers answers)
      : g_(g), output_(output), x_(x), answers_(std::move(answers)) {
    for (int a = 0; a < g.rank(); ++a)
      if (g.axis(a).pooled()) pooled_.push_back(a);
  }

  Picture draw(Index most_columns) && {
    picture_.values = x_ != nullptr;
    picture_.weights = answers_.weights.has_value();
    const int column_axis = pooled_.back();
    const int row_axis = pooled_.size() > 1 ? pooled_[pooled_.size() - 2] : -1;
    const Shown columns = shown_of(g_.axis(column_axis), output_[column_axis], most_columns);
    const Shown rows = row_axis < 0 ? Shown{} : shown_of(g_.axis(row_axis), output_[row_axis], most_rows);
    if (!rows.all || !columns.all) picture_.note = "only the cells around the window are shown";
    if (!rows.window || !columns.window) picture_.note = "only the first cells of the window are shown";

    // One plane per tap of the pooled axes before the two that are drawn.
    Dims outer;
    for (std::size_t i = 0; i + 2 < pooled_.size(); ++i)
      outer.push_back(taps_of(g_.axis(pooled_[i]), output_[pooled_[i]]));
    Index left = most_slices;
    for_each_index(outer, [&](const Dims& tap) {
      if (left-- <= 0) {
        picture_.note = "only " + std::to_string(most_slices) + " of " + std::to_string(volume(outer)) +
                        " planes of the window are shown";
        return;
      }
      Dims at = output_;
      for (int i = 0; i < outer.rank; ++i) {
        const int a = pooled_[static_cast<std::size_t>(i)];
        at[a] = g_.axis(a).position(output_[a], tap[i]);
      }
      draw_slice(at, row_axis, column_axis, rows, columns, outer.rank);
    });
    return std::move(picture_);
  }

 private:
  void draw_slice(Dims at, int row_axis, int column_axis, const Shown& rows, const Shown& columns, int outer) {
    Slice slice{"", rows.first, columns.first, rows.count, columns.count, {}};
    for (int i = 0; i < outer; ++i) {
      const int a = pooled_[static_cast<std::size_t>(i)];
      slice.title += (slice.title.empty() ? "axis " : ", axis ") + std::to_string(a) + " at " + std::to_string(at[a]);
    }
    for (Index r = 0; r < rows.count; ++r)
      for (Index c = 0; c < columns.count; ++c) {
        at[column_axis] = columns.first + c;
        if (row_axis >= 0) at[row_axis] = rows.first + r;
        slice.cells.push_back(cell(at));
      }
    picture_.slices.push_back(std::move(slice));
  }

  Cell cell(const Dims& at) {
    Cell out;
    out.tap = true;
    for (const int a : pooled_) {
      out.tap = out.tap && is_tap(g_.axis(a), output_[a], at[a]);
      out.kind = std::max(out.kind, kind_of(g_.axis(a), at[a]));
    }
    picture_.has_padding |= out.kind == Cell::Kind::padding;
    picture_.has_overhang |= out.kind == Cell::Kind::overhang;
    if (out.kind != Cell::Kind::input) return out;
    const Dims strides = row_major(g_.in());
    Index flat = 0;
    for (int a = 0; a < g_.rank(); ++a) flat += at[a] * strides[a];
    const auto place = static_cast<std::size_t>(flat);
    if (x_ != nullptr) out.value = x_->data()[place];
    out.winner = flat == answers_.winner;
    picture_.has_winner |= out.winner;
    if (out.tap && answers_.weights) out.weight = answers_.weights->data()[place];
    return out;
  }

  const Geometry& g_;
  Dims output_;
  const Tensor<double>* x_;
  Answers answers_;
  std::vector<int> pooled_;
  Picture picture_;
};

// As many columns as a terminal has room for; who reads from a pipe can scroll.
std::string fitting_text(const std::function<Picture(Index)>& picture, bool colour) {
  constexpr Index fewest = 3;
  Index columns = widest;
  for (const auto room = static_cast<std::size_t>(columns_of(STDOUT_FILENO)); columns > fewest; --columns) {
    const std::string plain = as_text(picture(columns), false);
    std::size_t longest = 0;
    for (std::size_t from = 0, to = 0; (to = plain.find('\n', from)) != std::string::npos; from = to + 1)
      if (plain[from] == ' ') longest = std::max(longest, to - from);  // cells, not sentences
    if (room == 0 || longest < room) break;
  }
  return as_text(picture(columns), colour);
}

}  // namespace

int explain(const ExplainArguments& a) {
  const Operator op = make_operator(a.op, a.windows.global);
  if (a.input.empty() == a.shape.empty()) throw UsageError("say what is pooled: an INPUT, or --shape with its sizes");
  if (a.colour != "auto" && a.colour != "always" && a.colour != "never")
    throw UsageError("--colour is '" + a.colour + "'; legal are auto, always, never");
  Header header;
  std::optional<Tensor<double>> x;
  if (a.input.empty()) {
    header.dims = make_dims(a.shape, "--shape");
  } else {
    const Loaded loaded(a.input, most_cells);
    header = loaded.header();
    x = loaded.as<double>(Element::f64);
  }
  if (a.windows.channels_last && header.dims.rank > 0) header.channels = true;
  const Geometry pooling = make_geometry(a.windows, header,
                                         a.input.empty()  ? "--shape"
                                         : a.input == "-" ? "standard input"
                                                          : a.input);
  const Geometry g = with_axes_kept(pooling);

  std::vector<std::string> lines{describe(pooling)};
  for (int axis = 0; axis < g.rank(); ++axis)
    if (g.axis(axis).pooled()) lines.push_back(formula(g, axis));
  std::function<Picture(Index)> draw = [](Index) { return Picture{}; };
  if (volume(g.out()) > 0) {
    const Dims output = chosen_output(g, a.at);
    const bool small = volume(g.in()) <= most_cells && volume(g.out()) <= most_cells;
    const Answers answers =
        small ? std::visit([&](const auto& o) { return answers_of(o, g, x ? &*x : nullptr, output); }, op) : Answers{};
    std::string sentence = "output " + to_string(output);
    if (answers.value) sentence += " = " + short_number(*answers.value);
    lines.push_back(sentence);
    draw = [&g, &x, output, answers](Index columns) {
      return Drawing(g, output, x ? &*x : nullptr, answers).draw(columns);
    };
  }
  const auto picture = [&](Index columns) {
    Picture drawn = draw(columns);
    drawn.before = lines;
    return drawn;
  };

  const std::string out =
      a.svg.empty() ? fitting_text(picture, wants_colour(a.colour, STDOUT_FILENO)) : as_svg(picture(widest));
  OutputFile file(a.svg.empty() ? "-" : a.svg);
  file.write(out.data(), out.size());
  file.commit();
  return 0;
}

}  // namespace cenote::cli
