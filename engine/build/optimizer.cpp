#include "engine/build/optimizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/build/master_weights.h"
#include "engine/build/optimizer_nodes.h"
#include "engine/ops/op_def.h"
#include "kernels/rank_part.h"

namespace stepscope {

Result<OptimizerReport> OptimizerNodes::run(const std::vector<ValueId>& trained, std::vector<ValueId> gradients) {
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
  report_.updates.push_back({input("stepscope.update", DType::kI64), {}});
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
  std::set<std::string> states;
  for (const UpdateInput& update : report_.updates) states.insert(update.states.begin(), update.states.end());
  report_.states = std::make_shared<const std::set<std::string>>(std::move(states));
  return std::move(report_);
}

ValueId OptimizerNodes::input(const std::string& name, DType dtype) {
  const ValueId id = graph_.addValue(name, {ValueKind::kTensor, dtype, Shape{}}, ValueRole::kInput);
  graph_.mutableInputs().push_back(id);
  return id;
}

Result<std::vector<ValueId>> OptimizerNodes::emit(const std::string& name, std::string_view domain, std::string_view op,
                                                  std::vector<ValueId> inputs, std::vector<std::string> outputs, Phase phase,
                                                  ValueId owner, Attributes attrs) {
  const NodeId id =
      graph_.addNode(name, std::string(domain), std::string(op), std::move(inputs), std::move(outputs), std::move(attrs));
  Node& node = graph_.mutableNode(id);
  node.phase = phase;
  node.sinceVersion = kInternalOpset;
  node.origin = {.kind = Origin::Kind::kRoot, .detail = InternedText(name)};
  if (owner) {
    const std::string part = name.substr(name.rfind('/') + 1);
    node.origin = {
        .kind = Origin::Kind::kUpdate, .value = owner, .detail = InternedText(part == o_.optimizer ? std::string() : part)};
    // The module of a parameter is its name without the last part: "h.0.attn.weight" belongs to "h.0.attn".
    const std::string& parameter = graph_.value(owner).name;
    if (const auto dot = parameter.rfind('.'); dot != std::string::npos)
      node.provenance.modulePath = InternedText(parameter.substr(0, dot));
  }
  SS_TRY(inference_.inferNode(id));
  return graph_.node(id).outputs;
}

ValueId OptimizerNodes::state(ValueId parameter, const char* suffix, bool part) {
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

Result<ValueId> OptimizerNodes::cast(ValueId parameter, ValueId value, const std::string& part, DType type, Phase phase) {
  const std::string name = graph_.value(parameter).name;
  SS_ASSIGN(const auto made, emit(name + "/" + part, "", "Cast", {value}, {name + "." + part}, phase, parameter,
                                  {{"to", static_cast<std::int64_t>(type)}}));
  return made[0];
}

Result<std::pair<ValueId, double>> OptimizerNodes::groupOf(ValueId parameter) {
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

std::vector<std::string> OptimizerNodes::stateNames() const {
  if (updates_) return updates_->stateNames();
  if (o_.optimizer == "sgd") return o_.momentum != 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
  return {"exp_avg", "exp_avg_sq"};
}

ValueId OptimizerNodes::countOf(ValueId parameter) {
  std::vector<std::string> states = stateNames();
  std::int64_t had = from_.updates;
  for (std::string& state : states) {
    state = graph_.value(parameter).name + "." + state;
    had = std::min(had, from_.updatesOf(state));
  }
  const auto [at, added] = counts_.try_emplace(had, counts_.size());
  if (at->second == report_.updates.size())
    report_.updates.push_back({input(fmt::format("stepscope.update.{}", at->second), DType::kI64), {}});
  UpdateInput& count = report_.updates[at->second];
  count.states.insert(count.states.end(), states.begin(), states.end());
  return count.input;
}

Status OptimizerNodes::update(ValueId parameter, ValueId gradient, ValueId scale) {
  SS_ASSIGN(const auto group, groupOf(parameter));
  const auto& [rate, decay] = group;
  const ValueId count = countOf(parameter);
  const std::string name = graph_.value(parameter).name;
  ValueId weight = parts() ? weightParts_.at(parameter) : writtenByForward(parameter);
  if (roundsStochastically(o_, typeOf(parameter))) {
    SS_ASSIGN(weight, cast(parameter, weight, "weight", DType::kF32));
  }
  if (updates_) return updateByGraph(parameter, weight, gradient, scale, {rate, count}, decay);
  if (o_.optimizer == "sgd") {
    const bool momentum = o_.momentum != 0;
    const ValueId buffer = momentum ? state(parameter, ".momentum", parts()) : ValueId{};
    std::vector<std::string> outputs{nextName(name)};
    if (momentum) outputs.push_back(name + ".momentum_next");
    SS_ASSIGN(const auto next, emit(name + "/sgd", kInternalDomain, "SgdUpdate",
                                    {weight, gradient, buffer, rate, scale, count}, outputs, Phase::kOptimizer, parameter,
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
                 {weight, gradient, m, v, rate, count, scale},
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

Status OptimizerNodes::updateByGraph(ValueId parameter, ValueId weight, ValueId gradient, ValueId scale,
                                     std::pair<ValueId, ValueId> rateAndCount, double decay) {
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
            updates_->add(graph_, inference_,
                          {name, weight, gradient, rateAndCount.first, rateAndCount.second, decay, parameter}));
  onlyWhereFinite(made.parameter);
  SS_TRY(becomes(parameter, made.parameter));
  for (const StateUpdate& state : made.states) {
    onlyWhereFinite(state.next);
    graph_.stateUpdates.push_back(state);
  }
  return {};
}

Status OptimizerNodes::becomes(ValueId parameter, ValueId next) {
  if (typeOf(next) != typeOf(parameter)) {
    const std::string name = graph_.value(parameter).name;
    SS_ASSIGN(
        const auto rounded,
        emit(name + "/round", kInternalDomain, "StochasticRound", {next}, {name + ".rounded"}, Phase::kOptimizer, parameter,
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

void OptimizerNodes::setNext(ValueId parameter, ValueId next) {
  const auto earlier = writer(parameter);
  if (earlier != graph_.stateUpdates.end())
    earlier->next = next;
  else
    graph_.stateUpdates.push_back({parameter, next});
}

std::vector<StateUpdate>::iterator OptimizerNodes::writer(ValueId parameter) {
  return std::find_if(graph_.stateUpdates.begin(), graph_.stateUpdates.end(),
                      [&](const StateUpdate& update) { return update.state == parameter; });
}

ValueId OptimizerNodes::writtenByForward(ValueId parameter) {
  const auto earlier = writer(parameter);
  return earlier == graph_.stateUpdates.end() ? parameter : earlier->next;
}

void OptimizerNodes::onlyWhereFinite(ValueId next) {
  if (report_.finite) graph_.mutableNode(graph_.value(next).producer).predicates = {{report_.finite, true}};
}

Result<OptimizerReport> addOptimizer(Graph& graph, Inference& inference, const TrainOptions& options,
                                     const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients,
                                     ValueId lossScale, const OptimizerGraph* updates, const OptimizerRanks& ranks,
                                     const StateCounters& from) {
  auto report = OptimizerNodes(graph, inference, options, lossScale, updates, ranks, from).run(trained, gradients);
  graph.recordBirths();
  return report;
}

}  // namespace stepscope
