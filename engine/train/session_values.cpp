// Looking at values and changing them; parameters and optimizer state as named tensors; what the file is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "engine/autodiff/gradient.h"
#include "engine/data/safetensors.h"
#include "engine/train/attach_loss.h"
#include "engine/train/proposed_data.h"
#include "engine/train/session.h"
#include "engine/train/snapshots.h"
#include "engine/train/utf8.h"

namespace stepscope {
namespace {

constexpr std::int64_t kStateVersion = 1;  // of what --save writes; a file without one is of version 1

// Floating types round; integers and bool hold a number or they do not.
bool holdsNumber(DType dtype, double number) {
  if (isFloating(dtype)) return true;
  if (std::trunc(number) != number) return false;  // NaN among them
  if (dtype == DType::kBool) return number == 0 || number == 1;
  const int bits = 8 * static_cast<int>(dtypeSize(dtype)) - (isUnsigned(dtype) ? 0 : 1);
  return number < std::ldexp(1.0, bits) && number >= (isUnsigned(dtype) ? 0.0 : -std::ldexp(1.0, bits));
}

}  // namespace

ValueId Session::findValue(std::string_view name) const {
  return variant_ ? variant_->graph.findValue(name) : imported_.findValue(name);
}

Result<TensorView> Session::value(ValueId id) const {
  if (!variant_) return invalid("value: nothing was built; build first");
  if (!id || static_cast<std::size_t>(id.index) >= variant_->graph.valueCapacity())
    return fail(ErrorCode::kNotFound, fmt::format("value {}: no such value", id.index));
  return contentsAt(*variant_->executor, id, position_);
}

Result<snapshot::TensorData> Session::fetch(ValueId id, const std::vector<std::int64_t>& begin,
                                            const std::vector<std::int64_t>& extent, bool statistics,
                                            std::int64_t limit) const {
  snapshot::TensorData out;
  out.set_value(id.index);
  out.set_step(inStep_ ? state_.step : state_.step - 1);
  if (!variant_ || !id || static_cast<std::size_t>(id.index) >= variant_->graph.valueCapacity())
    return fail(ErrorCode::kNotFound, fmt::format("value {}: no such value", id.index));
  const Value& named = variant_->graph.value(id);
  out.set_name(toUtf8(named.name));
  out.set_dtype(std::string(dtypeName(named.type.dtype)));
  const auto view = value(id);
  if (!view) {
    if (named.type.shape)
      for (const Dim& dim : *named.type.shape) out.add_dims(dim.known() ? dim.value() : -1);
    out.set_unavailable(toUtf8(view.error().message));
    return out;
  }
  out.set_current(inStep_ || named.role != ValueRole::kNodeOutput);
  for (const std::int64_t d : view->dims) out.add_dims(d);
  if (statistics && view->dtype != DType::kString) *out.mutable_statistics() = tensorStatistics(*view);
  SS_TRY(addContents(*view, begin, extent, limit, out));
  return out;
}

Result<Tensor> Session::editable(ValueId id) const {
  SS_ASSIGN(const TensorView view, value(id));
  const Value& named = variant_->graph.value(id);
  if (view.dtype == DType::kString) return unsupported(fmt::format("value '{}': strings cannot be edited", named.name));
  if (named.role == ValueRole::kConstant)
    return unsupported(
        fmt::format("value '{}': a constant of the graph; expected an input, parameter or computed value", named.name));
  return Tensor(view.dtype, view.dims, nullptr, view.data).clone();
}

Status Session::writeValue(ValueId id, const TensorView& contents) {
  undo_.clear();
  // State is put back when the step is thrown away, like everything a step writes.
  const Value& named = variant_->graph.value(id);
  if (inStep_ && (named.role == ValueRole::kInitializer || named.role == ValueRole::kState)) {
    const bool saved = std::any_of(before_.begin(), before_.end(), [&](const auto& entry) { return entry.first == id; });
    if (!saved) before_.emplace_back(id, state_.tensors.at(named.name).clone());
  }
  return variant_->executor->write(id, contents);
}

Status Session::edit(ValueId id, const std::vector<std::int64_t>& index, double number, bool fill) {
  SS_ASSIGN(const Tensor contents, editable(id));
  if (!holdsNumber(contents.dtype(), number))
    return invalid(fmt::format("value '{}': {} is not a number of type {}; expected {}", variant_->graph.value(id).name,
                               number, dtypeName(contents.dtype()),
                               contents.dtype() == DType::kBool ? "0 or 1" : "a whole number that the type can hold"));
  if (fill) {
    for (std::int64_t k = 0; k < contents.elements(); ++k) storeElement(contents.view(), k, number);
  } else {
    if (index.size() != contents.dims().size())
      return invalid(fmt::format("edit: index of rank {}; expected rank {}", index.size(), contents.dims().size()));
    const Dims strides = rowMajorStrides(contents.dims());
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
      if (index[axis] < 0 || index[axis] >= contents.dims()[axis])
        return invalid(
            fmt::format("edit: index {} on axis {}; expected 0..{}", index[axis], axis, contents.dims()[axis] - 1));
      offset += index[axis] * strides[axis];
    }
    storeElement(contents.view(), offset, number);
  }
  return editData(id, contents.view());
}

