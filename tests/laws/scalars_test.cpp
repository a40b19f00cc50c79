// Every machine scalar computes what exact arithmetic computes, rounded once.
#include "cenote/rational.hpp"
#include "support/laws.hpp"

namespace cenote::test {
namespace {

// The nearest integer, half to even.
Rational rounded(const Rational& x) {
  using boost::multiprecision::cpp_int;
  const cpp_int n = numerator(x);
  const cpp_int d = denominator(x);
  cpp_int floor = n / d;
  if (n % d < 0) --floor;
  const Rational rest = x - Rational(floor);
  const Rational half = Rational(1) / Rational(2);
  const bool up = rest > half || (rest == half && floor % 2 != 0);
  return Rational(up ? cpp_int(floor + 1) : floor);
}

template <class T>
bool is_rounded(const T& got, const Rational& exact) {
  if constexpr (IntegerScalar<T>) {
    return Rational(got) == rounded(exact);
  } else {  // within one unit in the last place, and exact where a small number is representable
    const double unit = static_cast<double>(std::numeric_limits<T>::epsilon());
    const Rational error = Rational(static_cast<double>(got)) - exact;
    return abs(error) <= Rational(unit) * abs(exact);
  }
}

template <class T>
void agrees_with_rationals() {
  const Geometry g = random_geometry();
  Tensor<Rational> exact(g.in());
  const Index low = std::is_unsigned_v<T> ? 0 : -1;  // sums of up to 5-D windows stay within 8 bits
  for (Rational& cell : exact.data()) cell = Rational(between(low, 1));
  Tensor<T> x(g.in());
  for (std::size_t i = 0; i < x.data().size(); ++i) x.data()[i] = T(static_cast<Index>(exact.data()[i]));
  for_each_algebraic_operator([&](const auto& op) {
    if constexpr (requires { op.divisor; })
      if (op.divisor.number < 0 && std::is_unsigned_v<T>) return;  // a negative mean has no unsigned value
    const auto y = value(op, g, x);
    const auto y_exact = value(op, g, exact);
    for (std::size_t o = 0; o < y.data().size(); ++o) {
      RC_LOG() << describe(g) << ", " << label(op) << " output " << o << "\n";
      RC_ASSERT(is_rounded(y.data()[o], y_exact.data()[o]));
    }
    if constexpr (Field<T>) {
      const auto dy = push(op, g, x, x);
      const auto dy_exact = push(op, g, exact, exact);
      for (std::size_t o = 0; o < dy.data().size(); ++o)
        RC_ASSERT(abs(Rational(static_cast<double>(dy.data()[o])) - dy_exact.data()[o]) <=
                  Rational(static_cast<double>(std::numeric_limits<T>::epsilon())) * 4);
    }
  });
}

#define CENOTE_LAW(name, type) \
  RC_GTEST_PROP(MachineScalars, name##EqualsRoundedRationals, ()) { agrees_with_rationals<type>(); }
CENOTE_MACHINE_SCALARS(CENOTE_LAW)
#undef CENOTE_LAW

}  // namespace
}  // namespace cenote::test
