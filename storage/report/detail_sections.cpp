#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

constexpr std::size_t kMaxAlerts = 200, kMaxSteps = 5000;

std::string fact(std::string_view name, const std::string& value) {
  return value.empty() ? "" : fmt::format("<dt>{}</dt><dd>{}</dd>", name, value);
}

std::string joined(const google::protobuf::RepeatedPtrField<std::string>& texts, const char* separator) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : separator) + html(text);
  return out;
}

std::string place(const AlertRow& alert) {
  std::string text;
  const auto add = [&](const char* what, std::int64_t value) {
    if (value >= 0) text += fmt::format("{}{} {}", text.empty() ? "" : " · ", what, countText(value));
  };
  add("step", alert.step);
  add("instruction", alert.instruction);
  add("node", alert.node);
  return text;
}

std::string_view severityClass(std::string_view severity) {
  return severity == "error" || severity == "warning" ? severity : "info";
}

std::string modelFacts(const ReportData& data) {
  const snapshot::ModelInfo& m = data.modelInfo;
  std::string opsets;
  for (const auto& [domain, version] : std::map<std::string, int>(m.opsets().begin(), m.opsets().end()))
    opsets += fmt::format("{}{} {}", opsets.empty() ? "" : ", ", domain.empty() ? "ai.onnx" : html(domain), version);
  std::int64_t trained = 0;
  for (const snapshot::ParameterInfo& p : m.parameters()) trained += p.trained() ? 1 : 0;
  std::string inputs;
  for (const snapshot::InputInfo& i : m.inputs())
    inputs += fmt::format("{}<span class=mono>{}</span> {} [{}]{}", inputs.empty() ? "" : "<br>", htmlElided(i.name(), 60),
                          html(i.dtype()), joined(i.dims(), ", "),
                          i.role().empty() ? "" : fmt::format(" <span class=dim>{}</span>", html(i.role())));
  return fact("File",
              m.file_bytes() > 0 ? fmt::format("{}, {}", html(data.model), bytesText(m.file_bytes())) : html(data.model)) +
         fact("Made by", html(m.producer())) + fact("Operator sets", opsets) +
         fact("Nodes", m.node_count() > 0 ? countText(m.node_count()) : "") +
         fact("Parameters", m.parameter_count() > 0
                                ? fmt::format("{} elements in {} tensors, {} trained", countText(m.parameter_count()),
                                              countText(m.parameters_size()), countText(trained))
                                : "") +
         fact("Inputs", inputs);
}

}  // namespace

std::string alertsSection(const ReportData& data) {
  if (data.alerts.empty() && data.lost.empty()) return {};
  std::string body = "<div style=\"margin-top:8px\">";
  for (std::size_t i = 0; i < std::min(data.alerts.size(), kMaxAlerts); ++i) {
    const AlertRow& alert = data.alerts[i];
    body += fmt::format("<div class=alert><span class=\"chip {}\">{}</span><p>{}</p><span class=at>{}</span></div>\n",
                        severityClass(alert.severity), severityClass(alert.severity), html(alert.message), place(alert));
  }
  for (const LostRow& lost : data.lost)
    body += fmt::format(
        "<div class=alert><span class=\"chip warning\">lost</span><p>{} {} not recorded: {}; {}</p><span "
        "class=at>{}</span></div>\n",
        countText(lost.amount), html(lost.what), html(lost.reason), html(lost.advice),
        lost.firstStep >= 0 ? fmt::format("steps {} to {}", lost.firstStep, lost.lastStep) : "");
  body += "</div>";
  if (data.alerts.size() > kMaxAlerts)
    body += fmt::format("<p class=sub>{} more are in the project.</p>",
                        countText(static_cast<std::int64_t>(data.alerts.size() - kMaxAlerts)));
  return section("alerts", "Alerts", "", body);
}

