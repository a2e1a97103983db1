#include "engine/passes/fuse_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/passes/attention_pattern.h"
#include "engine/passes/pattern.h"
#include "engine/passes/pattern_match.h"
#include "engine/passes/scalar.h"
#include "kernels/attention_shape.h"

namespace stepscope {
namespace {

// An operand without the transposes and factors in front of it: the value as a product reads it is factor · of^perm.
struct Operand {
  ValueId of;
  Dims perm;
  double factor = 1;
  std::int64_t groups = 1;      // times that the innermost leading axis of `of` is repeated
  std::vector<NodeId> skipped;  // transposes, factors and copies, nearest to the product first
};

struct Match {
  NodeId last;  // becomes the fused node
  Operand q, k, v;
  ValueId mask;
  std::optional<float> fill;  // of a bool mask
  bool invert = false, safe = false;
  Dims permY;
  double scale = 1, softcap = 0;
  float dropout = 0;
  ValueId kept;               // the tokens that are no padding, where nothing reads more of the result
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
  Matcher(const Graph& graph, const Inference& inference, const PatternFile& patterns)
      : graph_(graph), inference_(inference), readers_(graph), pattern_(graph, inference, patterns) {}

  struct NearMiss {
    NodeId node;
    std::string why;  // empty: it does not begin like attention
  };

  // The attention whose last product is `product`.
  std::optional<Match> match(const Node& product, NearMiss& miss) {
    const auto found = pattern_.match("context", product.output(0));
    if (!found) {
      if (auto furthest = pattern_.nearMiss()) miss = {furthest->node, std::move(furthest->condition)};
      return std::nullopt;
    }
    miss.node = found->marked ? found->marked : product.id;
    Match match;
    match.product = match.last = product.id;
    for (const char* name : {"q", "k", "v", "s", "products"})
      if (!found->value(name)) return miss.why = fmt::format("the pattern says nothing of {}", name), std::nullopt;
    const auto& shape = shapeOf(found->value("s"));
    if (!shape || shape->size() < 2) return miss.why = "the rank of the scores is not known", std::nullopt;
    if (shapeOf(found->value("products")) != shape) return miss.why = "scores are broadcast by their mask", std::nullopt;
    readOperands(*found, match);
    if (miss.why = readMask(*found, match); !miss.why.empty()) return std::nullopt;
    if (miss.why = readDropout(*found, match); !miss.why.empty()) return std::nullopt;
    if (const Node* behind = readers_.only(product.output(0)); behind && isOp(*behind, "Transpose")) {
      match.permY = permOf(*behind, shape->size());
      match.last = behind->id;
    }
    match.kept = keptRows(match, shape->size());
    for (const NodeId node : found->nodes)
      if (node != match.last) match.parts.push_back(node);
    if (miss.why = refusal(match, product, shape->size()); !miss.why.empty()) return std::nullopt;
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

  bool isRead(ValueId id) const { return id && (readers_.isKept(id) || !readers_.of(id).empty()); }

  // A number that the file gives, which nobody trains: an exporter may store it as an initializer.
  std::optional<double> numberOf(ValueId id) const {
    const Tensor* tensor = inference_.shapeConstant(id);
    if (!tensor || tensor->elements() != 1 || !isFloating(tensor->dtype())) return std::nullopt;
    return elementAsDouble(tensor->view(), 0);
  }

  void readOperands(const PatternMatch& found, Match& match) const {
    match.q = operand(found.value("q"), true);
    match.k = operand(found.value("k"), true);
    match.v = operand(found.value("v"), false);
    // Where copies of one of them are not seen, or others are made, both are read with their copies.
    if (match.k.groups != match.v.groups) {
      match.k = operand(found.value("k"), true, false);
      match.v = operand(found.value("v"), false, false);
    }
    if (const auto& k = shapeOf(found.value("k"))) match.k.perm = exchangeLastTwo(match.k.perm, k->size());
    match.scale = found.number("scale") * match.q.factor * match.k.factor;
    if (found.value("bent")) {
      match.softcap = found.number("cap");
      match.scale *= match.softcap;
    }
    match.safe = found.value("p").valid();
  }

  // These two return why not; empty where it is so.
  std::string readMask(const PatternMatch& found, Match& match) const {
    match.mask = found.value("mask");
    const ValueId keep = found.value("keep"), drop = found.value("drop");
    if (!keep && !drop) return {};
    const auto fill = found.value("fill") ? constantScalar(inference_, found.value("fill")) : std::nullopt;
    if (!fill || match.mask || (keep && drop)) return "what the mask puts is no constant number, or there is another mask";
    match.mask = keep ? keep : drop;
    match.invert = drop.valid();
    match.fill = static_cast<float>(*fill);
    return {};
  }

  std::string readDropout(const PatternMatch& found, Match& match) const {
    if (!found.value("drawn")) return {};
    const Node& dropout = graph_.node(graph_.value(found.value("drawn")).producer);
    const ValueId given = found.value("mode");
    const Tensor* mode = given ? inference_.constant(given) : nullptr;
    const auto share = found.value("share") ? numberOf(found.value("share")) : 0.5;
    if ((given && !mode) || !share || !(*share >= 0 && *share < 1) || isRead(dropout.output(1)))
      return "the share of a Dropout or its mode is computed, or its mask is read";
    if (mode && elementAsDouble(mode->view(), 0) != 0 && *share > 0) {
      match.dropout = static_cast<float>(*share);
      match.drawsAs = dropout.id;
    }
    return {};
  }

  const Node* madeBy(ValueId value) const {
    return graph_.value(value).producer ? &graph_.node(graph_.value(value).producer) : nullptr;
  }

  // Past transposes, copies for groups of heads and, where the product may take them, constant factors.
  Operand operand(ValueId value, bool scales, bool copies = true) const {
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
      } else if (const auto turned = turnedOf(node)) {
        const Dims inner = exchangeLastTwo({}, shapeOf(turned->of)->size());
        if (result.perm.empty())
          result.perm = inner;
        else
          for (std::int64_t& axis : result.perm) axis = inner[static_cast<std::size_t>(axis)];
        result.of = turned->of;
        result.skipped.insert(result.skipped.end(), turned->nodes.begin(), turned->nodes.end());
        continue;
      } else if (const auto scale = scales ? readScale(graph_, inference_, node) : std::nullopt) {
        result.factor *= scale->factor;
        result.of = scale->of;
      } else if (const auto copied = copies ? copiesOf(node, result) : std::nullopt) {
        result.groups = copied->groups;
        result.of = copied->of;
        result.skipped.insert(result.skipped.end(), copied->nodes.begin(), copied->nodes.end());
        continue;
      } else {
        break;
      }
      result.skipped.push_back(made);
    }
    if (isIdentity(result.perm)) result.perm.clear();
    return result;
  }

