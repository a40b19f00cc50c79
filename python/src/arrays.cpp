#include "arrays.hpp"

#include <nanobind/ndarray.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace cenote::python {
namespace {

struct TypeInfo {
  const char* name;
  char kind;  // numpy's: f, i, u; V for what it has through ml_dtypes
  int bytes;
  int number;  // numpy's, of the type without a byte order; -1 for what it has through ml_dtypes
};
constexpr std::array<TypeInfo, types> infos{{{"float64", 'f', 8, NPY_FLOAT64},
                                             {"float32", 'f', 4, NPY_FLOAT32},
                                             {"float16", 'f', 2, NPY_FLOAT16},
                                             {"bfloat16", 'V', 2, -1},
                                             {"int8", 'i', 1, NPY_INT8},
                                             {"int16", 'i', 2, NPY_INT16},
                                             {"int32", 'i', 4, NPY_INT32},
                                             {"int64", 'i', 8, NPY_INT64},
                                             {"uint8", 'u', 1, NPY_UINT8},
                                             {"uint16", 'u', 2, NPY_UINT16},
                                             {"uint32", 'u', 4, NPY_UINT32},
                                             {"uint64", 'u', 8, NPY_UINT64}}};

const TypeInfo& info(Type type) { return infos[static_cast<std::size_t>(type)]; }

std::string legal_types() {
  std::string out;
  for (const TypeInfo& each : infos) out.append(out.empty() ? "" : ", ").append(each.name);
  return out;
}

[[noreturn]] void refuse(const Place& place, const std::string& rest) {
  throw nb::type_error((std::string(place.caller) + ": " + place.argument + " " + rest).c_str());
}
[[noreturn]] void refuse_value(const Place& place, const std::string& rest) {
  throw nb::value_error((std::string(place.caller) + ": " + place.argument + " " + rest).c_str());
}

[[noreturn]] void refuse_read_only(const Place& place) {
  refuse_value(place, "is read-only; give an array that may be written");
}

std::string text_of(nb::handle object) { return nb::str(object).c_str(); }

// ml_dtypes.bfloat16 as numpy knows it. Only looked for where a bfloat16 has been seen: numpy alone need be there.
PyArray_Descr* bfloat16_descr(const Place& place) {
  static PyArray_Descr* descr = nullptr;  // kept for good, as numpy keeps its own
  if (descr == nullptr) {
    nb::object scalar;
    try {
      scalar = nb::module_::import_("ml_dtypes").attr("bfloat16");
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_ImportError)) throw;
      refuse(place, "is bfloat16, which numpy has through ml_dtypes: pip install ml_dtypes");
    }
    if (PyArray_DescrConverter(scalar.ptr(), &descr) == 0) throw nb::python_error();
  }
  return descr;
}

bool is_bfloat16(PyArray_Descr* descr, const Place& place) {
  if (PyDataType_ELSIZE(descr) != 2) return false;
  static int known = -1;
  if (known < 0) {
    if (PyDict_GetItemString(PyImport_GetModuleDict(), "ml_dtypes") == nullptr) return false;
    known = bfloat16_descr(place)->type_num;
  }
  return descr->type_num == known;
}

Type type_of_descr(PyArray_Descr* descr, const Place& place) {
  // By kind and size: C's long and long long are one type here.
  const char kind = descr->kind;
  const bool own = !PyTypeNum_ISUSERDEF(descr->type_num);
  if (own && (kind == 'f' || kind == 'i' || kind == 'u')) {
    for (std::size_t i = 0; i < infos.size(); ++i)
      if (infos[i].kind == kind && infos[i].bytes == PyDataType_ELSIZE(descr)) {
        if (PyArray_ISNBO(descr->byteorder)) return static_cast<Type>(i);
        refuse(place, "has dtype " + text_of(reinterpret_cast<PyObject*>(descr)) +
                          ", which is not in this machine's byte order; use x.astype(x.dtype.newbyteorder('='))");
      }
  } else if (!own && is_bfloat16(descr, place)) {
    return Type::bf16;
  }
  refuse(place, "has dtype " + text_of(reinterpret_cast<PyObject*>(descr)) + "; legal are " + legal_types());
}

// Bytes to elements.
Index element_stride(Index bytes, Index size, const Place& place) {
  if (bytes % size != 0)
    refuse_value(place, "has a stride of " + std::to_string(bytes) + " bytes, no multiple of its elements' " +
                            std::to_string(size) + "; make a copy of it first");
  return bytes / size;
}

void check_rank(Index rank, const Place& place) {
  if (rank > max_rank) raise({Rule::rank_limit, place.argument, -1, rank, max_rank}, place.caller);
}

