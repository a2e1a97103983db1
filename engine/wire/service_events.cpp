// What the client is told without asking: builds, places in another plan, phases, alerts, progress, graphs.
#include "engine/build/registry.h"
#include "engine/build/snapshots.h"
#include "engine/wire/session_service.h"

namespace stepscope {

snapshot::Response SessionService::buildReply(std::size_t build) const {
  snapshot::Response response;
  auto& reply = *response.mutable_build();
  for (snapshot::PhaseSpan& span : session_->log().spansOf(build)) *reply.add_phases() = std::move(span);
  for (const snapshot::Alert& alert : session_->alerts()) *reply.add_alerts() = alert;
  for (const Stage& stage : session_->plans().stages()) reply.add_stages(stage.phase);
  reply.set_loss(session_->lossValue().index);
  return response;
}

// Whatever made a plan, the client hears of it before the answer to what it asked for: what it shows is of another build.
void SessionService::tellBuilds() {
  if (!session_) return;
  if (toldBuilds_ < session_->log().builds()) stages_.drop();  // none of a build comes after its end
  for (; toldBuilds_ < session_->log().builds(); ++toldBuilds_) {
    connection_.send(0, buildReply(toldBuilds_), false);
    shownBuild_ = toldBuilds_;
  }
  if (!session_->built() || session_->plans().build() == shownBuild_) return;
  shownBuild_ = session_->plans().build();
  snapshot::Response again = buildReply(shownBuild_);
  again.mutable_build()->set_kept(session_->plans().signature());
  connection_.send(0, std::move(again), false);
}

// In another plan the paused step and the breakpoints have other numbers.
void SessionService::tellPlaces() {
  if (!session_->position().in_step()) return;
  tellBuilds();
  snapshot::Response position, breakpoints;
  *position.mutable_position() = session_->position();
  connection_.send(0, std::move(position), false);
  breakpoints.mutable_breakpoints();
  for (const snapshot::Breakpoint& b : session_->breakpoints()) *breakpoints.mutable_breakpoints()->add_breakpoints() = b;
  connection_.send(0, std::move(breakpoints), false);
}

Observer SessionService::observer(std::shared_ptr<const Registry> registry) {
  Observer o;
  o.phase = [this](const snapshot::PhaseSpan& span) {
    snapshot::Response event;
    *event.mutable_phase() = span;
    connection_.send(0, std::move(event), false);
  };
  o.begins = o.phase;
  o.stage = [this, registry = std::move(registry)](const Stage& stage) { stages_.tell(stage, registry); };
  o.alert = [this](const snapshot::Alert& alert) {
    snapshot::Response event;
    *event.mutable_alert() = alert;
    connection_.send(0, std::move(event), false);
  };
  o.progress = [this](const std::string& what, std::int64_t done, std::int64_t total) {
    snapshot::Response event;
    event.mutable_progress()->set_what(what);
    event.mutable_progress()->set_done(done);
    event.mutable_progress()->set_total(total);
    connection_.send(0, std::move(event), false);
  };
  return o;
}

void SessionService::sendStage(const Stage& stage, const Registry& registry) {
  snapshot::Response event;
  *event.mutable_graph() = toSnapshot(*stage.graph, stage.phase, {}, {}, registry.operators().ops);
  if (event.ByteSizeLong() <= connection_.largestReply()) connection_.send(0, std::move(event), false);
}

}  // namespace stepscope
