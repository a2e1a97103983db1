// `stepscope precision`: what a low precision costs and risks, against float32.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"
#include "engine/snapshot/units.h"

namespace stepscope::cli {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void printPrecisionJson(const snapshot::PrecisionReport& report) {
  sayJson({{"event", "precision_step"},
           {"precision", report.precision()},
           {"forced", report.forced()},
           {"step", report.step()},
           {"batch", report.batch()},
           {"loss_scale", report.loss_scale()},
           {"loss", report.loss()},
           {"reference_loss", report.reference_loss()},
           {"loss_error", report.loss_error()},
           {"error", report.error()},
           {"not_finite", report.not_finite()},
           {"update_error", report.update_error()},
           {"skipped", report.skipped()}});
  for (const auto& c : report.classes()) {
    nlohmann::json exponents = nlohmann::json::array();
    for (int i = 0; i < c.counts_size(); ++i)
      if (c.counts(i) > 0 || c.reference_counts(i) > 0)
        exponents.push_back({{"exponent", c.first_exponent() + i},
                             {"elements", c.counts(i)},
                             {"reference_elements", c.reference_counts(i)}});
    sayJson({{"event", "precision_class"},
             {"tensors", c.tensors()},
             {"dtype", c.dtype()},
             {"values", c.values()},
             {"elements", c.elements()},
             {"zeros", c.zeros()},
             {"not_finite", c.not_finite()},
             {"near_overflow", c.near_overflow()},
             {"near_overflow_share", share(c.near_overflow(), c.elements())},
             {"subnormal", c.subnormal()},
             {"compared", c.compared()},
             {"flushed", c.flushed()},
             {"flushed_share", share(c.flushed(), c.compared())},
             {"exponents", std::move(exponents)}});
  }
  for (const auto& g : report.gradients())
    sayJson({{"event", "precision_gradient"},
             {"name", g.name()},
             {"elements", g.elements()},
             {"cosine", g.cosine()},
             {"error", g.error()},
             {"max_abs", g.max_abs()},
             {"max_rel", g.max_rel()},
             {"not_finite", g.not_finite()},
             {"norm", g.norm()},
             {"terms", g.terms()},
             {"zero_up_to_rounding", g.zero()},
             {"update_error", g.update_error()}});
  for (const auto& n : report.nodes()) {
    nlohmann::json event{{"event", "precision_node"},
                         {"node", n.node()},
                         {"op", n.op()},
                         {"module", n.module()},
                         {"dtype", n.dtype()},
                         {"added", n.added()},
                         {"overflowed", n.not_finite()},
                         {"override", n.override()},
                         {"measured", n.measured()},
                         {"error", report.error()},
                         {"not_finite", report.not_finite()}};
    if (n.measured()) {
      event["error_with_override"] = n.error_with_override();
      event["loss_error_with_override"] = n.loss_error_with_override();
      event["not_finite_with_override"] = n.not_finite_with_override();
    }
    sayJson(event);
  }
  const auto& cost = report.cost();
  sayJson({{"event", "precision_cost"},
           {"bytes_before", cost.bytes_before()},
           {"bytes_after", cost.bytes_after()},
           {"traffic_before", cost.traffic_before()},
           {"traffic_after", cost.traffic_after()},
           {"ns_before", cost.ns_before()},
           {"ns_after", cost.ns_after()},
           {"min_ns_before", cost.min_ns_before()},
           {"max_ns_before", cost.max_ns_before()},
           {"min_ns_after", cost.min_ns_after()},
           {"max_ns_after", cost.max_ns_after()},
           {"steps", cost.steps()}});
}

std::string number(double value) { return fmt::format("{:.3g}", units::signless(value)); }
std::string percent(std::int64_t part, std::int64_t whole) {
  return part == 0 ? "0 %" : fmt::format("{:.2g} %", 100 * share(part, whole));
}

// Where the elements lie, as powers of two: the least, the one below which half of them lie, and the largest.
std::string exponentsText(const snapshot::PrecisionClass& c) {
  std::int64_t all = 0, below = 0;
  for (const std::int64_t count : c.counts()) all += count;
  if (all == 0) return "-";
  int least = -1, middle = -1, most = 0;
  for (int i = 0; i < c.counts_size(); ++i) {
    if (c.counts(i) == 0) continue;
    if (least < 0) least = i;
    below += c.counts(i);
    if (middle < 0 && 2 * below >= all) middle = i;
    most = i;
  }
  const int first = c.first_exponent();
  return fmt::format("2^{} .. 2^{} .. 2^{}", first + least, first + middle, first + most);
}

void printPrecisionText(const snapshot::PrecisionReport& report) {
  constexpr int kRows = 12;
  say("{} against fp32, step {} ({}){}{}\n\n", report.precision(), report.step(), report.batch(),
      report.loss_scale() == 1 ? std::string() : fmt::format(", loss scale {}", report.loss_scale()),
      report.forced().empty() ? std::string() : ", precision.force " + report.forced());
  std::vector<std::vector<std::string>> rows;
  for (const auto& c : report.classes())
    rows.push_back({c.tensors(), c.dtype(), std::to_string(c.elements()), exponentsText(c),
                    percent(c.flushed(), c.compared()), percent(c.subnormal(), c.elements()),
                    percent(c.near_overflow(), c.elements()), std::to_string(c.not_finite())});
  say("{}flushed: zero where fp32 is not; near overflow: at least half of the type's largest number; exponents: least, "
      "median, largest\n\n",
      table({"tensors", "type", "elements", "exponents", "flushed", "subnormal", "near overflow", "NaN, Inf"}, rows, 2));
  say("loss {} against {}: off by {}; all gradients off by {}{}; all updates by {}{}\n\n", number(report.loss()),
      number(report.reference_loss()), number(report.loss_error()), number(report.error()),
      report.not_finite() > 0 ? fmt::format(", {} elements are not finite", report.not_finite()) : std::string(),
      number(report.update_error()), report.skipped() ? std::string(" (the update is skipped)") : std::string());
  rows.clear();
  for (const auto& g : report.gradients())
    if (rows.size() < kRows)
      rows.push_back(g.zero()
                         ? std::vector<std::string>{g.name(), "zero", "-", number(g.max_abs()), "-", number(g.norm()), "-"}
                         : std::vector<std::string>{g.name(), number(g.error()),
                                                    fmt::format("{:.6f}", units::signless(g.cosine())), number(g.max_abs()),
                                                    number(g.max_rel()), number(g.norm()), number(g.update_error())});
  say("{}", table({"gradient of", "off by", "cosine", "largest", "relative", "norm", "update off by"}, rows));
  if (const auto zero = std::ranges::count_if(report.gradients(), [](const auto& g) { return g.zero(); }); zero > 0) {
    std::string names;
    for (const auto& g : report.gradients())
      if (g.zero()) names += (names.empty() ? "" : ", ") + g.name();
    say("zero up to rounding, {}: {}; in fp32 they are what rounding leaves of terms that cancel, and have no error\n", zero,
        names);
  }
  if (report.gradients_size() > kRows) say("and {} more (--json lists them)\n", report.gradients_size() - kRows);
  rows.clear();
  for (const auto& n : report.nodes())
    if (rows.size() < kRows)
      rows.push_back({n.node(), n.op(), n.not_finite() > 0 ? "overflows" : number(n.added()),
                      n.measured() ? number(report.error()) + " -> " + number(n.error_with_override()) : "not measured",
                      n.override()});
  if (rows.empty())
    say("\nno node adds an error that an override could take away\n");
  else
    say("\n{}", table({"node", "op", "adds", "gradients with override", "--set precision.force="}, rows, 2));
  if (report.nodes_size() > kRows) say("and {} more (--json lists them)\n", report.nodes_size() - kRows);
  const auto& cost = report.cost();
  const auto time = [](double ns) { return units::time(ns); };
  say("\narena {} -> {}, traffic {} -> {}, step {} -> {} (medians of {}, in turns)\n", units::bytes(cost.bytes_before()),
      units::bytes(cost.bytes_after()), units::bytes(cost.traffic_before()), units::bytes(cost.traffic_after()),
      time(cost.ns_before()), time(cost.ns_after()), cost.steps());
}

}  // namespace