  struct Turned {
    ValueId of;
    std::array<NodeId, 3> nodes;
  };
  // Reshape(Transpose(Reshape(x))), which exchanges the last two axes while those before them are one: what PyTorch's dynamo
  // exporter writes for keys.
  std::optional<Turned> turnedOf(const Node& apart) const {
    const Node* turn = isOp(apart, "Reshape") ? madeBy(apart.input(0)) : nullptr;
    const Node* join = turn && isOp(*turn, "Transpose") ? madeBy(turn->input(0)) : nullptr;
    if (!join || !isOp(*join, "Reshape")) return std::nullopt;
    const auto &x = shapeOf(join->input(0)), &joined = shapeOf(join->output(0)), &y = shapeOf(apart.output(0));
    if (!x || !joined || !y || joined->size() != 3 || x->size() < 3 || y->size() != x->size()) return std::nullopt;
    const std::size_t rank = x->size();
    if (permOf(*turn, 3) != Dims{0, 2, 1} || !std::equal(x->begin(), x->end() - 2, y->begin()) ||
        !std::equal(x->end() - 2, x->end(), joined->begin() + 1) || !((*y)[rank - 1] == (*x)[rank - 2]) ||
        !((*y)[rank - 2] == (*x)[rank - 1]))
      return std::nullopt;
    return Turned{join->input(0), {apart.id, turn->id, join->id}};
  }

  struct Copies {
    ValueId of;
    std::int64_t groups = 1;
    std::vector<NodeId> nodes;
  };
  // Reshape(Expand(Unsqueeze(x))), which repeats every head for a group of heads; nothing where it is something else.
  std::optional<Copies> copiesOf(const Node& reshape, const Operand& operand) const {
    if (!isOp(reshape, "Reshape") || operand.groups != 1) return std::nullopt;
    const Node* expand = madeBy(reshape.input(0));
    if (!expand || !isOp(*expand, "Expand")) return std::nullopt;
    const Node* apart = madeBy(expand->input(0));
    if (!apart || (!isOp(*apart, "Unsqueeze") && !isOp(*apart, "Reshape"))) return std::nullopt;
    const auto &own = shapeOf(apart->input(0)), &one = shapeOf(expand->input(0)), &many = shapeOf(reshape.input(0)),
               &joined = shapeOf(reshape.output(0));
    if (!own || !one || !many || !joined || own->size() < 3 || one->size() != own->size() + 1 ||
        many->size() != one->size() || joined->size() != own->size())
      return std::nullopt;
    const std::size_t head = own->size() - 3,
                      stored = operand.perm.empty() ? head : static_cast<std::size_t>(operand.perm[head]);
    const std::size_t copy = stored + 1;
    if (!((*one)[copy] == Dim(1)) || !(*many)[copy].known() || !(*own)[stored].known() || !(*joined)[stored].known())
      return std::nullopt;
    const std::int64_t groups = (*many)[copy].value();
    if ((*joined)[stored].value() != (*own)[stored].value() * groups || groups < 2) return std::nullopt;
    for (std::size_t i = 0; i < one->size(); ++i) {
      const Dim& from = (*own)[i < copy ? i : i - 1];
      if (i != copy && (!((*one)[i] == from) || !((*many)[i] == from))) return std::nullopt;
      if (i != copy && i != stored && !((*joined)[i < copy ? i : i - 1] == from)) return std::nullopt;
    }
    return Copies{apart->input(0), groups, {reshape.id, expand->id, apart->id}};
  }

