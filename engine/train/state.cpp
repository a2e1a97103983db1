#include "engine/train/state.h"

#include <fmt/format.h>

#include <cstring>

namespace stepscope {

std::int64_t StateSnapshot::bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, tensor] : tensors) total += static_cast<std::int64_t>(tensor.bytes());
  return total;
}

Result<Tensor> StateStore::obtain(const Value& value) {
  const auto dims = value.type.shape ? knownDims(*value.type.shape) : std::nullopt;
  if (const auto it = tensors.find(value.name); it != tensors.end())
    if (it->second.dtype() == value.type.dtype && (!dims || it->second.dims() == *dims)) return it->second;
  // Initial contents are taken over, not copied: the session is their only user from here on.
  Tensor tensor;
  if (value.data) {
    tensor = *value.data;
  } else {
    if (!dims)
      return invalid(fmt::format("state '{}': {}; expected numbers for every extent", value.name, value.type.text()));
    SS_TRY(checkedElementCount(*dims));
    tensor = Tensor(value.type.dtype, *dims);
  }
  tensors[value.name] = tensor;
  return tensor;
}

StateSnapshot StateStore::copy() const {
  StateSnapshot snapshot{step, updates, micro, {}};
  for (const auto& [name, tensor] : tensors) snapshot.tensors[name] = tensor.clone();
  return snapshot;
}

void StateStore::restore(const StateSnapshot& snapshot) {
  step = snapshot.step;
  updates = snapshot.updates;
  micro = snapshot.micro;
  for (auto& [name, tensor] : tensors) {
    if (tensor.dtype() == DType::kString || tensor.bytes() == 0) continue;
    const auto it = snapshot.tensors.find(name);
    if (it != snapshot.tensors.end() && it->second.bytes() == tensor.bytes())
      std::memcpy(tensor.data(), it->second.data(), tensor.bytes());
    else
      std::memset(tensor.data(), 0, tensor.bytes());
  }
}

}  // namespace stepscope
