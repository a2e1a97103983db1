#include "engine/lab/summed_terms.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/op_def.h"

namespace stepscope {

bool SummedTerms::zeroUpToRounding() const {
  return std::isfinite(terms) && terms > 0 && norm <= kRoundings * std::ldexp(1.0, -24) * terms;
}

bool sumsTerms(const Node& node) {
  return (node.op == "ReduceSum" && node.domain.empty()) || (node.op == "ReduceToShape" && node.domain == kInternalDomain);
}

SummedTerms summedTerms(const TensorView& terms, const TensorView& sums) {
  SummedTerms found;
  for (std::int64_t i = 0; i < sums.elements(); ++i) {
    const double x = elementAsDouble(sums, i);
    found.norm += x * x;
  }
  found.norm = std::sqrt(found.norm);
  for (std::int64_t i = 0; i < terms.elements(); ++i) found.terms += std::abs(elementAsDouble(terms, i));
  const auto count = static_cast<double>(std::max<std::int64_t>(1, sums.elements()));
  found.terms /= std::sqrt(count);
  return found;
}

}  // namespace stepscope
