// Loss and metrics of a model over its data, as it is used: Laboratory::evaluate().
#pragma once

#include <cstdint>
#include <string>

#include "engine/train/session.h"

namespace stepscope {

struct EvaluatedBatch {
  std::int64_t index = 0;  // of the data
  std::string label;
  double loss = 0;
  // Of a cross entropy: labels that count, and those whose class has the largest score. 0 for other losses.
  std::int64_t labels = 0, correct = 0;
};

struct Evaluation {
  std::int64_t batches = 0;
  double loss = 0;            // over all: of a mean over labels weighted by them, else the mean over batches
  bool crossEntropy = false;  // `labels` and `correct` mean something
  bool weighted = false;      // by the labels of each batch
  std::int64_t labels = 0, correct = 0;
  std::int64_t ns = 0;     // of computing
  std::int64_t plans = 0;  // one for each signature of a batch
  bool synthetic = false;  // the data was
};

}  // namespace stepscope
