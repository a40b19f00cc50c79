// Windows of k x k cells, s apart: the most usual ones deserve loops of their own, which reduce the last two axes at
// once. `Squares` has vectors of cells that are neighbours in a row, `LaneSquares` vectors of lanes in a cell.
// Everything a loop looks at is a local copy, which no store can reach.
#if defined(CENOTE_KERNELS_SQUARES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_SQUARES_INL_HPP
#undef CENOTE_KERNELS_SQUARES_INL_HPP
#else
#define CENOTE_KERNELS_SQUARES_INL_HPP
#endif

#include "kernels/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// A plane of rows, and the outputs wanted of it.
template <class S>
struct SquarePlane {
  const typename S::Raw* base[S::inputs];
  Index pitch[S::inputs];     // between rows
  const PooledAxis* axis;     // of the rows
  Index begin, end;           // rows of outputs
  Index multiplier;           // of the numbers of taps along that axis
  Index width;                // lanes of a row of pieces
  typename S::Lane* carried;  // room for two of them

  // The outputs whose windows lack no row.
  [[nodiscard]] plan::Span Inner() const {
    const Index first = HWY_MIN(end, HWY_MAX(begin, axis->run_begin));
    return {first, HWY_MAX(first, HWY_MIN(end, axis->run_end))};
  }
  // What was reduced of a row becomes tap number `tap` of a window along the axis of the rows.
  HWY_INLINE void Enter(typename S::V (&piece)[S::parts], Index row, Index tap) const {
    if constexpr (S::weighted) piece[0] = hn::Mul(piece[0], hn::Set(typename S::D(), axis->weights[row]));
    S::Shift(piece, tap * multiplier);
  }
};

// Lines take the results, row after row: Go(o) to row o, Next(), and lines(piece, slot, column), where slots count
// whole vectors and columns count outputs. What they leave in the piece is not looked at. Spots<groups>(slot, column)
// takes a vector of columns of row after row: Put(pieces).
template <class S, Index s, int k>
class Squares {
 public:
  using Raw = typename S::Raw;
  using Lane = typename S::Lane;
  using Table = RowTable<Raw, S::repeats>;
  template <bool edge>
  using Reader = Chunk<S, s, k, edge>;
  using Piece = typename Reader<false>::Piece;
  static constexpr Index n = vector_lanes<Raw>;
  static constexpr int groups = Reader<false>::groups;
  static constexpr Index max_edges = 6;  // chunks at the ends of a row

  template <class Lines>
  static HWY_INLINE void Run(const Table& table, const SquarePlane<S>& plane, Lines& lines) {
    const auto [begin, end] = plane.Inner();
    for (Index o = plane.begin; o < begin; ++o) Border(table, plane, o, lines);
    if (begin < end) {
      lines.Go(begin);
      // Neighbouring strips of short rows share their cache lines.
      if (k > s && Table::in_registers && table.axis().in * static_cast<Index>(sizeof(Raw)) <= 192)
        Strips(table, plane, begin, end, lines);
      else
        Sweep(table, plane, begin, end, lines);
    }
    for (Index o = end; o < plane.end; ++o) Border(table, plane, o, lines);
  }

 private:
  struct Rows {
    const Raw* at[S::inputs];
    HWY_INLINE Rows(const SquarePlane<S>& plane, Index row) {
      for (int i = 0; i < S::inputs; ++i) at[i] = plane.base[i] + row * plane.pitch[i];
    }
    HWY_INLINE void Step(const Index (&pitch)[S::inputs]) {
      for (int i = 0; i < S::inputs; ++i) at[i] += pitch[i];
    }
    // What is read some rows later.
    HWY_INLINE void Foresee(Index position) const {
      HWY_UNROLL(16)
      for (int i = 0; i < S::inputs; ++i) hwy::Prefetch(at[i] + position + Index{2048 / sizeof(Raw)});
    }
  };

  template <class Lines>
  static HWY_INLINE void Put(Piece& piece, Index chunk, Index column, const Lines& lines) {
    HWY_UNROLL(16)
    for (int g = 0; g < groups; ++g)
      lines(piece[g], chunk * n + g * vector_lanes<Lane>, column + g * vector_lanes<Lane>);
  }
  static HWY_INLINE void Store(const Piece& piece, Index chunk, Lane* to, Index width) {
    HWY_UNROLL(16)
    for (int g = 0; g < groups; ++g) S::Store(piece[g], to + chunk * n + g * vector_lanes<Lane>, width);
  }
  static HWY_INLINE void Load(Piece& piece, Index chunk, const Lane* from, Index width) {
    HWY_UNROLL(16)
    for (int g = 0; g < groups; ++g) S::Load(piece[g], from + chunk * n + g * vector_lanes<Lane>, width, 0, 1);
  }
  // The pieces of k rows become one.
  static HWY_INLINE void MergeRows(const Piece (&pieces)[k], const SquarePlane<S>& plane, Index row, Piece& acc) {
    HWY_UNROLL(16)
    for (int g = 0; g < groups; ++g) {
      HWY_UNROLL(16)
      for (int r = 0; r < k; ++r) {
        typename S::V later[S::parts];
        HWY_UNROLL(16)
        for (int part = 0; part < S::parts; ++part) later[part] = pieces[r][g][part];
        plane.Enter(later, row + r, r);
        Join<S>(later, r == 0, acc[g]);
      }
    }
  }

