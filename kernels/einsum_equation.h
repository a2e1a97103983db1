// The equation of Einsum, parsed and checked against shapes.
//
// Every axis of every operand gets the number of a label; axes under "..." count as labels of their own, aligned from the
// right as in broadcasting. So the kernel is one loop over all labels, whatever the equation.
// Source     ONNX Einsum-12, numpy.einsum.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/shape.h"

namespace stepscope {

// One operand or the result, as letters. `ellipsis` is the position of "..." among `letters`, or -1.
struct EinsumTerm {
  std::string letters;
  int ellipsis = -1;
  std::string text() const;
};

struct EinsumEquation {
  std::vector<EinsumTerm> operands;
  EinsumTerm output;  // made by numpy's rule when the equation has no "->": ellipsis, then letters that occur once, sorted
};

// Errors: characters other than letters, "...", ",", "->" and blanks; more than one "..." in a term; output letters that
// repeat or that no operand has; a count of terms other than `operands`.
Result<EinsumEquation> parseEinsum(std::string_view equation, std::size_t operands);

// Labels per axis: 0..51 letters, kEinsumEllipsis + i for the i-th axis from the right under "...".
inline constexpr int kEinsumEllipsis = 52;
// Error: a rank that the term does not fit.
Result<std::vector<int>> einsumLabels(const EinsumTerm& term, std::size_t rank);

}  // namespace stepscope
