#include "stream.hpp"

#include <cstring>
#include <optional>

#include "buffer.hpp"
#include "cenote/run.hpp"
#include "convert.hpp"
#include "files/clock.hpp"
#include "files/page_watch.hpp"
#include "parts.hpp"

namespace cenote::cli {

namespace {

constexpr Index comfortable_part = Index{32} << 20;  // larger ones are no faster, and show no progress
constexpr Index picture_part = Index{1} << 20;       // caches hold it, and codecs wait for no more

// Strides of what is held of a part; of a picture whose channels are held apart, the last two axes change places.
Dims strides_of_part(const Dims& dims, bool fortran, bool apart) {
  Dims strides = strides_of(dims, fortran);
  if (apart) {
    strides[dims.rank - 2] = 1;
    strides[dims.rank - 1] = dims[dims.rank - 2];
  }
  return strides;
}

// The lines of pixels in a picture, or in part of one.
Lines lines_of(const Dims& dims) {
  const Index columns = dims[dims.rank - 2];
  const Index channels = dims[dims.rank - 1];
  return {columns * channels == 0 ? 0 : volume(dims) / (columns * channels), columns, channels};
}

// The input of one part after another: where it lies, or read and converted into a buffer that slides over the file.
class PartInput {
 public:
  PartInput(Source& source, Element computed, Index memory) : source_(source), computed_(computed), memory_(memory) {}

  // From now on the channels of pixels are held apart, line by line.
  void take_apart(const Lines& line) { line_ = line; }

  struct Place {
    const std::byte* data;
    Dims strides;
  };

  // `rows` are counted along the axis that is cut: everything behind it is one row.
  Place of(const Geometry& g, const Part& part, const Cut& cut) {
    const Header& header = source_.header();
    if (const std::byte* all = direct()) return in_place(all, g, part);
    // Rows are read whole, also where windows do not reach their ends.
    const auto [first, count, row] = rows_of(g, part, cut, header.fortran);
    slide_to(first, count, row);
    Dims held = g.in();
    for (int l = 0; l <= cut.level && l < g.rank(); ++l)
      held[axis_at(g, l, header.fortran)] = l < cut.level ? 1 : count;
    const Dims strides = strides_of_part(held, header.fortran, line_.has_value());
    Index offset = 0;
    for (int l = cut.level + 1; l < g.rank(); ++l) {
      const int a = axis_at(g, l, header.fortran);
      offset += part.in_begin[a] * strides[a];
    }
    return {buffer_.get() + offset * size_of(computed_), strides};
  }

  [[nodiscard]] const std::byte* direct() const {
    return source_.header().type == computed_ ? source_.in_place() : nullptr;
  }

  [[nodiscard]] double seconds_converting() const { return converting_; }

  // A file is read to its end, so that a damaged end is noticed.
  void drain() {
    if (direct() != nullptr) return;
    skip(source_.header().elements() - position_);
  }

 private:
  // What lies close together is used where it lies, and given back when it is done with. Parts that are scattered over
  // more of the file than there is memory are fetched, row by row; a window that no memory holds is watched over.
  Place in_place(const std::byte* all, const Geometry& g, const Part& part) {
    const bool fortran = source_.header().fortran;
    const Index size = size_of(computed_);
    const Dims strides = strides_of(g.in(), fortran);
    Index offset = 0;
    Index reach = 1;
    for (int a = 0; a < g.rank(); ++a) {
      offset += part.in_begin[a] * strides[a];
      reach += (part.in_size[a] - 1) * strides[a];
    }
    if (reach * size > memory_ / 2) {
      if (volume(part.in_size) * size <= memory_ / 2) return fetched(g, part, offset);
      if (!watch_) watch_.emplace(source_, memory_);
    }
    const Index from = offset * size;
    if (from > used_from_) source_.release(used_from_, from);  // what lies before is not needed any more
    if (from < used_from_) source_.release(used_from_, used_to_);
    used_from_ = from;
    used_to_ = (offset + reach) * size;
    return {all + from, strides};
  }

