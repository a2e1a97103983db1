// SPDX-License-Identifier: GPL-3.0-or-later
// Recorded spans as rows of slices, one row per thread and phase, with a mipmap so that a frame costs what is seen. What a
// device recorded of itself has rows below: the calls that put work on its streams, waits, a row per stream, and what
// recording took for itself. Of a run of
// several processes every rank has rows, one below the other, the last of which are its collectives: first the waiting for
// the others, then the moving of bytes.
//
// Level 0 holds the slices; level k joins 4^k neighbours into one entry with the sum of their busy time and the category
// that took most of it. Immutable; made off the GUI thread from snapshots. Times are nanoseconds of the worker's clock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/snapshot/ranks.pb.h"
#include "engine/snapshot/run.pb.h"
#include "views/common/snapshots.h"
#include "views/timeline/timeline_axis.h"

namespace stepscope {

struct TimelineSlice {
  std::int64_t begin = 0, end = 0;
  int instruction = -1;       // of the plan that is shown; -1: it has none that does the same
  int own = -1;               // of the plan that its step ran under
  int step = 0;               // index into steps()
  int work = -1;              // index into work(): a call, what it put on a stream, a wait, overhead; -1: none of it
  int exchange = -1;          // index into exchanges(): waiting or moving of a collective; -1: none of it
  std::uint8_t category = 0;  // index into categories()
};

struct SliceGroup {  // of a mipmap level
  std::int64_t begin = 0, end = 0, busy = 0;
  int first = 0, last = 0;    // slices [first, last)
  std::uint8_t category = 0;  // of the longest part
};

struct TimelineRow {
  enum class Kind { kInstructions, kCalls, kWaits, kStream, kOverhead, kCollectives };
  Kind kind = Kind::kInstructions;
  int rank = 0;
  int thread = 0;  // kStream: its number
  snapshot::Phase phase = snapshot::FORWARD;
  std::vector<TimelineSlice> slices;            // by begin, not overlapping
  std::vector<std::vector<SliceGroup>> levels;  // levels[k] joins 4^(k+1) slices
};

struct TimelineStep {
  std::int64_t step = 0, begin = 0, end = 0;
  std::int64_t waiting = 0;  // of it, cut out of the axis
  double loss = 0;
  bool hasLoss = false;
  bool warmUp = false;
  bool stopped = false;                      // somebody stopped in it
  snapshot::DeviceWork device;               // without kernels and records: how those are known
  bool other = false;                        // it ran under another plan than the one that is shown
  std::shared_ptr<const PlanSnapshot> plan;  // that it ran under; null: not known
};

// A step with what it ran under; each may be null.
struct RanStep {
  std::shared_ptr<const snapshot::StepRecord> record;
  std::shared_ptr<const PlanSnapshot> plan;
  std::shared_ptr<const GraphSnapshot> graph;
  std::shared_ptr<const snapshot::StepRanks> ranks = nullptr;  // what other processes did; null: there are none
  bool stopped = false;                                        // somebody stopped in it
};

// A kernel, copy or fill with its call; a wait; overhead. Row and slice of each; -1: the call is not known, or has none.
struct TimelineWork {
  bool onStream() const { return record.kind() < snapshot::DeviceRecord::STREAM_WAIT; }
  snapshot::DeviceRecord record;
  snapshot::DeviceKernel kernel;             // empty but for a kernel
  int step = 0, instruction = -1, own = -1;  // as those of a slice
  int callRow = -1, callSlice = -1, row = -1, slice = -1;
};

// A collective of a step as a rank saw it.
struct TimelineExchange {
  snapshot::RankCollective record;
  int rank = 0, step = 0;
};

using StepPtrs = std::vector<std::shared_ptr<const snapshot::StepRecord>>;

class TimelineModel {
 public:
  // Of the newest `most` steps that have spans. Its plan gives phases and names of a step, with the graph categories.
  // `present` is the plan that is shown, whose instructions can be selected.
  static std::shared_ptr<const TimelineModel> make(const std::vector<RanStep>& steps,
                                                   std::shared_ptr<const PlanSnapshot> present, std::size_t most = 16);
  // The same where all of them ran under the plan that is shown.
  static std::shared_ptr<const TimelineModel> make(const StepPtrs& steps, std::shared_ptr<const PlanSnapshot> plan,
                                                   std::shared_ptr<const GraphSnapshot> graph, std::size_t most = 16);

  const std::vector<TimelineRow>& rows() const { return rows_; }
  const std::vector<TimelineStep>& steps() const { return steps_; }
  const std::vector<std::string>& categories() const { return categories_; }
  int ranks() const { return ranks_; }  // processes; 1 where steps do not say
  // Whether a slice shows how long a rank waited in a collective, and not how it moved bytes.
  bool waits(const TimelineSlice& slice) const { return slice.exchange >= 0 && slice.category == waitingCategory_; }
  int waitingCategory() const { return waitingCategory_; }  // -1: no slice waits
  // What a slice, or the instruction of some work, did in its step; nullptr where its plan is not known.
  const snapshot::Instruction* ran(int step, int own) const;
  int others() const;  // steps of another plan
  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return end_; }
  std::int64_t sliceCount() const { return count_; }
  static constexpr std::int64_t kShortestCut = 20'000'000;  // ns: a shorter stop looks like any gap
  // The clock without the stops: what is longer than kShortestCut and holds nothing of any row. Of that, within a step or
  // beside one in which somebody stopped everything; elsewhere what is longer than all that ran.
  const TimelineAxis& axis() const { return axis_; }
  // Where to begin to look: with the first step of the plan that is shown; where there is none, at begin().
  std::int64_t presentBegin() const { return presentBegin_; }

  const std::vector<TimelineWork>& work() const { return work_; }
  const std::vector<TimelineExchange>& exchanges() const { return exchanges_; }
  // What an instruction put on streams in the newest step that has it: indices into work().
  std::vector<int> workOf(int instruction) const;

  // The slice of a row at a time; -1.
  int at(const TimelineRow& row, std::int64_t ns) const;
  // Row and slice of an instruction, not of what it put on a stream, in the newest step that has it, on the first rank that
  // has it; false when there is none.
  bool find(int instruction, int* row, int* slice) const;

 private:
  std::vector<TimelineRow> rows_;
  std::vector<TimelineStep> steps_;
  std::vector<TimelineWork> work_;
  std::vector<TimelineExchange> exchanges_;
  std::vector<std::string> categories_;
  int ranks_ = 1;
  int waitingCategory_ = -1;
  TimelineAxis axis_;
  std::int64_t begin_ = 0, end_ = 1, count_ = 0, presentBegin_ = 0;

  std::vector<TimelineCut> findCuts();
};

}  // namespace stepscope
