// Einsum as the public ops that have fast kernels: transpositions, reshapes, one matrix product per operand after the first,
// and sums.
//
// Letters that two operands share with the result count batches, letters that they share without it are summed by the
// product, all others are rows or columns. Operands are taken from left to right. Transpositions are left to
// fold_transposes, which reads operands where they lie, so this runs before it; extents have to be known, so it runs after
// the batch is bound. Equations that take the diagonal of an operand stay as they are, and so do integers.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status lowerEinsum(Graph& graph, PassContext& context);

}  // namespace stepscope
