#include "kernels/cpu/linear/matmul.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/dnnl_support.h"
#include "kernels/cpu/linear/linear_kernels.h"

namespace stepscope::cpu {
namespace {

using dnnl::memory;

// Writes beta · c into y, so that the product is added to it.
void spreadAddend(const MatMulParams& p, const float* c, float* y) {
  const std::int64_t m = p.shape.m, n = p.shape.n;
#pragma omp parallel for schedule(static) num_threads(p.threads) if (m * n > 16384)
  for (std::int64_t i = 0; i < m; ++i) {
    const float* from = c + i * p.cRow;
    float* to = y + i * n;
    if (p.cColumn == 0)
      std::fill_n(to, n, p.beta * from[0]);
    else
      for (std::int64_t j = 0; j < n; ++j) to[j] = p.beta * from[j];
  }
}

void sgemm(const MatMulParams& p, const float* a, const float* b, float* y) {
  const MatMulShape& s = p.shape;
  const bool transA = s.aColumn != 1, transB = s.bColumn != 1;
  dnnl_sgemm(transA ? 'T' : 'N', transB ? 'T' : 'N', s.m, s.n, s.k, p.alpha, a, transA ? s.aColumn : s.aRow, b,
             transB ? s.bColumn : s.bRow, p.beta == 0 ? 0.0f : 1.0f, y, s.n);
}

class SgemmKernel final : public Kernel {
 public:
  explicit SgemmKernel(MatMulParams params) : p_(std::move(params)), batches_(p_.shape.batches()) {}

  Status run(const KernelCall& call) override {
    const auto* a = static_cast<const float*>(call.inputs[0].data);
    const auto* b = static_cast<const float*>(call.inputs[1].data);
    auto* y = static_cast<float*>(call.outputs[0].data);
    if (p_.beta != 0) spreadAddend(p_, static_cast<const float*>(call.inputs[2].data), y);
    const std::int64_t size = p_.shape.m * p_.shape.n;
    if (batches_ == 1) {
      sgemm(p_, a, b, y);
    } else {
#pragma omp parallel for schedule(static) num_threads(p_.threads)
      for (std::int64_t i = 0; i < batches_; ++i) sgemm(p_, a + p_.shape.aOffset(i), b + p_.shape.bOffset(i), y + i * size);
    }
    return {};
  }
  std::string implementation() const override { return batches_ == 1 ? "onednn sgemm" : "onednn sgemm per batch"; }

 private:
  MatMulParams p_;
  std::int64_t batches_;
};

class PrimitiveKernel final : public Kernel {
 public:
  explicit PrimitiveKernel(const MatMulParams& params) : p_(params), stream_(dnnlEngine()) {
    const MatMulShape& s = p_.shape;
    memory::dims a, b, y, aStrides, bStrides;
    for (std::size_t i = 0; i < s.batch.size(); ++i) {
      if (s.batch[i] == 1) continue;
      a.push_back(s.aStrides[i] == 0 ? 1 : s.batch[i]);
      b.push_back(s.bStrides[i] == 0 ? 1 : s.batch[i]);
      y.push_back(s.batch[i]);
      aStrides.push_back(s.aStrides[i] == 0 ? s.m * s.k : s.aStrides[i]);
      bStrides.push_back(s.bStrides[i] == 0 ? s.k * s.n : s.bStrides[i]);
    }
    for (const std::int64_t extent : {s.m, s.k}) a.push_back(extent);
    for (const std::int64_t extent : {s.k, s.n}) b.push_back(extent);
    for (const std::int64_t extent : {s.m, s.n}) y.push_back(extent);
    for (const std::int64_t stride : {s.aRow, s.aColumn}) aStrides.push_back(stride);
    for (const std::int64_t stride : {s.bRow, s.bColumn}) bStrides.push_back(stride);
    const memory::desc aDesc(a, memory::data_type::f32, aStrides), bDesc(b, memory::data_type::f32, bStrides), yDesc = plainDesc(y);
    dnnl::primitive_attr attr = userScratchpad();
    if (p_.alpha != 1) attr.set_output_scales(0, {p_.alpha});
    if (p_.beta != 0) {
      dnnl::post_ops add;
      add.append_sum(1.0f);
      attr.set_post_ops(add);
    }
    const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(aDesc, bDesc, yDesc), attr, dnnlEngine());
    implementation_ = implementationName(desc.impl_info_str());
    product_ = dnnl::matmul(desc);
    arguments_ = {{DNNL_ARG_SRC, placeholder(aDesc)},
                  {DNNL_ARG_WEIGHTS, placeholder(bDesc)},
                  {DNNL_ARG_DST, placeholder(yDesc)},
                  {DNNL_ARG_SCRATCHPAD, placeholder(desc.scratchpad_desc())}};
    workspace_ = desc.scratchpad_desc().get_size();
  }

  std::size_t workspaceBytes() const override { return workspace_; }

