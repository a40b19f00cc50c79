// How an array stands in a picture format: pages, rows, columns, channels.
#pragma once

#include "files/array.hpp"

namespace cenote::cli {

struct PictureShape {
  Index pages = 1, rows = 1, columns = 1, channels = 1;
};

// The shape as a picture. An array that did not come from one is rows x columns, with a last axis of 1 to 4 as channels
// and any other third axis in front as pages.
inline PictureShape picture_shape(const std::string& file, const char* format, const Header& header) {
  const Dims& dims = header.dims;
  const bool known = header.picture || header.channels;
  const bool channels = known ? header.channels : dims.rank == 4 || (dims.rank == 3 && dims[2] >= 1 && dims[2] <= 4);
  const int space = dims.rank - (channels ? 1 : 0);
  if (space < 2 || space > 3)
    throw FileError(file + ": " + format +
                    " holds rows x columns, with pages before and channels behind them; the result is " +
                    to_string(dims));
  if (header.fortran)
    throw FileError(file + ": " + format + " holds rows one after another; the result is in Fortran order");
  PictureShape out;
  if (space == 3) out.pages = dims[0];
  out.rows = dims[space - 2];
  out.columns = dims[space - 1];
  if (channels) out.channels = dims[space];
  return out;
}

}  // namespace cenote::cli
