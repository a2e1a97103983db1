#include "engine/build/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "engine/build/gradient_buckets.h"
#include "engine/build/master_weights.h"
#include "engine/build/name_pattern.h"
#include "engine/build/parameter_parts.h"
#include "engine/ops/op_def.h"
#include "kernels/rank_part.h"

namespace stepscope {
namespace {

class Emitter {
 public:
  Emitter(Graph& graph, Inference& inference, const TrainOptions& options, ValueId lossScale, const OptimizerGraph* updates,
          const OptimizerRanks& ranks)
      : graph_(graph), inference_(inference), o_(options), updates_(updates), ranks_(ranks) {
    report_.lossScale = lossScale;
  }

  Result<OptimizerReport> run(const std::vector<ValueId>& trained, std::vector<ValueId> gradients) {
    if (parts()) SS_TRY(checkParts(trained, gradients));
    ready_ = readyOrder(ranks_.uses);
    SharedOut sharedOut;
    if (parameterParts()) {
      SS_ASSIGN(sharedOut, shareOut(trained, gradients));
    }
    for (const ParameterGroup& group : o_.groups) {
      SS_ASSIGN(NamePattern pattern, NamePattern::compile("group", group.regex));
      patterns_.push_back(std::move(pattern));
    }
    if (o_.accumulate > 1) report_.firstMicro = input("stepscope.first_micro", DType::kBool);
    report_.update = input("stepscope.update", DType::kI64);
    for (std::size_t i = 0; i < trained.size(); ++i)
      if (gradients[i] && roundsStochastically(o_, typeOf(trained[i]))) {
        SS_ASSIGN(gradients[i], cast(trained[i], gradients[i], "gradient", DType::kF32,
                                     gradientParts() ? Phase::kBackward : Phase::kOptimizer));
      }
    if (gradientParts()) SS_TRY(exchange(trained, gradients));
    for (std::size_t i = 0; i < trained.size(); ++i)
      if (gradients[i] && o_.accumulate > 1) {
        SS_ASSIGN(gradients[i], accumulate(trained[i], gradients[i]));
      }
    report_.accumulated = gradients;
    if (!gradientParts()) SS_TRY(exchange(trained, gradients));
    report_.averaged = gradients;
    if (parts() && ranks_.keepGradients) {
      const std::vector<ValueId> like = parameterParts() ? std::vector<ValueId>(trained.size()) : trained;
      SS_ASSIGN(report_.averaged, gather(trained, like, gradients, "gradients", ".gradient_mean"));
    }
    ValueId scale;
    if (needsNorm()) {
      SS_ASSIGN(scale, factor(trained, gradients));
    }
    // In front of all updates: a kernel that may fail behind one that writes state makes steps keep copies of that state.
    for (std::size_t i = 0; parts() && i < trained.size(); ++i)
      if (gradients[i] && !parameterParts()) {
        SS_ASSIGN(weightParts_[trained[i]], partOf(trained[i], writtenByForward(trained[i])));
      }
    for (std::size_t i = 0; i < trained.size(); ++i)
      if (gradients[i]) SS_TRY(update(trained[i], gradients[i], scale));
    if (parts() && !parameterParts()) SS_TRY(joinParameters(trained));
    if (parameterParts() || !ranks_.collectives.empty()) {
      const auto add = [](std::vector<OrderedCollective>& to, const std::vector<OrderedCollective>& more) {
        to.insert(to.end(), more.begin(), more.end());
      };
      add(sharedOut.forward, ranks_.collectives.forward);
      add(sharedOut.backward, ranks_.collectives.backward);
      if (gradientParts()) add(sharedOut.backward, sent_);
      SS_TRY(orderCollectives(graph_, std::move(sharedOut.forward), std::move(sharedOut.backward),
                              parameterParts() && o_.rankPrefetch));
    }
    return std::move(report_);
  }

 private:
  ValueId input(const std::string& name, DType dtype) {
    const ValueId id = graph_.addValue(name, {ValueKind::kTensor, dtype, Shape{}}, ValueRole::kInput);
    graph_.mutableInputs().push_back(id);
    return id;
  }

