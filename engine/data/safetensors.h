// Checkpoint files: 8 bytes of header length, a JSON header, contiguous data. Source: github.com/huggingface/safetensors.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "kernels/status.h"
#include "kernels/tensor.h"

namespace stepscope {

struct SafetensorsFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

// Reads all tensors. Refused: a header above limits.h or that is not exactly the format's JSON (kCorrupt), a name given
// twice, types the engine does not carry (kUnsupported), ranges that leave holes, overlap, or disagree with dtype and shape
// (kInvalidArgument), and files longer or shorter than their ranges.
Result<SafetensorsFile> readSafetensors(const std::filesystem::path& path);
Result<SafetensorsFile> parseSafetensors(std::span<const std::byte> bytes);

// Names in sorted order, data in that order without gaps, the header padded with spaces to a multiple of 8. Whole or not at
// all. Strings are kUnsupported.
Status writeSafetensors(const std::filesystem::path& path, const std::map<std::string, TensorView>& tensors,
                        const std::map<std::string, std::string>& metadata = {});

}  // namespace stepscope
