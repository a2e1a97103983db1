// Patterns written with the operators of ONNX Runtime.
#include "engine/recompute/pattern_meaning.h"

#include <gtest/gtest.h>

namespace stepscope {
namespace {

TEST(PatternMeaning, NamesOfOneOperatorAreOne) {
  EXPECT_TRUE(meansPattern("BiasGelu+", "Gelu+"));
  EXPECT_TRUE(meansPattern("FastGelu+", "Gelu+"));
  EXPECT_TRUE(meansPattern("BitmaskDropout+", "Dropout+"));
  EXPECT_TRUE(meansPattern("BiasSoftmaxDropout+", "Softmax+Dropout+"));
  EXPECT_TRUE(meansPattern("FusedMatMul+", "Gemm+"));
  EXPECT_FALSE(meansPattern("BiasGelu+", "Dropout+"));
  EXPECT_FALSE(meansPattern("Softmax+", "Softmax+Dropout+"));
  EXPECT_FALSE(meansPattern("Softmax+Dropout+", "Softmax+"));
}

TEST(PatternMeaning, ViewsDoNotCount) {
  EXPECT_TRUE(meansPattern("Reshape+Cast+Unsqueeze+Mul+", "Cast+Mul+"));
  EXPECT_FALSE(meansPattern("Reshape+", "Cast+"));
  EXPECT_FALSE(meansPattern("Reshape+", ""));
}

TEST(PatternMeaning, AChainOfElementwiseOperatorsIsAPointwise) {
  EXPECT_TRUE(meansPattern("Gather+Gather+Add+Add+LayerNormalization+", "Gather+Gather+Pointwise+LayerNormalization+"));
  EXPECT_FALSE(meansPattern("Gather+Gather+LayerNormalization+", "Gather+Gather+Pointwise+LayerNormalization+"));
  EXPECT_FALSE(meansPattern("Add+", "Mul+")) << "one operator is no other one";
}

TEST(PatternMeaning, ABlockIsItselfAlone) {
  EXPECT_TRUE(meansPattern("block", "block"));
  EXPECT_FALSE(meansPattern("block", "Gelu+"));
  EXPECT_FALSE(meansPattern("Gelu+", "block"));
}

}  // namespace
}  // namespace stepscope
