#include "engine/build/optimizer.h"

#include <fmt/format.h>

#include <map>
#include <regex>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

class Emitter {
 public:
  Emitter(Graph& graph, Inference& inference, const TrainOptions& options)
      : graph_(graph), inference_(inference), o_(options) {}

  Result<OptimizerReport> run(const std::vector<ValueId>& trained, std::vector<ValueId> gradients) {
    if (o_.accumulate > 1) report_.firstMicro = input("stepscope.first_micro", DType::kBool);
    report_.update = input("stepscope.update", DType::kI64);
    for (std::size_t i = 0; i < trained.size(); ++i)
      if (gradients[i] && o_.accumulate > 1) {
        SS_ASSIGN(gradients[i], accumulate(trained[i], gradients[i]));
      }
    report_.accumulated = gradients;
    ValueId scale;
    if (o_.clipGradNorm > 0) {
      SS_ASSIGN(scale, clip(trained, gradients));
    }
    for (std::size_t i = 0; i < trained.size(); ++i)
      if (gradients[i]) SS_TRY(update(trained[i], gradients[i], scale));
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
        node.provenance.modulePath = parameter.substr(0, dot);
    }
    SS_TRY(inference_.inferNode(id));
    return graph_.node(id).outputs;
  }

  ValueId state(ValueId parameter, const char* suffix) {
    const Value& value = graph_.value(parameter);
    return graph_.addValue(value.name + suffix, value.type, ValueRole::kState);
  }

  // sum' = first micro step of the round ? gradient : sum + gradient. The old sum is never cleared: it is ignored ("lazy
  // reset"). Where the norm is asked for, the same pass adds up its squares.
  Result<ValueId> accumulate(ValueId parameter, ValueId gradient) {
    const std::string name = graph_.value(parameter).name;
    const ValueId sum = state(parameter, ".accumulated");
    std::vector<std::string> outputs{name + ".accumulated_next"};
    if (o_.clipGradNorm > 0) outputs.push_back(name + ".square_sum");
    SS_ASSIGN(const auto next, emit(name + "/accumulate", kInternalDomain, "Accumulate", {sum, gradient, report_.firstMicro},
                                    outputs, Phase::kBackward, parameter));
    graph_.stateUpdates.push_back({sum, next[0]});
    if (next.size() > 1) squares_.push_back(next[1]);
    return next[0];
  }

  // min(1, max_norm / (norm + 1e-6))
  Result<ValueId> clip(const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients) {
    std::vector<ValueId> squares = squares_;
    DType dtype = DType::kF32;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const ValueId gradient = gradients[i];
      if (!gradient) continue;
      dtype = graph_.value(gradient).type.dtype;
      if (!squares_.empty()) continue;
      SS_ASSIGN(const auto square,
                emit(graph_.value(gradient).name + "/square_sum", kInternalDomain, "SquareSum", {gradient},
                     {graph_.value(gradient).name + ".square_sum"}, Phase::kOptimizer, trained[i]));
      squares.push_back(square[0]);
    }
    if (squares.empty()) return ValueId{};
    const auto constant = [&](const char* name, double value) {
      return graph_.addConstant(name, Tensor::scalar(dtype, value));
    };
    SS_ASSIGN(const auto total, emit("clip/total", "", "Sum", squares, {"stepscope.square_sum"}, Phase::kOptimizer, {}));
    SS_ASSIGN(const auto norm,
              emit("clip/norm", "", "Sqrt", {total[0]}, {"stepscope.gradient_norm"}, Phase::kOptimizer, {}));
    SS_ASSIGN(const auto shifted, emit("clip/shifted", "", "Add", {norm[0], constant("stepscope.clip_eps", 1e-6)},
                                       {"stepscope.norm_eps"}, Phase::kOptimizer, {}));
    SS_ASSIGN(const auto ratio, emit("clip/ratio", "", "Div", {constant("stepscope.max_norm", o_.clipGradNorm), shifted[0]},
                                     {"stepscope.clip_ratio"}, Phase::kOptimizer, {}));
    SS_ASSIGN(const auto scale, emit("clip/scale", "", "Min", {ratio[0], constant("stepscope.one", 1)},
                                     {"stepscope.clip_scale"}, Phase::kOptimizer, {}));
    report_.gradientNorm = norm[0];
    return scale[0];
  }

  Result<std::pair<ValueId, double>> groupOf(ValueId parameter) {
    double lr = o_.lr, decay = o_.weightDecay.value_or(o_.optimizer == "adamw" ? 0.01 : 0.0);
    std::string suffix;
    for (std::size_t g = 0; g < o_.groups.size(); ++g) {
      bool matches = false;
      try {
        matches = std::regex_search(graph_.value(parameter).name, std::regex(o_.groups[g].regex));
      } catch (const std::regex_error& error) {
        return invalid(fmt::format("option 'group': regular expression '{}' is malformed: {}; expected ECMAScript syntax",
                                   o_.groups[g].regex, error.what()));
      }
      if (!matches) continue;
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
      report_.learningRates.push_back({rate, lr});
    }
    return std::pair{rate, decay};
  }

  Status update(ValueId parameter, ValueId gradient, ValueId scale) {
    SS_ASSIGN(const auto group, groupOf(parameter));
    const auto& [rate, decay] = group;
    const std::string name = graph_.value(parameter).name;
    if (o_.optimizer == "sgd") {
      const bool momentum = o_.momentum != 0;
      const ValueId buffer = momentum ? state(parameter, ".momentum") : ValueId{};
      std::vector<std::string> outputs{name + ".next"};
      if (momentum) outputs.push_back(name + ".momentum_next");
      SS_ASSIGN(const auto next,
                emit(name + "/sgd", kInternalDomain, "SgdUpdate", {parameter, gradient, buffer, rate, scale, report_.update},
                     outputs, Phase::kOptimizer, parameter,
                     {{"momentum", static_cast<float>(o_.momentum)},
                      {"nesterov", std::int64_t{o_.nesterov}},
                      {"weight_decay", static_cast<float>(decay)}}));
      graph_.stateUpdates.push_back({parameter, next[0]});
      if (momentum) graph_.stateUpdates.push_back({buffer, next[1]});
      return {};
    }
    const ValueId m = state(parameter, ".exp_avg"), v = state(parameter, ".exp_avg_sq");
    const bool lamb = o_.optimizer == "lamb";
    const double eps = lamb && !o_.origins.contains("eps") ? 1e-6 : o_.eps;
    SS_ASSIGN(const auto next,
              emit(name + "/" + o_.optimizer, kInternalDomain, lamb ? "LambUpdate" : "AdamUpdate",
                   {parameter, gradient, m, v, rate, report_.update, scale},
                   {name + ".next", name + ".exp_avg_next", name + ".exp_avg_sq_next"}, Phase::kOptimizer, parameter,
                   {{"beta1", static_cast<float>(o_.beta1)},
                    {"beta2", static_cast<float>(o_.beta2)},
                    {"eps", static_cast<float>(eps)},
                    {"weight_decay", static_cast<float>(decay)},
                    {"decoupled", std::int64_t{o_.optimizer == "adamw"}}}));
    graph_.stateUpdates.push_back({parameter, next[0]});
    graph_.stateUpdates.push_back({m, next[1]});
    graph_.stateUpdates.push_back({v, next[2]});
    return {};
  }

  Graph& graph_;
  Inference& inference_;
  const TrainOptions& o_;
  OptimizerReport report_;
  std::vector<ValueId> squares_;  // of the accumulated gradients
  std::map<std::string, ValueId> rates_;
};

}  // namespace

Result<OptimizerReport> addOptimizer(Graph& graph, Inference& inference, const TrainOptions& options,
                                     const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients) {
  auto report = Emitter(graph, inference, options).run(trained, gradients);
  graph.recordBirths();
  return report;
}

}  // namespace stepscope
