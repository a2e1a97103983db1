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
      for (std::int64_t j = 0; j < n; ++j) to[j] = p.beta * from[j * p.cColumn];
  }
}

// What the product is added to, in the result's memory. Returns whether there is anything.
bool prepare(const MatMulParams& p, const KernelCall& call, bool spreads) {
  auto* y = static_cast<float*>(call.outputs[0].data);
  if (spreads) spreadAddend(p, static_cast<const float*>(call.inputs[2].data), y);
  if (!p.addend) return spreads;
  const auto* from = static_cast<const float*>(call.inputs[3].data);
  const std::int64_t size = p.shape.batches() * p.shape.m * p.shape.n;
  if (spreads || from != y) {
#pragma omp parallel for schedule(static) num_threads(p.threads) if (size > 16384)
    for (std::int64_t i = 0; i < size; ++i) y[i] = spreads ? y[i] + from[i] : from[i];
  }
  return true;
}

struct Range {
  std::int64_t begin = 0, end = 0;
};

// These rows and columns of the product.
void sgemm(const MatMulParams& p, const float* a, const float* b, float beta, float* y, Range rows, Range columns) {
  const MatMulShape& s = p.shape;
  const bool transA = s.aColumn != 1, transB = s.bColumn != 1;
  dnnl_sgemm(transA ? 'T' : 'N', transB ? 'T' : 'N', rows.end - rows.begin, columns.end - columns.begin, s.k, p.alpha,
             a + rows.begin * s.aRow, transA ? s.aColumn : s.aRow, b + columns.begin * s.bColumn,
             transB ? s.bColumn : s.bRow, beta, y + rows.begin * s.yRow + columns.begin, s.yRow);
}

// How one product is shared out: by the routine itself, or every thread computes blocks of columns (one) or of rows (two) by
// itself.
enum class Split { kRoutine, kColumns, kRows };

class SgemmKernel final : public Kernel {
 public:
  explicit SgemmKernel(MatMulParams params, Split split)
      : p_(std::move(params)), batches_(p_.shape.batches()), split_(split) {}

  Status run(const KernelCall& call) override {
    const auto* a = static_cast<const float*>(call.inputs[p_.a].data);
    const auto* b = static_cast<const float*>(call.inputs[p_.b].data);
    auto* y = static_cast<float*>(call.outputs[0].data);
    const ThreadScope scope(p_.threads);
    const Range rows{0, p_.shape.m}, columns{0, p_.shape.n};
    const float beta = prepare(p_, call, p_.beta != 0) ? 1.0f : 0.0f;
    if (split_ != Split::kRoutine) {
      constexpr std::int64_t kGrain = 16;
      const bool byRows = split_ == Split::kRows;
      const std::int64_t extent = byRows ? rows.end : columns.end, grains = (extent + kGrain - 1) / kGrain,
                         blocks = byRows ? 2 * p_.threads : p_.threads;
#pragma omp parallel for schedule(static) num_threads(p_.threads)
      for (std::int64_t block = 0; block < blocks; ++block) {
        const Range part{grains * block / blocks * kGrain, std::min(extent, grains * (block + 1) / blocks * kGrain)};
        if (part.begin < part.end) sgemm(p_, a, b, beta, y, byRows ? part : rows, byRows ? columns : part);
      }
    } else if (batches_ == 1) {
      sgemm(p_, a, b, beta, y, rows, columns);
    } else {
#pragma omp parallel for schedule(static) num_threads(p_.threads)
      for (std::int64_t i = 0; i < batches_; ++i)
        sgemm(p_, a + p_.shape.aOffset(i), b + p_.shape.bOffset(i), beta, y + p_.shape.yOffset(i), rows, columns);
    }
    if (p_.relu) {
      const std::int64_t size = call.outputs[0].elements();
#pragma omp parallel for schedule(static) num_threads(p_.threads) if (size > 16384)
      for (std::int64_t i = 0; i < size; ++i) y[i] = y[i] < 0 ? 0.0f : y[i];
    }
    return {};
  }
  std::string implementation() const override {
    if (split_ != Split::kRoutine) return split_ == Split::kRows ? "onednn sgemm by rows" : "onednn sgemm by columns";
    return batches_ == 1 ? "onednn sgemm" : "onednn sgemm per batch";
  }

 private:
  MatMulParams p_;
  std::int64_t batches_;
  Split split_;
};

// Whether what is added is one row, as primitives take a bias.
bool isBias(const MatMulParams& p) { return p.beta == 1 && p.cRow == 0 && p.cColumn == 1 && p.alpha == 1; }

