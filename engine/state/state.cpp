#include "engine/state/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace stepscope {

std::int64_t StateSnapshot::bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, tensor] : tensors) total += static_cast<std::int64_t>(tensor.bytes());
  return total;
}

Result<Tensor> State::obtain(const Value& value) {
  const auto dims = value.type.shape ? knownDims(*value.type.shape) : std::nullopt;
  if (const auto it = tensors_.find(value.name); it != tensors_.end())
    if (it->second.dtype() == value.type.dtype && (!dims || it->second.dims() == *dims)) return it->second;
  Tensor tensor;
  if (value.data) {
    tensor = *value.data;
  } else {
    if (!dims)
      return invalid(fmt::format("state '{}': {}; expected numbers for every extent", value.name, value.type.text()));
    SS_TRY(checkedElementCount(*dims));
    tensor = Tensor(value.type.dtype, *dims);
  }
  tensors_[value.name] = tensor;
  return tensor;
}

const Tensor* State::find(std::string_view name) const {
  const auto it = tensors_.find(std::string(name));
  return it == tensors_.end() ? nullptr : &it->second;
}

std::int64_t State::bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, tensor] : tensors_) total += static_cast<std::int64_t>(tensor.bytes());
  return total;
}

const Tensor& State::keep(const std::string& name) {
  for (const auto& entry : kept_)
    if (entry.first == name) return entry.second;
  kept_.emplace_back(name, tensors_.at(name).clone());
  return kept_.back().second;
}

void State::rollback() {
  for (const auto& [name, contents] : kept_) {
    const Tensor& target = tensors_.at(name);
    if (target.bytes() > 0) std::memcpy(target.data(), contents.data(), target.bytes());
  }
  kept_.clear();
}

void State::commit(bool updated) {
  kept_.clear();
  ++counters.step;
  if (updated) {
    ++counters.updates;
    counters.micro = 0;
  } else {
    ++counters.micro;
  }
}

StateSnapshot State::copy() const {
  StateSnapshot snapshot{counters, {}};
  for (const auto& [name, tensor] : tensors_) snapshot.tensors[name] = tensor.clone();
  return snapshot;
}

void State::restore(const StateSnapshot& snapshot) {
  kept_.clear();
  const std::int64_t before = counters.updatesBefore;  // a setting of the run, not of a step
  counters = snapshot.counters;
  counters.updatesBefore = before;
  for (auto& [name, tensor] : tensors_) {
    if (tensor.dtype() == DType::kString || tensor.bytes() == 0) continue;
    const auto it = snapshot.tensors.find(name);
    if (it != snapshot.tensors.end() && it->second.bytes() == tensor.bytes())
      std::memcpy(tensor.data(), it->second.data(), tensor.bytes());
    else
      std::memset(tensor.data(), 0, tensor.bytes());
  }
}

}  // namespace stepscope
