// Einsum as matrix products: the same numbers for every kind of equation, and what each becomes.
#include <algorithm>
#include <map>

#include "tests/engine/passes/sketch.h"

namespace stepscope {
namespace {

using testing::Sketch;

struct Case {
  std::string equation;
  std::vector<Shape> shapes;
  std::map<std::string, std::size_t> ops;  // what it becomes
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.equation; }

class LowerEinsum : public ::testing::TestWithParam<Case> {};

TEST_P(LowerEinsum, LeavesTheNumbers) {
  const Case& c = GetParam();
  Sketch s;
  std::vector<ValueId> inputs;
  for (const Shape& shape : c.shapes) inputs.push_back(s.input("x" + std::to_string(inputs.size()), shape));
  s.finish({s.op("Einsum", inputs, {{"equation", c.equation}})});
  const PassResult result = s.apply("lower_einsum");
  EXPECT_EQ(result.matches, 1u);
  std::map<std::string, std::size_t> ops;
  for (const NodeId id : s.graph.order()) ++ops[s.graph.node(id).op];
  EXPECT_EQ(ops, c.ops);
}

INSTANTIATE_TEST_SUITE_P(Equations, LowerEinsum,
                         ::testing::Values(
                             // attention: scores, context, and heads that lie between
                             Case{"bhqd,bhkd->bhqk", {{2, 3, 5, 4}, {2, 3, 6, 4}}, {{"MatMul", 1}, {"Transpose", 1}}},
                             Case{"bqhd,bkhd->bhqk", {{2, 5, 3, 4}, {2, 6, 3, 4}}, {{"MatMul", 1}, {"Transpose", 2}}},
                             Case{"bhqk,bkhd->bqhd", {{2, 3, 5, 6}, {2, 6, 3, 4}}, {{"MatMul", 1}, {"Transpose", 2}}},
                             // projections: rows and columns of several letters
                             Case{"bsd,dhk->bshk", {{2, 5, 4}, {4, 3, 6}}, {{"MatMul", 1}, {"Reshape", 3}}},
                             Case{"bshk,hkd->bsd", {{2, 5, 3, 6}, {3, 6, 4}}, {{"MatMul", 1}, {"Reshape", 3}}},
                             Case{"bsd,de->bse", {{2, 5, 4}, {4, 3}}, {{"MatMul", 1}, {"Reshape", 2}}},
                             // the result asks for columns first
                             Case{"ik,kj->ji", {{3, 4}, {4, 5}}, {{"MatMul", 1}, {"Transpose", 2}}},
                             Case{"...ij,...jk->...ik", {{2, 3, 4, 5}, {2, 3, 5, 6}}, {{"MatMul", 1}}},
                             Case{"...ij,jk", {{2, 4, 5}, {5, 6}}, {{"MatMul", 1}, {"Reshape", 2}}},
                             // the gradient of a weight; one of several letters
                             Case{"abc,abd->cd", {{2, 3, 4}, {2, 3, 5}}, {{"MatMul", 1}, {"Transpose", 1}, {"Reshape", 2}}},
                             Case{"ij,kj->i", {{3, 5}, {4, 5}}, {{"MatMul", 1}, {"ReduceSum", 1}, {"Reshape", 2}}},
                             // an extent of 1 against a larger one
                             Case{"bij,bjk->bik", {{1, 4, 5}, {2, 5, 6}}, {{"MatMul", 1}, {"Transpose", 3}, {"Reshape", 3}}},
                             Case{"...i,...i->...", {{2, 1, 4}, {3, 4}}, {{"MatMul", 1}, {"Reshape", 1}, {"Transpose", 1}}},
                             // nothing to sum, nothing but sums
                             Case{"bi,bj->bij", {{2, 3}, {2, 4}}, {{"Mul", 1}, {"Reshape", 2}}},
                             Case{"j,ij->ij", {{4}, {3, 4}}, {{"Mul", 1}}},
                             Case{"bi,bi->b", {{2, 3}, {2, 3}}, {{"Mul", 1}, {"ReduceSum", 1}}},
                             Case{"i,i->", {{3}, {3}}, {{"Mul", 1}, {"ReduceSum", 1}}},
                             // one operand
                             Case{"ij->ji", {{3, 4}}, {{"Transpose", 1}}}, Case{"ij->j", {{3, 4}}, {{"ReduceSum", 1}}},
                             Case{"ij->", {{3, 4}}, {{"ReduceSum", 1}}},
                             Case{"abc->ca", {{3, 4, 5}}, {{"ReduceSum", 1}, {"Transpose", 1}}},
                             Case{"ij->ij", {{3, 4}}, {{"Identity", 1}}},
                             // several
                             Case{"ij,jk,kl->il", {{3, 4}, {4, 5}, {5, 6}}, {{"MatMul", 2}}},
                             Case{"bi,bj,bk->bijk", {{2, 3}, {2, 4}, {2, 5}}, {{"Mul", 2}, {"Reshape", 4}}},
                             Case{"ij,ij,ij->", {{3, 4}, {3, 4}, {3, 4}}, {{"Mul", 2}, {"ReduceSum", 1}}}));

TEST(LowerEinsum, ADiagonalIsANearMiss) {
  Sketch s;
  const ValueId x = s.input("x", {4, 4});
  s.finish({s.op("Einsum", {x}, {{"equation", "ii->i"}})});
  const PassResult result = s.apply("lower_einsum");
  EXPECT_EQ(result.matches, 0u);
  ASSERT_EQ(result.nearMisses.size(), 1u);
  EXPECT_EQ(result.nearMisses[0].condition, "it takes the diagonal of an operand");
}

// Whoever asks for the result by its id finds it.
TEST(LowerEinsum, TheResultStaysTheSameValue) {
  Sketch s;
  const ValueId y = s.op("Einsum", {s.input("a", {3, 4}), s.input("b", {4, 5})}, {{"equation", "ij,jk->ik"}});
  s.finish({y});
  s.apply("lower_einsum");
  EXPECT_TRUE(s.graph.alive(y));
  EXPECT_EQ(s.graph.node(s.graph.value(y).producer).op, "MatMul");
  EXPECT_EQ(s.graph.outputs(), std::vector{y});
}

// Both gradients of attention's scores are products too, and what moves heads is read where it lies.
TEST(LowerEinsum, FoldsWithTheTranspositionsAroundIt) {
  Sketch s;
  const ValueId q = s.input("q", {2, 5, 3, 4}), k = s.input("k", {2, 6, 3, 4});
  s.finish({s.op("Einsum", {q, k}, {{"equation", "bqhd,bkhd->bhqk"}})});
  s.apply("lower_einsum");
  s.apply("fold_transposes");
  EXPECT_EQ(s.count("Transpose"), 0u);
  EXPECT_EQ(s.count("Product"), 1u);
}

}  // namespace
}  // namespace stepscope
