#include "engine/autodiff/gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "engine/ops/gradient_context.h"
#include "engine/ops/replay_context.h"

namespace stepscope {
namespace {

class Builder;

class Context final : public GradientContext, public ReplayContext {
 public:
  Context(Builder& builder, NodeId node, const OpDef& op) : builder_(builder), node_(node), op_(op) {}
  const Node& node() const override;
  const OpDef& definition() const override { return op_; }
  ValueId x(std::size_t i) const override { return node().input(i); }
  ValueId y(std::size_t i) const override { return node().output(i); }
  ValueId ensureOutput(std::size_t i) override;
  ValueId dy(std::size_t i) const override;
  ValueId dyOrZeros(std::size_t i) override;
  bool needs(std::size_t i) const override;
  void setGradient(std::size_t i, ValueId gradient) override;
  const ValueType& typeOf(ValueId v) const override;
  const Tensor* constant(ValueId v) const override;
  std::vector<ValueId> emit(std::string_view domain, std::string_view op, std::vector<ValueId> inputs, std::size_t outputs,
                            Attributes attrs) override;
  ValueId constantTensor(Tensor data) override;
  ValueId replayed(ValueId value, ValueId placeholder, ValueId instead) override;

  // Nodes emitted since the last call belong to the gradient of input i, numbered in the order of emission.
  void claim(std::size_t i);

  Status firstError;  // of an emitted node's shape rule: a bug in a rule, or a graph that contradicts itself

 private:
  Builder& builder_;
  NodeId node_;
  const OpDef& op_;
  std::map<std::size_t, std::int32_t> claimed_;  // how many nodes, by input
};

class Builder {
 public:
  Builder(Graph& graph, Inference& inference, const GradientRequest& request)
      : graph_(graph), inference_(inference), request_(request) {}

  Result<GradientReport> build();

 private:
  friend class Context;
  Status differentiate(NodeId id);
  Status contribute(const Node& from, ValueId value, ValueId gradient);
  // The sum of all contributions so far, or invalid.
  Result<ValueId> gradientOf(ValueId value);
  // `seed` times the request's scale, in the type of the seed.
  Result<ValueId> scaledSeed(ValueId seed, const std::string& name);
  Status seedLoss();
  void seedOuter();
  Result<NodeId> emitNode(const Node& forward, const std::vector<Predicate>& predicates, std::string_view domain,
                          std::string_view op, std::vector<ValueId> inputs, std::size_t outputs, Attributes attrs);
  Result<ValueId> shapeOf(const Node& forward, ValueId value, ValueId gradient);
  std::vector<Predicate> predicatesOf(ValueId value) const;
  ValueId shareConstant(Tensor data);
  void dropStandIns();

