#include "engine/passes/fuse_normalization.h"

#include <algorithm>

#include "engine/passes/pattern.h"
#include "engine/passes/scalar.h"

namespace stepscope {
namespace {

struct Match {
  NodeId last;
  ValueId x, scale, bias;  // no bias: RMSNormalization
  double epsilon = 0;
  std::vector<NodeId> sources;
};

class Matcher {
 public:
  Matcher(const Graph& graph, const Inference& inference) : graph_(graph), inference_(inference), readers_(graph) {}

  // The normalisation whose square root is `root`; why not, when the chain begins like one.
  std::optional<Match> match(const Node& root, std::string* why) const {
    const Node* sum = producer(root.input(0), "Add");
    if (!sum) return std::nullopt;
    for (const std::size_t side : {0u, 1u}) {
      const auto epsilon = constantScalar(inference_, sum->input(1 - side));
      const Node* mean = producer(sum->input(side), "ReduceMean");
      if (!epsilon || !mean || !overLastAxis(*mean)) continue;
      const auto difference = squared(mean->input(0));
      if (!difference) continue;
      Match match{.last = {},
                  .x = *difference,
                  .scale = {},
                  .bias = {},
                  .epsilon = *epsilon,
                  .sources = {mean->id, sum->id, root.id}};
      const Node* normalised = quotient(*difference, root.output(0), why);
      if (!normalised) return std::nullopt;
      bool centred = false;
      if (const Node* sub = producer(*difference, "Sub")) {
        const Node* average = producer(sub->input(1), "ReduceMean");
        centred = average && overLastAxis(*average) && average->input(0) == sub->input(0);
        if (centred) {
          match.x = sub->input(0);
          match.sources.push_back(sub->id);
        }
      }
      const Node* scaled = reader(normalised->output(0), "Mul", why);
      if (!scaled) return std::nullopt;
      match.scale = other(*scaled, normalised->output(0));
      if (!isRow(match.scale, match.x)) return *why = "its scale is no row of the last axis", std::nullopt;
      match.last = scaled->id;
      match.sources.push_back(normalised->id);
      if (centred) {
        const Node* shifted = reader(scaled->output(0), "Add", why);
        if (!shifted) return std::nullopt;
        match.bias = other(*shifted, scaled->output(0));
        if (!isRow(match.bias, match.x)) return *why = "its bias is no row of the last axis", std::nullopt;
        match.last = shifted->id;
        match.sources.push_back(scaled->id);
      }
      if (graph_.node(match.last).predicates != root.predicates)
        return *why = "it reaches into a branch of If", std::nullopt;
      return match;
    }
    return std::nullopt;
  }

 private:
  static ValueId other(const Node& node, ValueId one) { return node.input(node.input(0) == one ? 1 : 0); }

  const Node* producer(ValueId id, std::string_view op) const { return producerOf(graph_, id, op); }

  // The only reader of a value that is no output of the graph, if it is `op`.
  const Node* reader(ValueId id, std::string_view op, std::string* why) const {
    if (const Node* node = readers_.only(id); node && isOp(*node, op)) return node;
    *why = "'" + graph_.value(id).name + "' is not read by " + std::string(op) + " alone";
    return nullptr;
  }

  bool overLastAxis(const Node& mean) const {
    const auto& shape = graph_.value(mean.input(0)).type.shape;
    const auto axes = mean.input(1) ? inference_.integers(mean.input(1)) : std::nullopt;
    if (!shape || !axes || axes->size() != 1 || mean.attrs.integer("keepdims", 1) == 0) return false;
    return (*axes)[0] == -1 || (*axes)[0] == static_cast<std::int64_t>(shape->size()) - 1;
  }

  std::optional<ValueId> squared(ValueId id) const {
    if (const Node* pow = producer(id, "Pow"))
      if (const auto exponent = constantScalar(inference_, pow->input(1)); exponent && *exponent == 2) return pow->input(0);
    if (const Node* mul = producer(id, "Mul"); mul && mul->input(0) == mul->input(1)) return mul->input(0);
    return std::nullopt;
  }

  // The node that divides `difference` by `root`: a quotient, or a product with 1 / root.
  const Node* quotient(ValueId difference, ValueId root, std::string* why) const {
    for (const Use& use : readers_.of(difference)) {
      const Node& node = graph_.node(use.node);
      if (isOp(node, "Div") && node.input(0) == difference && node.input(1) == root) return &node;
      if (!isOp(node, "Mul") || node.inputs.size() != 2) continue;
      const ValueId factor = other(node, difference);
      if (const Node* inverse = producer(factor, "Reciprocal"); inverse && inverse->input(0) == root) return &node;
      const Node* inverse = producer(factor, "Div");
      const auto one = inverse ? constantScalar(inference_, inverse->input(0)) : std::nullopt;
      if (one && *one == 1 && inverse->input(1) == root) return &node;
    }
    *why = "nothing divides what was squared by the root";
    return nullptr;
  }

  bool isRow(ValueId id, ValueId x) const {
    const auto &row = graph_.value(id).type.shape, &shape = graph_.value(x).type.shape;
    return row && shape && !shape->empty() && row->size() == 1 && (*row)[0] == shape->back() &&
           graph_.value(id).type.dtype == graph_.value(x).type.dtype;
  }

  const Graph& graph_;
  const Inference& inference_;
  Readers readers_;
};

}  // namespace

Status fuseNormalization(Graph& graph, PassContext& context) {
  Inference& inference = context.inference;
  const Matcher matcher(graph, inference);
  std::vector<Match> matches;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!isOp(node, "Sqrt")) continue;
    std::string why;
    if (auto match = matcher.match(node, &why))
      matches.push_back(std::move(*match));
    else if (!why.empty())
      context.miss(id, why);
  }
  for (const Match& match : matches) {
    Node& node = graph.mutableNode(match.last);
    node.op = match.bias ? "LayerNormalization" : "RMSNormalization";
    node.inputs = {match.x, match.scale};
    if (match.bias) node.inputs.push_back(match.bias);
    node.attrs = {{"axis", std::int64_t{-1}}, {"epsilon", static_cast<float>(match.epsilon)}};
    node.provenance.sources.insert(node.provenance.sources.end(), match.sources.begin(), match.sources.end());
    node.provenance.pass = graph.pass();
    graph.logChange(match.last);
    context.match();
  }
  if (context.result.matches > 0) graph.removeDeadNodes();
  return {};
}

}  // namespace stepscope
