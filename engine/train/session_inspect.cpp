// What the file is.
#include <algorithm>
#include <map>

#include "engine/build/attach_loss.h"
#include "engine/build/input_role.h"
#include "engine/snapshot/utf8.h"
#include "engine/train/proposed_data.h"
#include "engine/train/session.h"

namespace stepscope {
namespace {

snapshot::InputInfo::Kind kindOf(InputRole::Kind kind) {
  switch (kind) {
    case InputRole::Kind::kTokens: return snapshot::InputInfo::TOKENS;
    case InputRole::Kind::kLabels: return snapshot::InputInfo::LABELS;
    case InputRole::Kind::kMask: return snapshot::InputInfo::MASK;
    case InputRole::Kind::kPositions: return snapshot::InputInfo::POSITIONS;
    case InputRole::Kind::kLengths: return snapshot::InputInfo::LENGTHS;
    case InputRole::Kind::kData: break;
  }
  return snapshot::InputInfo::DATA;
}

}  // namespace

snapshot::ModelInfo Session::inspect() const {
  snapshot::ModelInfo info;
  const ImportedModel& model = *plans_.model();
  info.set_path(model.path.string());
  info.set_file_bytes(model.file.fileBytes);
  info.set_producer(toUtf8(model.file.producer));
  info.set_ir_version(model.file.irVersion);
  for (const auto& [domain, version] : model.file.opsets) (*info.mutable_opsets())[domain] = version;
  info.set_node_count(static_cast<int>(plans_.stages().front().graph->order().size()));
  info.set_function_count(static_cast<int>(model.file.functions.size()));
  const auto addInput = [&](snapshot::InputInfo& i, ValueId id, bool withRole) {
    const Value& value = model.graph.value(id);
    i.set_name(toUtf8(value.name));
    i.set_dtype(std::string(dtypeName(value.type.dtype)));
    if (value.type.shape)
      for (const Dim& dim : *value.type.shape) i.add_dims(dim.text());
    if (!withRole) return;
    const InputRole role = inferRole(model.graph, id);
    i.set_role(role.text);
    i.set_kind(kindOf(role.kind));
    i.set_reason(toUtf8(role.reason));
  };
  for (const ValueId id : model.graph.inputs()) addInput(*info.add_inputs(), id, true);
  for (const ValueId id : model.graph.outputs()) {
    addInput(*info.add_outputs(), id, false);
    const ValueType& type = model.graph.value(id).type;
    if (isFloating(type.dtype) && (!type.shape || !type.shape->empty()))
      info.add_loss_candidates(toUtf8(model.graph.value(id).name));
  }
  const LossChoice loss = proposeLoss(model.graph);
  if (loss.loss) info.set_proposed_loss(model.graph.value(loss.loss).name);
  info.set_loss_reason(loss.reason);
  std::vector<ParameterChoice> choices = plans_.parameters();
  // Without a loss among the outputs: what a loss attached to the chosen output, or the first that could have one, would
  // train.
  ValueId aim = loss.loss;
  if (!aim && !options_.logits.empty()) aim = model.graph.findValue(options_.logits);
  if (!aim && info.loss_candidates_size() > 0)
    for (const ValueId id : model.graph.outputs())
      if (!aim && toUtf8(model.graph.value(id).name) == info.loss_candidates(0)) aim = id;
  if (choices.empty() && aim)
    if (auto chosen = chooseTrained(model.graph, aim, options_, registry().operators().ops)) choices = std::move(*chosen);
  std::map<ValueId, const ParameterChoice*> reasons;
  for (const ParameterChoice& choice : choices) reasons[choice.value] = &choice;
  std::int64_t elements = 0;
  for (std::size_t k = 0; k < model.graph.valueCapacity(); ++k) {
    const Value& value = model.graph.value({static_cast<std::int32_t>(k)});
    if (!model.graph.alive(value.id) || value.role != ValueRole::kInitializer) continue;
    auto& p = *info.add_parameters();
    p.set_name(toUtf8(value.name));
    p.set_dtype(std::string(dtypeName(value.type.dtype)));
    std::int64_t count = 1;
    if (value.type.shape)
      for (const Dim& dim : *value.type.shape) {
        p.add_dims(dim.known() ? dim.value() : -1);
        count *= dim.known() ? dim.value() : 0;
      }
    p.set_bytes(count * static_cast<std::int64_t>(dtypeSize(value.type.dtype)));
    if (isFloating(value.type.dtype)) elements += count;
    p.set_missing(std::find(model.file.missingWeights.begin(), model.file.missingWeights.end(), value.name) !=
                  model.file.missingWeights.end());
    if (const auto it = reasons.find(value.id); it != reasons.end()) {
      p.set_trained(it->second->trained);
      p.set_reason(it->second->reason);
    }
  }
  info.set_parameter_count(elements);
  for (const auto& file : model.file.externalFiles) info.add_external_files(toUtf8(file.string()));
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const NodeId id : model.graph.order()) ++counts[{model.graph.node(id).domain, model.graph.node(id).op}];
  const Operators& operators = registry().operators();
  for (const auto& [key, count] : counts) {
    auto& c = *info.add_ops();
    const OpDef* op = operators.ops.find(key.first, key.second);
    c.set_domain(toUtf8(key.first));
    c.set_op(toUtf8(key.second));
    c.set_count(count);
    c.set_has_gradient(op && op->gradient);
    c.set_has_kernel(operators.kernels.has(kReferenceDevice, key.first, key.second));
    c.set_has_fast_kernel((op && op->view) || operators.kernels.has("cpu", key.first, key.second));
    if (!op)
      c.set_note("unknown operator: no shape rule, gradient or kernel");
    else if (!op->gradient)
      c.set_note(std::string(op->noGradientReason));
    else if (op->view)
      c.set_note("a view of its input: no kernel runs");
  }
  for (const snapshot::Alert& alert : alerts()) *info.add_alerts() = alert;
  const ProposedData data = proposeData(model.path, model.graph);
  info.set_proposed_data(toUtf8(data.path));
  info.set_data_reason(toUtf8(data.reason));
  for (const DimChoice& choice : feed_.dimensions(model, options_)) {
    auto& dimension = *info.add_dimensions();
    dimension.set_name(toUtf8(choice.name));
    dimension.set_extent(choice.extent);
    dimension.set_reason(toUtf8(choice.reason));
    dimension.set_fixed(choice.fixed);
  }
  return info;
}

}  // namespace stepscope
