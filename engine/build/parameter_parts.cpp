#include "engine/build/parameter_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "engine/ir/recomputed_copy.h"
#include "engine/ops/op_def.h"
#include "kernels/rank_part.h"

namespace stepscope {
namespace {

class Sharer {
 public:
  Sharer(Graph& graph, Inference& inference, const std::vector<ValueId>& trained, const std::vector<bool>& shared,
         const std::vector<ParameterUse>& uses, int rank, int ranks, std::int64_t bytes)
      : graph_(graph),
        inference_(inference),
        trained_(trained),
        shared_(shared),
        uses_(uses),
        rank_(rank),
        ranks_(ranks),
        bytes_(bytes) {}

  Result<SharedOut> run() {
    SS_TRY(computeAgain());
    findReaders();
    SS_TRY(takeParts());
    SharedOut made;
    std::vector<std::size_t> order(trained_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return uses_[i].first; });
    for (const auto& bucket : bucketsOf(forward_, order)) {
      SS_ASSIGN(const NodeId node, gather(bucket, Phase::kForward, ".whole"));
      std::size_t first = std::numeric_limits<std::size_t>::max();
      for (const std::size_t i : bucket) first = std::min(first, uses_[i].first);
      made.forward.push_back({node, first, true});
    }
    std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return uses_[i].last; });
    for (const auto& bucket : bucketsOf(backward_, order)) {
      SS_ASSIGN(const NodeId node, gather(bucket, Phase::kBackward, ".whole_again"));
      std::size_t last = 0;
      for (const std::size_t i : bucket) last = std::max(last, uses_[i].last);
      made.backward.push_back({node, last, true});
    }
    return made;
  }

 private:
  using Reads = std::vector<Use>;

  // What the forward phase makes of parameters alone, such as a Transpose or a Cast, would live until the backward phase
  // reads it: that gets one of its own.
  Status computeAgain() {
    std::unordered_set<ValueId> made;
    for (std::size_t i = 0; i < trained_.size(); ++i)
      if (shared_[i]) made.insert(trained_[i]);
    const UseTable uses = graph_.uses();
    std::unordered_map<ValueId, ValueId> again;
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      if (!ofParameters(graph_.node(id), made)) continue;
      const ValueId result = graph_.node(id).output(0);
      made.insert(result);
      std::vector<Use> late;
      for (const Use& use : uses[static_cast<std::size_t>(result.index)])
        if (graph_.node(use.node).phase != Phase::kForward && use.input < graph_.node(use.node).inputs.size())
          late.push_back(use);
      if (late.empty()) continue;
      SS_ASSIGN(const ValueId copy, copyOf(result, made, again));
      for (const Use& use : late) graph_.setInput(use.node, use.input, copy);
    }
    return {};
  }

  // Whether a node of the forward phase computes one cheap result of parameters and constants.
  bool ofParameters(const Node& node, const std::unordered_set<ValueId>& made) const {
    const OpDef* op = inference_.ops().find(node);
    if (node.phase != Phase::kForward || node.outputs.size() != 1 || !node.predicates.empty() || !node.subgraphs.empty() ||
        !op || op->random || op->recompute != Recompute::kCheap || op->sideEffect != SideEffect::kNone)
      return false;
    bool any = false;
    for (const ValueId input : node.inputs) {
      if (!input) continue;
      any = any || made.contains(input);
      if (!made.contains(input) && graph_.value(input).role != ValueRole::kInitializer &&
          graph_.value(input).role != ValueRole::kConstant)
        return false;
    }
    return any;
  }

  Result<ValueId> copyOf(ValueId value, const std::unordered_set<ValueId>& made,
                         std::unordered_map<ValueId, ValueId>& again) {
    const NodeId producer = graph_.value(value).producer;
    if (!producer) return value;  // a parameter, which is gathered again, or a constant
    if (const auto known = again.find(value); known != again.end()) return known->second;
    std::vector<ValueId> inputs = graph_.node(producer).inputs;
    for (ValueId& input : inputs)
      if (input && made.contains(input)) {
        SS_ASSIGN(input, copyOf(input, made, again));
      }
    const NodeId id = addRecomputedCopy(graph_, producer, std::move(inputs), {graph_.value(value).name + "_recompute"});
    SS_TRY(inference_.inferNode(id));
    return again[value] = graph_.node(id).output(0);
  }

  void findReaders() {
    forward_.resize(trained_.size());
    backward_.resize(trained_.size());
    const UseTable uses = graph_.uses();
    for (std::size_t i = 0; i < trained_.size(); ++i) {
      if (!shared_[i]) continue;
      for (const Use& use : uses[static_cast<std::size_t>(trained_[i].index)])
        (graph_.node(use.node).phase == Phase::kForward ? forward_ : backward_)[i].push_back(use);
      for (const ValueId output : graph_.outputs())
        if (output == trained_[i]) told_.insert(i);
    }
  }

  Status takeParts() {
    for (std::size_t i = 0; i < trained_.size(); ++i) {
      if (!shared_[i]) continue;
      Value& parameter = graph_.mutableValue(trained_[i]);
      if (!parameter.data)
        return failOption(ErrorCode::kUnsupported, "ranks.shard",
                          fmt::format("parameters; parameter '{}' has no contents in the file; expected contents, of which "
                                      "each rank takes its part",
                                      parameter.name));
      whole_[i] = *parameter.type.shape;
      const Dims dims = *knownDims(whole_[i]);
      parameter.type.shape = Shape{Dim(partLength(elementCount(dims), ranks_))};
      parameter.data = InitialContents::later(parameter.data.dtype(), {partLength(elementCount(dims), ranks_)},
                                              [whole = parameter.data, rank = rank_, ranks = ranks_]() -> Result<Tensor> {
                                                SS_ASSIGN(const Tensor contents, whole.read());
                                                return rankPart(contents, rank, ranks);
                                              });
    }
    return {};
  }

  // Of those that are read, in the order given.
  std::vector<GradientBucket> bucketsOf(const std::vector<Reads>& reads, const std::vector<std::size_t>& order) const {
    std::vector<ValueId> parts(trained_.size());
    for (std::size_t i = 0; i < trained_.size(); ++i)
      if (!reads[i].empty() || (&reads == &forward_ && told_.contains(i))) parts[i] = trained_[i];
    return gradientBuckets(graph_, parts, order, bytes_ / ranks_);
  }

  Result<NodeId> gather(const GradientBucket& bucket, Phase phase, const char* suffix) {
    std::vector<ValueId> inputs;
    std::vector<std::string> outputs;
    std::vector<std::int64_t> extents;
    for (const std::size_t i : bucket) {
      inputs.push_back(trained_[i]);
      outputs.push_back(graph_.value(trained_[i]).name + suffix);
      const Dims dims = *knownDims(whole_[i]);
      extents.push_back(static_cast<std::int64_t>(dims.size()));
      extents.insert(extents.end(), dims.begin(), dims.end());
    }
    const std::string name = fmt::format("{} parameters from {}, whole{}", bucket.size(),
                                         graph_.value(trained_[bucket[0]]).name, phase == Phase::kForward ? "" : " again");
    const NodeId id = graph_.addNode(name, std::string(kInternalDomain), "AllGather", std::move(inputs), std::move(outputs),
                                     {{"rank", std::int64_t{rank_}}, {"ranks", std::int64_t{ranks_}}, {"extents", extents}});
    Node& node = graph_.mutableNode(id);
    node.phase = phase;
    node.sinceVersion = kInternalOpset;
    node.origin = {.kind = Origin::Kind::kRoot, .detail = InternedText(name)};
    SS_TRY(inference_.inferNode(id));
    const bool forward = phase == Phase::kForward;
    for (std::size_t k = 0; k < bucket.size(); ++k) {
      const ValueId whole = graph_.node(id).outputs[k];
      for (const Use& use : (forward ? forward_ : backward_)[bucket[k]]) graph_.setInput(use.node, use.input, whole);
      if (forward && told_.contains(bucket[k])) std::ranges::replace(graph_.mutableOutputs(), trained_[bucket[k]], whole);
    }
    return id;
  }

  Graph& graph_;
  Inference& inference_;
  const std::vector<ValueId>& trained_;
  const std::vector<bool>& shared_;
  const std::vector<ParameterUse>& uses_;
  const int rank_, ranks_;
  const std::int64_t bytes_;
  std::vector<Reads> forward_, backward_;  // who reads trained_[i]
  std::unordered_set<std::size_t> told_;   // graph outputs
  std::unordered_map<std::size_t, Shape> whole_;
};

}  // namespace