Status Session::editData(ValueId id, const TensorView& data) {
  SS_ASSIGN(const TensorView view, value(id));
  if (data.dtype != view.dtype || data.dims != view.dims)
    return invalid(fmt::format("edit: found {}{}; expected {}{}", dtypeName(data.dtype), dimsText(data.dims),
                               dtypeName(view.dtype), dimsText(view.dims)));
  SS_TRY(writeValue(id, data));
  if (inStep_) edits_.push_back({position_, id, Tensor(data.dtype, data.dims, nullptr, data.data).clone()});
  return {};
}

Status Session::pin(ValueId id, bool pinned) {
  if (!variant_ || !id || static_cast<std::size_t>(id.index) >= variant_->graph.valueCapacity())
    return fail(ErrorCode::kNotFound, fmt::format("value {}: no such value", id.index));
  const std::string& name = variant_->graph.value(id).name;
  if (pinned)
    pinned_.insert(name);
  else
    pinned_.erase(name);
  return build();
}

Result<Tensor> Session::gradient(const std::string& parameter) const {
  if (!variant_) return invalid("gradient: nothing was built; build first");
  for (std::size_t i = 0; i < trained_.size(); ++i) {
    if (symbolic_.value(trained_[i]).name != parameter) continue;
    const ValueId id = optimizer_.accumulated[i];
    if (!id) {
      // The loss does not depend on it through what ran: its gradient is zero.
      const Tensor& state = state_.tensors.at(parameter);
      return Tensor(state.dtype(), state.dims());
    }
    const TensorView view = variant_->executor->view(id);
    if (!keepGradients_ || !view.data)
      return fail(ErrorCode::kNotFound,
                  fmt::format("gradient of '{}': not kept; ask for gradients before the build", parameter));
    return Tensor(view.dtype, view.dims, nullptr, view.data).clone();
  }
  return fail(ErrorCode::kNotFound, fmt::format("gradient of '{}': not a trained parameter", parameter));
}

std::map<std::string, TensorView> Session::namedState(bool optimizer) const {
  std::map<std::string, TensorView> named;
  for (const ParameterChoice& parameter : parameters_) {
    const Value& value = imported_.value(parameter.value);
    if (!isFloating(value.type.dtype)) continue;
    if (const auto it = state_.tensors.find(value.name); it != state_.tensors.end())
      named[value.name] = it->second.view();
    else if (value.data)
      named[value.name] = value.data->view();
  }
  if (optimizer)
    for (const auto& [name, tensor] : state_.tensors)
      if (tensor.dtype() != DType::kString) named[name] = tensor.view();
  return named;
}

Status Session::saveState(const std::filesystem::path& path) const {
  return writeSafetensors(path, namedState(true),
                          {{"stepscope.version", std::to_string(kStateVersion)},
                           {"stepscope.step", std::to_string(state_.step)},
                           {"stepscope.updates", std::to_string(state_.updates)},
                           {"stepscope.updates_before", std::to_string(state_.updatesBefore)},
                           {"stepscope.micro", std::to_string(state_.micro)}});
}

