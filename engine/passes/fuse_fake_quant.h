// Quantisation in training as one node: QuantizeLinear, an optional Clip, DequantizeLinear and the StraightThrough behind
// them (straight_through.h) become FakeQuant, whose mask its gradient reads.
//
//   StraightThrough(DequantizeLinear(QuantizeLinear(x, s, z), s, z), x, s, z) → FakeQuant(x, s, z)
//
// Where one scale serves all elements, nothing else reads the integers, and the zero point is an even number: FakeQuant
// rounds x / s + z, the pair rounds x / s, and a tie goes to the even neighbour. Off by
// default: FakeQuant divides in double, so that a quotient next to a half may go to the other neighbour. Runs before the
// gradient.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseFakeQuant(Graph& graph, PassContext& context);

}  // namespace stepscope