Result<SharedOut> shareOutParameters(Graph& graph, Inference& inference, const std::vector<ValueId>& trained,
                                     const std::vector<bool>& shared, const std::vector<ParameterUse>& uses, int rank,
                                     int ranks, std::int64_t bytes) {
  return Sharer(graph, inference, trained, shared, uses, rank, ranks, bytes).run();
}

std::size_t readGatheredAgain(Graph& graph) {
  std::unordered_map<ValueId, ValueId> parts, again;  // by a result of the forward phase: the part; by a part: what is there
  std::size_t changed = 0;
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node node = graph.node(id);
    const bool gathers = node.domain == kInternalDomain && node.op == "AllGather" && node.attrs.has("extents");
    for (std::size_t i = 0; gathers && i < node.outputs.size(); ++i) {
      if (node.phase == Phase::kForward) parts[node.outputs[i]] = node.inputs[i];
      if (node.phase == Phase::kBackward) again[node.inputs[i]] = node.outputs[i];
    }
    if (node.phase != Phase::kRecompute) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto part = parts.find(node.inputs[i]);
      if (part == parts.end()) continue;
      const auto there = again.find(part->second);
      if (there == again.end()) continue;
      graph.setInput(id, i, there->second);
      ++changed;
    }
  }
  return changed;
}

}  // namespace stepscope
