// SPDX-License-Identifier: GPL-3.0-or-later
// Runs of a project as views show them: one in a list, two compared, and the start-up of all of them. Plain values,
// made off the GUI thread; texts are hostile.
#pragma once

#include <QString>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace stepscope {

struct RunEntry {
  std::int64_t id = 0;
  QString name, status, device, optimizer;
  std::int64_t startedAt = 0;             // nanoseconds since 1970
  std::int64_t steps = 0, takenBack = 0;  // that stand; that were run and taken back by a rewind
  std::int64_t lost = 0;                  // that were run and are not recorded
  std::int64_t totalNs = 0;
  bool hasLoss = false;
  double firstLoss = 0, lastLoss = 0;
  std::map<QString, QString> settings;  // options that some run of its list has set, as this one has them; hostile text
};

// "4,271, 35,729 lost"; and what it means, "12 more were run and taken back by a rewind", empty where there is nothing to
// say.
QString stepsText(const RunEntry& run);
QString otherStepsText(const RunEntry& run);

// Of each run the options in which they differ, "lr 0.1 · optimizer adamw"; empty where all agree.
std::vector<QString> differences(const std::vector<RunEntry>& runs);

// Which runs, and when two of their numbers agree: |a - b| <= atol + rtol * |b|.
struct CompareRequest {
  std::int64_t a = 0, b = 0;  // of the open project; 0: none
  double rtol = 1e-5, atol = 1e-8;
  QString otherProject;  // file that run B is in; empty: the open project

  bool complete() const { return a != 0 && b != 0; }
  bool operator==(const CompareRequest&) const = default;
};

struct TimeFigures {  // nanoseconds; n = 0: not measured
  std::int64_t n = 0, median = 0, p95 = 0, min = 0, max = 0;
};

struct ComparedTime {
  QString name, phase;         // phase is empty for the phases themselves
  std::optional<double> a, b;  // ns of the build, or per step; empty: the run does not have it
  TimeFigures timeA, timeB;    // of one execution, one step or one build
  std::int64_t countA = 0, countB = 0;
};

struct ComparedOption {
  QString name;
  std::optional<QString> a, b;  // empty: the run has no such option
};

struct ComparedBytes {
  QString name;
  std::optional<std::int64_t> a, b;
};

struct Divergence {
  std::int64_t step = 0;
  QString quantity;            // "loss", "gradient norm", or a statistic of `value`
  std::optional<double> a, b;  // both are there
  QString phase;               // forward, backward …; empty: not known
  QString value;               // name of the value; empty for numbers of the step
};

struct ComparedStep {
  std::int64_t step = 0;
  std::optional<double> lossA, lossB, normA, normB;
};

struct ComparedRun {
  RunEntry run;
  QString model, precision, weights, message, cpu, version;
  int threads = 0;
  std::int64_t seed = 0;
  TimeFigures step;  // wall time without warm-up
};

struct RunComparison {
  CompareRequest request;
  ComparedRun a, b;
  std::vector<ComparedOption> options;  // only those that differ
  std::int64_t both = 0, onlyA = 0, onlyB = 0;
  std::int64_t statistics = 0;  // statistics of values at a step that both runs have
  QString unmeasured;           // "B did not measure the gradient norm"; empty: nothing is missing
  std::optional<Divergence> unequal, first;
  std::int64_t outside = 0;             // pairs outside the tolerance
  std::vector<Divergence> divergences;  // the first of them, in the order of execution
  std::vector<ComparedStep> steps;      // ascending
  std::vector<ComparedTime> buildPhases, stepPhases, ops;
  std::vector<ComparedBytes> memory;
};
using RunComparisonPtr = std::shared_ptr<const RunComparison>;

// One start-up among those of the project: the first build of a run, or a rebuild after a toggle.
struct StartupEntry {
  std::int64_t run = 0;
  int build = 0;
  std::int64_t startedAt = 0;
  QString runName, cpu, version;
};

// The time of one phase over the start-ups.
struct PhaseHistory {
  QString path;  // "pre-grad passes/fold_constants"; the second of one name in a build ends in " #2"
  struct Point {
    int startup = 0;  // index into StartupHistory::startups
    std::int64_t ns = 0;
    bool failed = false;
  };
  std::vector<Point> points;  // oldest first
};

// What came before the build that is shown, of the same model and kind; oldest first, the shown one last.
struct StartupHistory {
  std::vector<StartupEntry> startups;
  std::vector<PhaseHistory> phases;
};

}  // namespace stepscope
