// What a kernel is and how one is found.
//
// A kernel is made once per node and input shapes (phase `bind`) from a KernelSpec, then run once per step with the
// addresses of that plan. The bind may allocate and pick primitives; `run` allocates nothing on the heap: scratch
// memory is asked for with workspaceBytes() and comes with the call. Kernels are looked up in a KernelRegistry
// (kernel_registry.h): first among those of the device, then among the reference kernels, which are there for every op in
// plain loops and every dtype.
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
#include "kernels/space.h"
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
  Space space = Space::kHost;      // where it is when the kernel is launched
  bool present() const { return dtype != DType::kUndefined; }
};

struct KernelSpec {
  std::string domain;  // "" = ai.onnx, "com.microsoft", "stepscope" (internal ops, see engine/ops/README.md)
  std::string op;
  Attributes attrs;
  std::vector<OperandSpec> inputs;  // trailing absent operands may be left out: use inputPresent
  std::vector<OperandSpec> outputs;
  int threads = 1;
  void* user = nullptr;  // of the KernelEntry whose factory is called

  bool inputPresent(std::size_t i) const { return i < inputs.size() && inputs[i].present(); }
  bool outputPresent(std::size_t i) const { return i < outputs.size() && outputs[i].present(); }
};

struct KernelCall {
  std::span<const TensorView> inputs;  // one per spec input
  std::span<TensorView> outputs;       // one per spec output; data is null for dynamic outputs until `allocate`
  std::span<std::byte> workspace;      // at least workspaceBytes(), 64-byte aligned
  RandomKey random;
  StreamId stream = 0;  // of the device that launches it
  // For outputs whose extents depend on data: gives output `i` memory for `dims` and updates outputs[i].
  std::function<Status(std::size_t i, Dims dims)> allocate;

  bool inputPresent(std::size_t i) const { return i < inputs.size() && inputs[i].present(); }
  bool outputPresent(std::size_t i) const { return i < outputs.size() && outputs[i].present(); }
};

// What the bits of a result depend on besides the operands, the attributes and the instruction set.
struct Determinism {
  enum class Order : std::uint8_t {
    kFixed,        // nothing: any number of threads gives the same bits
    kThreadCount,  // sums are cut by the number of threads: equal bits for an equal number
    kKeyedRandom,  // the random key of the call; every number from its element, so the same for any number of threads
    kUnordered,    // the moment: additions in the order in which threads arrive, other bits in every run
  };
  Order order = Order::kFixed;
  std::string reason;  // for people: "every element is computed by one thread in a fixed order"

  static Determinism fixed(std::string reason = "every element is computed by one thread in a fixed order") {
    return {Order::kFixed, std::move(reason)};
  }
  static Determinism oneThread() { return fixed("one thread in a fixed order"); }
  static Determinism keyedRandom() {
    return {Order::kKeyedRandom, "numbers depend on seed, micro step, imported node and element only"};
  }
  // `what` is cut: "the gradients of scale and bias are summed per thread".
  static Determinism perThread(std::string what) {
    return {Order::kThreadCount, std::move(what) + "; equal bits for an equal number of threads"};
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::size_t workspaceBytes() const { return 0; }
  // Errors: values that disagree with the contract of the op (an index out of range, say), naming what was found.
  virtual Status run(const KernelCall& call) = 0;
  // False for a kernel that only computes: no contents of operands that fit the spec are an error to it. A step saves the
  // state that it writes over while something that may fail is still to come.
  virtual bool mayFail() const { return true; }
  // True for a kernel that a run leaves as it was: instructions with the same spec then run one and the same kernel.
  virtual bool keepsNothing() const { return false; }
  // What does the work, for people: "reference", "onednn brg:avx512_core", "simd softmax".
  virtual std::string implementation() const = 0;
  // Every kernel says it, so that nobody has to guess from its name; tests/kernels holds it to it with 1, 2 and 3 threads.
  virtual Determinism determinism() const = 0;
};

// Errors: kUnsupported when this implementation does not take the spec (the next list is tried); others are final.
using KernelFactory = Result<std::unique_ptr<Kernel>> (*)(const KernelSpec& spec);

// A set of element types, by their numbers.
using DTypeMask = std::uint32_t;
constexpr DTypeMask dtypeBit(DType dtype) { return DTypeMask{1} << static_cast<unsigned>(dtype); }
inline constexpr DTypeMask kAnyDType = 0xffffffffu;

// Which parts of a result depend on those parts of the operands alone, operands being broadcast as ONNX does.
enum class IndependentParts : std::uint8_t {
  kNone,
  kElements,  // every element
  kRows,      // everything in front of attribute `axis` (-1 when it has none)
};

struct KernelEntry {
  std::string_view domain, op;
  KernelFactory make;
  bool layouts = false;  // takes operands in kChannels16 as well as plain ones, or answers kUnsupported
  // Element types of the first operand that is there (of the first result for ops without operands) that the factory may
  // take; the factory decides about the rest. It is not asked for others.
  DTypeMask dtypes = kAnyDType;
  void* user = nullptr;  // given to the factory as KernelSpec::user: for kernels that a shared library adds
  IndependentParts parts = IndependentParts::kNone;
  bool channelsLast = false;  // takes operands in any layout, or answers kUnsupported
};

// Which list is looked at first.
enum class Backend { kReference, kCpu };

// Explicit lists, one line per kernel: kernels/reference/kernel_list.cpp and kernels/cpu/kernel_list.cpp.
std::span<const KernelEntry> referenceKernels();
std::span<const KernelEntry> cpuKernels();

// The same as KernelRegistry::make of the built-in kernels: for kernels that are made of others, and for tests and tools
// that have no session.
Result<std::unique_ptr<Kernel>> makeKernel(Backend backend, const KernelSpec& spec);

// A reference kernel is a plain function of the spec and the call.
using ReferenceFunction = Status (*)(const KernelSpec& spec, const KernelCall& call);
std::unique_ptr<Kernel> makeFunctionKernel(const KernelSpec& spec, ReferenceFunction function, std::string implementation,
                                           Determinism determinism = Determinism::oneThread());

}  // namespace stepscope
