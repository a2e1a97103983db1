#include "engine/passes/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "engine/ir/said_by.h"
#include "kernels/kernel.h"

namespace stepscope {
namespace {

// `resolve` of each of its dims; the same memory where that changes none.
template <typename Resolve>
SharedShape resolved(const SharedShape& shape, Resolve&& resolve) {
  if (!shape) return shape;
  Shape dims = *shape;
  for (Dim& dim : dims) dim = resolve(dim);
  return dims == *shape ? shape : SharedShape(std::move(dims));
}

constexpr std::size_t kMaxContents = 1024;

// Fresh symbols contain a '#': no exporter writes one into a dim_param, so named symbols win over them.
bool isFresh(const std::string& symbol) { return symbol.find('#') != std::string::npos; }

bool holdsInts(const ValueType& type) { return isInteger(type.dtype) || type.dtype == DType::kBool; }

}  // namespace

class InferShapeContext final : public ShapeContext {
 public:
  InferShapeContext(Inference& inference, const Node& node, const OpDef& op)
      : ShapeContext(node, op), inference_(inference) {}

  const ValueType& inputType(std::size_t i) const override {
    static const ValueType absent;
    const ValueId id = node().input(i);
    return id ? inference_.graph_->value(id).type : absent;
  }
  const Tensor* constant(std::size_t i) const override { return inference_.shapeConstant(node().input(i)); }
  std::optional<Contents> contents(std::size_t i) const override {
    const ValueId id = node().input(i);
    return id ? inference_.contents(id) : std::nullopt;
  }
  void setOutputType(std::size_t i, ValueType type) override {
    if (const ValueId id = node().output(i)) {
      type.shape = resolved(type.shape, [&](const Dim& dim) { return inference_.resolve(dim); });
      inference_.setType(id, std::move(type));
    }
  }
  void setContents(std::size_t i, Contents contents) override {
    const ValueId id = node().output(i);
    if (id && contents.size() <= kMaxContents) inference_.facts(id).contents = std::move(contents);
  }
  Dim freshDim(std::size_t output, std::size_t axis) override {
    return Dim::symbol(fmt::format("{}#{}.{}", node().name, output, axis));
  }
  Status unify(const Dim& a, const Dim& b, std::string_view what) override {
    if (inference_.unify(a, b)) return {};
    return error(fmt::format("{}: {} and {} differ", what, a.text(), b.text()));
  }

