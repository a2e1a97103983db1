#include "kernels/cpu/linear/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "kernels/cpu/dnnl_support.h"
#include "kernels/cpu/linear/bfloat16_products.h"
#include "kernels/cpu/linear/linear_kernels.h"
#include "kernels/cpu/linear/widened_product.h"
#include "kernels/fixed_parts.h"

namespace stepscope::cpu {
namespace {

using dnnl::memory;

// Writes beta · c into y, or adds it to what is there (`over`), so that the product is added to it.
void spreadAddend(const MatMulParams& p, const float* c, float* y, bool over) {
  const std::int64_t m = p.shape.m, n = p.shape.n;
#pragma omp parallel for schedule(static) num_threads(p.threads) if (m * n > 16384)
  for (std::int64_t i = 0; i < m; ++i) {
    const float* from = c + i * p.cRow;
    float* to = y + i * n;
    if (over)
      for (std::int64_t j = 0; j < n; ++j) to[j] += p.beta * from[j * p.cColumn];
    else if (p.cColumn == 0)
      std::fill_n(to, n, p.beta * from[0]);
    else
      for (std::int64_t j = 0; j < n; ++j) to[j] = p.beta * from[j * p.cColumn];
  }
}

// What the product is added to, in the result's memory. Returns whether there is anything.
bool prepare(const MatMulParams& p, const KernelCall& call, bool spreads) {
  auto* y = static_cast<float*>(call.outputs[0].data);
  const auto* from = p.addend ? static_cast<const float*>(call.inputs[3].data) : nullptr;
  const bool over = from == y;  // the addend is the result's memory already
  if (spreads) spreadAddend(p, static_cast<const float*>(call.inputs[2].data), y, over);
  if (!p.addend) return spreads;
  const std::int64_t size = p.shape.batches() * p.shape.m * p.shape.n;
  if (!over) {
#pragma omp parallel for schedule(static) num_threads(p.threads) if (size > 16384)
    for (std::int64_t i = 0; i < size; ++i) y[i] = spreads ? y[i] + from[i] : from[i];
  }
  return true;
}

struct Range {
  std::int64_t begin = 0, end = 0;
};

// These rows and columns of the product.
dnnl_status_t sgemm(const MatMulParams& p, const float* a, const float* b, float beta, float* y, Range rows, Range columns) {
  const MatMulShape& s = p.shape;
  const bool transA = s.aColumn != 1, transB = s.bColumn != 1;
  return dnnl_sgemm(transA ? 'T' : 'N', transB ? 'T' : 'N', rows.end - rows.begin, columns.end - columns.begin, s.k, p.alpha,
                    a + rows.begin * s.aRow, transA ? s.aColumn : s.aRow, b + columns.begin * s.bColumn,
                    transB ? s.bColumn : s.bRow, beta, y + rows.begin * s.yRow + columns.begin, s.yRow);
}

// How one product is shared out: by the routine itself; every thread computes blocks of columns (one) or of rows (two) by
// itself; or blocks whose extents depend on those of the product alone.
enum class Split { kRoutine, kColumns, kRows, kFixed };

// Rows or columns, whichever are more, of every product of a batch are cut into that many blocks, each of one thread.
std::int64_t fixedBlocks(const MatMulShape& s, double flops) {
  constexpr std::int64_t kLeast = 64;  // rows or columns; an operand is packed again for every block
  const std::int64_t most = std::max<std::int64_t>(1, kFixedParts / s.batches()), extent = std::max(s.m, s.n) / kLeast,
                     worth = static_cast<std::int64_t>(std::min(flops / kFlopsPerThread, 1e6)) / s.batches();
  return std::clamp<std::int64_t>(std::min(extent, worth), 1, most);
}

// Negative elements become zero, NaN stays NaN. The library's own rectifier is max(x, 0) of the processor, which makes a
// zero of NaN and so hides it from the loss.
void rectify(const TensorView& y, int threads) {
  const std::int64_t size = y.elements();
  if (y.dtype == DType::kF32) {
    auto* all = static_cast<float*>(y.data);
#pragma omp parallel for schedule(static) num_threads(threads) if (size > 16384)
    for (std::int64_t i = 0; i < size; ++i) all[i] = all[i] < 0 ? 0.0f : all[i];
    return;
  }
  auto* bits = static_cast<std::uint16_t*>(y.data);  // bfloat16; from 0x8001 to minus infinity are the negative numbers
#pragma omp parallel for schedule(static) num_threads(threads) if (size > 16384)
  for (std::int64_t i = 0; i < size; ++i) bits[i] = bits[i] > 0x8000 && bits[i] <= 0xff80 ? std::uint16_t{0} : bits[i];
}

class SgemmKernel final : public Kernel {
 public:
  explicit SgemmKernel(MatMulParams params, Split split, std::int64_t fixed = 1)
      : p_(std::move(params)), batches_(p_.shape.batches()), split_(split), fixed_(fixed) {}