std::string optionsSection(const ReportData& data) {
  if (data.options.empty()) return {};
  const auto table = [](const std::string& rows) {
    return fmt::format("<div class=scroll><table><thead><tr>{}{}{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
                       head("Option", "name of the option", false), head("value", "value in force", false),
                       head("default", "value without anybody setting it", false),
                       head("set by", "who chose the value", false), head("effect", "what it changed in this build", false),
                       rows);
  };
  std::string set, others;
  std::size_t otherCount = 0;
  for (const OptionRow& o : data.options) {
    const bool chosen = o.setBy != "default";
    std::string& rows = chosen ? set : others;
    otherCount += chosen ? 0 : 1;
    rows += fmt::format(
        "<tr title=\"{}\"><td class=\"l mono\">{}</td><td class=\"l w mono\">{}</td><td class=\"l w dim mono\">{}</td><td "
        "class=\"l dim\">{}</td><td class=\"l w\">{}</td></tr>\n",
        html(o.doc), htmlElided(o.name, 48), htmlElided(withoutFolders(o.value), 80),
        htmlElided(withoutFolders(o.defaultValue), 60), html(o.setBy), html(o.effect));
  }
  std::string body = set.empty() ? emptyNote("Every option has its default value.") : table(set);
  if (otherCount > 0)
    body += fmt::format("<details style=\"margin-top:14px\"><summary>{} options at their default</summary>{}</details>",
                        otherCount, table(others));
  return section("options", "Options", "What was set, by whom, and what it changed in this build.", body);
}

std::string machineSection(const ReportData& data) {
  const snapshot::MachineInfo& m = data.machine;
  const std::string machine =
      fact("Processor", html(m.cpu())) +
      fact("Cores", m.cores() > 0 ? fmt::format("{}, {} threads used", m.cores(), data.run.threads) : "") +
      fact("Features", joined(m.cpu_features(), " ")) +
      fact("Memory", m.memory_bytes() > 0 ? bytesText(m.memory_bytes()) : "") +
      fact("GPU",
           m.gpu().empty() ? fmt::format("none{}", m.gpu_note().empty() ? "" : ": " + html(m.gpu_note())) : html(m.gpu())) +
      fact("Stepscope", html(m.version())) + fact("Libraries", joined(m.libraries(), "<br>"));
  return section("machine", "Model and machine", "",
                 fmt::format("<div class=two><div><h3>Model</h3><dl class=kv>{}</dl></div><div><h3>Machine</h3><dl "
                             "class=kv>{}</dl></div></div>",
                             modelFacts(data), machine));
}

std::string stepsSection(const ReportData& data) {
  if (data.steps.empty()) return {};
  std::string rows;
  const std::size_t stride = data.steps.size() / kMaxSteps + 1;
  for (std::size_t i = 0; i < data.steps.size(); i += stride) {
    const StepRow& s = data.steps[i];
    const bool bad = s.loss && !std::isfinite(*s.loss);
    rows += fmt::format("<tr><td>{}</td><td{}>{}</td><td>{}</td><td>{}</td>{}<td>{}</td>{}<td class=l>{}{}{}</td></tr>\n",
                        countText(s.step), bad ? " class=bad" : "", s.loss ? numberText(*s.loss) : "",
                        s.gradientNorm ? numberText(*s.gradientNorm) : "", numberText(s.learningRate),
                        timeCell(static_cast<double>(s.ns)), s.tokens > 0 ? countText(s.tokens) : countText(s.samples),
                        bytesCell(s.peakBytes), htmlElided(s.batch, 40), s.warmUp ? " <span class=chip>warm-up</span>" : "",
                        s.stoppedIn ? " <span class=chip title=\"its time includes the waiting\">stopped</span>" : "");
  }
  const bool tokens = data.steps.back().tokens > 0;
  const std::string table =
      fmt::format("<div class=scroll><table><thead><tr>{}{}{}{}{}{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
                  head("step", "micro step number"), head("loss", "value that is minimised"),
                  head("gradient norm", "global norm before clipping"), head("learning rate", "in force at this step"),
                  head("time", "wall time of the step"),
                  tokens ? head("tokens", "tokens in the batch") : head("samples", "samples in the batch"),
                  head("peak", "measured by touched pages"), head("batch", "entry of the data", false), rows);
  std::string summary = fmt::format("{} steps", countText(static_cast<std::int64_t>(data.steps.size())));
  if (stride > 1) summary += fmt::format(", every {}th shown", stride);
  return section("steps", "Steps", "", fmt::format("<details><summary>{}</summary>{}</details>", summary, table));
}

}  // namespace stepscope::storage
