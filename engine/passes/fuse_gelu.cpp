#include "engine/passes/fuse_gelu.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/passes/pattern.h"
#include "engine/passes/scalar.h"

namespace stepscope {
namespace {

bool near(double a, double b) { return std::abs(a - b) <= 1e-4 * std::abs(b); }

class Matcher {
 public:
  Matcher(const Graph& graph, const Inference& inference) : graph_(graph), inference_(inference), readers_(graph) {}

  // The argument of erf or tanh in the form `x` that belongs to it.
  std::optional<ValueId> argument(const Node& node) const {
    const bool erf = node.op == "Erf";
    for (const Factor& outer : factorsOf(node.input(0))) {
      if (!near(outer.factor, erf ? std::numbers::sqrt2 / 2 : std::sqrt(2 * std::numbers::inv_pi))) continue;
      if (erf) return outer.of;
      const Node* sum = producer(outer.of, "Add");
      for (const std::size_t side : {0u, 1u}) {
        if (!sum) break;
        const ValueId x = sum->input(side);
        for (const Factor& cubic : factorsOf(sum->input(1 - side)))
          if (near(cubic.factor, 0.044715) && isCube(cubic.of, x)) return x;
      }
    }
    return std::nullopt;
  }

  // The last node of the product x/2 (1 + f), where f is the result of `node`. Why not, otherwise.
  NodeId product(const Node& node, ValueId x, std::string* why) const {
    const Node* sum = reader(node.output(0), why);
    if (!sum || !isOp(*sum, "Add")) return *why = why->empty() ? "erf or tanh is not followed by + 1" : *why, NodeId{};
    const auto one = constantScalar(inference_, sum->input(sum->input(0) == node.output(0) ? 1 : 0));
    if (!one || !near(*one, 1)) return *why = "what is added to erf or tanh is not 1", NodeId{};
    double factor = 1;
    int times = 0;
    const Node* last = sum;
    while (times == 0 || !near(factor, 0.5)) {
      const Node* next = reader(last->output(0), why);
      if (!next) return NodeId{};
      if (!isOp(*next, "Mul") && !isOp(*next, "Div")) return *why = "the factors x and 1/2 are not all there", NodeId{};
      const bool left = next->input(0) == last->output(0);
      const ValueId other = next->input(left ? 1 : 0);
      if (const auto constant = constantScalar(inference_, other)) {
        if (isOp(*next, "Div") && !left) return *why = "it divides a constant", NodeId{};
        factor *= isOp(*next, "Div") ? 1 / *constant : *constant;
      } else {
        const auto levels = factorsOf(other);
        const auto scaled = std::find_if(levels.begin(), levels.end(), [&](const Factor& level) { return level.of == x; });
        if (isOp(*next, "Div") || scaled == levels.end() || times > 0)
          return *why = "it is multiplied with something else than x", NodeId{};
        factor *= scaled->factor;
        ++times;
      }
      last = next;
    }
    return last->id;
  }

 private:
  struct Factor {
    ValueId of;
    double factor = 1;
  };

  const Node* producer(ValueId id, std::string_view op) const { return producerOf(graph_, id, op); }

  // The only reader of a value that is no output of the graph.
  const Node* reader(ValueId id, std::string* why) const {
    if (const Node* node = readers_.only(id)) return node;
    *why = "'" + graph_.value(id).name + "' is read elsewhere too";
    return nullptr;
  }

  // value = factor · of: with itself, and with what is left when multiplications with constants are taken away one by one.
  std::vector<Factor> factorsOf(ValueId value) const {
    std::vector<Factor> levels{{value, 1}};
    for (int depth = 0; depth < 4; ++depth) {
      const NodeId id = graph_.value(levels.back().of).producer;
      const auto scale = id ? readScale(graph_, inference_, graph_.node(id)) : std::nullopt;
      if (!scale) break;
      levels.push_back({scale->of, levels.back().factor * scale->factor});
    }
    return levels;
  }

  bool isCube(ValueId value, ValueId x) const {
    if (const Node* pow = producer(value, "Pow")) {
      const auto exponent = constantScalar(inference_, pow->input(1));
      return pow->input(0) == x && exponent && *exponent == 3;
    }
    const Node* mul = producer(value, "Mul");
    if (!mul) return false;
    for (const std::size_t side : {0u, 1u}) {
      if (mul->input(side) != x) continue;
      if (const Node* square = producer(mul->input(1 - side), "Mul")) return square->input(0) == x && square->input(1) == x;
      if (const Node* square = producer(mul->input(1 - side), "Pow")) {
        const auto exponent = constantScalar(inference_, square->input(1));
        return square->input(0) == x && exponent && *exponent == 2;
      }
    }
    return false;
  }

  const Graph& graph_;
  const Inference& inference_;
  Readers readers_;
};

}  // namespace

Status fuseGelu(Graph& graph, PassContext& context) {
  Inference& inference = context.inference;
  const Matcher matcher(graph, inference);
  struct Match {
    NodeId last, function;
    ValueId x;
  };
  std::vector<Match> matches;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!isOp(node, "Erf") && !isOp(node, "Tanh")) continue;
    const auto x = matcher.argument(node);
    if (!x) continue;
    std::string why;
    const NodeId last = matcher.product(node, *x, &why);
    if (last && graph.node(last).predicates == node.predicates &&
        graph.value(*x).type.shape == graph.value(graph.node(last).output(0)).type.shape)
      matches.push_back({last, id, *x});
    else
      context.miss(id, last ? "its extents or its branch of If are not those of the result" : why);
  }
  for (const Match& match : matches) {
    Node& node = graph.mutableNode(match.last);
    const Node& function = graph.node(match.function);
    node.op = "Gelu";
    node.inputs = {match.x};
    node.attrs = {{"approximate", std::string(function.op == "Tanh" ? "tanh" : "none")}};
    node.provenance.sources.push_back(match.function);
    node.provenance.pass = graph.pass();
    graph.logChange(match.last);
    context.match();
  }
  if (context.result.matches > 0) graph.removeDeadNodes();
  return {};
}

}  // namespace stepscope
