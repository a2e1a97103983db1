#include <fmt/format.h>

#include "storage/report/chart.h"
#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

std::string small(const char* title, LineChart chart) {
  if (chart.points.empty()) return {};
  chart.width = 344;
  chart.height = 150;
  chart.xTicks = 4;
  chart.yTicks = 4;
  chart.label = title;
  return fmt::format("<div><h3>{}</h3>{}</div>", title, lineChart(chart));
}

}  // namespace

std::string lossSection(const ReportData& data) {
  if (data.steps.empty())
    return section("loss", "Training", "",
                   emptyNote("No step was recorded in this run. Train with --steps N --project FILE, or run steps in the "
                             "window, to fill this."));
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
  loss.text = norm.text = rate.text = numberText;
  time.text = timeText;
  time.fromZero = rate.fromZero = true;
  std::string body = loss.points.empty() ? emptyNote("The model has no loss; forward only.") : lineChart(loss);
  body += "<div class=three>" + small("Gradient norm", norm) + small("Learning rate", rate) +
          small(data.stoppedIn() ? "Time of a step, without warm-up and stops" : "Time of a step, without warm-up", time) +
          "</div>";
  std::string sub = fmt::format("Loss{} over {} steps.",
                                data.run.lossName.empty() || data.run.lossName == "loss"
                                    ? ""
                                    : fmt::format(" <span class=mono>{}</span>", htmlElided(data.run.lossName, 60)),
                                countText(static_cast<std::int64_t>(data.steps.size())));
  if (loss.points.size() >= 40) sub += " Faint: every step; strong: moving mean.";
  return section("loss", "Training", sub, body);
}

}  // namespace stepscope::storage