// Axes of one cell and empty arrays have whatever strides; row-major ones are what the library recognises fastest.
void settle_strides(Array& array) {
  Index step = 1;
  for (int a = array.dims.rank - 1; a >= 0; --a) {
    if (array.dims[a] <= 1) array.strides[a] = step;
    step *= array.dims[a] > 0 ? array.dims[a] : 1;
  }
}

Array from_numpy(PyArrayObject* array, const Place& place) {
  if (!PyArray_CheckExact(reinterpret_cast<PyObject*>(array)) &&
      PyObject_HasAttrString(reinterpret_cast<PyObject*>(array), "filled") != 0)
    refuse(place, "is a masked array, whose mask would be ignored; use x.filled(...)");
  Array out;
  out.type = type_of_descr(PyArray_DESCR(array), place);
  out.data = PyArray_DATA(array);
  if (!PyArray_ISALIGNED(array)) refuse_value(place, "is not aligned to its elements' size; make a copy of it first");
  const int rank = PyArray_NDIM(array);
  check_rank(rank, place);
  const Index size = info(out.type).bytes;
  out.dims.rank = out.strides.rank = rank;
  for (int a = 0; a < rank; ++a) {
    out.dims[a] = PyArray_DIM(array, a);
    out.strides[a] = out.dims[a] > 1 ? element_stride(PyArray_STRIDE(array, a), size, place) : 0;
  }
  settle_strides(out);
  return out;
}

Type type_of_dlpack(nb::dlpack::dtype dtype, const Place& place) {
  using Code = nb::dlpack::dtype_code;
  if (dtype.lanes == 1 && dtype.code == static_cast<std::uint8_t>(Code::Bfloat) && dtype.bits == 16) return Type::bf16;
  char kind = '?';
  if (dtype.code == static_cast<std::uint8_t>(Code::Float)) kind = 'f';
  if (dtype.code == static_cast<std::uint8_t>(Code::Int)) kind = 'i';
  if (dtype.code == static_cast<std::uint8_t>(Code::UInt)) kind = 'u';
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (dtype.lanes == 1 && infos[i].kind == kind && infos[i].bytes * 8 == dtype.bits) return static_cast<Type>(i);
  refuse(place, "has an element type that is not supported (DLPack code " + std::to_string(dtype.code) + " of " +
                    std::to_string(dtype.bits) + " bits); legal are " + legal_types());
}

// The message of an exception that __dlpack__ threw, as ours.
[[noreturn]] void refuse_dlpack(const Place& place, nb::python_error& error) {
  if (!error.matches(PyExc_Exception)) throw;  // KeyboardInterrupt and its like
  refuse(place, "cannot be read through DLPack: " + text_of(error.value()));
}

[[noreturn]] void refuse_device(const Place& place, nb::handle device) {
  refuse(place, "is on the device " + text_of(device) +
                    " (DLPack's numbers); cenote computes on the CPU, move it there first");
}

template <class Ndarray>
Array from_dlpack(nb::handle object, const Place& place) {
  nb::object capsule;
  try {
    const nb::object device = object.attr("__dlpack_device__")();
    if (nb::cast<int>(device[0]) != nb::device::cpu::value) refuse_device(place, device);
    capsule = object.attr("__dlpack__")();
  } catch (nb::python_error& error) {
    refuse_dlpack(place, error);
  }
  Ndarray array;
  if (!nb::try_cast<Ndarray>(capsule, array)) refuse(place, "has a __dlpack__ that gives no array");
  check_rank(static_cast<Index>(array.ndim()), place);
  Array out;
  out.type = type_of_dlpack(array.dtype(), place);
  out.data = const_cast<void*>(static_cast<const void*>(array.data()));
  for (std::size_t a = 0; a < array.ndim(); ++a) {
    out.dims.push_back(static_cast<Index>(array.shape(a)));
    out.strides.push_back(array.stride(a));
  }
  out.owner = nb::cast(std::move(array), nb::rv_policy::reference);
  return out;
}

// Whether numpy would see the array as one that may not be written, as it does those of jax; DLPack does not say so.
bool is_read_only(nb::handle object) {
  const nb::object seen = nb::steal(PyArray_FromAny(object.ptr(), nullptr, 0, 0, 0, nullptr));
  if (!seen.is_valid()) {
    PyErr_Clear();  // numpy does not know the element type
    return false;
  }
  return PyArray_ISWRITEABLE(reinterpret_cast<PyArrayObject*>(seen.ptr())) == 0;
}