// One matrix product whose left operand is row-major. A row vector that is added is the primitive's bias; addend and relu
// are done while it writes.
class InnerProductKernel final : public Kernel {
 public:
  explicit InnerProductKernel(const MatMulParams& params) : p_(params), stream_(dnnlEngine()) {
    const MatMulShape& s = p_.shape;
    const memory::desc x = plainDesc({s.m, s.k}), y = plainDesc({s.m, s.n}),
                       w({s.n, s.k}, memory::data_type::f32, {s.bColumn, s.bRow});
    dnnl::primitive_attr attr = userScratchpad();
    if (p_.alpha != 1) attr.set_output_scales(0, {p_.alpha});
    bias_ = isBias(p_);
    dnnl::post_ops after;
    if ((p_.beta != 0 && !bias_) || p_.addend) after.append_sum(1.0f);
    if (p_.relu) after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    attr.set_post_ops(after);
    constexpr auto kind = dnnl::prop_kind::forward_inference;
    const memory::desc biasDesc = plainDesc({s.n});
    const auto desc = bias_ ? dnnl::inner_product_forward::desc(kind, x, w, biasDesc, y)
                            : dnnl::inner_product_forward::desc(kind, x, w, y);
    const dnnl::inner_product_forward::primitive_desc found(desc, attr, dnnlEngine());
    implementation_ = implementationName(found.impl_info_str());
    product_ = dnnl::inner_product_forward(found);
    arguments_ = {{DNNL_ARG_SRC, placeholder(x)},
                  {DNNL_ARG_WEIGHTS, placeholder(w)},
                  {DNNL_ARG_DST, placeholder(y)},
                  {DNNL_ARG_SCRATCHPAD, placeholder(found.scratchpad_desc())}};
    if (bias_) arguments_[DNNL_ARG_BIAS] = placeholder(biasDesc);
    workspace_ = found.scratchpad_desc().get_size();
  }

  std::size_t workspaceBytes() const override { return workspace_; }

  Status run(const KernelCall& call) override {
    const ThreadScope scope(p_.threads);
    prepare(p_, call, p_.beta != 0 && !bias_);
    arguments_[DNNL_ARG_SRC].set_data_handle(call.inputs[p_.a].data);
    arguments_[DNNL_ARG_WEIGHTS].set_data_handle(call.inputs[p_.b].data);
    arguments_[DNNL_ARG_DST].set_data_handle(call.outputs[0].data);
    arguments_[DNNL_ARG_SCRATCHPAD].set_data_handle(call.workspace.data());
    if (bias_) arguments_[DNNL_ARG_BIAS].set_data_handle(call.inputs[2].data);
    execute(product_, stream_, arguments_);
    stream_.wait();
    return {};
  }
  std::string implementation() const override {
    return implementation_ + " inner product" + (bias_ ? " + bias" : "") + (p_.addend ? " + addend" : "") +
           (p_.relu ? " + relu" : "");
  }
  bool slow() const { return implementation_.find("ref") != std::string::npos; }

 private:
  MatMulParams p_;
  dnnl::stream stream_;
  dnnl::inner_product_forward product_;
  std::unordered_map<int, memory> arguments_;
  std::size_t workspace_ = 0;
  std::string implementation_;
  bool bias_ = false;
};

class PrimitiveKernel final : public Kernel {
 public:
  explicit PrimitiveKernel(const MatMulParams& params) : p_(params), stream_(dnnlEngine()) {
    const MatMulShape& s = p_.shape;
    memory::dims a, b, y, aStrides, bStrides, yStrides;
    for (std::size_t i = 0; i < s.batch.size(); ++i) {
      if (s.batch[i] == 1) continue;
      a.push_back(s.aStrides[i] == 0 ? 1 : s.batch[i]);
      b.push_back(s.bStrides[i] == 0 ? 1 : s.batch[i]);
      y.push_back(s.batch[i]);
      aStrides.push_back(s.aStrides[i] == 0 ? s.m * s.k : s.aStrides[i]);
      bStrides.push_back(s.bStrides[i] == 0 ? s.k * s.n : s.bStrides[i]);
      yStrides.push_back(s.yStrides[i]);
    }
    for (const std::int64_t extent : {s.m, s.k}) a.push_back(extent);
    for (const std::int64_t extent : {s.k, s.n}) b.push_back(extent);
    for (const std::int64_t extent : {s.m, s.n}) y.push_back(extent);
    for (const std::int64_t stride : {s.aRow, s.aColumn}) aStrides.push_back(stride);
    for (const std::int64_t stride : {s.bRow, s.bColumn}) bStrides.push_back(stride);
    for (const std::int64_t stride : {s.yRow, s.yColumn}) yStrides.push_back(stride);
    constexpr auto f32 = memory::data_type::f32;
    const memory::desc aDesc(a, f32, aStrides), bDesc(b, f32, bStrides), yDesc(y, f32, yStrides);
    dnnl::primitive_attr attr = userScratchpad();
    if (p_.alpha != 1) attr.set_output_scales(0, {p_.alpha});
    bias_ = isBias(p_) && y.size() == 2;
    dnnl::post_ops after;
    if ((p_.beta != 0 && !bias_) || p_.addend) after.append_sum(1.0f);
    if (p_.relu) after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    attr.set_post_ops(after);
    const memory::desc biasDesc = plainDesc({1, s.n});
    const dnnl::matmul::primitive_desc desc(
        bias_ ? dnnl::matmul::desc(aDesc, bDesc, biasDesc, yDesc) : dnnl::matmul::desc(aDesc, bDesc, yDesc), attr,
        dnnlEngine());
    implementation_ = implementationName(desc.impl_info_str());
    product_ = dnnl::matmul(desc);
    arguments_ = {{DNNL_ARG_SRC, placeholder(aDesc)},
                  {DNNL_ARG_WEIGHTS, placeholder(bDesc)},
                  {DNNL_ARG_DST, placeholder(yDesc)},
                  {DNNL_ARG_SCRATCHPAD, placeholder(desc.scratchpad_desc())}};
    if (bias_) arguments_[DNNL_ARG_BIAS] = placeholder(biasDesc);
    workspace_ = desc.scratchpad_desc().get_size();
  }

