// Extents of synthetic data: one number per symbol of the inputs' shapes, wherever the symbol stands, and whatever follows
// from it.
//
// `--dim NAME=N` sets a symbol, or an axis by the text of its whole extent ("floor((s)/(2))"). Without it a symbol that
// stands on first axes only or is named after the batch is 2, any other 128: "sequence" of [batch, sequence] is as long in a
// mask of shape [sequence], and "sequence + 1" one longer. An extent without a name is as long as one that is given on the
// same axis of another input of that rank. Where the graph fixes a symbol, fit_dims finds the number before.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "kernels/status.h"

namespace stepscope {

// A symbol of the inputs' shapes and its extent in synthetic data.
struct DimChoice {
  std::string name;
  std::int64_t extent = 0;
  std::string reason;
  bool fixed = false;  // the graph needs this extent
};

class SyntheticDims {
 public:
  // `fitted`: what fitDims found for symbols that are not given.
  SyntheticDims(const Graph& graph, const std::vector<ValueId>& inputs, const std::map<std::string, std::int64_t>& given,
                const std::vector<DimChoice>& fitted = {});

  // Error: what the symbols give is below 0.
  Result<std::int64_t> extent(const std::string& input, const Dim& dim) const;
  // Every symbol, in the order of the inputs.
  const std::vector<DimChoice>& choices() const { return choices_; }
  // "dimension 'batch' = 2 (default; --dim batch=N sets it)", in the order of the inputs.
  const std::vector<std::string>& notes() const { return notes_; }
  // Names of --dim that no input has.
  const std::vector<std::string>& unused() const { return unused_; }

 private:
  std::map<std::string, std::int64_t> given_;
  std::map<std::string, Dim> symbols_;
  std::vector<DimChoice> choices_;
  std::vector<std::string> notes_, unused_;
};

// The symbols of a polynomial, in the order of its text.
std::vector<std::string> symbolsOf(const Dim& dim);

}  // namespace stepscope
