// The machine scalars as values: what a file's header says its numbers are. One list, the library's.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "cenote/scalar.hpp"

namespace cenote::cli {

#define CENOTE_NAME(name, type) name,
enum class Element : std::uint8_t { CENOTE_MACHINE_SCALARS(CENOTE_NAME) };
#undef CENOTE_NAME

#define CENOTE_TEXT(name, type) std::string_view(#name),
inline constexpr std::array element_names{CENOTE_MACHINE_SCALARS(CENOTE_TEXT)};
#undef CENOTE_TEXT
#define CENOTE_SIZE(name, type) sizeof(type),
inline constexpr std::array<std::size_t, element_names.size()> element_sizes{CENOTE_MACHINE_SCALARS(CENOTE_SIZE)};
#undef CENOTE_SIZE

constexpr std::string_view name_of(Element e) { return element_names[static_cast<std::size_t>(e)]; }
constexpr Index size_of(Element e) { return static_cast<Index>(element_sizes[static_cast<std::size_t>(e)]); }
constexpr bool is_integer(Element e) { return e >= Element::i8; }
constexpr bool is_unsigned(Element e) { return e >= Element::u8; }

// The bits of a number besides its sign that a type always keeps.
constexpr int digits_of(Element e) {
  switch (e) {
    case Element::f64: return 53;
    case Element::f32: return 24;
    case Element::f16: return 11;
    case Element::bf16: return 8;
    default: return static_cast<int>(size_of(e)) * 8 - (is_unsigned(e) ? 0 : 1);
  }
}

// Whether every number of one type is one of another.
constexpr bool holds(Element wide, Element narrow) {
  if (wide == narrow) return true;
  if (is_integer(wide) && !is_integer(narrow)) return false;
  if (is_unsigned(wide) && !is_unsigned(narrow)) return false;
  if (wide == Element::f16 && !is_integer(narrow)) return false;  // bf16 reaches further
  return digits_of(wide) >= digits_of(narrow);
}

// The element of that name, if there is one.
inline std::optional<Element> element_named(std::string_view name) {
  for (std::size_t i = 0; i < element_names.size(); ++i)
    if (element_names[i] == name) return static_cast<Element>(i);
  return {};
}

// "f64, f32, ...": for messages.
inline std::string every_element() {
  std::string out;
  for (const std::string_view name : element_names) out.append(out.empty() ? "" : ", ").append(name);
  return out;
}

// Calls use.operator()<T>() with the type of an element.
template <class F>
decltype(auto) with_element(Element e, F&& use) {
  switch (e) {
#define CENOTE_CASE(name, type) \
  case Element::name: return use.template operator()<type>();
    CENOTE_MACHINE_SCALARS(CENOTE_CASE)
#undef CENOTE_CASE
  }
  return use.template operator()<double>();  // not reached: every element has a case
}

}  // namespace cenote::cli