  Graph& graph_;
  Inference& inference_;
  const GradientRequest& request_;
  std::vector<bool> active_;                            // on a way from a trained value to the loss
  std::vector<std::vector<ValueId>> contributions_;     // by value
  std::unordered_map<ValueId, NodeId> contributor_;     // the forward node that contributed last
  std::unordered_map<std::string, ValueId> constants_;  // by dtype, dims and bytes
  std::vector<NodeId> forwardOrder_;
  std::vector<NodeId> unclaimed_;  // emitted, and not yet said for the gradient of which input
};

const Node& Context::node() const { return builder_.graph_.node(node_); }

ValueId Context::ensureOutput(std::size_t i) {
  const Node& node = builder_.graph_.node(node_);
  if (node.output(i)) return node.output(i);
  const std::string name = fmt::format("{}_out{}", node.name, i);
  const ValueId out = builder_.graph_.addOutput(node_, name, i);
  if (const Status status = builder_.inference_.inferNode(node_); !status && firstError) firstError = status;
  return out;
}

ValueId Context::dy(std::size_t i) const {
  const ValueId out = node().output(i);
  if (!out || at(out) >= builder_.contributions_.size() || builder_.contributions_[at(out)].empty()) return {};
  return builder_.contributions_[at(out)].front();  // already summed when the node is differentiated
}

ValueId Context::dyOrZeros(std::size_t i) {
  if (const ValueId gradient = dy(i)) return gradient;
  return zerosLike(y(i));
}

bool Context::needs(std::size_t i) const {
  const Node& n = node();
  const ValueId in = n.input(i);
  if (!in || !builder_.active_[at(in)]) return false;
  for (std::size_t o = 0; o < n.outputs.size(); ++o)
    if (n.outputs[o] && dy(o) && differentiableEdge(builder_.graph_, n, i, o, builder_.inference_.ops())) return true;
  return false;
}

void Context::setGradient(std::size_t i, ValueId gradient) {
  if (gradient && needs(i))
    if (const Status status = builder_.contribute(node(), x(i), gradient); !status && firstError) firstError = status;
  claim(i);
}

void Context::claim(std::size_t i) {
  const Births& births = builder_.graph_.births();
  const auto at = static_cast<std::size_t>(node_.index);
  const bool changed = at < births.ops.size() && !births.ops[at].empty() && births.ops[at].view() != node().op;
  for (const NodeId id : builder_.unclaimed_)
    builder_.graph_.mutableNode(id).origin = {.kind = Origin::Kind::kGradient,
                                              .input = static_cast<std::int16_t>(i),
                                              .ordinal = claimed_[i]++,
                                              .node = node_,
                                              .detail = changed ? InternedText(node().op) : InternedText()};
  builder_.unclaimed_.clear();
}

const ValueType& Context::typeOf(ValueId v) const { return builder_.graph_.value(v).type; }
const Tensor* Context::constant(ValueId v) const { return v ? builder_.inference_.constant(v) : nullptr; }

std::vector<ValueId> Context::emit(std::string_view domain, std::string_view op, std::vector<ValueId> inputs,
                                   std::size_t outputs, Attributes attrs) {
  const std::vector<Predicate> predicates = node().predicates;
  auto emitted = builder_.emitNode(node(), predicates, domain, op, std::move(inputs), outputs, std::move(attrs));
  if (!emitted) {
    if (firstError) firstError = tl::make_unexpected(emitted.error());
    // The rule goes on with values of unknown type; the error is reported when it returns.
    return std::vector<ValueId>(outputs, builder_.graph_.addValue("failed_gradient", {}, ValueRole::kConstant));
  }
  return builder_.graph_.node(*emitted).outputs;
}

ValueId Context::replayed(ValueId value, ValueId placeholder, ValueId instead) {
  const Graph& graph = builder_.graph_;
  const auto producer = [&](ValueId id) -> const Node* {
    const NodeId node = graph.value(id).producer;
    return node ? &graph.node(node) : nullptr;
  };
  // Casts may have come between the stand-in and its readers.
  for (const Node* node = producer(placeholder); node && node->op == "Cast"; node = producer(placeholder))
    placeholder = node->input(0);
  instead = castLike(instead, placeholder);
  std::unordered_set<ValueId> dependent{placeholder};
  std::vector<NodeId> nodes;
  for (const NodeId id : builder_.forwardOrder_) {
    if (id == node_) break;
    const Node& node = graph.node(id);
    if (std::ranges::none_of(node.inputs, [&](ValueId in) { return in && dependent.contains(in); })) continue;
    nodes.push_back(id);
    for (const ValueId out : node.outputs)
      if (out) dependent.insert(out);
  }
  std::unordered_set<ValueId> wanted{value};
  std::vector<NodeId> needed;  // the last one first
  for (std::size_t k = nodes.size(); k-- > 0;) {
    const Node& node = graph.node(nodes[k]);
    if (std::ranges::none_of(node.outputs, [&](ValueId out) { return out && wanted.contains(out); })) continue;
    needed.push_back(nodes[k]);
    wanted.insert(node.inputs.begin(), node.inputs.end());
  }
  std::unordered_map<ValueId, ValueId> made{{placeholder, instead}};
  const auto now = [&](ValueId id) {
    const auto it = made.find(id);
    return it == made.end() ? id : it->second;
  };
  for (std::size_t k = needed.size(); k-- > 0;) {
    const Node node = graph.node(needed[k]);
    std::vector<ValueId> inputs;
    for (const ValueId in : node.inputs) inputs.push_back(now(in));
    const auto outputs = emit(node.domain, node.op, std::move(inputs), node.outputs.size(), node.attrs);
    for (std::size_t o = 0; o < outputs.size(); ++o)
      if (node.outputs[o]) made[node.outputs[o]] = outputs[o];
  }
  return now(value);
}

ValueId Context::constantTensor(Tensor data) { return builder_.shareConstant(std::move(data)); }

ValueId Builder::shareConstant(Tensor data) {
  std::string key = fmt::format("{}{}:", dtypeName(data.dtype()), dimsText(data.dims()));
  key.append(static_cast<const char*>(data.data()), data.bytes());
  if (const auto it = constants_.find(key); it != constants_.end()) return it->second;
  const ValueId id = graph_.addConstant("gradient_constant", std::move(data));
  constants_.emplace(std::move(key), id);
  return id;
}

Result<NodeId> Builder::emitNode(const Node& forward, const std::vector<Predicate>& predicates, std::string_view domain,
                                 std::string_view op, std::vector<ValueId> inputs, std::size_t outputs, Attributes attrs) {
  const std::string name = fmt::format("{}_Grad/{}", forward.name, op);
  const Provenance provenance = forward.provenance;
  const NodeId forwardId = forward.id;  // `forward` may move when the graph grows
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs; ++i) names.push_back(fmt::format("{}_out{}", name, i));
  const NodeId id =
      graph_.addNode(name, std::string(domain), std::string(op), std::move(inputs), std::move(names), std::move(attrs));
  Node& node = graph_.mutableNode(id);
  node.phase = Phase::kBackward;
  node.sinceVersion = kInternalOpset;
  node.predicates = predicates;
  node.provenance = provenance;
  node.provenance.sources = {forwardId};
  node.provenance.forward = forwardId;
  node.provenance.pass = graph_.pass();
  contributions_.resize(graph_.valueCapacity());
  unclaimed_.push_back(id);
  SS_TRY(inference_.inferNode(id));
  return id;
}

std::vector<Predicate> Builder::predicatesOf(ValueId value) const {
  const NodeId producer = graph_.value(value).producer;
  return producer ? graph_.node(producer).predicates.get() : std::vector<Predicate>{};
}

// The extents of a value, for the zeros that stand for its gradient; computed where the value is. Nothing where those of
// what arrives are known to be the same.
Result<ValueId> Builder::shapeOf(const Node& forward, ValueId value, ValueId gradient) {
  const auto& shape = graph_.value(value).type.shape;
  const auto dims = shape ? knownDims(*shape) : std::nullopt;
  if (dims && graph_.value(gradient).type.shape == shape) return ValueId{};
  if (dims) return shareConstant(Tensor::ints(*dims));
  SS_ASSIGN(const NodeId node, emitNode(forward, predicatesOf(value), "", "Shape", {value}, 1, {}));
  return graph_.node(node).output(0);
}

Status Builder::contribute(const Node& from, ValueId value, ValueId gradient) {
  // A gradient that leaves a branch of If is zero when the branch did not run.
  const std::vector<Predicate> inside = from.predicates, outside = predicatesOf(value);
  const NodeId fromId = from.id;
  ValueId shape;
  if (inside.size() > outside.size()) {
    SS_ASSIGN(shape, shapeOf(graph_.node(fromId), value, gradient));
  }
  if (from.domain == kInternalDomain && from.op == "Select") {
    SS_ASSIGN(const ValueId zeros, shapeOf(graph_.node(fromId), value, gradient));
    if (zeros) {  // the Gate of the rule with one input more, which has to stand before it
      const Node gate = graph_.node(graph_.value(gradient).producer);
      std::erase(unclaimed_, gate.id);
      graph_.removeNode(gate.id);
      SS_ASSIGN(const NodeId made, emitNode(graph_.node(fromId), gate.predicates, kInternalDomain, "Gate",
                                            {gate.input(0), gate.input(1), zeros}, 1, gate.attrs));
      gradient = graph_.node(made).output(0);
    }
  }
  for (std::size_t level = inside.size(); level > outside.size(); --level) {
    const Predicate& predicate = inside[level - 1];
    const std::vector<Predicate> rest(inside.begin(), inside.begin() + static_cast<std::ptrdiff_t>(level - 1));
    SS_ASSIGN(const NodeId gate, emitNode(graph_.node(fromId), rest, kInternalDomain, "Gate",
                                          shape ? std::vector{predicate.condition, gradient, shape}
                                                : std::vector{predicate.condition, gradient},
                                          1, {{"expected", std::int64_t{predicate.expected}}}));
    gradient = graph_.node(gate).output(0);
  }
  // A gradient is shaped like its value. What arrives from an If whose branches differ in rank does not know that.
  if (const auto& known = graph_.value(value).type.shape; known && !graph_.value(gradient).type.shape)
    graph_.mutableValue(gradient).type.shape = known;
  contributions_.resize(graph_.valueCapacity());
  contributions_[at(value)].push_back(gradient);
  contributor_[value] = fromId;
  return {};
}

Result<ValueId> Builder::gradientOf(ValueId value) {
  contributions_.resize(graph_.valueCapacity());
  auto& parts = contributions_[at(value)];
  if (parts.empty()) return ValueId{};
  if (parts.size() > 1) {
    const NodeId producer = graph_.value(value).producer;
    // The sum belongs to the node that made the value; for a parameter, to the forward node of the gradient that came last.
    // That gradient may be a constant: the seed of the loss, handed on by a sum.
    const NodeId last = graph_.value(parts.back()).producer;
    const NodeId owner = producer ? producer : last ? graph_.node(last).provenance.forward : contributor_.at(value);
    const auto predicates = predicatesOf(value);
    const std::vector<ValueId> inputs = parts;
    SS_ASSIGN(const NodeId sum,
              emitNode(graph_.node(owner), predicates, "", inputs.size() == 2 ? "Add" : "Sum", inputs, 1, {}));
    contributions_[at(value)] = {graph_.node(sum).output(0)};
    unclaimed_.pop_back();
    graph_.mutableNode(sum).origin = {.kind = Origin::Kind::kSum, .value = value};
  }
  return contributions_[at(value)].front();
}

Result<ValueId> Builder::scaledSeed(ValueId seed, const std::string& name) {
  const NodeId owner = graph_.value(request_.loss).producer;
  if (!owner) return invalid(fmt::format("loss '{}': no node makes it; expected the output of one", name));
  const auto scaleStep = [&](std::string_view op, std::vector<ValueId> inputs, Attributes attrs) -> Result<ValueId> {
    SS_ASSIGN(const NodeId made, emitNode(graph_.node(owner), {}, "", op, std::move(inputs), 1, std::move(attrs)));
    unclaimed_.pop_back();
    graph_.mutableNode(made).origin = {.kind = Origin::Kind::kRoot, .detail = InternedText(fmt::format("{}/{}", name, op))};
    return graph_.node(made).output(0);
  };
  ValueId scale = request_.scale;
  const DType dtype = graph_.value(seed).type.dtype;
  if (dtype != graph_.value(scale).type.dtype) {
    SS_ASSIGN(scale, scaleStep("Cast", {scale}, {{"to", static_cast<std::int64_t>(dtype)}}));
  }
  SS_ASSIGN(const ValueId scaled, scaleStep("Mul", {seed, scale}, {}));
  graph_.renameValue(scaled, name);
  return scaled;
}

Status Builder::differentiate(NodeId id) {
  bool any = false;
  for (std::size_t o = 0; o < graph_.node(id).outputs.size(); ++o) {
    const ValueId out = graph_.node(id).outputs[o];
    if (!out || !active_[at(out)] || at(out) >= contributions_.size() || contributions_[at(out)].empty()) continue;
    SS_ASSIGN(const ValueId gradient, gradientOf(out));
    graph_.gradients.edit().push_back({out, gradient});
    const Value& g = graph_.value(gradient);
    if (g.role == ValueRole::kNodeOutput && graph_.node(g.producer).phase == Phase::kBackward)
      graph_.renameValue(gradient, graph_.value(out).name + "_grad");
    any = true;
  }
  if (!any) return {};
  const Node& node = graph_.node(id);
  const OpDef* op = inference_.ops().find(node);
  if (!op || !op->gradient) return {};
  Context context(*this, id, *op);
  SS_TRY(op->gradient(context));
  context.claim(0);  // what no gradient followed
  return context.firstError;
}

// The gradients that the model wrote down stand in the backward phase now.
void Builder::dropStandIns() {
  for (const NodeId id : std::vector<NodeId>(graph_.order())) {
    const Node& node = graph_.node(id);
    if (node.domain != kInternalDomain || node.op != "CustomGradient") continue;
    for (std::size_t i = node.inputs.size(); i-- > 1;) graph_.setInput(id, i, {});
  }
}

// The seed is typed and shaped like the loss.
Status Builder::seedLoss() {
  const ValueType lossType = graph_.value(request_.loss).type;
  Dims seedDims(lossType.shape ? lossType.shape->size() : 0, 1);
  Tensor one(lossType.dtype, seedDims);
  storeElement(one.view(), 0, request_.seed);
  const std::string seedName = graph_.value(request_.loss).name + "_grad";
  ValueId seed = graph_.addConstant(request_.scale ? seedName + "/unscaled" : seedName, std::move(one));
  if (request_.scale) {
    SS_ASSIGN(seed, scaledSeed(seed, seedName));
  }
  contributions_.resize(graph_.valueCapacity());
  contributions_[at(request_.loss)].push_back(seed);
  return {};
}

void Builder::seedOuter() {
  contributions_.resize(graph_.valueCapacity());
  for (const auto& [value, gradient] : request_.outer) {
    contributions_[at(value)].push_back(gradient);
    contributor_[value] = graph_.value(request_.loss).producer;
  }
}

Result<GradientReport> Builder::build() {
  const OpRegistry& ops = inference_.ops();
  const std::vector<bool> forward = forwardReach(graph_, request_.trained, ops),
                          backward = backwardReach(graph_, request_.loss, ops);
  active_.resize(graph_.valueCapacity());
  for (std::size_t i = 0; i < active_.size(); ++i) active_[i] = forward[i] && backward[i];
  GradientReport report;
  report.cuts = cutEdges(graph_, forward, backward, request_.trained, ops);
  contributions_.resize(graph_.valueCapacity());
  if (request_.outer.empty())
    SS_TRY(seedLoss());
  else
    seedOuter();

  forwardOrder_ = graph_.order();
  for (std::size_t k = forwardOrder_.size(); k-- > 0;) {
    SS_TRY(request_.cancel.check("gradient"));
    active_.resize(graph_.valueCapacity(), false);
    SS_TRY(differentiate(forwardOrder_[k]));
  }
  dropStandIns();
  for (const ValueId trained : request_.trained) {
    SS_ASSIGN(const ValueId gradient, gradientOf(trained));
    if (gradient) graph_.gradients.edit().push_back({trained, gradient});
    if (gradient && graph_.value(gradient).role == ValueRole::kNodeOutput)
      graph_.renameValue(gradient, graph_.value(trained).name + "_grad");
    report.gradients.push_back(gradient);
  }
  graph_.recordBirths();
  return report;
}

}  // namespace

Result<GradientReport> buildGradient(Graph& graph, Inference& inference, const GradientRequest& request) {
  return Builder(graph, inference, request).build();
}

}  // namespace stepscope
