// Whether numbers are finite: every place of every length that a vector may begin, end or miss, in every floating type.
#include "kernels/cpu/loops/not_finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/dispatch.h"

namespace stepscope::cpu {
namespace {

class NotFinite : public testing::TestWithParam<DType> {};

TEST_P(NotFinite, IsFoundWhereverItStands) {
  dispatchFloat(GetParam(), [](auto tag) {
    using T = decltype(tag);
    for (const std::int64_t count : {1, 2, 7, 16, 31, 33, 64, 100, 1027}) {
      Tensor tensor(DTypeOf<T>::value, {count});
      // The largest numbers, the smallest and both zeros are finite.
      const double finite[] = {0.0, -0.0, 1.5, -60000.0, 6e-8, GetParam() == DType::kF16 ? 65504.0 : 3e38};
      for (std::int64_t i = 0; i < count; ++i) storeElement(tensor.view(), i, finite[i % 6]);
      EXPECT_FALSE(anyNotFinite(tensor.view())) << count;
      for (std::int64_t i = 0; i<count; i += count> 100 ? 13 : 1)
        for (const double bad : {std::nan(""), double{INFINITY}, -double{INFINITY}}) {
          const double before = elementAsDouble(tensor.view(), i);
          storeElement(tensor.view(), i, bad);
          EXPECT_TRUE(anyNotFinite(tensor.view())) << count << ", " << i << ", " << bad;
          storeElement(tensor.view(), i, before);
        }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Types, NotFinite, testing::Values(DType::kF32, DType::kF64, DType::kF16, DType::kBF16));

TEST(NotFiniteNumbers, AreNotLookedForInWholeOnes) {
  Tensor all(DType::kI32, {4});
  for (std::int64_t i = 0; i < 4; ++i) storeElement(all.view(), i, 0x7f800000);
  EXPECT_FALSE(anyNotFinite(all.view()));
  EXPECT_FALSE(anyNotFinite(Tensor(DType::kF32, {0}).view()));
  EXPECT_FALSE(anyNotFinite({}));
}

}  // namespace
}  // namespace stepscope::cpu
