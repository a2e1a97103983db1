// What the loops share: the split over threads, kernels made from a function object, checks of a spec.
//
// A factory reads everything from the spec and answers kUnsupported for what it does not take: the reference kernel serves
// then.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/cpu/loops/loops.h"
#include "kernels/threads.h"

namespace stepscope::cpu {

// Into how many parts work is cut, which decides the order of its sums, and how many threads compute them.
struct Parts {
  int count = 1, team = 1;
  operator int() const { return count; }
};

// Parts that `count` units of `cost` elements each are cut into: one for little work. The team may be smaller: then a thread
// computes several parts, one after the other, with the same bits.
inline Parts partsOf(std::int64_t count, std::int64_t cost, int threads) {
  const int parts = threads <= 1 || count <= 1 || count * cost < kParallelElements ? 1 : threads;
  return {parts, threadsForElements(count * cost, parts)};
}

// Whether another number of threads cuts `count` units into other parts.
inline bool cutByThreads(std::int64_t count, std::int64_t cost) { return partsOf(count, cost, 1 << 10) > 1; }

// body(part, begin, end) for the even parts of [0, count), whose borders are multiples of `grain`; each by one thread.
template <typename Body>
void parallelParts(std::int64_t count, Parts parts, std::int64_t grain, Body&& body) {
  const std::int64_t grains = (count + grain - 1) / grain;
  const auto compute = [&](int part) {
    const std::int64_t begin = grains * part / parts.count * grain,
                       end = std::min(grains * (part + 1) / parts.count * grain, count);
    if (begin < end) body(part, begin, end);
  };
  if (parts.team <= 1) {
    for (int part = 0; part < parts.count; ++part) compute(part);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(parts.team)
  for (int part = 0; part < parts.count; ++part) compute(part);
}

// body(begin, end) over rows of `width` elements.
template <typename Body>
void parallelRows(std::int64_t rows, std::int64_t width, int threads, Body&& body) {
  parallelParts(rows, partsOf(rows, width, threads), 1,
                [&](int, std::int64_t begin, std::int64_t end) { body(begin, end); });
}

// body(begin, end) over elements; borders are multiples of 64.
template <typename Body>
void parallelElements(std::int64_t count, int threads, Body&& body) {
  parallelParts(count, partsOf(count, 1, threads), 64, [&](int, std::int64_t begin, std::int64_t end) { body(begin, end); });
}

// A kernel from a function object that was made at bind: body(const KernelCall&), which answers a Status when it may fail
// and nothing when it only computes.
template <typename Body>
class BodyKernel final : public Kernel {
 public:
  BodyKernel(std::string name, std::size_t workspace, Determinism determinism, Body body)
      : name_(std::move(name)), workspace_(workspace), determinism_(std::move(determinism)), body_(std::move(body)) {}
  std::size_t workspaceBytes() const override { return workspace_; }
  Status run(const KernelCall& call) override {
    if constexpr (kOnlyComputes) {
      body_(call);
      return {};
    } else {
      return body_(call);
    }
  }
  bool mayFail() const override { return !kOnlyComputes; }
  // Numbers and addresses of functions, which a call does not change; memory of its own might be.
  bool keepsNothing() const override {
    return std::is_invocable_v<const Body&, const KernelCall&> && std::is_trivially_copyable_v<Body>;
  }
  std::string implementation() const override { return name_; }
  Determinism determinism() const override { return determinism_; }

 private:
  static constexpr bool kOnlyComputes = std::is_void_v<std::invoke_result_t<Body&, const KernelCall&>>;
  std::string name_;
  std::size_t workspace_;
  Determinism determinism_;
  Body body_;
};

// A kernel that runs `body(call)`; name: what inspect shows; workspace in bytes. One that sums across the parts of its
// threads says so with `determinism`.
template <typename Body>
std::unique_ptr<Kernel> makeBodyKernel(std::string name, Body body, std::size_t workspace = 0,
                                       Determinism determinism = Determinism::fixed()) {
  return std::make_unique<BodyKernel<Body>>(std::move(name), workspace, std::move(determinism), std::move(body));
}

// Operands of a call by their type.
template <typename T = float>
const T* input(const KernelCall& call, std::size_t i) {
  return static_cast<const T*>(call.inputs[i].data);
}
template <typename T = float>
T* output(const KernelCall& call, std::size_t i) {
  return static_cast<T*>(call.outputs[i].data);
}

// The answer of a factory that leaves an operand to the reference kernel.
inline tl::unexpected<Error> notTaken(const KernelSpec& spec, std::string_view what) {
  return unsupported(spec.op + ": " + std::string(what) + "; the vector loop takes other operands");
}

// Whether the operand is there, of the type, with extents known at bind, and not empty.
inline bool takes(const OperandSpec& operand, DType dtype = DType::kF32) {
  return operand.dtype == dtype && !operand.dynamic && elementCount(operand.dims) > 0;
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
// A number that is one element, whatever its type.
inline bool takesScalar(const KernelSpec& spec, std::size_t i) {
  return spec.inputPresent(i) && !spec.inputs[i].dynamic && spec.inputs[i].dtype != DType::kString &&
         elementCount(spec.inputs[i].dims) == 1;
}

// Copies `count` floats past the caches where `to` is aligned: for results larger than the caches, which then are not read
// before they are overwritten. Call finishStreams() once per thread afterwards.
void streamCopy(float* to, const float* from, std::int64_t count);
void streamZeros(float* to, std::int64_t count);
void finishStreams();

}  // namespace stepscope::cpu
