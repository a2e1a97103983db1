#include "storage/recorder.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <thread>

#include "storage/event_queue.h"
#include "storage/event_writer.h"
#include "storage/judged_steps.h"
#include "storage/room_reserve.h"
#include "storage/span_codec.h"
#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

std::int64_t wallClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string fileName(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string_view runStatusName(RunStatus status) {
  switch (status) {
    case RunStatus::kFinished: return "finished";
    case RunStatus::kFailed: return "failed";
    case RunStatus::kCancelled: return "cancelled";
  }
  return "failed";
}

bool wantsFlatGraph(const Event& event) {
  return std::holds_alternative<PlanMade>(event.body) || std::holds_alternative<StepDone>(event.body);
}

}  // namespace

class Recorder::Impl {
 public:
  Impl(Project project, RecorderSettings settings, std::int64_t lastRun)
      : settings(settings),
        queue(settings.queueBytes),
        path(project.path()),
        lastRun_(lastRun),
        project_(std::move(project)),
        writer_(project_.connection()),
        reserve_(path),
        thread_([this] { work(); }) {}

  ~Impl() { (void)close(); }

  void push(EventBody body, std::size_t bytes, std::chrono::milliseconds patience = {}) {
    queue.push(Event{run.load(), bytes, std::move(body)}, patience);
  }

  std::int64_t beginRun(RunInfo info) {
    endRun(RunStatus::kFinished, {});
    run = ++lastRun_;
    open_ = true;
    if (info.name.empty()) info.name = fileName(info.modelPath);
    for (const snapshot::Option& option : info.options) {
      if (option.name() == "device") info.device = option.value();
      if (option.name() == "precision") info.precision = option.value();
    }
    const std::size_t bytes = info.model.ByteSizeLong();
    push(RunBegan{std::move(info), wallClock()}, bytes);
    return run;
  }

  void endRun(RunStatus status, std::string message) {
    if (open_.exchange(false)) push(RunEnded{std::string(runStatusName(status)), std::move(message), wallClock()}, 64);
  }

  Status flush() {
    if (queue.flush()) return {};
    const std::lock_guard lock(mutex_);
    return tl::make_unexpected(failure_);
  }

  Status close() {
    const std::lock_guard once(closing_);
    if (!thread_.joinable()) return {};
    endRun(RunStatus::kFinished, {});
    Status flushed = flush();
    if (!flushed && flushed.error().code == ErrorCode::kIo) flushed = flush();  // it may have been that once
    for (const auto end = std::chrono::steady_clock::now() + settings.closePatience;
         !flushed && flushed.error().code == ErrorCode::kLocked && std::chrono::steady_clock::now() < end;)
      flushed = flush();
    queue.close();
    thread_.join();
    {
      const std::lock_guard lock(mutex_);
      const bool failed = health_ == RecorderState::Health::kStopped || queue.lostSteps() > 0;
      if (flushed && failed && !failure_.message.empty()) flushed = tl::make_unexpected(failure_);
    }
    if (flushed) {
      flushed = project_.checkPlace();
      if (!flushed && flushed.error().code == ErrorCode::kNotFound) {
        const std::lock_guard lock(mutex_);
        deletedSteps_ = std::exchange(committedSteps_, 0);
      }
    }
    writer_.reset();
    const Status closed = project_.close();
    return flushed ? closed : flushed;
  }

  RecorderState state() const {
    RecorderState result;
    result.waiting = queue.waiting();
    result.waitingBytes = queue.waitingBytes();
    result.lost = queue.lostTotal();
    result.waits = queue.waits();
    result.waitedNs = queue.waitedNs();
    const std::lock_guard lock(mutex_);
    result.lostSteps = queue.lostSteps() + deletedSteps_;
    result.health = health_;
    result.cause = failure_.code;
    result.message = health_ == RecorderState::Health::kRecording ? std::string() : failure_.message;
    result.committedSteps = committedSteps_;
    result.committedStep = committedStep_;
    return result;
  }

  const RecorderSettings settings;
  EventQueue queue;
  std::atomic<std::int64_t> run{0};
  const std::string path;

 private:
  void work() {
    try {
      writeAll();
    } catch (const std::exception& error) {  // no memory: the run goes on without its recording
      try {
        fail({ErrorCode::kLimitExceeded, fmt::format("project '{}': {}; expected memory for its rows", path, error.what())},
             false);
      } catch (const std::bad_alloc&) {
      }
      queue.stop();
    }
  }

