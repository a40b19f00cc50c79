// The VJP of smooth max and Lp.
#if defined(CENOTE_KERNELS_SMOOTH_PULL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_SMOOTH_PULL_INL_HPP
#undef CENOTE_KERNELS_SMOOTH_PULL_INL_HPP
#else
#define CENOTE_KERNELS_SMOOTH_PULL_INL_HPP
#endif

#include "kernels/smooth-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// The VJP. A task is a group of lanes and a block of cells along the first pooled axis: sums of the windows that hold a
// cell of the block (axes before the last, then the last), gradients divided by these sums, and the same passes back
// through the adjoint axes; each cell multiplies what arrives by its own term. Window sizes do not matter to scans.
//
// In rows mode the columns of the last axis are lanes. Only around the last axis rows are, several at a time.
template <class T, bool pairs>
class PowerSumPull {
  using S = PowerSumState<T, pairs, false>;
  using A = std::conditional_t<S::precise, PowerSumState<float, pairs, false>, S>;  // gradients have no tails
  using Raw = typename S::Raw;
  static constexpr Index lanes_each = vector_lanes<Raw>;  // of a tile, or rows together
  static constexpr Index step = vector_lanes<double>;

 public:
  static Index Tasks(const plan::Plan& plan) { return Lanes::Groups(plan, lanes_each) * plan.adjoint[0].blocks; }
  static void Run(const plan::Plan& plan, Index task) { PowerSumPull(plan, task).Work(); }

 private:
  using Range = plan::Span;
  using Ranges = std::array<Range, max_rank>;

  PowerSumPull(const plan::Plan& plan, Index task) : plan_(plan), last_(static_cast<std::size_t>(plan.rank - 1)) {
    for (std::size_t a = 0; a <= last_; ++a) {
      cells_[a] = held_[a] = {0, plan.axes[a].in};
      windows_[a] = {0, plan.axes[a].out};
    }
    const PooledAxis& adjoint = plan.adjoint[0];
    if (adjoint.blocks > 1) {
      const Index begin = task % adjoint.blocks * adjoint.outputs_per_block;
      held_[0] = {begin, HWY_MIN(adjoint.out, begin + adjoint.outputs_per_block)};
      windows_[0] = plan::positions_of(adjoint, held_[0].begin, held_[0].end);
      cells_[0] = plan::positions_of(plan.axes[0], windows_[0].begin, windows_[0].end);
      if (cells_[0].size() == 0) cells_[0] = held_[0];
      cells_[0] = {HWY_MIN(cells_[0].begin, held_[0].begin), HWY_MAX(cells_[0].end, held_[0].end)};
    }
    SetLanes(task / adjoint.blocks);
  }

  void SetLanes(Index group) {
    const plan::LaneBox& box = plan_.lanes;
    lanes_ = Lanes::OfGroup(plan_, lanes_each, group);
    lanes_.Offsets(box, plan_.inputs[0], x_offsets_);
    lanes_.Offsets(box, plan_.inputs[1], gy_offsets_);
    lanes_.Offsets(box, plan_.outputs[0], gx_offsets_);
  }

  // Rows of the last axis in a box, and where one of them is.
  [[nodiscard]] Index Rows(const Ranges& box) const {
    Index rows = 1;
    for (std::size_t a = 0; a < last_; ++a) rows *= box[a].size();
    return rows;
  }
  [[nodiscard]] std::array<Index, max_rank> RowAt(const Ranges& box, Index row) const {
    std::array<Index, max_rank> at{};
    at[last_] = box[last_].begin;
    for (std::size_t a = last_; a-- > 0;) {
      at[a] = box[a].begin + row % box[a].size();
      row /= box[a].size();
    }
    return at;
  }
  [[nodiscard]] Index Offset(const plan::Operand& operand, const std::array<Index, max_rank>& at) const {
    Index offset = 0;
    for (std::size_t a = 0; a <= last_; ++a) offset += at[a] * operand.pooled[a];
    return offset;
  }

