#include "engine/build/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <span>
#include <thread>

#include "engine/build/environment.h"
#include "engine/build/name_pattern.h"
#include "engine/build/registry.h"
#include "kernels/device.h"
#include "kernels/subnormals.h"

namespace stepscope {
namespace {

Result<double> number(std::string_view name, std::string_view text, double low, double high) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= low) || !(value <= high))
    return invalid(fmt::format("option '{}': found '{}'; expected a number from {:g} to {:g}", name, text, low, high));
  return value;
}

Result<std::int64_t> whole(std::string_view name, std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return invalid(fmt::format("option '{}': found '{}'; expected a whole number from {} to {}", name, text, low, high));
  return value;
}

// A size in bytes: a whole number, or a number with a unit such as "755 MiB" or "2.8GiB".
Result<std::int64_t> bytes(std::string_view name, std::string_view text, std::int64_t high) {
  static const std::map<std::string_view, double> units{
      {"", 1},     {"B", 1},    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
      {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},     {"TB", 1e12}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found = units.find(unit);
  if (error != std::errc() || found == units.end() || !(value >= 0) || !(value * found->second <= static_cast<double>(high)))
    return invalid(
        fmt::format("option '{}': found '{}'; expected a size from 0 to {} bytes, such as 1048576, 755 MiB or "
                    "2.8GiB",
                    name, text, high));
  if (unit.empty()) return whole(name, text, 0, high);  // exact, above 2^53 too
  return static_cast<std::int64_t>(std::llround(value * found->second));
}

Result<bool> toggle(std::string_view name, std::string_view text) {
  if (text == "on" || text == "true" || text == "1" || text.empty()) return true;
  if (text == "off" || text == "false" || text == "0") return false;
  return invalid(fmt::format("option '{}': found '{}'; expected on or off", name, text));
}

Status oneOf(std::string_view name, std::string_view text, std::span<const std::string_view> choices) {
  std::string list;
  for (const std::string_view choice : choices) {
    if (choice == text) return {};
    list += (list.empty() ? "" : ", ") + std::string(choice);
  }
  return invalid(fmt::format("option '{}': found '{}'; expected one of {}", name, text, list));
}

Result<std::pair<std::string, std::string_view>> assignment(std::string_view name, std::string_view text) {
  const auto split = text.rfind('=');
  if (split == std::string_view::npos || split == 0)
    return invalid(fmt::format("option '{}': found '{}'; expected NAME=NUMBER", name, text));
  return std::pair{std::string(text.substr(0, split)), text.substr(split + 1)};
}

Status checkRegex(std::string_view option, std::string_view text) {
  SS_TRY(NamePattern::compile(option, text));
  return {};
}

Result<PrecisionForce> parsePrecisionForce(std::string_view text) {
  static const std::map<std::string_view, DType> types{{"fp32", DType::kF32}, {"bf16", DType::kBF16}, {"fp16", DType::kF16}};
  const auto colon = text.rfind(':');  // the regular expression may hold colons
  const auto type = colon == std::string_view::npos ? types.end() : types.find(text.substr(colon + 1));
  if (type == types.end() || colon == 0)
    return invalid(fmt::format("option 'precision.force': found '{}'; expected REGEX:fp32, REGEX:bf16 or REGEX:fp16", text));
  SS_TRY(checkRegex("precision.force", text.substr(0, colon)));
  return PrecisionForce{std::string(text.substr(0, colon)), type->second};
}

// One after the other, separated by blanks: as they are shown where several were set. A regular expression may hold blanks.
Result<std::vector<PrecisionForce>> parsePrecisionForces(std::string_view text) {
  std::vector<PrecisionForce> forces;
  for (std::size_t begin = 0, at = 0; begin < text.size();) {
    at = text.find(' ', std::max(begin, at));
    const std::string_view one = text.substr(begin, at == std::string_view::npos ? at : at - begin);
    const bool ends = one.ends_with(":fp32") || one.ends_with(":bf16") || one.ends_with(":fp16");
    if (at != std::string_view::npos && !ends) {
      ++at;
      continue;
    }
    SS_ASSIGN(PrecisionForce force, parsePrecisionForce(one));
    forces.push_back(std::move(force));
    if (at == std::string_view::npos) break;
    begin = ++at;
  }
  return forces;
}

Result<ParameterGroup> parseGroup(std::string_view text) {
  // REGEX:key=value,key=value; the regular expression may hold colons, the settings may not.
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0)
    return invalid(fmt::format("option 'group': found '{}'; expected REGEX:lr=X,weight_decay=Y", text));
  SS_TRY(checkRegex("group", text.substr(0, colon)));
  ParameterGroup group{std::string(text.substr(0, colon)), {}, {}};
  std::string_view rest = text.substr(colon + 1);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    const auto equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    if (equals == std::string_view::npos || (key != "lr" && key != "weight_decay"))
      return invalid(fmt::format("option 'group': found '{}'; expected lr=X or weight_decay=X", item));
    SS_ASSIGN(const double value, number("group", item.substr(equals + 1), 0, 1e30));
    (key == "lr" ? group.lr : group.weightDecay) = value;
  }
  return group;
}

