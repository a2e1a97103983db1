// A matrix product over the rows of all steps, whose operands' addresses come with the run: the product of linear/matmul.h.
#pragma once

#include <array>

#include "kernels/kernel.h"

namespace stepscope::cpu {

class StepsProduct {
 public:
  struct Form {
    Dims a, b, y;  // of rank 2
    bool transA = false, transB = false;
    bool bias = false;    // a row that is added
    bool addend = false;  // adds to what y holds
  };
  // Errors: kUnsupported where no fast routine takes the extents.
  static Result<StepsProduct> make(const Form& form, int threads);

  std::size_t workspaceBytes() const { return product_->workspaceBytes(); }
  Status run(const float* a, const float* b, const float* bias, float* y, std::byte* workspace);

 private:
  std::unique_ptr<Kernel> product_;
  std::array<TensorView, 4> in_;
  std::array<TensorView, 1> out_;
};

}  // namespace stepscope::cpu