Status Session::loadState(const std::filesystem::path& path, bool resume) {
  SS_ASSIGN(const auto file, readSafetensors(path));
  SS_TRY(abandonStep());
  std::size_t used = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const ValueId id = imported_.findValue(name);
    const bool parameter = id && imported_.value(id).role == ValueRole::kInitializer;
    if (!parameter && !resume) continue;  // optimizer state of another run
    if (const auto it = state_.tensors.find(name); it != state_.tensors.end()) {
      if (it->second.dtype() != tensor.dtype() || it->second.dims() != tensor.dims())
        return invalid(fmt::format("state '{}': file has {}{}; expected {}{}", name, dtypeName(tensor.dtype()),
                                   dimsText(tensor.dims()), dtypeName(it->second.dtype()), dimsText(it->second.dims())));
      if (tensor.bytes() > 0) std::memcpy(it->second.data(), tensor.data(), tensor.bytes());
      ++used;
      continue;
    }
    if (parameter) {
      const Value& value = imported_.value(id);
      const auto dims = value.type.shape ? knownDims(*value.type.shape) : std::nullopt;
      if (value.type.dtype != tensor.dtype() || (dims && *dims != tensor.dims()))
        return invalid(fmt::format("parameter '{}': file has {}{}; expected {}", name, dtypeName(tensor.dtype()),
                                   dimsText(tensor.dims()), value.type.text()));
    }
    state_.tensors[name] = tensor.clone();
    ++used;
  }
  if (used == 0)
    return fail(ErrorCode::kNotFound,
                fmt::format("state '{}': no tensor has the name of a parameter of the model", path.string()));
  if (resume) {
    const auto number = [&](const char* key, std::int64_t& target) -> Status {
      const auto it = file.metadata.find(key);
      if (it == file.metadata.end())
        return invalid(
            fmt::format("state '{}': no '{}' in its metadata; expected a file written by --save", path.string(), key));
      char* end = nullptr;
      const long long parsed = std::strtoll(it->second.c_str(), &end, 10);
      if (end == it->second.c_str() || *end != 0 || parsed < 0)
        return invalid(fmt::format("state '{}': '{}' is '{}'; expected a number", path.string(), key, it->second));
      target = parsed;
      return {};
    };
    std::int64_t version = kStateVersion;
    if (file.metadata.contains("stepscope.version")) SS_TRY(number("stepscope.version", version));
    if (version > kStateVersion)
      return unsupported(
          fmt::format("state '{}': version {}; this build reads up to {}", path.string(), version, kStateVersion));
    SS_TRY(number("stepscope.step", state_.step));
    SS_TRY(number("stepscope.updates", state_.updates));
    SS_TRY(number("stepscope.micro", state_.micro));
    state_.updatesBefore = 0;
    if (file.metadata.contains("stepscope.updates_before")) SS_TRY(number("stepscope.updates_before", state_.updatesBefore));
  }
  fromFile_.emplace();
  fromFile_->path = path.string();
  fromFile_->optimizer = resume;
  for (const auto& [name, tensor] : file.tensors) fromFile_->names.insert(name);
  if (variant_) tellWhatTheFileLacks();
  ring_.clear();
  ringBytes_ = 0;
  resumed_ = true;
  return {};
}

// What is trained and not in the file keeps the model's contents, and optimizer state begins with zeros: a run that is not
// what its user believes, unless it is told.
void Session::tellWhatTheFileLacks() {
  if (!fromFile_) return;
  const StateFile file = std::move(*fromFile_);
  fromFile_.reset();
  std::vector<std::string> parameters, states;
  for (const ValueId id : trained_)
    if (!file.names.contains(symbolic_.value(id).name)) parameters.push_back(symbolic_.value(id).name);
  if (file.optimizer)
    for (const StateUpdate& update : symbolic_.stateUpdates) {
      const Value& value = symbolic_.value(update.state);
      if (value.role == ValueRole::kState && !file.names.contains(value.name)) states.push_back(value.name);
    }
  const auto tell = [&](const std::vector<std::string>& names, std::string_view what, std::string_view instead) {
    if (names.empty()) return;
    constexpr std::size_t kShown = 3;
    std::string shown;
    for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) shown += fmt::format("{}'{}'", i ? ", " : "", names[i]);
    if (names.size() > kShown) shown += fmt::format(" and {} more", names.size() - kShown);
    snapshot::Alert alert;
    alert.set_severity(snapshot::Alert::WARNING);
    alert.set_code("state_incomplete");
    alert.set_message(toUtf8(fmt::format("state '{}': no {} {}; {}", file.path, what, shown, instead)));
    alert.set_node(-1);
    raise(alert);
  };
  tell(parameters, "parameter", "what the model has is trained from");
  tell(states, "optimizer state", "it begins with zeros");
}

