// A product node as a library of the device is asked for it (kernels/library_product.h).
#pragma once

#include <optional>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/library_product.h"

namespace stepscope::cuda {

struct LibraryForm {
  LibraryProduct product;  // without addresses
  struct Offsets {         // in elements, of a call's first batch
    std::int64_t a = 0, b = 0, y = 0;
  };
  std::vector<Offsets> calls;  // one per stretch of evenly spaced batches
  int bias = -1, addend = -1;  // inputs; -1: none
  int beforeInput = -1, beforeOutput = -1, sums = -1;
};

// Of MatMul, FusedMatMul, BatchedMatMul, Product, EpilogueProduct and Gemm. None: operands of several types, strides that no
// library reads, or too many calls.
std::optional<LibraryForm> libraryForm(const KernelSpec& spec);

// Whether a library of the device has put all of it on the stream of the call; else nothing was put there.
Result<bool> runByLibrary(const LibraryForm& form, const KernelCall& call);

// The product of a low type: by a library, which reads it as it is, else as the kernel in float32 between casts.
Result<std::unique_ptr<Kernel>> makeLowProduct(const KernelSpec& spec, std::unique_ptr<Kernel> wide);

}  // namespace stepscope::cuda
