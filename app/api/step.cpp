// Running micro steps: at full speed, and one instruction at a time.
#include <fmt/format.h>

#include <cstdlib>

#include "app/api/handles.h"
#include "engine/step/breakpoint.h"

namespace stepscope::api {
namespace {

Status ensureBuilt(Session& session) { return session.built() ? Status{} : session.build(); }

Status giveRecord(const char* what, const snapshot::StepRecord& record, ss_step_record* to) {
  return giveOut(what,
                 ss_step_record{.size = sizeof(ss_step_record),
                                .has_loss = record.has_loss(),
                                .has_gradient_norm = record.has_gradient_norm(),
                                .updated = record.updated(),
                                .skipped = record.skipped(),
                                .step = record.step(),
                                .loss = record.loss(),
                                .learning_rate = record.learning_rate(),
                                .gradient_norm = record.gradient_norm(),
                                .loss_scale = record.loss_scale(),
                                .ns = record.ns(),
                                .planned_bytes = record.planned_bytes(),
                                .peak_bytes = record.peak_bytes()},
                 to);
}

Status givePosition(const char* what, ss_session& session, const snapshot::Position& position, ss_position* to) {
  return giveOut(what,
                 ss_position{.size = sizeof(ss_position),
                             .in_step = position.in_step(),
                             .instruction = position.instruction(),
                             .has_loss = position.has_loss(),
                             .step = position.step(),
                             .loss = position.loss(),
                             .stopped_by = session.given.text(position.stopped_by())},
                 to);
}

// Checked before anything runs: a step that was run cannot be given back because a struct was wrong.
template <typename Struct>
Status checkPlace(const char* what, Struct* to) {
  Struct nothing{};
  nothing.size = to ? to->size : 0;
  return giveOut(what, nothing, to);
}

// A move of the stepper, and where it came to.
ss_error* moved(const char* what, ss_session* session, ss_position* position,
                const std::function<Result<snapshot::Position>(Session&)>& move) {
  return guarded(what, session, [&](Session& s) -> Status {
    SS_TRY(checkPlace(what, position));
    SS_TRY(ensureBuilt(s));
    SS_ASSIGN(const snapshot::Position reached, move(s));
    return givePosition(what, *session, reached, position);
  });
}

Result<snapshot::Breakpoint> breakpointOf(const Session& session, const std::string& text) {
  snapshot::Breakpoint breakpoint;
  breakpoint.set_enabled(true);
  const std::size_t space = text.find(' ');
  const std::string kind = text.substr(0, space), rest = space == std::string::npos ? "" : text.substr(space + 1);
  if (text == "nan") {
    breakpoint.set_nan(true);
  } else if (text == "inf") {
    breakpoint.set_new_inf(true);
  } else if (kind == "op" && !rest.empty()) {
    breakpoint.set_op(rest);
  } else if (kind == "node") {
    const NodeId node = session.runningGraph().findNode(rest);
    if (!node) return fail(ErrorCode::kNotFound, fmt::format("ss_break_on: no node '{}' in the graph that runs", rest));
    breakpoint.set_node(node.index);
  } else if (kind == "instruction") {
    char* end = nullptr;
    const long instruction = std::strtol(rest.c_str(), &end, 10);
    const int count = session.stepper().count();
    if (rest.empty() || *end != 0 || instruction < 0 || instruction >= count)
      return invalid(fmt::format("ss_break_on: instruction '{}'; expected a number from 0 to {}", rest, count - 1));
    breakpoint.set_instruction(static_cast<std::int32_t>(instruction));
  } else if (kind == "phase") {
    for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kRecompute, Phase::kOptimizer})
      if (rest == phaseName(phase)) {
        breakpoint.set_phase(static_cast<snapshot::Phase>(phase));
        return breakpoint;
      }
    return invalid(fmt::format("ss_break_on: phase '{}'; expected forward, backward, recompute or optimizer", rest));
  } else {
    SS_TRY(parsePredicate(text));
    breakpoint.set_predicate(text);
  }
  return breakpoint;
}

}  // namespace
}  // namespace stepscope::api

using namespace stepscope;
using namespace stepscope::api;

extern "C" {

ss_error* ss_step(ss_session* session, ss_step_record* record) {
  return guarded("ss_step", session, [&](Session& s) -> Status {
    SS_TRY(checkPlace("ss_step", record));
    SS_TRY(ensureBuilt(s));
    SS_ASSIGN(const snapshot::StepRecord done, s.step());
    return giveRecord("ss_step", done, record);
  });
}

void ss_cancel(ss_session* session) {
  if (session) session->session->cancel();
}

ss_error* ss_begin_step(ss_session* session, ss_position* position) {
  return moved("ss_begin_step", session, position, [](Session& s) -> Result<snapshot::Position> {
    SS_TRY(s.beginStep());
    return s.position();
  });
}

ss_error* ss_move(ss_session* session, int32_t instructions, ss_position* position) {
  return moved("ss_move", session, position, [=](Session& s) { return s.stepInstructions(instructions); });
}

ss_error* ss_run_to(ss_session* session, int32_t instruction, ss_position* position) {
  return moved("ss_run_to", session, position, [=](Session& s) { return s.runTo(instruction); });
}

ss_error* ss_run_to_break(ss_session* session, int32_t backwards, ss_position* position) {
  return moved("ss_run_to_break", session, position, [=](Session& s) { return s.runToBreak(backwards != 0); });
}

ss_error* ss_move_phase(ss_session* session, int32_t backwards, ss_position* position) {
  return moved("ss_move_phase", session, position, [=](Session& s) { return s.stepPhase(backwards != 0); });
}

ss_error* ss_where(ss_session* session, ss_position* position) {
  return moved("ss_where", session, position, [](Session& s) -> Result<snapshot::Position> { return s.position(); });
}

ss_error* ss_finish_step(ss_session* session, ss_step_record* record) {
  return guarded("ss_finish_step", session, [&](Session& s) -> Status {
    SS_TRY(checkPlace("ss_finish_step", record));
    SS_TRY(ensureBuilt(s));
    SS_ASSIGN(const snapshot::StepRecord done, s.finishStep());
    return giveRecord("ss_finish_step", done, record);
  });
}

ss_error* ss_abandon_step(ss_session* session) {
  return guarded("ss_abandon_step", session, [](Session& s) { return s.abandonStep(); });
}

ss_error* ss_rewind(ss_session* session, int64_t step) {
  return guarded("ss_rewind", session, [&](Session& s) { return s.rewind(step); });
}

ss_error* ss_break_on(ss_session* session, const char* const* conditions, size_t count) {
  return guarded("ss_break_on", session, [&](Session& s) -> Status {
    SS_ASSIGN(const auto texts, namesOf("ss_break_on", conditions, count));
    SS_TRY(ensureBuilt(s));
    std::vector<snapshot::Breakpoint> breakpoints;
    for (const std::string& text : texts) {
      SS_ASSIGN(snapshot::Breakpoint breakpoint, breakpointOf(s, text));
      breakpoint.set_id(static_cast<std::int32_t>(breakpoints.size()) + 1);
      breakpoints.push_back(std::move(breakpoint));
    }
    return s.setBreakpoints(std::move(breakpoints));
  });
}
}