constexpr double kHuge = 1e30, kTiny = 1e-9;

std::string_view groupOf(std::string_view name) {
  static const std::map<std::string_view, std::string_view> groups{{"data", "Data"},
                                                                   {"pad", "Data"},
                                                                   {"padding", "Data"},
                                                                   {"dim", "Data"},
                                                                   {"seed", "Data"},
                                                                   {"loss", "Loss"},
                                                                   {"loss-fn", "Loss"},
                                                                   {"logits", "Loss"},
                                                                   {"labels", "Loss"},
                                                                   {"train", "Parameters"},
                                                                   {"freeze", "Parameters"},
                                                                   {"missing-weights", "Parameters"},
                                                                   {"batch-norm", "Parameters"},
                                                                   {"loop.max_iterations", "Run"},
                                                                   {"loop.max_memory", "Memory"},
                                                                   {"start-step", "Run"},
                                                                   {"steps", "Run"},
                                                                   {"threads", "Run"},
                                                                   {"device", "Run"},
                                                                   {"deterministic", "Run"},
                                                                   {"subnormals", "Precision"},
                                                                   {"kernels", "Run"},
                                                                   {"break-on", "Run"},
                                                                   {"long.ms", "Run"},
                                                                   {"ring.bytes", "Memory"},
                                                                   {"roofline", "Record"},
                                                                   {"recompute.plan", "Memory"},
                                                                   {"recompute.budget", "Memory"}};
  if (const auto found = groups.find(name); found != groups.end()) return found->second;
  if (name.starts_with("pass.")) return "Passes";
  if (name.starts_with("checkpoint.")) return "Run";
  if (name.starts_with("loss-scale") || name.starts_with("precision") || name == "master-weights") return "Precision";
  if (name.starts_with("memory.")) return "Memory";
  if (name.starts_with("record")) return "Record";
  return "Optimizer";
}

std::string_view kindOf(const OptionInfo& info) {
  if (info.choices.size() == 2 && info.choices[0] == "on") return "switch";
  if (!info.choices.empty()) return "choice";
  static const std::map<std::string_view, std::string_view> kinds{{"memory.limit", "bytes"},
                                                                  {"loop.max_memory", "bytes"},
                                                                  {"recompute.budget", "bytes"},
                                                                  {"ring.bytes", "bytes"},
                                                                  {"record.batch.bytes", "bytes"},
                                                                  {"accumulate", "count"},
                                                                  {"warmup-steps", "count"},
                                                                  {"total-steps", "count"},
                                                                  {"start-step", "count"},
                                                                  {"steps", "count"},
                                                                  {"seed", "count"},
                                                                  {"threads", "count"},
                                                                  {"long.ms", "count"},
                                                                  {"loop.max_iterations", "count"},
                                                                  {"lr", "number"},
                                                                  {"weight-decay", "number"},
                                                                  {"momentum", "number"},
                                                                  {"eps", "number"},
                                                                  {"clip-grad-norm", "number"},
                                                                  {"padding", "number"},
                                                                  {"loss-scale.growth", "number"},
                                                                  {"loss-scale.backoff", "number"},
                                                                  {"loss-scale.window", "count"},
                                                                  {"record.percent", "number"}};
  const auto found = kinds.find(info.name);
  return found == kinds.end() ? "text" : found->second;
}

}  // namespace

