#include "kernels/cuda/library_form.h"

#include <utility>

#include "kernels/converted_kernel.h"
#include "kernels/kernel_registry.h"
#include "kernels/matmul_shape.h"

namespace stepscope::cuda {
namespace {

constexpr std::int64_t kMostCalls = 32;

// Gemm's C: a bias, or a matrix as y. False: something else.
bool placeOfC(const KernelSpec& spec, const MatMulShape& s, LibraryForm& form) {
  const Dims& c = spec.inputs[2].dims;
  const float beta = spec.attrs.real("beta", 1.0F);
  if (c == Dims{s.m, s.n} && s.yColumn == 1 && s.yRow == s.n) {
    form.addend = 2;
    form.product.beta = beta;
    return true;
  }
  form.bias = 2;
  return beta == 1 && elementCount(c) == s.n && !c.empty() && c.back() == s.n;
}

// What EpilogueProduct reads and writes besides the operands of a product.
void addEpilogue(const KernelSpec& spec, LibraryForm& form) {
  const std::string activation = spec.attrs.text("activation", ""), sums = spec.attrs.text("sums", "");
  if (activation == "Gelu") {
    form.product.after = AfterProduct::kGelu;
    if (spec.outputPresent(1)) form.beforeOutput = 1;
  } else if (activation == "GeluGrad") {
    form.product.after = AfterProduct::kGeluSlope;
    form.beforeInput = 3;
  }
  if (sums.empty()) return;
  form.product.sumsOf = sums == "a" ? OperandSums::kOfA : OperandSums::kOfB;
  form.sums = 1;
}

class LowProduct final : public Kernel {
 public:
  LowProduct(LibraryForm form, std::unique_ptr<Kernel> converted)
      : form_(std::move(form)), converted_(std::move(converted)) {}
  std::size_t workspaceBytes() const override { return converted_->workspaceBytes(); }
  Status run(const KernelCall& call) override {
    SS_ASSIGN(const bool done, runByLibrary(form_, call));
    return done ? Status() : converted_->run(call);
  }
  bool mayFail() const override { return converted_->mayFail(); }
  std::string implementation() const override { return converted_->implementation(); }
  Determinism determinism() const override { return converted_->determinism(); }

 private:
  LibraryForm form_;
  std::unique_ptr<Kernel> converted_;
};

}  // namespace

std::optional<LibraryForm> libraryForm(const KernelSpec& spec) {
  auto shape = matMulShape(spec.inputs[0].dims, spec.inputs[1].dims, spec.attrs);
  if (!shape) return std::nullopt;
  MatMulShape& s = *shape;
  mergeBatches(s);
  LibraryForm form;
  LibraryProduct& p = form.product;
  p.dtype = spec.inputs[0].dtype;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i)
    if (spec.inputPresent(i) && spec.inputs[i].dtype != p.dtype) return std::nullopt;
  if (spec.outputs[0].dtype != p.dtype) return std::nullopt;
  p.m = s.m, p.n = s.n, p.k = s.k;
  p.aRow = s.aRow, p.aColumn = s.aColumn, p.bRow = s.bRow, p.bColumn = s.bColumn, p.yRow = s.yRow, p.yColumn = s.yColumn;
  p.alpha = spec.attrs.real("alpha", 1.0F);
  if (spec.op == "EpilogueProduct")
    addEpilogue(spec, form);
  else if (spec.attrs.text("activation", "") == "Relu")
    p.after = AfterProduct::kRelu;
  p.tf32 = p.dtype == DType::kF32 && spec.attrs.integer("tf32", 0) != 0;
  if (spec.inputPresent(2)) {
    form.bias = 2;
    if (spec.op == "Gemm" ? !placeOfC(spec, s, form) : elementCount(spec.inputs[2].dims) != s.n) return std::nullopt;
    if (form.addend == 2) form.bias = -1;
  }
  if (spec.inputPresent(3) && form.beforeInput < 0) {
    form.addend = 3;
    p.beta = 1;
  }
  std::int64_t stretches = 1;
  if (!s.batch.empty()) {
    p.batches = s.batch.back();
    p.aBatch = s.aStrides.back(), p.bBatch = s.bStrides.back(), p.yBatch = s.yStrides.back();
    stretches = s.batches() / std::max<std::int64_t>(1, p.batches);
  }
  if (stretches > kMostCalls || p.batches == 0) return std::nullopt;
  // All begin where the library wants them to, so that it takes all of them or none.
  const auto aligned = [size = static_cast<std::int64_t>(dtypeSize(p.dtype))](std::int64_t elements) {
    return elements * size % 16 == 0;
  };
  for (std::int64_t i = 0; i < stretches; ++i) {
    const std::int64_t first = i * p.batches;
    const LibraryForm::Offsets at{s.aOffset(first), s.bOffset(first), s.yOffset(first)};
    if (!aligned(at.a) || !aligned(at.b) || !aligned(at.y)) return std::nullopt;
    form.calls.push_back(at);
  }
  // What is read and written besides is known already; its addresses are not.
  LibraryProduct probe = p;
  probe.bias = form.bias >= 0 ? &probe : nullptr;
  probe.addend = form.addend >= 0 ? &probe : nullptr;
  probe.before = form.beforeInput >= 0 || form.beforeOutput >= 0 ? &probe : nullptr;
  probe.sums = form.sums >= 0 ? &probe : nullptr;
  if (!isLibraryProduct(probe)) return std::nullopt;
  return form;
}

Result<bool> runByLibrary(const LibraryForm& form, const KernelCall& call) {
  gpu::LibraryProducts* const library = gpu::libraryProducts;
  if (!library) return false;
  const auto size = static_cast<std::int64_t>(dtypeSize(form.product.dtype));
  const auto from = [&](const void* data, std::int64_t elements) {
    return static_cast<const void*>(static_cast<const std::byte*>(data) + elements * size);
  };
  bool any = false;
  for (const LibraryForm::Offsets& at : form.calls) {
    LibraryProduct p = form.product;
    p.a = from(call.inputs[0].data, at.a);
    p.b = from(call.inputs[1].data, at.b);
    p.y = const_cast<void*>(from(call.outputs[0].data, at.y));
    if (form.bias >= 0) p.bias = call.inputs[static_cast<std::size_t>(form.bias)].data;
    if (form.addend >= 0) p.addend = from(call.inputs[static_cast<std::size_t>(form.addend)].data, at.y);
    if (form.beforeInput >= 0) p.before = call.inputs[static_cast<std::size_t>(form.beforeInput)].data;
    if (form.beforeOutput >= 0) p.before = call.outputs[static_cast<std::size_t>(form.beforeOutput)].data;
    if (form.sums >= 0) p.sums = call.outputs[static_cast<std::size_t>(form.sums)].data;
    p.stream = call.stream;
    SS_ASSIGN(const bool done, library->product(p));
    if (!done && any) return fail(ErrorCode::kInternal, "the library for products took a part of a product");
    if (!done) return false;
    any = true;
  }
  return any;
}

Result<std::unique_ptr<Kernel>> makeLowProduct(const KernelSpec& spec, std::unique_ptr<Kernel> wide) {
  auto form = libraryForm(spec);
  if (!form) return unsupported(spec.op + ": a product of this form is computed in float32");
  SS_ASSIGN(auto converted, makeConvertedKernel(builtInKernels(), "cuda", spec, std::move(wide)));
  return std::make_unique<LowProduct>(std::move(*form), std::move(converted));
}

}  // namespace stepscope::cuda
