// Gradients and parameters of several ranks: what is exchanged, and which part is whose.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/build/optimizer_nodes.h"
#include "engine/ops/op_def.h"

namespace stepscope {

Dims OptimizerNodes::wholeDims(ValueId parameter) const {
  const auto shared = report_.parts.find(graph_.value(parameter).name);
  return shared == report_.parts.end() ? *knownDims(*graph_.value(parameter).type.shape) : shared->second;
}

Status OptimizerNodes::checkParts(const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients) const {
  if (updates_ || o_.optimizer == "lamb")
    return failOption(ErrorCode::kUnsupported, "ranks.shard",
                      fmt::format("{}; {} looks at whole parameters, of which a rank has parts; expected off, or "
                                  "optimizer sgd, adam or adamw",
                                  o_.rankShard, updates_ ? "a graph of an optimizer" : "lamb"));
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const Value& parameter = graph_.value(trained[i]);
    if (gradients[i] && (!parameter.type.shape || !knownDims(*parameter.type.shape)))
      return failOption(
          ErrorCode::kUnsupported, "ranks.shard",
          fmt::format("parameter '{}' is {}; expected numbers for every extent", parameter.name, parameter.type.text()));
  }
  return {};
}

Result<SharedOut> OptimizerNodes::shareOut(const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients) {
  std::vector<bool> shared(trained.size(), false);
  for (std::size_t i = 0; i < trained.size(); ++i) {
    if (!gradients[i]) continue;
    const std::string& name = graph_.value(trained[i]).name;
    if (writer(trained[i]) != graph_.stateUpdates.end())
      return failOption(ErrorCode::kUnsupported, "ranks.shard",
                        fmt::format("parameters; the forward pass writes parameter '{}' (an Embedding with max_norm), of "
                                    "which a rank has a part; expected off, optimizer or gradients",
                                    name));
    shared[i] = true;
    report_.parts[name] = wholeDims(trained[i]);
    weightParts_[trained[i]] = trained[i];
  }
  return shareOutParameters(graph_, inference_, trained, shared, ranks_.uses, ranks_.rank, ranks_.size, o_.rankBucket);
}

Status OptimizerNodes::exchange(const std::vector<ValueId>& trained, std::vector<ValueId>& gradients) {
  for (const GradientBucket& bucket : gradientBuckets(graph_, gradients, ready_, o_.rankBucket)) {
    std::vector<ValueId> inputs;
    std::vector<std::string> outputs;
    for (const std::size_t i : bucket) {
      inputs.push_back(gradients[i]);
      outputs.push_back(graph_.value(trained[i]).name + (parts() ? ".gradient_part" : ".gradient_mean"));
    }
    Attributes attrs = parts() ? rankAttributes() : Attributes{};
    attrs.set("average", std::int64_t{1});
    SS_ASSIGN(const auto means, emit(bucketName("gradients", bucket, trained), kInternalDomain,
                                     parts() ? "ReduceScatter" : "AllReduce", std::move(inputs), std::move(outputs),
                                     gradientParts() ? Phase::kBackward : Phase::kOptimizer, {}, std::move(attrs)));
    for (std::size_t k = 0; k < bucket.size(); ++k) gradients[bucket[k]] = means[k];
    std::size_t first = std::numeric_limits<std::size_t>::max();
    for (const std::size_t i : bucket) first = std::min(first, ranks_.uses[i].first);
    sent_.push_back({graph_.value(means[0]).producer, first, false});
  }
  return {};
}

std::string OptimizerNodes::bucketName(const char* what, const GradientBucket& bucket,
                                       const std::vector<ValueId>& trained) const {
  return fmt::format("{} of {} parameters from {}", what, bucket.size(), graph_.value(trained[bucket[0]]).name);
}

Result<std::vector<ValueId>> OptimizerNodes::gather(const std::vector<ValueId>& trained, const std::vector<ValueId>& like,
                                                    const std::vector<ValueId>& parts, const char* what,
                                                    const char* suffix) {
  std::vector<ValueId> whole(parts.size());
  for (const GradientBucket& bucket : gradientBuckets(graph_, parts, ready_, o_.rankBucket / ranks_.size)) {
    std::vector<ValueId> inputs;
    std::vector<std::string> outputs;
    Attributes attrs = rankAttributes();
    std::vector<std::int64_t> extents;
    for (const std::size_t i : bucket) {
      outputs.push_back(graph_.value(trained[i]).name + suffix);
      if (like[i]) {
        inputs.push_back(like[i]);
        continue;
      }
      const Dims dims = wholeDims(trained[i]);
      extents.push_back(static_cast<std::int64_t>(dims.size()));
      extents.insert(extents.end(), dims.begin(), dims.end());
    }
    if (inputs.empty()) attrs.set("extents", extents);
    for (const std::size_t i : bucket) inputs.push_back(parts[i]);
    SS_ASSIGN(const auto made, emit(bucketName(what, bucket, trained) + ", whole", kInternalDomain, "AllGather",
                                    std::move(inputs), std::move(outputs), Phase::kOptimizer, {}, std::move(attrs)));
    for (std::size_t k = 0; k < bucket.size(); ++k) whole[bucket[k]] = made[k];
  }
  return whole;
}

Status OptimizerNodes::joinParameters(const std::vector<ValueId>& trained) {
  std::vector<ValueId> before(trained.size()), next(trained.size());
  for (std::size_t i = 0; i < trained.size(); ++i)
    if (const auto made = nextParts_.find(trained[i]); made != nextParts_.end()) {
      before[i] = writtenByForward(trained[i]);
      next[i] = made->second;
    }
  SS_ASSIGN(const auto whole, gather(trained, before, next, "next values", ".next"));
  for (std::size_t i = 0; i < trained.size(); ++i)
    if (whole[i]) {
      onlyWhereFinite(whole[i]);
      setNext(trained[i], whole[i]);
    }
  return {};
}

Result<ValueId> OptimizerNodes::partOf(ValueId parameter, ValueId contents) {
  const std::string name = graph_.value(parameter).name;
  SS_ASSIGN(const auto made, emit(name + "/part", kInternalDomain, "RankPart", {contents}, {name + ".part"},
                                  Phase::kOptimizer, parameter, rankAttributes()));
  return made[0];
}

}  // namespace stepscope
