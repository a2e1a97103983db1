#include "app/cli/recording_watch.h"

#include <fmt/format.h>

#include "app/cli/terminal.h"
#include "engine/exec/executor.h"
#include "engine/snapshot/alert.h"
#include "engine/snapshot/units.h"

namespace stepscope::cli {
namespace {

using Health = storage::RecorderState::Health;
constexpr std::int64_t kPauseNs = 100'000'000;

}  // namespace

void RecordingWatch::say(const char* code, std::string message) {
  const snapshot::Alert alert = makeAlert(snapshot::Alert::WARNING, code, std::move(message));
  output_.alert(alert);
  recorder_.alert(alert);
}

void RecordingWatch::look() {
  const std::int64_t now = monotonicNs();
  if (now - lookedAt_ < kPauseNs) return;
  lookedAt_ = now;
  const storage::RecorderState state = recorder_.state();
  if (state.lost > 0 && !drops_ && state.health == Health::kRecording) {
    drops_ = true;
    say("recording_drops",
        "recording: the file is not written as fast as steps are made; details are dropped, the table lost says which");
  }
  if (state.waits > 0 && !waits_) {
    waits_ = true;
    say("recording_waits", "recording: steps wait for the file, which is written more slowly than they are made");
  }
  if (state.health == health_) return;
  health_ = state.health;
  const std::string since =
      state.committedStep < 0 ? "before the first step" : fmt::format("after step {}", state.committedStep);
  if (health_ == Health::kPaused)
    say("recording_paused", fmt::format("recording pauses {} and tries again: {}", since, state.message));
  else if (health_ == Health::kStopped)
    say("recording_stopped", fmt::format("recording ended {}: {}", since, state.message));
  else
    say("recording_resumed", state.lostSteps > 0 ? fmt::format("recording goes on; {} steps are lost", state.lostSteps)
                                                 : "recording goes on; no step is lost");
}

Status RecordingWatch::close(std::int64_t steps) {
  if (const storage::RecorderState state = recorder_.state(); state.waits > 0)
    say("recording_waited", fmt::format("recording: {} of {} steps waited for the file, {} in all", state.waits, steps,
                                        units::time(state.waitedNs)));
  const storage::Status closed = recorder_.close();
  const storage::RecorderState state = recorder_.state();
  if (closed && state.lostSteps == 0) {
    if (state.lost > 0 && !drops_)
      tellWarning("recording_drops",
                  fmt::format("recording: {} details were dropped; the table lost says which", state.lost));
    return {};
  }
  const std::string why = closed ? "the file was not written as fast as steps were made" : closed.error().message;
  if (state.lostSteps == 0) return fail(ErrorCode::kIo, why);
  return fail(ErrorCode::kIo, fmt::format("project '{}': {} of {} steps are not recorded ({}); expected all of them",
                                          recorder_.path(), state.lostSteps, steps, why));
}

}  // namespace stepscope::cli
