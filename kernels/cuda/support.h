// What the host side of the kernels shares: checks of a spec, and a kernel made of a function that launches.
//
// A factory reads everything from the spec and answers kUnsupported for what it does not take; the node then runs on the CPU
// between copies.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "kernels/cuda/body.h"

namespace stepscope::cuda {

using gpu::Access;
using gpu::Complaint;
using gpu::Global;
using gpu::Launcher;

// The factories, make<Op>.
#define SS_KERNEL(domain, op, make, file) Result<std::unique_ptr<Kernel>> make(const KernelSpec& spec);
#include "kernels/cuda/kernels.inc"
#undef SS_KERNEL

// body(Launcher&) → Status puts the launches of one call on its stream.
template <typename Body>
class LaunchedKernel final : public Kernel {
 public:
  LaunchedKernel(std::string name, std::size_t workspace, Determinism determinism, Body body)
      : name_("cuda " + std::move(name)),
        workspace_(workspace),
        determinism_(std::move(determinism)),
        body_(std::move(body)) {}
  std::size_t workspaceBytes() const override { return workspace_; }
  Status run(const KernelCall& call) override {
    Launcher gpu(call);
    return body_(gpu);
  }
  std::string implementation() const override { return name_; }
  Determinism determinism() const override { return determinism_; }

 private:
  std::string name_;
  std::size_t workspace_;
  Determinism determinism_;
  Body body_;
};

// A kernel of `body`; name: what inspect shows; workspace in bytes.
template <typename Body>
std::unique_ptr<Kernel> makeLaunched(std::string name, Body body, std::size_t workspace = 0,
                                     Determinism determinism = Determinism::fixed()) {
  return std::make_unique<LaunchedKernel<Body>>(std::move(name), workspace, std::move(determinism), std::move(body));
}

// The answer of a factory that leaves an operand to the CPU.
inline tl::unexpected<Error> notTaken(const KernelSpec& spec, std::string_view what) {
  return unsupported(spec.op + ": " + std::string(what) + "; the CUDA kernel takes other operands");
}

// Whether the operand is there, of the type, row-major, with extents known at bind, and not empty.
inline bool takes(const OperandSpec& operand, DType dtype = DType::kF32) {
  return operand.dtype == dtype && !operand.dynamic && operand.layout == Layout::kPlain && elementCount(operand.dims) > 0;
}
inline bool takesInput(const KernelSpec& spec, std::size_t i, DType dtype = DType::kF32) {
  return i < spec.inputs.size() && takes(spec.inputs[i], dtype);
}
inline bool takesOutput(const KernelSpec& spec, std::size_t i, DType dtype = DType::kF32) {
  return i < spec.outputs.size() && takes(spec.outputs[i], dtype);
}
// As takesInput with so many elements; an absent operand passes.
inline bool takesOptional(const KernelSpec& spec, std::size_t i, std::int64_t elements, DType dtype = DType::kF32) {
  return !spec.inputPresent(i) || (takes(spec.inputs[i], dtype) && elementCount(spec.inputs[i].dims) == elements);
}
inline bool takesOptionalOutput(const KernelSpec& spec, std::size_t i, std::int64_t elements, DType dtype = DType::kF32) {
  return !spec.outputPresent(i) || (takes(spec.outputs[i], dtype) && elementCount(spec.outputs[i].dims) == elements);
}
// One element of any type but text.
inline bool takesScalar(const KernelSpec& spec, std::size_t i) {
  return spec.inputPresent(i) && !spec.inputs[i].dynamic && spec.inputs[i].dtype != DType::kString &&
         elementCount(spec.inputs[i].dims) == 1;
}

// --- order of additions

// Whether the bits may depend on the moment (attribute `unordered`, which option deterministic=off gives to every node).
// Kernels add atomically then, where that is the faster form.
inline bool isUnordered(const KernelSpec& spec) { return spec.attrs.integer("unordered", 0) != 0; }
// The verdict of such a kernel; `what` is added.
inline Determinism inOrderOfArrival(const std::string& what) {
  return {Determinism::Order::kUnordered, what + " are added in the order in which threads arrive"};
}

// --- moving bytes

// Sixteen bytes that are moved at once.
struct alignas(16) Wide {
  std::uint64_t low = 0, high = 0;
};
// Whether operands at both addresses, and runs of `bytes`, can be moved in words of sixteen bytes.
inline bool movesWide(const void* from, const void* to, std::int64_t bytes) {
  const auto both = reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to);
  return both % sizeof(Wide) == 0 && bytes % static_cast<std::int64_t>(sizeof(Wide)) == 0;
}

// --- shapes of launches

inline constexpr int kThreads = 256;  // of a block where one thread makes one result
// Blocks that make `count` results of one thread each.
inline std::int64_t blocksFor(std::int64_t count, std::int64_t perBlock = kThreads) {
  return (count + perBlock - 1) / perBlock;
}
// Threads that share a row: whole warps, few for short rows.
inline int threadsForRow(std::int64_t width) { return width <= 256 ? 32 : width <= 2048 ? 128 : 256; }

}  // namespace stepscope::cuda
