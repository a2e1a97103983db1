#include "storage/report/comparison_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/snapshot/units.h"
#include "storage/report/format.h"

namespace stepscope::storage {
namespace {

using doc::Cell;
using doc::Column;
using doc::Quantity;
using doc::Style;
using doc::Text;

constexpr std::size_t kMostRows = 40;

std::string numberText(const std::optional<double>& x, int digits) { return x ? units::numberShort(*x, digits) : "none"; }

// As many digits as it takes to see that they differ.
std::string bothNumbers(const Divergence& d) {
  int digits = 9;
  while (digits < 17 && d.a && d.b && *d.a != *d.b && numberText(d.a, digits) == numberText(d.b, digits)) ++digits;
  return fmt::format("{} and {}", numberText(d.a, digits), numberText(d.b, digits));
}

std::string divergenceText(const std::optional<Divergence>& d) {
  if (!d) return "none";
  const std::string of = d->value.empty() ? "" : fmt::format(" of '{}'", d->value);
  return fmt::format("step {}, {}{}: {}", units::count(d->step), d->quantity, of, bothNumbers(*d));
}

doc::FactList sideFacts(const char* letter, const RunRow& run, const StepKind& kind, const TimeStats& step) {
  doc::FactList list{fmt::format("{}: run {}", letter, run.id), {}};
  const auto add = [&list](const char* name, std::string value) {
    if (!value.empty()) list.facts.push_back({name, Text(std::move(value))});
  };
  add("Model", run.modelPath.empty() ? run.name : fileNameOf(run.modelPath));
  add("Ended", run.status);
  add("Started", dateText(run.startedAt));
  add("On", fmt::format("{}, {}, {} threads", run.device, run.precision, run.threads));
  add("Weights", run.weights);
  if (step.n > 0)
    add("Step, median", fmt::format("{} (n {}, {})", units::time(step.median), units::count(step.n), kind.speed()));
  return list;
}

std::vector<doc::Block> summaryOf(const RunComparison& c, const Tolerance& tolerance) {
  std::vector<doc::Block> blocks = {
      doc::FactLists{{sideFacts("A", c.a, c.kindA, c.stepA), sideFacts("B", c.b, c.kindB, c.stepB)}}};
  const auto warn = [&blocks](std::string text) {
    blocks.emplace_back(doc::Paragraph{std::move(text), doc::Paragraph::Kind::kBad});
  };
  if (const std::string unlike = unlikeSpeeds(c.kindA, c.kindB); !unlike.empty())
    warn("The steps did not run in the same way, so their times say little about the settings: " + unlike + ".");
  for (const auto& [name, kind] : {std::pair("A", &c.kindA), std::pair("B", &c.kindB)})
    if (kind->busy())
      warn(
          fmt::format("Run {} ran on a busy machine: {:.0f} % of the processor time it asked for was spent waiting; its "
                      "times are longer for it.",
                      name, 100 * kind->waitShare()));
  if (!c.threads.empty()) warn(c.threads);
  if (!c.warmUp.empty()) warn(c.warmUp);
  doc::Tiles tiles;
  tiles.tiles.push_back({"Steps in both", units::count(c.steps.both),
                         fmt::format("only in A {}, only in B {}", units::count(c.steps.onlyA), units::count(c.steps.onlyB)),
                         "steps of one number"});
  tiles.tiles.push_back({"Numbers",
                         c.steps.both == 0   ? "no step to compare"
                         : c.steps.tolerance ? "diverge"
                                             : "agree",
                         c.steps.tolerance ? divergenceText(c.steps.tolerance)
                                           : fmt::format("rtol {:g}, atol {:g}", tolerance.rtol, tolerance.atol),
                         "losses, gradient norms and recorded values within the tolerance"});
  if (c.stepA.n > 0 && c.stepB.n > 0)
    tiles.tiles.push_back({"Step, median",
                           units::change(static_cast<double>(c.stepA.median), static_cast<double>(c.stepB.median)),
                           fmt::format("{} and {}", units::time(c.stepA.median), units::time(c.stepB.median)),
                           "of B compared with A, without warm-up and steps stopped in"});
  blocks.emplace_back(std::move(tiles));
  return blocks;
}

doc::Section numbersSection(const RunComparison& c) {
  doc::Section section{"numbers", "Numbers", {}, {}};
  doc::FactList facts{"First differences", {}};
  facts.facts.push_back({"Unequal", divergenceText(c.steps.unequal)});
  facts.facts.push_back({"Outside", divergenceText(c.steps.tolerance)});
  if (const std::string unmeasured = unmeasuredText(c.steps); !unmeasured.empty())
    facts.facts.push_back({"Not compared", Text(unmeasured)});
  section.blocks.emplace_back(doc::FactLists{{std::move(facts)}});
  if (c.steps.divergences.empty()) return section;
  doc::Table table{{{"step", "micro step number", Quantity::kCount},
                    {"quantity", "what differs"},
                    {"of", "value of the model", Quantity::kText, true, true},
                    {"A and B", "with as many digits as it takes to see the difference"}},
                   {}};
  for (std::size_t i = 0; i < std::min(kMostRows, c.steps.divergences.size()); ++i) {
    const Divergence& d = c.steps.divergences[i];
    table.rows.push_back({d.step, d.quantity, elided(d.value), bothNumbers(d)});
  }
  section.sub = fmt::format("{} numbers are outside the tolerance.", units::count(c.steps.outside));
  section.blocks.emplace_back(std::move(table));
  return section;
}

doc::Table differences(const char* first, Quantity quantity, const char* counted) {
  doc::Table table{{{first, "", Quantity::kText, true},
                    {"A", "", quantity},
                    {"B", "", quantity},
                    {"B − A", "difference", Quantity::kText, false, false, false, true},
                    {"change", "of A", Quantity::kText, false, false, false, true}},
                   {}};
  if (counted)
    table.columns.push_back({counted, "in A → in B where they differ", Quantity::kText, false, false, false, true});
  return table;
}

doc::Section timesBeside(const char* id, const char* title, const char* sub, const char* first,
                         const std::vector<TimeDifference>& rows, const char* counted) {
  doc::Section section{id, title, sub, {}};
  doc::Table table = differences(first, Quantity::kTime, counted);
  for (const TimeDifference& r : rows) {
    if (table.rows.size() == kMostRows) break;
    Text name = r.name;
    if (!r.phase.empty()) name.add(" " + r.phase, Style::kDim);
    auto& row = table.rows.emplace_back();
    row = {std::move(name), r.a, r.b, r.alike ? units::timeDifference(r.difference()) : "–",
           !r.alike     ? "–"
           : r.a && r.b ? units::change(*r.a, *r.b)
                        : ""};
    if (counted)
      row.emplace_back(r.countA == r.countB ? units::count(r.countA)
                                            : fmt::format("{} → {}", units::count(r.countA), units::count(r.countB)));
  }
  if (rows.empty())
    section.blocks.emplace_back(doc::Paragraph{"Not recorded.", doc::Paragraph::Kind::kEmpty});
  else
    section.blocks.emplace_back(std::move(table));
  if (rows.size() > kMostRows)
    section.blocks.emplace_back(doc::Paragraph{fmt::format("{} more, with smaller differences.", rows.size() - kMostRows),
                                               doc::Paragraph::Kind::kExplains});
  return section;
}

doc::Section optionSection(const RunComparison& c) {
  if (c.options.empty()) return doc::emptySection("options", "Options", "Every option is the same.");
  doc::Table table{{{"Option", "that differs", Quantity::kText, false, true},
                    {"A", "value in A", Quantity::kText, true, true},
                    {"B", "value in B", Quantity::kText, true, true}},
                   {}};
  for (const OptionDifference& o : c.options)
    table.rows.push_back(
        {o.name, elided(withoutFolders(o.a.value_or("(not there)"))), elided(withoutFolders(o.b.value_or("(not there)")))});
  return {"options", "Options", "Those that differ.", {std::move(table)}};
}

doc::Section memoryBeside(const RunComparison& c) {
  doc::Table table = differences("Memory", Quantity::kBytes, nullptr);
  for (const MemoryDifference& m : c.memory) {
    auto& row = table.rows.emplace_back();
    row = {m.name, m.a ? Cell(*m.a) : Cell(), m.b ? Cell(*m.b) : Cell()};
    if (!m.a || !m.b) continue;
    const auto a = static_cast<double>(*m.a), b = static_cast<double>(*m.b);
    row.emplace_back(units::bytesDifference(b - a));
    row.emplace_back(units::change(a, b));
  }
  return {"memory", "Memory", {}, {std::move(table)}};
}

}  // namespace

doc::Document comparisonDocument(const RunComparison& c, const Tolerance& tolerance) {
  doc::Document document;
  document.title = fmt::format("Run {} and run {}", c.a.id, c.b.id);
  document.lead = summaryOf(c, tolerance);
  document.sections = {
      numbersSection(c),
      optionSection(c),
      timesBeside("time", "Step time", "Of one step, without warm-up and steps stopped in.", "Phase of the step",
                  c.stepPhases, nullptr),
      timesBeside("ops", "Operators", "Time of one step, the largest difference first.", "Operator", c.ops, "instructions"),
      memoryBeside(c),
      timesBeside("startup", "Start-up", "The newest build of each run.", "Phase", c.buildPhases, nullptr)};
  document.about = fmt::format("Runs {} and {}", c.a.id, c.b.id);
  document.notes = "times are wall clock of the worker’s monotonic clock · 1 KiB = 1,024 bytes";
  return document;
}

}  // namespace stepscope::storage