  void Work() {
    const bool rows = plan_.rows;
    const Index columns = cells_[last_].size();
    lanes_each_ = rows ? (columns + lanes_each - 1) / lanes_each * lanes_each : lanes_.width;
    if (rows && lanes_each_ % 64 == 0) lanes_each_ += lanes_each;  // rows must not meet in the cache's sets
    line_cells_ = rows ? 1 : columns;
    held_cells_ = rows ? 1 : held_[last_].size();
    line_ = line_cells_ * S::parts * lanes_each_;
    held_line_ = held_cells_ * A::parts * lanes_each_;
    const Index outputs = windows_[last_].size();
    const Index inner_lanes = rows ? lanes_each : lanes_.width;  // around the last axis

    // The largest arrays between passes.
    Index forward = 0;
    Index backward = Rows(windows_) * held_line_;
    Index scan = 0;
    for (std::size_t a = 0; a <= last_; ++a) {
      Ranges box = cells_;
      for (std::size_t b = 0; b <= a; ++b) box[b] = windows_[b];
      if (a < last_) forward = HWY_MAX(forward, Rows(box) * line_);
      box = held_;
      for (std::size_t b = 0; b < a; ++b) box[b] = windows_[b];
      backward = HWY_MAX(backward, Rows(box) * held_line_);
      scan = HWY_MAX(scan, ScanScratch<S>(plan_.axes[a].block));
      scan = HWY_MAX(scan, ScanScratch<A>(plan_.adjoint[a].block));
    }
    plan::Scratch scratch;
    const Index widest = HWY_MAX(HWY_MAX(columns, outputs) * inner_lanes, lanes_each_);
    const auto raw = scratch.Ask<Raw>(widest);
    const auto terms = scratch.Ask<double>(Rows(cells_) * line_);
    const auto one = scratch.Ask<double>(forward);
    const auto two = scratch.Ask<double>(last_ > 1 ? forward : 0);
    const auto back = scratch.Ask<double>(backward);
    const auto other = scratch.Ask<double>(last_ > 0 ? backward : 0);
    const auto scanned = scratch.Ask<double>(scan);
    const auto row = scratch.Ask<double>(rows ? columns * S::parts * inner_lanes : 0);
    const auto sums = scratch.Ask<double>(outputs * S::parts * inner_lanes);
    const auto shares = scratch.Ask<double>(outputs * A::parts * inner_lanes);
    const auto arrived = scratch.Ask<double>(rows ? columns * A::parts * inner_lanes : 0);
    scratch.Take();
    raw_ = scratch.At(raw);
    scan_ = scratch.At(scanned);

    for (Index r = 0; r < Rows(cells_); ++r) {
      LoadLine(r);
      S::Lift(plan_.formula, raw_, scratch.At(terms) + r * line_, line_cells_, lanes_each_);
    }
    if (!pairs && Exceeds()) return;

    const double* from = scratch.At(terms);
    double* to = scratch.At(one);
    Ranges box = cells_;
    for (std::size_t a = 0; a < last_; ++a) {
      const Index below = Below(box, a);
      const PassShape shape = Shape(plan_.axes[a], windows_[a], cells_[a], below * line_, below * line_cells_);
      for (Index u = 0; u < Above(box, a); ++u)
        Pass<S, false>(shape, from + u * cells_[a].size() * below * line_, to + u * windows_[a].size() * below * line_,
                       scan_);
      box[a] = windows_[a];
      from = to;
      to = a % 2 == 0 ? scratch.At(two) : scratch.At(one);
    }

    const PassShape ahead = Inner(plan_.axes[last_], windows_[last_], cells_[last_], inner_lanes, S::parts);
    const PassShape behind = Inner(plan_.adjoint[last_], held_[last_], windows_[last_], inner_lanes, A::parts);
    double* result = scratch.At(back);
    const Index count = Rows(windows_);
    for (Index r = 0; r < count; r += rows ? lanes_each : 1) {
      if (!rows) {
        Pass<S, false>(ahead, from + r * line_, scratch.At(sums), scan_);
      } else {
        for (Index part = 0; part < S::parts; ++part)
          for (Index l = 0; l < lanes_each; l += step) {
            const double* pointers[step];
            for (Index i = 0; i < step; ++i)  // surplus rows repeat the last one
              pointers[i] = from + HWY_MIN(r + l + i, count - 1) * line_ + part * lanes_each_;
            LoadTransposed<double>(pointers, columns, scratch.At(row) + part * lanes_each + l, S::parts * lanes_each);
          }
        Pass<S, false>(ahead, scratch.At(row), scratch.At(sums), scan_);
      }
      LoadGradients(r, count);
      Share(scratch.At(sums), outputs, inner_lanes, scratch.At(shares));
      if (!rows) {
        Pass<A, false>(behind, scratch.At(shares), result + r * held_line_, scan_);
      } else {
        Pass<A, false>(behind, scratch.At(shares), scratch.At(arrived), scan_);
        for (Index part = 0; part < A::parts; ++part)
          for (Index l = 0; l < lanes_each; l += step) {
            double* pointers[step];
            for (Index i = 0; i < step; ++i)
              pointers[i] = result + HWY_MIN(r + l + i, count - 1) * held_line_ + part * lanes_each_;
            StoreTransposed<double>(scratch.At(arrived) + part * lanes_each + l, A::parts * lanes_each, columns,
                                    pointers);
          }
      }
    }
    if (!pairs && Exceeds()) return;

    box = windows_;
    double* next = scratch.At(other);
    for (std::size_t a = last_; a-- > 0;) {
      const Index below = Below(box, a);
      const PassShape shape = Shape(plan_.adjoint[a], held_[a], windows_[a], below * held_line_, below * held_cells_);
      for (Index u = 0; u < Above(box, a); ++u)
        Pass<A, false>(shape, result + u * windows_[a].size() * below * held_line_,
                       next + u * held_[a].size() * below * held_line_, scan_);
      box[a] = held_[a];
      std::swap(result, next);
    }
    Emit(scratch.At(terms), result);
  }