  void writeAll() {
    // Training comes first; the queue bounds how far behind the writer may fall.
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10);
    reserve_.take();
    while (true) {
      std::deque<Event> events = queue.take(settings.commitInterval);
      if (events.empty()) return;
      const Status status = commit(events);
      if (status) {
        finished(events);
        reserve_.take();
        if (const Status there = project_.checkPlace(); !there) return leave(there.error());
        continue;
      }
      // Another process that holds the file was waited for already.
      const ErrorCode why = status.error().code;
      const bool locked = why == ErrorCode::kLocked;
      const bool retry = locked || why == ErrorCode::kDiskFull || why == ErrorCode::kIo;
      fail(status.error(), retry);
      queue.failed(std::move(events), status.error().message);
      if (retry && queue.wait(std::chrono::milliseconds(locked ? 50 : 1000))) continue;
      queue.stop();
      if (status.error().code == ErrorCode::kDiskFull) writeLastWords();
      return;
    }
  }

  // How the run ended and what is not recorded of it, where nothing else fits.
  void writeLastWords() {
    reserve_.give();
    (void)commit(queue.lastWords());
  }

  Status commit(const std::deque<Event>& events) {
    const Connection& connection = project_.connection();
    const EventWriter::Bookmark bookmark = writer_->bookmark();
    Status status = connection.execute("BEGIN IMMEDIATE");
    for (const Event& event : events) {
      if (!status) break;
      if (wantsFlatGraph(event)) status = writer_->writeFlatGraph();
      if (status) status = writer_->write(event);
    }
    if (status) status = connection.execute("COMMIT");
    if (!status) {
      (void)connection.execute("ROLLBACK");
      writer_->restore(bookmark);
    }
    return status;
  }

  void finished(const std::deque<Event>& events) {
    {
      const std::lock_guard lock(mutex_);
      health_ = RecorderState::Health::kRecording;
      for (const Event& event : events) {
        const auto* step = std::get_if<StepDone>(&event.body);
        if (!step) continue;
        ++committedSteps_;
        committedStep_ = step->step.step();
      }
    }
    queue.done(events.size());
  }

  // The file is not at its place any more. It is closed at once: another program would open it at its new one without what
  // is beside it, which keeps the old name.
  void leave(const Error& why) {
    (void)project_.connection().execute("UPDATE runs SET status = 'interrupted' WHERE status = 'running'");
    writer_.reset();
    (void)project_.close();
    fail(why, false);
    if (why.code == ErrorCode::kNotFound) {
      const std::lock_guard lock(mutex_);
      deletedSteps_ = std::exchange(committedSteps_, 0);
    }
    queue.stop();
  }

  void fail(const Error& error, bool paused) {
    const std::lock_guard lock(mutex_);
    health_ = paused ? RecorderState::Health::kPaused : RecorderState::Health::kStopped;
    failure_ = error;
  }

  std::atomic<std::int64_t> lastRun_;
  std::atomic<bool> open_{false};
  Project project_;
  std::optional<EventWriter> writer_;
  mutable std::mutex mutex_;
  std::mutex closing_;
  Error failure_;
  RecorderState::Health health_ = RecorderState::Health::kRecording;
  std::int64_t committedSteps_ = 0;
  std::int64_t committedStep_ = -1;
  std::int64_t deletedSteps_ = 0;  // committed to a file that is gone
  RoomReserve reserve_;            // of the writing thread
  std::thread thread_;             // last: it uses everything above
};

Result<std::unique_ptr<Recorder>> Recorder::start(Project project, RecorderSettings settings) {
  if (!project.writable())
    return storage::fail(ErrorCode::kReadOnly,
                         fmt::format("project '{}': opened for reading; expected one opened for writing", project.path()));
  SS_STORE_ASSIGN(const std::int64_t lastRun, project.connection().integer("SELECT max(id) FROM runs"));
  return std::unique_ptr<Recorder>(new Recorder(std::make_unique<Impl>(std::move(project), settings, lastRun)));
}

Recorder::Recorder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Recorder::~Recorder() = default;

std::int64_t Recorder::beginRun(RunInfo info) { return impl_->beginRun(std::move(info)); }
void Recorder::endRun(RunStatus status, std::string message) { impl_->endRun(status, std::move(message)); }
void Recorder::beginBuild() { impl_->push(BuildBegan{}, 0); }

void Recorder::options(std::vector<snapshot::Option> options) {
  const std::size_t bytes = options.size() * 256;
  impl_->push(OptionsSet{std::move(options)}, bytes);
}

void Recorder::phases(std::vector<snapshot::PhaseSpan> phases) {
  const std::size_t bytes = phases.size() * 256;
  impl_->push(PhasesDone{std::move(phases)}, bytes);
}

void Recorder::graph(snapshot::Graph graph, int stages) {
  auto shared = std::make_shared<snapshot::Graph>(std::move(graph));
  const std::size_t bytes = shared->ByteSizeLong();
  impl_->push(GraphTaken{std::move(shared), stages}, bytes);
}

void Recorder::stageGraph(snapshot::Graph graph, int stage) {
  auto shared = std::make_shared<snapshot::Graph>(std::move(graph));
  const std::size_t bytes = shared->ByteSizeLong();
  impl_->push(StageTaken{std::move(shared), stage}, bytes);
}

