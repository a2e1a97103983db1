#include "engine/build/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <thread>

#include "engine/build/build_cache.h"
#include "engine/build/environment.h"
#include "engine/build/option_values.h"
#include "engine/passes/attention_pattern.h"
#include "engine/plan/stream_partition.h"
#include "kernels/device.h"
#include "kernels/subnormals.h"

namespace stepscope {
namespace {

constexpr double kHuge = 1e30, kTiny = 1e-9;

}  // namespace

Status applySetting(TrainOptions& o, std::string_view name, std::string_view value, std::string_view setBy,
                    const std::vector<OptionInfo>& table) {
  constexpr std::int64_t kMax = std::int64_t{1} << 62;
  const auto setNumber = [&](double& target, double low, double high) -> Status {
    SS_ASSIGN(target, parseNumber(name, value, low, high));
    return {};
  };
  const auto setWhole = [&](auto& target, std::int64_t low, std::int64_t high) -> Status {
    SS_ASSIGN(const std::int64_t parsed, parseWhole(name, value, low, high));
    target = static_cast<std::decay_t<decltype(target)>>(parsed);
    return {};
  };
  const auto setBytes = [&](std::int64_t& target, std::int64_t high) -> Status {
    SS_ASSIGN(target, parseBytes(name, value, high));
    return {};
  };
  const auto setToggle = [&](bool& target) -> Status {
    SS_ASSIGN(target, parseToggle(name, value));
    return {};
  };
  const auto setChoice = [&](std::string& target, std::initializer_list<std::string_view> choices) -> Status {
    SS_TRY(checkChoice(name, value, choices));
    target = value;
    return {};
  };
  using Setter = std::function<Status()>;
  const std::map<std::string_view, Setter> setters{
      {"data",
       [&]() -> Status {
         o.data = value;
         return {};
       }},
      {"loss",
       [&]() -> Status {
         o.loss = value;
         return {};
       }},
      {"loss-fn",
       [&] {
         return setChoice(o.lossFn, {"", "cross_entropy", "mse", "l1", "bce_with_logits"});
       }},
      {"loss-graph",
       [&]() -> Status {
         o.lossGraph = value;
         return {};
       }},
      {"optimizer-graph",
       [&]() -> Status {
         o.optimizerGraph = value;
         return {};
       }},
      {"logits",
       [&]() -> Status {
         o.logits = value;
         return {};
       }},
      {"labels",
       [&]() -> Status {
         o.labels = value;
         return {};
       }},
      {"train",
       [&]() -> Status {
         SS_TRY(checkPattern(name, value));
         o.train = value;
         return {};
       }},
      {"freeze",
       [&]() -> Status {
         SS_TRY(checkPattern(name, value));
         o.freeze = value;
         return {};
       }},
      {"optimizer",
       [&] {
         return setChoice(o.optimizer, {"sgd", "adam", "adamw", "lamb"});
       }},
      {"lr", [&] { return setNumber(o.lr, 0, kHuge); }},
      {"weight-decay",
       [&]() -> Status {
         SS_ASSIGN(const double d, parseNumber(name, value, 0, kHuge));
         o.weightDecay = d;
         return {};
       }},
      {"momentum", [&] { return setNumber(o.momentum, 0, kHuge); }},
      {"nesterov", [&] { return setToggle(o.nesterov); }},
      {"betas",
       [&]() -> Status {
         const auto comma = value.find(',');
         if (comma == std::string_view::npos)
           return invalidOption("betas", fmt::format("found '{}'; expected two numbers A,B", value));
         SS_ASSIGN(o.beta1, parseNumber(name, value.substr(0, comma), 0, 1));
         SS_ASSIGN(o.beta2, parseNumber(name, value.substr(comma + 1), 0, 1));
         if (o.beta1 >= 1 || o.beta2 >= 1)
           return invalidOption("betas", fmt::format("found '{}'; expected numbers below 1", value));
         return {};
       }},
      {"eps", [&] { return setNumber(o.eps, 0, kHuge); }},
      {"clip-grad-norm", [&] { return setNumber(o.clipGradNorm, 0, kHuge); }},
      {"accumulate", [&] { return setWhole(o.accumulate, 1, 1 << 20); }},
      {"lr-schedule",
       [&] {
         return setChoice(o.lrSchedule, {"constant", "linear", "cosine", "step", "polynomial"});
       }},
      {"warmup-steps", [&] { return setWhole(o.warmupSteps, 0, kMax); }},
      {"total-steps", [&] { return setWhole(o.totalSteps, 0, kMax); }},
      {"group",
       [&]() -> Status {
         SS_ASSIGN(ParameterGroup group, parseGroup(value));
         o.groups.push_back(std::move(group));
         return {};
       }},
      {"pad",
       [&]() -> Status {
         SS_ASSIGN(const auto pair, parseAssignment(name, value));
         SS_ASSIGN(o.pad[pair.first], parseWhole(name, pair.second, -kMax, kMax));
         return {};
       }},
      {"padding", [&] { return setNumber(o.padding, 0, 1); }},
      {"start-step", [&] { return setWhole(o.startStep, 0, kMax); }},
      {"start-state",
       [&]() -> Status {
         o.startState = value;
         return {};
       }},
      {"steps", [&] { return setWhole(o.steps, 0, kMax); }},
      {"seed", [&] { return setWhole(o.seed, 0, INT64_MAX); }},
      {"threads", [&] { return setWhole(o.threads, 0, 1024); }},
      {"deterministic",
       [&]() -> Status {
         SS_TRY(setChoice(o.deterministic, {"run", "on", "threads", "off"}));
         if (o.deterministic == "on") o.deterministic = "run";
         return {};
       }},
      {"subnormals",
       [&]() -> Status {
         SS_TRY(setChoice(o.subnormals, {"keep", "flush"}));
         if (o.subnormals == "flush" && !canFlushSubnormals())
           return invalidOption("subnormals", "flush; this processor cannot; expected keep");
         return {};
       }},
      {"device",
       [&]() -> Status {
         SS_TRY(findDevice(std::string(value)));
         o.device = value;
         return {};
       }},
      {"precision",
       [&]() -> Status {
         if (value == "fp32" || value == "bf16" || value == "fp16") {
           o.precision = value;
           return {};
         }
         return invalid(fmt::format("precision '{}': unknown; expected fp32, bf16 or fp16", value));
       }},
      {"precision.force",
       [&]() -> Status {
         SS_ASSIGN(const auto forces, parsePrecisionForces(value));
         if (forces.empty()) o.precisionForce.clear();
         o.precisionForce.insert(o.precisionForce.end(), forces.begin(), forces.end());
         return {};
       }},
      {"distributed",
       [&] {
         return setChoice(o.distributed, {"off", "local", "mpi", "nccl"});
       }},
      {"ranks", [&] { return setWhole(o.ranks, 1, 1024); }},
      {"ranks.bucket", [&] { return setBytes(o.rankBucket, std::int64_t{1} << 40); }},
      {"ranks.overlap", [&] { return setToggle(o.rankOverlap); }},
      {"ranks.prefetch", [&] { return setToggle(o.rankPrefetch); }},
      {"ranks.check", [&] { return setToggle(o.rankCheck); }},
      {"ranks.shard",
       [&] {
         return setChoice(o.rankShard, {"off", "optimizer", "gradients", "parameters"});
       }},
      {"ranks.timeout", [&] { return setNumber(o.rankTimeout, 0.1, 1e6); }},
      {"master-weights",
       [&] {
         return setChoice(o.masterWeights, {"auto", "fp32", "off"});
       }},
      {"loss-scale",
       [&]() -> Status {
         if (value != "auto" && value != "dynamic" && value != "off")
           if (const auto factor = parseNumber(name, value, 0, kHuge); !factor || *factor == 0)
             return invalidOption("loss-scale",
                                  fmt::format("found '{}'; expected auto, dynamic, off or a number above 0", value));
         o.lossScale = value;
         return {};
       }},
      {"loss-scale.init",
       [&]() -> Status {
         if (value == "auto") {
           o.lossScaleInit = 0;
           return {};
         }
         return setNumber(o.lossScaleInit, kTiny, kHuge);
       }},
      {"loss-scale.growth", [&] { return setNumber(o.lossScaleGrowth, 1, 1024); }},
      {"loss-scale.backoff", [&] { return setNumber(o.lossScaleBackoff, kTiny, 1); }},
      {"loss-scale.window", [&] { return setWhole(o.lossScaleWindow, 1, kMax); }},
      {"dim",
       [&]() -> Status {
         SS_ASSIGN(const auto pair, parseAssignment(name, value));
         SS_ASSIGN(o.dims[pair.first], parseWhole(name, pair.second, 0, std::int64_t{1} << 40));
         return {};
       }},
      {"missing-weights",
       [&] {
         return setChoice(o.missingWeights, {"error", "random"});
       }},
      {"batch-norm",
       [&] {
         return setChoice(o.batchNorm, {"frozen", "batch"});
       }},
      {"loop.max_iterations", [&] { return setWhole(o.loopIterations, 1, 1 << 16); }},
      {"loop.max_memory", [&] { return setBytes(o.loopMemory, kMax); }},
      {"memory.inplace", [&] { return setToggle(o.inPlace); }},
      {"memory.reuse", [&] { return setToggle(o.reuse); }},
      {"memory.limit", [&] { return setBytes(o.memoryLimit, kMax); }},
      {"recompute.budget", [&] { return setBytes(o.recomputeBudget, kMax); }},
      {"recompute.plan",
       [&]() -> Status {
         SS_ASSIGN(o.recomputePlan, parseRecomputePlan(value));
         return {};
       }},
      {"attention.patterns",
       [&]() -> Status {
         if (const auto patterns = attentionPatterns(std::string(value)); !patterns)
           return failOption(patterns.error().code, "attention.patterns", patterns.error().message);
         return {};
       }},
      {"variants.bytes", [&] { return setBytes(o.variantBytes, kMax); }},
      {"ring.bytes", [&] { return setBytes(o.ringBytes, kMax); }},
      {"kernels",
       [&]() -> Status {
         SS_TRY(checkChoice(name, value, std::array<std::string_view, 2>{"fast", "reference"}));
         o.referenceKernels = value == "reference";
         return {};
       }},
      {"record",
       [&] {
         return setChoice(o.record, {"off", "steps", "instructions"});
       }},
      {"cuda.graphs", [&] { return setToggle(o.cudaGraphs); }},
      {"cuda.streams", [&] { return setWhole(o.cudaStreams, 1, 8); }},
      {"streams.partition",
       [&]() -> Status {
         o.streamPartition.reset();
         if (value.empty()) return {};
         auto partition = readStreamPartition(std::string(value));
         if (!partition) return failOption(partition.error().code, "streams.partition", partition.error().message);
         o.streamPartition = std::make_shared<const StreamPartition>(std::move(*partition));
         return {};
       }},
      {"cuda.tf32", [&] { return setToggle(o.cudaTf32); }},
      {"record.rung",
       [&] {
         return setChoice(o.recordRung, {"activity", "counters", "events", "host"});
       }},
      {"record.nvtx", [&] { return setToggle(o.nvtx); }},
      {"record.batch",
       [&]() -> Status {
         SS_ASSIGN(o.recordBatch, parseSampleRate(name, value));
         return {};
       }},
      {"record.batch.bytes", [&] { return setBytes(o.recordBatchBytes, 1 << 30); }},
      {"record.statistics",
       [&]() -> Status {
         SS_ASSIGN(o.recordStatistics, parseSampleRate(name, value));
         return {};
       }},
      {"record.keep",
       [&]() -> Status {
         if (value != "all") SS_TRY(parseWhole(name, value, 1, std::int64_t{1} << 40));
         return {};
       }},
      {"record.flight", [&] { return setToggle(o.recordFlight); }},
      {"record.percent", [&] { return setNumber(o.recordPercent, 0, 100); }},
      {"break-on",
       [&] {
         return setChoice(o.breakOn, {"", "nan,inf", "nan", "inf", "off"});
       }},
      {"roofline", [&] { return setToggle(o.roofline); }},
      {"checkpoint.seconds", [&] { return setNumber(o.checkpointSeconds, 0, 1e9); }},
      {"checkpoint.keep", [&] { return setWhole(o.checkpointKeep, 1, 1000); }},
      {"cache.dir",
       [&]() -> Status {
         if (value.empty()) return invalidOption(name, "is empty; expected auto, off, or a folder");
         o.cacheDir = value == "off" ? std::string() : value == "auto" ? userCacheFolder().string() : std::string(value);
         return {};
       }},
      {"long.ms", [&] { return setWhole(o.longMs, 0, 1 << 30); }},
  };
  const auto info = std::find_if(table.begin(), table.end(), [&](const OptionInfo& i) { return i.name == name; });
  if (info == table.end()) return invalidOption(name, "unknown; `stepscope options` lists them");
  if (name == "plugin" || name.starts_with("plugin.")) {
    // A registry knows its plugins from its beginning to its end.
    if (value != info->defaultValue)
      return invalidOption(
          name, fmt::format("found '{}'; the session was opened with '{}', which stays; expected it before a model is "
                            "opened: --plugin, or the environment ({})",
                            value, info->defaultValue, environmentName(name)));
    o.added[std::string(name)] = std::string(value);
  } else if (name.starts_with("pass.")) {
    SS_ASSIGN(o.passes[std::string(name.substr(5))], parseToggle(name, value));
  } else if (const auto it = setters.find(name); it != setters.end()) {
    SS_TRY(it->second());
  } else {
    if (!info->choices.empty()) SS_TRY(checkChoice(name, value, info->choices));
    o.added[std::string(name)] = std::string(value);
  }
  auto& origin = o.origins[std::string(name)];
  const bool adds = (name == "group" || name == "pad" || name == "dim" || (name == "precision.force" && !value.empty())) &&
                    !origin.value.empty();
  origin = {adds ? origin.value + " " + std::string(value) : std::string(value), std::string(setBy)};
  return {};
}

Status checkOptions(const TrainOptions& o) {
  if (!o.lossGraph.empty() && !o.lossFn.empty())
    return invalidOption("loss-graph", fmt::format("loss-fn is '{}'; expected one of the two", o.lossFn));
  if (o.nesterov && o.momentum == 0) return invalidOption("nesterov", "momentum is 0; expected momentum above 0");
  if (o.nesterov && o.optimizer != "sgd")
    return invalidOption("nesterov", fmt::format("optimizer is '{}'; expected sgd", o.optimizer));
  if (o.momentum != 0 && o.optimizer != "sgd")
    return invalidOption("momentum",
                         fmt::format("optimizer is '{}'; expected sgd; hint: adam's decay rates are --betas", o.optimizer));
  return {};
}

int threadsOf(const TrainOptions& options) {
  return options.threads > 0 ? options.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace stepscope
