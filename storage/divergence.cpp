#include "storage/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <unordered_map>

#include "engine/snapshot/gradient_norm.h"
#include "engine/snapshot/number_rule.h"
#include "storage/sqlite.h"
#include "storage/standing_rows.h"
#include "storage/step_facts.h"

namespace stepscope::storage {
namespace {

constexpr std::size_t kMostDivergences = 1'000;
constexpr std::int64_t kMostStatistics = 500'000;  // per run; what diverges first is among the first

constexpr std::array kStatistics = {"elements", "NaN", "Inf", "norm", "mean", "std", "min", "max"};
constexpr std::size_t kCounts = 3;  // numbers of elements: a tolerance does not make them equal
using Statistics = std::array<double, kStatistics.size()>;
// By name of the value, and whether it was watched: what belongs to the state is then as the step left it, else as it was
// before; and a gradient is as it lies in memory, which may carry a loss scale.
using StatisticsOfStep = std::map<std::pair<std::string, bool>, Statistics>;
constexpr int kWithKinds = 3;  // version of the schema

// Of the first steps. In the order of the table, where steps that were executed again come behind: the newest numbers stay.
Result<std::map<std::int64_t, StatisticsOfStep>> readStatistics(const Project& project, std::int64_t run) {
  const std::string watched = project.schemaVersion() < kWithKinds ? "1" : "kind = 'watched'";
  SS_STORE_ASSIGN(
      Statement rows,
      project.connection().prepare(fmt::format(
          "SELECT id, step, {}, name, count, nan, inf, norm, mean, std, min, max FROM tensor_stats NOT INDEXED WHERE "
          "id > ?2 AND run = ?1 AND step <= ?3 AND {} ORDER BY id",
          watched, notTakenBack(project.schemaVersion(), "tensor_stats", "?1"))));
  using Limits = std::numeric_limits<std::int64_t>;
  rows.bind(run, Limits::min(), Limits::max());
  std::map<std::int64_t, StatisticsOfStep> out;
  std::int64_t count = 0;
  while (rows.next()) {
    const std::int64_t id = rows.integer(0), step = rows.integer(1);
    if (count >= kMostStatistics && step > out.rbegin()->first) {  // from here on, steps that are there
      rows.reset();
      rows.bind(run, id, out.rbegin()->first);
      continue;
    }
    const auto [place, isNew] = out[step].try_emplace({rows.text(3), rows.integer(2) != 0});
    for (std::size_t i = 0; i < place->second.size(); ++i) place->second[i] = rows.real(static_cast<int>(i) + 4);
    count += isNew ? 1 : 0;
    for (; count > kMostStatistics && out.size() > 1; out.erase(std::prev(out.end())))
      count -= std::ssize(out.rbegin()->second);
  }
  SS_STORE_TRY(rows.status());
  return out;
}

// What lies behind the step after the last that stands was taken back with its step.
void dropTakenBack(std::map<std::int64_t, StatisticsOfStep>& statistics, const std::vector<StepRow>& steps) {
  if (!steps.empty()) statistics.erase(statistics.upper_bound(steps.back().step + 1), statistics.end());
}

// By micro step, where not every step was measured: of those that recorded their gradients.
Result<std::map<std::int64_t, double>> readNorms(const Project& project, std::int64_t run,
                                                 const std::vector<StepRow>& steps) {
  std::map<std::int64_t, double> norms;
  if (std::all_of(steps.begin(), steps.end(), [](const StepRow& s) { return s.gradientNorm.has_value(); })) return norms;
  SS_STORE_ASSIGN(const auto recorded, readRecordedStatistics(project, run, kMostStatistics));
  for (const auto& [step, statistics] : recorded)
    if (const double norm = gradientNorm(statistics); !(norm < 0)) norms[step] = norm;
  return norms;
}

const char* phaseText(snapshot::Phase phase) {
  switch (phase) {
    case snapshot::BACKWARD: return "backward";
    case snapshot::RECOMPUTE: return "recompute";
    case snapshot::OPTIMIZER: return "optimizer";
    default: return "forward";
  }
}

// Where a value is made: its place in the order of execution, and the phase.
class Order {
 public:
  struct Place {
    double position = -1;  // before the first node: inputs and state
    std::string phase;
  };

  explicit Order(const snapshot::Graph& graph) {
    std::unordered_map<std::int32_t, std::string> names;
    for (const auto& value : graph.values()) names[value.id()] = value.name();
    for (int i = 0; i < graph.nodes_size(); ++i) {
      const snapshot::Node& node = graph.nodes(i);
      if (node.phase() == snapshot::FORWARD) lastForward_ = i;
      if (node.phase() != snapshot::OPTIMIZER) lastGradient_ = i;
      for (const std::int32_t output : node.outputs())
        if (const auto name = names.find(output); name != names.end())
          places_.try_emplace(name->second, Place{static_cast<double>(i), phaseText(node.phase())});
    }
  }

  Place of(const std::string& value) const {
    const auto found = places_.find(value);
    return found == places_.end() ? Place{} : found->second;
  }
  double afterForward() const { return lastForward_ + 0.5; }
  double afterGradients() const { return std::max(lastForward_, lastGradient_) + 0.75; }

