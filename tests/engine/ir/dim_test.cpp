#include "engine/ir/dim.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace stepscope {
namespace {

TEST(Dim, ConstantsSaturate) {
  const Dim most(INT64_MAX), least(INT64_MIN), n = Dim::symbol("n");
  EXPECT_EQ((most + Dim(1)).value(), INT64_MAX);
  EXPECT_EQ((least + Dim(-1)).value(), INT64_MIN);
  EXPECT_EQ((most * Dim(2)).value(), INT64_MAX);
  EXPECT_EQ((most * Dim(-2)).value(), INT64_MIN);
  EXPECT_EQ((least * Dim(-1)).value(), INT64_MAX);
  EXPECT_EQ((most * n) * Dim(2), most * n);
  EXPECT_EQ(most * n + n, most * n);
}

// TensorFlow slices to 2147483647 where it means the end of the axis.
TEST(Dim, TheSmallerOfAnExtentAndNoBoundIsTheExtent) {
  const Dim frames = Dim::symbol("frames"), end(2147483647);
  EXPECT_EQ(Dim::min(end, Dim::min(frames, end)).text(), "frames");
  EXPECT_EQ(Dim::min(Dim(5), frames).text(), "min(5,frames)");
}

}  // namespace
}  // namespace stepscope