  Place fetched(const Geometry& g, const Part& part, Index offset) {
    const bool fortran = source_.header().fortran;
    const Dims all_strides = strides_of(g.in(), fortran);
    const Dims strides = strides_of(part.in_size, fortran);
    // Axes from the innermost one on whose cells follow each other in the file.
    Dims outer = part.in_size;
    Index run = 1;
    for (int l = g.rank() - 1; l >= 0; --l) {
      const int a = axis_at(g, l, fortran);
      run *= part.in_size[a];
      outer[a] = 1;
      if (part.in_size[a] != g.axis(a).in) break;
    }
    std::byte* to = buffer_.at_least(volume(part.in_size) * size_of(computed_));
    for_each_index(outer, [&](const Dims& index) {
      Index from = offset;
      Index at = 0;
      for (int a = 0; a < index.rank; ++a) {
        from += index[a] * all_strides[a];
        at += index[a] * strides[a];
      }
      source_.read_at(from, to + at * size_of(computed_), run);
    });
    return {to, strides};
  }

  struct Rows {
    Index first, count, row;
  };
  static Rows rows_of(const Geometry& g, const Part& part, const Cut& cut, bool fortran) {
    Rows out{0, 1, 1};
    for (int l = 0; l < g.rank(); ++l) {
      const int a = axis_at(g, l, fortran);
      if (l <= cut.level) out.first = out.first * g.axis(a).in + part.in_begin[a];
      if (l == cut.level) out.count = part.in_size[a];
      if (l > cut.level) out.row *= g.axis(a).in;
    }
    return out;
  }

  // Makes rows [first, first + count) the content of the buffer; what it has of them already stays.
  void slide_to(Index first, Index count, Index row) {
    const Index bytes = row * size_of(computed_);
    const Index kept_from = std::max(first, have_first_);
    const Index kept = std::max<Index>(0, std::min(have_first_ + have_count_, first + count) - kept_from);
    if (count > capacity_) {
      Buffer larger;
      std::byte* to = larger.at_least(count * bytes);
      if (kept > 0)
        std::memcpy(to, buffer_.get() + (kept_from - have_first_) * bytes, static_cast<std::size_t>(kept * bytes));
      buffer_ = std::move(larger);
      capacity_ = count;
    } else if (kept > 0) {
      std::memmove(buffer_.get(), buffer_.get() + (kept_from - have_first_) * bytes,
                   static_cast<std::size_t>(kept * bytes));
    }
    skip((first + kept) * row - position_);
    read(buffer_.get() + kept * bytes, (count - kept) * row);
    have_first_ = first;
    have_count_ = count;
  }

  void read(std::byte* to, Index elements) {
    const Element stored = source_.header().type;
    position_ += elements;
    if (stored == computed_) return source_.read(to, elements);
    const Index unit = line_ ? line_->columns * line_->channels : 1;
    const Index piece = std::max<Index>(1, (1 << 20) / size_of(stored) / unit) * unit;
    for (Index done = 0; done < elements; done += piece) {
      const Index part = std::min(piece, elements - done);
      std::byte* from = unconverted_.at_least(part * size_of(stored));
      source_.read(from, part);
      std::byte* const place = to + done * size_of(computed_);
      Clock clock;
      if (line_)
        convert_apart(stored, from, computed_, place, {part / unit, line_->columns, line_->channels});
      else
        convert(stored, from, computed_, place, part);
      converting_ += clock.lap();
    }
  }

  void skip(Index elements) {
    const Index size = size_of(source_.header().type);
    const Index piece = (1 << 20) / size;
    position_ += std::max<Index>(elements, 0);
    for (; elements > 0; elements -= std::min(piece, elements))
      source_.read(unconverted_.at_least(std::min(piece, elements) * size), std::min(piece, elements));
  }

