#include "engine/snapshot/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace stepscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

TEST(Units, TimePicksItsUnit) {
  EXPECT_EQ(units::time(0.0), "0 ns");
  EXPECT_EQ(units::time(std::int64_t{123}), "123 ns");
  EXPECT_EQ(units::time(1234.0), "1.23 µs");
  EXPECT_EQ(units::time(44'700.0), "44.7 µs");
  EXPECT_EQ(units::time(123'456.0), "123 µs");
  EXPECT_EQ(units::time(999'990.0), "1.00 ms");
  EXPECT_EQ(units::time(12'340'000'000.0), "12.34 s");
  EXPECT_EQ(units::time(83'400'000'000.0), "1:23.4");
  EXPECT_EQ(units::time(59'999'000'000.0), "0:59.9") << "not 60.00 s";
  EXPECT_EQ(units::time(-1234.0), "−1.23 µs");
  EXPECT_EQ(units::time(kNaN), "NaN");
  EXPECT_EQ(units::timeExact(1'234'567.4), "1,234,567 ns");
}

TEST(Units, ANaNHasNoSign) {
  EXPECT_FALSE(std::signbit(units::signless(-kNaN)));
  EXPECT_EQ(units::signless(-1.5), -1.5);
  EXPECT_EQ(units::signless(-kInfinity), -kInfinity);
  EXPECT_EQ(units::number(-kNaN), "NaN");
}

TEST(Units, BytesPickTheirUnit) {
  EXPECT_EQ(units::bytes(0.0), "0 B");
  EXPECT_EQ(units::bytes(1023.0), "1023 B");
  EXPECT_EQ(units::bytes(1024.0), "1.00 KiB");
  EXPECT_EQ(units::bytes(192.0 * 1024), "192 KiB");
  EXPECT_EQ(units::bytes(std::int64_t{101} * 1024 * 1024), "101 MiB");
  EXPECT_EQ(units::bytes(1024.0 * 1024 - 1), "1.00 MiB");
  EXPECT_EQ(units::bytes(1.25 * 1024 * 1024 * 1024), "1.25 GiB");
  EXPECT_EQ(units::bytes(3.0 * (std::int64_t{1} << 40)), "3.00 TiB");
  EXPECT_EQ(units::bytesExact(196608), "196,608 bytes");
  EXPECT_EQ(units::bytesExact(1), "1 byte");
  EXPECT_EQ(units::bytesDifference(-3072), "−3.00 KiB");
}

TEST(Units, NumbersAreGroupedAndNamed) {
  EXPECT_EQ(units::count(0), "0");
  EXPECT_EQ(units::count(1234567), "1,234,567");
  EXPECT_EQ(units::count(-123456), "−123,456");
  EXPECT_EQ(units::count(std::numeric_limits<std::int64_t>::min()), "−9,223,372,036,854,775,808");
  EXPECT_EQ(units::countShort(12'300), "12.3 k");
  EXPECT_EQ(units::countShort(3.4e6), "3.40 M");
  EXPECT_EQ(units::number(kNaN), "NaN");
  EXPECT_EQ(units::number(-kInfinity), "−∞");
  EXPECT_EQ(units::number(-2.142e-4, 4), "−2.142e−4");
  EXPECT_EQ(units::number(0.027581), "0.027581");
  EXPECT_EQ(units::number(5), "5");
  EXPECT_EQ(units::number(0.6), "0.60000");
  EXPECT_EQ(units::numberShort(0.6), "0.6");
  EXPECT_EQ(units::numberShort(-6e-5), "−6e−5");
  EXPECT_EQ(units::numberShort(100), "100");
  EXPECT_EQ(units::numberShort(0.20001), "0.20001");
  EXPECT_EQ(units::percent(0.0001), "<0.1 %");
  EXPECT_EQ(units::percent(0.1234), "12.3 %");
  EXPECT_EQ(units::change(100, 108.2), "+8.2 %");
  EXPECT_EQ(units::change(0, 1), "");
  EXPECT_EQ(units::timeDifference(1'240'000), "+1.24 ms");
}

TEST(Units, RatesNeedAnAmountAndATime) {
  EXPECT_EQ(units::flopRate(12'300, 1000), "12.3 GFLOP/s");
  EXPECT_EQ(units::byteRate(500, 1000), "500 MB/s");
  EXPECT_EQ(units::byteRate(500, 1e9), "500 B/s");
  EXPECT_EQ(units::byteRate(0, 1000), "");
  EXPECT_EQ(units::flopRate(1, 0), "");
}

}  // namespace
}  // namespace stepscope