  std::size_t workspaceBytes() const override { return workspace_; }

  Status run(const KernelCall& call) override {
    const ThreadScope scope(p_.threads);
    prepare(p_, call, p_.beta != 0 && !bias_);
    if (bias_) arguments_[DNNL_ARG_BIAS].set_data_handle(call.inputs[2].data);
    arguments_[DNNL_ARG_SRC].set_data_handle(call.inputs[p_.a].data);
    arguments_[DNNL_ARG_WEIGHTS].set_data_handle(call.inputs[p_.b].data);
    arguments_[DNNL_ARG_DST].set_data_handle(call.outputs[0].data);
    arguments_[DNNL_ARG_SCRATCHPAD].set_data_handle(call.workspace.data());
    execute(product_, stream_, arguments_);
    stream_.wait();
    return {};
  }
  std::string implementation() const override {
    return implementation_ + " matmul" + (bias_ ? " + bias" : "") + (p_.addend ? " + addend" : "") +
           (p_.relu ? " + relu" : "");
  }
  bool slow() const { return implementation_.find("ref") != std::string::npos; }

 private:
  MatMulParams p_;
  dnnl::stream stream_;
  dnnl::matmul product_;
  std::unordered_map<int, memory> arguments_;
  std::size_t workspace_ = 0;
  std::string implementation_;
  bool bias_ = false;
};

// Routines write rows; a result that is stored by columns is the product of the transposed operands.
void writeRows(MatMulParams& p) {
  MatMulShape& s = p.shape;
  if (s.yColumn == 1 || s.yRow != 1) return;
  std::swap(p.a, p.b);
  std::swap(s.m, s.n);
  std::swap(s.aStrides, s.bStrides);
  std::swap(s.aRow, s.bColumn);
  std::swap(s.aColumn, s.bRow);
  std::swap(s.yRow, s.yColumn);
  std::swap(p.cRow, p.cColumn);
}

// Leading dimensions of BLAS are at least the extent they step over, also where only one row makes them irrelevant.
void settleStrides(MatMulShape& s) {
  if (s.k == 1 && s.aRow == 1 && s.aColumn != 1)
    s.aColumn = std::max(s.aColumn, s.m);
  else if (s.k == 1 || s.aColumn == 1)
    s.aColumn = 1, s.aRow = std::max(s.aRow, s.k);
  else if (s.m == 1)
    s.aRow = 1;
  if (s.n == 1 && s.bRow == 1)
    s.bColumn = std::max(s.bColumn, s.k);
  else if (s.n == 1 || s.bColumn == 1)
    s.bColumn = 1, s.bRow = std::max(s.bRow, s.n);
  else if (s.k == 1)
    s.bRow = 1;
  if (s.n == 1) s.yColumn = 1;
  if (s.m == 1) s.yRow = std::max(s.yRow, s.n);
}

bool allF32(const KernelSpec& spec) {
  for (const OperandSpec& operand : spec.inputs)
    if (operand.present() && operand.dtype != DType::kF32) return false;
  return spec.outputs[0].dtype == DType::kF32;
}