  // One row of outputs at an end of the axis, from as many rows as its windows have.
  template <class Lines>
  static HWY_NOINLINE void Border(const Table& table, const SquarePlane<S>& plane, Index o, Lines& lines) {
    lines.Go(o);
    for (Index e = 0; e < table.edges(); ++e) {
      const Index chunk = table.EdgeChunk(e);
      BorderChunk(Reader<true>(table, chunk), plane, o, chunk, table.First(chunk), lines);
    }
    for (Index chunk = table.inner_begin(); chunk < table.inner_end(); ++chunk)
      BorderChunk(Reader<false>::At(table, table.Position(chunk)), plane, o, chunk, table.First(chunk), lines);
  }
  template <bool edge, class Lines>
  static HWY_INLINE void BorderChunk(const Reader<edge>& reader, const SquarePlane<S>& plane, Index o, Index chunk,
                                     Index column, const Lines& lines) {
    const Taps& window = plane.axis->taps[o];
    Piece acc;
    for (Index t = 0; t < window.count; ++t) {
      Piece later;
      reader.Reduce(Rows(plane, window.start + t).at, later);
      for (int g = 0; g < groups; ++g) {
        plane.Enter(later[g], window.start + t, window.first + t);
        Join<S>(later[g], t == 0, acc[g]);
      }
    }
    Put(acc, chunk, column, lines);
  }

  // Row after row, as they lie in memory: what a window shares with the next one is carried in rows of pieces.
  template <class Lines>
  static HWY_NOINLINE void Sweep(const Table& table, const SquarePlane<S> plane, Index o, Index end, Lines lines) {
    const Index edges = table.edges();
    struct {
      Reader<true> reader;
      Index chunk, column;
    } at_end[max_edges];
    for (Index e = 0; e < edges; ++e) {
      const Index chunk = table.EdgeChunk(e);
      at_end[e] = {Reader<true>(table, chunk), chunk, table.First(chunk)};
    }
    const Index width = plane.width;
    Lane* carried[2] = {plane.carried, plane.carried + S::parts * width};
    Index row = plane.axis->taps[o].start;  // of the first row of the windows
    Rows rows(plane, row);
    for (int r = 0; r < k - s; ++r) {
      EachChunk(at_end, edges, table, rows, [&](const auto& reader, Index chunk, Index) CENOTE_INNER {
        Piece piece;
        reader.Reduce(rows.at, piece);
        Store(piece, chunk, carried[r], width);
      });
      rows.Step(plane.pitch);
    }
    for (; o < end; ++o) {
      // Rows are read one after the other: two at a time, of some hundred bytes each, are more than the hardware
      // foresees.
      if constexpr (s == 2) {
        EachChunk(at_end, edges, table, rows, [&](const auto& reader, Index chunk, Index) CENOTE_INNER {
          Piece piece;
          reader.Reduce(rows.at, piece);
          Store(piece, chunk, carried[k - s], width);
        });
        rows.Step(plane.pitch);
      }
      EachChunk(at_end, edges, table, rows, [&](const auto& reader, Index chunk, Index column) CENOTE_INNER {
        SweepChunk(reader, rows, row, plane, carried, chunk, column, lines);
      });
      if constexpr (k - s == 2) std::swap(carried[0], carried[1]);
      rows.Step(plane.pitch);
      row += s;
      lines.Next();
    }
  }
  // Calls use(reader, chunk, first output) for the chunks of a row.
  template <class Ends, class F>
  static HWY_INLINE void EachChunk(const Ends& at_end, Index edges, const Table& table, const Rows& rows, F&& use) {
    for (Index e = 0; e < edges; ++e) use(at_end[e].reader, at_end[e].chunk, at_end[e].column);
    const Index last = table.First(table.chunks() - 1);
    const Index low = table.Position(0);
    const Index end = table.inner_end();
    for (Index chunk = table.inner_begin(); chunk < end; ++chunk) {
      const Index column = HWY_MIN(chunk * n, last);
      rows.Foresee(column * s + low);
      use(Reader<false>::At(table, column * s + low), chunk, column);
    }
  }
  // The last row of the windows; those before it have been reduced.
  template <bool edge, class Lines>
  static HWY_INLINE void SweepChunk(const Reader<edge>& reader, const Rows& rows, Index row,
                                    const SquarePlane<S>& plane, Lane* const (&carried)[2], Index chunk, Index column,
                                    const Lines& lines) {
    Piece pieces[k];
    HWY_UNROLL(16)
    for (int r = 0; r < k - 1; ++r) Load(pieces[r], chunk, carried[r], plane.width);
    reader.Reduce(rows.at, pieces[k - 1]);
    // In the place of the row that is done with.
    if constexpr (k > s) Store(pieces[k - 1], chunk, carried[0], plane.width);
    Piece acc;
    MergeRows(pieces, plane, row, acc);
    Put(acc, chunk, column, lines);
  }

