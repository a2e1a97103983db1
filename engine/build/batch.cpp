#include "engine/build/batch.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepscope {

std::string Signature::text() const {
  std::string text;
  for (const auto& [name, type] : arrays)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", name, dtypeName(type.first), dimsText(type.second));
  for (const auto& [name, extent] : rows) text += fmt::format("; {} int64[{}]", name, extent);
  return text;
}

Signature signatureOf(const Batch& batch) {
  Signature signature;
  for (const auto& [name, tensor] : batch.arrays) signature.arrays[name] = {tensor.dtype(), tensor.dims()};
  return signature;
}

bool fits(const Signature& signature, const Batch& batch) {
  return std::equal(batch.arrays.begin(), batch.arrays.end(), signature.arrays.begin(), signature.arrays.end(),
                    [](const auto& array, const auto& expected) {
                      return array.first == expected.first && array.second.dtype() == expected.second.first &&
                             array.second.dims() == expected.second.second;
                    });
}

}  // namespace stepscope