 private:
  std::unordered_map<std::string, Place> places_;
  int lastForward_ = -1, lastGradient_ = -1;
};

struct Pair {  // of unequal numbers
  double position = 0;
  bool outside = false;
  Divergence numbers;
};

void compareStatistics(std::int64_t step, const StatisticsOfStep& a, const StatisticsOfStep& b, const Order& order,
                       const Tolerance& tolerance, std::vector<Pair>& pairs, SharedSteps& out) {
  for (const auto& [value, x] : a) {
    const auto found = b.find(value);
    if (found == b.end()) continue;
    const Statistics& y = found->second;
    ++out.statistics;
    std::size_t unequal = 0, outside = 0;
    while (unequal < x.size() && sameNumber(x[unequal], y[unequal])) ++unequal;
    if (unequal == x.size()) continue;
    while (outside < x.size() && (outside < kCounts ? x[outside] == y[outside] : agree(x[outside], y[outside], tolerance)))
      ++outside;
    const std::size_t shown = outside < x.size() ? outside : unequal;
    const std::string& name = value.first;
    const Order::Place place = order.of(name);
    pairs.push_back({place.position, outside < x.size(), {step, kStatistics[shown], x[shown], y[shown], place.phase, name}});
  }
}

void count(Measured& measured, const std::optional<double>& a, const std::optional<double>& b) {
  if (a && !b) ++measured.onlyA;
  if (b && !a) ++measured.onlyB;
}

}  // namespace

std::string unmeasuredText(const SharedSteps& steps) {
  std::vector<std::string> parts;
  const auto tell = [&](const char* run, const char* quantity, std::int64_t count) {
    if (count > 0)
      parts.push_back(fmt::format("{} did not measure the {}{}", run, quantity,
                                  count == steps.both ? "" : fmt::format(" in {} of {} steps", count, steps.both)));
  };
  tell("A", "loss", steps.loss.onlyB);
  tell("B", "loss", steps.loss.onlyA);
  tell("A", "gradient norm", steps.norm.onlyB);
  tell("B", "gradient norm", steps.norm.onlyA);
  return fmt::format("{}", fmt::join(parts, "; "));
}

bool agree(double a, double b, const Tolerance& tolerance) { return agreeWithin(a, b, tolerance.rtol, tolerance.atol); }

Result<SharedSteps> compareSteps(const Project& a, std::int64_t runA, const std::vector<StepRow>& stepsA, const Project& b,
                                 std::int64_t runB, const std::vector<StepRow>& stepsB, const Tolerance& tolerance) {
  for (const auto& [name, value] : {std::pair{"rtol", tolerance.rtol}, std::pair{"atol", tolerance.atol}})
    if (!std::isfinite(value) || value < 0)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("tolerance '{}': found {}; expected a finite number from 0", name, value));
  SharedSteps out;
  std::map<std::int64_t, std::pair<const StepRow*, const StepRow*>> steps;
  for (const StepRow& s : stepsA) steps[s.step].first = &s;
  for (const StepRow& s : stepsB) steps[s.step].second = &s;
  SS_STORE_ASSIGN(auto statisticsA, readStatistics(a, runA));
  SS_STORE_ASSIGN(auto statisticsB, readStatistics(b, runB));
  dropTakenBack(statisticsA, stepsA);
  dropTakenBack(statisticsB, stepsB);
  SS_STORE_ASSIGN(const auto normsA, readNorms(a, runA, stepsA));
  SS_STORE_ASSIGN(const auto normsB, readNorms(b, runB, stepsB));
  const auto norm = [](const StepRow& row, const std::map<std::int64_t, double>& norms) {
    const auto it = norms.find(row.step);
    return row.gradientNorm || it == norms.end() ? row.gradientNorm : std::optional(it->second);
  };
  // A step that was left half done has statistics and no row of its own.
  for (const auto& [step, values] : statisticsA)
    if (statisticsB.contains(step)) steps.try_emplace(step);
  snapshot::Graph graph;
  if (!statisticsA.empty() && !statisticsB.empty())
    if (auto read = readGraph(a, runA)) graph = std::move(*read);
  const Order order(graph);

  for (const auto& [number, rows] : steps) {
    const auto& [x, y] = rows;
    if (x && y) ++out.both;
    if (x && !y) ++out.onlyA;
    if (y && !x) ++out.onlyB;
    if (x || y) {
      StepNumbers& n = out.numbers.emplace_back();
      n.step = number;
      if (x) n.lossA = x->loss, n.normA = norm(*x, normsA);
      if (y) n.lossB = y->loss, n.normB = norm(*y, normsB);
    }
    std::vector<Pair> pairs;
    const auto of = [number = number](const std::map<std::int64_t, StatisticsOfStep>& all) {
      const auto found = all.find(number);
      return found == all.end() ? nullptr : &found->second;
    };
    const auto *valuesA = of(statisticsA), *valuesB = of(statisticsB);
    if (valuesA && valuesB) compareStatistics(number, *valuesA, *valuesB, order, tolerance, pairs, out);
    // A number that one run did not measure says nothing about the other's.
    const auto ofStep = [&, number = number](double position, const char* quantity, const char* phase,
                                             std::optional<double> p, std::optional<double> q) {
      if (p && q && !sameNumber(*p, *q))
        pairs.push_back({position, !agree(*p, *q, tolerance), {number, quantity, p, q, phase, {}}});
    };
    if (x && y) {
      const StepNumbers& n = out.numbers.back();
      count(out.loss, n.lossA, n.lossB);
      count(out.norm, n.normA, n.normB);
      ofStep(order.afterForward(), "loss", "forward", x->loss, y->loss);
      ofStep(order.afterGradients(), "gradient norm", "backward", x->gradientNorm, y->gradientNorm);
    }
    std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& p, const Pair& q) { return p.position < q.position; });
    for (Pair& pair : pairs) {
      Divergence& d = pair.numbers;
      if (!out.unequal) out.unequal = d;
      if (!pair.outside) continue;
      if (!out.tolerance) out.tolerance = d;
      ++out.outside;
      if (out.divergences.size() < kMostDivergences) out.divergences.push_back(std::move(d));
    }
  }
  return out;
}

}  // namespace stepscope::storage
