// SPDX-License-Identifier: GPL-3.0-or-later
// Training at full speed, and the states that are kept on the way.
#include <algorithm>
#include <utility>

#include "app/workbench/session.h"

namespace stepscope {
namespace {
constexpr qint64 kKeepEveryMs = 2000;
constexpr qint64 kShareOfKeeping = 50;  // a state is kept no more often than a fiftieth of the time allows
constexpr qint64 kChunkMs = 200;
constexpr qint64 kNoticedMs = 200;
}  // namespace

void Session::train(std::int64_t steps) {
  if (refuse()) return;
  const snapshot::Position& p = store_.position();
  trainOn(p.step() + steps + (p.in_step() ? 1 : 0));
}

// What a worker that dies costs is at most the time between two states; the rest is repeated from the last one.
qint64 Session::keepEveryMs() const { return std::max(kKeepEveryMs, kShareOfKeeping * keepMs_); }

// In requests of about a quarter of a second: the next one is sent when the steps of the last have been taken in, so that a
// fast model never runs ahead of the window.
void Session::trainAtOnce(std::int64_t goal) {
  running_ = true;
  trainGoal_ = goal;
  if (!waiting_.empty()) {
    interrupted_ = false;
    sendOptions([this, goal] {
      if (running_) trainOn(goal);
    });
    return;
  }
  const std::int64_t left = goal - store_.position().step();
  const std::int64_t steps = std::min(left, chunk_);
  snapshot::Request request;
  request.mutable_train()->set_steps(steps);
  request.mutable_train()->set_record(true);
  request.mutable_train()->set_breaks(true);
  request.mutable_train()->set_values(everyValue_);
  if (!std::exchange(training_, true)) emit busyChanged();
  sinceChunk_.start();
  const auto ended = [this] {
    running_ = training_ = interrupted_ = everyValue_ = false;
    trainGoal_.reset();
    settle({});
  };
  const auto taken = [this, goal, steps, ended] {
    const qint64 took = std::max<qint64>(1, sinceChunk_.elapsed());
    chunk_ = std::clamp<std::int64_t>(steps * kChunkMs / took, 1, 4 * chunk_);
    const snapshot::Position& p = store_.position();
    const auto& records = store_.steps();
    const std::int64_t next = records.empty() ? p.step() : records.back()->step() + 1;
    if (!running_ || next >= goal || next <= p.step() || p.in_step()) return ended();
    const auto on = [this, goal] {
      keepState();
      trainAtOnce(goal);
    };
    if (!store_.watched().empty()) {
      snapshot::Request state;  // with the watched values
      state.mutable_state();
      move(std::move(state), tr("reading the state"), on, ended);
      return;
    }
    // The steps that came say where it stands.
    snapshot::Position between;
    between.set_step(next);
    store_.setPosition(between);
    on();
  };
  move(std::move(request), tr("training"), taken, [this, goal, ended] {
    if (!client_.alive()) {
      training_ = everyValue_ = false;
      return;
    }
    if (!std::exchange(interrupted_, false) || !running_) {
      ended();
      return;
    }
    training_ = false;
    snapshot::Request state;
    state.mutable_state();
    move(std::move(state), tr("reading the state"), [this, goal] {
      sendOptions([this, goal] {
        if (running_) trainOn(goal);
      });
    });
  });
}

bool Session::breaksOnNumbersOnly() const {
  const auto& all = store_.breakpoints();
  return std::all_of(all.begin(), all.end(), [](const snapshot::Breakpoint& b) {
    return !b.enabled() || b.condition_case() == snapshot::Breakpoint::kNan ||
           b.condition_case() == snapshot::Breakpoint::kNewInf;
  });
}

void Session::trainOn(std::int64_t goal) {
  const auto go = [this, goal] {
    if (goal > store_.position().step()) {
      trainAtOnce(goal);
    } else {
      running_ = false;
      trainGoal_.reset();
      settle({});
    }
  };
  if (!store_.position().in_step()) {
    go();
    return;
  }
  snapshot::Request finish;
  finish.mutable_finish_step();
  const auto finished = [this, go] {
    settle([this, go] {
      // Options that waited for the end of the step change the plan, which is read before it runs at full speed.
      if (optionsTouched_)
        inStep(go);
      else
        go();
    });
  };
  move(std::move(finish), tr("finishing the step"), finished, [this] { unfinished(); });
}

void Session::pause() {
  running_ = false;
  trainGoal_.reset();
  emit busyChanged();
  client_.cancelAll();
}

void Session::keepState() {
  if (store_.position().in_step() || !store_.plan() || replaying_) return;
  if (!ring_.fits(store_.plan()->plan().persistent_bytes())) return;
  // A run over many steps keeps one now and then, and one that takes long is not kept with every step by hand; what lies
  // between is repeated.
  if ((running_ || keepMs_ > kNoticedMs) && sinceKept_.isValid() && sinceKept_.elapsed() < keepEveryMs()) return;
  const QString path = ring_.freshPath();
  if (path.isEmpty()) return;
  sinceKept_.start();
  const std::int64_t step = store_.position().step();
  snapshot::Request request;
  request.mutable_save_state()->set_path(path.toStdString());
  this->request(std::move(request), tr("keeping the state"), [this, step, path, edits = edits_.size()](const Delivery& d) {
    keepMs_ = sinceKept_.elapsed();
    if (d.response->done() && !d.response->has_error()) ring_.add(step, path, edits);
  });
}

}  // namespace stepscope
