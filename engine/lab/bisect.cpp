#include "engine/lab/bisect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>

#include "engine/build/loss_scale.h"
#include "engine/lab/delta_debugging.h"
#include "engine/lab/first_difference.h"
#include "engine/lab/noise_bounds.h"
#include "engine/lab/option_proof.h"
#include "engine/lab/side_step.h"
#include "engine/lab/tensor_distance.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

// What the reference left behind.
struct Reference {
  double loss = 0;
  std::map<std::string, Tensor> gradients, parameters;
};

class Bisection {
 public:
  Bisection(const BisectSubject& subject, const BisectQuestion& question) : subject_(subject), question_(question) {}

  Result<BisectReport> run() {
    if (!(question_.tolerance >= 0 && question_.tolerance < 1))
      return invalidOption("tolerance", fmt::format("found {}; expected a number between 0 and 1", question_.tolerance));
    report_.step = subject_.start.counters.step;
    report_.batch = toUtf8(subject_.batch.label);
    report_.tolerance = question_.tolerance;
    SS_ASSIGN(reference_, referenceOptions());
    for (const std::string& name : changedOptions(reference_, suspect(), table()))
      if (isOptimisation(name)) names_.push_back(name);
    report_.candidates = names_.size();
    bounds_ = NoiseBounds(question_.tolerance);
    SS_TRY(measureNoise());
    SS_TRY(tell("the reference"));
    SS_ASSIGN(const Reference expected, left(reference_));
    expected_ = &expected;
    SS_ASSIGN(report_.all, differenceOf(suspect()));
    report_.differs = report_.all.beyond();
    if (!report_.differs) return std::move(report_);
    SS_ASSIGN(const std::vector<std::string> set, findSet());
    const TrainOptions options = with(reference_, set);
    for (const std::string& name : set)
      report_.options.push_back({name, optionValue(reference_, name, table()), optionValue(suspect(), name, table())});
    SS_ASSIGN(report_.found, differenceOf(options));
    SS_TRY(tell("the first value that differs"));
    BisectQuestion bounded = question_;
    bounded.tolerance = report_.found.bound;
    SS_TRY(findFirstDifference(subject_, bounded, reference_, options, report_));
    return std::move(report_);
  }

 private:
  const std::vector<OptionInfo>& table() const { return subject_.model->registry->options(); }
  const TrainOptions& suspect() const { return subject_.request.options; }

  Status tell(const std::string& what) {
    if (subject_.cancelled && subject_.cancelled->exchange(false)) return fail(ErrorCode::kCancelled, "bisect: cancelled");
    if (subject_.progress) subject_.progress("bisect: " + what, report_.tried, 0);
    return {};
  }

  Result<TrainOptions> referenceOptions() const {
    TrainOptions options = suspect();
    const auto set = [&](const std::string& name, std::string_view value) {
      return optionValue(options, name, table()) == value ? Status() : applySetting(options, name, value, "bisect", table());
    };
    for (const OptionInfo& info : table()) {
      const std::string name(info.name);
      const bool canBeOff = std::ranges::find(info.choices, "off") != info.choices.end();
      if ((name.starts_with("pass.") || name.starts_with("memory.")) && canBeOff) SS_TRY(set(name, "off"));
    }
    SS_TRY(set("precision.force", ""));
    SS_TRY(set("precision", "fp32"));
    SS_TRY(set("recompute.budget", "0"));
    SS_TRY(set("recompute.plan", ""));
    for (const auto& [name, value] : question_.reference) {
      const auto known = std::ranges::find(table(), name, &OptionInfo::name);
      if (known == table().end())
        return failOption(ErrorCode::kNotFound, name, "no such option; expected one of `stepscope options`");
      if (!isOptimisation(name))
        return invalidOption(
            "reference",
            fmt::format("'{}' changes what is computed; expected options that change how, such as kernels", name));
      SS_TRY(applySetting(options, name, value, "bisect", table()));
    }
    SS_TRY(checkOptions(options));
    return options;
  }

  // `base` with the suspect's values of these options.
  TrainOptions with(const TrainOptions& base, const std::vector<std::string>& names,
                    const std::vector<std::pair<std::string, std::string>>& settings = {}) const {
    TrainOptions options = base;
    for (const auto& [name, value] : settings) SS_CHECK(applySetting(options, name, value, "bisect", table()).has_value());
    for (const std::string& name : names) {
      if (name == "precision.force") {  // settings of it add up
        options.precisionForce = suspect().precisionForce;
        options.origins[name] = suspect().origins.at(name);
        continue;
      }
      SS_CHECK(applySetting(options, name, optionValue(suspect(), name, table()), "bisect", table()).has_value());
    }
    return options;
  }