// DLPack's binary interface, as much of it as is used here.
struct DLTensor {
  void* data;
  std::int32_t device_type, device_id;
  std::int32_t ndim;
  nb::dlpack::dtype dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct DLExchange {
  std::uint32_t major, minor;
  const DLExchange* previous;
  void *allocate, *managed_from_object, *object_from_managed;
  int (*tensor_from_object)(void* object, DLTensor* out);  // may be null
  void* current_stream;
};

// How a type's tensors are read, or null.
auto exchange_of(PyObject* type) -> decltype(DLExchange::tensor_from_object) {
  const nb::object capsule = nb::steal(PyObject_GetAttrString(type, "__dlpack_c_exchange_api__"));
  const DLExchange* table = nullptr;
  if (capsule.is_valid() && PyCapsule_CheckExact(capsule.ptr()))
    table = static_cast<const DLExchange*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  PyErr_Clear();
  while (table != nullptr && table->major > 1) table = table->previous;
  return table != nullptr && table->major == 1 ? table->tensor_from_object : nullptr;
}

// Unlike anything contiguous, but for axes of one cell.
bool may_be_channels_last(int rank, const Index* strides) {
  return (rank == 4 || rank == 5) && strides[1] <= strides[rank - 1];
}

Dims numbers(PyObject* tuple) {
  Dims out;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    const Index entry = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
    if (entry == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    out.push_back(entry);
  }
  return out;
}

// Types have numbers that nobody writes by chance: an address that is none must not come from a caller of the package.
bool ends_in_type(PyObject* object, Py_ssize_t size) {
  if (!PyTuple_CheckExact(object) || PyTuple_GET_SIZE(object) != size) return false;
  PyObject* type = PyTuple_GET_ITEM(object, size - 1);
  int overflow = 0;
  return PyLong_CheckExact(type) && PyLong_AsLongAndOverflow(type, &overflow) >= first_type_number;
}
bool is_raw(PyObject* object) {
  return ends_in_type(object, 4) && PyTuple_Check(PyTuple_GET_ITEM(object, 1)) &&
         PyTuple_Check(PyTuple_GET_ITEM(object, 2));
}

Array from_raw(PyObject* tuple) {
  Array out;
  out.data = PyLong_AsVoidPtr(PyTuple_GET_ITEM(tuple, 0));
  out.dims = numbers(PyTuple_GET_ITEM(tuple, 1));
  out.strides = numbers(PyTuple_GET_ITEM(tuple, 2));
  const long type = PyLong_AsLong(PyTuple_GET_ITEM(tuple, 3)) - first_type_number;
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (type < 0 || type >= types) throw nb::type_error("the type of a raw array is one of type_numbers()");
  out.type = static_cast<Type>(type);
  return out;
}

PyArray_Descr* descr_of(Type type, const Place& place) {  // a new reference
  if (info(type).number >= 0) return PyArray_DescrFromType(info(type).number);
  PyArray_Descr* descr = bfloat16_descr(place);
  Py_INCREF(descr);
  return descr;
}

}  // namespace

const char* name_of(Type type) { return info(type).name; }

nb::handle marked(nb::handle object) {
  return ends_in_type(object.ptr(), 2) ? nb::handle(PyTuple_GET_ITEM(object.ptr(), 0)) : nb::handle();
}

Array exchange_array(nb::handle tensor, const Place& place) {
  // There is hardly more than one type of tensors; the last one is kept, so that its address is no other's.
  static PyObject* known_type = nullptr;
  static decltype(DLExchange::tensor_from_object) known = nullptr;
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(tensor.ptr()));
  if (type != known_type) {
    known = exchange_of(type);
    Py_INCREF(type);
    Py_XDECREF(std::exchange(known_type, type));
  }
  if (known == nullptr) {
    Array out = from_dlpack<nb::ndarray<>>(tensor.attr("detach")(), place);
    out.tensor = tensor;
    out.other_format = may_be_channels_last(out.dims.rank, out.strides.begin());
    return out;
  }
  DLTensor found{};
  if (known(tensor.ptr(), &found) != 0) throw nb::python_error();
  if (found.device_type != nb::device::cpu::value) refuse_device(place, nb::cast(found.device_type));
  check_rank(found.ndim, place);
  Array out;
  out.tensor = tensor;
  out.other_format = may_be_channels_last(found.ndim, found.strides);
  out.type = type_of_dlpack(found.dtype, place);
  out.data = static_cast<std::uint8_t*>(found.data) + found.byte_offset;
  for (std::int32_t a = 0; a < found.ndim; ++a) {
    out.dims.push_back(found.shape[a]);
    out.strides.push_back(found.strides[a]);
  }
  settle_strides(out);
  return out;
}