snapshot::ModelInfo Session::inspect() const {
  snapshot::ModelInfo info;
  info.set_path(path_.string());
  info.set_file_bytes(model_.fileBytes);
  info.set_producer(toUtf8(model_.producer));
  info.set_ir_version(model_.irVersion);
  for (const auto& [domain, version] : model_.opsets) (*info.mutable_opsets())[domain] = version;
  info.set_node_count(static_cast<int>(stages_.empty() ? imported_.order().size() : stages_.front().graph->order().size()));
  info.set_function_count(static_cast<int>(model_.functions.size()));
  const auto addInput = [&](snapshot::InputInfo& i, ValueId id, bool withRole) {
    const Value& value = imported_.value(id);
    i.set_name(toUtf8(value.name));
    i.set_dtype(std::string(dtypeName(value.type.dtype)));
    if (value.type.shape)
      for (const Dim& dim : *value.type.shape) i.add_dims(dim.text());
    if (!withRole) return;
    const InputRole role = inferRole(imported_, id);
    i.set_role(role.text);
    i.set_reason(toUtf8(role.reason));
  };
  for (const ValueId id : imported_.inputs()) addInput(*info.add_inputs(), id, true);
  for (const ValueId id : imported_.outputs()) {
    addInput(*info.add_outputs(), id, false);
    const ValueType& type = imported_.value(id).type;
    if (isFloating(type.dtype) && (!type.shape || !type.shape->empty()))
      info.add_loss_candidates(toUtf8(imported_.value(id).name));
  }
  const LossChoice loss = proposeLoss(imported_);
  if (loss.loss) info.set_proposed_loss(imported_.value(loss.loss).name);
  info.set_loss_reason(loss.reason);
  std::vector<ParameterChoice> choices = parameters_;
  if (choices.empty() && loss.loss)
    if (auto chosen = chooseTrained(imported_, loss.loss, options_)) choices = std::move(*chosen);
  std::map<ValueId, const ParameterChoice*> reasons;
  for (const ParameterChoice& choice : choices) reasons[choice.value] = &choice;
  std::int64_t elements = 0;
  for (std::size_t k = 0; k < imported_.valueCapacity(); ++k) {
    const Value& value = imported_.value({static_cast<std::int32_t>(k)});
    if (!value.alive || value.role != ValueRole::kInitializer) continue;
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
    p.set_missing(std::find(model_.missingWeights.begin(), model_.missingWeights.end(), value.name) !=
                  model_.missingWeights.end());
    if (const auto it = reasons.find(value.id); it != reasons.end()) {
      p.set_trained(it->second->trained);
      p.set_reason(it->second->reason);
    }
  }
  info.set_parameter_count(elements);
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const NodeId id : imported_.order()) ++counts[{imported_.node(id).domain, imported_.node(id).op}];
  for (const auto& [key, count] : counts) {
    auto& c = *info.add_ops();
    const OpDef* op = findOp(key.first, key.second);
    c.set_domain(toUtf8(key.first));
    c.set_op(toUtf8(key.second));
    c.set_count(count);
    c.set_has_gradient(op && op->gradient);
    c.set_has_kernel(hasKernel(Backend::kReference, key.first, key.second));
    const auto fast = cpuKernels();
    c.set_has_fast_kernel((op && op->view) || std::any_of(fast.begin(), fast.end(), [&](const KernelEntry& e) {
                            return e.domain == key.first && e.op == key.second;
                          }));
    if (!op)
      c.set_note("unknown operator: no shape rule, gradient or kernel");
    else if (!op->gradient)
      c.set_note(std::string(op->noGradientReason));
    else if (op->view)
      c.set_note("a view of its input: no kernel runs");
  }
  for (const snapshot::Alert& alert : alerts_) *info.add_alerts() = alert;
  const ProposedData data = proposeData(path_, imported_);
  info.set_proposed_data(toUtf8(data.path));
  info.set_data_reason(toUtf8(data.reason));
  for (const DimChoice& choice : dimensions()) {
    auto& dimension = *info.add_dimensions();
    dimension.set_name(toUtf8(choice.name));
    dimension.set_extent(choice.extent);
    dimension.set_reason(toUtf8(choice.reason));
    dimension.set_fixed(choice.fixed);
  }
  return info;
}

}  // namespace stepscope
