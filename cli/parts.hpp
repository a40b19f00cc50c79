// A pooling cut into parts that fit in memory: boxes of outputs, the boxes of input that they need, and the geometry
// between the two. A part's windows have the taps that they have in the whole, so its results have the same bits.
#pragma once

#include <functional>

#include "cenote/geometry.hpp"

namespace cenote::cli {

// The same pooling with pooled axes kept: what files store is the same either way.
Geometry with_axes_kept(const Geometry& g);

struct Part {
  Dims out_begin, out_size;
  Dims in_begin, in_size;
  Geometry geometry;
};

// How the outputs are cut: axes before `axis` (in storage order) are taken index by index, `axis` itself by `step`
// outputs at a time, axes behind it whole.
struct Cut {
  int level = 0;  // position of the axis in storage order
  Index step = 1;
  Index bytes = 0;  // that the largest part takes
};

struct CutOptions {
  bool fortran = false;   // storage order: the last axis outermost
  Index input_bytes = 1;  // per element, while a part is worked on
  Index output_bytes = 1;
  Index memory = 0;       // what a part should fit in
  Index comfortable = 0;  // larger parts are of no use
  bool in_order = false;  // input comes once, in storage order: axes before `axis` may not be pooled
};

// The axis at a position of the storage order, outermost first.
inline int axis_at(const Geometry& g, int level, bool fortran) { return fortran ? g.rank() - 1 - level : level; }

Cut choose_cut(const Geometry& g, const CutOptions& options);

// All parts, in the storage order of their outputs.
void for_each_part(const Geometry& g, const Cut& cut, bool fortran, const std::function<void(const Part&)>& visit);

// Strides, in elements, of an array of these sizes in storage order.
Dims strides_of(const Dims& dims, bool fortran);

}  // namespace cenote::cli
