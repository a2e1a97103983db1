#include <algorithm>

#include "kernels/cpu/loops/loops.h"

namespace stepscope::cpu {
namespace {

enum class Op { kAdd, kSub, kMul, kDiv };

template <Op kOp>
inline float apply(float a, float b) {
  if constexpr (kOp == Op::kAdd) return a + b;
  if constexpr (kOp == Op::kSub) return a - b;
  if constexpr (kOp == Op::kMul) return a * b;
  return a / b;
}

// y[0..n) over contiguous operands; a step of 0 repeats one element. y may be a or b.
#define SS_BINARY_LOOPS(NAME, OP)                                                                                     \
  SS_CLONES void NAME##Both(const float* a, const float* b, float* y, std::int64_t n) {                               \
    for (std::int64_t i = 0; i < n; ++i) y[i] = apply<OP>(a[i], b[i]);                                                \
  }                                                                                                                   \
  SS_CLONES void NAME##Right(const float* a, float b, float* y, std::int64_t n) {                                     \
    for (std::int64_t i = 0; i < n; ++i) y[i] = apply<OP>(a[i], b);                                                   \
  }                                                                                                                   \
  SS_CLONES void NAME##Left(float a, const float* b, float* y, std::int64_t n) {                                      \
    for (std::int64_t i = 0; i < n; ++i) y[i] = apply<OP>(a, b[i]);                                                   \
  }
SS_BINARY_LOOPS(add, Op::kAdd)
SS_BINARY_LOOPS(sub, Op::kSub)
SS_BINARY_LOOPS(mul, Op::kMul)
SS_BINARY_LOOPS(div, Op::kDiv)
#undef SS_BINARY_LOOPS

struct Loops {
  void (*both)(const float*, const float*, float*, std::int64_t);
  void (*right)(const float*, float, float*, std::int64_t);
  void (*left)(float, const float*, float*, std::int64_t);
};

Loops loopsOf(const std::string& op) {
  if (op == "Add") return {addBoth, addRight, addLeft};
  if (op == "Sub") return {subBoth, subRight, subLeft};
  if (op == "Mul") return {mulBoth, mulRight, mulLeft};
  return {divBoth, divRight, divLeft};
}

// y is [outer, inner]; each operand is that, [inner] repeated for every row, or one element.
enum class Form { kFull, kRow, kScalar };

class BinaryKernel final : public Kernel {
 public:
  BinaryKernel(Loops loops, Form a, Form b, std::int64_t outer, std::int64_t inner) : loops_(loops), a_(a), b_(b), outer_(outer), inner_(inner) {}

  Status run(const KernelCall& call) override {
    const auto* a = static_cast<const float*>(call.inputs[0].data);
    const auto* b = static_cast<const float*>(call.inputs[1].data);
    auto* y = static_cast<float*>(call.outputs[0].data);
    if (a_ != Form::kRow && b_ != Form::kRow) {
      const std::int64_t n = outer_ * inner_, part = kParallelElements, parts = (n + part - 1) / part;
#pragma omp parallel for schedule(static) if (parts > 1)
      for (std::int64_t p = 0; p < parts; ++p) apply(a, b, y, p * part, std::min(part, n - p * part));
      return {};
    }
#pragma omp parallel for schedule(static) if (outer_ * inner_ > kParallelElements)
    for (std::int64_t row = 0; row < outer_; ++row) {
      const std::int64_t at = row * inner_;
      const float *left = a_ == Form::kFull ? a + at : a, *right = b_ == Form::kFull ? b + at : b;
      apply(left, right, y + at, 0, inner_);
    }
    return {};
  }
  std::string implementation() const override { return "vector loop"; }

 private:
  void apply(const float* a, const float* b, float* y, std::int64_t at, std::int64_t n) const {
    if (a_ == Form::kScalar)
      loops_.left(*a, b + at, y + at, n);
    else if (b_ == Form::kScalar)
      loops_.right(a + at, *b, y + at, n);
    else
      loops_.both(a + at, b + at, y + at, n);
  }

  Loops loops_;
  Form a_, b_;
  std::int64_t outer_, inner_;
};

// Whether `dims` is a suffix of `full` once its leading ones are taken away; `inner` is its number of elements then.
bool isSuffix(const Dims& dims, const Dims& full, std::int64_t* inner) {
  std::size_t begin = 0;
  while (begin < dims.size() && dims[begin] == 1) ++begin;
  const std::size_t length = dims.size() - begin;
  if (length > full.size() || !std::equal(dims.begin() + static_cast<std::ptrdiff_t>(begin), dims.end(), full.end() - static_cast<std::ptrdiff_t>(length))) return false;
  *inner = elementCount(dims);
  return true;
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeBinary(const KernelSpec& spec) {
  const auto refuse = [] { return unsupported("vector loop: takes float32 of equal shapes, rows and scalars"); };
  if (!spec.inputPresent(0) || !spec.inputPresent(1) || !spec.outputPresent(0) || spec.inputs.size() != 2) return refuse();
  if (spec.inputs[0].dtype != DType::kF32 || spec.inputs[1].dtype != DType::kF32 || spec.outputs[0].dtype != DType::kF32) return refuse();
  const Dims &a = spec.inputs[0].dims, &b = spec.inputs[1].dims, &y = spec.outputs[0].dims;
  const std::int64_t total = elementCount(y);
  if (total == 0) return refuse();
  std::int64_t inner = total;
  const auto formOf = [&](const Dims& dims) -> std::optional<Form> {
    const std::int64_t count = elementCount(dims);
    if (count == total) return Form::kFull;
    if (count == 1) return Form::kScalar;
    std::int64_t rows = 0;
    if (!isSuffix(dims, y, &rows)) return std::nullopt;
    inner = rows;
    return Form::kRow;
  };
  const auto formA = formOf(a), formB = formOf(b);
  if (!formA || !formB || (*formA != Form::kFull && *formB != Form::kFull)) return refuse();
  return std::make_unique<BinaryKernel>(loopsOf(spec.op), *formA, *formB, total / inner, inner);
}

}  // namespace stepscope::cpu
