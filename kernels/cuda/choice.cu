// What takes elements or leaves them by a condition: Select and Gate, which join what an If has computed in one of its
// branches (the other one is not read), and Trilu; Constant, which one of its branches may give. One thread moves one
// element.
#include <cstring>

#include "kernels/cuda/support.h"

namespace stepscope::cuda {
inline namespace choice_cu {

// y[count] = x; zeros where x is absent. y may lie over x.
template <typename Word>
SS_GLOBAL void copyOrZeros(Global<const Word> x, Global<Word> y, std::int64_t count) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= count) return;
  Word word{};
  if (x.present()) word = x[i];
  y[i] = word;
}

constexpr int kMostBytes = 256;  // of a Constant
struct Bytes {
  std::uint8_t at[kMostBytes] = {};
};

// y: [count]
SS_GLOBAL void writeBytes(Global<std::uint8_t> y, Bytes bytes, std::int64_t count) {
  for (std::int64_t i = gpu::threadIndex(); i < count; i += gpu::blockSize()) y[i] = bytes.at[i];
}

// Matrices of rows × columns and the diagonal that bounds what is kept.
struct Triangle {
  std::int64_t rows = 1, columns = 1, diagonal = 0;
  bool upper = true;
};

// x, y: [count]; y may lie over x.
template <typename Word>
SS_GLOBAL void keepTriangle(Global<const Word> x, Global<Word> y, Triangle t, std::int64_t count) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= count) return;
  const std::int64_t distance = i % t.columns - i / t.columns % t.rows;
  Word word{};
  if (t.upper ? distance >= t.diagonal : distance <= t.diagonal) word = x[i];
  y[i] = word;
}

// Calls f with an unsigned number of as many bytes as an element has.
template <typename F>
std::unique_ptr<Kernel> withWordOf(DType dtype, F&& f) {
  switch (dtypeSize(dtype)) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

// Inputs first … last and output 0 are of one type that can be copied, and of one size.
bool takesCopies(const KernelSpec& spec, std::size_t first, std::size_t last) {
  if (spec.outputs.empty() || spec.outputs[0].dtype == DType::kString) return false;
  const DType dtype = spec.outputs[0].dtype;
  if (!takesOutput(spec, 0, dtype)) return false;
  for (std::size_t i = first; i <= last; ++i)
    if (!takesInput(spec, i, dtype) || elementCount(spec.inputs[i].dims) != elementCount(spec.outputs[0].dims)) return false;
  return true;
}
// The condition is read on the host, which decides with it what runs.
bool takesCondition(const KernelSpec& spec) {
  return takesInput(spec, 0, DType::kBool) && elementCount(spec.inputs[0].dims) == 1 && spec.inputs[0].space == Space::kHost;
}
bool holds(Launcher& gpu) { return *static_cast<const bool*>(gpu.call().inputs[0].data); }

}  // namespace choice_cu

// → y: the tensor of an attribute, which goes with the launch
Result<std::unique_ptr<Kernel>> makeConstant(const KernelSpec& spec) {
  if (spec.outputs.size() != 1 || spec.outputs[0].dtype == DType::kString || !takesOutput(spec, 0, spec.outputs[0].dtype))
    return notTaken(spec, "text, or nothing");
  const Tensor value(spec.outputs[0].dtype, spec.outputs[0].dims);
  if (value.bytes() > kMostBytes) return notTaken(spec, "more than 256 bytes");
  SS_ASSIGN(const auto host, makeKernel(Backend::kReference, spec));
  TensorView view = value.view();
  SS_TRY(host->run({{}, {&view, 1}, {}, {}, 0, {}}));
  Bytes bytes;
  std::memcpy(bytes.at, value.data(), value.bytes());
  return makeLaunched("constant", [bytes, count = static_cast<std::int64_t>(value.bytes())](Launcher& gpu) {
    return gpu.run("constant", gpu::function<writeBytes>, 1, 32, gpu.out<std::uint8_t>(0), bytes, count);
  });
}

// condition, a, b → y
Result<std::unique_ptr<Kernel>> makeSelect(const KernelSpec& spec) {
  if (!takesCondition(spec) || !takesCopies(spec, 1, 2)) return notTaken(spec, "operands of several types or sizes");
  const std::int64_t count = elementCount(spec.outputs[0].dims);
  return withWordOf(spec.outputs[0].dtype, [&]<typename Word>(Word) {
    return makeLaunched("choice", [=](Launcher& gpu) {
      const std::size_t chosen = holds(gpu) ? 1 : 2;
      return gpu.run("select", gpu::function<copyOrZeros<Word>>, blocksFor(count), kThreads, gpu.in<Word>(chosen),
                     gpu.out<Word>(0), count);
    });
  });
}

// condition, x → y: x where the condition is as attribute `expected` says, else zeros
Result<std::unique_ptr<Kernel>> makeGate(const KernelSpec& spec) {
  if (!takesCondition(spec) || !takesCopies(spec, 1, 1)) return notTaken(spec, "operands of several types or sizes");
  const std::int64_t count = elementCount(spec.outputs[0].dims);
  const bool expected = spec.attrs.integer("expected", 1) != 0;
  return withWordOf(spec.outputs[0].dtype, [&]<typename Word>(Word) {
    return makeLaunched("choice", [=](Launcher& gpu) {
      const auto x = holds(gpu) == expected ? gpu.in<Word>(1) : Global<const Word>();
      return gpu.run("gate", gpu::function<copyOrZeros<Word>>, blocksFor(count), kThreads, x, gpu.out<Word>(0), count);
    });
  });
}

// x, k? → y
Result<std::unique_ptr<Kernel>> makeTrilu(const KernelSpec& spec) {
  if (!takesCopies(spec, 0, 0) || spec.inputs[0].dims.size() < 2) return notTaken(spec, "elements that cannot be copied");
  if (spec.inputPresent(1) && (!spec.inputs[1].constant.valid() || spec.inputs[1].constant.elements() != 1))
    return notTaken(spec, "a diagonal that is not constant");
  const Dims& dims = spec.inputs[0].dims;
  const Triangle triangle{dims[dims.size() - 2], dims.back(),
                          spec.inputPresent(1) ? elementAsInt(spec.inputs[1].constant.view(), 0) : 0,
                          spec.attrs.integer("upper", 1) != 0};
  const std::int64_t count = elementCount(dims);
  return withWordOf(spec.outputs[0].dtype, [&]<typename Word>(Word) {
    return makeLaunched("triangle", [=](Launcher& gpu) {
      return gpu.run("triangle", gpu::function<keepTriangle<Word>>, blocksFor(count), kThreads, gpu.in<Word>(0),
                     gpu.out<Word>(0), triangle, count);
    });
  });
}

}  // namespace stepscope::cuda
