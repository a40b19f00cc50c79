// Rational: exact fractions of unbounded integers at run time, from Boost.Multiprecision.
// No arithmetic is written here; the constexpr fraction without Boost is fraction.hpp, which comes along.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>

#include "cenote/fraction.hpp"
#include "cenote/scalar.hpp"

namespace cenote {

// Without expression templates, so that a + b is a Rational and `auto` is safe. Rational(n, d) needs d > 0, which Boost
// does not check; Rational(n) / Rational(d) takes every d but 0.
using Rational =
    boost::multiprecision::number<boost::multiprecision::cpp_rational_backend, boost::multiprecision::et_off>;

// The exact counterpart of a smooth max is no rational, so it may not compile.
static_assert(Field<Rational> && !Transcendental<Rational>);
static_assert(Field<Fraction> && !Transcendental<Fraction>);

}  // namespace cenote
