// NumPy's array files: .npy, versions 1 to 3, and .npz archives of them.
//
// Carried: bool, (u)int8..64, float16/32/64 of this machine's byte order, C or Fortran order (which is turned into C order).
// Other element types (text, objects, records, foreign byte order) are kUnsupported; nothing is ever unpickled.
// Source: numpy/lib/format.py.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "engine/data/npy_header.h"
#include "kernels/status.h"
#include "kernels/tensor.h"

namespace stepscope {

// Errors: kCorrupt for bytes that are no array file, kInvalidArgument when header and size disagree, kLimitExceeded.
Result<Tensor> readNpy(std::span<const std::byte> bytes);
Result<Tensor> readNpyFile(const std::filesystem::path& path);

// bfloat16 has no NumPy type and is written as float32; strings are kUnsupported. Whole or not at all.
Status writeNpy(const std::filesystem::path& path, const TensorView& view);

// Arrays by name, without ".npy". The size of every entry is checked against its header before memory is taken.
// Errors as readNpy; kCorrupt for what is no zip archive, for damaged entries, and for two entries of one name.
Result<std::map<std::string, Tensor>> readNpz(const std::filesystem::path& path);
// The same without the elements: what an archive holds, found without reading all of it.
Result<std::map<std::string, NpyHeader>> readNpzHeaders(const std::filesystem::path& path);

}  // namespace stepscope
