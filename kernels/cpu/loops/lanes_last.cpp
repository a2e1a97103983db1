#include "kernels/cpu/loops/lanes_last.h"

#include <algorithm>

namespace stepscope::cpu {

bool anyBlocked(const KernelSpec& spec) {
  return std::any_of(spec.inputs.begin(), spec.inputs.end(), isBlocked) ||
         std::any_of(spec.outputs.begin(), spec.outputs.end(), isBlocked);
}

Dims lanesLast(const Dims& dims) {
  Dims seen = dims;
  seen[1] /= kLayoutLanes;
  seen.push_back(kLayoutLanes);
  return seen;
}

OperandSpec lanesLast(const OperandSpec& operand) {
  OperandSpec seen = operand;
  seen.dims = lanesLast(operand.dims);
  seen.layout = Layout::kPlain;
  return seen;
}

std::uint64_t lanesLast(std::uint64_t axes, std::size_t rank) { return axes | ((axes >> 1 & 1) << rank); }

Dims vectorLanesLast(const Dims& operand, const Dims& whole) {
  Dims padded(whole.size() - operand.size(), 1);
  padded.insert(padded.end(), operand.begin(), operand.end());
  return lanesLast(padded);
}

}  // namespace stepscope::cpu