void Recorder::determinism(std::vector<snapshot::Determinism> nodes) {
  const std::size_t bytes = nodes.size() * 128;
  impl_->push(VerdictsGiven{std::move(nodes)}, bytes);
}

void Recorder::trials(snapshot::TrialsReport report) {
  const std::size_t bytes = report.ByteSizeLong();
  impl_->push(TrialsDone{std::move(report)}, bytes);
}

void Recorder::bufferBytes(std::vector<std::int64_t> measured) {
  const std::size_t bytes = measured.size() * sizeof(std::int64_t);
  impl_->push(BuffersMeasured{std::move(measured)}, bytes);
}

void Recorder::ledger(LedgerRecord ledger) {
  const std::size_t bytes = (ledger.lines.size() + ledger.advice.size()) * 512;
  impl_->push(LedgerMade{std::move(ledger)}, bytes);
}

void Recorder::ranks(std::vector<RankStep> ranks) {
  std::size_t bytes = 0;
  for (const RankStep& rank : ranks) bytes += sizeof rank + rank.collectives.size() * 128 + rank.spans.size();
  impl_->push(RanksStepped{std::move(ranks)}, bytes);
}

void Recorder::plan(snapshot::Plan plan) {
  auto shared = std::make_shared<snapshot::Plan>(std::move(plan));
  const std::size_t bytes = shared->ByteSizeLong();
  impl_->push(PlanMade{std::move(shared)}, bytes);
}

Status Recorder::forgetRun(std::int64_t run) {
  if (run == impl_->run)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("run '{}': it is being recorded; expected an earlier run of the project", run));
  impl_->push(RunForgotten{run}, 64);
  return impl_->flush();
}

void Recorder::nameRun(std::string name, std::int64_t run) {
  const std::size_t bytes = name.size();
  impl_->push(RunNamed{run, std::move(name)}, bytes);
}

void Recorder::planResumed(std::string signature) {
  const std::size_t bytes = signature.size();
  impl_->push(PlanResumed{std::move(signature)}, bytes);
}

void Recorder::step(const snapshot::StepRecord& step, bool walked) {
  StepDone event;
  event.speed = walked ? kWalked : step.every_value() ? kWatched : step.spans_size() > 0 ? kRecorded : kFullSpeed;
  if (impl_->settings.spans && step.spans_size() > 0) {
    event.spans = encodeSpans(step);
    event.spanCount = step.spans_size();
  }
  // Copying the message would copy a thousand spans that are packed already.
  snapshot::StepRecord& s = event.step;
  s.set_step(step.step());
  s.set_loss(step.loss());
  s.set_has_loss(step.has_loss());
  s.set_learning_rate(step.learning_rate());
  s.set_gradient_norm(step.gradient_norm());
  s.set_has_gradient_norm(step.has_gradient_norm());
  s.set_updated(step.updated());
  s.set_samples(step.samples());
  s.set_tokens(step.tokens());
  s.set_begin_ns(step.begin_ns());
  s.set_ns(step.ns());
  s.set_planned_bytes(step.planned_bytes());
  s.set_peak_bytes(step.peak_bytes());
  s.set_batch(step.batch());
  s.set_recording_ns(step.recording_ns());
  s.set_warm_up(step.warm_up());
  s.set_cpu_ns(step.cpu_ns());
  s.set_wait_ns(step.wait_ns());
  *s.mutable_densities() = step.densities();
  *s.mutable_inputs() = step.inputs();
  if (step.has_row_losses()) *s.mutable_row_losses() = step.row_losses();
  *s.mutable_statistics() = step.statistics();
  if (impl_->settings.spans && step.has_device()) *s.mutable_device() = step.device();
  const std::size_t bytes = event.spans.size() + s.ByteSizeLong() + sizeof(Event);
  impl_->push(std::move(event), bytes, impl_->settings.stepPatience);
}

void Recorder::takenBack(std::int64_t step) { impl_->push(TakenBack{step}, 64); }

void Recorder::alert(snapshot::Alert alert) { impl_->push(AlertRaised{std::move(alert)}, 256); }

void Recorder::tensorStats(std::int64_t step, std::int32_t value, std::string name,
                           const snapshot::TensorStatistics& stats) {
  impl_->push(StatsTaken{step, value, std::move(name), stats}, 1024);
}

void Recorder::viewState(std::string key, std::string value) {
  const std::size_t bytes = key.size() + value.size();
  impl_->push(ViewStateSet{std::move(key), std::move(value)}, bytes);
}

void Recorder::lost(std::string what, std::int64_t amount, std::string reason, std::string advice) {
  impl_->push(Lost{std::move(what), amount, -1, -1, std::move(reason), std::move(advice)}, 256);
}

Status Recorder::flush() { return impl_->flush(); }
Status Recorder::close() { return impl_->close(); }
RecorderState Recorder::state() const { return impl_->state(); }
const std::string& Recorder::path() const { return impl_->path; }

}  // namespace stepscope::storage
