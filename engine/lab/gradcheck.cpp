#include "engine/lab/gradcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "engine/autodiff/gradient.h"
#include "engine/build/name_pattern.h"
#include "engine/exec/interpreter.h"
#include "engine/lab/first_cause.h"
#include "engine/lab/one_node.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

constexpr double kStep = 1e-6, kMoved = 1e-3;
constexpr double kKink = 1e-3;  // of the slopes: both sides differ by more
constexpr int kDirections = 2, kElements = 2;

// That stands for an infinity: the masks of attention.
bool isMask(double x) { return !(std::abs(x) < 1e30); }

// Of what is no mask.
double rootMeanSquare(const Tensor& x) {
  double squares = 0;
  for (const double e : x.as<const double>())
    if (!isMask(e)) squares += e * e;
  return x.elements() > 0 ? std::sqrt(squares / static_cast<double>(x.elements())) : 0;
}

// Slopes of L along `direction`.
struct Slopes {
  double central = 0, right = 0, left = 0;
};

class NodeCheck {
 public:
  NodeCheck(const OneNode& node, snapshot::GradcheckNode& out) : node_(node), out_(out), random_(1) {}

  Status run() {
    SS_TRY(findNumbers());
    SS_TRY(look(false));
    if (kink_) {
      out_.set_note("operands moved by a thousandth: they lie at a kink, where two slopes are right");
      SS_TRY(look(true));
    }
    bool differs = false;
    for (const snapshot::GradcheckInput& input : out_.inputs()) differs = differs || input.verdict() == "differs";
    out_.set_verdict(differs ? "differs" : "agrees");
    return {};
  }

