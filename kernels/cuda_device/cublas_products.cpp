#include "kernels/cuda_device/cublas_products.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepscope::cuda {
namespace {

constexpr std::uintptr_t kAlignment = 16;
constexpr LtStatus kArchitectureMismatch = 8, kNotSupported = 15;

Status check(LtStatus status, const char* what) {
  if (status == 0) return {};
  return fail(ErrorCode::kInternal, fmt::format("cuBLASLt: {}: status {}", what, status));
}

int typeOf(DType dtype) { return dtype == DType::kF16 ? kLtF16 : dtype == DType::kBF16 ? kLtBF16 : kLtF32; }

// The library chooses by alignment too: operands that begin elsewhere are another case.
bool isAligned(const LibraryProduct& p) {
  std::uintptr_t all = 0;
  for (const void* place : {p.a, p.b, p.addend, p.bias, static_cast<const void*>(p.before), static_cast<const void*>(p.sums),
                            static_cast<const void*>(p.y)})
    all |= reinterpret_cast<std::uintptr_t>(place);
  return all % kAlignment == 0;
}

std::vector<std::int64_t> keyOf(const LibraryProduct& p) {
  return {static_cast<std::int64_t>(p.dtype),
          p.m,
          p.n,
          p.k,
          p.aRow,
          p.aColumn,
          p.bRow,
          p.bColumn,
          p.yRow,
          p.yColumn,
          p.batches,
          p.aBatch,
          p.bBatch,
          p.yBatch,
          p.bias ? 1 : 0,
          p.before ? 1 : 0,
          static_cast<std::int64_t>(p.after),
          static_cast<std::int64_t>(p.sumsOf),
          p.tf32 ? 1 : 0};
}

// A matrix as the library sees it: column-major, rows × columns, possibly to be transposed.
struct Stored {
  std::int64_t rows = 0, columns = 0, leading = 0;
  bool transposed = false;
};
Stored stored(std::int64_t rows, std::int64_t columns, std::int64_t rowStride, std::int64_t columnStride) {
  if (rowStride == 1 && columnStride >= rows) return {rows, columns, columnStride, false};
  return {columns, rows, rowStride, true};
}

// `transposed`: b is the library's first operand, a its second.
std::uint32_t epilogueOf(const LibraryProduct& p, bool transposed) {
  if (p.sums) return (p.sumsOf == OperandSums::kOfB) == transposed ? kLtSumsOfA : kLtSumsOfB;
  const std::uint32_t after = p.after == AfterProduct::kRelu        ? kLtRelu
                              : p.after == AfterProduct::kGelu      ? kLtGelu
                              : p.after == AfterProduct::kGeluSlope ? kLtGeluSlope
                                                                    : 0U,
                      bits = after | (p.before ? kLtAux : 0U) | (p.bias ? kLtBias : 0U);
  return bits == 0 ? kLtDefault : bits;
}

}  // namespace

CublasProducts::~CublasProducts() {
  for (auto& [key, one] : known_) {
    for (LtLayout layout : {one.first, one.second, one.result})
      if (layout) library_->layoutDestroy(layout);
    if (one.matmul) library_->matmulDestroy(one.matmul);
  }
  if (handle_) library_->destroy(handle_);
}

// Where the library finds what an epilogue reads and writes besides the result. It looks at their alignment when it is asked
// for an algorithm too.
Status CublasProducts::setPlaces(const LibraryProduct& p, Prepared& made) {
  const void* const line = p.sums ? p.sums : p.bias;
  if (line) SS_TRY(check(library_->matmulSet(made.matmul, kLtBiasPointer, &line, sizeof(line)), "the bias"));
  if (p.before)
    SS_TRY(check(library_->matmulSet(made.matmul, kLtAuxPointer, &p.before, sizeof(p.before)), "what Gelu is applied to"));
  return {};
}

