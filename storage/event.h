// What the recorder's threads hand to its writer. Internal to storage.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engine/snapshot/graph.pb.h"
#include "engine/snapshot/lab.pb.h"
#include "engine/snapshot/plan.pb.h"
#include "engine/snapshot/run.pb.h"
#include "engine/snapshot/tensor.pb.h"
#include "storage/ledger.h"
#include "storage/rank_steps.h"
#include "storage/run_info.h"

namespace stepscope::storage {

struct RunBegan {
  RunInfo info;
  std::int64_t beganAt = 0;
};
struct RunNamed {
  std::int64_t run = 0;  // 0: the one that is recorded
  std::string name;
};
struct RunEnded {
  std::string status, message;
  std::int64_t endedAt = 0;
};
struct OptionsSet {
  std::vector<snapshot::Option> options;
};
struct BuildBegan {};
struct PhasesDone {
  std::vector<snapshot::PhaseSpan> phases;
};
struct GraphTaken {
  std::shared_ptr<const snapshot::Graph> graph;
  int stages = 1;
};
struct StageTaken {
  std::shared_ptr<const snapshot::Graph> graph;
  int stage = 0;
};
struct VerdictsGiven {
  std::vector<snapshot::Determinism> nodes;
};
struct PlanMade {
  std::shared_ptr<const snapshot::Plan> plan;
};
struct PlanResumed {
  std::string signature;
};
struct StepDone {
  snapshot::StepRecord step;  // without its spans
  std::string spans;          // packed
  int spanCount = 0;
  std::string_view speed;  // as the column of `steps`; of a literal
};
struct AlertRaised {
  snapshot::Alert alert;
};
struct StatsTaken {
  std::int64_t step = 0;
  std::int32_t value = -1;
  std::string name;
  snapshot::TensorStatistics stats;
};
struct TakenBack {
  std::int64_t step = 0;  // this one, and all after it
};
struct TrialsDone {
  snapshot::TrialsReport report;
};
struct BuffersMeasured {
  std::vector<std::int64_t> bytes;  // of the newest plan, by buffer; -1: not measured
};
struct LedgerMade {
  LedgerRecord ledger;
};
struct RanksStepped {
  std::vector<RankStep> ranks;  // of one step
};
struct RunForgotten {
  std::int64_t run = 0;  // another one than that of the event
};
struct ViewStateSet {
  std::string key, value;
};
struct Lost {
  std::string what;
  std::int64_t amount = 0, firstStep = -1, lastStep = -1;
  std::string reason, advice;
};

// What the recorder was told, one alternative per kind of event.
using EventBody = std::variant<RunBegan, RunNamed, RunEnded, OptionsSet, BuildBegan, PhasesDone, GraphTaken, StageTaken,
                               PlanMade, PlanResumed, VerdictsGiven, TrialsDone, BuffersMeasured, LedgerMade, StepDone,
                               RanksStepped, AlertRaised, StatsTaken, TakenBack, RunForgotten, ViewStateSet, Lost>;

struct Event {
  std::int64_t run = 0;
  std::size_t bytes = 0;  // rough size while it waits
  EventBody body;
};

}  // namespace stepscope::storage
