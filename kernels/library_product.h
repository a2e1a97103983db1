// A matrix product that a library of a device may compute in place of the kernel's own tiles:
//
//   y[b] = after(alpha a[b] c[b] + beta addend[b] + bias)
//
// with strides in elements, m × k, k × n and m × n; bias has n elements. All operands have one type: float32, float16 or
// bfloat16; sums are float32. The batches of a stretch are evenly apart. What comes after the product of one batch may be
// Gelu in its form with tanh, which is the one that libraries have, or its slope at `before`; or the sums over k of one
// operand are written beside y, which is the gradient of a bias where that operand is the gradient of a result.
#pragma once

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/space.h"
#include "kernels/status.h"

namespace stepscope {

enum class AfterProduct : std::uint8_t { kNothing, kRelu, kGelu, kGeluSlope };
enum class OperandSums : std::uint8_t { kNone, kOfA, kOfB };

struct LibraryProduct {
  DType dtype = DType::kF32;
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t aRow = 1, aColumn = 1, bRow = 1, bColumn = 1, yRow = 1, yColumn = 1;
  std::int64_t batches = 1, aBatch = 0, bBatch = 0, yBatch = 0;
  float alpha = 1, beta = 0;
  AfterProduct after = AfterProduct::kNothing;
  OperandSums sumsOf = OperandSums::kNone;
  bool tf32 = false;                      // of float32, 10 bits of the fractions of a and c are read
  const void *a = nullptr, *b = nullptr;  // addresses of the device
  const void* addend = nullptr;           // laid out as y; null where beta is 0
  const void* bias = nullptr;
  void* before = nullptr;  // laid out as y. kGelu: what Gelu is applied to, written; null: nobody reads it. kGeluSlope: read
  void* sums = nullptr;    // m elements of kOfA, n of kOfB
  void* y = nullptr;
  StreamId stream = 0;
};

// Whether a library reads matrices of these strides: one of each pair is 1, the other no less than a row, and a bias runs
// along elements that lie side by side; rows of `before` begin eight elements apart or a multiple of that; sums are those of
// a plain product. Addresses are looked at for whether they are there.
inline bool isLibraryProduct(const LibraryProduct& p) {
  const auto matrix = [](std::int64_t rowStride, std::int64_t columnStride, std::int64_t rows, std::int64_t columns) {
    return (columnStride == 1 && rowStride >= columns) || (rowStride == 1 && columnStride >= rows);
  };
  const bool columns = p.yColumn != 1 || p.yRow < p.n;  // of y lie together
  if (p.bias && columns) return false;
  const bool gelu = p.after == AfterProduct::kGelu || p.after == AfterProduct::kGeluSlope;
  if ((gelu || p.sums) && (p.batches != 1 || p.addend)) return false;
  if (gelu && p.before && (columns ? p.yColumn : p.yRow) % 8 != 0) return false;
  if (p.after == AfterProduct::kGeluSlope && (!p.before || p.bias)) return false;
  if (p.sums && (p.after != AfterProduct::kNothing || p.bias || p.alpha != 1)) return false;
  return matrix(p.aRow, p.aColumn, p.m, p.k) && matrix(p.bRow, p.bColumn, p.k, p.n) && matrix(p.yRow, p.yColumn, p.m, p.n);
}

namespace gpu {

// A device with a library for products.
class LibraryProducts {
 public:
  virtual ~LibraryProducts() = default;
  // Puts the product on its stream. False: the library has none for it, and nothing was put there. Errors: kInternal from
  // the library.
  virtual Result<bool> product(const LibraryProduct& product) = 0;
};

// Of the device that launches a kernel in this thread; null: it has none.
inline constinit thread_local LibraryProducts* libraryProducts = nullptr;

}  // namespace gpu
}  // namespace stepscope