Command precisionCommand() {
  struct Arguments {
    std::string model;
    std::int64_t measure = 3, timed = 5;
    bool json = false;
    SharedOptions shared;
  };
  auto a = std::make_shared<Arguments>();
  Command command{"precision",
                  "judge a low precision against fp32 (--precision, default bf16): range, errors, what would help, cost",
                  {{"MODEL", &a->model, "ONNX file, or a folder of stepscope_capture", {}, true},
                   {"--measure", &a->measure, "run the step with the override of so many nodes, 0 to 64 [3]", "N"},
                   {"--timed", &a->timed, "steps of each precision that are timed, 1 to 1000 [5]", "N"},
                   {"--json", &a->json, "one JSON object per line"}}};
  a->shared.addTo(command);
  command.run = [a] {
    const Output output(a->json);
    if (const auto wrong = usageError(a->shared)) return *wrong;
    const auto outside = [](const char* name, std::int64_t found, std::int64_t least, std::int64_t most) {
      report(
          {ErrorCode::kInvalidArgument, fmt::format("option '{}': found {}; expected {} to {}", name, found, least, most)});
      return kUsage;
    };
    if (a->measure < 0 || a->measure > 64) return outside("measure", a->measure, 0, 64);
    if (a->timed < 1 || a->timed > 1000) return outside("timed", a->timed, 1, 1000);
    auto options = a->shared.apply();
    options->ringBytes = 0;
    snapshot::GetPrecision question;
    if (options->origins.contains("precision")) question.set_precision(options->precision);
    question.set_measured(a->measure == 0 ? -1 : static_cast<int>(a->measure));
    question.set_timed(static_cast<int>(a->timed));
    auto session = openSession(a->model, *options, output, a->shared.mapWeights);
    if (!session) return report(session.error());
    Status built = prepare(**session, a->shared);
    if (built) built = (*session)->build();
    if (!built) return report(built.error());
    const auto judged = (*session)->lab().precision(question);
    if (!judged) return report(judged.error());
    if (a->json)
      printPrecisionJson(*judged);
    else
      printPrecisionText(*judged);
    if (!std::isfinite(judged->reference_loss()))
      tellWarning("reference_not_finite",
                  fmt::format("loss of step {} in fp32: {}; expected a finite number: what is not finite in both is no "
                              "distance, so the errors say nothing of {}; hint: --start-step takes another step",
                              judged->step(), units::signless(judged->reference_loss()), judged->precision()));
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