 private:
  // Between numbers alone there is a slope.
  Status findNumbers() const {
    const auto unchecked = [&](std::size_t i, const char* what) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("operand {} '{}' {} in this step; expected numbers", i, node_.names[i], what));
    };
    for (std::size_t i = 0; i < node_.operands.size(); ++i) {
      const Tensor& x = node_.operands[i];
      if (!x.valid() || !isFloating(x.dtype())) continue;
      for (std::int64_t k = 0; k < x.elements(); ++k)
        if (std::isnan(elementAsDouble(x.view(), k))) return unchecked(i, "holds NaN");
    }
    for (const std::size_t i : node_.varied)
      if (node_.operands[i].elements() == 0) return unchecked(i, "has no elements");
    return {};
  }

  Status look(bool moved) {
    out_.clear_inputs();
    std::vector<Tensor> at = node_.operands;
    if (moved)
      for (const std::size_t i : node_.varied) {
        at[i] = at[i].clone();
        const double scale = rootMeanSquare(at[i]);
        for (double& e : at[i].as<double>())
          if (!isMask(e)) e += kMoved * std::max(std::abs(e), scale) * uniform_(random_);
      }
    SS_ASSIGN(const OneNodeStep center, node_.step(at, true));
    for (std::size_t t = 0; t < node_.varied.size(); ++t) SS_TRY(compare(at, center, t));
    return {};
  }

  Status compare(const std::vector<Tensor>& at, const OneNodeStep& center, std::size_t t) {
    const std::size_t i = node_.varied[t];
    const Tensor& x = at[i];
    const Tensor& gradient = center.gradients[t];
    snapshot::GradcheckInput& out = *out_.add_inputs();
    out.set_index(static_cast<int>(i));
    out.set_name(toUtf8(node_.names[i]));
    for (const std::int64_t dim : x.dims()) out.add_dims(dim);
    out.set_norm(rootMeanSquare(gradient) * std::sqrt(static_cast<double>(gradient.elements())));
    std::vector<double> lengths(static_cast<std::size_t>(x.elements()));
    const double scale = std::max(0.01 * rootMeanSquare(x), 1e-12);
    for (std::size_t k = 0; k < lengths.size(); ++k) {
      const double length = std::abs(x.as<const double>()[k]);
      lengths[k] = isMask(length) ? 0 : scale <= 1e-12 ? 1 : std::max(length, scale);
    }
    for (int d = 0; d < kDirections; ++d) {
      std::vector<double> direction = lengths;
      for (double& e : direction)
        if ((random_() & 1U) != 0) e = -e;
      SS_TRY(probe(at, center, t, direction, out));
    }
    const auto slopes = gradient.as<const double>();
    for (int e = 0; e < kElements && !lengths.empty(); ++e) {
      std::size_t k = random_() % lengths.size();
      if (e == 0)
        for (std::size_t j = 0; j < lengths.size(); ++j)
          if (std::abs(slopes[j]) > std::abs(slopes[k])) k = j;
      std::vector<double> direction(lengths.size(), 0.0);
      direction[k] = lengths[k];
      SS_TRY(probe(at, center, t, direction, out));
    }
    out.set_verdict(out.error() <= kGradcheckTolerance ? "agrees" : "differs");
    return {};
  }

  Status probe(const std::vector<Tensor>& at, const OneNodeStep& center, std::size_t t, const std::vector<double>& direction,
               snapshot::GradcheckInput& out) {
    const std::size_t i = node_.varied[t];
    const auto lossAt = [&](double h) -> Result<double> {
      std::vector<Tensor> there = at;
      there[i] = at[i].clone();
      const auto x = there[i].as<double>();
      for (std::size_t k = 0; k < direction.size(); ++k) x[k] += h * direction[k];
      SS_ASSIGN(const OneNodeStep step, node_.step(there, false));
      return step.loss;
    };
    SS_ASSIGN(const double up, lossAt(kStep));
    SS_ASSIGN(const double down, lossAt(-kStep));
    const Slopes found{(up - down) / (2 * kStep), (up - center.loss) / kStep, (center.loss - down) / kStep};
    double byRule = 0, squares = 0;
    const auto gradient = center.gradients[t].as<const double>();
    for (std::size_t k = 0; k < direction.size(); ++k) {
      byRule += gradient[k] * direction[k];
      squares += gradient[k] * gradient[k] * direction[k] * direction[k];
    }
    // What float64 resolves of a difference of two losses.
    const double noise = 1e-15 * center.size / kStep;
    const double whole = std::max(
        {std::abs(found.central), std::abs(byRule), 0.1 * std::sqrt(squares), noise / kGradcheckTolerance * 10, 1e-300});
    kink_ = kink_ || std::abs(found.right - found.left) > kKink * whole;
    double error = std::abs(found.central - byRule) / whole;
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    out.set_error(std::max(out.error(), error));
    out.set_probes(out.probes() + 1);
    return {};
  }

  const OneNode& node_;
  snapshot::GradcheckNode& out_;
  std::minstd_rand random_;
  std::uniform_real_distribution<double> uniform_{-1, 1};
  bool kink_ = false;
};

class Check {
 public:
  Check(const SideSubject& subject, std::optional<NamePattern> only, NodeId id,
        const std::function<void(const std::string&, std::int64_t, std::int64_t)>& tell)
      : subject_(subject), only_(std::move(only)), id_(id), tell_(tell) {}

  Result<snapshot::GradcheckReport> run() {
    report_.set_step(subject_.start.counters.step);
    report_.set_batch(toUtf8(subject_.batch.label));
    report_.set_tolerance(kGradcheckTolerance);
    SideSubject plain = subject_;
    plain.keepGradients = false;
    for (const OptionInfo& option : subject_.model->registry->options())
      if (option.name.starts_with("pass.")) plain.request.options.passes[std::string(option.name.substr(5))] = false;
    plain.request.options.precision = "fp32";
    plain.request.options.precisionForce.clear();
    SS_ASSIGN(side_, SideStep::make(plain));
    SS_TRY(findNodes());
    Status failed;
    const auto before = [&](int i) {
      if (const auto wanted = wanted_.find(i); wanted != wanted_.end() && side_->stepper().executor().conditionsHold(i))
        failed = check(wanted->second);
      return failed.has_value();
    };
    SS_TRY(side_->run(subject_.batch, {}, before));
    SS_TRY(failed);
    for (const snapshot::GradcheckNode& node : report_.nodes()) {
      report_.set_agreed(report_.agreed() + (node.verdict() == "agrees"));
      report_.set_differed(report_.differed() + (node.verdict() == "differs"));
    }
    return std::move(report_);
  }

