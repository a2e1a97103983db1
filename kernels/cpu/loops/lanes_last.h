// Operands in nChw16c seen as plain ones of one more axis: [N, C, …] lies like row-major [N, C / 16, …, 16]. What copies,
// sums or repeats along other axes than the channels takes that layout by working on these extents.
#pragma once

#include "kernels/channel_vector.h"
#include "kernels/kernel.h"

namespace stepscope::cpu {

inline bool isBlocked(const OperandSpec& operand) { return operand.present() && operand.layout == Layout::kChannels16; }
bool anyBlocked(const KernelSpec& spec);

Dims lanesLast(const Dims& dims);
OperandSpec lanesLast(const OperandSpec& operand);

// The same of a set of axes: channels are two of them.
std::uint64_t lanesLast(std::uint64_t axes, std::size_t rank);

// A channel vector (kernels/channel_vector.h) of `whole`, to go with lanesLast(whole).
Dims vectorLanesLast(const Dims& operand, const Dims& whole);

}  // namespace stepscope::cpu