  // Strip by strip: a vector of columns from the first row to the last, with the rows that windows share in registers.
  template <class Lines>
  static HWY_NOINLINE void Strips(const Table& table, const SquarePlane<S> plane, Index o, Index end,
                                  const Lines& lines) {
    for (Index e = 0; e < table.edges(); ++e) {
      const Index chunk = table.EdgeChunk(e);
      Strip(Reader<true>(table, chunk), plane, chunk, table.First(chunk), o, end, lines);
    }
    for (Index chunk = table.inner_begin(); chunk < table.inner_end(); ++chunk)
      Strip(Reader<false>::At(table, table.Position(chunk)), plane, chunk, table.First(chunk), o, end, lines);
  }
  template <bool edge, class Lines>
  static HWY_INLINE void Strip(const Reader<edge>& reader, const SquarePlane<S>& plane, Index chunk, Index column,
                               Index o, Index end, const Lines& lines) {
    Index row = plane.axis->taps[o].start;
    Rows rows(plane, row);
    Piece pieces[k];
    HWY_UNROLL(16)
    for (int r = 0; r < k - s; ++r) {
      reader.Reduce(rows.at, pieces[r]);
      rows.Step(plane.pitch);
    }
    auto spots = lines.template Spots<groups>(chunk * n, column);
    for (; o < end; ++o) {
      HWY_UNROLL(16)
      for (int r = k - s; r < k; ++r) {
        reader.Reduce(rows.at, pieces[r]);
        rows.Step(plane.pitch);
      }
      Piece acc;
      MergeRows(pieces, plane, row, acc);
      row += s;
      spots.Put(acc);
      HWY_UNROLL(16)
      for (int r = 0; r < k - s; ++r)
        for (int g = 0; g < groups; ++g)
          for (int part = 0; part < S::parts; ++part) pieces[r][g][part] = pieces[r + s][g][part];
    }
  }
};

// The same where lanes are neighbours: lines(piece, column, lane).
template <class S, Index s, int k>
class LaneSquares {
 public:
  using Raw = typename S::Raw;
  using Lane = typename S::Lane;
  using Piece = typename S::V[S::parts];

  // `columns` is the axis of the cells of a row, `begin` and `end` the outputs wanted of it, `cell` between its cells.
  struct Columns {
    const PooledAxis* axis;
    Index begin, end;
    Index cell;  // elements from a cell to the next one
  };

  template <class Lines>
  static HWY_INLINE void Run(const Columns& columns, const SquarePlane<S>& plane, Lines& lines) {
    const auto [begin, end] = plane.Inner();
    for (Index o = plane.begin; o < begin; ++o) Border(columns, plane, o, lines);
    if (begin < end) {
      lines.Go(begin);
      Sweep(columns, plane, begin, end, lines);
    }
    for (Index o = end; o < plane.end; ++o) Border(columns, plane, o, lines);
  }

 private:
  // Where the taps of a column begin, in elements from the beginning of the row, and how many they are.
  struct Column {
    Index offset, cell, count, first;
    const double* weights;
    HWY_INLINE Column(const Columns& columns, Index c)
        : offset(columns.axis->taps[c].start * columns.cell), cell(columns.cell), count(columns.axis->taps[c].count),
          first(columns.axis->taps[c].first),
          weights(S::weighted ? columns.axis->weights + columns.axis->taps[c].start : nullptr) {}
  };
  // One row of a window. `taps` is their number if the compiler knows it, or 0.
  template <int taps>
  static HWY_INLINE void Reduce(const Raw* row, Index part, const Column& column, Piece& acc) {
    const Raw* tap = row + column.offset;
    S::First(acc, tap, part, taps > 0 ? 0 : column.first, S::weighted ? column.weights[0] : 1.0);
    const auto add = [&](Index t) HWY_ATTR {
      Piece later;
      S::First(later, tap + t * column.cell, part, taps > 0 ? t : column.first + t,
               S::weighted ? column.weights[t] : 1.0);
      S::Merge(acc, later);
    };
    if constexpr (taps > 0) {
      HWY_UNROLL(16)
      for (int t = 1; t < taps; ++t) add(t);
    } else {
      for (Index t = 1; t < column.count; ++t) add(t);
    }
  }
  static Index Part(const SquarePlane<S>& plane) {
    if constexpr (S::inputs == 2) return plane.base[1] - plane.base[0];
    return 0;
  }