  // Rows of a box per position of axis a, and how many such groups there are.
  [[nodiscard]] Index Below(const Ranges& box, std::size_t a) const {
    Index rows = 1;
    for (std::size_t b = a + 1; b < last_; ++b) rows *= box[b].size();
    return rows;
  }
  [[nodiscard]] Index Above(const Ranges& box, std::size_t a) const {
    Index rows = 1;
    for (std::size_t b = 0; b < a; ++b) rows *= box[b].size();
    return rows;
  }
  [[nodiscard]] PassShape Shape(const PooledAxis& axis, const Range& outputs, const Range& positions, Index pitch,
                                Index cells) const {
    return {&axis, outputs.begin, outputs.end, positions.begin, positions.end,
            pitch, pitch,         cells,       lanes_each_,     lanes_each_,
            1};
  }
  [[nodiscard]] static PassShape Inner(const PooledAxis& axis, const Range& outputs, const Range& positions,
                                       Index lanes, Index parts) {
    return {&axis,
            outputs.begin,
            outputs.end,
            positions.begin,
            positions.end,
            parts * lanes,
            parts * lanes,
            1,
            lanes,
            lanes,
            1};
  }

  // A row of x from cells_[last_] on.
  void LoadLine(Index r) {
    const plan::Operand& x = plan_.inputs[0];
    const Index stride = x.pooled[last_];
    const Index columns = cells_[last_].size();
    const Index offset = Offset(x, RowAt(cells_, r));
    if (!plan_.rows) return LoadRow<Raw>(x, stride, x_offsets_, offset, columns, lanes_.width, raw_, lanes_.width);
    const Raw* from = static_cast<const Raw*>(x.data) + x_offsets_[0] + offset;
    if (stride == 1)
      std::memcpy(raw_, from, static_cast<std::size_t>(columns) * sizeof(Raw));
    else
      for (Index c = 0; c < columns; ++c) raw_[c] = from[c * stride];
    std::memset(raw_ + columns, 0, static_cast<std::size_t>(lanes_each_ - columns) * sizeof(Raw));
  }

  // Gradients of row r of the outputs, or of rows r, r + 1, ...; and the taps that their windows have.
  void LoadGradients(Index r, Index count) {
    const plan::Operand& gy = plan_.inputs[1];
    const Index stride = gy.pooled[last_];
    const Index columns = windows_[last_].size();
    const Index lanes = plan_.rows ? lanes_each : lanes_.width;
    std::array<Index, max_rank> at{};
    for (Index l = 0; l < lanes; ++l) {
      if (l == 0 || (plan_.rows && r + l < count)) {
        at = RowAt(windows_, r + l);
        real_[l] = padded_[l] = 1;
        for (std::size_t a = 0; a < last_; ++a) {
          real_[l] *= static_cast<double>(plan_.axes[a].taps[at[a]].count);
          padded_[l] *= static_cast<double>(plan_.axes[a].taps[at[a]].padded);
        }
        if (!plan_.rows) LoadRow<Raw>(gy, stride, gy_offsets_, Offset(gy, at), columns, lanes, raw_, lanes);
      } else {
        real_[l] = real_[l - 1];
        padded_[l] = padded_[l - 1];
      }
      if (!plan_.rows) continue;
      sources_[l] = static_cast<const Raw*>(gy.data) + gy_offsets_[0] + Offset(gy, at);
    }
    if (!plan_.rows) return;
    if (stride == 1)
      LoadTransposed<Raw>(sources_, columns, raw_, lanes_each);
    else
      for (Index c = 0; c < columns; ++c)
        for (Index l = 0; l < lanes_each; ++l) raw_[c * lanes_each + l] = sources_[l][c * stride];
  }

