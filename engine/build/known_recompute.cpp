#include "engine/build/known_recompute.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "engine/build/sha256.h"

namespace stepscope {
namespace {

constexpr std::size_t kMostPlaces = 1 << 20;

// Nodes in their order with what they read and make. Attributes and contents decide nothing about what is kept for the
// gradient and how large it is; where they did, the planner would give another peak than the entry says.
std::string hashOf(const Graph& graph, const PlanOptions* plan) {
  std::string text;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    text += fmt::format("{} {}.{} {}", id.index, node.domain, node.op, phaseName(node.phase));
    for (const ValueId input : node.inputs) text += fmt::format(" {}", input.index);
    for (const ValueId output : node.outputs)
      text += output ? fmt::format(" > {} {}", output.index, graph.value(output).type.text()) : std::string(" > -");
    text += "\n";
  }
  for (const ValueId input : graph.inputs())
    text += fmt::format("{} {}\n", graph.value(input).name, graph.value(input).type.text());
  for (const StateUpdate& update : graph.stateUpdates) text += fmt::format("{} {}\n", update.state.index, update.next.index);
  if (plan) {
    text +=
        fmt::format("{} {} {} {} {}\n", plan->inPlace, plan->reuse, plan->threads, plan->streams, plan->device != nullptr);
    for (const ValueId pinned : plan->pinned) text += fmt::format("{} ", pinned.index);
  }
  return sha256(text);
}

}  // namespace

CacheQuestion recomputeQuestion(const Variant& variant) {
  const TrainOptions& options = variant.step->request.options;
  std::string asked = fmt::format("recompute.budget={}", options.recomputeBudget);
  for (const RecomputeRequest& request : options.recomputePlan)
    asked += fmt::format(",{}:{}:{}", request.pattern, request.apply ? 1 : 0, request.count);
  return {"recompute",
          {{"version", engineBuild()},
           {"model", hashOf(variant.step->model->graph, nullptr)},
           {"signature", variant.signature.text()},
           {"budget", std::move(asked)},
           {"options", hashOf(variant.graph, &variant.planOptions)}}};
}

std::string choiceText(const KnownChoice& choice) {
  return fmt::format("{} {}\n{}\n", choice.peak, choice.places.size(), fmt::join(choice.places, " "));
}

std::optional<KnownChoice> choiceFrom(const std::string& text) {
  std::istringstream in(text);
  KnownChoice choice;
  std::size_t count = 0;
  if (!(in >> choice.peak >> count) || count > kMostPlaces) return std::nullopt;
  for (std::size_t place = 0; in >> place;) choice.places.push_back(place);
  if (!in.eof() || choice.places.size() != count) return std::nullopt;
  return choice;
}

}  // namespace stepscope
