// A cuBLASLt that computes on the host, in double, on the streams of the fake GPU. It checks what a program may not do:
// leading dimensions below the rows, operands that are less aligned than the preference says, an algorithm of another
// product, epilogues that the library has not, rows in front of Gelu that do not begin eight elements apart. What is ordered
// in STEPSCOPE_FAKE_CUBLASLT: "none": it has no algorithm; "refuses": it has one that it then does not run; "no-layouts": it
// does not take the description of a matrix; "no-epilogues": it has none for Gelu and sums.
#include "kernels/cuda_device/cublas.h"

#include <dlfcn.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <string>

#include "kernels/half.h"
#include "tests/kernels/fake_gpu/observer.h"

using namespace stepscope::cuda;
namespace fake = stepscope::fake;

namespace {

constexpr LtStatus kInvalid = 7, kNotSupported = 15;
std::int64_t products = 0, epilogues = 0;

struct Layout {
  int type = 0;
  std::int64_t rows = 0, columns = 0, leading = 0, batches = 1, stride = 0;
};
struct Matmul {
  std::int32_t transA = 0, transB = 0;
  std::uint32_t epilogue = kLtDefault;
  void* bias = nullptr;  // sums are written there
  void* aux = nullptr;
  std::int64_t auxLeading = 0;
  bool tf32 = false;

  bool sumsOfA() const { return epilogue == kLtSumsOfA; }
  bool sumsOfB() const { return epilogue == kLtSumsOfB; }
  bool gelu() const { return (epilogue & kLtGelu) != 0; }
  bool slope() const { return (epilogue & kLtGeluSlope) != 0; }
};

// Those of cublasLtEpilogue_t that this folder may ask for.
bool isEpilogue(std::uint32_t epilogue) {
  for (const std::uint32_t one :
       {kLtDefault + 0U, kLtRelu + 0U, kLtBias + 0U, kLtRelu | kLtBias, kLtGelu + 0U, kLtGelu | kLtBias, kLtGelu | kLtAux,
        kLtGelu | kLtAux | kLtBias, kLtGeluSlope | kLtAux, kLtSumsOfA + 0U, kLtSumsOfB + 0U})
    if (epilogue == one) return true;
  return false;
}
struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t reductions = 7;  // as the library begins: any
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

bool isOrdered(const char* order) {
  const char* const orders = std::getenv("STEPSCOPE_FAKE_CUBLASLT");
  return orders && std::string(orders) == order;
}

double read(const void* data, int type, std::int64_t i) {
  if (type == kLtF32) return static_cast<const float*>(data)[i];
  if (type == kLtF16) return static_cast<float>(static_cast<const stepscope::Float16*>(data)[i]);
  return static_cast<float>(static_cast<const stepscope::BFloat16*>(data)[i]);
}
void write(void* data, int type, std::int64_t i, double value) {
  const auto single = static_cast<float>(value);
  if (type == kLtF32)
    static_cast<float*>(data)[i] = single;
  else if (type == kLtF16)
    static_cast<stepscope::Float16*>(data)[i] = stepscope::Float16(single);
  else
    static_cast<stepscope::BFloat16*>(data)[i] = stepscope::BFloat16(single);
}

struct Call {
  Matmul matmul;
  Layout a, b, d;
  float alpha, beta;
  const void *left, *right, *addend;
  void* result;
};
// As tensor cores read a float32 in TF32: ten bits of its fraction.
double shortened(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value)) & 0xffffe000U;
  return std::bit_cast<float>(bits);
}
double bentAt(double x) { return std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)); }
double geluAt(double x) { return 0.5 * x * (1 + bentAt(x)); }
double slopeAt(double x) {
  const double t = bentAt(x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

// Sums of the first operand along its columns, or of the second one along its rows.
void addOperand(const Call& call, bool first) {
  const Layout& from = first ? call.a : call.b;
  const bool turned = (first ? call.matmul.transA : call.matmul.transB) != 0;
  const void* const data = first ? call.left : call.right;
  const std::int64_t count = first ? call.d.rows : call.d.columns, depth = turned == first ? from.rows : from.columns;
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) {
      const bool alongRows = turned == first;  // k counts rows of what is stored
      sum += read(data, from.type, alongRows ? k + i * from.leading : i + k * from.leading);
    }
    write(call.matmul.bias, call.d.type, i, sum);
  }
}

