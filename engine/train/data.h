// Where batches come from: files or a seed. One entry per micro step, starting over when the steps outnumber the entries.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/train/options.h"

namespace stepscope {

struct Batch {
  std::map<std::string, Tensor> arrays;  // by graph input
  std::string label;                     // "entry 3 of 8", "synthetic"
};

// What an integer or mask input holds, found from how the graph uses it.
struct InputRole {
  enum class Kind { kTokens, kLabels, kMask, kPositions, kData } kind = Kind::kData;
  std::int64_t below = 0;                // exclusive upper end of token ids, labels and positions; 0 unknown
  std::string text;                      // "token ids below 384"
  std::string reason;                    // "indexes 'wte.weight' (384 rows) through Gather 'wte/Gather'"
};
InputRole inferRole(const Graph& graph, ValueId input);

class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual std::int64_t entries() const = 0;             // 0 = unlimited
  virtual Result<Batch> batch(std::int64_t step) = 0;   // arrays share memory with the source where they can
};

// The source that the options name, for the inputs of `graph`. Every input must be found, with its dtype (numbers are
// converted: float64 → float32 rounded, integers where every element fits, int64 → int32 say) and a rank that fits: equal to the declared one, or one
// more (a leading axis of entries). Errors name the input, what was found and what was expected.
Result<std::unique_ptr<DataSource>> openData(const Graph& graph, const TrainOptions& options, std::vector<std::string>* notes);

}  // namespace stepscope
