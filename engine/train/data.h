// Where batches come from: files or a seed. One entry per micro step, starting over when the steps outnumber the entries.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/build/batch.h"
#include "engine/build/input_role.h"
#include "engine/build/options.h"
#include "engine/ir/graph.h"
#include "engine/ops/operators.h"
#include "engine/train/synthetic_dims.h"

namespace stepscope {

class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual std::int64_t entries() const = 0;            // 0 = unlimited
  virtual Result<Batch> batch(std::int64_t step) = 0;  // arrays share memory with the source where they can
};

// An array of a data file, without its elements.
struct ArrayType {
  DType dtype = DType::kUndefined;
  Dims dims;
};
struct DataLayout {
  std::map<std::string, bool> perStep;  // by graph input: its first axis holds one entry per step
  std::int64_t entries = 0;             // 0 when no array has such an axis
};
// How arrays feed the inputs of `graph`; `data` names them in errors. An array may be there that no input needs.
Result<DataLayout> layOut(const Graph& graph, const std::string& data, const std::map<std::string, ArrayType>& arrays);

// The source that the options name, for the inputs of `graph`. Every input must be found, with its dtype (numbers are
// converted: float64 → float32 rounded, integers where every element fits, int64 → int32 say) and a rank that fits: equal to
// the declared one, or one more (a leading axis of entries). Errors name the input, what was found and what was expected.
// For synthetic data: the `operators` of the model, by which shapes follow from each other, and `fitted`, extents of symbols
// that the options leave open.
Result<std::unique_ptr<DataSource>> openData(const Graph& graph, const TrainOptions& options, const Operators& operators,
                                             std::vector<std::string>* notes, const std::vector<DimChoice>& fitted = {});

// The batch that arrays of one step make, by graph input; in the types of the inputs, as openData() converts them. `data`
// names them in errors, which are those of openData(), and an array with an axis more than its input.
Result<Batch> batchOf(const Graph& graph, const std::string& data, const std::map<std::string, Tensor>& arrays);

// A batch of the types and extents that synthetic data would have under these options. Integers are filled as there, so that
// as many labels and tokens count; floats are zero, and large arrays of them take no memory as long as nobody writes to
// them. Option `data` is not looked at.
Result<Batch> emptyBatch(const Graph& graph, const TrainOptions& options, const Operators& operators,
                         const std::vector<DimChoice>& fitted = {});

}  // namespace stepscope