void compute(const Call& call) {
  if (call.matmul.sumsOfA() || call.matmul.sumsOfB()) addOperand(call, call.matmul.sumsOfA());
  const std::int64_t depth = call.matmul.transA ? call.a.rows : call.a.columns;
  for (std::int64_t batch = 0; batch < call.d.batches; ++batch)
    for (std::int64_t j = 0; j < call.d.columns; ++j)
      for (std::int64_t i = 0; i < call.d.rows; ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
          const std::int64_t at = call.matmul.transA ? k + i * call.a.leading : i + k * call.a.leading;
          const std::int64_t bt = call.matmul.transB ? j + k * call.b.leading : k + j * call.b.leading;
          const double left = read(call.left, call.a.type, batch * call.a.stride + at),
                       right = read(call.right, call.b.type, batch * call.b.stride + bt);
          sum += call.matmul.tf32 ? shortened(left) * shortened(right) : left * right;
        }
        const std::int64_t place = batch * call.d.stride + i + j * call.d.leading;
        double value = call.alpha * sum;
        if (call.beta != 0) value += call.beta * read(call.addend, call.d.type, place);
        if (call.matmul.epilogue & kLtBias) value += read(call.matmul.bias, call.d.type, i);
        if (call.matmul.epilogue & kLtRelu) value = value < 0 ? 0 : value;
        const std::int64_t auxPlace = i + j * call.matmul.auxLeading;
        if (call.matmul.gelu()) {
          if (call.matmul.epilogue & kLtAux) write(call.matmul.aux, call.d.type, auxPlace, value);
          value = geluAt(value);
        }
        if (call.matmul.slope()) value *= slopeAt(read(call.matmul.aux, call.d.type, auxPlace));
        write(call.result, call.d.type, place, value);
      }
}

bool fits(const Layout& a, bool transposed, std::int64_t rows, std::int64_t columns) {
  return a.leading >= a.rows && (transposed ? a.columns : a.rows) == rows && (transposed ? a.rows : a.columns) == columns;
}

}  // namespace