Status CublasProducts::make(const LibraryProduct& p, Prepared& made) {
  const CublasLt& lt = *library_;
  const int type = typeOf(p.dtype);
  SS_TRY(check(lt.matmulCreate(&made.matmul, p.tf32 ? kLtComputeTf32 : kLtComputeF32, kLtF32), "a product"));
  const auto layout = [&](LtLayout* into, const Stored& s, std::int64_t batch) -> Status {
    SS_TRY(check(
        lt.layoutCreate(into, type, static_cast<std::uint64_t>(s.rows), static_cast<std::uint64_t>(s.columns), s.leading),
        "a layout"));
    const auto count = static_cast<std::int32_t>(p.batches);
    SS_TRY(check(lt.layoutSet(*into, kLtBatchCount, &count, sizeof(count)), "the number of batches"));
    return check(lt.layoutSet(*into, kLtBatchStride, &batch, sizeof(batch)), "the distance of batches");
  };
  // Of y where its columns lie together, else of the transpose of y, whose columns are the rows of y.
  const bool columns = p.yColumn != 1 || p.yRow < p.n;
  const Stored left = columns ? stored(p.m, p.k, p.aRow, p.aColumn) : stored(p.n, p.k, p.bColumn, p.bRow);
  const Stored right = columns ? stored(p.k, p.n, p.bRow, p.bColumn) : stored(p.k, p.m, p.aColumn, p.aRow);
  const Stored result = columns ? Stored{p.m, p.n, p.yColumn, false} : Stored{p.n, p.m, p.yRow, false};
  made.transposedResult = !columns;
  SS_TRY(layout(&made.first, left, columns ? p.aBatch : p.bBatch));
  SS_TRY(layout(&made.second, right, columns ? p.bBatch : p.aBatch));
  SS_TRY(layout(&made.result, result, p.yBatch));
  const std::int32_t transA = left.transposed ? kLtTransposed : kLtPlain,
                     transB = right.transposed ? kLtTransposed : kLtPlain;
  SS_TRY(check(lt.matmulSet(made.matmul, kLtTransA, &transA, sizeof(transA)), "a transposition"));
  SS_TRY(check(lt.matmulSet(made.matmul, kLtTransB, &transB, sizeof(transB)), "a transposition"));
  const std::uint32_t epilogue = epilogueOf(p, made.transposedResult);
  SS_TRY(check(lt.matmulSet(made.matmul, kLtEpilogue, &epilogue, sizeof(epilogue)), "what follows the product"));
  if (p.before)
    SS_TRY(check(lt.matmulSet(made.matmul, kLtAuxLeading, &result.leading, sizeof(result.leading)), "rows before Gelu"));
  SS_TRY(setPlaces(p, made));
  LtPreference preference = nullptr;
  SS_TRY(check(lt.preferenceCreate(&preference), "a preference"));
  const std::uint64_t workspace = 0;
  Status asked = check(lt.preferenceSet(preference, kLtWorkspaceBytes, &workspace, sizeof(workspace)), "the workspace");
  const std::uint32_t alignment = kAlignment, none = 0;
  if (asked) asked = check(lt.preferenceSet(preference, kLtReductions, &none, sizeof(none)), "sums that are not split");
  for (const int which : {kLtAlignmentA, kLtAlignmentB, kLtAlignmentC, kLtAlignmentD})
    if (asked) asked = check(lt.preferenceSet(preference, which, &alignment, sizeof(alignment)), "the alignment");
  int found = 0;
  // No algorithm is an answer, not an error.
  if (asked)
    made.possible = lt.heuristic(handle_, made.matmul, made.first, made.second, made.result, made.result, preference, 1,
                                 &made.heuristic, &found) == 0 &&
                    found == 1 && made.heuristic.state == 0 && made.heuristic.workspaceBytes == 0;
  lt.preferenceDestroy(preference);
  return asked;
}

CublasProducts::Prepared& CublasProducts::prepared(const LibraryProduct& product) {
  const auto [place, fresh] = known_.try_emplace(keyOf(product));
  // What cannot be described to the library, it has no algorithm for.
  if (fresh && !make(product, place->second)) place->second.possible = false;
  return place->second;
}

bool CublasProducts::takes(const LibraryProduct& product) {
  if (!asked_) {
    asked_ = true;
    const auto library = CublasLt::load();
    if (library && (*library)->create(&handle_) == 0)
      library_ = *library;
    else
      lacking_ = library ? "cuBLASLt does not start" : library.error().message;
  }
  if (!library_ || !isLibraryProduct(product) || !isAligned(product)) return false;
  return prepared(product).possible;
}

Result<bool> CublasProducts::run(const LibraryProduct& product, CuStream stream) {
  Prepared& ready = prepared(product);
  SS_TRY(setPlaces(product, ready));
  const float beta = product.addend ? product.beta : 0.0F;
  const void* const first = ready.transposedResult ? product.b : product.a;
  const void* const second = ready.transposedResult ? product.a : product.b;
  const void* const addend = product.addend ? product.addend : product.y;
  const LtStatus put =
      library_->matmul(handle_, ready.matmul, &product.alpha, first, ready.first, second, ready.second, &beta, addend,
                       ready.result, product.y, ready.result, ready.heuristic.algorithm, nullptr, 0, stream);
  // An algorithm that was offered may still be refused. Nothing is on the stream then.
  if (put == kNotSupported || put == kArchitectureMismatch) return ready.possible = false;
  SS_TRY(check(put, "a product"));
  return true;
}

}  // namespace stepscope::cuda