  Status run(const KernelCall& call) override {
    auto* y = static_cast<float*>(call.outputs[0].data);
    if (p_.beta != 0) spreadAddend(p_, static_cast<const float*>(call.inputs[2].data), y);
    arguments_[DNNL_ARG_SRC].set_data_handle(call.inputs[0].data);
    arguments_[DNNL_ARG_WEIGHTS].set_data_handle(call.inputs[1].data);
    arguments_[DNNL_ARG_DST].set_data_handle(y);
    arguments_[DNNL_ARG_SCRATCHPAD].set_data_handle(call.workspace.data());
    product_.execute(stream_, arguments_);
    stream_.wait();
    return {};
  }
  std::string implementation() const override { return implementation_; }
  bool slow() const { return implementation_.find("ref") != std::string::npos; }

 private:
  MatMulParams p_;
  dnnl::stream stream_;
  dnnl::matmul product_;
  std::unordered_map<int, memory> arguments_;
  std::size_t workspace_ = 0;
  std::string implementation_;
};

// Batches of rows that share one right operand are one taller matrix.
void foldBatches(MatMulShape& s) {
  if (s.batch.empty()) return;
  const bool sharedB = std::all_of(s.bStrides.begin(), s.bStrides.end(), [](std::int64_t stride) { return stride == 0; });
  if (!sharedB || s.aColumn != 1) return;
  std::int64_t expected = s.m * s.k;
  for (std::size_t i = s.batch.size(); i-- > 0;) {
    if (s.batch[i] != 1 && s.aStrides[i] != expected) return;
    expected *= s.batch[i];
  }
  s.m *= s.batches();
  s.batch.clear();
  s.aStrides.clear();
  s.bStrides.clear();
}

// Leading dimensions of BLAS are at least the extent they step over, also where only one row makes them irrelevant.
void settleStrides(MatMulShape& s) {
  if (s.aColumn == 1) s.aRow = std::max(s.aRow, s.k);
  else if (s.k == 1) s.aColumn = std::max(s.aColumn, s.m);
  if (s.bColumn == 1) s.bRow = std::max(s.bRow, s.n);
  else if (s.n == 1 && s.bRow != 1) s.bColumn = std::max(s.bColumn, s.k);
}

bool allF32(const KernelSpec& spec) {
  for (const OperandSpec& operand : spec.inputs)
    if (operand.present() && operand.dtype != DType::kF32) return false;
  return spec.outputs[0].dtype == DType::kF32;
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeProduct(const MatMulParams& given) {
  MatMulParams params = given;
  MatMulShape& s = params.shape;
  if (elementCount(s.y) == 0 || s.k == 0) return unsupported("matrix product: an extent is 0; the reference kernel serves");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  foldBatches(s);
  settleStrides(s);
  if (s.m > kMost || s.n > kMost || s.k > kMost) return unsupported("matrix product: an extent above 2^31-1");
  if (s.bColumn != 1 && s.batch.size() <= 8) {
    auto kernel = guardDnnl("matrix product", [&]() -> Result<std::unique_ptr<PrimitiveKernel>> {
      return std::make_unique<PrimitiveKernel>(params);
    });
    if (kernel && !(*kernel)->slow()) return std::unique_ptr<Kernel>(std::move(*kernel));
  }
  return std::unique_ptr<Kernel>(std::make_unique<SgemmKernel>(std::move(params)));
}

Result<std::unique_ptr<Kernel>> makeMatMul(const KernelSpec& spec) {
  if (!allF32(spec)) return unsupported(spec.op + ": the fast kernel takes float32");
  MatMulParams params;
  SS_ASSIGN(params.shape, matMulShape(spec.inputs[0].dims, spec.inputs[1].dims, spec.attrs.integer("transA", 0) != 0,
                                      spec.attrs.integer("transB", 0) != 0));
  params.alpha = spec.attrs.real("alpha", 1.0f);
  params.threads = spec.threads;
  return makeProduct(params);
}

Result<std::unique_ptr<Kernel>> makeGemm(const KernelSpec& spec) {
  if (!allF32(spec)) return unsupported("Gemm: the fast kernel takes float32");
  MatMulParams params;
  SS_ASSIGN(params.shape, matMulShape(spec.inputs[0].dims, spec.inputs[1].dims, spec.attrs.integer("transA", 0) != 0,
                                      spec.attrs.integer("transB", 0) != 0));
  params.alpha = spec.attrs.real("alpha", 1.0f);
  params.threads = spec.threads;
  if (spec.inputPresent(2)) {
    params.beta = spec.attrs.real("beta", 1.0f);
    const Dims& c = spec.inputs[2].dims;
    if (!c.empty() && c.back() != 1) params.cColumn = 1;
    if (c.size() > 1 && c[0] != 1) params.cRow = c[1];
  }
  return makeProduct(params);
}

}  // namespace stepscope::cpu
