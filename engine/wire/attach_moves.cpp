// What moves an attached loop, and where it stands.
#include <fmt/format.h>

#include <algorithm>

#include "engine/snapshot/alert.h"
#include "engine/step/breakpoint.h"
#include "engine/train/session_alerts.h"
#include "engine/wire/attach_service.h"

namespace stepscope {

// Where it is held, or that it is not. A program thread that runs is not waited for.
Result<snapshot::Position> AttachService::position() {
  if (loop_.tellShown()) SS_TRY(tellPlan());
  return loop_.position();
}

Result<snapshot::Response> AttachService::state() {
  snapshot::Response response;
  auto& s = *response.mutable_state();
  SS_ASSIGN(*s.mutable_position(), position());
  s.set_open(loop_.told().session != nullptr);
  s.set_built(loop_.told().session != nullptr);
  for (const snapshot::Breakpoint& b : loop_.breakpoints()) *s.add_breakpoints() = b;
  return response;
}

Status AttachService::move(const snapshot::Request& request, const Status& moved) {
  SS_TRY(moved);
  while (loop_.atPlace()) {  // a step may have ended on the way there
    SS_ASSIGN(auto step, loop_.takeStep(false));
    if (!step) break;
    SS_TRY(sendStep(request, std::move(*step), true, false));
  }
  snapshot::Response response;
  SS_ASSIGN(*response.mutable_position(), position());
  return answer(request, std::move(response));
}

Status AttachService::runTo(const snapshot::Request& request, int instruction, bool breaks) {
  if (!loop_.held()) SS_TRY(loop_.begin());
  if (loop_.atPlace() && !breaks) return move(request, loop_.leavePlace(true));
  if (breaks) instruction = loop_.count();
  if (instruction < loop_.instruction())
    return unsupported(
        fmt::format("instruction {}: behind the script, which is at {}; expected one that comes, because what "
                    "a script has done is not taken back",
                    instruction, loop_.instruction()));
  return move(request, loop_.runTo(std::min(instruction, loop_.count()), breaks));
}

// Between forward and backward pass the script computes its loss.
Status AttachService::stepPhase(const snapshot::Request& request) {
  if (request.step_phase().backwards()) return runTo(request, -1);
  if (!loop_.held()) SS_TRY(loop_.begin());
  return runTo(request, loop_.phaseEnd());
}

void AttachService::warn(std::string code, std::string message, std::int64_t step) {
  snapshot::Response event;
  snapshot::Alert& alert = *event.mutable_alert();
  alert = makeAlert(snapshot::Alert::WARNING, std::move(code), std::move(message));
  alert.set_step(step);
  connection_.send(0, std::move(event), false);
}

Status AttachService::sendStep(const snapshot::Request& request, AttachedLoop::Step step, bool record, bool done) {
  if (step.of.plans != loop_.told().plans) {
    loop_.tellPlanOf(step);
    SS_TRY(tellPlan());
  }
  if (step.lost > 0)
    warn("lost_records",
         fmt::format("{} steps of the script before step {} are not recorded: they ended faster than the window took them",
                     step.lost, step.record.step()),
         step.record.step());
  if (!record) step.record.clear_spans();
  snapshot::Response response;
  *response.mutable_step() = std::move(step.record);
  return answer(request, std::move(response), done);
}

// The step that ends is the answer; of a call without its backward pass, the place where the loop is held instead.
Status AttachService::finish(const snapshot::Request& request) {
  if (!loop_.held()) SS_TRY(loop_.begin());
  SS_TRY(loop_.finish());
  bool told = false;
  while (true) {
    SS_ASSIGN(auto step, loop_.takeStep(false));
    if (!step) break;
    const bool last = !loop_.stepsWait();
    SS_TRY(sendStep(request, std::move(*step), true, last));
    told = told || last;
    if (last) break;
  }
  return told ? Status{} : move(request, {});
}

Status AttachService::train(const snapshot::Request& request) {
  const std::int64_t steps = request.train().steps();
  if (steps <= 0) return move(request, {});
  loop_.letGo(request.train().breaks() && request.train().values());
  for (std::int64_t i = 0; i < steps; ++i) {
    auto step = loop_.takeStep(true);
    if (!step || connection_.gone()) {
      (void)loop_.hold();
      if (!step) return tl::make_unexpected(step.error());
      return fail(ErrorCode::kCancelled, "train: the window is gone");
    }
    if (!*step) return move(request, {});  // it stopped at a breakpoint
    if (i > 0 && (*step)->of.plans != loop_.told().plans) {
      loop_.giveBack(std::move(**step));
      return answer(request, {});
    }
    SS_TRY(sendStep(request, std::move(**step), request.train().record(), i + 1 == steps));
  }
  return {};
}

Status AttachService::hold(const snapshot::Request& request) {
  SS_TRY(loop_.hold());
  while (true) {
    SS_ASSIGN(auto step, loop_.takeStep(false));
    if (!step) break;
    SS_TRY(sendStep(request, std::move(*step), true, false));
  }
  SS_ASSIGN(snapshot::Response response, state());
  return answer(request, std::move(response));
}

Status AttachService::breakpoints(const snapshot::Request& request) {
  const auto& asked = request.breakpoints().breakpoints();
  for (const snapshot::Breakpoint& b : asked) {
    if (b.condition_case() == snapshot::Breakpoint::kPredicate) SS_TRY(parsePredicate(b.predicate()));
    if (b.condition_case() == snapshot::Breakpoint::CONDITION_NOT_SET || b.id() < 0)
      return invalid(fmt::format("breakpoint {}: no condition; expected one", b.id()));
  }
  loop_.setBreakpoints({asked.begin(), asked.end()});
  if (const auto shown = loop_.told(); shown.stepper)
    for (std::string& text : idlePredicates(loop_.breakpoints(), shown.stepper->graph(), true))
      warn("breakpoint_without_value", std::move(text), loop_.steps());
  snapshot::Response response;
  response.mutable_breakpoints();
  for (const snapshot::Breakpoint& b : loop_.breakpoints()) *response.mutable_breakpoints()->add_breakpoints() = b;
  return answer(request, std::move(response));
}

}  // namespace stepscope
