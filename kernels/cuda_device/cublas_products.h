// Matrix products by cuBLASLt (kernels/library_product.h). It is asked for algorithms that need no workspace, so nothing
// is allocated beside the plan, and that split no sum between blocks: the same call gives the same bits. Which algorithm,
// the library says; it is asked once per shape.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/cuda_device/cublas.h"
#include "kernels/library_product.h"

namespace stepscope::cuda {

class CublasProducts {
 public:
  CublasProducts() = default;
  ~CublasProducts();  // with the context current
  CublasProducts(const CublasProducts&) = delete;
  CublasProducts& operator=(const CublasProducts&) = delete;

  // False: there is no library, or it has no algorithm for this.
  bool takes(const LibraryProduct& product);
  // Puts one that it takes on the stream. False: the library does not take it after all, now and later, and nothing was put
  // there. Errors: kInternal.
  Result<bool> run(const LibraryProduct& product, CuStream stream);
  // Why there is none; empty: there is, or nobody has asked for a product yet.
  const std::string& lacking() const { return lacking_; }

 private:
  // What the library makes of a shape, in its column-major terms: d = op(first) op(second), d of `rows` × `columns`.
  struct Prepared {
    LtMatmul matmul = nullptr;
    LtLayout first = nullptr, second = nullptr, result = nullptr;
    bool transposedResult = false;  // y is what the library calls d, else its transpose
    LtHeuristic heuristic{};
    bool possible = false;
  };
  Prepared& prepared(const LibraryProduct& product);
  Status make(const LibraryProduct& product, Prepared& made);
  Status setPlaces(const LibraryProduct& product, Prepared& made);

  const CublasLt* library_ = nullptr;
  LtHandle handle_ = nullptr;
  std::string lacking_;
  bool asked_ = false;
  std::map<std::vector<std::int64_t>, Prepared> known_;  // by what keyOf() tells apart
};

}  // namespace stepscope::cuda