  Result<std::unique_ptr<SideStep>> side(const TrainOptions& options, const StateSnapshot* start = nullptr) {
    ++report_.tried;
    SideSubject side{subject_.model, subject_.request, subject_.batch, start ? *start : subject_.start, subject_.cancelled};
    side.request.options = options;
    side.request.threads = threadsOf(options);
    side.keepGradients = subject_.request.keepGradients;
    side.findLossScale = true;
    return SideStep::make(side);
  }

  // Calls `each` with the name of a parameter and its gradient, without the loss scale, as soon as it is made.
  template <typename Each>
  static Status runWithGradients(SideStep& side, const Batch& batch, const Each& each) {
    const double factor =
        side.step().optimizer.lossScale ? lossScaleFactor(side.step().request.options, side.state().counters.lossScale) : 1;
    std::multimap<int, std::size_t> made;  // by instruction: which gradient is complete then
    const ExecutionPlan& plan = side.stepper().plan();
    for (std::size_t i = 0; i < side.step().trained.size(); ++i)
      if (const ValueId id = side.step().optimizer.accumulated[i])
        made.emplace(plan.instructionOf(side.stepper().graph().value(id).producer), i);
    return side.run(batch, [&](int instruction) -> Status {
      for (auto [it, end] = made.equal_range(instruction); it != end; ++it) {
        const auto contents = side.stepper().executor().read(side.step().optimizer.accumulated[it->second]);
        if (contents) SS_TRY(each(side.step().graph.value(side.step().trained[it->second]).name, *contents, factor));
      }
      return {};
    });
  }

  static Tensor divided(const Tensor& gradient, double factor) {
    Tensor wide = convertTensor(gradient.view(), DType::kF32).clone();
    if (factor != 1)
      for (float& x : wide.as<float>()) x = static_cast<float>(x / factor);
    return wide;
  }

  static TensorDistance distanceOf(const Tensor& a, const Tensor& b) {
    TensorDistance distance;
    if (a.elements() != b.elements()) distance.notFinite = 1;
    for (std::int64_t i = 0; i < std::min(a.elements(), b.elements()); ++i)
      distance.add(elementAsDouble(a.view(), i), elementAsDouble(b.view(), i));
    return distance;
  }

  Result<Reference> left(const TrainOptions& options) {
    SS_ASSIGN(const auto step, side(options));
    Reference reference;
    SS_TRY(runWithGradients(*step, subject_.batch,
                            [&](const std::string& name, const Tensor& gradient, double factor) -> Status {
                              reference.gradients[name] = divided(gradient, factor);
                              return {};
                            }));
    reference.loss = step->loss();
    for (const ValueId id : step->step().trained) {
      const std::string& name = step->step().graph.value(id).name;
      reference.parameters[name] = step->state().read(name).clone();
    }
    return reference;
  }

  // Calls `each` with what a quantity of the step is and its error beside what is expected of it.
  template <typename Each>
  Status errorsOf(SideStep& step, const Reference& wanted, const Each& each) const {
    SS_TRY(runWithGradients(step, subject_.batch,
                            [&](const std::string& name, const Tensor& gradient, double factor) -> Status {
                              if (const auto expected = wanted.gradients.find(name); expected != wanted.gradients.end())
                                each(fmt::format("gradient of '{}'", toUtf8(name)),
                                     distanceOf(divided(gradient, factor), expected->second).error());
                              return {};
                            }));
    TensorDistance loss;
    loss.add(step.loss(), wanted.loss);
    each("loss", loss.error());
    for (const auto& [name, expected] : wanted.parameters) {
      const auto start = subject_.start.tensors.find(name);
      if (!step.state().contains(name) || start == subject_.start.tensors.end()) continue;
      // Of the update, not of the parameter.
      const TensorDistance apart = distanceOf(step.state().read(name), expected),
                           update = distanceOf(start->second, expected);
      each(fmt::format("new value of '{}'", toUtf8(name)), apart.notFinite > 0     ? std::numeric_limits<double>::infinity()
                                                           : apart.difference == 0 ? 0
                                                           : update.difference == 0
                                                               ? 1
                                                               : std::sqrt(apart.difference / update.difference));
    }
    return {};
  }

