// Checkpoints of a training with ONNX Runtime: one flatbuffer (onnxruntime_checkpoint.fbs, identifier "ODTC", version 2)
// and, where the tensors are large, "<file>.data" beside it. Source: the files of onnxruntime-training 1.19.2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/status.h"
#include "kernels/tensor.h"

namespace stepscope {

struct OnnxruntimeCheckpoint {
  using Tensors = std::map<std::string, Tensor>;

  // The parameters, one optimizer state tensor each per moment: [0] the first moment, [1] the second.
  struct Group {
    std::string name = "group0";
    std::int64_t step = 0;  // updates done
    float initialLearningRate = 1e-3f;
    std::map<std::string, std::vector<Tensor>> moments;  // by parameter; empty where the optimizer has none
  };

  Tensors trained, frozen;
  bool nominal = false;  // parameters have a type and the extents [0] alone: their owner brings the contents
  std::vector<Group> groups;
  std::map<std::string, std::int64_t> ints;
  std::map<std::string, float> floats;
  std::map<std::string, std::string> texts;
};

// Whether the file begins as such a checkpoint does.
bool isOnnxruntimeCheckpoint(const std::filesystem::path& path);

// Contents are read once and belong to the result together. Errors: kNotFound, kIo; kCorrupt for bytes that are none, or a
// tensor whose bytes are not those of its type and extents; kUnsupported for another version or element type;
// kInvalidArgument for a name that is given twice.
Result<OnnxruntimeCheckpoint> readOnnxruntimeCheckpoint(const std::filesystem::path& path);

// Whole or not at all; the data file first. `externalAbove`: from how many bytes of all tensors on the larger ones go to the
// data file (a flatbuffer ends at 2 GiB). Errors: kUnsupported for a tensor of strings, kIo.
inline constexpr std::int64_t kOnnxruntimeExternalAbove = 1'800'000'000;
Status writeOnnxruntimeCheckpoint(const std::filesystem::path& path, const OnnxruntimeCheckpoint& checkpoint,
                                  std::int64_t externalAbove = kOnnxruntimeExternalAbove);

}  // namespace stepscope
