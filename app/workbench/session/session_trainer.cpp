// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/session_trainer.h"

#include <algorithm>
#include <utility>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_desires.h"
#include "app/workbench/session/session_edits.h"
#include "app/workbench/session/session_rewind.h"
#include "app/workbench/session/session_stepper.h"

namespace stepscope {
namespace {
constexpr qint64 kKeepEveryMs = 2000;
constexpr qint64 kShareOfKeeping = 50;  // a state is kept no more often than a fiftieth of the time allows
constexpr qint64 kChunkMs = 200;
constexpr qint64 kNoticedMs = 200;
constexpr int kHeldMs = 10;  // until it is asked again
}  // namespace

SessionTrainer::SessionTrainer(const SessionParts& parts) : SessionPart(parts) {
  held_.setSingleShot(true);
  held_.setInterval(kHeldMs);
  // A worker that died meanwhile is brought back by others, with the goal.
  connect(&held_, &QTimer::timeout, this, [this] {
    if (link_.client().alive() && run_.fullSpeed) goOn(heldGoal_);
  });
}

snapshot::Request SessionTrainer::fullSpeed(std::int64_t steps, bool everyValue) {
  snapshot::Request request;
  auto* train = request.mutable_train();
  train->set_steps(steps);
  train->set_record(true);
  train->set_breaks(true);
  train->set_values(everyValue);
  return request;
}

void SessionTrainer::train(std::int64_t steps) {
  if (link_.refuse()) return;
  const snapshot::Position& p = store_.position();
  trainOn(p.step() + steps + (p.in_step() ? 1 : 0));
}

// What a worker that dies costs is at most the time between two states; the rest is repeated from the last one.
qint64 SessionTrainer::keepEveryMs() const { return std::max(kKeepEveryMs, kShareOfKeeping * keepMs_); }

// In requests of about a quarter of a second: the next one is sent when the steps of the last have been taken in, so that a
// fast model never runs ahead of the window.
void SessionTrainer::trainAtOnce(std::int64_t goal) {
  held_.stop();
  run_.on = true;
  run_.goal = goal;
  run_.interrupted = false;
  if (parts_.desires.waits()) {
    parts_.desires.catchUp([this, goal] {
      if (run_.on) trainOn(goal);
    });
    return;
  }
  const std::int64_t left = goal - store_.position().step();
  const std::int64_t steps = std::min(left, chunk_);
  if (!std::exchange(run_.fullSpeed, true)) emit session_.busyChanged();
  sinceChunk_.start();
  link_.move(
      fullSpeed(steps, run_.everyValue), QStringLiteral("training"), [this, goal, steps] { chunkEnded(goal, steps); },
      [this, goal] { chunkFailed(goal); });
}

void SessionTrainer::end() {
  held_.stop();
  run_ = {};
  parts_.stepper.settle({});
}

void SessionTrainer::chunkEnded(std::int64_t goal, std::int64_t steps) {
  const qint64 took = std::max<qint64>(1, sinceChunk_.elapsed());
  chunk_ = std::clamp<std::int64_t>(steps * kChunkMs / took, 1, 4 * chunk_);
  const snapshot::Position& p = store_.position();
  const auto& records = store_.steps();
  const std::int64_t next = records.empty() ? p.step() : records.back()->step() + 1;
  if (!run_.on || next >= goal || next <= p.step() || p.in_step()) return end();
  if (!store_.watched().empty()) {
    snapshot::Request state;  // with the watched values
    state.mutable_state();
    link_.move(
        std::move(state), QStringLiteral("reading the state"), [this, goal] { goOn(goal); },
        [this, goal] { chunkFailed(goal); });
    return;
  }
  // The steps that came say where it stands.
  snapshot::Position between;
  between.set_step(next);
  store_.setPosition(between);
  goOn(goal);
}

void SessionTrainer::goOn(std::int64_t goal) {
  if (!run_.on) return end();  // a pause that came too late to cancel what was read
  if (hold_ && hold_()) {
    heldGoal_ = goal;
    held_.start();
    return;
  }
  keepState();
  if (walks()) return walkOn(goal);  // a place to stop at was set meanwhile
  trainAtOnce(goal);
}

// A loop of a script that is let run goes on without.
bool SessionTrainer::walks() const {
  return !breaksOnValuesOnly() && (run_.everyValue || !link_.client().host().attached());
}

void SessionTrainer::walkOn(std::int64_t goal) {
  run_.on = true;
  run_.fullSpeed = run_.everyValue = false;
  run_.goal.reset();
  if (goal < kForever) run_.goal = goal;
  emit session_.busyChanged();
  parts_.stepper.runOn();
}

void SessionTrainer::chunkFailed(std::int64_t goal) {
  if (!link_.client().alive()) return lostWorker();
  if (!std::exchange(run_.interrupted, false) || !run_.on) return end();
  run_.fullSpeed = false;
  snapshot::Request state;
  state.mutable_state();
  link_.move(std::move(state), QStringLiteral("reading the state"), [this, goal] {
    parts_.desires.catchUp([this, goal] {
      if (run_.on) trainOn(goal);
    });
  });
}

bool SessionTrainer::breaksOnValuesOnly() const {
  using B = snapshot::Breakpoint;
  const bool conditions = !link_.client().host().attached();  // a script looks at them where it is held
  return std::ranges::all_of(store_.breakpoints(), [conditions](const B& b) {
    return !b.enabled() || b.condition_case() == B::kNan || b.condition_case() == B::kNewInf ||
           (conditions && b.condition_case() == B::kPredicate);
  });
}

void SessionTrainer::trainOn(std::int64_t goal) {
  if (walks()) return walkOn(goal);
  run_.goal = goal;  // a pause takes it back, also while the begun step is finished
  const auto go = [this, goal] {
    if (run_.goal && goal > store_.position().step()) {
      trainAtOnce(goal);
    } else {
      run_.on = false;
      run_.goal.reset();
      parts_.stepper.settle({});
    }
  };
  if (!store_.position().in_step()) {
    go();
    return;
  }
  snapshot::Request finish;
  finish.mutable_finish_step();
  const auto finished = [this, go] {
    parts_.stepper.settle([this, go] {
      // Options that waited for the end of the step change the plan, which is read before it runs at full speed.
      if (parts_.desires.optionsTouched())
        parts_.stepper.inStep(go);
      else
        go();
    });
  };
  link_.move(std::move(finish), QStringLiteral("finishing the step"), finished, [this] {
    if (link_.client().alive()) run_.goal.reset();
    parts_.stepper.unfinished();
  });
}

void SessionTrainer::letRun() {
  if (!link_.refuse()) trainOn(kForever);
}

void SessionTrainer::pause() {
  ++pauses_;
  run_.paused = std::exchange(run_.on, false);
  run_.goal.reset();
  parts_.stepper.dropWaiting();
  emit session_.busyChanged();
  link_.client().cancelAll();
}

// Steps come as they end, a position with the answer to many of them.
void SessionTrainer::lostWorker() {
  if (run_.everyValue) run_.goal.reset();
  run_.fullSpeed = run_.everyValue = false;
  const auto& steps = store_.steps();
  if (steps.empty() || steps.back()->step() < store_.position().step()) return;
  snapshot::Position between;
  between.set_step(steps.back()->step() + 1);
  store_.setPosition(between);
}

void SessionTrainer::keepState() {
  if (link_.client().host().attached()) return;  // its state is the script's
  if (store_.position().in_step() || !store_.plan() || parts_.rewind.replaying()) return;
  if (!ring_.fits(store_.plan()->plan().persistent_bytes())) return;
  // A run over many steps keeps one now and then, and one that takes long is not kept with every step by hand; what lies
  // between is repeated.
  if ((run_.on || keepMs_ > kNoticedMs) && sinceKept_.isValid() && sinceKept_.elapsed() < keepEveryMs()) return;
  const QString path = ring_.freshPath();
  if (path.isEmpty()) return;
  sinceKept_.start();
  const std::int64_t step = store_.position().step();
  snapshot::Request request;
  request.mutable_save_state()->set_path(path.toStdString());
  link_.request(std::move(request), QStringLiteral("keeping the state"),
                [this, step, path, edits = parts_.edits.all().size(),
                 about = store_.plan()->plan().persistent_bytes()](const Delivery& d) {
                  keepMs_ = sinceKept_.elapsed();
                  if (d.response->done() && !d.response->has_error()) ring_.add(step, path, edits, about);
                });
}

void SessionTrainer::leave() {
  held_.stop();
  run_.goal.reset();
  ring_.clear();
}

}  // namespace stepscope
