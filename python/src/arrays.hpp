// Python's arrays as views of the library: numpy arrays, anything with DLPack or a buffer, and new numpy arrays for
// results. Nothing is ever copied here, and nothing here knows what pooling is.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>
#include <type_traits>

#include "cenote/scalar.hpp"
#include "cenote/view.hpp"

namespace cenote::python {

namespace nb = nanobind;

// The element types, in the order of the library's one list.
enum class Type : std::uint8_t {
#define CENOTE_TYPE(name, type) name,
  CENOTE_MACHINE_SCALARS(CENOTE_TYPE)
#undef CENOTE_TYPE
};
inline constexpr int types = 0
#define CENOTE_TYPE(name, type) +1  // NOLINT(bugprone-macro-parentheses): a term of the sum
    CENOTE_MACHINE_SCALARS(CENOTE_TYPE)
#undef CENOTE_TYPE
    ;

// What a tuple that stands for an array names its type by: this and the type's place in the list.
inline constexpr long first_type_number = 1L << 41;

template <class T>
inline constexpr Type type_of{};
#define CENOTE_TYPE(name, type) \
  template <>                   \
  inline constexpr Type type_of<type> = Type::name;
CENOTE_MACHINE_SCALARS(CENOTE_TYPE)
#undef CENOTE_TYPE

// numpy's name: "float32".
const char* name_of(Type type);

// Calls use(std::type_identity<T>{}) for the scalar T of `type`.
template <class F>
decltype(auto) with_scalar(Type type, F&& use) {
  switch (type) {
#define CENOTE_TYPE(name, type) \
  case Type::name: return use(std::type_identity<type>{});
    CENOTE_MACHINE_SCALARS(CENOTE_TYPE)
#undef CENOTE_TYPE
  }
  __builtin_unreachable();
}

// Where in a call an array stands, for messages: "max_pool: x is ...".
struct Place {
  std::string_view caller;
  const char* argument;
};

// Somebody's memory. `owner` keeps it alive; of results it is the numpy array.
struct Array {
  void* data = nullptr;
  Dims dims, strides;  // strides in elements
  Type type{};
  nb::object owner;
  nb::handle tensor;          // of PyTorch's, if exchange_array read it
  bool other_format = false;  // its channels lie closer than its columns: perhaps channels_last

  template <class T>
  [[nodiscard]] View<const T> read() const {
    return {static_cast<const T*>(data), dims, strides};
  }
  template <class T>
  [[nodiscard]] View<T> write() const {
    return {static_cast<T*>(data), dims, strides};
  }
};

// Both accept numpy arrays, objects with __dlpack__, objects with a buffer, and from the package's own modules what
// costs the least: (tensor, any type's number), which exchange_array reads, and (address, shape, strides, type) with
// strides in elements. TypeError says what is wrong with anything else.
Array read_array(nb::handle object, const Place& place);
Array write_array(nb::handle object, const Place& place);

// A tensor of PyTorch's on the CPU, through the C table that DLPack has for this where its type has one: in
// nanoseconds, and without asking whether it should be read (gradients), which is then the caller's business.
Array exchange_array(nb::handle tensor, const Place& place);

// What a pair of it and a type's number holds, or nothing: only the package's own modules write such pairs.
nb::handle marked(nb::handle object);

// A new row-major numpy array, not initialised.
Array new_array(const Dims& dims, Type type, std::string_view caller);

// Asks the system for large pages under a new array that is worth them, as numpy does for its own: memory that is
// written for the first time then costs a fraction. For tensors; their library does not ask.
void prefer_large_pages(void* data, std::size_t bytes);
std::size_t bytes_of(const Array& array);

// A read-only numpy array of memory that `owner` keeps.
nb::object borrowed(const void* data, const Dims& dims, Type type, nb::handle owner);

// The element type of a numpy dtype; TypeError if it is none of the library's.
Type type_of_dtype(nb::handle dtype, const Place& place);

// TypeError unless both have one element type.
void check_same_type(const Array& x, const Array& other, const Place& place, const char* x_name);

// numpy's C interface; before anything else of this header.
void start_numpy();

}  // namespace cenote::python