Array read_array(nb::handle object, const Place& place) {
  PyObject* p = object.ptr();
  if (PyArray_Check(p)) return from_numpy(reinterpret_cast<PyArrayObject*>(p), place);
  if (const nb::handle tensor = marked(object)) return exchange_array(tensor, place);
  if (is_raw(p)) return from_raw(p);
  if (nb::hasattr(object, "__dlpack__")) return from_dlpack<nb::ndarray<nb::ro>>(object, place);
  if (PyObject_CheckBuffer(p) != 0) {
    const nb::object view = nb::steal(PyArray_FromAny(p, nullptr, 0, 0, 0, nullptr));
    if (!view.is_valid()) throw nb::python_error();
    Array out = from_numpy(reinterpret_cast<PyArrayObject*>(view.ptr()), place);
    out.owner = view;
    return out;
  }
  refuse(place, std::string("is of type ") + Py_TYPE(p)->tp_name +
                    "; give a numpy array, or another array that has __dlpack__ or a buffer");
}

Array write_array(nb::handle object, const Place& place) {
  PyObject* p = object.ptr();
  if (PyArray_Check(p)) {
    auto* array = reinterpret_cast<PyArrayObject*>(p);
    if (PyArray_ISWRITEABLE(array) == 0) refuse_read_only(place);
    return from_numpy(array, place);
  }
  if (const nb::handle tensor = marked(object)) return exchange_array(tensor, place);
  if (is_raw(p)) return from_raw(p);
  if (nb::hasattr(object, "__dlpack__")) {
    if (is_read_only(object)) refuse_read_only(place);
    return from_dlpack<nb::ndarray<>>(object, place);
  }
  refuse(place, std::string("is of type ") + Py_TYPE(p)->tp_name +
                    "; give a numpy array, or another array that has __dlpack__ and may be written");
}

Array new_array(const Dims& dims, Type type, std::string_view caller) {
  Array out;
  out.dims = dims;
  out.strides = row_major(dims);
  out.type = type;
  std::array<npy_intp, max_rank> sizes{};
  for (int a = 0; a < dims.rank; ++a) sizes[static_cast<std::size_t>(a)] = dims[a];
  PyObject* array = PyArray_Empty(dims.rank, sizes.data(), descr_of(type, {caller, "the result"}), 0);
  if (array == nullptr) throw nb::python_error();
  out.owner = nb::steal(array);
  out.data = PyArray_DATA(reinterpret_cast<PyArrayObject*>(array));
  return out;
}

void prefer_large_pages(void* data, std::size_t bytes) {
#if defined(__linux__)
  constexpr std::uintptr_t page = 4096;
  constexpr std::size_t least = std::size_t{1} << 22;
  if (bytes < least) return;
  const auto first = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(data) + bytes;
  // It is advice: whether it was taken does not matter.
  madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);  // NOLINT(performance-no-int-to-ptr)
#else
  static_cast<void>(data);
  static_cast<void>(bytes);
#endif
}

std::size_t bytes_of(const Array& array) {
  return static_cast<std::size_t>(volume(array.dims)) * static_cast<std::size_t>(info(array.type).bytes);
}

nb::object borrowed(const void* data, const Dims& dims, Type type, nb::handle owner) {
  std::array<npy_intp, max_rank> sizes{};
  for (int a = 0; a < dims.rank; ++a) sizes[static_cast<std::size_t>(a)] = dims[a];
  nb::object array = nb::steal(PyArray_NewFromDescr(&PyArray_Type, descr_of(type, {"", "the result"}), dims.rank,
                                                    sizes.data(), nullptr, const_cast<void*>(data), 0, nullptr));
  if (!array.is_valid()) throw nb::python_error();
  Py_INCREF(owner.ptr());  // which the next line takes over
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.ptr()), owner.ptr()) < 0) throw nb::python_error();
  return array;
}

Type type_of_dtype(nb::handle dtype, const Place& place) {
  PyArray_Descr* descr = nullptr;
  if (PyArray_DescrConverter(dtype.ptr(), &descr) == 0) throw nb::python_error();
  const nb::object owner = nb::steal(reinterpret_cast<PyObject*>(descr));
  return type_of_descr(descr, place);
}

void check_same_type(const Array& x, const Array& other, const Place& place, const char* x_name) {
  if (x.type == other.type) return;
  refuse(place, std::string("has dtype ") + name_of(other.type) + ", but " + x_name + " has " + name_of(x.type) +
                    "; both must have the same");
}

void start_numpy() {
  if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
}

}  // namespace cenote::python
