// Files that are decoded and encoded on threads of their own: elements arrive whole and in order, failures are thrown
// where the elements are asked for or handed in, and whoever gives up early is not waited for.
#include "files/aside.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <vector>

namespace cenote::cli {
namespace {

constexpr Index elements = 300'000;  // more than all blocks hold
constexpr Index memory = 1 << 16;

std::uint16_t element(Index i) { return static_cast<std::uint16_t>(i * 7 + i / 1000); }

class Counting final : public Source {
 public:
  explicit Counting(Index until = elements) : until_(until) {
    header_.type = Element::u16;
    header_.dims = Dims{elements};
  }
  [[nodiscard]] const Header& header() const override { return header_; }
  void read(std::byte* to, Index count) override {
    for (Index i = 0; i < count; ++i, ++at_) {
      if (at_ == until_) throw std::runtime_error("the file ends here");
      const std::uint16_t value = element(at_);
      std::memcpy(to + i * Index{sizeof value}, &value, sizeof value);
    }
  }

 private:
  Header header_;
  Index until_, at_ = 0;
};

class Collecting final : public Sink {
 public:
  explicit Collecting(Index until = elements) : until_(until) {}
  void write(const std::byte* from, Index count) override {
    for (Index i = 0; i < count; ++i) {
      if (static_cast<Index>(values.size()) == until_) throw std::runtime_error("the disk is full");
      std::uint16_t value = 0;
      std::memcpy(&value, from + i * Index{sizeof value}, sizeof value);
      values.push_back(value);
    }
  }
  void finish() override { finished = true; }

  std::vector<std::uint16_t> values;
  bool finished = false;

 private:
  Index until_;
};

std::vector<std::uint16_t> all() {
  std::vector<std::uint16_t> values;
  for (Index i = 0; i < elements; ++i) values.push_back(element(i));
  return values;
}
std::byte* bytes_of(std::vector<std::uint16_t>& values, Index from = 0) {
  return reinterpret_cast<std::byte*>(values.data() + from);
}

TEST(Aside, ElementsAreReadInOrder) {
  Counting source;
  ReadAhead ahead(source, memory);
  std::vector<std::uint16_t> values(elements);
  for (Index at = 0, part = 1; at < elements; at += part, part = part * 3 % 70'001)
    ahead.read(bytes_of(values, at), part = std::min(part, elements - at));
  EXPECT_GE(ahead.finish(), 0);
  EXPECT_EQ(values, all());
}

TEST(Aside, WhatIsThereBeforeAFailureIsReadAndThenTheFailureIsThrown) {
  Counting source(200'000);
  ReadAhead ahead(source, memory);
  std::vector<std::uint16_t> values(elements);
  ahead.read(bytes_of(values), 100'000);
  EXPECT_EQ(values[99'999], element(99'999));
  EXPECT_THROW(ahead.read(bytes_of(values), 200'000), std::runtime_error);
  EXPECT_THROW(ahead.read(bytes_of(values), 1), std::runtime_error);  // and again
}

TEST(Aside, AReaderThatIsGivenUpDoesNotWait) {
  Counting source;
  ReadAhead ahead(source, memory);
  std::vector<std::uint16_t> values(10);
  ahead.read(bytes_of(values), 10);
}

TEST(Aside, ElementsAreWrittenInOrder) {
  Collecting sink;
  WriteBehind behind(sink, Element::u16, memory);
  std::vector<std::uint16_t> values = all();
  for (Index at = 0, part = 1; at < elements; at += part, part = part * 3 % 70'001)
    behind.write(bytes_of(values, at), part = std::min(part, elements - at));
  EXPECT_FALSE(sink.finished);
  behind.finish();
  EXPECT_TRUE(sink.finished);
  EXPECT_EQ(sink.values, values);
}

TEST(Aside, AFailureToWriteIsThrownToWhoeverHandsInOrFinishes) {
  std::vector<std::uint16_t> values = all();
  {
    Collecting sink(1000);
    WriteBehind behind(sink, Element::u16, memory);
    EXPECT_THROW(behind.write(bytes_of(values), elements), std::runtime_error);
    EXPECT_FALSE(sink.finished);
  }
  Collecting sink(0);
  WriteBehind behind(sink, Element::u16, memory);
  behind.write(bytes_of(values), 10);  // no whole block
  EXPECT_THROW(behind.finish(), std::runtime_error);
  EXPECT_FALSE(sink.finished);
}

TEST(Aside, AWriterThatIsGivenUpFinishesNothing) {
  Collecting sink;
  std::vector<std::uint16_t> values = all();
  {
    WriteBehind behind(sink, Element::u16, memory);
    behind.write(bytes_of(values), 250'000);
  }
  EXPECT_FALSE(sink.finished);
}

}  // namespace
}  // namespace cenote::cli
