#include "engine/lab/bisect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "engine/build/loss_scale.h"
#include "engine/lab/delta_debugging.h"
#include "engine/lab/first_difference.h"
#include "engine/lab/option_proof.h"
#include "engine/lab/side_step.h"
#include "engine/lab/tensor_distance.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

// Gradients whose norm is a smaller share of that of all are rounding: that of a key's bias in attention is zero in theory.
constexpr double kNoise = 1e-4;
// An element whose gradient is nearly zero may be updated the other way: new values are compared less strictly.
constexpr double kUpdateTolerance = 0.05;

// What the reference left behind.
struct Reference {
  double loss = 0, squares = 0;  // squares: of all elements of all gradients
  std::map<std::string, Tensor> gradients, parameters;
};

class Bisection {
 public:
  Bisection(const BisectSubject& subject, const BisectQuestion& question) : subject_(subject), question_(question) {}

  Result<BisectReport> run() {
    if (!(question_.tolerance > 0 && question_.tolerance < 1))
      return invalid(fmt::format("option 'tolerance': found {}; expected a number between 0 and 1", question_.tolerance));
    report_.step = subject_.start.counters.step;
    report_.batch = toUtf8(subject_.batch.label);
    report_.tolerance = question_.tolerance;
    SS_ASSIGN(reference_, referenceOptions());
    for (const std::string& name : changedOptions(reference_, suspect(), table()))
      if (isOptimisation(name)) names_.push_back(name);
    report_.candidates = names_.size();
    SS_ASSIGN(const Reference expected, left(reference_));
    expected_ = &expected;
    SS_ASSIGN(report_.all, differenceOf(suspect()));
    report_.differs = report_.all.error > question_.tolerance;
    if (!report_.differs) return std::move(report_);
    SS_ASSIGN(const std::vector<std::string> set, findSet());
    const TrainOptions options = with(reference_, set);
    for (const std::string& name : set)
      report_.options.push_back({name, optionValue(reference_, name, table()), optionValue(suspect(), name, table())});
    SS_ASSIGN(report_.found, differenceOf(options));
    SS_TRY(tell("the first value that differs"));
    SS_TRY(findFirstDifference(subject_, question_, reference_, options, report_));
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
        return fail(ErrorCode::kNotFound,
                    fmt::format("option '{}': no such option; expected one of `stepscope options`", name));
      if (!isOptimisation(name))
        return invalid(fmt::format(
            "option 'reference': '{}' changes what is computed; expected options that change how, such as kernels", name));
      SS_TRY(applySetting(options, name, value, "bisect", table()));
    }
    SS_TRY(checkOptions(options));
    return options;
  }

  // `base` with the suspect's values of these options.
  TrainOptions with(const TrainOptions& base, const std::vector<std::string>& names) const {
    TrainOptions options = base;
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

  Result<std::unique_ptr<SideStep>> side(const TrainOptions& options) {
    ++report_.tried;
    SideSubject side{subject_.model, subject_.request, subject_.batch, subject_.start, subject_.cancelled};
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
    SS_TRY(tell("the reference"));
    SS_ASSIGN(const auto step, side(options));
    Reference reference;
    SS_TRY(runWithGradients(*step, subject_.batch,
                            [&](const std::string& name, const Tensor& gradient, double factor) -> Status {
                              Tensor kept = divided(gradient, factor);
                              reference.squares += distanceOf(kept, kept).expected;
                              reference.gradients[name] = std::move(kept);
                              return {};
                            }));
    reference.loss = step->loss();
    for (const ValueId id : step->step().trained) {
      const std::string& name = step->step().graph.value(id).name;
      reference.parameters[name] = step->state().read(name).clone();
    }
    return reference;
  }

  Result<BisectDifference> differenceOf(const TrainOptions& options) {
    SS_ASSIGN(const auto step, side(options));
    BisectDifference worst;
    const auto add = [&](double error, const std::string& what) {
      if (!(error <= worst.error)) worst = {std::isnan(error) ? std::numeric_limits<double>::infinity() : error, what};
    };
    std::set<std::string> noise;
    SS_TRY(runWithGradients(
        *step, subject_.batch, [&](const std::string& name, const Tensor& gradient, double factor) -> Status {
          const auto expected = expected_->gradients.find(name);
          if (expected == expected_->gradients.end()) return {};
          const TensorDistance distance = distanceOf(divided(gradient, factor), expected->second);
          const double floor = kNoise * std::sqrt(expected_->squares);
          if (std::sqrt(distance.expected) <= floor) noise.insert(name);
          const double error = distance.notFinite > 0 || floor <= 0
                                   ? distance.error()
                                   : std::sqrt(distance.difference) / std::max(floor, std::sqrt(distance.expected));
          add(error, fmt::format("gradient of '{}'", toUtf8(name)));
          return {};
        }));
    TensorDistance loss;
    loss.add(step->loss(), expected_->loss);
    add(loss.error(), "loss");
    if (worst.error > question_.tolerance) return worst;  // new values follow from gradients
    for (const auto& [name, expected] : expected_->parameters) {
      if (!step->state().contains(name) || noise.contains(name)) continue;
      const auto start = subject_.start.tensors.find(name);
      if (start == subject_.start.tensors.end()) continue;
      // Of the update, not of the parameter.
      const TensorDistance apart = distanceOf(step->state().read(name), expected),
                           update = distanceOf(start->second, expected);
      const double error = apart.notFinite > 0      ? std::numeric_limits<double>::infinity()
                           : apart.difference == 0  ? 0
                           : update.difference == 0 ? 1
                                                    : std::sqrt(apart.difference / update.difference);
      if (error > kUpdateTolerance) add(error, fmt::format("new value of '{}'", toUtf8(name)));
    }
    return worst;
  }

  Result<bool> shows(const TrainOptions& options, const std::string& what) {
    SS_TRY(tell(what));
    if (!checkOptions(options)) return false;
    const auto difference = differenceOf(options);
    if (!difference && difference.error().code == ErrorCode::kCancelled) return tl::make_unexpected(difference.error());
    return difference && difference->error > question_.tolerance;  // a set that makes no step shows nothing
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
  BisectReport report_;
};

}  // namespace

Result<BisectReport> bisect(const BisectSubject& subject, const BisectQuestion& question) {
  return Bisection(subject, question).run();
}

}  // namespace stepscope
