#include "engine/wire/lab_answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/snapshot/utf8.h"
#include "engine/train/session.h"

namespace stepscope {
namespace {

snapshot::GoldenTensor tensorOf(const GoldenRow& row) {
  snapshot::GoldenTensor out;
  out.set_kind(std::string(kindName(row.kind)));
  out.set_name(toUtf8(row.name));
  for (const std::int64_t dim : row.dims) out.add_dims(dim);
  out.set_max_abs(row.maxAbs);
  out.set_max_rel(row.maxRel);
  out.set_cosine(row.cosine);
  out.set_tolerance(row.tolerance);
  for (const std::int64_t at : row.index) out.add_index(at);
  out.set_found(row.found);
  out.set_expected(row.expected);
  out.set_verdict(std::string(verdictName(row.verdict)));
  out.set_reason(toUtf8(row.words));
  out.set_cause(toUtf8(row.cause));
  out.set_module(toUtf8(row.module));
  out.set_source(toUtf8(row.source));
  return out;
}

// How far outside of its tolerance; NaN is the furthest.
double excess(const GoldenRow& row) {
  const double times = row.tolerance > 0 ? row.maxAbs / row.tolerance : row.maxAbs;
  return std::isnan(times) ? INFINITY : times;
}

snapshot::Alert alertOf(const GoldenRow& row, const Session& session) {
  std::string text = fmt::format("{} '{}' is not what PyTorch computed", kindName(row.kind), row.name);
  if (!row.dims.empty()) text += fmt::format(" ({})", fmt::join(row.dims, " x "));
  if (!row.index.empty())
    text += fmt::format(": {:.6g} where PyTorch has {:.6g}, at [{}], off by {:.2e} with a tolerance of {:.2e}", row.found,
                        row.expected, fmt::join(row.index, ", "), row.maxAbs, row.tolerance);
  if (!row.words.empty()) text += fmt::format(": {}", row.words);
  if (!row.module.empty()) text += fmt::format("; module {}", row.module);
  if (!row.source.empty()) text += fmt::format("; {}", row.source);
  if (!row.cause.empty()) text += fmt::format("; likely: {}", row.cause);
  snapshot::Alert alert;
  alert.set_severity(snapshot::Alert::WARNING);
  alert.set_code("capture_differs");
  alert.set_message(toUtf8(text));
  alert.set_node(-1);
  alert.set_value(session.findValue(row.name).index);
  alert.set_instruction(-1);
  alert.set_step(-1);
  return alert;
}

}  // namespace

snapshot::GoldenComparison goldenAnswer(const GoldenReport& report, const Session& session) {
  snapshot::GoldenComparison out;
  out.set_captured(true);
  out.set_unchecked(toUtf8(report.unchecked));
  out.set_first_output(toUtf8(report.firstOutput));
  std::vector<const GoldenRow*> differ;
  for (const GoldenRow& row : report.rows) {
    *out.add_tensors() = tensorOf(row);
    if (row.verdict == GoldenVerdict::kDiffers) differ.push_back(&row);
  }
  std::stable_sort(differ.begin(), differ.end(), [](const GoldenRow* a, const GoldenRow* b) {
    return a->kind != b->kind ? a->kind < b->kind : excess(*a) > excess(*b);
  });
  if (differ.size() > kMostGoldenAlerts) differ.resize(kMostGoldenAlerts);
  for (const GoldenRow* row : differ) *out.add_alerts() = alertOf(*row, session);
  return out;
}

}  // namespace stepscope