  Status run(const KernelCall& call) override {
    const auto* left = static_cast<const float*>(call.inputs[p_.a].data);
    const auto* right = static_cast<const float*>(call.inputs[p_.b].data);
    const float *a = left + p_.shape.aStart, *b = right + p_.shape.bStart;  // of the first product
    auto* y = static_cast<float*>(call.outputs[0].data);
    const ThreadScope scope(split_ == Split::kFixed ? 1 : p_.threads);  // the routine's own; ours are named
    const Range rows{0, p_.shape.m}, columns{0, p_.shape.n};
    DnnlFailure failure;
    const float beta = prepare(p_, call, p_.beta != 0) ? 1.0f : 0.0f;
    if (split_ == Split::kFixed) {
      const bool byRows = p_.shape.m >= p_.shape.n;
      const std::int64_t extent = byRows ? p_.shape.m : p_.shape.n;
#pragma omp parallel for schedule(static) num_threads(p_.threads)
      for (std::int64_t item = 0; item < batches_ * fixed_; ++item) {
        const std::int64_t i = item / fixed_, block = item % fixed_;
        const Range part{extent * block / fixed_, extent * (block + 1) / fixed_};
        failure.note(sgemm(p_, left + p_.shape.aOffset(i), right + p_.shape.bOffset(i), beta, y + p_.shape.yOffset(i),
                           byRows ? part : rows, byRows ? columns : part));
      }
    } else if (split_ != Split::kRoutine) {
      constexpr std::int64_t kGrain = 16;
      const bool byRows = split_ == Split::kRows;
      const std::int64_t extent = byRows ? rows.end : columns.end, grains = (extent + kGrain - 1) / kGrain,
                         blocks = byRows ? 2 * p_.threads : p_.threads;
#pragma omp parallel for schedule(static) num_threads(p_.threads)
      for (std::int64_t block = 0; block < blocks; ++block) {
        const Range part{grains * block / blocks * kGrain, std::min(extent, grains * (block + 1) / blocks * kGrain)};
        if (part.begin < part.end) failure.note(sgemm(p_, a, b, beta, y, byRows ? part : rows, byRows ? columns : part));
      }
    } else if (batches_ == 1) {
      failure.note(sgemm(p_, a, b, beta, y, rows, columns));
    } else {
#pragma omp parallel for schedule(static) num_threads(p_.threads)
      for (std::int64_t i = 0; i < batches_; ++i)
        failure.note(sgemm(p_, left + p_.shape.aOffset(i), right + p_.shape.bOffset(i), beta, y + p_.shape.yOffset(i), rows,
                           columns));
    }
    SS_TRY(failure.status("matrix product"));
    if (p_.relu) rectify(call.outputs[0], p_.threads);
    return {};
  }
  std::string implementation() const override {
    if (split_ == Split::kFixed) return fmt::format("onednn sgemm in {} fixed blocks", batches_ * fixed_);
    if (split_ != Split::kRoutine) return split_ == Split::kRows ? "onednn sgemm by rows" : "onednn sgemm by columns";
    return batches_ == 1 ? "onednn sgemm" : "onednn sgemm per batch";
  }
  Determinism determinism() const override {
    return split_ == Split::kFixed
               ? Determinism::fixed("every block is computed by one thread; blocks depend on extents alone")
               : libraryOrder();
  }