  // The reference with itself. With fast kernels: those of reference would take long and have one order of sums only.
  Status measureNoise() {
    const TrainOptions fast = with(reference_, {}, {{"kernels", "fast"}});
    SS_TRY(tell("noise of the reference with itself"));
    SS_ASSIGN(const Reference wanted, left(fast));
    const auto look = [&](const TrainOptions& options, const StateSnapshot* start) -> Status {
      SS_TRY(tell("noise of the reference with itself"));
      SS_ASSIGN(const auto step, side(options, start));
      ++report_.pairs;
      return errorsOf(*step, wanted, [&](const std::string& what, double error) { bounds_.add(what, error); });
    };
    const int own = threadsOf(fast);
    for (const int threads : {1, 2, 3})
      if (threads != own) SS_TRY(look(with(fast, {}, {{"threads", std::to_string(threads)}}), nullptr));
    for (const std::uint32_t seed : {1U, 2U}) {
      const StateSnapshot rounded = roundedOnceMore(subject_.start, seed);
      SS_TRY(look(fast, &rounded));
    }
    report_.noise = bounds_.medianNoise("gradient of ");
    return {};
  }

  // Every float32 number of the state one step of its precision up or down, by a coin.
  static StateSnapshot roundedOnceMore(const StateSnapshot& start, std::uint32_t seed) {
    StateSnapshot rounded = start;
    std::minstd_rand coins(seed);
    for (auto& [name, tensor] : rounded.tensors) {
      if (tensor.dtype() != DType::kF32) continue;
      tensor = tensor.clone();
      for (float& x : tensor.as<float>())
        if (x != 0) x = std::nextafter(x, (coins() & 16U) != 0 ? HUGE_VALF : -HUGE_VALF);
    }
    return rounded;
  }

  Result<BisectDifference> differenceOf(const TrainOptions& options) {
    SS_ASSIGN(const auto step, side(options));
    BisectDifference worst;
    SS_TRY(errorsOf(*step, *expected_, [&](const std::string& what, double found) {
      const double error = std::isnan(found) ? std::numeric_limits<double>::infinity() : found,
                   bound = bounds_.boundOf(what);
      if (error > 0 && (worst.what.empty() || error / bound > worst.error / worst.bound)) worst = {error, what, bound};
    }));
    return worst;
  }

  Result<bool> shows(const TrainOptions& options, const std::string& what) {
    SS_TRY(tell(what));
    if (!checkOptions(options)) return false;
    const auto difference = differenceOf(options);
    if (!difference && difference.error().code == ErrorCode::kCancelled) return tl::make_unexpected(difference.error());
    return difference && difference->beyond();  // a set that makes no step shows nothing
  }

  // Reference kernels take long. So fast ones are judged first: where they alone change nothing, the search goes on with
  // them, and whether they are needed is found out at the end.
  Result<std::vector<std::string>> findSet() {
    std::vector<std::string> names = names_;
    TrainOptions base = reference_;
    const auto kernels = std::ranges::find(names, "kernels");
    const bool fast = kernels != names.end();
    if (fast) {
      const TrainOptions alone = with(reference_, {"kernels"});
      SS_ASSIGN(const bool cause, shows(alone, "fast kernels"));
      if (cause) return std::vector<std::string>{"kernels"};
      names.erase(kernels);
      base = alone;
    }
    SS_ASSIGN(const auto set, smallestSet(names.size(), [&](const std::vector<std::size_t>& some) {
                return shows(with(base, picked(names, some)), fmt::format("{} of {} options", some.size(), names.size()));
              }));
    std::vector<std::string> found = picked(names, set);
    if (!fast) return found;
    SS_ASSIGN(const bool without, shows(with(reference_, found), "without fast kernels"));
    if (!without) found.insert(found.begin(), "kernels");
    return found;
  }

  static std::vector<std::string> picked(const std::vector<std::string>& names, const std::vector<std::size_t>& set) {
    std::vector<std::string> some;
    for (const std::size_t i : set) some.push_back(names[i]);
    return some;
  }

  const BisectSubject& subject_;
  const BisectQuestion& question_;
  TrainOptions reference_;
  std::vector<std::string> names_;
  const Reference* expected_ = nullptr;
  NoiseBounds bounds_;
  BisectReport report_;
};

}  // namespace

Result<BisectReport> bisect(const BisectSubject& subject, const BisectQuestion& question) {
  return Bisection(subject, question).run();
}

}  // namespace stepscope
