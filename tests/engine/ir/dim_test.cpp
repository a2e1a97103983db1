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

}  // namespace
}  // namespace stepscope
