// A whole array from a file, in memory or where it lies, as the library's views.
#pragma once

#include <string>

#include "arguments.hpp"
#include "convert.hpp"
#include "files/open.hpp"
#include "parts.hpp"

namespace cenote::cli {

class Loaded {
 public:
  // Arrays of more than so many elements are refused.
  Loaded(const std::string& path, Index most)
      : name_(path == "-" ? "standard input" : path), source_(open_source(path, {})) {
    if (header().elements() > most)
      throw FileError(name_ + ": has " + std::to_string(header().elements()) + " elements; at most " +
                      std::to_string(most) + " are legal here");
    data_ = source_->in_place();
    if (data_ != nullptr) return;
    owned_.resize(static_cast<std::size_t>(header().elements() * size_of(header().type)));
    source_->read(owned_.data(), header().elements());
    data_ = owned_.data();
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Header& header() const { return source_->header(); }
  template <class T>
  [[nodiscard]] View<const T> view() const {
    return {reinterpret_cast<const T*>(data_), header().dims, strides_of(header().dims, header().fortran)};
  }
  // All elements as another type, row-major.
  template <class T>
  [[nodiscard]] Tensor<T> as(Element type) const {
    Tensor<T> stored(header().dims);
    convert(header().type, data_, type, reinterpret_cast<std::byte*>(stored.data().data()), header().elements());
    if (!header().fortran) return stored;
    Tensor<T> out(header().dims);
    copy_elements(View<const T>(stored.data().data(), header().dims, strides_of(header().dims, true)), out.view());
    return out;
  }

 private:
  std::string name_;
  std::unique_ptr<Source> source_;
  const std::byte* data_ = nullptr;
  std::vector<std::byte> owned_;
};

}  // namespace cenote::cli