  Result<std::vector<ValueId>> emit(const std::string& name, std::string_view domain, std::string_view op,
                                    std::vector<ValueId> inputs, std::vector<std::string> outputs, Phase phase,
                                    ValueId owner, Attributes attrs = {}) {
    const NodeId id =
        graph_.addNode(name, std::string(domain), std::string(op), std::move(inputs), std::move(outputs), std::move(attrs));
    Node& node = graph_.mutableNode(id);
    node.phase = phase;
    node.sinceVersion = kInternalOpset;
    node.origin = {.kind = Origin::Kind::kRoot, .detail = InternedText(name)};
    if (owner) {
      const std::string part = name.substr(name.rfind('/') + 1);
      node.origin = {.kind = Origin::Kind::kUpdate,
                     .value = owner,
                     .detail = InternedText(part == o_.optimizer ? std::string() : part)};
      // The module of a parameter is its name without the last part: "h.0.attn.weight" belongs to "h.0.attn".
      const std::string& parameter = graph_.value(owner).name;
      if (const auto dot = parameter.rfind('.'); dot != std::string::npos)
        node.provenance.modulePath = InternedText(parameter.substr(0, dot));
    }
    SS_TRY(inference_.inferNode(id));
    return graph_.node(id).outputs;
  }

  // `part`: of this rank alone.
  ValueId state(ValueId parameter, const char* suffix, bool part) {
    const std::string parameterName = graph_.value(parameter).name;
    ValueType type = graph_.value(parameter).type;
    if (roundsStochastically(o_, type.dtype)) type.dtype = DType::kF32;
    if (part) {
      const Dims whole = wholeDims(parameter);
      type.shape = Shape{Dim(partLength(elementCount(whole), ranks_.size))};
      report_.parts[parameterName + suffix] = whole;
    }
    return graph_.addValue(parameterName + suffix, type, ValueRole::kState);
  }

  DType typeOf(ValueId value) const { return graph_.value(value).type.dtype; }

  // "<parameter>/<part>": the value in another type, for the update of the parameter.
  Result<ValueId> cast(ValueId parameter, ValueId value, const std::string& part, DType type,
                       Phase phase = Phase::kOptimizer) {
    const std::string name = graph_.value(parameter).name;
    SS_ASSIGN(const auto made, emit(name + "/" + part, "", "Cast", {value}, {name + "." + part}, phase, parameter,
                                    {{"to", static_cast<std::int64_t>(type)}}));
    return made[0];
  }

  bool parts() const { return ranks_.size > 1 && o_.rankShard != "off"; }
  bool parameterParts() const { return parts() && o_.rankShard == "parameters"; }
  bool gradientParts() const { return parts() && o_.rankShard != "optimizer"; }
  std::string nextName(const std::string& parameter) const {
    return parameter + (parts() && !parameterParts() ? ".next_part" : ".next");
  }
  // The extents of a parameter, also where it is a part.
  Dims wholeDims(ValueId parameter) const {
    const auto shared = report_.parts.find(graph_.value(parameter).name);
    return shared == report_.parts.end() ? *knownDims(*graph_.value(parameter).type.shape) : shared->second;
  }
  Attributes rankAttributes() const { return {{"rank", std::int64_t{ranks_.rank}}, {"ranks", std::int64_t{ranks_.size}}}; }

