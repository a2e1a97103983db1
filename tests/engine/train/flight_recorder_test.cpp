// The flight recorder: sees what is there, changes nothing, and knows what it cost.
#include "engine/step/flight_recorder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "kernels/dispatch.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor ramp(DType dtype, std::int64_t count) {
  Tensor tensor(dtype, {count});
  dispatchFloat(dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto x = tensor.as<T>();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(static_cast<float>(i % 1000) * -0.5F);
  });
  return tensor;
}

void put(const Tensor& tensor, std::size_t at, double x) {
  dispatchFloat(tensor.dtype(), [&](auto tag) {
    using T = decltype(tag);
    tensor.as<T>()[at] = static_cast<T>(static_cast<float>(x));
  });
}

TEST(FlightLook, FindsTheLargestAndCountsWhatIsNotFinite) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    const Tensor tensor = ramp(dtype, 300'000);
    put(tensor, 123'456, -1024);
    FlightLook look = lookAt(tensor.view());
    EXPECT_EQ(look.largest, 1024) << dtypeName(dtype);
    EXPECT_TRUE(look.finite());
    EXPECT_EQ(look.looked, 300'000);
    put(tensor, 7, -kInf);
    put(tensor, 8, kNaN);
    put(tensor, 299'999, -kNaN);
    look = lookAt(tensor.view());
    EXPECT_EQ(look.largest, 1024) << "of the finite ones";
    EXPECT_EQ(look.nan, 2);
    EXPECT_EQ(look.inf, 1);
  }
}

TEST(FlightLook, PartsTogetherAreAll) {
  const Tensor tensor = ramp(DType::kF32, 100'000);
  put(tensor, 50'001, 9999);
  std::int64_t looked = 0;
  double largest = 0;
  int found = 0;
  for (std::int64_t part = 0; part < 7; ++part) {
    const FlightLook look = lookAt(tensor.view(), 7, part);
    EXPECT_EQ(look.of, 100'000);
    looked += look.looked;
    found += look.largest == 9999;
    largest = std::max(largest, look.largest);
  }
  EXPECT_EQ(looked, 100'000);
  EXPECT_EQ(largest, 9999);
  EXPECT_EQ(found, 1);
}

TEST(FlightLook, HasNothingToSayOfIntegersAndNoTensor) {
  EXPECT_EQ(lookAt(Tensor(DType::kI64, {5}).view()).looked, 0);
  EXPECT_EQ(lookAt(TensorView{}).looked, 0);
}

// Statistics of the same step, taken by another way.
TEST(FlightRecorder, SeesWhatTheStatisticsSee) {
  const auto session = testing::openSession(testing::digits(), {{"record.statistics", "1"}});
  ASSERT_TRUE(session);
  const auto record = session->step();
  ASSERT_TRUE(record.has_value()) << record.error().message;
  std::set<std::string> kinds;
  std::size_t compared = 0;
  for (const FlightTrack& track : session->numbers().flight().tracks()) {
    ASSERT_FALSE(track.looks.empty()) << track.kind << " " << track.of;
    EXPECT_EQ(track.looks.front().step, 0);
    EXPECT_EQ(track.looks.front().looked, track.looks.front().of) << "the first step is read whole";
    kinds.insert(track.kind);
    for (const snapshot::RecordedStatistics& found : record->statistics())
      if (found.kind() == track.kind && found.of() == track.of) {
        ++compared;
        EXPECT_EQ(track.looks.front().largest,
                  std::max(std::abs(found.statistics().min()), std::abs(found.statistics().max())))
            << track.kind << " " << track.of;
      }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"gradient", "output", "parameter"}));
  EXPECT_EQ(compared, session->numbers().flight().tracks().size());
  EXPECT_FALSE(session->numbers().flight().trail().empty());
}

TEST(FlightRecorder, ChangesNoNumberAndCanBeSwitchedOff) {
  const auto on = testing::openSession(testing::languageModel()),
             off = testing::openSession(testing::languageModel(), {{"record.flight", "off"}});
  ASSERT_TRUE(on && off);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(on->step().has_value());
    ASSERT_TRUE(off->step().has_value());
  }
  EXPECT_EQ(testing::stateBits(*on), testing::stateBits(*off));
  EXPECT_FALSE(on->numbers().flight().tracks().empty());
  EXPECT_TRUE(off->numbers().flight().tracks().empty());
}

// Without anybody asking for it.
TEST(FlightRecorder, TracesTheFirstNumberThatIsNotFinite) {
  for (const bool flies : {true, false}) {
    const auto session = testing::openSession(
        testing::digits(), {{"lr", "1e30"}, {"optimizer", "sgd"}, {"record.flight", flies ? "on" : "off"}});
    ASSERT_TRUE(session);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(session->step().has_value());
    std::string told;
    for (const snapshot::Alert& alert : session->alerts())
      if (alert.code() == "nan" || alert.code() == "inf") told += alert.message() + "\n";
    EXPECT_FALSE(told.empty());
    EXPECT_EQ(told.find("first cause: ") != std::string::npos, flies) << told;
    EXPECT_EQ(told.find("exploded weights since step 0") != std::string::npos, flies) << told;
    EXPECT_EQ(session->numbers().cause() != nullptr, flies);
    EXPECT_EQ(session->numbers().trail().empty(), !flies);
  }
}

}  // namespace
}  // namespace stepscope
