// Writes what a run does into a project, without holding the run up.
//
// The calls below copy what they are given into a bounded queue and return; a background thread (lower priority) commits
// at most 250 ms after the oldest waiting event, all in one transaction. A commit is on disk: neither a kill nor a power cut
// loses it. A step is in the file with all that belongs to it, or not at all.
//
// When the queue is full, detail goes first: spans, batches, row losses and statistics, then steps. What was dropped is
// counted and becomes a row of the table `lost`, with advice. Who has nothing better to do than to wait for room sets
// stepPatience, and loses nothing as long as the file can be written. While the disk is full or refuses a call, or while
// another process holds the file, recording pauses and tries again; when the file was moved, deleted or overwritten, and
// after any other failure, it stops for good. A moved file keeps what was recorded, its run "interrupted". Training goes on
// in every case, and state() tells.
//
// Cost on the calling thread: one copy per recorded instruction (tests/bench/RESULTS.md).
// Thread: every function may be called from any thread. Times are nanoseconds, sizes bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/snapshot/graph.pb.h"
#include "engine/snapshot/lab.pb.h"
#include "engine/snapshot/plan.pb.h"
#include "engine/snapshot/run.pb.h"
#include "engine/snapshot/tensor.pb.h"
#include "storage/error.h"
#include "storage/ledger.h"
#include "storage/project.h"
#include "storage/rank_steps.h"
#include "storage/run_info.h"

namespace stepscope::storage {

enum class RunStatus { kFinished, kFailed, kCancelled };

struct RecorderSettings {
  std::chrono::milliseconds commitInterval{250};
  // Above it, detail is dropped; above twice, steps are.
  std::size_t queueBytes = std::size_t{64} << 20;
  bool spans = true;                                // record the begin and end of every instruction
  std::chrono::milliseconds closePatience{10'000};  // how long close() waits for another process that holds the file
  std::chrono::milliseconds stepPatience{0};  // how long step() waits for room in the queue before something is dropped
};

struct RecorderState {
  enum class Health { kRecording, kPaused, kStopped };  // kPaused: the disk is full, or another process holds the file
  Health health = Health::kRecording;
  ErrorCode cause = ErrorCode::kIo;  // why it is paused or stopped, and in words
  std::string message;
  std::int64_t waiting = 0;  // events in the queue
  std::size_t waitingBytes = 0;
  std::int64_t committedSteps = 0;  // step rows that are on disk
  std::int64_t committedStep = -1;  // number of the newest of them
  std::int64_t lost = 0;            // events and spans that were dropped
  std::int64_t lostSteps = 0;       // steps among them
  std::int64_t waits = 0;           // steps that waited for room in the queue
  std::int64_t waitedNs = 0;        // all of them together
};

class Recorder {
 public:
  // Takes over a project that was opened for writing. Errors: kReadOnly.
  static Result<std::unique_ptr<Recorder>> start(Project project, RecorderSettings settings = {});
  ~Recorder();  // as close(), dropping the error

  // Begins a run and returns its id (runs.id). What follows belongs to it; a run that is still open ends as finished.
  std::int64_t beginRun(RunInfo info);
  void endRun(RunStatus status, std::string message = {});

  // Everything a build produces. beginBuild() separates a rebuild from the build before; the first one needs none.
  void beginBuild();
  void options(std::vector<snapshot::Option> options);   // a new revision of all options
  void phases(std::vector<snapshot::PhaseSpan> phases);  // all spans of a build, parents before children
  // The graph after the last phase; `stages`: how many phases keep one, this one included.
  void graph(snapshot::Graph graph, int stages = 1);
  // The graph after an earlier phase of the same build, `stage` = 0 for the first. They are handed over from the last to the
  // first, at any time until the next build: each is stored as its difference to the one before, next to nothing in most
  // cases.
  void stageGraph(snapshot::Graph graph, int stage);
  void plan(snapshot::Plan plan);  // the plan that the following steps execute
  // They execute the newest plan of this signature again.
  void planResumed(std::string signature);
  void nameRun(std::string name, std::int64_t run = 0);  // in place of the one it began with; an earlier run's, above 0
  void determinism(std::vector<snapshot::Determinism> nodes);  // of that plan
  void trials(snapshot::TrialsReport report);                  // a session of them, for the table of that name

  // What the buffers of the newest plan really took, by their index; -1: not measured.
  void bufferBytes(std::vector<std::int64_t> bytes);

  void ledger(LedgerRecord ledger);  // of one step, for the tables ledger and ledger_advice

  // `walked`: instruction by instruction, to stop at breakpoints; its time is not that of a step at full speed.
  void step(const snapshot::StepRecord& step, bool walked = false);
  void ranks(
      std::vector<RankStep> ranks);  // what each process took of one step, for the tables rank_steps, rank_collectives
  void alert(snapshot::Alert alert);
  // The run went back to the state before this step: what was recorded of it and of later ones no longer stands.
  void takenBack(std::int64_t step);
  void tensorStats(std::int64_t step, std::int32_t value, std::string name, const snapshot::TensorStatistics& stats);

  // Takes an earlier run of the project out. The pages of its rows are written again by the runs that follow; deleteRun()
  // on a project that nobody records gives them back to the disk. Errors: kInvalidArgument for the run that is recorded.
  Status forgetRun(std::int64_t run);

  // What the window remembers with the project; independent of runs.
  void viewState(std::string key, std::string value);
  // Data that the caller could not deliver, for the table `lost`.
  void lost(std::string what, std::int64_t amount, std::string reason, std::string advice);

  // Waits until everything handed over so far is committed. Returns why it is not.
  Status flush();
  // flush(), ends an open run as finished, closes the file. The recorder drops whatever comes later. Returns why something
  // that was handed over is not in the file.
  Status close();

  RecorderState state() const;
  const std::string& path() const;

 private:
  class Impl;
  explicit Recorder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepscope::storage