  void Share(const double* sums, Index columns, Index lanes, double* to) {
    switch (KindOf(plan_.formula)) {
      case Kind::smooth: return ShareAs<Kind::smooth>(sums, columns, lanes, to);
      case Kind::products:
      case Kind::powers: return ShareAs<Kind::powers>(sums, columns, lanes, to);
      case Kind::magnitudes: return ShareAs<Kind::magnitudes>(sums, columns, lanes, to);
      case Kind::squares: return ShareAs<Kind::squares>(sums, columns, lanes, to);
    }
  }

  // What a window gives to each of its cells, to be multiplied by the cell's term: gradient / sum, or, for Lp,
  // gradient * y^(1-p).
  template <Kind kind>
  HWY_NOINLINE void ShareAs(const double* HWY_RESTRICT sums, Index columns, Index lanes, double* HWY_RESTRICT to) {
    const DD d;
    const VD p = hn::Set(d, plan_.formula.p);
    const VD zero = hn::Zero(d);
    const double limit = !S::precise ? double{std::numeric_limits<float>::max()} : (pairs ? pair_high : plain_high);
    const double low = S::precise && !pairs ? plain_low : 0;
    MD fine = hn::Eq(zero, zero);
    for (Index column = 0; column < columns; ++column) {
      const Taps& taps = plan_.axes[last_].taps[windows_[last_].begin + column];
      for (Index l = 0; l < lanes; l += step) {
        WindowSum<S> sum;
        sum.Load(sums + column * S::parts * lanes + l, lanes);
        if (kind == Kind::smooth && plan_.formula.zeros)
          sum.AddZeros(hn::Sub(hn::Mul(hn::LoadU(d, padded_ + l), hn::Set(d, static_cast<double>(taps.padded))),
                               hn::Mul(hn::LoadU(d, real_ + l), hn::Set(d, static_cast<double>(taps.count)))));
        const VD gy = LoadWide<T>(d, raw_ + column * lanes + l);
        const MD good = Within(gy, low, limit);
        VD m = zero;
        VD h = gy;
        if constexpr (kind == Kind::smooth) {
          m = hn::Neg(sum.n);
          h = hn::Div(gy, sum.Total());
        } else if constexpr (kind == Kind::squares && !S::precise) {
          h = hn::Div(gy, hn::Sqrt(sum.f));
        } else if constexpr (kind != Kind::magnitudes) {
          VD g;
          if constexpr (S::precise)
            InverseLpPairPrecise(d, sum.n, sum.f, sum.c, p, m, g);
          else
            InverseLpPair(d, sum.n, sum.f, p, m, g);
          h = hn::Mul(gy, g);
          if constexpr (!pairs) h = hn::Mul(h, math::PowerOfTwo(d, math::Clamp(d, m, -1000, 1000)));
        }
        const MD nothing = hn::Eq(sum.f, zero);  // no tap, or only zeros (S5, L3)
        h = hn::IfThenZeroElse(nothing, h);
        double* out = to + column * A::parts * lanes + l;
        const MD odd = hn::Or(hn::Not(good), hn::IsNaN(sum.f));
        h = hn::IfThenElse(odd, hn::Set(d, no_number), h);
        if constexpr (pairs) {
          m = hn::IfThenElse(nothing, hn::Set(d, zero_exponent), m);
          hn::StoreU(hn::IfThenZeroElse(odd, m), d, out);
        } else if constexpr (S::precise) {
          fine = hn::And(fine, good);  // pairs carry more
        }
        hn::StoreU(h, d, out + A::at_f * lanes);
      }
    }
    if (!hn::AllTrue(d, fine)) Exceeds() = true;
  }

