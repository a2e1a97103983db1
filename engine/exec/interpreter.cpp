#include "engine/exec/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ir/said_by.h"

namespace stepscope {
namespace {
// Values are computed here, so inference folds nothing but what its rules propagate.
constexpr std::int64_t kFoldNothing = -1;
}  // namespace

Interpreter::Interpreter(const Graph& graph, const Operators& operators, Backend backend, RandomKey key, int threads)
    : graph_(graph),
      inference_(graph_, operators, {.foldElements = kFoldNothing}),
      backend_(backend),
      key_(key),
      threads_(threads) {
  values_.resize(graph_.valueCapacity());
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Value& value = graph_.value({static_cast<std::int32_t>(i)});
    if (!graph_.alive(value.id) || !value.data) continue;
    values_[i] = value.data.inMemory();
    if (auto again = values_[i] ? Result<Tensor>(Tensor()) : value.data.read(); again && !values_[i])
      values_[i] = std::make_shared<const Tensor>(std::move(*again));
  }
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (values_[i]) inference_.setConstant({static_cast<std::int32_t>(i)}, values_[i]);
}

Status Interpreter::feed(ValueId id, Tensor tensor) {
  Value& value = graph_.mutableValue(id);
  if (value.type.dtype != DType::kUndefined && value.type.dtype != tensor.dtype())
    return invalid(fmt::format("input '{}': found {}; expected {}", value.name, dtypeName(tensor.dtype()),
                               dtypeName(value.type.dtype)));
  value.type = {ValueKind::kTensor, tensor.dtype(), shapeOf(tensor.dims())};
  values_[at(id)] = std::make_shared<const Tensor>(std::move(tensor));
  inference_.setConstant(id, values_[at(id)]);
  return {};
}

const Tensor* Interpreter::value(ValueId id) const { return id ? values_[at(id)].get() : nullptr; }

Status Interpreter::run() {
  for (const NodeId id : graph_.order()) SS_TRY(runNode(graph_.node(id)));
  return {};
}

Status Interpreter::runNode(const Node& node) {
  for (const Predicate& predicate : node.predicates) {
    const Tensor* condition = value(predicate.condition);
    if (!condition || (elementAsInt(condition->view(), 0) != 0) != predicate.expected) return {};
  }
  SS_TRY(inference_.inferNode(node.id));
  const OpDef* op = inference_.ops().find(node);
  KernelSpec spec;
  spec.domain = node.domain;
  spec.op = node.op;
  spec.attrs = node.attrs;
  spec.threads = threads_;
  std::vector<TensorView> inputs, views;
  std::vector<Tensor> outputs;
  for (const ValueId in : node.inputs) {
    const Tensor* tensor = value(in);
    if (in && !tensor &&
        !(node.domain == kInternalDomain && (node.op == "Select" || node.op == "Gate" || node.op == "ConcatTaken")))
      return invalid(
          fmt::format("{}: input '{}' was not computed; feed it or run its branch", node.label(), graph_.value(in).name));
    if (!tensor) {
      // Select, Gate and ConcatTaken do not read what did not run, but its type is known.
      const ValueType type = in ? graph_.value(in).type : ValueType{};
      spec.inputs.push_back({type.dtype, type.shape ? knownDims(*type.shape).value_or(Dims{}) : Dims{}, false, {}});
      inputs.push_back({nullptr, type.dtype, spec.inputs.back().dims});
      continue;
    }
    spec.inputs.push_back({tensor->dtype(), tensor->dims(), false, *tensor});
    inputs.push_back(tensor->view());
  }
  for (const ValueId out : node.outputs) {
    const ValueType& type = out ? graph_.value(out).type : ValueType{};
    if (!out) {
      spec.outputs.push_back({});
      outputs.emplace_back();
      continue;
    }
    if (op && op->dataDependentShape) {
      spec.outputs.push_back({type.dtype, {}, true, {}});
      outputs.emplace_back();
      continue;
    }
    const auto dims = type.shape ? knownDims(*type.shape) : std::nullopt;
    if (!dims || type.dtype == DType::kUndefined)
      return unsupported(
          fmt::format("{}: extents of '{}' are {}; expected numbers", node.label(), graph_.value(out).name, type.text()));
    SS_TRY(checkedElementCount(*dims));
    spec.outputs.push_back({type.dtype, *dims, false, {}});
    outputs.emplace_back(type.dtype, *dims);
  }
  for (const Tensor& tensor : outputs) views.push_back(tensor.view());
  auto kernel = inference_.kernels().make(deviceName(backend_), spec);
  if (!kernel) return tl::make_unexpected(saidBy(node, kernel.error()));
  std::vector<std::byte> workspace((*kernel)->workspaceBytes() + 64);
  const auto offset = (64 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 64) % 64;
  RandomKey key = key_;
  key.node = static_cast<std::uint32_t>(std::max(0, node.provenance.imported.index));
  KernelCall call{inputs, views, std::span(workspace).subspan(offset), key, {}};
  call.allocate = [&](std::size_t i, Dims dims) -> Status {
    SS_TRY(checkedElementCount(dims));
    outputs[i] = Tensor(spec.outputs[i].dtype, std::move(dims));
    views[i] = outputs[i].view();
    return {};
  };
  if (const Status status = (*kernel)->run(call); !status) return tl::make_unexpected(saidBy(node, status.error()));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId out = node.outputs[i];
    if (!out || !outputs[i].valid()) continue;
    graph_.mutableValue(out).type.shape = shapeOf(outputs[i].dims());
    values_[at(out)] = std::make_shared<const Tensor>(std::move(outputs[i]));
    inference_.setConstant(out, values_[at(out)]);
  }
  return {};
}

}  // namespace stepscope