OptionInfo described(OptionInfo info) {
  info.group = groupOf(info.name);
  info.kind = kindOf(info);
  return info;
}

std::vector<OptionInfo> plainOptions() {
  std::vector<OptionInfo> table{
      {"data", "", "batches: .npz, directory of input_*.pb, .safetensors; empty = synthetic data from the seed", {}},
      {"loss", "", "scalar output to minimise; empty = the only scalar float output", {}},
      {"loss-fn", "", "loss to attach to an output", {"cross_entropy", "mse", "l1", "bce_with_logits"}},
      {"logits", "", "output that the attached loss reads; empty = the only float output", {}},
      {"labels", "labels", "input with the targets of the attached loss; added when the model has none", {}},
      {"train", "", "regular expression: only matching initializers are trained", {}},
      {"freeze", "", "regular expression: matching initializers are not trained", {}},
      {"optimizer", "sgd", "parameter update", {"sgd", "adam", "adamw", "lamb"}},
      {"lr", "0.001", "learning rate", {}},
      {"weight-decay", "", "weight decay; default 0, for adamw 0.01", {}},
      {"momentum", "0", "momentum of sgd", {}},
      {"nesterov", "off", "Nesterov momentum of sgd", {"on", "off"}},
      {"betas", "0.9,0.999", "decay rates of adam, adamw and lamb", {}},
      {"eps", "1e-8", "term added to the denominator of adam, adamw and lamb (lamb: default 1e-6)", {}},
      {"clip-grad-norm", "0", "largest global norm of the gradients; 0 = no clipping", {}},
      {"accumulate", "1", "micro steps per update; each gradient is divided by it", {}},
      {"lr-schedule",
       "constant",
       "factor of the learning rate over updates",
       {"constant", "linear", "cosine", "step", "polynomial"}},
      {"warmup-steps", "0", "updates over which the learning rate rises linearly to its value", {}},
      {"total-steps", "0", "updates until the schedule ends; 0 = as many as the run has", {}},
      {"group", "", "REGEX:lr=X,weight_decay=Y for matching parameters; the first match counts", {}},
      {"pad", "", "INPUT=ID: padding value of an input", {}},
      {"padding", "0", "fraction of padding in synthetic sequences", {}},
      {"start-step", "0", "number of the first micro step", {}},
      {"steps", "1", "micro steps to run", {}},
      {"seed", "0", "seed of random numbers: dropout, synthetic data, missing weights", {}},
      {"threads", "0", "threads of the kernels; 0 = all cores", {}},
      {"deterministic",
       "run",
       "equal bits for an equal number of threads (run), or for any number (threads): sums are cut by size alone, and what "
       "cannot be cut so takes one thread",
       {"run", "threads"}},
      {"subnormals",
       "keep",
       "float32 below 2^-126: computed with (keep), or zero on every thread (flush), which is faster where many appear",
       {"keep", "flush"}},
      {"device",
       "cpu",
       "where kernels run; cuda, cuda:N: a GPU; auto: cuda where there is one, else cpu; emulated: the CUDA kernels on the "
       "CPU, slow, every access checked (emulated:seed=N,… see kernels/emulated/README.md); mirror: for tests, mirror:OP,… "
       "lacks these ops",
       {"auto", "cpu", "cuda", "emulated", "mirror"}},
      {"precision",
       "fp32",
       "type of the computation; bf16, fp16: products in it, weights and optimizer state in float32",
       {"fp32", "bf16", "fp16"}},
      {"precision.force",
       "",
       "REGEX:fp32 (or bf16, fp16): type of nodes whose op, name or module matches; several by blanks; adds up",
       {}},
      {"master-weights",
       "auto",
       "type in which parameters are kept: auto = that of the file; fp32 = float32 also where the file has float16 or "
       "bfloat16; off = the low type of precision, updates round stochastically, optimizer state in float32",
       {"auto", "fp32", "off"}},
      {"loss-scale",
       "auto",
       "factor of the gradients on their way, so that small ones do not vanish in float16; auto = dynamic with fp16, else "
       "off; dynamic, off, or a number that stays",
       {}},
      {"loss-scale.init",
       "auto",
       "first factor of a dynamic loss scale; auto = 65536, or where the first batch overflows with it three "
       "loss-scale.backoff below the largest that fits",
       {}},
      {"loss-scale.growth", "2", "by how much a dynamic loss scale grows", {}},
      {"loss-scale.backoff", "0.5", "by how much a dynamic loss scale shrinks when a gradient overflows", {}},
      {"loss-scale.window", "2000", "updates without overflow before a dynamic loss scale grows", {}},
      {"dim", "", "NAME=N: extent of a symbolic dimension of synthetic data", {}},
      {"missing-weights", "error", "external data that is not there: refuse, or fill from the seed", {"error", "random"}},
      {"batch-norm",
       "frozen",
       "BatchNormalization of an inference file: frozen, as the file says; batch = normalises with the statistics of the "
       "batch and updates the running ones, as in training",
       {"frozen", "batch"}},
      {"loop.max_iterations",
       "128",
       "most iterations of a loop whose number is computed; a step that needs more is an error. Before the first build",
       {}},
      {"loop.max_memory",
       "0",
       "bytes that the iterations of a loop whose number is computed may keep for the gradient and its results; 0 = "
       "memory.limit alone",
       {}},
      {"memory.inplace", "on", "outputs may take over the memory of an input that dies", {"on", "off"}},
      {"memory.reuse", "on", "memory of dead values is given to later ones", {"on", "off"}},
      {"memory.limit", "0", "bytes that the plan may need; 0 = what the machine has", {}},
      {"recompute.budget", "0", "bytes of live activations to stay below by computing forward values again; 0 = off", {}},
      {"recompute.plan",
       "",
       "PATTERN:1:COUNT,…: forward values to compute again, by pattern (`build` lists them); -1 = all",
       {}},
      {"ring.bytes", "268435456", "bytes kept for step states to rewind to", {}},
      {"kernels", "fast", "fast kernels, or plain reference loops", {"fast", "reference"}},
      {"record", "instructions", "what a step records", {"off", "steps", "instructions"}},
      {"record.batch",
       "auto",
       "batch and losses of its rows: auto (as often as record.percent allows), off, or every N-th step",
       {}},
      {"record.batch.bytes",
       "16384",
       "contents of each input that are kept with a recorded batch; 0 = statistics alone",
       {}},
      {"record.statistics",
       "auto",
       "statistics of trained parameters, gradients and module outputs: auto (as often as record.percent allows), off, or "
       "every N-th step",
       {}},
      {"record.keep",
       "4096",
       "steps that keep the begin and end of their instructions in the project: the newest N all, 16 N before them every "
       "16th, "
       "those before every 256th; all = every step",
       {}},
      {"record.percent",
       "0.5",
       "percent of the time of the steps that recording batches and statistics may take where they are auto",
       {}},
      {"break-on",
       "",
       "a step whose loss, gradient norm or watched value is not finite: empty = an alert that names the cause, and the run "
       "goes on; nan, inf or both = the run ends there; off = nothing is looked for",
       {"", "nan,inf", "nan", "inf", "off"}},
      {"roofline",
       "off",
       "measure what this machine can do (0.3 s, once per process) and set every instruction beside it",
       {"on", "off"}},
      {"checkpoint.seconds", "300", "seconds between two checkpoints on the way to --save; 0 = at the end alone", {}},
      {"checkpoint.keep", "2", "checkpoints that stay: FILE, then FILE.1, the one before, and so on", {}},
      {"long.ms", "100", "instructions that run longer in the first step are named: cancelling waits for them", {}},
  };
  for (OptionInfo& info : table) info = described(std::move(info));
  return table;
}

