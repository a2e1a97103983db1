#include "engine/state/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/ir/low_copy.h"

namespace stepscope {

std::int64_t StateSnapshot::bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, tensor] : tensors) total += static_cast<std::int64_t>(tensor.bytes());
  return total;
}

Result<Tensor> State::obtain(const Value& value, bool writes) {
  if (value.role == ValueRole::kState && contains(sourceOfLowCopy(value.name))) return obtainLowCopy(value);
  const auto dims = value.type.shape ? knownDims(*value.type.shape) : std::nullopt;
  Tensor tensor;
  if (const auto it = tensors_.find(value.name); it != tensors_.end() && (!dims || it->second.dims() == *dims)) {
    if (it->second.dtype() == value.type.dtype) {
      if (writes) writesOver(value.name);
      return it->second;
    }
    if (placed_.contains(value.name))
      return unsupported(fmt::format("state '{}': its memory is shared with a program as {}; this plan keeps {}", value.name,
                                     dtypeName(it->second.dtype()), dtypeName(value.type.dtype)));
    if (isFloating(it->second.dtype()) && isFloating(value.type.dtype))
      tensor = convertTensor(read(value.name).view(), value.type.dtype);
  }
  if (tensor.dtype() != DType::kUndefined) {
    // what was trained so far, in the type of the new plan
  } else if (value.data) {
    SS_ASSIGN(tensor, borrowed(value));
  } else {
    if (!dims)
      return invalid(fmt::format("state '{}': {}; expected numbers for every extent", value.name, value.type.text()));
    SS_TRY(checkedElementCount(*dims));
    tensor = Tensor(value.type.dtype, *dims);
  }
  SS_ASSIGN(tensor, brought(tensor));
  tensors_[value.name] = tensor;
  if (writes) writesOver(value.name);
  return tensor;
}

// On a device they are copied, so nothing is lent there.
Result<Tensor> State::borrowed(const Value& value) {
  const auto named = [&](const Error& error) {
    return fail(error.code, fmt::format("state '{}': {}", value.name, error.message));
  };
  if (!device_->onHost()) {
    auto contents = value.data.read();
    if (!contents) return named(contents.error());
    return contents;
  }
  auto lent = value.data.lend();
  if (!lent) return named(lent.error());
  loans_[value.name] = std::move(lent->loan);
  return std::move(lent->tensor);
}

void State::writesOver(const std::string& name) {
  const auto it = loans_.find(name);
  if (it == loans_.end()) return;
  if (it->second) it->second->giveUp();
  loans_.erase(it);
}

Result<Tensor> State::obtainLowCopy(const Value& value) {
  const Dims& dims = tensors_.at(std::string(sourceOfLowCopy(value.name))).dims();
  if (const auto it = tensors_.find(value.name); it == tensors_.end() || it->second.dims() != dims) {
    SS_ASSIGN(tensors_[value.name], brought(Tensor(value.type.dtype, dims)));
    fillLowCopy(value.name);
    lowCopies_[value.name] = true;  // the plan may be bound in the middle of a step
  }
  return tensors_.at(value.name);
}

void State::fillLowCopy(const std::string& name) {
  const Tensor source = read(std::string(sourceOfLowCopy(name)));
  writeContents(name, convertTensor(source.view(), tensors_.at(name).dtype()).view());
}

std::vector<std::string> State::lowCopiesOf(std::string_view parameter) const {
  std::vector<std::string> found;
  for (const DType low : {DType::kBF16, DType::kF16})
    if (std::string name = lowCopyName(parameter, low); isLowCopy(name)) found.push_back(std::move(name));
  return found;
}

void State::lowCopiesAreStale(std::string_view parameter) {
  if (lowCopies_.empty()) return;
  for (const std::string& name : lowCopiesOf(parameter)) lowCopies_[name] = true;
}

void State::refreshLowCopiesOf(std::string_view parameter) {
  for (const std::string& name : lowCopiesOf(parameter)) {
    fillLowCopy(name);
    lowCopies_[name] = false;
  }
}

void State::beginLowCopies(const std::set<std::string>& names) {
  for (auto& [name, stale] : lowCopies_) {
    const bool used = names.contains(name);
    if (used && (stale || placed_.contains(std::string(sourceOfLowCopy(name))))) fillLowCopy(name);
    stale = !used;
  }
}

Result<Tensor> State::brought(const Tensor& onHost) const {
  if (device_->onHost() || onHost.dtype() == DType::kString) return onHost;
  SS_ASSIGN(Tensor tensor, makeTensor(*device_, onHost.dtype(), onHost.dims()));
  SS_TRY(writeTensor(*device_, tensor.view(), onHost.view()));
  return tensor;
}

State::Held State::hold() const { return {device_, tensors_, away_, lowCopies_, loans_}; }

void State::putBack(Held held) {
  device_ = held.device;
  tensors_ = std::move(held.tensors);
  away_ = std::move(held.away);
  lowCopies_ = std::move(held.lowCopies);
  loans_ = std::move(held.loans);
  copies_.clear();
}

