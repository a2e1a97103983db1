#include "engine/lab/same_plan.h"

#include <algorithm>
#include <cstring>

#include "engine/plan/spec_table.h"

namespace stepscope {
namespace {

bool sameContents(const Tensor& a, const Tensor& b) {
  if (a.valid() != b.valid()) return false;
  if (!a.valid() || a.data() == b.data()) return true;
  return a.dtype() == b.dtype() && a.dims() == b.dims() && a.dtype() != DType::kString &&
         std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

// Random numbers are drawn for imported nodes.
std::int32_t randomNode(const Variant& variant, const Instruction& instruction) {
  return instruction.node ? variant.graph.node(instruction.node).provenance.imported.index : -1;
}

bool sameInstruction(const Variant& of, const Instruction& a, const Variant& other, const Instruction& b) {
  const auto sameWait = [](const Wait& x, const Wait& y) { return x.instruction == y.instruction && x.host == y.host; };
  return a.kind == b.kind && a.inputs == b.inputs && a.outputs == b.outputs && a.predicates == b.predicates &&
         a.view == b.view && a.dynamic == b.dynamic && a.updateEntry == b.updateEntry && a.onHost == b.onHost &&
         a.stream == b.stream && std::equal(a.waits.begin(), a.waits.end(), b.waits.begin(), b.waits.end(), sameWait) &&
         randomNode(of, a) == randomNode(other, b) && sameSpec(a.spec(), b.spec());
}

bool sameBuffer(const Variant& of, const Buffer& a, const Variant& other, const Buffer& b) {
  if (a.home != b.home || a.bytes != b.bytes || a.first != b.first || a.last != b.last || a.shares != b.shares ||
      a.layout != b.layout || a.space != b.space)
    return false;
  if (a.home == Home::kState || a.home == Home::kInput) return a.name == b.name;
  if (a.home != Home::kConstant || !a.value || !b.value) return true;
  const InitialContents &x = of.graph.value(a.value).data, &y = other.graph.value(b.value).data;
  return x && y ? sameContents(*x, *y) : x == y;
}

}  // namespace

bool samePlan(const Variant& a, const Variant& b) {
  const TrainOptions &x = a.step->request.options, &y = b.step->request.options;
  if (a.step->request.threads != b.step->request.threads || x.reuse != y.reuse || x.subnormals != y.subnormals ||
      x.referenceKernels != y.referenceKernels || x.recordFlight != y.recordFlight || x.device != y.device ||
      x.cudaGraphs != y.cudaGraphs || a.plan.anyThreads != b.plan.anyThreads || !(a.signature == b.signature) ||
      a.plan.instructions.size() != b.plan.instructions.size() || a.plan.buffers.size() != b.plan.buffers.size())
    return false;
  for (std::size_t i = 0; i < a.plan.buffers.size(); ++i)
    if (!sameBuffer(a, a.plan.buffers[i], b, b.plan.buffers[i])) return false;
  for (std::size_t i = 0; i < a.plan.instructions.size(); ++i)
    if (!sameInstruction(a, a.plan.instructions[i], b, b.plan.instructions[i])) return false;
  return true;
}

}  // namespace stepscope
