// `cenote pool`: an array or a picture from a file into a file.
#include <cstdio>
#include <optional>

#include "arguments.hpp"
#include "cenote/geometry.hpp"
#include "files/aside.hpp"
#include "files/clock.hpp"
#include "files/open.hpp"
#include "stream.hpp"
#include "terminal.hpp"

namespace cenote::cli {

int pool(const PoolArguments& a) {
  const Operator op = make_operator(a.op, a.windows.global);
  const bool bf16 = a.dtype == Element::bf16;
  const auto source = open_source(a.input, {.memory = a.run.memory, .raw_pairs_are_bf16 = bf16});
  Header header = source->header();
  if (a.windows.channels_last && header.dims.rank > 0) header.channels = true;
  const std::string name = a.input == "-" ? "standard input" : a.input;
  const Geometry g = make_geometry(a.windows, header, name);

  const Element computed = computing_type(op, header.type, a.dtype);
  const Format format = format_for(a.output, a.format, a.output == "-" ? Format::npy : header.format);
  // Pictures stay pictures of their kind; everything else keeps the numbers as they were computed.
  Element stored = computed;
  if (format != Format::npy && is_integer(header.type)) stored = header.type;
  if (a.dtype) stored = *a.dtype;

  if (header.truth && op.index() > 1 && !a.dtype)
    throw FileError(name +
                    ": holds truth values, of which max and min are legal; with --dtype, as in f32, any operator");

  Header result = header;
  result.truth = header.truth && !a.dtype && format == Format::npy;
  result.type = stored;
  result.dims = g.out();
  if (g.out().rank != g.rank()) result.picture = result.channels = false;  // axes were dropped
  const auto sink = open_sink(a.output, format, result);

  const Execution execution = make_execution(a.run);
  if (a.run.verbose) std::fprintf(stderr, "%s, %s\n", describe(g).c_str(), std::string(name_of(computed)).c_str());
  StreamTimes times;
  Clock clock;
  // Codecs take longer than pooling, so each has a thread of its own; arrays that are copied as they lie need none.
  const bool alone = (execution.threads > 0 ? execution.threads : num_threads()) == 1;
  std::optional<ReadAhead> ahead;
  if (!alone && header.format != Format::npy) ahead.emplace(*source, a.run.memory);
  std::optional<WriteBehind> behind;
  if (!alone && format != Format::npy) behind.emplace(*sink, stored, a.run.memory);
  {
    Progress progress(!a.run.quiet, header.elements() * size_of(header.type));
    times = pool_stream(ahead ? *ahead : *source, op, g, behind ? *behind : *sink,
                        {.input = name,
                         .computed = computed,
                         .stored = stored,
                         .memory = a.run.memory,
                         .picture = header.format != Format::npy || format != Format::npy,
                         .execution = execution,
                         .progress = [&](double share) { progress.at(share); }});
  }
  if (ahead) times.reading = ahead->finish();
  if (behind)
    behind->finish();
  else
    sink->finish();
  if (behind) times.writing = behind->seconds();
  if (a.run.verbose)
    std::fprintf(stderr, "read %.3f s, pool %.3f s, write %.3f s: %.3f s%s\n", times.reading, times.pooling,
                 times.writing, clock.lap(), ahead || behind ? ", side by side" : "");
  return 0;
}

}  // namespace cenote::cli
