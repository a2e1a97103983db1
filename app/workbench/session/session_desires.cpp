// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/session_desires.h"

#include <algorithm>
#include <utility>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_answers.h"
#include "app/workbench/session/session_model.h"
#include "app/workbench/session/session_stepper.h"
#include "views/common/findings.h"
#include "views/common/format.h"

namespace stepscope {
namespace {
constexpr int kMostTries = 8;

template <typename Values>
bool holds(const Values& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}
}  // namespace

bool SessionDesires::ready() const {
  return parts_.model.built() && parts_.model.inWorker() && link_.client().alive() && !parts_.model.building() &&
         !knownBefore_;
}

void SessionDesires::show() {
  if (!same(store_.breakpoints(), desired_.breakpoints())) store_.setBreakpoints(desired_.breakpoints());
  if (const auto watched = desired_.watched(); store_.watched() != watched) store_.setWatched(watched);
  if (const auto pinned = desired_.pinned(); store_.pinned() != pinned) store_.setPinned(pinned);
}

void SessionDesires::setBreakpoints(const std::vector<snapshot::Breakpoint>& breakpoints) {
  desired_.setBreakpoints(breakpoints);
  store_.findings().setRefusedBreakpoint(std::nullopt);
  tries_ = 0;
  show();
  sendBreakpoints();
}

void SessionDesires::toggleBreakpoint(int instruction) {
  auto all = desired_.breakpoints();
  const auto here = [instruction](const snapshot::Breakpoint& b) {
    return b.condition_case() == snapshot::Breakpoint::kInstruction && b.instruction() == instruction;
  };
  if (std::erase_if(all, here) == 0) {
    snapshot::Breakpoint b;
    b.set_instruction(instruction);
    b.set_enabled(true);
    all.push_back(b);
  }
  setBreakpoints(all);
}

void SessionDesires::watch(int value, bool on) {
  std::vector<int> values = desired_.watched();
  std::erase(values, value);
  if (on) values.push_back(value);
  desired_.setWatched(values, {store_.graph(), store_.plan()});
  tries_ = 0;
  show();
  sendWatched();
}

void SessionDesires::pin(int value, bool on) {
  if (!parts_.model.built()) {
    (void)link_.refuse();
    return;
  }
  std::vector<int> values = desired_.pinned();
  std::erase(values, value);
  if (on) values.push_back(value);
  desired_.setPinned(values, {store_.graph(), store_.plan()});
  tries_ = 0;
  show();
  if (link_.busy() || run_.on)
    emit session_.note(QStringLiteral("Kept from the next step on"));
  else
    catchUp({});
}

void SessionDesires::reconcile() {
  sendBreakpoints();
  sendWatched();
}

void SessionDesires::becameIdle() {
  if (link_.busy() || run_.on) return;
  reconcile();
  if (ready()) catchUp({});
}

void SessionDesires::catchUp(Then then) {
  if (optionsWait()) return sendOptions([this, then] { catchUp(then); });
  if (nextPin()) return sendPin([this, then] { catchUp(then); });
  if (then) then();
}

// What was being set for a run was cancelled: by a person, who means the run, or for a newer wish, with which the run goes
// on.
void SessionDesires::goOnAfterNewer(Then then) {
  if (run_.on && std::exchange(run_.interrupted, false)) catchUp(std::move(then));
}

// A quiet request. One that was cancelled together with something else is sent again; one that the worker refuses is taken
// back. `asking` says whether one is on its way: the next one waits for its answer.
void SessionDesires::answered(const Delivery& d, bool* asking, const Then& taken,
                              const std::function<void(const QString&)>& back) {
  if (!d.response->done()) return;
  *asking = false;
  if (!d.response->has_error()) {
    taken();
    reconcile();  // what was desired meanwhile
    return;
  }
  const auto& error = d.response->error();
  if (error.code() == "worker_died") return;
  if (error.code() == "cancelled") {
    --tries_;
    if (!link_.busy() && !run_.on) reconcile();
    return;
  }
  const QString why = format::visible(error.message());
  emit session_.note(why);
  back(why);
  show();
}

// Only a condition can be refused: the others are places of the plan that is shown.
void SessionDesires::refused(const std::vector<snapshot::Breakpoint>& sent, const QString& why) {
  auto wanted = desired_.breakpoints();
  std::erase_if(wanted, [this, &sent, &why](const snapshot::Breakpoint& b) {
    const auto isIn = [&b](const auto& all) {
      return std::any_of(all.begin(), all.end(), [&b](const snapshot::Breakpoint& one) { return same({one}, {b}); });
    };
    if (b.condition_case() != snapshot::Breakpoint::kPredicate || !isIn(sent) || isIn(known_.breakpoints)) return false;
    store_.findings().setRefusedBreakpoint(RefusedBreakpoint{b, why});
    return true;
  });
  // Nothing says which one it was.
  if (wanted.size() == desired_.breakpoints().size() && same(wanted, sent)) wanted = known_.breakpoints;
  desired_.setBreakpoints(std::move(wanted));
}

void SessionDesires::sendBreakpoints() {
  if (!ready() || askingBreakpoints_ || tries_ >= kMostTries || same(desired_.breakpoints(), known_.breakpoints)) return;
  ++tries_;
  askingBreakpoints_ = true;
  snapshot::Request request;
  request.mutable_breakpoints();
  for (const auto& b : desired_.breakpoints()) *request.mutable_breakpoints()->add_breakpoints() = b;
  link_.request(std::move(request), QStringLiteral("setting breakpoints"),
                [this, sent = desired_.breakpoints()](const Delivery& d) {
                  answered(
                      d, &askingBreakpoints_,
                      [this, &d] {
                        if (knownBefore_)
                          knownBefore_->clear();  // it came to another plan: nothing says which numbers it took
                        const auto& all = d.response->breakpoints().breakpoints();
                        known_.breakpoints = {all.begin(), all.end()};
                      },
                      [this, &sent](const QString& why) { refused(sent, why); });
                });
}

void SessionDesires::sendWatched() {
  const std::vector<int> values = desired_.watched();
  if (!ready() || askingWatched_ || tries_ >= kMostTries || values == known_.watched) return;
  ++tries_;
  askingWatched_ = true;
  snapshot::Request request;
  request.mutable_watch();
  for (const int v : values) request.mutable_watch()->add_values(v);
  link_.request(std::move(request), QStringLiteral("watching"), [this, values](const Delivery& d) {
    answered(
        d, &askingWatched_,
        [this, &d, &values] {
          parts_.answers.absorb(d);
          known_.watched = values;
        },
        [this](const QString&) {
          desired_.setWatched(known_.watched, {store_.graph(), store_.plan()});
        });
  });
}

std::optional<std::pair<int, bool>> SessionDesires::nextPin() const {
  if (tries_ >= kMostTries || knownBefore_) return std::nullopt;
  const auto wanted = desired_.pinned();
  const auto pinned = known_.pinned.pinned();
  for (const int value : wanted)
    if (!holds(pinned, value)) return std::pair(value, true);
  for (const int value : pinned)
    if (!holds(wanted, value)) return std::pair(value, false);
  return std::nullopt;
}

void SessionDesires::sendPin(Then then) {
  const auto [value, on] = *nextPin();
  ++tries_;
  snapshot::Request request;
  request.mutable_pin()->set_value(value);
  request.mutable_pin()->set_pinned(on);
  const DesiredState before = known_.pinned;
  std::vector<int> kept = before.pinned();
  std::erase(kept, value);
  if (on) kept.push_back(value);
  known_.pinned.setPinned(kept, {store_.graph(), store_.plan()});  // follows into the plan that this makes
  link_.move(
      std::move(request), QStringLiteral("pinning"),
      [this, then] {
        if (!run_.on && store_.position().in_step()) parts_.stepper.stopped();
        emit session_.note(store_.position().in_step() ? QStringLiteral("Kept from here on")
                                                       : QStringLiteral("Kept from the next step on"));
        tries_ = 0;
        if (then) then();
      },
      [this, before, then, ofRun = run_.on] {
        if (!link_.client().alive()) return;
        known_.pinned = before;
        if (ofRun && link_.newestError() == "cancelled") return goOnAfterNewer(then);
        desired_.setPinned(before.pinned(), {store_.graph(), store_.plan()});
        show();
      });
}

void SessionDesires::told(const snapshot::SessionState& state) {
  known_.breakpoints = {state.breakpoints().begin(), state.breakpoints().end()};
  known_.watched.clear();
  for (const auto& value : state.position().watched()) known_.watched.push_back(value.value());
}

void SessionDesires::planIsAnother() {
  if (!knownBefore_) knownBefore_ = known_.breakpoints;
}

void SessionDesires::planChanged(const ShownPlan& before) {
  const auto moved = desired_.movedByWorker(knownBefore_.value_or(std::vector<snapshot::Breakpoint>()), known_.breakpoints);
  const bool again = kept_.has_value();
  const ShownPlan from = kept_ ? *std::exchange(kept_, std::nullopt) : before;
  const QStringList lost = desired_.moveTo(from, {store_.graph(), store_.plan()}, moved);
  const bool back = again && selection_.selection().empty();
  selection_.select(
      selectionIn(back ? keptSelection_ : selection_.selection(), back ? from : before, {store_.graph(), store_.plan()}));
  known_.pinned.moveTo(before, {store_.graph(), store_.plan()}, {});
  knownBefore_.reset();
  tries_ = 0;
  show();
  if (lost.isEmpty()) return;
  const QString text = QStringLiteral("This plan has no place for %1").arg(lost.join(QStringLiteral(", ")));
  store_.addLog({QStringLiteral("warning"), text});
  emit session_.note(text);
}

void SessionDesires::workerDied() {
  known_ = {};
  knownBefore_.reset();
  askingBreakpoints_ = askingWatched_ = false;
  tries_ = 0;
  sent_.clear();
  optionsBefore_.reset();
}

void SessionDesires::leave() {
  workerDied();
  optionsTouched_ = false;
  if (!kept_) {
    desired_.leaveModel();
    return show();
  }
  DesiredState rest = desired_;  // numbers of a plan that is not there yet
  rest.leaveModel();
  store_.setBreakpoints(rest.breakpoints());
}

void SessionDesires::keepOverLeaving() {
  kept_ = ShownPlan{store_.graph(), store_.plan()};
  keptSelection_ = selection_.selection();
  auto* once = new QObject(this);
  connect(&session_, &ModelSession::builtChanged, once, [this, once] {
    if (parts_.model.built()) once->deleteLater();
  });
  connect(&session_, &ModelSession::problem, once, [this, once] {
    once->deleteLater();
    if (!kept_) return;
    kept_.reset();
    if (parts_.model.built()) return;
    desired_.leaveModel();
    show();
  });
}

}  // namespace stepscope
