#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/snapshot/units.h"
#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

using doc::Cell;
using doc::Column;
using doc::Quantity;
using doc::Style;
using doc::Text;

constexpr std::size_t kMaxAlerts = 200, kMaxSteps = 5000;

void addFact(doc::FactList& list, const char* name, Text value) {
  if (!value.empty()) list.facts.push_back({name, std::move(value)});
}

std::string joined(const google::protobuf::RepeatedPtrField<std::string>& texts, const char* separator) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : separator) + text;
  return out;
}

std::string place(const AlertRow& alert) {
  std::string text;
  const auto add = [&](const char* what, std::int64_t value) {
    if (value >= 0) text += fmt::format("{}{} {}", text.empty() ? "" : " · ", what, units::count(value));
  };
  add("step", alert.step);
  add("instruction", alert.instruction);
  add("node", alert.node);
  return text;
}

doc::FactList modelFacts(const ReportData& data) {
  const snapshot::ModelInfo& m = data.modelInfo;
  std::string opsets;
  for (const auto& [domain, version] : std::map<std::string, int>(m.opsets().begin(), m.opsets().end()))
    opsets += fmt::format("{}{} {}", opsets.empty() ? "" : ", ", domain.empty() ? "ai.onnx" : domain, version);
  std::int64_t trained = 0;
  for (const snapshot::ParameterInfo& p : m.parameters()) trained += p.trained() ? 1 : 0;
  Text inputs;
  for (const snapshot::InputInfo& i : m.inputs()) {
    if (!inputs.empty()) inputs.add("\n");
    inputs.add(elided(i.name(), 60), Style::kMono).add(fmt::format(" {} [{}]", i.dtype(), joined(i.dims(), ", ")));
    if (!i.role().empty()) inputs.add(" " + i.role(), Style::kDim);
  }
  doc::FactList list{"Model", {}};
  addFact(list, "File", m.file_bytes() > 0 ? fmt::format("{}, {}", data.model, units::bytes(m.file_bytes())) : data.model);
  addFact(list, "Made by", m.producer());
  addFact(list, "Operator sets", opsets);
  addFact(list, "Nodes", m.node_count() > 0 ? units::count(m.node_count()) : "");
  addFact(list, "Parameters",
          m.parameter_count() > 0 ? fmt::format("{} elements in {} tensors, {} trained", units::count(m.parameter_count()),
                                                units::count(m.parameters_size()), units::count(trained))
                                  : "");
  addFact(list, "Inputs", std::move(inputs));
  return list;
}

doc::FactList machineFacts(const ReportData& data) {
  const snapshot::MachineInfo& m = data.machine;
  doc::FactList list{"Machine", {}};
  addFact(list, "Processor", m.cpu());
  addFact(list, "Cores", m.cores() > 0 ? fmt::format("{}, {} threads used", m.cores(), data.run.threads) : "");
  addFact(list, "Features", joined(m.cpu_features(), " "));
  addFact(list, "Memory", m.memory_bytes() > 0 ? units::bytes(m.memory_bytes()) : "");
  addFact(list, "GPU", m.gpu().empty() ? fmt::format("none{}", m.gpu_note().empty() ? "" : ": " + m.gpu_note()) : m.gpu());
  addFact(list, "Stepscope", m.version());
  addFact(list, "Libraries", joined(m.libraries(), "\n"));
  return list;
}

doc::Table optionTable() {
  return {{{"Option", "name of the option", Quantity::kText, false, true},
           {"value", "value in force", Quantity::kText, true, true},
           {"default", "value without anybody setting it", Quantity::kText, true, true, true},
           {"set by", "who chose the value", Quantity::kText, false, false, true},
           {"effect", "what it changed in this build", Quantity::kText, true}},
          {}};
}

}  // namespace

