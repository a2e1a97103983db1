// Rewrites DFT, STFT and the window functions (Hann, Hamming, Blackman) into public ops, so that gradients, fusions and
// plans come with them: a transform is a product with a matrix of cosines and one of sines, frames are gathered, windows
// computed.
//
//   X[k] = Σ_n x[n] · e^(∓2πi·k·n / N),   N the transform length, the last axis real and imaginary part; inverse: / N
//
// Runs after an `infer`, which tells types and ranks, and before the next one; rounds repeat while they make progress (a
// transform of a transform). A matrix whose extents are known is a constant, others are computed from ranges.
// Inverting a onesided transform gives a real signal, last extent 1. A node is blocked while the type, the rank or the last
// extent of its input is unknown, or the extent of a onesided transform to be inverted.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status lowerSignal(Graph& graph, PassContext& context);

}  // namespace stepscope
