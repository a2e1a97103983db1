#include "kernels/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "kernels/integer_of.h"

namespace stepscope {
namespace {

TEST(Tensor, FloatsOutsideTheRangeOfAnIntegerAreDefined) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(integerOf<std::int32_t>(nan), 0);
  EXPECT_EQ(integerOf<std::int64_t>(1e300),
            std::numeric_limits<std::int64_t>::max() | INT64_MIN);  // all bits, as from uint64
  EXPECT_EQ(integerOf<std::uint64_t>(infinity), UINT64_MAX);
  EXPECT_EQ(integerOf<std::int64_t>(-infinity), INT64_MIN);
  EXPECT_EQ(integerOf<std::uint8_t>(-1.0), 255);
  EXPECT_EQ(integerOf<std::int8_t>(300.7), 44);
  Tensor small(DType::kI8, {2});
  storeElement(small.view(), 0, nan);
  storeElement(small.view(), 1, -2.9);
  EXPECT_EQ(elementAsInt(small.view(), 0), 0);
  EXPECT_EQ(elementAsInt(small.view(), 1), -2);
  const Tensor wild = Tensor::of<float>({3}, std::vector<float>{1e30F, -1e30F, std::numeric_limits<float>::quiet_NaN()});
  const Tensor whole = convertTensor(wild.view(), DType::kI64);
  EXPECT_EQ(elementAsInt(whole.view(), 1), INT64_MIN);
  EXPECT_EQ(elementAsInt(whole.view(), 2), 0);
}

}  // namespace
}  // namespace stepscope