  // The tokens that queries were brought back from and that alone are read of the result (pass eliminate_padding); both with
  // batch and rows in front, and heads behind the batch.
  ValueId keptRows(const Match& match, std::size_t rank) const {
    const auto rowsSecond = [&](const Dims& perm, std::size_t to, std::size_t from) {
      return perm.size() == rank && perm[0] == 0 && perm[to] == static_cast<std::int64_t>(from);
    };
    const Node* back = madeBy(match.q.of);
    if (rank < 4 || !back || back->domain != "com.microsoft" || back->op != "PadAndUnflatten" ||
        !rowsSecond(match.q.perm, rank - 2, 1) || !rowsSecond(match.permY, 1, rank - 2))
      return {};
    const ValueId kept = back->input(1), y = graph_.node(match.last).output(0);
    if (readers_.isKept(y) || readers_.of(y).empty() || typeOf(kept) != DType::kI64) return {};
    for (const Use& use : readers_.of(y)) {
      const Node& reader = graph_.node(use.node);
      if (reader.domain != "com.microsoft" || reader.op != "FlattenAndUnpad" || use.input != 0 || reader.input(1) != kept)
        return {};
    }
    return kept;
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
    if (match.k.groups > 1)
      for (const std::size_t shared : {1u, 2u}) shapes[shared][rank - 3] = shapes[shared][rank - 3] * Dim(match.k.groups);
    for (std::size_t i = 0; i + 2 < rank; ++i)
      if (shapes[0][i] != shapes[1][i] || shapes[0][i] != shapes[2][i])
        return "keys or values are broadcast over leading axes of the queries";
    if (match.mask) {
      if (match.fill ? typeOf(match.mask) != DType::kBool : typeOf(match.mask) != type) return "the mask has another type";
      if (!shapeOf(match.mask) || shapeOf(match.mask)->size() > rank) return "the mask has more axes than the scores";
      if (!match.fill && leadsToWeights(match.mask)) return "a weight leads to the mask, which then needs a gradient";
    }
    if (!std::isfinite(match.scale) || !std::isfinite(match.softcap) || match.softcap < 0)
      return "its factors are not finite, or the bound of the scores is below 0";
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
  PatternMatcher pattern_;
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
  if (match.mask || match.kept) node.inputs.push_back(match.mask);
  if (match.kept) node.inputs.push_back(match.kept);
  node.attrs = {};
  if (match.scale != 1) node.attrs.set("scale", static_cast<float>(match.scale));
  if (match.k.groups > 1) node.attrs.set("groups", match.k.groups);
  if (match.softcap > 0) node.attrs.set("softcap", static_cast<float>(match.softcap));
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
  auto patterns = attentionPatterns(std::string(context.option(kAttentionPatternsOption, "")));
  if (!patterns) {  // the file was read when the option was set, and has changed since
    context.warn(patterns.error().message + "; the program's own patterns are taken");
    patterns = attentionPatterns("");
  }
  SS_TRY(patterns);
  Matcher matcher(graph, context.inference, *patterns);
  std::vector<Match> matches;
  for (const NodeId id : graph.order()) {
    const Node& product = graph.node(id);
    if (!isOp(product, "MatMul")) continue;
    Matcher::NearMiss miss;
    if (auto match = matcher.match(product, miss)) {
      matches.push_back(std::move(*match));
      context.match();
    } else if (!miss.why.empty()) {
      context.miss(miss.node, miss.why);
    }
  }
  if (matches.empty()) return {};
  if (const auto some = std::ranges::count_if(matches, [](const Match& match) { return match.kept.valid(); }); some > 0)
    context.note(fmt::format("{} of them leave out what stands behind the last token of each row", some));
  const std::vector<NodeId> gone = matcher.gone(matches);
  for (const Match& match : matches) write(graph, match);
  graph.removeNodes(gone);
  // The extents that copies of keys were made with.
  if (std::ranges::any_of(matches, [](const Match& match) { return match.k.groups > 1; })) graph.removeDeadNodes();
  return {};
}

}  // namespace stepscope
