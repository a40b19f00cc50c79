// Pools an array of any size from a source into a sink, part by part, in bounded memory.
#pragma once

#include <functional>
#include <optional>

#include "arguments.hpp"
#include "cenote/geometry.hpp"

namespace cenote::cli {

struct StreamOptions {
  std::string input;   // the name of what is read, for messages
  Element computed{};  // the type that the operator works in
  Element stored{};    // the type of the result
  Index memory = 0;
  bool picture = false;  // is read or written, which takes longer than pooling
  Execution execution{};
  std::function<void(double)> progress;  // the share that is done, from 0 to 1
};

// What the operator took, conversions of its numbers included, and what the files took.
struct StreamTimes {
  double reading = 0, pooling = 0, writing = 0;
};

// The type in which an operator works on elements of a type: the type itself; real numbers where it needs them; and the
// type of the result where that was asked for and holds every element, so that sums and averages are not cut short.
Element computing_type(const Operator& op, Element element, std::optional<Element> wanted);

StreamTimes pool_stream(Source& source, const Operator& op, const Geometry& g, Sink& sink,
                        const StreamOptions& options);

}  // namespace cenote::cli