MaybeSection alertsSection(const ReportData& data) {
  if (data.alerts.empty() && data.lost.empty()) return {};
  doc::Section section{"alerts", "Alerts", {}, {}, static_cast<std::int64_t>(data.alerts.size() + data.lost.size())};
  doc::Notices notices;
  for (std::size_t i = 0; i < std::min(data.alerts.size(), kMaxAlerts); ++i) {
    const AlertRow& alert = data.alerts[i];
    const bool error = alert.severity == "error", warning = alert.severity == "warning";
    notices.notices.push_back({error     ? "error"
                               : warning ? "warning"
                                         : "info",
                               error     ? "error"
                               : warning ? "warn"
                                         : "muted",
                               alert.message, place(alert)});
  }
  for (const LostRow& lost : data.lost)
    notices.notices.push_back(
        {"lost", "warn",
         fmt::format("{} {} not recorded: {}; {}", units::count(lost.amount), lost.what, lost.reason, lost.advice),
         lost.firstStep >= 0 ? fmt::format("steps {} to {}", lost.firstStep, lost.lastStep) : ""});
  section.blocks.emplace_back(std::move(notices));
  if (data.alerts.size() > kMaxAlerts)
    section.blocks.emplace_back(doc::Paragraph{
        fmt::format("{} more are in the project.", units::count(static_cast<std::int64_t>(data.alerts.size() - kMaxAlerts))),
        doc::Paragraph::Kind::kExplains});
  return section;
}

MaybeSection optionsSection(const ReportData& data) {
  if (data.options.empty()) return {};
  doc::Table set = optionTable(), others = optionTable();
  for (const OptionRow& o : data.options) {
    doc::Table& table = o.setBy != "default" ? set : others;
    table.rows.push_back({Cell(elided(o.name, 48)).withTooltip(o.doc), elided(withoutFolders(o.value), 80),
                          elided(withoutFolders(o.defaultValue), 60), o.setBy, o.effect});
  }
  doc::Section section{"options", "Options", "What was set, by whom, and what it changed in this build.", {}};
  if (set.rows.empty())
    section.blocks.emplace_back(doc::Paragraph{"Every option has its default value.", doc::Paragraph::Kind::kEmpty});
  else
    section.blocks.emplace_back(std::move(set));
  if (!others.rows.empty()) {
    others.folded = fmt::format("{} options at their default", others.rows.size());
    section.blocks.emplace_back(std::move(others));
  }
  return section;
}

MaybeSection machineSection(const ReportData& data) {
  return doc::Section{"machine", "Model and machine", {}, {doc::FactLists{{modelFacts(data), machineFacts(data)}}}};
}

MaybeSection stepsSection(const ReportData& data) {
  if (data.steps.empty()) return {};
  const bool tokens = data.steps.back().tokens > 0;
  doc::Table table{
      {{"step", "micro step number", Quantity::kCount},
       {"loss", "value that is minimised", Quantity::kNumber},
       {"gradient norm", "global norm before clipping", Quantity::kNumber},
       {"learning rate", "in force at this step", Quantity::kNumber},
       {"time", "wall time of the step", Quantity::kTime},
       {tokens ? "tokens" : "samples", tokens ? "tokens in the batch" : "samples in the batch", Quantity::kCount},
       {"peak", "measured by touched pages", Quantity::kBytes},
       {"batch", "entry of the data; its marks: warm-up, and stopped where the time includes waiting"}},
      {}};
  const std::size_t stride = data.steps.size() / kMaxSteps + 1;
  for (std::size_t i = 0; i < data.steps.size(); i += stride) {
    const StepRow& s = data.steps[i];
    Text batch = elided(s.batch, 40);
    if (s.warmUp) batch.add(" ").add("warm-up", Style::kChip);
    if (s.stoppedIn) batch.add(" ").add("stopped", Style::kChip);
    const bool bad = s.loss && !std::isfinite(*s.loss);
    table.rows.push_back({s.step, bad ? Cell(Text().add(units::numberShort(*s.loss), Style::kBad)) : Cell(s.loss),
                          s.gradientNorm, s.learningRate, s.ns, s.tokens > 0 ? s.tokens : s.samples, s.peakBytes,
                          std::move(batch)});
  }
  table.folded = fmt::format("{} steps", units::count(static_cast<std::int64_t>(data.steps.size())));
  if (stride > 1) table.folded += fmt::format(", every {}th shown", stride);
  return doc::Section{"steps", "Steps", {}, {std::move(table)}};
}

}  // namespace stepscope::storage
