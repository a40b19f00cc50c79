// A contact sheet: pictures beside each other with a line of text under each, as one PNG.
#pragma once

#include <string>
#include <vector>

#include "cenote/view.hpp"

namespace cenote::cli {

struct Labelled {
  std::string label;
  Tensor<std::uint8_t> picture;  // rows x columns x 3
};

// Two to a row. Smaller pictures are enlarged, cell by cell, to the size of the first.
Tensor<std::uint8_t> contact_sheet(const std::vector<Labelled>& pictures);

}  // namespace cenote::cli