const std::vector<OptionInfo>& optionTable() { return Registry::builtIn()->options(); }

Status applySetting(TrainOptions& o, std::string_view name, std::string_view value, std::string_view setBy,
                    const std::vector<OptionInfo>& table) {
  constexpr std::int64_t kMax = std::int64_t{1} << 62;
  const auto setNumber = [&](double& target, double low, double high) -> Status {
    SS_ASSIGN(target, number(name, value, low, high));
    return {};
  };
  const auto setWhole = [&](auto& target, std::int64_t low, std::int64_t high) -> Status {
    SS_ASSIGN(const std::int64_t parsed, whole(name, value, low, high));
    target = static_cast<std::decay_t<decltype(target)>>(parsed);
    return {};
  };
  const auto setBytes = [&](std::int64_t& target, std::int64_t high) -> Status {
    SS_ASSIGN(target, bytes(name, value, high));
    return {};
  };
  const auto setToggle = [&](bool& target) -> Status {
    SS_ASSIGN(target, toggle(name, value));
    return {};
  };
  const auto setChoice = [&](std::string& target, std::initializer_list<std::string_view> choices) -> Status {
    SS_TRY(oneOf(name, value, choices));
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
         SS_TRY(checkRegex(name, value));
         o.train = value;
         return {};
       }},
      {"freeze",
       [&]() -> Status {
         SS_TRY(checkRegex(name, value));
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
         SS_ASSIGN(const double d, number(name, value, 0, kHuge));
         o.weightDecay = d;
         return {};
       }},
      {"momentum", [&] { return setNumber(o.momentum, 0, kHuge); }},
      {"nesterov", [&] { return setToggle(o.nesterov); }},
      {"betas",
       [&]() -> Status {
         const auto comma = value.find(',');
         if (comma == std::string_view::npos)
           return invalid(fmt::format("option 'betas': found '{}'; expected two numbers A,B", value));
         SS_ASSIGN(o.beta1, number(name, value.substr(0, comma), 0, 1));
         SS_ASSIGN(o.beta2, number(name, value.substr(comma + 1), 0, 1));
         if (o.beta1 >= 1 || o.beta2 >= 1)
           return invalid(fmt::format("option 'betas': found '{}'; expected numbers below 1", value));
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
         SS_ASSIGN(const auto pair, assignment(name, value));
         SS_ASSIGN(o.pad[pair.first], whole(name, pair.second, -kMax, kMax));
         return {};
       }},
      {"padding", [&] { return setNumber(o.padding, 0, 1); }},
      {"start-step", [&] { return setWhole(o.startStep, 0, kMax); }},
      {"steps", [&] { return setWhole(o.steps, 0, kMax); }},
      {"seed", [&] { return setWhole(o.seed, 0, INT64_MAX); }},
      {"threads", [&] { return setWhole(o.threads, 0, 1024); }},
      {"deterministic",
       [&] {
         return setChoice(o.deterministic, {"run", "threads"});
       }},
      {"subnormals",
       [&]() -> Status {
         SS_TRY(setChoice(o.subnormals, {"keep", "flush"}));
         if (o.subnormals == "flush" && !canFlushSubnormals())
           return invalid("option 'subnormals': flush; this processor cannot; expected keep");
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
      {"master-weights",
       [&] {
         return setChoice(o.masterWeights, {"auto", "fp32", "off"});
       }},
      {"loss-scale",
       [&]() -> Status {
         if (value != "auto" && value != "dynamic" && value != "off")
           if (const auto factor = number(name, value, 0, kHuge); !factor || *factor == 0)
             return invalid(
                 fmt::format("option 'loss-scale': found '{}'; expected auto, dynamic, off or a number above 0", value));
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
         SS_ASSIGN(const auto pair, assignment(name, value));
         SS_ASSIGN(o.dims[pair.first], whole(name, pair.second, 0, std::int64_t{1} << 40));
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
      {"ring.bytes", [&] { return setBytes(o.ringBytes, kMax); }},
      {"kernels",
       [&]() -> Status {
         SS_TRY(oneOf(name, value, std::array<std::string_view, 2>{"fast", "reference"}));
         o.referenceKernels = value == "reference";
         return {};
       }},
      {"record",
       [&] {
         return setChoice(o.record, {"off", "steps", "instructions"});
       }},
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
         if (value != "all") SS_TRY(whole(name, value, 1, std::int64_t{1} << 40));
         return {};
       }},
      {"record.percent", [&] { return setNumber(o.recordPercent, 0, 100); }},
      {"break-on",
       [&] {
         return setChoice(o.breakOn, {"", "nan,inf", "nan", "inf", "off"});
       }},
      {"roofline", [&] { return setToggle(o.roofline); }},
      {"checkpoint.seconds", [&] { return setNumber(o.checkpointSeconds, 0, 1e9); }},
      {"checkpoint.keep", [&] { return setWhole(o.checkpointKeep, 1, 1000); }},
      {"long.ms", [&] { return setWhole(o.longMs, 0, 1 << 30); }},
  };
  const auto info = std::find_if(table.begin(), table.end(), [&](const OptionInfo& i) { return i.name == name; });
  if (info == table.end()) return invalid(fmt::format("option '{}': unknown; `stepscope options` lists them", name));
  if (name == "plugin" || name.starts_with("plugin.")) {
    // A registry knows its plugins from its beginning to its end.
    if (value != info->defaultValue)
      return invalid(fmt::format(
          "option '{}': found '{}'; the session was opened with '{}', which stays; expected it before a model is "
          "opened: --plugin, or the environment ({})",
          name, value, info->defaultValue, environmentName(name)));
    o.added[std::string(name)] = std::string(value);
  } else if (name.starts_with("pass.")) {
    SS_ASSIGN(o.passes[std::string(name.substr(5))], toggle(name, value));
  } else if (const auto it = setters.find(name); it != setters.end()) {
    SS_TRY(it->second());
  } else {
    if (!info->choices.empty()) SS_TRY(oneOf(name, value, info->choices));
    o.added[std::string(name)] = std::string(value);
  }
  auto& origin = o.origins[std::string(name)];
  const bool adds = (name == "group" || name == "pad" || name == "dim" || (name == "precision.force" && !value.empty())) &&
                    !origin.value.empty();
  origin = {adds ? origin.value + " " + std::string(value) : std::string(value), std::string(setBy)};
  return {};
}

Status checkOptions(const TrainOptions& o) {
  if (o.nesterov && o.momentum == 0) return invalid("option 'nesterov': momentum is 0; expected momentum above 0");
  if (o.nesterov && o.optimizer != "sgd")
    return invalid(fmt::format("option 'nesterov': optimizer is '{}'; expected sgd", o.optimizer));
  if (o.momentum != 0 && o.optimizer != "sgd")
    return invalid(fmt::format("option 'momentum': optimizer is '{}'; expected sgd; hint: adam's decay rates are --betas",
                               o.optimizer));
  return {};
}

int threadsOf(const TrainOptions& options) {
  return options.threads > 0 ? options.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace stepscope
