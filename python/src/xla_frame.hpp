// What XLA hands to a foreign function, as the library's values: buffers, attributes, and errors on the way back. Only
// XLA's C interface is used, whose header stands in third_party/: the package builds without jax.
#pragma once

#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>

#include "arrays.hpp"
#include "xla/ffi/api/c_api.h"

namespace cenote::python {

// The element type of a buffer.
inline Type element_type(const XLA_FFI_Buffer& buffer) {
  switch (buffer.dtype) {
    case XLA_FFI_DataType_F64: return Type::f64;
    case XLA_FFI_DataType_F32: return Type::f32;
    case XLA_FFI_DataType_F16: return Type::f16;
    case XLA_FFI_DataType_BF16: return Type::bf16;
    case XLA_FFI_DataType_S8: return Type::i8;
    case XLA_FFI_DataType_S16: return Type::i16;
    case XLA_FFI_DataType_S32: return Type::i32;
    case XLA_FFI_DataType_S64: return Type::i64;
    case XLA_FFI_DataType_U8: return Type::u8;
    case XLA_FFI_DataType_U16: return Type::u16;
    case XLA_FFI_DataType_U32: return Type::u32;
    case XLA_FFI_DataType_U64: return Type::u64;
    default: throw std::invalid_argument("a buffer has an element type of XLA that cenote does not have");
  }
}

inline Dims dims_of(const XLA_FFI_Buffer& buffer) {
  if (buffer.rank > max_rank) throw std::invalid_argument("a buffer has more axes than cenote supports");
  Dims dims;
  for (std::int64_t a = 0; a < buffer.rank; ++a) dims.push_back(buffer.dims[a]);
  return dims;
}

// One call. Buffers are row-major; XLA sees to that.
class XlaFrame {
 public:
  explicit XlaFrame(const XLA_FFI_CallFrame& frame) : frame_(frame) {}

  [[nodiscard]] Index arguments() const { return frame_.args.size; }
  [[nodiscard]] const XLA_FFI_Buffer& argument(Index i) const {
    if (i >= frame_.args.size) throw std::invalid_argument("too few arguments");
    return *static_cast<const XLA_FFI_Buffer*>(frame_.args.args[i]);
  }
  [[nodiscard]] const XLA_FFI_Buffer& result(Index i) const {
    if (i >= frame_.rets.size) throw std::invalid_argument("too few results");
    return *static_cast<const XLA_FFI_Buffer*>(frame_.rets.rets[i]);
  }
  template <class T>
  [[nodiscard]] View<const T> read(Index i) const {
    const XLA_FFI_Buffer& buffer = argument(i);
    check<T>(buffer);
    return {static_cast<const T*>(buffer.data), dims_of(buffer), row_major(dims_of(buffer))};
  }
  template <class T>
  [[nodiscard]] View<T> write(Index i) const {
    const XLA_FFI_Buffer& buffer = result(i);
    check<T>(buffer);
    prefer_large_pages(buffer.data, static_cast<std::size_t>(volume(dims_of(buffer))) * sizeof(T));
    return {static_cast<T*>(buffer.data), dims_of(buffer), row_major(dims_of(buffer))};
  }

  // Attributes by name.
  [[nodiscard]] std::string_view text(std::string_view name) const {
    const auto& span = *static_cast<const XLA_FFI_ByteSpan*>(attribute(name, XLA_FFI_AttrType_STRING));
    return {span.ptr, span.len};
  }
  void get(std::string_view name, Index& to) const { to = scalar<Index>(name, XLA_FFI_DataType_S64); }
  void get(std::string_view name, double& to) const { to = scalar<double>(name, XLA_FFI_DataType_F64); }
  void get(std::string_view name, Dims& to) const {
    const auto& array = *static_cast<const XLA_FFI_Array*>(attribute(name, XLA_FFI_AttrType_ARRAY));
    if (array.dtype != XLA_FFI_DataType_S64) refuse(name);
    to = {};
    for (std::size_t i = 0; i < array.size; ++i) to.push_back(static_cast<const std::int64_t*>(array.data)[i]);
  }

 private:
  [[noreturn]] static void refuse(std::string_view name) {
    throw std::invalid_argument("the attribute `" + std::string(name) + "` is missing or of another type");
  }
  template <class T>
  static void check(const XLA_FFI_Buffer& buffer) {
    if (element_type(buffer) != type_of<T>) throw std::invalid_argument("buffers have different element types");
  }
  [[nodiscard]] const void* attribute(std::string_view name, XLA_FFI_AttrType type) const {
    const XLA_FFI_Attrs& all = frame_.attrs;
    for (std::int64_t i = 0; i < all.size; ++i)
      if (name == std::string_view(all.names[i]->ptr, all.names[i]->len)) {
        if (all.types[i] != type) break;
        return all.attrs[i];
      }
    refuse(name);
  }
  template <class T>
  [[nodiscard]] T scalar(std::string_view name, XLA_FFI_DataType type) const {
    const auto& value = *static_cast<const XLA_FFI_Scalar*>(attribute(name, XLA_FFI_AttrType_SCALAR));
    if (value.dtype != type) refuse(name);
    return *static_cast<const T*>(value.value);
  }

  const XLA_FFI_CallFrame& frame_;
};

// The version of XLA's interface that handlers say they are made for. Runtimes before 0.2 want to hear their own; what
// is used here has been the same since 0.1.
inline std::atomic<int> xla_minor_version = XLA_FFI_API_MINOR;

// A function of a frame as XLA calls it: it answers the question for its version, and exceptions become errors.
template <void (*run)(const XlaFrame&)>
XLA_FFI_Error* xla_handler(XLA_FFI_CallFrame* frame) {
  if (frame->extension_start != nullptr && frame->extension_start->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata& metadata = *reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start)->metadata;
    metadata.api_version.major_version = XLA_FFI_API_MAJOR;
    metadata.api_version.minor_version = xla_minor_version;
    metadata.traits = 0;
    return nullptr;
  }
  const auto error = [&](XLA_FFI_Error_Code code, const char* message) {
    XLA_FFI_Error_Create_Args args{XLA_FFI_Error_Create_Args_STRUCT_SIZE, nullptr, message, code};
    return frame->api->XLA_FFI_Error_Create(&args);
  };
  try {
    run(XlaFrame(*frame));
    return nullptr;
  } catch (const std::bad_alloc&) {
    return error(XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "cenote: not enough memory");
  } catch (const std::exception& problem) {
    return error(XLA_FFI_Error_Code_INVALID_ARGUMENT, problem.what());
  }
}

}  // namespace cenote::python
