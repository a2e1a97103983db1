#include "engine/build/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <regex>
#include <thread>

#include "engine/passes/pipeline.h"
#include "kernels/device.h"

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

Result<bool> toggle(std::string_view name, std::string_view text) {
  if (text == "on" || text == "true" || text == "1" || text.empty()) return true;
  if (text == "off" || text == "false" || text == "0") return false;
  return invalid(fmt::format("option '{}': found '{}'; expected on or off", name, text));
}

Status oneOf(std::string_view name, std::string_view text, std::initializer_list<std::string_view> choices) {
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
  try {
    const std::regex compiled(text.begin(), text.end());
    return {};
  } catch (const std::regex_error& error) {
    return invalid(fmt::format("option '{}': regular expression '{}' is malformed: {}; expected ECMAScript syntax", option,
                               text, error.what()));
  }
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

constexpr double kHuge = 1e30;

// Every pass that has a switch once, in the order of the pipeline.
std::vector<Pass> allPasses() {
  std::vector<Pass> all;
  for (const PassList& list : pipeline())
    for (const Pass& pass : list.passes)
      if (pass.enabled != PassSwitch::kMandatory &&
          std::none_of(all.begin(), all.end(), [&](const Pass& other) { return other.name == pass.name; }))
        all.push_back(pass);
  return all;
}

std::vector<OptionInfo> makeTable() {
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
      {"device", "cpu", "where kernels run; mirror: for tests, mirror:OP,… lacks these ops", {"cpu", "mirror"}},
      {"precision", "fp32", "type of the computation", {"fp32"}},
      {"dim", "", "NAME=N: extent of a symbolic dimension of synthetic data", {}},
      {"missing-weights", "error", "external data that is not there: refuse, or fill from the seed", {"error", "random"}},
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
      {"record.percent",
       "0.5",
       "percent of the time of the steps that recording batches and statistics may take where they are auto",
       {}},
      {"roofline",
       "off",
       "measure what this machine can do (0.3 s, once per process) and set every instruction beside it",
       {"on", "off"}},
      {"long.ms", "100", "instructions that run longer in the first step are named: cancelling waits for them", {}},
  };
  static const std::vector<Pass> passes = allPasses();
  static const std::vector<std::string> names = [] {  // what the views in the table point to
    std::vector<std::string> all;
    for (const Pass& pass : passes) all.push_back("pass." + std::string(pass.name));
    return all;
  }();
  for (std::size_t i = 0; i < passes.size(); ++i)
    table.push_back({names[i], passes[i].enabled == PassSwitch::kOn ? "on" : "off", passes[i].doc, {"on", "off"}});
  return table;
}

}  // namespace

const std::vector<OptionInfo>& optionTable() {
  static const std::vector<OptionInfo> table = makeTable();
  return table;
}

Status applySetting(TrainOptions& o, std::string_view name, std::string_view value, std::string_view setBy) {
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
      {"device",
       [&]() -> Status {
         SS_TRY(findDevice(std::string(value)));
         o.device = value;
         return {};
       }},
      {"precision",
       [&]() -> Status {
         if (value == "fp32") {
           o.precision = value;
           return {};
         }
         if (value == "fp16" || value == "bf16")
           return unsupported(fmt::format("precision '{}': not available in this build; expected fp32", value));
         return invalid(fmt::format("precision '{}': unknown; expected fp32", value));
       }},
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
      {"memory.inplace", [&] { return setToggle(o.inPlace); }},
      {"memory.reuse", [&] { return setToggle(o.reuse); }},
      {"memory.limit", [&] { return setWhole(o.memoryLimit, 0, kMax); }},
      {"recompute.budget", [&] { return setWhole(o.recomputeBudget, 0, kMax); }},
      {"recompute.plan",
       [&]() -> Status {
         SS_ASSIGN(o.recomputePlan, parseRecomputePlan(value));
         return {};
       }},
      {"ring.bytes", [&] { return setWhole(o.ringBytes, 0, kMax); }},
      {"kernels",
       [&]() -> Status {
         SS_TRY(oneOf(name, value, {"fast", "reference"}));
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
      {"record.batch.bytes", [&] { return setWhole(o.recordBatchBytes, 0, 1 << 30); }},
      {"record.statistics",
       [&]() -> Status {
         SS_ASSIGN(o.recordStatistics, parseSampleRate(name, value));
         return {};
       }},
      {"record.percent", [&] { return setNumber(o.recordPercent, 0, 100); }},
      {"roofline", [&] { return setToggle(o.roofline); }},
      {"long.ms", [&] { return setWhole(o.longMs, 0, 1 << 30); }},
  };
  if (name.starts_with("pass.")) {
    bool known = false;
    for (const OptionInfo& info : optionTable()) known = known || info.name == name;
    if (!known) return invalid(fmt::format("option '{}': unknown; `stepscope options` lists them", name));
    SS_ASSIGN(o.passes[std::string(name.substr(5))], toggle(name, value));
  } else {
    const auto it = setters.find(name);
    if (it == setters.end()) return invalid(fmt::format("option '{}': unknown; `stepscope options` lists them", name));
    SS_TRY(it->second());
  }
  auto& origin = o.origins[std::string(name)];
  const bool adds = (name == "group" || name == "pad" || name == "dim") && !origin.value.empty();
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
