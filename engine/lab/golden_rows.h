// A tensor next to PyTorch's, and what came of all of them.
//
// Tolerance of a tensor: the one of the capture where it has one; it was made by running PyTorch's own float32 step from
// parameters that differ by one rounding, next to float64 (4 times the worst of those, at least 2e-5 of the largest
// element). Else kShareOfLargest of the largest element plus kShareOfModel of the largest gradient of the model. A sum of n
// rounded terms is off by about sqrt(n) u, u = 2^-24 (Higham and Mary, "A new approach to probabilistic rounding error
// analysis", SIAM J. Sci. Comput. 41 (2019)); the first factor allows n = 2^26. The second is for gradients that are what
// rounding left of larger ones that cancel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"

namespace stepscope {

inline constexpr double kShareOfLargest = 0x1p-11, kShareOfModel = 0x1p-19;

// Skipped: the user's options leave it out.
enum class GoldenVerdict { kAgrees, kDiffers, kSkipped };

// One line of the comparison.
struct GoldenRow {
  enum class Kind { kLoss, kGradient, kStatistic, kOutput, kDraws, kParameter };
  Kind kind = Kind::kGradient;
  std::string name;
  Dims dims;
  double maxAbs = 0;                         // largest difference of an element
  double maxRel = 0;                         // that, as a share of the golden's largest element; infinite when that is 0
  double cosine = 1;                         // of the angle between both; 1 when they are equal, NaN when one is not finite
  double factor = 1;                         // found = factor * golden fits best (least squares)
  double tolerance = 0;                      // for maxAbs
  double largest = 0;                        // element of the golden, as a magnitude
  double found = 0, expected = 0;            // at `index`
  std::vector<std::int64_t> index;           // of the largest difference; empty: none
  std::int64_t zeroHere = 0, zeroThere = 0;  // elements that are 0 in one of both alone
  std::int64_t elements = 0;
  bool rowsScaled = false;  // of a matrix: every row is the golden's times a factor of its own
  GoldenVerdict verdict = GoldenVerdict::kAgrees;
  std::string words;           // what the verdict rests on, where that is not the difference alone
  std::string cause;           // likely; empty: none is known
  std::string module, source;  // of the first node that reads it: "encoder.0", "model.py:12 x = self.fc(x)"
};
std::string_view kindName(GoldenRow::Kind kind);      // "gradient" …
std::string_view verdictName(GoldenVerdict verdict);  // "agrees", "differs", "skipped"

// What was compared was computed in this precision, here and in PyTorch.
inline constexpr std::string_view kGoldenPrecision = "fp32";

struct GoldenReport {
  std::string unchecked;     // why nothing was compared; empty: it was
  std::string notPrecision;  // "bf16": of the run that was asked for, of which no verdict speaks; empty: it is compared
  std::vector<GoldenRow> rows;
  std::string firstOutput;  // the first module whose output differs, where outputs were captured; empty: none
  std::int64_t count(GoldenVerdict verdict) const;
  bool agrees() const { return unchecked.empty() && count(GoldenVerdict::kDiffers) == 0; }
  // The worst row that differs: of those of the first kind in the order loss, gradient …, the one furthest outside of its
  // tolerance. Null when none does.
  const GoldenRow* worst() const;
};

// Compares one tensor. `tolerance`: as in Golden; absent: derived from f32 rounding, with the model's `largest` gradient.
GoldenRow compareTensor(GoldenRow::Kind kind, const std::string& name, const TensorView& found, const TensorView& golden,
                        std::optional<double> tolerance, double largest);

// The largest magnitude of a finite element; 0: there is none.
double largestMagnitude(const TensorView& view);

}  // namespace stepscope