  Status checkParts(const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients) const {
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

  // Parameters become parts.
  Result<SharedOut> shareOut(const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients) {
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

  // The mean over the ranks, or this rank's part of it, takes the place of the gradients.
  Status exchange(const std::vector<ValueId>& trained, std::vector<ValueId>& gradients) {
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

  std::string bucketName(const char* what, const GradientBucket& bucket, const std::vector<ValueId>& trained) const {
    return fmt::format("{} of {} parameters from {}", what, bucket.size(), graph_.value(trained[bucket[0]]).name);
  }

  // The parts of all ranks with the extents of `like`, or of the parameter where that is invalid; nothing where a part is.
  Result<std::vector<ValueId>> gather(const std::vector<ValueId>& trained, const std::vector<ValueId>& like,
                                      const std::vector<ValueId>& parts, const char* what, const char* suffix) {
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

  // Behind all updates: passes may join those without changing in which order the collectives come.
  Status joinParameters(const std::vector<ValueId>& trained) {
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

  // This rank's part of the parameter.
  Result<ValueId> partOf(ValueId parameter, ValueId contents) {
    const std::string name = graph_.value(parameter).name;
    SS_ASSIGN(const auto made, emit(name + "/part", kInternalDomain, "RankPart", {contents}, {name + ".part"},
                                    Phase::kOptimizer, parameter, rankAttributes()));
    return made[0];
  }

  // sum' = first micro step of the round ? gradient : sum + gradient. The old sum is never cleared: it is ignored ("lazy
  // reset"). Where the norm is asked for, the same pass adds up its squares.
  Result<ValueId> accumulate(ValueId parameter, ValueId gradient) {
    const std::string name = graph_.value(parameter).name;
    const ValueId sum = state(parameter, ".accumulated", gradientParts());
    std::vector<std::string> outputs{name + ".accumulated_next"};
    if (needsNorm() && ranks_.size == 1) outputs.push_back(name + ".square_sum");
    SS_ASSIGN(const auto next, emit(name + "/accumulate", kInternalDomain, "Accumulate", {sum, gradient, report_.firstMicro},
                                    outputs, Phase::kBackward, parameter));
    graph_.stateUpdates.push_back({sum, next[0]});
    if (next.size() > 1) squares_.push_back(next[1]);
    return next[0];
  }

  bool needsNorm() const { return o_.clipGradNorm > 0 || report_.lossScale; }

  Result<ValueId> scalar(const std::string& name, std::string_view op, std::vector<ValueId> inputs, std::string output,
                         Attributes attrs = {}) {
    SS_ASSIGN(const auto made,
              emit(name, "", op, std::move(inputs), {std::move(output)}, Phase::kOptimizer, {}, std::move(attrs)));
    return made[0];
  }

  // What the update multiplies its gradient by: 1 / loss scale, and min(1, max_norm / (norm + 1e-6)) where it is clipped.
  Result<ValueId> factor(const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients) {
    std::vector<ValueId> squares = squares_;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const ValueId gradient = gradients[i];
      if (!gradient || !squares_.empty()) continue;
      SS_ASSIGN(const auto square,
                emit(graph_.value(gradient).name + "/square_sum", kInternalDomain, "SquareSum", {gradient},
                     {graph_.value(gradient).name + ".square_sum"}, Phase::kOptimizer, trained[i]));
      squares.push_back(square[0]);
    }
    if (squares.empty()) return ValueId{};
    // One type for all: float64 where a gradient is.
    const bool wide = std::ranges::any_of(squares, [&](ValueId square) { return typeOf(square) == DType::kF64; });
    const DType dtype = wide ? DType::kF64 : DType::kF32;
    for (ValueId& square : squares)
      if (typeOf(square) != dtype) {
        SS_ASSIGN(square, scalar(graph_.value(square).name + "/cast", "Cast", {square}, graph_.value(square).name + "_cast",
                                 {{"to", static_cast<std::int64_t>(dtype)}}));
      }
    const auto constant = [&](const char* name, double value) {
      return graph_.addConstant(name, Tensor::scalar(dtype, value));
    };
    SS_ASSIGN(const auto total, emit("clip/total", "", "Sum", squares, {"stepscope.square_sum"}, Phase::kOptimizer, {}));
    ValueId sum = total[0];
    if (parts()) {
      SS_ASSIGN(const auto all, emit("squares of all parts", kInternalDomain, "AllReduce", {sum},
                                     {"stepscope.square_sum_of_ranks"}, Phase::kOptimizer, {}));
      sum = all[0];
    }
    ValueId unscale;
    if (report_.lossScale) {
      SS_ASSIGN(unscale, judgeScaled(sum));
    }
    SS_ASSIGN(ValueId norm,
              scalar("clip/norm", "Sqrt", {sum}, unscale ? "stepscope.scaled_norm" : "stepscope.gradient_norm"));
    if (unscale) {
      SS_ASSIGN(norm, scalar("loss_scale/norm", "Mul", {norm, unscale}, "stepscope.gradient_norm"));
    }
    report_.gradientNorm = norm;
    if (o_.clipGradNorm <= 0) return unscale;
    SS_ASSIGN(const auto shifted, emit("clip/shifted", "", "Add", {norm, constant("stepscope.clip_eps", 1e-6)},
                                       {"stepscope.norm_eps"}, Phase::kOptimizer, {}));
    SS_ASSIGN(const auto ratio, emit("clip/ratio", "", "Div", {constant("stepscope.max_norm", o_.clipGradNorm), shifted[0]},
                                     {"stepscope.clip_ratio"}, Phase::kOptimizer, {}));
    SS_ASSIGN(const auto scale, emit("clip/scale", "", "Min", {ratio[0], constant("stepscope.one", 1)},
                                     {"stepscope.clip_scale"}, Phase::kOptimizer, {}));
    if (!unscale) return scale[0];
    return scalar("loss_scale/clip", "Mul", {scale[0], unscale}, "stepscope.update_scale");
  }

  // The condition of the updates, from the sum of all squares; and 1 / loss scale in its type.
  Result<ValueId> judgeScaled(ValueId squares) {
    SS_ASSIGN(const ValueId nan, scalar("loss_scale/nan", "IsNaN", {squares}, "stepscope.gradients_nan"));
    SS_ASSIGN(const ValueId inf, scalar("loss_scale/inf", "IsInf", {squares}, "stepscope.gradients_inf"));
    SS_ASSIGN(const ValueId bad, scalar("loss_scale/bad", "Or", {nan, inf}, "stepscope.gradients_bad"));
    SS_ASSIGN(report_.finite, scalar("loss_scale/finite", "Not", {bad}, "stepscope.gradients_finite"));
    report_.lossUnscale = input("stepscope.loss_unscale", DType::kF32);
    const DType dtype = graph_.value(squares).type.dtype;
    if (dtype == DType::kF32) return report_.lossUnscale;
    return scalar("loss_scale/cast", "Cast", {report_.lossUnscale}, "stepscope.unscale",
                  {{"to", static_cast<std::int64_t>(dtype)}});
  }

  Result<std::pair<ValueId, double>> groupOf(ValueId parameter) {
    double lr = o_.lr, decay = o_.weightDecay.value_or(o_.optimizer == "adamw" ? 0.01 : 0.0);
    std::string suffix;
    for (std::size_t g = 0; g < o_.groups.size(); ++g) {
      if (!patterns_[g].foundIn(graph_.value(parameter).name)) continue;
      if (o_.groups[g].lr) {
        lr = *o_.groups[g].lr;
        suffix = fmt::format(".{}", g);
      }
      decay = o_.groups[g].weightDecay.value_or(decay);
      break;
    }
    ValueId& rate = rates_[suffix];
    if (!rate) {
      rate = input("stepscope.learning_rate" + suffix, DType::kF32);
      report_.learningRates.push_back({rate, lr, !suffix.empty()});
    }
    return std::pair{rate, decay};
  }

  Status update(ValueId parameter, ValueId gradient, ValueId scale) {
    SS_ASSIGN(const auto group, groupOf(parameter));
    const auto& [rate, decay] = group;
    const std::string name = graph_.value(parameter).name;
    ValueId weight = parts() ? weightParts_.at(parameter) : writtenByForward(parameter);
    if (roundsStochastically(o_, typeOf(parameter))) {
      SS_ASSIGN(weight, cast(parameter, weight, "weight", DType::kF32));
    }
    if (updates_) return updateByGraph(parameter, weight, gradient, scale, rate, decay);
    if (o_.optimizer == "sgd") {
      const bool momentum = o_.momentum != 0;
      const ValueId buffer = momentum ? state(parameter, ".momentum", parts()) : ValueId{};
      std::vector<std::string> outputs{nextName(name)};
      if (momentum) outputs.push_back(name + ".momentum_next");
      SS_ASSIGN(const auto next,
                emit(name + "/sgd", kInternalDomain, "SgdUpdate", {weight, gradient, buffer, rate, scale, report_.update},
                     outputs, Phase::kOptimizer, parameter,
                     {{"momentum", static_cast<float>(o_.momentum)},
                      {"nesterov", std::int64_t{o_.nesterov}},
                      {"weight_decay", static_cast<float>(decay)}}));
      onlyWhereFinite(next[0]);
      SS_TRY(becomes(parameter, next[0]));
      if (momentum) graph_.stateUpdates.push_back({buffer, next[1]});
      return {};
    }
    const ValueId m = state(parameter, ".exp_avg", parts()), v = state(parameter, ".exp_avg_sq", parts());
    const bool lamb = o_.optimizer == "lamb";
    const double eps = lamb && !o_.origins.contains("eps") ? 1e-6 : o_.eps;
    SS_ASSIGN(const auto next,
              emit(name + "/" + o_.optimizer, kInternalDomain, lamb ? "LambUpdate" : "AdamUpdate",
                   {weight, gradient, m, v, rate, report_.update, scale},
                   {nextName(name), name + ".exp_avg_next", name + ".exp_avg_sq_next"}, Phase::kOptimizer, parameter,
                   {{"beta1", static_cast<float>(o_.beta1)},
                    {"beta2", static_cast<float>(o_.beta2)},
                    {"eps", static_cast<float>(eps)},
                    {"weight_decay", static_cast<float>(decay)},
                    {"decoupled", std::int64_t{o_.optimizer == "adamw"}}}));
    onlyWhereFinite(next[0]);
    SS_TRY(becomes(parameter, next[0]));
    graph_.stateUpdates.push_back({m, next[1]});
    graph_.stateUpdates.push_back({v, next[2]});
    return {};
  }

  Status updateByGraph(ValueId parameter, ValueId weight, ValueId gradient, ValueId scale, ValueId rate, double decay) {
    const std::string name = graph_.value(parameter).name;
    if (typeOf(gradient) != typeOf(weight)) {
      SS_ASSIGN(gradient, cast(parameter, gradient, "gradient_as_weight", typeOf(weight)));
    }
    if (scale && typeOf(scale) != typeOf(gradient)) {
      SS_ASSIGN(scale, cast(parameter, scale, "scale", typeOf(gradient)));
    }
    if (scale) {
      SS_ASSIGN(const auto scaled,
                emit(name + "/scaled", "", "Mul", {gradient, scale}, {name + ".scaled"}, Phase::kOptimizer, parameter));
      gradient = scaled[0];
    }
    SS_ASSIGN(const auto made,
              updates_->add(graph_, inference_, {name, weight, gradient, rate, report_.update, decay, parameter}));
    onlyWhereFinite(made.parameter);
    SS_TRY(becomes(parameter, made.parameter));
    for (const StateUpdate& state : made.states) {
      onlyWhereFinite(state.next);
      graph_.stateUpdates.push_back(state);
    }
    return {};
  }

  // The parameter of the next step, in the type in which it is kept.
  Status becomes(ValueId parameter, ValueId next) {
    if (typeOf(next) != typeOf(parameter)) {
      const std::string name = graph_.value(parameter).name;
      SS_ASSIGN(const auto rounded,
                emit(name + "/round", kInternalDomain, "StochasticRound", {next}, {name + ".rounded"}, Phase::kOptimizer,
                     parameter,
                     {{"to", static_cast<std::int64_t>(typeOf(parameter))}, {"stream", std::int64_t{parameter.index}}}));
      next = rounded[0];
      onlyWhereFinite(next);
    }
    if (parts() && !parameterParts())
      nextParts_[parameter] = next;
    else
      setNext(parameter, next);
    return {};
  }

  void setNext(ValueId parameter, ValueId next) {
    const auto earlier = writer(parameter);
    if (earlier != graph_.stateUpdates.end())
      earlier->next = next;
    else
      graph_.stateUpdates.push_back({parameter, next});
  }

  std::vector<StateUpdate>::iterator writer(ValueId parameter) {
    return std::find_if(graph_.stateUpdates.begin(), graph_.stateUpdates.end(),
                        [&](const StateUpdate& update) { return update.state == parameter; });
  }

  // What the update starts from: the parameter, or what the forward pass makes of it (Embedding with max_norm).
  ValueId writtenByForward(ValueId parameter) {
    const auto earlier = writer(parameter);
    return earlier == graph_.stateUpdates.end() ? parameter : earlier->next;
  }

  void onlyWhereFinite(ValueId next) {
    if (report_.finite) graph_.mutableNode(graph_.value(next).producer).predicates = {{report_.finite, true}};
  }

  Graph& graph_;
  Inference& inference_;
  const TrainOptions& o_;
  const OptimizerGraph* updates_;
  const OptimizerRanks& ranks_;
  OptimizerReport report_;
  std::vector<std::size_t> ready_;          // in which order gradients come
  std::vector<OrderedCollective> sent_;     // what sends them
  std::map<ValueId, ValueId> weightParts_;  // by parameter: this rank's part of it
  std::map<ValueId, ValueId> nextParts_;    // by parameter: the next version of this rank's part
  std::vector<ValueId> squares_;            // of the accumulated gradients
  std::map<std::string, ValueId> rates_;
  std::vector<NamePattern> patterns_;  // of the groups
};

}  // namespace

Result<OptimizerReport> addOptimizer(Graph& graph, Inference& inference, const TrainOptions& options,
                                     const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients,
                                     ValueId lossScale, const OptimizerGraph* updates, const OptimizerRanks& ranks) {
  auto report = Emitter(graph, inference, options, lossScale, updates, ranks).run(trained, gradients);
  graph.recordBirths();
  return report;
}

}  // namespace stepscope