extern "C" {

// For tests: products that were put on a stream.
std::int64_t fakeCublasProducts() { return products; }
// Those of them with Gelu, its slope or sums.
std::int64_t fakeCublasEpilogues() { return epilogues; }

LtStatus cublasLtCreate(LtHandle* handle) {
  static int one;
  *handle = &one;
  return 0;
}
LtStatus cublasLtDestroy(LtHandle) { return 0; }
LtStatus cublasLtMatmulDescCreate(LtMatmul* made, int compute, int scale) {
  if ((compute != kLtComputeF32 && compute != kLtComputeTf32) || scale != kLtF32) return kNotSupported;
  *made = new Matmul();
  static_cast<Matmul*>(*made)->tf32 = compute == kLtComputeTf32;
  return 0;
}
LtStatus cublasLtMatmulDescDestroy(LtMatmul matmul) {
  delete static_cast<Matmul*>(matmul);
  return 0;
}
LtStatus cublasLtMatmulDescSetAttribute(LtMatmul matmul, int which, const void* value, std::size_t bytes) {
  auto& into = *static_cast<Matmul*>(matmul);
  struct Field {
    int which;
    void* place;
    std::size_t bytes;
  };
  const Field fields[] = {{kLtTransA, &into.transA, 4},     {kLtTransB, &into.transB, 4},
                          {kLtEpilogue, &into.epilogue, 4}, {kLtBiasPointer, &into.bias, 8},
                          {kLtAuxPointer, &into.aux, 8},    {kLtAuxLeading, &into.auxLeading, 8}};
  for (const Field& field : fields)
    if (field.which == which && field.bytes == bytes) {
      std::memcpy(field.place, value, bytes);
      return 0;
    }
  return kInvalid;
}
LtStatus cublasLtMatrixLayoutCreate(LtLayout* made, int type, std::uint64_t rows, std::uint64_t columns,
                                    std::int64_t leading) {
  if (isOrdered("no-layouts")) return kInvalid;
  *made = new Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading, 1, 0};
  return 0;
}
LtStatus cublasLtMatrixLayoutDestroy(LtLayout layout) {
  delete static_cast<Layout*>(layout);
  return 0;
}
LtStatus cublasLtMatrixLayoutSetAttribute(LtLayout layout, int which, const void* value, std::size_t bytes) {
  auto& into = *static_cast<Layout*>(layout);
  if (which == kLtBatchCount && bytes == 4) {
    std::int32_t count = 0;
    std::memcpy(&count, value, 4);
    into.batches = count;
    return 0;
  }
  if (which != kLtBatchStride || bytes != 8) return kInvalid;
  std::memcpy(&into.stride, value, 8);
  return 0;
}
LtStatus cublasLtMatmulPreferenceCreate(LtPreference* made) {
  *made = new Preference();
  return 0;
}
LtStatus cublasLtMatmulPreferenceDestroy(LtPreference preference) {
  delete static_cast<Preference*>(preference);
  return 0;
}
LtStatus cublasLtMatmulPreferenceSetAttribute(LtPreference preference, int which, const void* value, std::size_t bytes) {
  auto& into = *static_cast<Preference*>(preference);
  if (which == kLtWorkspaceBytes && bytes == 8) {
    std::memcpy(&into.workspace, value, 8);
    return 0;
  }
  if (which == kLtReductions && bytes == 4) {
    std::memcpy(&into.reductions, value, 4);
    return 0;
  }
  if (which < kLtAlignmentA || which > kLtAlignmentD || bytes != 4) return kInvalid;
  std::memcpy(&into.alignment[which - kLtAlignmentA], value, 4);
  return 0;
}
LtStatus cublasLtMatmulAlgoGetHeuristic(LtHandle, LtMatmul matmul, LtLayout a, LtLayout b, LtLayout, LtLayout d,
                                        LtPreference preference, int asked, LtHeuristic* results, int* found) {
  *found = 0;
  if (asked < 1 || isOrdered("none")) return kNotSupported;
  const auto& m = *static_cast<const Matmul*>(matmul);
  const auto &left = *static_cast<const Layout*>(a), &right = *static_cast<const Layout*>(b),
             &result = *static_cast<const Layout*>(d);
  const std::int64_t depth = m.transA ? left.rows : left.columns;
  if (!fits(left, m.transA, result.rows, depth) || !fits(right, m.transB, depth, result.columns) ||
      result.leading < result.rows || !isEpilogue(m.epilogue))
    return kInvalid;
  // Split sums, or memory beside the operands: not what a program should ask for.
  const auto& wanted = *static_cast<const Preference*>(preference);
  if (wanted.reductions != 0 || wanted.workspace != 0) return kInvalid;
  if (m.epilogue >= kLtGelu && (isOrdered("no-epilogues") || result.batches != 1)) return kNotSupported;
  if ((m.epilogue & kLtAux) && (m.auxLeading % 8 != 0 || m.auxLeading < result.rows)) return kInvalid;
  std::memset(results, 0, sizeof(*results));
  results->algorithm[0] = reinterpret_cast<std::uint64_t>(matmul);
  results->algorithm[1] = static_cast<const Preference*>(preference)->alignment[0];
  *found = 1;
  return 0;
}
LtStatus cublasLtMatmul(LtHandle, LtMatmul matmul, const void* alpha, const void* a, LtLayout aLayout, const void* b,
                        LtLayout bLayout, const void* beta, const void* c, LtLayout, void* d, LtLayout dLayout,
                        const void* algorithm, void* workspace, std::size_t workspaceBytes, CuStream stream) {
  if (isOrdered("refuses")) return kNotSupported;
  const auto* const chosen = static_cast<const std::uint64_t*>(algorithm);
  if (!chosen || chosen[0] != reinterpret_cast<std::uint64_t>(matmul) || workspace || workspaceBytes) return kInvalid;
  for (const void* place : {a, b, c, static_cast<const void*>(d)})
    if (!place || reinterpret_cast<std::uintptr_t>(place) % chosen[1] != 0) return kInvalid;
  const auto& asked = *static_cast<const Matmul*>(matmul);
  if ((asked.epilogue & (kLtBias | kLtSumsOfA | kLtSumsOfB)) && !asked.bias) return kInvalid;
  if ((asked.epilogue & kLtAux) && !asked.aux) return kInvalid;
  Call call{*static_cast<const Matmul*>(matmul),
            *static_cast<const Layout*>(aLayout),
            *static_cast<const Layout*>(bLayout),
            *static_cast<const Layout*>(dLayout),
            0,
            0,
            a,
            b,
            c,
            d};
  std::memcpy(&call.alpha, alpha, sizeof(float));
  std::memcpy(&call.beta, beta, sizeof(float));
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto put = driver ? reinterpret_cast<fake::Put>(dlsym(driver, "fakeGpuPut")) : nullptr;
  if (!put) return kInvalid;
  ++products;
  epilogues += asked.epilogue >= kLtGelu ? 1 : 0;
  // A graph computes it again and again, so it stays.
  static auto* const calls = new std::deque<Call>();
  calls->push_back(call);
  return put(
      stream, [](void* data) { compute(*static_cast<const Call*>(data)); }, &calls->back(), "library product");
}

}  // extern "C"