 private:
  Inference& inference_;
};

Inference::Inference(Graph& graph, const Operators& operators, InferOptions options)
    : graph_(&graph), operators_(&operators), options_(options) {}

const Inference::Facts& Inference::knownFacts(ValueId id) const {
  static const Facts none;
  const auto it = facts_.find(id);
  return it == facts_.end() ? none : it->second;
}

// A value that other graphs share is left to them where nothing new was found out.
void Inference::setType(ValueId id, ValueType type) {
  if (!(graph_->value(id).type == type)) graph_->mutableValue(id).type = std::move(type);
}

// A buffer that the step writes is no constant, whatever its type.
static bool isWritten(const Graph& graph, ValueId id) {
  return std::ranges::any_of(graph.stateUpdates, [&](const StateUpdate& update) { return update.state == id; });
}

std::shared_ptr<const Tensor> Inference::sharedConstant(ValueId id) const {
  if (!id) return nullptr;
  const Value& value = graph_->value(id);
  if (value.role == ValueRole::kConstant) return value.data.inMemory();
  if (value.role == ValueRole::kInitializer)
    return isFloating(value.type.dtype) || isWritten(*graph_, id) ? nullptr : value.data.inMemory();
  return knownFacts(id).constant;
}

const Tensor* Inference::constant(ValueId id) const { return sharedConstant(id).get(); }

const Tensor* Inference::shapeConstant(ValueId id) const {
  if (!id) return nullptr;
  const Value& value = graph_->value(id);
  if (value.role == ValueRole::kInitializer && !isWritten(*graph_, id))
    if (const auto contents = value.data.inMemory()) return contents.get();
  return constant(id);
}

std::optional<Contents> Inference::contents(ValueId id) const {
  if (const std::optional<Contents>& known = knownFacts(id).contents) {
    Contents resolved = *known;
    for (Dim& dim : resolved) dim = resolve(dim);
    return resolved;
  }
  const Tensor* tensor = constant(id);
  if (!tensor || !holdsInts(graph_->value(id).type) || tensor->dims().size() > 1 ||
      tensor->elements() > static_cast<std::int64_t>(kMaxContents))
    return std::nullopt;
  const auto numbers = intElements(tensor->view());
  return Contents(numbers.begin(), numbers.end());
}

std::optional<std::vector<std::int64_t>> Inference::integers(ValueId id) const {
  if (!id) return std::nullopt;
  if (const Tensor* tensor = constant(id); tensor && holdsInts(graph_->value(id).type)) return intElements(tensor->view());
  if (const auto known = contents(id)) return knownDims(*known);
  return std::nullopt;
}

Dim Inference::resolve(const Dim& dim) const {
  if (dim.known() || substitutions_.empty()) return dim;
  Dim result = dim;
  for (int round = 0; round < 8; ++round) {
    Dim next = result.substitute(substitutions_);
    if (next == result) break;
    result = std::move(next);
  }
  return result;
}

bool Inference::unify(const Dim& left, const Dim& right) {
  const Dim a = resolve(left), b = resolve(right);
  if (a == b) return true;
  if (a.known() && b.known()) return false;
  const auto sa = a.asSymbol(), sb = b.asSymbol();
  const auto mentions = [](const Dim& dim, const std::string& symbol) {
    return !(dim.substitute({{symbol, Dim(0)}}) == dim);
  };
  if (sa && isFresh(*sa) && !mentions(b, *sa))
    substitutions_[*sa] = b;
  else if (sb && isFresh(*sb) && !mentions(a, *sb))
    substitutions_[*sb] = a;
  // Two named symbols, or expressions: assumed equal here; the numbers of a batch decide at `specialise`.
  return true;
}

void Inference::applySubstitutions() {
  if (substitutions_.empty()) return;
  for (const NodeId id : graph_->order())
    for (const ValueId out : graph_->node(id).outputs) {
      if (!out) continue;
      ValueType type = graph_->value(out).type;
      if (!type.shape) continue;
      type.shape = resolved(type.shape, [&](const Dim& dim) { return resolve(dim); });
      setType(out, std::move(type));
    }
}

void Inference::applyDeclared(const Node& node) {
  if (!options_.declared) return;
  for (const ValueId out : node.outputs) {
    if (!out) continue;
    const auto it = options_.declared->find(graph_->value(out).name);
    if (it == options_.declared->end() || !it->second.shape) continue;
    const Shape& declared = *it->second.shape;
    ValueType type = graph_->value(out).type;
    if (!type.shape) {
      if (type.kind == ValueKind::kTensor) type.shape = declared;
    } else if (type.shape->size() == declared.size()) {
      for (std::size_t i = 0; i < declared.size(); ++i) {
        const auto symbol = (*type.shape)[i].asSymbol();
        if (symbol && isFresh(*symbol)) unify((*type.shape)[i], declared[i]);
      }
      type.shape = resolved(type.shape, [&](const Dim& dim) { return resolve(dim); });
    }
    setType(out, std::move(type));
  }
}

namespace {

// In no branch of If, or in one whose condition is known to hold.
bool surelyRuns(const Inference& inference, const Node& node) {
  return std::all_of(node.predicates.begin(), node.predicates.end(), [&](const Predicate& predicate) {
    const Tensor* condition = inference.constant(predicate.condition);
    return condition && condition->elements() == 1 && (elementAsInt(condition->view(), 0) != 0) == predicate.expected;
  });
}

}  // namespace

Status Inference::inferNode(NodeId id) {
  const Node& node = graph_->node(id);
  const OpDef* op = ops().find(node);
  if (op == nullptr || op->inferShape == nullptr) {
    // Unknown ops are reported by the coverage check; here their outputs simply stay unknown.
    return {};
  }
  for (const ValueId out : node.outputs)
    if (out) facts_.erase(out);
  // Nothing follows from a value of which nothing is known: what a loop gives before it is unrolled, or an unknown op.
  for (const ValueId in : node.inputs) {
    if (!in) continue;
    const ValueType& type = graph_->value(in).type;
    if (type.kind == ValueKind::kTensor && type.dtype == DType::kUndefined && !type.shape) return {};
  }
  InferShapeContext context(*this, node, *op);
  if (const Status status = op->inferShape(context); !status) {
    // A branch of If may be ill-formed for the shapes at hand, as long as it is not the one that runs.
    return surelyRuns(*this, node) ? status : Status();
  }
  if (node.domain == kInternalDomain && node.op == "Select") {
    if (const Tensor* condition = constant(node.input(0))) {
      const ValueId chosen = node.input(elementAsInt(condition->view(), 0) != 0 ? 1 : 2);
      setType(node.output(0), graph_->value(chosen).type);
    }
  }
  applyDeclared(node);
  return evaluate(node);
}

Status Inference::evaluate(const Node& node) {
  const OpDef* op = ops().find(node);
  if (op->random || op->sequences || op->sideEffect != SideEffect::kNone) return {};
  if (node.domain == kInternalDomain && node.op == "GradientOf") return {};  // what it stands for is not known
  if (node.op == "Constant" && node.domain.empty()) {
    if (const Tensor* value = node.attrs.tensor("value")) {
      facts(node.output(0)).constant = std::make_shared<const Tensor>(*value);
      return {};
    }
  }
  // Contents that came out as numbers are a constant, whatever the inputs were.
  for (const ValueId out : node.outputs) {
    if (!out || !knownFacts(out).contents) continue;
    const auto numbers = knownDims(*knownFacts(out).contents);
    const ValueType& type = graph_->value(out).type;
    if (!numbers || !type.shape || type.shape->size() > 1 || !holdsInts(type)) continue;
    Tensor tensor(type.dtype, type.shape->empty() ? Dims{} : Dims{static_cast<std::int64_t>(numbers->size())});
    if (tensor.elements() != static_cast<std::int64_t>(numbers->size())) continue;
    tensor =
        convertTensor(Tensor::of<std::int64_t>(tensor.dims(), std::span<const std::int64_t>(*numbers)).view(), type.dtype);
    facts(out).constant = std::make_shared<const Tensor>(std::move(tensor));
  }
  if (node.output(0) && knownFacts(node.output(0)).constant && node.outputs.size() == 1) return {};

  KernelSpec spec;
  spec.domain = node.domain;
  spec.op = node.op;
  spec.attrs = node.attrs;
  std::vector<TensorView> inputs;
  std::span<const ValueId> read = node.inputs;
  if (node.op == "CastLike" && node.domain.empty() && node.output(0)) {  // of the second input only the type counts
    spec.op = "Cast";
    spec.attrs.set("to", static_cast<std::int64_t>(graph_->value(node.output(0)).type.dtype));
    read = read.first(1);
  }
  for (const ValueId in : read) {
    if (!in) {
      spec.inputs.push_back({});
      inputs.push_back({});
      continue;
    }
    const Tensor* tensor = constant(in);
    if (!tensor || tensor->elements() > options_.foldElements) return {};
    spec.inputs.push_back({tensor->dtype(), tensor->dims(), false, *tensor});
    inputs.push_back(tensor->view());
  }
  std::vector<Tensor> outputs;
  for (const ValueId out : node.outputs) {
    if (!out) {
      spec.outputs.push_back({});
      outputs.emplace_back();
      continue;
    }
    const ValueType& type = graph_->value(out).type;
    if (type.kind != ValueKind::kTensor || type.dtype == DType::kUndefined || !type.shape) return {};
    const auto dims = knownDims(*type.shape);
    if (!dims && !op->dataDependentShape) return {};
    if (op->dataDependentShape) {
      spec.outputs.push_back({type.dtype, {}, true, {}});
      outputs.emplace_back();
      continue;
    }
    const auto count = checkedElementCount(*dims);
    if (!count || *count > options_.foldElements) return {};
    spec.outputs.push_back({type.dtype, *dims, false, {}});
    outputs.emplace_back(type.dtype, *dims);
  }
  auto kernel = kernels().make(kReferenceDevice, spec);
  if (!kernel) {
    if (kernel.error().code == ErrorCode::kUnsupported) return {};
    return tl::make_unexpected(saidBy(node, Error{ErrorCode::kInvalidArgument, kernel.error().message}));
  }
  std::vector<TensorView> views;
  for (const Tensor& tensor : outputs) views.push_back(tensor.view());
  std::vector<std::byte> workspace((*kernel)->workspaceBytes() + 64);
  const auto aligned = (64 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 64) % 64;
  KernelCall call{inputs, views, std::span(workspace).subspan(aligned), {}, {}};
  call.allocate = [&](std::size_t i, Dims dims) -> Status {
    SS_TRY(checkedElementCount(dims));
    outputs[i] = Tensor(spec.outputs[i].dtype, std::move(dims));
    views[i] = outputs[i].view();
    return {};
  };
  if (const Status status = (*kernel)->run(call); !status) {
    if (!node.predicates.empty()) return {};
    return tl::make_unexpected(saidBy(node, Error{ErrorCode::kInvalidArgument, status.error().message}));
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i] || !outputs[i].valid()) continue;
    ValueType type = graph_->value(node.outputs[i]).type;
    type.shape = shapeOf(outputs[i].dims());
    setType(node.outputs[i], std::move(type));
    facts(node.outputs[i]).constant = std::make_shared<const Tensor>(std::move(outputs[i]));
  }
  return {};
}

Status Inference::run(const Cancel& cancel) {
  facts_.clear();
  for (const NodeId id : graph_->order()) {
    SS_TRY(cancel.check("infer"));
    SS_TRY(inferNode(id));
  }
  applySubstitutions();
  inferred_ = graph_->version();
  return {};
}

}  // namespace stepscope
