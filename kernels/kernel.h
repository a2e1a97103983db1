// What a kernel is and how one is found.
//
// A kernel is made once per node and input shapes (phase `bind`) from a KernelSpec, then run once per step with the
// addresses of that plan. The bind may allocate and pick primitives; `run` allocates nothing on the heap: scratch
// memory is asked for with workspaceBytes() and comes with the call. Kernels are looked up by (domain, op): first in
// the list of the device, then in the reference list, which has every op in plain loops and every dtype.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/layout.h"
#include "kernels/random.h"
#include "kernels/tensor.h"

namespace stepscope {

// Type and extents of one operand. An absent optional operand has dtype kUndefined. Extents of an output that depends
// on data (NonZero …) are not known: `dims` then is the upper bound and `dynamic` is set.
struct OperandSpec {
  DType dtype = DType::kUndefined;
  Dims dims;
  bool dynamic = false;
  Tensor constant;  // the contents when they are known at bind time (shape operands, axes, pads …), else invalid
  Layout layout = Layout::kPlain;  // dims are the logical ones whatever it is
  bool present() const { return dtype != DType::kUndefined; }
};

struct KernelSpec {
  std::string domain;  // "" = ai.onnx, "com.microsoft", "stepscope" (internal ops, see engine/ops/README.md)
  std::string op;
  Attributes attrs;
  std::vector<OperandSpec> inputs;  // trailing absent operands may be left out: use inputPresent
  std::vector<OperandSpec> outputs;
  int threads = 1;

  bool inputPresent(std::size_t i) const { return i < inputs.size() && inputs[i].present(); }
  bool outputPresent(std::size_t i) const { return i < outputs.size() && outputs[i].present(); }
};

struct KernelCall {
  std::span<const TensorView> inputs;  // one per spec input
  std::span<TensorView> outputs;       // one per spec output; data is null for dynamic outputs until `allocate`
  std::span<std::byte> workspace;      // at least workspaceBytes(), 64-byte aligned
  RandomKey random;
  // For outputs whose extents depend on data: gives output `i` memory for `dims` and updates outputs[i].
  std::function<Status(std::size_t i, Dims dims)> allocate;

  bool inputPresent(std::size_t i) const { return i < inputs.size() && inputs[i].present(); }
  bool outputPresent(std::size_t i) const { return i < outputs.size() && outputs[i].present(); }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::size_t workspaceBytes() const { return 0; }
  // Errors: values that disagree with the contract of the op (an index out of range, say), naming what was found.
  virtual Status run(const KernelCall& call) = 0;
  // What does the work, for people: "reference", "onednn brg:avx512_core", "simd softmax".
  virtual std::string implementation() const = 0;
};

// Errors: kUnsupported when this implementation does not take the spec (the next list is tried); others are final.
using KernelFactory = Result<std::unique_ptr<Kernel>> (*)(const KernelSpec& spec);

struct KernelEntry {
  std::string_view domain, op;
  KernelFactory make;
  bool layouts = false;  // takes operands in any layout, or answers kUnsupported
};

// Which list is looked at first.
enum class Backend { kReference, kCpu };

// Explicit lists, one line per kernel: kernels/reference/kernel_list.cpp and kernels/cpu/kernel_list.cpp.
std::span<const KernelEntry> referenceKernels();
std::span<const KernelEntry> cpuKernels();

// Finds and makes the kernel; Backend::kReference skips the fast list. A kernel that does not know the layouts of the
// operands runs between reorders into workspace memory.
Result<std::unique_ptr<Kernel>> makeKernel(Backend backend, const KernelSpec& spec);
// Whether any list has the op.
bool hasKernel(Backend backend, std::string_view domain, std::string_view op);

// A reference kernel is a plain function of the spec and the call.
using ReferenceFunction = Status (*)(const KernelSpec& spec, const KernelCall& call);
std::unique_ptr<Kernel> makeFunctionKernel(const KernelSpec& spec, ReferenceFunction function, std::string implementation);

}  // namespace stepscope
