// The optimizer model of a training with ONNX Runtime: one update of all parameters, whose inputs are sequences.
//
// Inputs, by place and name: learning_rate float32[1], step int64[1], params, gradients, first_order_moments and, for AdamW,
// second_order_moments. Output: bool[1], whether the update was done. Source: files of onnxruntime-training 1.19.2.
#pragma once

#include <filesystem>
#include <string_view>

#include "kernels/status.h"

namespace stepscope {

// Its moments in their order: a parameter's name and one of these is the name of our state.
inline constexpr std::string_view kAdamMoments[] = {".exp_avg", ".exp_avg_sq"};

struct OnnxruntimeOptimizer {
  enum class Kind { kSgd, kAdamw };
  // When AdamW takes its decay and what epsilon is added to.
  enum class Mode {
    kTorch,        // w -= lr·decay·w first; epsilon beside the corrected sqrt(v)
    kTransformers  // w -= lr·decay·w last; epsilon beside sqrt(v), before the correction
  };
  Kind kind = Kind::kAdamw;
  Mode mode = Mode::kTorch;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weightDecay = 0.01;
  bool biasCorrection = true;
  double clipNorm = 0;  // largest global norm of the gradients; 0: no clipping
};

// Errors: those of reading a file; kCorrupt for bytes that are no model; kUnsupported for an update that is none of these,
// naming its nodes.
Result<OnnxruntimeOptimizer> readOnnxruntimeOptimizer(const std::filesystem::path& path);

// Whole or not at all. Errors: kIo.
Status writeOnnxruntimeOptimizer(const std::filesystem::path& path, const OnnxruntimeOptimizer& optimizer);

}  // namespace stepscope
