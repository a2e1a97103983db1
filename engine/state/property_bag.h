// What a program writes beside the state: numbers, texts and tensors by name, kept in its files (state_file.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "kernels/status.h"
#include "kernels/tensor.h"

namespace stepscope {

using Property = std::variant<std::int64_t, double, std::string, Tensor>;
using PropertyBag = std::map<std::string, Property>;

// Errors: an empty name; a tensor of strings or without a type; a text that is not UTF-8.
Status checkProperty(const std::string& name, const Property& value);

// --- in a .safetensors file: tensors under kPropertyPrefix + name, the rest as metadata under the same key: "int64 5",
// "double 0.1", "string text". A double comes back bit for bit, infinities and NaN too (but for the bits of a NaN).
inline constexpr std::string_view kPropertyPrefix = "stepscope.property/";
std::string propertyText(const Property& value);  // of one that is no tensor
// Error kCorrupt: a text that propertyText() does not write, with the name.
Result<Property> propertyOf(const std::string& name, const std::string& text);

}  // namespace stepscope