Status State::set(std::string name, Tensor tensor) {
  lowCopiesAreStale(name);
  SS_ASSIGN(tensors_[std::move(name)], brought(tensor));
  return {};
}

Status State::place(const std::string& name, Tensor memory, bool take) {
  const Tensor* present = find(name);
  if (!present)
    return fail(ErrorCode::kNotFound, fmt::format("state '{}': no parameter or optimizer state of this name", name));
  if (present->dtype() != memory.dtype() || present->dims() != memory.dims())
    return invalid(fmt::format("state '{}': memory of {}{}; expected {}{}", name, dtypeName(memory.dtype()),
                               dimsText(memory.dims()), dtypeName(present->dtype()), dimsText(present->dims())));
  if (!device_->onHost())
    return unsupported(fmt::format("state '{}': it is in the memory of a device; expected one on the CPU to share", name));
  if (!take && memory.bytes() > 0) std::memmove(memory.data(), present->data(), memory.bytes());
  lowCopiesAreStale(name);
  tensors_[name] = std::move(memory);
  placed_.insert(name);
  return {};
}

Status State::bring(Device& device) {
  if (&device == device_) return {};
  if (!placed_.empty() && !device.onHost())
    return unsupported(
        fmt::format("state '{}': its memory is shared with a program; expected a device on the host", *placed_.begin()));
  Tensors moved;
  Tensors& known = away_[&device];
  for (const auto& [name, tensor] : tensors_) {
    Tensor target = tensor;
    if (tensor.dtype() != DType::kString) {
      const auto it = known.find(name);
      if (it != known.end() && it->second.dtype() == tensor.dtype() && it->second.dims() == tensor.dims()) {
        target = it->second;
        writesOver(name);
      } else {
        SS_ASSIGN(target, makeTensor(device, tensor.dtype(), tensor.dims()));
      }
      const Tensor contents = read(name);
      SS_TRY(writeTensor(device, target.view(), contents.view()));
    }
    moved[name] = std::move(target);
  }
  away_.erase(&device);
  away_[device_] = std::exchange(tensors_, std::move(moved));
  device_ = &device;
  copies_.clear();
  return {};
}

Tensor State::read(const std::string& name) const {
  const Tensor& tensor = tensors_.at(name);
  if (device_->onHost() || tensor.dtype() == DType::kString) return tensor;
  auto contents = readTensor(*device_, tensor.view());
  SS_CHECK(contents.has_value());
  return copies_[name] = std::move(*contents);
}

void State::write(const std::string& name, const TensorView& contents) {
  lowCopiesAreStale(name);
  writeContents(name, contents);
}

void State::writeContents(const std::string& name, const TensorView& contents) {
  writesOver(name);
  const Tensor& target = tensors_.at(name);
  if (contents.bytes() > 0) SS_CHECK(writeTensor(*device_, target.view(), contents).has_value());
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
  writesOver(name);
  kept_.emplace_back(name, read(name).clone());
  return kept_.back().second;
}

void State::rollback() {
  for (const auto& [name, contents] : kept_) write(name, contents.view());
  kept_.clear();
}

void State::commit(bool roundEnds, bool updated) {
  kept_.clear();
  ++counters.step;
  counters.entry += ranks_;
  counters.updates += updated ? 1 : 0;
  if (roundEnds) {
    counters.micro = 0;
    counters.roundOf = 0;
    counters.sumScale = 0;
  } else {
    ++counters.micro;
  }
}

StateSnapshot State::copy() const {
  StateSnapshot snapshot{counters, {}};
  for (const auto& [name, tensor] : tensors_)
    if (!isLowCopy(name)) snapshot.tensors[name] = read(name).clone();
  return snapshot;
}

void State::restore(const StateSnapshot& snapshot) {
  kept_.clear();
  const std::int64_t before = counters.updatesBefore;  // a setting of the run, not of a step
  counters = snapshot.counters;
  counters.updatesBefore = before;
  for (auto& [name, stale] : lowCopies_) stale = true;
  for (auto& [name, tensor] : tensors_) {
    if (isLowCopy(name)) continue;
    if (tensor.dtype() == DType::kString || tensor.bytes() == 0) continue;
    const auto it = snapshot.tensors.find(name);
    const bool same = it != snapshot.tensors.end() && it->second.dims() == tensor.dims();
    if (same && it->second.dtype() == tensor.dtype()) {
      write(name, it->second.view());
    } else if (same && isFloating(it->second.dtype()) && isFloating(tensor.dtype())) {
      write(name, convertTensor(it->second.view(), tensor.dtype()).view());
    } else {
      writesOver(name);
      SS_CHECK(device_->fill(tensor.data(), 0, static_cast<std::int64_t>(tensor.bytes()), 0).has_value());
    }
  }
}

}  // namespace stepscope
