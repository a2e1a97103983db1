// The JSON header of a safetensors file, read strictly and without building a document: a hostile header costs no more
// memory than the tensors it names.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "kernels/status.h"
#include "kernels/tensor.h"

namespace stepscope {

struct SafetensorsEntry {
  DType dtype = DType::kUndefined;
  Dims dims;
  std::uint64_t begin = 0, end = 0;  // bytes after the header
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

// Reads the JSON of a header. Error: kCorrupt where it is not exactly what the format allows.
Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view json);

// "F32" …; empty for types that the format lacks.
std::string_view safetensorsTypeName(DType dtype);

}  // namespace stepscope
