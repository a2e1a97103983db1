// What `build` and `train` print: JSON events, or text made to be read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/terminal.h"
#include "engine/snapshot/busy_machine.h"
#include "engine/snapshot/recompute.pb.h"
#include "engine/snapshot/run.pb.h"

namespace stepscope {
struct FirstCause;
}

namespace stepscope::cli {

// Aligned columns, cells and header escaped; the first is left-aligned, the others right-aligned.
Ready table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
            std::size_t leftColumns = 1);

class Output {
 public:
  explicit Output(bool json) : json_(json) {}
  bool json() const { return json_; }
  void phase(const snapshot::PhaseSpan& span) const;  // JSON only
  void alert(const snapshot::Alert& alert) const;     // stderr in text mode
  void phaseTable(const std::vector<snapshot::PhaseSpan>& spans) const;
  // Where the first number that is not finite came from, with its operands.
  void cause(const FirstCause& cause, const std::vector<std::string>& trail) const;  // `trail`: the steps before it
  // Before a run: what a comparison with PyTorch in this precision came to, "agrees" or "unchecked", and that in words.
  // `otherwise`: precision of the run, where that is another one.
  void compared(const std::string& verdict, std::string_view precision, const std::string& otherwise,
                const std::string& text) const;
  // What the backward phase could compute again instead of keeping it, as options recompute.plan and recompute.budget choose
  // from.
  void recomputeTable(const std::vector<snapshot::PhaseSpan>& spans) const;
  // The same, judged: one row or event per pattern and per point of the curve.
  void recomputeReport(const snapshot::RecomputeReport& report) const;
  void step(const snapshot::StepRecord& record, std::int64_t done, std::int64_t total, double secondsSoFar) const;
  // `processor`: of the steps; says so where the machine was busy. Nothing of it where it was not measured.
  void finished(std::int64_t steps, std::int64_t ns, const ProcessorTimes& processor = {}) const;

 private:
  bool json_;
};

}  // namespace stepscope::cli
