#include "engine/passes/fuse_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/passes/pattern.h"
#include "engine/passes/scalar.h"
#include "engine/passes/select_dead_rows.h"
#include "kernels/attention_shape.h"

namespace stepscope {
namespace {

// An operand without the transposes and factors in front of it: the value as a product reads it is factor · of^perm.
struct Operand {
  ValueId of;
  Dims perm;
  double factor = 1;
  std::vector<NodeId> skipped;  // transposes and factors, nearest to the product first
};

struct Match {
  NodeId last;  // becomes the fused node
  Operand q, k, v;
  ValueId mask;
  std::optional<float> fill;  // of a bool mask
  bool invert = false, safe = false;
  Dims permY;
  double scale = 1;
  float dropout = 0;
  NodeId drawsAs;             // the Dropout whose key it draws with
  NodeId product;             // of the probabilities and v
  std::vector<NodeId> parts;  // what it stands for, without `last`: read by one another alone
};

bool isIdentity(const Dims& perm) {
  for (std::size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

class Matcher {
 public:
  Matcher(const Graph& graph, const Inference& inference) : graph_(graph), inference_(inference), readers_(graph) {}

  // The attention around a softmax. Nothing where it is none; `why` is set where it begins like one.
  std::optional<Match> match(const Node& softmax, std::string& why) {
    const ValueId scores = softmax.input(0);
    const auto& shape = shapeOf(scores);
    if (!shape || shape->size() < 2) return std::nullopt;
    Match match;
    match.parts.push_back(softmax.id);
    ValueId p = behindDeadRows(softmax, match);
    p = behindDropout(p, match, why);
    if (!p) return std::nullopt;
    const Node* product = nullptr;
    for (const Use& use : readers_.of(p))
      if (use.input == 0 && isOp(graph_.node(use.node), "MatMul")) product = &graph_.node(use.node);
    if (!product) return std::nullopt;
    if (!readers_.single(p)) return why = "the probabilities are read elsewhere too", std::nullopt;
    match.product = product->id;
    const std::int64_t axis = softmax.attrs.integer("axis", -1), rank = static_cast<std::int64_t>(shape->size());
    if (axis != -1 && axis != rank - 1) return why = "softmax runs along another axis than the last", std::nullopt;
    if (!readScores(scores, match, why)) return std::nullopt;
    match.v = operand(product->input(1), false);
    match.last = product->id;
    match.permY = {};
    if (const Node* behind = readers_.only(product->output(0)); behind && isOp(*behind, "Transpose")) {
      match.permY = permOf(*behind, shape->size());
      match.last = behind->id;
      match.parts.push_back(product->id);
    }
    if (why = refusal(match, *product, shape->size()); !why.empty()) return std::nullopt;
    return match;
  }

  // What no longer has a reader once the matches are written: their parts, and of the nodes that they read past those that
  // nothing else reads.
  std::vector<NodeId> gone(std::span<const Match> matches) const {
    std::unordered_set<NodeId> own;
    std::vector<NodeId> result;
    for (const Match& match : matches) {
      own.insert(match.parts.begin(), match.parts.end());
      own.insert(match.last);
      result.insert(result.end(), match.parts.begin(), match.parts.end());
    }
    for (const Match& match : matches)
      for (const Operand* operand : {&match.q, &match.k, &match.v})
        for (const NodeId node : operand->skipped) {
          if (own.contains(node)) continue;   // another match reads past it too
          if (!readOnlyBy(node, own)) break;  // it stays, and reads what stands before it
          own.insert(node);
          result.push_back(node);
        }
    return result;
  }

 private:
  const std::optional<Shape>& shapeOf(ValueId id) const { return graph_.value(id).type.shape; }
  DType typeOf(ValueId id) const { return graph_.value(id).type.dtype; }

  static Dims permOf(const Node& transpose, std::size_t rank) {
    Dims perm = transpose.attrs.integers("perm");
    if (perm.empty()) {
      perm.resize(rank);
      std::iota(perm.rbegin(), perm.rend(), 0);
    }
    return perm;
  }

  // Through Where(IsNaN(p), 0, p) and its like, which answer zeros for a row without a finite score.
  ValueId behindDeadRows(const Node& softmax, Match& match) const {
    const ValueId p = softmax.output(0), selected = selectedWithoutDeadRows(graph_, inference_, readers_, softmax);
    if (!selected) return p;
    const Node& where = graph_.node(graph_.value(selected).producer);
    const auto zero = constantScalar(inference_, where.input(1));
    if (!zero || *zero != 0) return p;
    match.safe = true;
    match.parts.push_back(where.id);
    // The nodes of the condition, as far as they are for it alone: from it up to the softmax or its scores.
    for (ValueId at = where.input(0); at && at != p && at != softmax.input(0);) {
      const NodeId made = graph_.value(at).producer;
      if (!made) break;
      const Node& node = graph_.node(made);
      match.parts.push_back(made);
      ValueId next;
      for (const ValueId in : node.inputs)
        if (in == p || in == softmax.input(0) || (in && graph_.value(in).producer && !next)) next = in;
      at = next;
    }
    return selected;
  }

  bool isRead(ValueId id) const { return id && (readers_.isKept(id) || !readers_.of(id).empty()); }

  // A number that the file gives, which nobody trains: an exporter may store it as an initializer.
  std::optional<double> numberOf(ValueId id) const {
    const Tensor* tensor = inference_.shapeConstant(id);
    if (!tensor || tensor->elements() != 1 || !isFloating(tensor->dtype())) return std::nullopt;
    return elementAsDouble(tensor->view(), 0);
  }

  // Through a Dropout of a known share; nothing where it stands in the way.
  ValueId behindDropout(ValueId p, Match& match, std::string& why) const {
    const Node* dropout = readers_.only(p);
    if (!dropout || !isOp(*dropout, "Dropout") || dropout->input(0) != p) return p;
    const bool known = !dropout->input(2).valid() || inference_.constant(dropout->input(2));
    const auto share = dropout->input(1).valid() ? numberOf(dropout->input(1)) : 0.5;
    if (!known || !share || !(*share >= 0 && *share < 1) || isRead(dropout->output(1))) {
      why = "the share of a Dropout or its mode is computed, or its mask is read";
      return {};
    }
    const bool trains = dropout->input(2).valid() && elementAsDouble(inference_.constant(dropout->input(2))->view(), 0) != 0;
    match.parts.push_back(dropout->id);
    if (trains && *share > 0) {
      match.dropout = static_cast<float>(*share);
      match.drawsAs = dropout->id;
    }
    return dropout->output(0);
  }

  // From the softmax back to q and k.
  bool readScores(ValueId scores, Match& match, std::string& why) {
    if (readProduct(scores, match)) return true;
    const NodeId made = graph_.value(scores).producer;
    if (!made) return false;
    const Node& node = graph_.node(made);
    const auto take = [&](ValueId of, ValueId mask) {
      if (shapeOf(of) != shapeOf(scores) || !readProduct(of, match)) return false;
      match.mask = mask;
      match.parts.push_back(made);
      return true;
    };
    if (isOp(node, "Add") && node.inputs.size() == 2) {
      if (take(node.input(0), node.input(1)) || take(node.input(1), node.input(0))) return true;
      why = "what the mask is added to is no product of two operands (two masks, or a bias between)";
    } else if (isOp(node, "Where") && node.inputs.size() == 3) {
      for (const std::size_t kept : {1u, 2u}) {
        const auto fill = constantScalar(inference_, node.input(3 - kept));
        if (!fill || !take(node.input(kept), node.input(0))) continue;
        match.fill = static_cast<float>(*fill);
        match.invert = kept == 2;
        return true;
      }
      why = "what the mask selects is no product of two operands, or the other side no number";
    }
    return false;
  }

  bool readProduct(ValueId scores, Match& match) const {
    double scale = 1;
    std::vector<NodeId> parts;
    const Node* node = graph_.value(scores).producer ? &graph_.node(graph_.value(scores).producer) : nullptr;
    if (!node) return false;
    if (const auto factor = readScale(graph_, inference_, *node)) {
      scale = factor->factor;
      parts.push_back(node->id);
      node = graph_.value(factor->of).producer ? &graph_.node(graph_.value(factor->of).producer) : nullptr;
    }
    if (!node || !isOp(*node, "MatMul")) return false;
    parts.push_back(node->id);
    match.q = operand(node->input(0), true);
    match.k = operand(node->input(1), true);
    if (const auto& k = shapeOf(node->input(1)))
      match.k.perm = exchangeLastTwo(match.k.perm.empty() ? Dims{} : match.k.perm, k->size());
    match.scale = scale * match.q.factor * match.k.factor;
    match.parts.insert(match.parts.end(), parts.begin(), parts.end());
    return true;
  }

  // Past transposes and, where the product may take them, constant factors.
  Operand operand(ValueId value, bool scales) const {
    Operand result{.of = value, .perm = {}, .skipped = {}};
    while (const NodeId made = graph_.value(result.of).producer) {
      const Node& node = graph_.node(made);
      if (const auto& shape = shapeOf(node.input(0)); isOp(node, "Transpose") && shape) {
        const Dims inner = permOf(node, shape->size());
        if (result.perm.empty())
          result.perm = inner;
        else
          for (std::int64_t& axis : result.perm) axis = inner[static_cast<std::size_t>(axis)];
        result.of = node.input(0);
      } else if (const auto scale = scales ? readScale(graph_, inference_, node) : std::nullopt) {
        result.factor *= scale->factor;
        result.of = scale->of;
      } else {
        break;
      }
      result.skipped.push_back(made);
    }
    if (isIdentity(result.perm)) result.perm.clear();
    return result;
  }

  // Why the match cannot become one node; empty where it can.
  std::string refusal(const Match& match, const Node& product, std::size_t rank) {
    const DType type = typeOf(product.output(0));
    std::vector<Shape> shapes;
    for (const Operand* operand : {&match.q, &match.k, &match.v}) {
      const auto& shape = shapeOf(operand->of);
      if (!shape || shape->size() != rank) return "q, k and v have not all the rank of the scores";
      if (typeOf(operand->of) != type || !isFloating(type)) return "q, k and v have not one floating type";
      Shape permuted;
      for (std::size_t i = 0; i < rank; ++i)
        permuted.push_back((*shape)[operand->perm.empty() ? i : static_cast<std::size_t>(operand->perm[i])]);
      shapes.push_back(std::move(permuted));
    }
    for (std::size_t i = 0; i + 2 < rank; ++i)
      if (shapes[0][i] != shapes[1][i] || shapes[0][i] != shapes[2][i])
        return "keys or values are broadcast over leading axes of the queries";
    if (match.mask) {
      if (match.fill ? typeOf(match.mask) != DType::kBool : typeOf(match.mask) != type) return "the mask has another type";
      if (!shapeOf(match.mask) || shapeOf(match.mask)->size() > rank) return "the mask has more axes than the scores";
      if (!match.fill && leadsToWeights(match.mask)) return "a weight leads to the mask, which then needs a gradient";
    }
    if (!std::isfinite(match.scale)) return "its factors are not finite";
    std::unordered_set<NodeId> own(match.parts.begin(), match.parts.end());
    own.insert(match.last);
    for (const NodeId part : own) {
      const Node& node = graph_.node(part);
      if (node.predicates != product.predicates || node.phase != product.phase) return "it reaches into a branch of If";
      if (part != match.last && !readOnlyBy(part, own))
        return fmt::format("'{}' is read elsewhere too", graph_.value(node.output(0)).name);
    }
    return {};
  }

  bool readOnlyBy(NodeId node, const std::unordered_set<NodeId>& readers) const {
    for (const ValueId output : graph_.node(node).outputs) {
      if (!output) continue;
      if (readers_.isKept(output)) return false;
      for (const Use& use : readers_.of(output))
        if (use.input == SIZE_MAX || !readers.contains(use.node)) return false;
    }
    return true;
  }

  // Whether floats that may be trained are among what the value is computed from.
  bool leadsToWeights(ValueId value) {
    if (const auto it = weights_.find(value); it != weights_.end()) return it->second;
    weights_[value] = false;
    const Value& v = graph_.value(value);
    bool leads = false;
    if (!isFloating(v.type.dtype)) return false;
    if (v.role == ValueRole::kInitializer) {
      leads = inference_.constant(value) == nullptr;
    } else if (v.producer) {
      for (const ValueId in : graph_.node(v.producer).inputs) leads = (in && leadsToWeights(in)) || leads;
    }
    return weights_[value] = leads;
  }

  const Graph& graph_;
  const Inference& inference_;
  const Readers readers_;
  std::unordered_map<ValueId, bool> weights_;
};

void write(Graph& graph, const Match& match) {
  const Provenance made = graph.node(match.product).provenance;
  const NodeId imported =
      match.drawsAs ? graph.node(match.drawsAs).provenance.imported : graph.node(match.product).provenance.imported;
  Node& node = graph.mutableNode(match.last);
  node.domain = kInternalDomain;
  node.op = "FusedAttention";
  node.inputs = {match.q.of, match.k.of, match.v.of};
  if (match.mask) node.inputs.push_back(match.mask);
  node.attrs = {};
  if (match.scale != 1) node.attrs.set("scale", static_cast<float>(match.scale));
  if (!match.q.perm.empty()) node.attrs.set("permQ", match.q.perm);
  if (!isIdentity(match.k.perm)) node.attrs.set("permK", match.k.perm);
  if (!match.v.perm.empty()) node.attrs.set("permV", match.v.perm);
  if (!match.permY.empty() && !isIdentity(match.permY)) node.attrs.set("permY", match.permY);
  if (match.fill) node.attrs.set("fill", *match.fill);
  if (match.invert) node.attrs.set("invert", std::int64_t{1});
  if (match.safe) node.attrs.set("safe", std::int64_t{1});
  if (match.dropout > 0) node.attrs.set("dropout", match.dropout);
  node.provenance = made;
  node.provenance.imported = imported;  // whose key it draws with
  node.provenance.pass = graph.pass();
  for (const NodeId part : match.parts) node.provenance.sources.push_back(part);
  graph.logChange(match.last);
}

}  // namespace

Status fuseAttention(Graph& graph, PassContext& context) {
  Matcher matcher(graph, context.inference);
  std::vector<Match> matches;
  for (const NodeId id : graph.order()) {
    const Node& softmax = graph.node(id);
    if (!isOp(softmax, "Softmax")) continue;
    std::string why;
    if (auto match = matcher.match(softmax, why)) {
      matches.push_back(std::move(*match));
      context.match();
    } else if (!why.empty()) {
      context.miss(id, why);
    }
  }
  if (matches.empty()) return {};
  const std::vector<NodeId> gone = matcher.gone(matches);
  for (const Match& match : matches) write(graph, match);
  graph.removeNodes(gone);
  return {};
}

}  // namespace stepscope
