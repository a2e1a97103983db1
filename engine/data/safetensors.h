// Checkpoint files: 8 bytes of header length, a JSON header, contiguous data. Source: github.com/huggingface/safetensors.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "engine/data/file.h"
#include "engine/data/safetensors_header.h"
#include "kernels/status.h"
#include "kernels/tensor.h"

namespace stepscope {

struct SafetensorsFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

// A checkpoint that is open: header and ranges are sound, contents are read one tensor at a time. A caller that has memory
// for them already needs no second copy of all.
class SafetensorsReader {
 public:
  // Errors as readSafetensors'.
  static Result<SafetensorsReader> open(const std::filesystem::path& path);

  const std::map<std::string, SafetensorsEntry>& entries() const { return header_.entries; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  // The contents of one of entries() into memory of its type and shape. Bytes of a bool become 0 or 1.
  Status read(const SafetensorsEntry& entry, const TensorView& to) const;

 private:
  SafetensorsReader(InputFile file, SafetensorsHeader header, std::int64_t begin)
      : file_(std::move(file)), header_(std::move(header)), begin_(begin) {}

  InputFile file_;
  SafetensorsHeader header_;
  std::int64_t begin_ = 0;  // of the data
};

// Reads all tensors. Refused: a header above limits.h or that is not exactly the format's JSON (kCorrupt), a name given
// twice, types the engine does not carry (kUnsupported), ranges that leave holes, overlap, or disagree with dtype and shape
// (kInvalidArgument), and files longer or shorter than their ranges.
Result<SafetensorsFile> readSafetensors(const std::filesystem::path& path);
Result<SafetensorsFile> parseSafetensors(std::span<const std::byte> bytes);

// The contents of a tensor that is written without memory of its own (data nullptr), asked for when it is its turn; they are
// borrowed until the next one is asked for.
using LateContents = std::function<Result<TensorView>(const std::string& name, const TensorView& tensor)>;

// Names in sorted order, data in that order without gaps, the header padded with spaces to a multiple of 8. Whole or not at
// all. Strings are kUnsupported. `late` is asked for tensors whose memory is not there; its error is the error of all.
Status writeSafetensors(const std::filesystem::path& path, const std::map<std::string, TensorView>& tensors,
                        const std::map<std::string, std::string>& metadata = {}, const LateContents& late = {});

}  // namespace stepscope
