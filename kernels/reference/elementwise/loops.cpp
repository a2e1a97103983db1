#include "kernels/reference/elementwise/loops.h"

namespace stepscope::reference {

BroadcastIndex::BroadcastIndex(const Dims& out, const Dims& in) {
  same_ = elementCount(out) == elementCount(in);
  if (same_) return;
  std::int64_t stride = 1;
  bool previousMoves = false;
  for (std::size_t back = 1; back <= out.size(); ++back) {
    const std::int64_t extent = out[out.size() - back];
    if (extent == 1) continue;
    const bool moves = back <= in.size() && in[in.size() - back] != 1;
    if (rank_ > 0 && moves == previousMoves) {
      extents_[rank_ - 1] *= extent;
    } else {
      extents_[rank_] = extent;
      strides_[rank_] = moves ? stride : 0;
      ++rank_;
    }
    if (moves) stride *= extent;
    previousMoves = moves;
  }
}

namespace {
std::string operand(const KernelSpec& spec, std::size_t input) { return spec.op + ": input " + std::to_string(input); }
}  // namespace

Status checkBroadcasts(const KernelSpec& spec, const KernelCall& call, std::size_t input, std::size_t output) {
  const Dims& in = call.inputs[input].dims;
  const Dims& out = call.outputs[output].dims;
  bool fits = in.size() <= out.size() && out.size() <= BroadcastIndex::kMaxRank;
  for (std::size_t back = 1; fits && back <= in.size(); ++back) {
    const std::int64_t extent = in[in.size() - back];
    fits = extent == 1 || extent == out[out.size() - back];
  }
  if (fits) return {};
  return invalid(operand(spec, input) + " has shape " + dimsText(in) + "; one that broadcasts to " + dimsText(out));
}

Status checkSameElements(const KernelSpec& spec, const KernelCall& call, std::size_t input, std::size_t output) {
  const TensorView& x = call.inputs[input];
  const TensorView& y = call.outputs[output];
  if (x.elements() == y.elements()) return {};
  return invalid(operand(spec, input) + " has shape " + dimsText(x.dims) + "; as many elements as " + dimsText(y.dims));
}

Status checkType(const KernelSpec& spec, const KernelCall& call, std::size_t input, DType dtype) {
  const DType found = call.inputs[input].dtype;
  if (found == dtype) return {};
  return invalid(operand(spec, input) + " is " + std::string(dtypeName(found)) + "; " + std::string(dtypeName(dtype)));
}

Status checkOutputType(const KernelSpec& spec, const KernelCall& call, std::size_t output, DType dtype) {
  const DType found = call.outputs[output].dtype;
  if (found == dtype) return {};
  return invalid(spec.op + ": output " + std::to_string(output) + " is " + std::string(dtypeName(found)) + "; " +
                 std::string(dtypeName(dtype)));
}

tl::unexpected<Error> wrongType(const KernelSpec& spec, DType dtype) {
  return invalid(spec.op + ": element type " + std::string(dtypeName(dtype)) + "; one that the operator is defined for");
}

Status checkVariadic(const KernelSpec& spec, const KernelCall& call) {
  if (call.inputs.empty()) return invalid(spec.op + ": no inputs; at least one");
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    SS_TRY(checkType(spec, call, i, call.inputs[0].dtype));
    SS_TRY(checkBroadcasts(spec, call, i));
  }
  return checkOutputType(spec, call, 0, call.inputs[0].dtype);
}

}  // namespace stepscope::reference