  // gx = term * what arrived, row by row.
  void Emit(const double* terms, const double* arrived) {
    const plan::Operand& gx = plan_.outputs[0];
    const Index columns = held_[last_].size();
    const Index rows = Rows(held_);
    const Index skip_rows = (held_[0].begin - cells_[0].begin) * (last_ > 0 ? Below(cells_, 0) : 0);
    const Index skip_cells = plan_.rows ? 0 : held_[last_].begin - cells_[last_].begin;
    bool odd = false;
    for (Index r = 0; r < rows; ++r) {
      const double* own = terms + (skip_rows + r) * line_ + skip_cells * S::parts * lanes_each_;
      const double* from = arrived + r * held_line_;
      switch (KindOf(plan_.formula)) {
        case Kind::smooth: odd |= Multiply<false>(own, from); break;
        default:
          LoadLine(skip_rows + r);
          std::memmove(raw_, raw_ + skip_cells * lanes_each_,
                       static_cast<std::size_t>(held_cells_ * lanes_each_) * sizeof(Raw));
          odd |= Multiply<true>(own, from);
      }
      const Index offset = Offset(gx, RowAt(held_, r));
      const Index stride = gx.pooled[last_];
      if (!plan_.rows) {
        StoreRow<Raw>(gx, stride, gx_offsets_, offset, columns, lanes_, raw_, lanes_.width);
        continue;
      }
      Raw* to = static_cast<Raw*>(gx.data) + gx_offsets_[0] + offset;
      if (stride == 1)
        std::memcpy(to, raw_, static_cast<std::size_t>(columns) * sizeof(Raw));
      else
        for (Index c = 0; c < columns; ++c) to[c * stride] = raw_[c];
    }
    if (odd) plan_.odd->store(true, std::memory_order_relaxed);
  }

  // One row of results in place of the row of x; for Lp the term is divided by x. True if a result is NaN.
  template <bool divide>
  HWY_NOINLINE bool Multiply(const double* HWY_RESTRICT terms, const double* HWY_RESTRICT arrived) {
    const DD d;
    const VD zero = hn::Zero(d);
    MD odd = hn::Gt(zero, zero);
    for (Index cell = 0; cell < held_cells_; ++cell)
      for (Index l = 0; l < lanes_each_; l += step) {
        const double* own = terms + cell * S::parts * lanes_each_ + l;
        const double* from = arrived + cell * A::parts * lanes_each_ + l;
        Raw* to = raw_ + cell * lanes_each_ + l;
        VD f = hn::LoadU(d, own + S::at_f * lanes_each_);
        const VD g = hn::LoadU(d, from + A::at_f * lanes_each_);
        VD exponent = zero;
        if constexpr (pairs) exponent = hn::Add(hn::LoadU(d, own), hn::LoadU(d, from));
        if constexpr (divide) {
          const VD x = LoadWide<T>(d, to);
          const MD none = hn::Eq(x, zero);
          if constexpr (pairs && S::precise) {  // the quotient may be out of range where the product is not
            VD k;
            VD m;
            math::SplitAnyExponent(d, hn::Abs(x), k, m);
            f = hn::CopySign(hn::Div(f, m), x);
            exponent = hn::Sub(exponent, k);
          } else {
            f = hn::Div(f, x);
          }
          f = hn::IfThenZeroElse(none, f);
        }
        VD product = hn::Mul(f, g);
        if constexpr (pairs) product = ScalePair(d, product, exponent);
        product = hn::Add(product, zero);  // no -0 from cells that no window holds
        odd = hn::Or(odd, hn::IsNaN(product));
        StoreRounded<T>(product, to);
      }
    return !hn::AllFalse(d, odd);
  }

  const plan::Plan& plan_;
  std::size_t last_;
  Ranges cells_{}, windows_{}, held_{};  // x read, outputs, and gx written by this task
  Lanes lanes_{};
  Index lanes_each_ = 0, line_cells_ = 0, held_cells_ = 0, line_ = 0, held_line_ = 0;
  Raw* raw_ = nullptr;
  double* scan_ = nullptr;
  double real_[lanes_each] = {}, padded_[lanes_each] = {};  // taps along the axes before the last
  const Raw* sources_[lanes_each] = {};
  Index x_offsets_[lanes_each] = {}, gy_offsets_[lanes_each] = {}, gx_offsets_[lanes_each] = {};
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
