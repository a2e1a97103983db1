// What addOptimizer() makes its nodes with; of optimizer.cpp alone, with the exchange between ranks in optimizer_parts.cpp,
// and accumulation, norm and loss scale in optimizer_clip.cpp. optimizer.h says what comes of it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/build/gradient_buckets.h"
#include "engine/build/name_pattern.h"
#include "engine/build/optimizer.h"
#include "engine/build/parameter_parts.h"

namespace stepscope {

// One use makes the nodes of one step.
class OptimizerNodes {
 public:
  OptimizerNodes(Graph& graph, Inference& inference, const TrainOptions& options, ValueId lossScale,
                 const OptimizerGraph* updates, const OptimizerRanks& ranks, const StateCounters& from)
      : graph_(graph), inference_(inference), o_(options), updates_(updates), ranks_(ranks), from_(from) {
    report_.lossScale = lossScale;
  }

  Result<OptimizerReport> run(const std::vector<ValueId>& trained, std::vector<ValueId> gradients);

 private:
  ValueId input(const std::string& name, DType dtype);
  Result<std::vector<ValueId>> emit(const std::string& name, std::string_view domain, std::string_view op,
                                    std::vector<ValueId> inputs, std::vector<std::string> outputs, Phase phase,
                                    ValueId owner, Attributes attrs = {});
  // `part`: of this rank alone.
  ValueId state(ValueId parameter, const char* suffix, bool part);
  DType typeOf(ValueId value) const { return graph_.value(value).type.dtype; }
  // "<parameter>/<part>": the value in another type, for the update of the parameter.
  Result<ValueId> cast(ValueId parameter, ValueId value, const std::string& part, DType type,
                       Phase phase = Phase::kOptimizer);
  bool parts() const { return ranks_.size > 1 && o_.rankShard != "off"; }
  bool parameterParts() const { return parts() && o_.rankShard == "parameters"; }
  bool gradientParts() const { return parts() && o_.rankShard != "optimizer"; }
  std::string nextName(const std::string& parameter) const {
    return parameter + (parts() && !parameterParts() ? ".next_part" : ".next");
  }
  // The extents of a parameter, also where it is a part.
  Dims wholeDims(ValueId parameter) const;
  Attributes rankAttributes() const { return {{"rank", std::int64_t{ranks_.rank}}, {"ranks", std::int64_t{ranks_.size}}}; }
  Status checkParts(const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients) const;
  // Parameters become parts.
  Result<SharedOut> shareOut(const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients);
  // The mean over the ranks, or this rank's part of it, takes the place of the gradients.
  Status exchange(const std::vector<ValueId>& trained, std::vector<ValueId>& gradients);
  std::string bucketName(const char* what, const GradientBucket& bucket, const std::vector<ValueId>& trained) const;
  // The parts of all ranks with the extents of `like`, or of the parameter where that is invalid; nothing where a part is.
  Result<std::vector<ValueId>> gather(const std::vector<ValueId>& trained, const std::vector<ValueId>& like,
                                      const std::vector<ValueId>& parts, const char* what, const char* suffix);
  // Behind all updates: passes may join those without changing in which order the collectives come.
  Status joinParameters(const std::vector<ValueId>& trained);
  // This rank's part of the parameter.
  Result<ValueId> partOf(ValueId parameter, ValueId contents);
  // sum' = first micro step of the round ? gradient : sum + gradient. The old sum is never cleared: it is ignored ("lazy
  // reset"). Where the norm is asked for, the same pass adds up its squares.
  Result<ValueId> accumulate(ValueId parameter, ValueId gradient);
  bool needsNorm() const { return o_.clipGradNorm > 0 || report_.lossScale; }
  Result<ValueId> scalar(const std::string& name, std::string_view op, std::vector<ValueId> inputs, std::string output,
                         Attributes attrs = {});
  // What the update multiplies its gradient by: 1 / loss scale, and min(1, max_norm / (norm + 1e-6)) where it is clipped.
  Result<ValueId> factor(const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients);
  // The condition of the updates, from the sum of all squares; and 1 / loss scale in its type.
  Result<ValueId> judgeScaled(ValueId squares);
  Result<std::pair<ValueId, double>> groupOf(ValueId parameter);
  // Suffixes of the state that an update has.
  std::vector<std::string> stateNames() const;
  // The input that counts the updates of the parameter's state.
  ValueId countOf(ValueId parameter);
  Status update(ValueId parameter, ValueId gradient, ValueId scale);
  Status updateByGraph(ValueId parameter, ValueId weight, ValueId gradient, ValueId scale,
                       std::pair<ValueId, ValueId> rateAndCount, double decay);
  // The parameter of the next step, in the type in which it is kept.
  Status becomes(ValueId parameter, ValueId next);
  void setNext(ValueId parameter, ValueId next);
  std::vector<StateUpdate>::iterator writer(ValueId parameter);
  // What the update starts from: the parameter, or what the forward pass makes of it (Embedding with max_norm).
  ValueId writtenByForward(ValueId parameter);
  void onlyWhereFinite(ValueId next);

  Graph& graph_;
  Inference& inference_;
  const TrainOptions& o_;
  const OptimizerGraph* updates_;
  const OptimizerRanks& ranks_;
  const StateCounters& from_;
  OptimizerReport report_;
  std::vector<std::size_t> ready_;          // in which order gradients come
  std::vector<OrderedCollective> sent_;     // what sends them
  std::map<ValueId, ValueId> weightParts_;  // by parameter: this rank's part of it
  std::map<ValueId, ValueId> nextParts_;    // by parameter: the next version of this rank's part
  std::vector<ValueId> squares_;            // of the accumulated gradients
  std::map<std::string, ValueId> rates_;
  std::map<std::int64_t, std::size_t> counts_;  // of updates that states have had: which of the report's inputs
  std::vector<NamePattern> patterns_;           // of the groups
};

}  // namespace stepscope