  Source& source_;
  Element computed_;
  Buffer buffer_, unconverted_;
  Index capacity_ = 0;
  Index have_first_ = 0, have_count_ = 0;  // rows in the buffer
  Index position_ = 0;                     // elements that were read
  double converting_ = 0;
  Index memory_;
  Index used_from_ = 0, used_to_ = 0;
  std::optional<Lines> line_;
  std::optional<PageWatch> watch_;
};

// The library copies pixels of few channels to planes while it pools them.
bool has_few_channels(const Geometry& g, bool fortran) {
  constexpr Index few = 64;
  if (g.rank() < 2) return false;
  const Axis& inner = g.axis(axis_at(g, g.rank() - 1, fortran));
  return !inner.pooled() && inner.in > 1 && inner.in < few;
}

// One call of the operator on one part.
void pool_part(const Operator& op, Element type, const Part& part, const PartInput::Place& x, std::byte* y,
               const Dims& y_strides, const Execution& exec) {
  with_element(type, [&]<class T>() {
    const View<const T> in(reinterpret_cast<const T*>(x.data), part.in_size, x.strides);
    const View<T> out(reinterpret_cast<T*>(y), part.out_size, y_strides);
    std::visit(
        [&](const auto& o) {
          if constexpr (OperatorOn<std::decay_t<decltype(o)>, T>) forward<T>(o, part.geometry, in, out, exec);
        },
        op);
  });
}

}  // namespace

Element computing_type(const Operator& op, Element element, std::optional<Element> wanted) {
  const auto accepts = [&](Element type) {
    return std::visit(
        [&](const auto& o) {
          return with_element(type, [&]<class T>() { return OperatorOn<std::decay_t<decltype(o)>, T>; });
        },
        op);
  };
  const bool selects = op.index() < 2;  // max and min make no new numbers
  if (wanted && !selects && accepts(*wanted) && holds(*wanted, element)) return *wanted;
  if (accepts(element)) return element;
  return size_of(element) <= 2 ? Element::f32 : Element::f64;  // which hold these integers exactly, or nearly so
}

StreamTimes pool_stream(Source& source, const Operator& op, const Geometry& pooling, Sink& sink,
                        const StreamOptions& options) {
  const Header& header = source.header();
  const Geometry g = with_axes_kept(pooling);
  PartInput input(source, options.computed, options.memory);
  const bool direct = input.direct() != nullptr;
  const Index copies = has_few_channels(g, header.fortran) ? 2 : 1;
  const CutOptions how{
      .fortran = header.fortran,
      .input_bytes = copies * size_of(options.computed),
      .output_bytes = copies * size_of(options.computed) +
                      (copies == 2 || options.computed != options.stored ? size_of(options.stored) : 0),
      .memory = options.memory / 2,  // buffers are not all there is
      .comfortable = options.picture ? picture_part : comfortable_part,
      .in_order = !direct};
  const Cut cut = choose_cut(g, how);
  // Pixels that are converted anyway are taken apart on the way, so that the library need not copy them.
  const bool apart = copies == 2 && !header.fortran && header.type != options.computed && cut.level + 2 < g.rank();
  const bool converts = apart || options.computed != options.stored;
  if (apart) input.take_apart(lines_of(g.in()));
  // What is mapped is the system's to keep or to drop; what is read must be held.
  if (!direct && cut.bytes > how.memory)
    throw FileError(options.input + ": the windows of one row of outputs take " + bytes_in_words(cut.bytes) +
                    ", and --memory " + bytes_in_words(options.memory) + " leaves " + bytes_in_words(how.memory) +
                    " for them");

  StreamTimes times;
  Clock clock;
  Buffer result;
  Buffer converted;
  const Index all = volume(g.out_kept());
  Index done = 0;
  for_each_part(g, cut, header.fortran, [&](const Part& part) {
    const PartInput::Place x = input.of(g, part, cut);
    times.reading += clock.lap();
    const Index elements = volume(part.out_size);
    std::byte* y = result.at_least(elements * size_of(options.computed));
    pool_part(op, options.computed, part, x, y, strides_of_part(part.out_size, header.fortran, apart),
              options.execution);
    times.pooling += clock.lap();
    if (converts) {
      std::byte* stored = converted.at_least(elements * size_of(options.stored));
      if (apart)
        convert_together(options.computed, y, options.stored, stored, lines_of(part.out_size));
      else
        convert(options.computed, y, options.stored, stored, elements);
      y = stored;
      times.pooling += clock.lap();
    }
    sink.write(y, elements);
    times.writing += clock.lap();
    done += elements;
    if (options.progress) options.progress(static_cast<double>(done) / static_cast<double>(all));
  });
  input.drain();
  times.reading += clock.lap() - input.seconds_converting();  // a conversion is work on numbers, like pooling
  times.pooling += input.seconds_converting();
  return times;
}

}  // namespace cenote::cli