  template <class Lines>
  static HWY_NOINLINE void Border(const Columns& columns, const SquarePlane<S>& plane, Index o, Lines& lines) {
    lines.Go(o);
    const Taps& window = plane.axis->taps[o];
    for (Index c = columns.begin; c < columns.end; ++c) {
      const Column column(columns, c);
      for (Index lane = 0; lane < plane.width; lane += vector_lanes<Lane>) {
        Piece acc;
        for (Index t = 0; t < window.count; ++t) {
          Piece later;
          Reduce<0>(plane.base[0] + (window.start + t) * plane.pitch[0] + lane, Part(plane), column, later);
          plane.Enter(later, window.start + t, window.first + t);
          Join<S>(later, t == 0, acc);
        }
        lines.AtLane(acc, c - columns.begin, lane);
      }
    }
  }

  // Row after row: what a window shares with the next one is carried in rows of pieces.
  template <class Lines>
  static HWY_NOINLINE void Sweep(const Columns columns, const SquarePlane<S> plane, Index o, Index end, Lines lines) {
    Index first = plane.axis->taps[o].start;  // row of the windows
    const Raw* row = plane.base[0] + first * plane.pitch[0];
    const Index size = (columns.end - columns.begin) * S::parts * plane.width;
    Lane* carried[2] = {plane.carried, plane.carried + size};
    for (int r = 0; r < k - s; ++r) {
      for (Index c = columns.begin; c < columns.end; ++c) {
        const Column column(columns, c);
        Lane* to = carried[r] + (c - columns.begin) * S::parts * plane.width;
        for (Index lane = 0; lane < plane.width; lane += vector_lanes<Lane>) {
          Piece piece;
          Reduce<0>(row + lane, Part(plane), column, piece);
          S::Store(piece, to + lane, plane.width);
        }
      }
      row += plane.pitch[0];
    }
    for (; o < end; ++o) {
      for (Index c = columns.begin; c < columns.end; ++c) {
        const Column column(columns, c);
        if (column.count == k)
          SweepColumn<k>(row, first, column, plane, carried, c - columns.begin, lines);
        else
          SweepColumn<0>(row, first, column, plane, carried, c - columns.begin, lines);
      }
      if constexpr (k - s == 2) std::swap(carried[0], carried[1]);
      row += s * plane.pitch[0];
      first += s;
      lines.Next();
    }
  }
  template <int taps, class Lines>
  static HWY_INLINE void SweepColumn(const Raw* row, Index first, const Column column, const SquarePlane<S>& plane,
                                     Lane* const (&carried)[2], Index c, const Lines& lines) {
    const Index width = plane.width, pitch = plane.pitch[0], part = Part(plane);
    Lane* before[2] = {carried[0] + c * S::parts * width, carried[1] + c * S::parts * width};
    // So many streams side by side are more than the hardware follows.
    const Raw* const ahead = row + column.offset + (k + 2 * s) * column.cell;
    for (Index lane = 0; lane < width; lane += vector_lanes<Lane>) {
      HWY_UNROLL(2)
      for (int r = 0; r < s; ++r) {
        HWY_UNROLL(2)
        for (int c = 0; c < s; ++c) hwy::Prefetch(ahead + r * pitch + c * column.cell + lane);
      }
      Piece pieces[k];
      HWY_UNROLL(16)
      for (int r = 0; r < k - s; ++r) S::Load(pieces[r], before[r] + lane, width, 0, 1);
      HWY_UNROLL(16)
      for (int r = k - s; r < k; ++r) Reduce<taps>(row + (r - (k - s)) * pitch + lane, part, column, pieces[r]);
      // In the place of the row that is done with.
      if constexpr (k > s) S::Store(pieces[k - 1], before[0] + lane, width);
      Piece acc;
      HWY_UNROLL(16)
      for (int r = 0; r < k; ++r) {
        plane.Enter(pieces[r], first + r, r);
        Join<S>(pieces[r], r == 0, acc);
      }
      lines.AtLane(acc, c, lane);
    }
  }
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
