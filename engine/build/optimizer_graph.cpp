#include "engine/build/optimizer_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/build/splice.h"

namespace stepscope {
namespace {

constexpr std::array<std::string_view, 5> kGiven = {"parameter", "gradient", "learning_rate", "step", "weight_decay"};
constexpr std::string_view kNext = "_next";

bool isGiven(std::string_view name) { return std::ranges::find(kGiven, name) != kGiven.end(); }

bool has(const Graph& graph, const std::vector<ValueId>& values, const std::string& name) {
  return std::ranges::any_of(values, [&](ValueId id) { return graph.value(id).name == name; });
}

// What is wrong with the names, for people; empty: nothing.
std::string wrongNames(const Graph& part) {
  std::vector<std::string> wrong;
  for (const char* needed : {"parameter", "gradient"})
    if (!has(part, part.inputs(), needed)) wrong.push_back(fmt::format("input '{}' is missing", needed));
  if (!has(part, part.outputs(), "parameter_next")) wrong.emplace_back("output 'parameter_next' is missing");
  for (const ValueId id : part.inputs()) {
    const std::string& name = part.value(id).name;
    if (!isGiven(name) && !has(part, part.outputs(), name + std::string(kNext)))
      wrong.push_back(fmt::format("input '{}' is state without an output '{}{}'", name, name, kNext));
  }
  for (const ValueId id : part.outputs()) {
    const std::string& name = part.value(id).name;
    const bool next = name.ends_with(kNext);
    const std::string of = next ? name.substr(0, name.size() - kNext.size()) : "";
    if (!next || (of != "parameter" && (isGiven(of) || !has(part, part.inputs(), of))))
      wrong.push_back(fmt::format("output '{}' is the next contents of nothing", name));
  }
  return fmt::format("{}", fmt::join(wrong, "; "));
}

}  // namespace

Result<OptimizerGraph> OptimizerGraph::open(const std::string& path, std::shared_ptr<const Registry> registry) {
  SS_ASSIGN(auto part, importPart("optimizer graph", path, std::move(registry)));
  if (const std::string wrong = wrongNames(part->graph); !wrong.empty())
    return invalid(
        fmt::format("optimizer graph '{}': {}; expected inputs parameter, gradient, learning_rate, step, weight_decay "
                    "or state X with an output X_next",
                    path, wrong));
  return OptimizerGraph(std::move(part));
}

bool OptimizerGraph::readsWeightDecay() const { return has(part_->graph, part_->graph.inputs(), "weight_decay"); }

std::vector<std::string> OptimizerGraph::stateNames() const {
  std::vector<std::string> names;
  for (const ValueId id : part_->graph.inputs())
    if (const std::string& name = part_->graph.value(id).name; !isGiven(name)) names.push_back(name);
  return names;
}

Result<OptimizerGraph::Update> OptimizerGraph::add(Graph& graph, Inference& inference, const Operands& operands) const {
  Splice request{.prefix = operands.name + "/",
                 .modulePath = {},
                 .phase = Phase::kOptimizer,
                 .constant = true,
                 .joined = {{"parameter", operands.weight},
                            {"gradient", operands.gradient},
                            {"learning_rate", operands.learningRate},
                            {"step", operands.update}}};
  // The module of a parameter is its name without the last part.
  if (const auto dot = operands.name.rfind('.'); dot != std::string::npos) request.modulePath = operands.name.substr(0, dot);
  request.origin = [&](const std::string& name) {
    return Origin{.kind = Origin::Kind::kUpdate, .value = operands.owner, .detail = InternedText(name)};
  };
  std::map<std::string, ValueId> states;  // by name of the input
  request.input = [&](const Value& input, ValueType type) -> Result<ValueId> {
    if (input.name == "weight_decay")
      return graph.addConstant(request.prefix + input.name, Tensor::scalar(DType::kF32, operands.weightDecay));
    if (!type.shape) type.shape = graph.value(operands.weight).type.shape;
    const ValueId id = graph.addValue(operands.name + "." + input.name, std::move(type), ValueRole::kState);
    states.emplace(input.name, id);
    return id;
  };
  SS_ASSIGN(const auto outputs, splice(graph, inference, *part_, request));
  const auto next = [&](const std::string& input, ValueId replaced) -> Result<ValueId> {
    const ValueId value = outputs.at(input + std::string(kNext));
    const ValueType &found = graph.value(value).type, &expected = graph.value(replaced).type;
    if (graph.value(value).role != ValueRole::kNodeOutput || !(found == expected))
      return invalid(
          fmt::format("optimizer graph '{}': output '{}{}' for parameter '{}' is {}; expected {} that a node computes",
                      part_->path.filename().string(), input, kNext, operands.name, found.text(), expected.text()));
    return value;
  };
  Update update;
  SS_ASSIGN(update.parameter, next("parameter", operands.weight));
  for (const auto& [name, state] : states) {
    SS_ASSIGN(const ValueId value, next(name, state));
    update.states.push_back({state, value});
  }
  return update;
}

Result<std::optional<OptimizerGraph>> optimizerGraphOf(const TrainOptions& options, std::shared_ptr<const Registry> registry,
                                                       BuildLog& log) {
  if (options.optimizerGraph.empty()) return std::nullopt;
  SS_ASSIGN(OptimizerGraph graph, OptimizerGraph::open(options.optimizerGraph, std::move(registry)));
  for (const std::string name : {"optimizer", "momentum", "nesterov", "betas", "eps", "weight-decay"})
    if (const auto set = options.origins.find(name);
        set != options.origins.end() && !(name == "weight-decay" && graph.readsWeightDecay()))
      log.warn("option_without_effect",
               fmt::format("option '{}': {}; the update is computed by optimizer-graph", name, set->second.value));
  return graph;
}

}  // namespace stepscope