// Whether the batches of the result follow one another in rows, as a tensor of its extents has them.
bool denseRows(const MatMulShape& s) {
  std::int64_t expected = s.m * s.n;
  if (s.yColumn != 1 || s.yRow != s.n) return false;
  for (std::size_t i = s.batch.size(); i-- > 0; expected *= s.batch[i])
    if (s.batch[i] != 1 && s.yStrides[i] != expected) return false;
  return true;
}

template <typename K>
std::unique_ptr<Kernel> fastOrNull(const MatMulParams& params) {
  auto kernel = guardDnnl("matrix product", params.threads,
                          [&]() -> Result<std::unique_ptr<K>> { return std::make_unique<K>(params); });
  if (!kernel || (*kernel)->slow()) return nullptr;
  return std::move(*kernel);
}

Result<MatMulParams> paramsOf(const KernelSpec& spec) {
  MatMulParams params;
  SS_ASSIGN(params.shape, matMulShape(spec.inputs[0].dims, spec.inputs[1].dims, ProductForm::of(spec.attrs)));
  params.alpha = spec.attrs.real("alpha", 1.0f);
  params.threads = spec.threads;
  return params;
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeProduct(const MatMulParams& given) {
  MatMulParams params = given;
  MatMulShape& s = params.shape;
  if (elementCount(s.y) == 0 || s.k == 0)
    return unsupported("matrix product: an extent is 0; falls back to the reference kernel");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  mergeBatches(s);
  writeRows(params);
  settleStrides(s);
  if (s.m > kMost || s.n > kMost || s.k > kMost) return unsupported("matrix product: an extent above 2^31-1");
  params.threads = threadsForFlops(2.0 * static_cast<double>(s.batches()) * static_cast<double>(s.m) *
                                       static_cast<double>(s.n) * static_cast<double>(s.k),
                                   params.threads);
  const bool single = s.batches() == 1, denseY = s.yColumn == 1 && s.yRow == s.n;
  if (s.yColumn != 1 || (s.aRow != 1 && s.aColumn != 1) || (s.bRow != 1 && s.bColumn != 1))
    return unsupported(
        "matrix product: an operand has no axis of neighbouring elements; falls back to the reference kernel");
  if (params.beta != 0 && !(single && denseY))
    return unsupported("matrix product: an addend to products that are stored apart");
  if (params.addend && !denseRows(s)) return unsupported("matrix product: an addend to a result that is stored transposed");
  // The table of matmul.h.
  const bool rows = s.bColumn == 1, wide = s.m >= 64 && s.k * s.n >= 1 << 20;
  if (single && rows && s.aColumn == 1 && wide && s.n >= 4 * s.k && params.threads > 1)
    return std::make_unique<SgemmKernel>(std::move(params), Split::kColumns);
  const bool tall = s.m >= 2 * s.n && s.m <= 8 * s.n && s.m * s.n >= 1 << 20 && s.k >= 64;
  if (single && rows && s.aColumn != 1 && tall && params.threads > 1)
    return std::make_unique<SgemmKernel>(std::move(params), Split::kRows);
  const bool longColumns = single && !rows && wide && s.k >= 2 * s.n;
  if (!longColumns && single && denseY && s.aColumn == 1 && s.aRow == s.k && (rows ? s.bRow == s.n : s.bColumn == s.k))
    if (auto kernel = fastOrNull<InnerProductKernel>(params)) return kernel;
  if (!rows && s.batch.size() <= 8)
    if (auto kernel = fastOrNull<PrimitiveKernel>(params)) return kernel;
  return std::unique_ptr<Kernel>(std::make_unique<SgemmKernel>(std::move(params), Split::kRoutine));
}

Result<std::unique_ptr<Kernel>> makeMatMul(const KernelSpec& spec) {
  if (!allF32(spec)) return unsupported(spec.op + ": the fast kernel takes float32");
  SS_ASSIGN(MatMulParams params, paramsOf(spec));
  if (spec.inputPresent(2)) {
    params.beta = 1;
    params.cColumn = 1;
  }
  params.addend = spec.inputPresent(3);
  params.relu = spec.attrs.text("activation", "") == "Relu";
  return makeProduct(params);
}

Result<std::unique_ptr<Kernel>> makeGemm(const KernelSpec& spec) {
  if (!allF32(spec)) return unsupported("Gemm: the fast kernel takes float32");
  SS_ASSIGN(MatMulParams params, paramsOf(spec));
  if (spec.inputPresent(2)) {
    params.beta = spec.attrs.real("beta", 1.0f);
    const Dims& c = spec.inputs[2].dims;
    if (!c.empty() && c.back() != 1) params.cColumn = 1;
    if (c.size() > 1 && c[0] != 1) params.cRow = c[1];
  }
  return makeProduct(params);
}

}  // namespace stepscope::cpu