 private:
  MatMulParams p_;
  std::int64_t batches_;
  Split split_;
  std::int64_t fixed_;  // blocks of each product
};

// The library does not write to what it reads, though it takes addresses that it could write to.
void* firstOf(const TensorView& operand, std::int64_t start) {
  return static_cast<std::byte*>(operand.data) + start * static_cast<std::int64_t>(dtypeSize(operand.dtype));
}

// Whether what is added is one row, as primitives take a bias.
bool isBias(const MatMulParams& p) { return p.beta == 1 && p.cRow == 0 && p.cColumn == 1 && p.alpha == 1; }

// One matrix product whose left operand is row-major. A row vector that is added is the primitive's bias; the addend is
// added while it writes.
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
    arguments_[DNNL_ARG_SRC].set_data_handle(firstOf(call.inputs[p_.a], p_.shape.aStart));
    arguments_[DNNL_ARG_WEIGHTS].set_data_handle(firstOf(call.inputs[p_.b], p_.shape.bStart));
    arguments_[DNNL_ARG_DST].set_data_handle(call.outputs[0].data);
    arguments_[DNNL_ARG_SCRATCHPAD].set_data_handle(call.workspace.data());
    if (bias_) arguments_[DNNL_ARG_BIAS].set_data_handle(call.inputs[2].data);
    SS_TRY(execute(product_, stream_, arguments_));
    SS_TRY(wait(stream_));
    if (p_.relu) rectify(call.outputs[0], p_.threads);
    return {};
  }
  std::string implementation() const override {
    return implementation_ + " inner product" + (bias_ ? " + bias" : "") + (p_.addend ? " + addend" : "") +
           (p_.relu ? " + relu" : "");
  }
  Determinism determinism() const override { return libraryOrder(); }
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

// The matmul primitive, which is slow with several batch axes: it takes the largest, and is run for every place along the
// others.
class PrimitiveKernel final : public Kernel {
 public:
  explicit PrimitiveKernel(const MatMulParams& params) : p_(params), outer_(params.shape), stream_(dnnlEngine()) {
    const MatMulShape& s = p_.shape;
    memory::dims a, b, y, aStrides, bStrides, yStrides;
    const auto largest = static_cast<std::size_t>(std::ranges::max_element(s.batch) - s.batch.begin());
    for (std::size_t i = 0; i < s.batch.size(); ++i) {
      if (s.batch[i] == 1 || i != largest) continue;
      outer_.batch[i] = 1;
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
    const auto type = p_.dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
    const memory::desc aDesc(a, type, aStrides), bDesc(b, type, bStrides), yDesc(y, type, yStrides);
    dnnl::primitive_attr attr = userScratchpad();
    if (p_.alpha != 1) attr.set_output_scales(0, {p_.alpha});
    bias_ = isBias(p_) && y.size() == 2;
    dnnl::post_ops after;
    if ((p_.beta != 0 && !bias_) || p_.addend) after.append_sum(1.0f);
    attr.set_post_ops(after);
    const memory::desc biasDesc({1, s.n}, type, memory::format_tag::ab);
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
    arguments_[DNNL_ARG_SCRATCHPAD].set_data_handle(call.workspace.data());
    for (std::int64_t i = 0; i < outer_.batches(); ++i) {
      arguments_[DNNL_ARG_SRC].set_data_handle(firstOf(call.inputs[p_.a], outer_.aOffset(i)));
      arguments_[DNNL_ARG_WEIGHTS].set_data_handle(firstOf(call.inputs[p_.b], outer_.bOffset(i)));
      arguments_[DNNL_ARG_DST].set_data_handle(firstOf(call.outputs[0], outer_.yOffset(i)));
      SS_TRY(execute(product_, stream_, arguments_));
    }
    SS_TRY(wait(stream_));
    if (p_.relu) rectify(call.outputs[0], p_.threads);
    return {};
  }
  std::string implementation() const override {
    return implementation_ + " matmul" + (bias_ ? " + bias" : "") + (p_.addend ? " + addend" : "") +
           (p_.relu ? " + relu" : "");
  }
  Determinism determinism() const override { return libraryOrder(); }
  bool slow() const { return implementation_.find("ref") != std::string::npos; }

 private:
  MatMulParams p_;
  MatMulShape outer_;  // its batches: where the primitive begins
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
  std::swap(s.aStart, s.bStart);
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

// float32 or bfloat16 where all operands have that type; else nothing.
std::optional<DType> commonType(const KernelSpec& spec) {
  const DType type = spec.outputs[0].dtype;
  for (const OperandSpec& operand : spec.inputs)
    if (operand.present() && operand.dtype != type) return std::nullopt;
  return type == DType::kF32 || type == DType::kBF16 ? std::optional(type) : std::nullopt;
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
  SS_ASSIGN(params.shape, matMulShape(spec.inputs[0].dims, spec.inputs[1].dims, spec.attrs));
  params.alpha = spec.attrs.real("alpha", 1.0f);
  params.threads = spec.threads;
  params.dtype = spec.outputs[0].dtype;
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
  const double flops = 2.0 * static_cast<double>(s.batches()) * static_cast<double>(s.m) * static_cast<double>(s.n) *
                       static_cast<double>(s.k);
  params.threads = threadsForFlops(flops, params.threads);
  const bool single = s.batches() == 1, denseY = s.yColumn == 1 && s.yRow == s.n;
  if (s.yColumn != 1 || (s.aRow != 1 && s.aColumn != 1) || (s.bRow != 1 && s.bColumn != 1))
    return unsupported(
        "matrix product: an operand has no axis of neighbouring elements; falls back to the reference kernel");
  if (params.beta != 0 && !(single && denseY))
    return unsupported("matrix product: an addend to products that are stored apart");
  if (params.addend && !denseRows(s)) return unsupported("matrix product: an addend to a result that is stored transposed");
  if (params.dtype == DType::kBF16) {
    if (params.addend || (params.beta != 0 && !(isBias(params) && single)) || s.batch.size() > 8)
      return unsupported("matrix product: an addend in bfloat16");
    if (multipliesBFloat16() && !FixedParts::here())
      if (auto kernel = fastOrNull<PrimitiveKernel>(params)) return kernel;
    const bool bias = isBias(params);
    return makeWidenedProduct(std::move(params), bias);
  }
  if (FixedParts::here() && flops >= 2 * kFlopsPerThread) {  // less is computed by one thread anyway
    const std::int64_t blocks = fixedBlocks(s, flops);
    return std::make_unique<SgemmKernel>(std::move(params), Split::kFixed, blocks);
  }
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
  if (!commonType(spec)) return unsupported(spec.op + ": the fast kernel takes float32 or bfloat16");
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
  if (!commonType(spec)) return unsupported("Gemm: the fast kernel takes float32 or bfloat16");
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
