#include <fmt/format.h>

#include "engine/snapshot/units.h"
#include "storage/report/chart.h"
#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

void addSmall(doc::Figures& figures, const char* title, LineChart chart) {
  if (chart.points.empty()) return;
  chart.width = 344;
  chart.height = 150;
  chart.xTicks = 4;
  chart.yTicks = 4;
  chart.label = title;
  figures.figures.push_back(lineFigure(chart, title));
}

}  // namespace

MaybeSection lossSection(const ReportData& data) {
  if (data.steps.empty())
    return doc::emptySection("loss", "Training",
                             "No step was recorded in this run. Train with --steps N --project FILE, or run steps in the "
                             "window, to fill this.");
  LineChart loss, norm, rate, time;
  for (const StepRow& step : data.steps) {
    const auto x = static_cast<double>(step.step);
    if (step.loss) loss.points.push_back({x, *step.loss});
    if (step.gradientNorm) norm.points.push_back({x, *step.gradientNorm});
    rate.points.push_back({x, step.learningRate});
    if (step.judged) time.points.push_back({x, static_cast<double>(step.ns)});
  }
  loss.label = "Loss over steps";
  loss.smooth = true;
  time.quantity = doc::Quantity::kTime;
  time.fromZero = rate.fromZero = true;
  doc::Section section{"loss", "Training", {}, {}};
  if (loss.points.empty())
    section.blocks.emplace_back(doc::Paragraph{"The model has no loss; forward only.", doc::Paragraph::Kind::kEmpty});
  else
    section.blocks.emplace_back(lineFigure(loss, ""));
  doc::Figures small;
  addSmall(small, "Gradient norm", norm);
  addSmall(small, "Learning rate", rate);
  addSmall(small, data.stoppedIn() ? "Time of a step, without warm-up and stops" : "Time of a step, without warm-up", time);
  section.blocks.emplace_back(std::move(small));
  section.sub.add("Loss");
  if (!data.run.lossName.empty() && data.run.lossName != "loss")
    section.sub.add(" ").add(elided(data.run.lossName, 60), doc::Style::kMono);
  section.sub.add(fmt::format(" over {} steps.", units::count(static_cast<std::int64_t>(data.steps.size()))));
  if (loss.points.size() >= kFewestSmoothed) section.sub.add(" Faint: every step; strong: moving mean.");
  return section;
}

}  // namespace stepscope::storage
