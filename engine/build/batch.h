// One entry of the data, and what the build needs to know of it.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "kernels/tensor.h"

namespace stepscope {

struct Batch {
  std::map<std::string, Tensor> arrays;  // by graph input
  std::string label;                     // "entry 3 of 8", "synthetic"
};

// Types and extents of the arrays of a batch. Batches of one signature run under one plan.
struct Signature {
  std::map<std::string, std::pair<DType, Dims>> arrays;
  std::map<std::string, std::int64_t> rows;  // extents of inputs that the step makes of a batch (kept_rows.h)
  std::string text() const;                  // "input_ids int64[2, 24]; labels int64[2, 24]"
  friend bool operator==(const Signature&, const Signature&) = default;
};
Signature signatureOf(const Batch& batch);
// The same as signatureOf(batch) == signature, without making one.
bool fits(const Signature& signature, const Batch& batch);

}  // namespace stepscope
