// Sums whose terms cancel. A gradient may be zero by algebra: that of a bias added to the keys of attention is, since
// softmax does not change with it. In float32 it is then what rounding leaves of its sum, and a distance from it as a share
// of its norm is noise beside noise.
//
// The rule: a value that one node sums up (ReduceSum, ReduceToShape) is zero up to rounding where
//
//   norm(sum) <= kRoundings eps norm(sums of |terms|),   eps = 2^-24
//
// A float32 sum errs by at most eps times the depth of its tree of additions times the sum of |terms| (Higham, Accuracy and
// Stability of Numerical Algorithms, 2nd ed., 4.2), and kernels sum in blocks. Terms of random signs are far above that: n
// of them leave one part in sqrt(n). The norm of the sums of |terms| is taken by its lower bound, their plain sum by the
// root of the number of sums, so that in doubt a value is not zero.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "engine/ir/graph.h"
#include "kernels/tensor.h"

namespace stepscope {

inline constexpr double kRoundings = 16;  // depth of the tree of 65,536 terms

struct SummedTerms {
  double norm = 0;   // of the sums, L2
  double terms = 0;  // the lower bound above of the norm of the sums of |terms|; infinite terms make it infinite

  bool zeroUpToRounding() const;
};

// Whether a node sums terms up, of its input 0.
bool sumsTerms(const Node& node);

// `terms` and `sums`: what such a node read and made, in float32.
SummedTerms summedTerms(const TensorView& terms, const TensorView& sums);

}  // namespace stepscope
