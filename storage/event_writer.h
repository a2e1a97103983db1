// Turns events into rows. Used by the recorder's thread only, inside a transaction that the recorder owns. Internal to
// storage.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/event.h"
#include "storage/retention.h"
#include "storage/sqlite.h"

namespace stepscope::storage {

class EventWriter {
 public:
  explicit EventWriter(const Connection& connection) : connection_(connection) {}

  Status write(const Event& event);
  // Writes the flat rows (nodes, graph_values) of the newest graph that has none yet. Done late, because a build takes a
  // dozen snapshots and only the last one is shown as rows.
  Status writeFlatGraph();
  // After a rollback: what the writer remembers about ids no longer holds.
  struct Bookmark;
  Bookmark bookmark() const;
  void restore(const Bookmark& bookmark);

 private:
  // The graph that was stored last: the one of the phase before is stored as its difference to it.
  struct LaterGraph {
    std::int64_t id = 0;  // 0: none
    int stage = 0;
    std::shared_ptr<const std::string> message;
  };
  struct RunState {
    int build = 0;
    LaterGraph later;
    bool hasPhases = false;  // the phases of this build are written
    int nextRevision = 0;
    std::int64_t plan = 0;  // newest plan, 0 = none
    bool warmUp = true;     // the next step is the first one of its plan
    std::int64_t nextStep = 0;
    std::int64_t trials = 0, ledgers = 0;  // sessions of them
    SpanThinning thinning;
  };

  Status on(std::int64_t run, const RunBegan& event);
  Status on(std::int64_t run, const RunEnded& event);
  Status on(std::int64_t run, const OptionsSet& event);
  Status on(std::int64_t run, const BuildBegan& event);
  Status on(std::int64_t run, const PhasesDone& event);
  Status on(std::int64_t run, const GraphTaken& event);
  Status on(std::int64_t run, const StageTaken& event);
  Status on(std::int64_t run, const PlanMade& event);
  Status on(std::int64_t run, const PlanResumed& event);
  Status on(std::int64_t run, const RunNamed& event);
  Status on(std::int64_t run, const VerdictsGiven& event);
  Status on(std::int64_t run, const TrialsDone& event);
  Status on(std::int64_t run, const BuffersMeasured& event);
  Status on(std::int64_t run, const LedgerMade& event);
  Status on(std::int64_t run, const StepDone& event);
  Status on(std::int64_t run, const RanksStepped& event);
  Status on(std::int64_t run, const AlertRaised& event);
  Status on(std::int64_t run, const StatsTaken& event);
  Status on(std::int64_t run, const TakenBack& event);
  Status on(std::int64_t run, const RunForgotten& event);
  Status on(std::int64_t run, const ViewStateSet& event);
  Status on(std::int64_t run, const Lost& event);

  Status insertGraph(std::int64_t run, std::int64_t id, const snapshot::Graph& graph, std::int64_t bytes,
                     const std::string& data, std::int64_t base);
  Status writePass(std::int64_t run, std::int64_t phase, const snapshot::PassReport& pass);
  Status writeMachine(std::int64_t run, const snapshot::MachineInfo& machine);
  Status writeInstructions(std::int64_t run, std::int64_t plan, const snapshot::Plan& message);
  Status writeBuffers(std::int64_t run, std::int64_t plan, const snapshot::Plan& message);
  Status writeRoofline(std::int64_t run, std::int64_t plan, const snapshot::Plan& message);
  Status writeDevice(std::int64_t run, std::int64_t step, const snapshot::DeviceWork& work);   // step: steps.id
  Status writeBatch(std::int64_t run, std::int64_t step, const snapshot::StepRecord& record);  // step: steps.id
  Status writeRowLosses(std::int64_t run, std::int64_t step, const snapshot::RowLosses& losses);
  Status writeStatistics(std::int64_t run, std::int64_t step, const std::string& kind, const std::string& subject,
                         std::int32_t value, const std::string& name, std::int32_t node,
                         const snapshot::TensorStatistics& statistics);

  // Prepared once per text; inserts a row and resets.
  template <typename... Values>
  Status insert(const char* sql, const Values&... values) {
    auto found = statements_.find(sql);
    if (found == statements_.end()) {
      SS_STORE_ASSIGN(Statement statement, connection_.prepare(sql));
      found = statements_.emplace(sql, std::move(statement)).first;
    }
    return found->second.bind(values...).run();
  }

  const Connection& connection_;
  std::map<std::string, Statement, std::less<>> statements_;
  std::map<std::int64_t, RunState> runs_;
  std::shared_ptr<const snapshot::Graph> flatGraph_;
  std::int64_t flatRun_ = 0;

 public:
  struct Bookmark {
    std::map<std::int64_t, RunState> runs;
    std::shared_ptr<const snapshot::Graph> flatGraph;
    std::int64_t flatRun = 0;
  };
};

}  // namespace stepscope::storage
