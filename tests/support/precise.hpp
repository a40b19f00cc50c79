// The definition at fifty decimal digits: the reference for accuracy and enclosure.
#pragma once

#include <boost/multiprecision/mpfr.hpp>

#include "cenote/scalar.hpp"

namespace cenote::test {

using Precise =
    boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<50>, boost::multiprecision::et_off>;

static_assert(Transcendental<Precise>);

}  // namespace cenote::test
