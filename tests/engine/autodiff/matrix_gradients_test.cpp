// Gradients through Cholesky and TriangularSolve of matrices that are positive definite by construction, against central
// differences of whole steps in float64; and what is said where a matrix is not.
#include "tests/engine/autodiff/slopes.h"

namespace stepscope::testing {
namespace {

std::string ours(const std::string& op, const std::string& inputs, const std::string& outputs,
                 const std::string& more = "") {
  return node(op, inputs, outputs, "domain: \"stepscope\" " + more);
}

// a = w wᵀ + 1, L = Cholesky(a), x = L⁻ᵀ b: loss = Σ (c x + L²).
TEST(MatrixGradients, CholeskyAndSolveAgreeWithDifferences) {
  expectSlopes(
      [](const std::vector<double>& w) {
        return doubles("w", {2, 3, 3}, w) + doubles("one", {3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}) +
               doubles("b", {3, 2}, {0.3, -1.2, 0.7, 2.0, -0.4, 1.1}) +
               doubles("c", {3, 2}, {1.5, 0.2, -0.8, 0.6, 1.1, -0.9}) +
               node("Transpose", "w", "t", attribute("perm", std::vector<std::int64_t>{0, 2, 1})) +
               node("MatMul", "w t", "p") + node("Add", "p one", "a") + ours("Cholesky", "a", "L") +
               ours("TriangularSolve", "L b", "x", attribute("transpose", 1)) + node("Mul", "x c", "xc") +
               node("ReduceSum", "xc", "s", attribute("keepdims", 0)) +
               node("ReduceSumSquare", "L", "r", attribute("keepdims", 0)) + node("Add", "s r", "loss");
      },
      "w", {0.9, -0.3, 0.5, 0.2, 1.1, -0.7, -0.4, 0.6, 0.8, 1.3, 0.1, -0.2, 0.7, -0.5, 0.4, 0.3, 0.9, -1.0});
}

TEST(MatrixGradients, AMatrixThatIsNotPositiveDefiniteIsNamed) {
  const auto step =
      smallStep(floats("w", {2, 2, 2}, {1, 0, 0, 1, 1, 2, 2, 1}) + ours("Cholesky", "w", "L") + sumOf("L"), 18, {"w"});
  ASSERT_FALSE(step.has_value());
  EXPECT_NE(step.error().message.find("matrix 1 is not positive definite: -3 is left of diagonal element 1"),
            std::string::npos)
      << step.error().message;
}

}  // namespace
}  // namespace stepscope::testing
