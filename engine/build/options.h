// Every option of a training run: one table that the command line, the worker and `stepscope options` read.
//
// Settings are (name, value) text, named as on the command line without dashes; `--set NAME=VALUE` reaches those that have
// no flag of their own. The last setting of a name wins, `group` and `pad` and `dim` add up.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/profile/sampler.h"
#include "engine/recompute/choose.h"
#include "kernels/status.h"

namespace stepscope {

struct ParameterGroup {
  std::string regex;
  std::optional<double> lr, weightDecay;
};

struct TrainOptions {
  std::string data;  // empty = synthetic
  std::string loss, lossFn, logits, labels;
  std::string train, freeze;  // regular expressions, searched in the name
  std::string optimizer = "sgd";
  double lr = 0.001, momentum = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  std::optional<double> weightDecay;  // absent = PyTorch's default of the optimizer (0; 0.01 for adamw)
  bool nesterov = false;
  double clipGradNorm = 0;  // 0 = off
  std::int64_t accumulate = 1;
  std::string lrSchedule = "constant";
  std::int64_t warmupSteps = 0, totalSteps = 0;  // in updates; totalSteps 0 = --steps / --accumulate
  std::vector<ParameterGroup> groups;
  std::map<std::string, std::int64_t> pad;  // input → padding value
  double padding = 0;                       // fraction of synthetic data that is padding
  std::int64_t startStep = 0, steps = 1;
  std::uint64_t seed = 0;
  int threads = 0;  // 0 = all cores that the process may use
  std::string device = "cpu", precision = "fp32";
  std::map<std::string, std::int64_t> dims;
  std::string missingWeights = "error";
  bool inPlace = true, reuse = true;
  std::int64_t memoryLimit = 0;      // bytes; 0 = what the machine has
  std::int64_t recomputeBudget = 0;  // bytes of live activations; 0 = nothing is computed again for it
  std::vector<RecomputeRequest> recomputePlan;
  std::int64_t ringBytes = std::int64_t{256} << 20;
  bool referenceKernels = false;
  std::map<std::string, bool> passes;   // pass.<name> = on|off
  std::string record = "instructions";  // off | steps | instructions
  SampleRate recordBatch, recordStatistics;
  std::int64_t recordBatchBytes = 16 << 10;  // of the contents of each input
  double recordPercent = 0.5;                // of the time of the steps, for batches and statistics together
  bool roofline = false;                     // measure the machine's peak
  std::int64_t longMs = 100;                 // instructions that run longer are named

  struct Origin {
    std::string value, setBy;
  };
  std::map<std::string, Origin> origins;  // what was set, and by whom
};

// One option as users see it; `choices` is empty where any value of its kind goes.
struct OptionInfo {
  std::string_view name, defaultValue, doc;
  std::vector<std::string_view> choices;
};

// Every option, in the order in which they are shown.
const std::vector<OptionInfo>& optionTable();

// Errors name the option, what was found and what was expected.
Status applySetting(TrainOptions& options, std::string_view name, std::string_view value, std::string_view setBy);
// Combinations that make no sense: Nesterov without momentum, a schedule without end …
Status checkOptions(const TrainOptions& options);

// Threads that the options ask for; without a wish all cores of the machine.
int threadsOf(const TrainOptions& options);

}  // namespace stepscope
