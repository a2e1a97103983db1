// Every option of a training run: one table that the command line, the worker and `stepscope options` read.
//
// Settings are (name, value) text, named as on the command line without dashes; `--set NAME=VALUE` reaches those that have
// no flag of their own. The last setting of a name wins, `group`, `pad`, `dim` and `precision.force` add up.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/profile/sampler.h"
#include "engine/recompute/choose.h"
#include "kernels/dtype.h"
#include "kernels/status.h"

namespace stepscope {

struct StreamPartition;  // engine/plan/stream_partition.h

struct ParameterGroup {
  std::string regex;
  std::optional<double> lr, weightDecay;
};

// Nodes whose op, name or module matches are computed in this type, whatever their precision class says.
struct PrecisionForce {
  std::string regex;
  DType dtype = DType::kF32;
};

struct TrainOptions {
  std::string data;  // empty = synthetic
  std::string loss, lossFn, lossGraph, logits, labels;
  std::string train, freeze;                         // regular expressions, searched in the name
  std::string optimizer = "sgd", optimizerGraph;     // a graph takes the place of the named one
  std::string distributed = "off";                   // how processes train together: off | local | mpi
  std::int64_t ranks = 2;                            // of them, where this program starts them
  std::int64_t rankBucket = std::int64_t{25} << 20;  // bytes of gradients that are averaged at a time
  std::string rankShard = "off";                     // what ranks keep parts of: off | optimizer | gradients | parameters
  bool rankOverlap = true;                           // gradients are sent while the backward phase runs
  bool rankPrefetch = true;                          // parts of parameters are gathered ahead
  bool rankCheck = false;                            // parameters of all ranks are compared after every step
  double rankTimeout = 600;                          // seconds that one may let the others wait
  double lr = 0.001, momentum = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  std::optional<double> weightDecay;  // absent = PyTorch's default of the optimizer (0; 0.01 for adamw)
  bool nesterov = false;
  double clipGradNorm = 0;  // 0 = off
  std::int64_t accumulate = 1;
  std::string lrSchedule = "constant";
  std::int64_t warmupSteps = 0, totalSteps = 0;  // in updates; totalSteps 0: not said (schedule.h)
  std::vector<ParameterGroup> groups;
  std::map<std::string, std::int64_t> pad;  // input → padding value
  double padding = 0;                       // fraction of synthetic data that is padding
  std::int64_t startStep = 0, steps = 1;
  bool stepsAreAll = false;  // nobody goes on after `steps`: a schedule without a length of its own ends with them
  std::string startState;  // state file that the run begins with: parameters, optimizer state, counters; empty = the model's
  std::uint64_t seed = 0;
  int threads = 0;                    // 0 = all cores that the process may use
  std::string deterministic = "run";  // "threads": the same bits for any number of threads; "off": other bits are allowed
  std::string device = "cpu", precision = "fp32", masterWeights = "auto", subnormals = "keep";
  std::vector<PrecisionForce> precisionForce;  // the first match counts
  std::string lossScale = "auto";              // "auto": dynamic with fp16, else off; "dynamic", "off", or a number
  double lossScaleInit = 0;                    // 0: found with the first batch
  double lossScaleGrowth = 2, lossScaleBackoff = 0.5;
  std::int64_t lossScaleWindow = 2000;  // updates without overflow after which it grows
  std::map<std::string, std::int64_t> dims;
  std::string missingWeights = "error";
  std::int64_t loopIterations = 128;  // LoadOptions
  std::int64_t loopMemory = 0;        // bytes that the iterations of one loop may keep; 0 = no limit of its own
  std::string batchNorm = "frozen";   // "batch": BatchNormalization of an inference file normalises with the batch again
  bool inPlace = true, reuse = true;
  std::int64_t memoryLimit = 0;      // bytes; 0 = what the machine has
  std::int64_t recomputeBudget = 0;  // bytes of live activations; 0 = nothing is computed again for it
  std::vector<RecomputeRequest> recomputePlan;
  std::int64_t variantBytes = 0;  // of the plans for other batches that stay; 0 = a quarter of what the machine has
  std::int64_t ringBytes = std::int64_t{256} << 20;
  bool referenceKernels = false;
  std::map<std::string, bool> passes;                      // pass.<name> = on|off
  std::map<std::string, std::string> added;                // values of the options that a Registry added
  std::string record = "instructions";                     // off | steps | instructions
  std::string recordRung = "activity";                     // the highest by which a device records (kernels/activity.h)
  bool nvtx = false;                                       // ranges for NVIDIA's tools
  std::int64_t cudaStreams = 2;                            // of a device that has several
  std::shared_ptr<const StreamPartition> streamPartition;  // which of them nodes run on; null: the plan's choice
  bool cudaGraphs = true, cudaTf32 = false;  // steps as recorded graphs of a GPU; products that read 10 bits of a fraction
  SampleRate recordBatch, recordStatistics;
  std::int64_t recordBatchBytes = 16 << 10;  // of the contents of each input
  bool recordFlight = true;                  // the flight recorder (engine/step/flight_recorder.h)
  double recordPercent = 0.5;                // of the time of the steps, for batches and statistics together
  std::string breakOn;                       // "nan,inf", "nan", "inf", "off"; empty = tell of them and go on
  bool roofline = false;                     // measure the machine's peak
  std::string cacheDir;                      // folder of the build cache; empty = none
  std::int64_t longMs = 100;                 // instructions that run longer are named
  double checkpointSeconds = 300;            // between two checkpoints on the way; 0 = none
  std::int64_t checkpointKeep = 2;           // how many of them stay

  struct Origin {
    std::string value, setBy;
  };
  std::map<std::string, Origin> origins;  // what was set, and by whom
};

// One option as users see it; `choices` is empty where any value of its kind goes.
struct OptionInfo {
  std::string_view name, defaultValue, doc;
  std::vector<std::string_view> choices;
  std::string_view group = {};  // heading it stands under
  std::string_view kind = {};   // of its value: "switch", "choice", "bytes", "count", "number", "text"
  void* user = nullptr;         // of what a shared library adds
};

// With its group and kind.
OptionInfo described(OptionInfo info);
// The built-in options without the switches of passes, and all of the built-in ones. A session's are those of its Registry.
std::vector<OptionInfo> plainOptions();
const std::vector<OptionInfo>& optionTable();

// Errors name the option, what was found and what was expected. `table`: what options there are.
Status applySetting(TrainOptions& options, std::string_view name, std::string_view value, std::string_view setBy,
                    const std::vector<OptionInfo>& table = optionTable());
// Combinations that make no sense: Nesterov without momentum, a schedule without end …
Status checkOptions(const TrainOptions& options);

// Threads that the options ask for; without a wish all cores of the machine.
int threadsOf(const TrainOptions& options);

}  // namespace stepscope