 private:
  const Graph& graph() const { return side_->stepper().graph(); }

  Status findNodes() {
    for (const ValueGradient& gradient : graph().gradients) reached_.insert(gradient.value);
    std::size_t flows = 0;
    const ExecutionPlan& plan = side_->stepper().plan();
    for (const NodeId id : graph().order()) {
      const Node& node = graph().node(id);
      if (node.phase != Phase::kForward || plan.instructionOf(id) < 0) continue;
      if (std::ranges::none_of(node.outputs, [&](ValueId out) { return out && reached_.contains(out); })) continue;
      ++flows;
      if (id_ ? importedNodeOf(graph(), id) != id_
              : only_ && !only_->foundIn(node.name) && !only_->foundIn(node.op) &&
                    !only_->foundIn(node.provenance.modulePath))
        continue;
      wanted_[plan.instructionOf(id)] = id;
    }
    if (!wanted_.empty()) return {};
    return failOption(ErrorCode::kNotFound, "node",
                      fmt::format("none of {} nodes that a gradient flows through is meant; expected a part of a "
                                  "name, an op or a module path, as `stepscope inspect` lists them",
                                  flows));
  }

  Status check(NodeId id) {
    if (subject_.cancelled && subject_.cancelled->exchange(false))
      return fail(ErrorCode::kCancelled, "gradcheck: cancelled");
    const Node& node = graph().node(id);
    if (tell_) tell_("gradcheck: " + toUtf8(node.name), done_, static_cast<std::int64_t>(wanted_.size()));
    ++done_;
    snapshot::GradcheckNode out;
    const NodeId imported = importedNodeOf(graph(), id);
    out.set_node(imported.index);
    out.set_name(toUtf8(node.name));
    out.set_op(node.op);
    out.set_module(toUtf8(std::string(node.provenance.modulePath)));
    if (!node.provenance.sourceFile.empty())
      out.set_source(toUtf8(fmt::format("{}:{}", node.provenance.sourceFile.view(), node.provenance.sourceLine)));
    Status status = [&]() -> Status {
      SS_ASSIGN(const OneNode alone, OneNode::of(
                                         graph(), node, subject_.model->registry->operators(),
                                         [&](ValueId value) { return side_->stepper().executor().read(value); },
                                         [&](ValueId value) { return reached_.contains(value); }));
      return NodeCheck(alone, out).run();
    }();
    if (!status) {
      out.clear_inputs();
      out.set_verdict("unchecked");
      out.set_note(toUtf8(status.error().message));
    }
    *report_.add_nodes() = std::move(out);
    return {};
  }

  const SideSubject& subject_;
  std::optional<NamePattern> only_;
  NodeId id_;
  const std::function<void(const std::string&, std::int64_t, std::int64_t)>& tell_;
  std::unique_ptr<SideStep> side_;
  std::map<int, NodeId> wanted_;  // by instruction
  std::set<ValueId> reached_;     // values that have a gradient
  snapshot::GradcheckReport report_;
  std::int64_t done_ = 0;
};

}  // namespace

Result<snapshot::GradcheckReport> gradcheck(
    const SideSubject& subject, const std::string& only, NodeId id,
    const std::function<void(const std::string&, std::int64_t, std::int64_t)>& tell) {
  std::optional<NamePattern> pattern;
  if (!only.empty()) {
    SS_ASSIGN(pattern, NamePattern::compile("node", only));
  }
  return Check(subject, std::move(pattern), id, tell).run();
}

}  // namespace stepscope
