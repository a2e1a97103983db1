// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/session_answers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_desires.h"
#include "app/workbench/session/session_edits.h"
#include "app/workbench/session/session_lab.h"
#include "app/workbench/session/session_link.h"
#include "app/workbench/session/session_model.h"
#include "app/workbench/session/session_recovery.h"
#include "app/workbench/session/session_rewind.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/pass_stages.h"
#include "views/common/step_plans.h"

namespace stepscope {

void SessionAnswers::absorb(const Delivery& d) {
  using R = snapshot::Response;
  const R& r = *d.response;
  switch (r.response_case()) {
    case R::kHello: store_.setMachine(std::make_shared<const snapshot::MachineInfo>(r.hello().machine())); break;
    case R::kMachine: store_.setMachine(std::make_shared<const snapshot::MachineInfo>(r.machine())); break;
    case R::kModel: {
      auto model = std::make_shared<const snapshot::ModelInfo>(r.model());
      if (parts_.model.opening())
        parts_.model.read(std::move(model));
      else
        store_.setModel(std::move(model));
      break;
    }
    case R::kBuild: absorbBuild(r); break;
    case R::kGraph:
      if (r.id() != 0)
        store_.setGraph(d.graph);
      else if (d.graph)
        parts_.recovery.trace().graph(d.graph);
      break;
    case R::kPlan: store_.setPlan(d.plan); break;
    case R::kOptions:
      parts_.desires.told(r.options());
      if (r.options().has_proof())
        store_.findings().setOptionProof(std::make_shared<const snapshot::OptionProof>(r.options().proof()));
      break;
    case R::kDeterminism: store_.setDeterminism({r.determinism().nodes().begin(), r.determinism().nodes().end()}); break;
    case R::kStep: absorbStep(r.step()); break;
    case R::kPosition: reached(r.position()); break;
    case R::kTensor: store_.addTensor(std::make_shared<const snapshot::TensorData>(r.tensor())); break;
    case R::kCompare: store_.setComparison(std::make_shared<const snapshot::CompareReply>(r.compare())); break;
    case R::kRowLosses: store_.findings().setRowLosses(std::make_shared<const snapshot::RowLosses>(r.row_losses())); break;
    case R::kState:
      parts_.model.told(r.state());
      parts_.desires.told(r.state());
      if (r.state().has_position()) reached(r.state().position());
      break;
    case R::kProgress: absorbProgress(r.progress()); break;
    case R::kLog: store_.addLog({format::visible(r.log().level()), QString::fromStdString(r.log().text())}); break;
    case R::kAlert: absorbAlert(r.alert()); break;
    case R::kPhase:
      parts_.recovery.trace().phase(r.phase());
      if (r.phase().ns() == -1) emit session_.stageBegan(QString::fromStdString(r.phase().name()));
      break;
    case R::kBreakpoints:  // of the worker; what is shown are those that are desired
    case R::kRecompute:    // belong to their questions, in the laboratory
    case R::kPrecision:
    case R::kTrials:
    case R::kGolden:
    case R::kGradcheck:
    case R::kLedger:
    case R::kCapacity:
    case R::kBisect:
    case R::kError:
    case R::RESPONSE_NOT_SET: break;
  }
}

void SessionAnswers::absorbBuild(const snapshot::Response& r) {
  parts_.recovery.trace().clear();
  store_.setPhases({r.build().phases().begin(), r.build().phases().end()});
  const bool again = r.id() == 0;
  // It failed: where, the phases tell; there is no graph to go with it.
  if (again && (!parts_.model.built() || parts_.model.building())) return;
  const bool resumed = again && !r.build().kept().empty();
  if (!r.has_error()) StepPlans::of(store_).another();
  using Other = SessionLink::Other;
  link_.anotherPlan(!again ? Other::kNone : resumed ? Other::kResumed : Other::kRebuilt);
  parts_.desires.planIsAnother();
  QStringList stops;
  for (const std::string& s : r.build().stages()) stops << format::visible(s);
  PassStages::of(store_).set(stops);
  stops.removeIf(&PassStages::isPass);
  store_.setStages(stops);
  takeAlerts({r.build().alerts().begin(), r.build().alerts().end()}, again);
  if (resumed)
    emit session_.planResumed(QString::fromStdString(r.build().kept()));
  else if (again)
    emit session_.phasesTold();
}

// A build lists all alerts, those that came as events among them.
void SessionAnswers::takeAlerts(std::vector<snapshot::Alert> alerts, bool again) {
  const auto came = [this](const snapshot::Alert& alert) { return came_.contains(alert.SerializeAsString()); };
  const bool comesBack = parts_.recovery.comingBack();
  std::vector<snapshot::Alert> more;
  if (comesBack) more = parts_.lab.captureAlerts();  // the model is the one that was compared
  // A worker that takes the place of a dead one knows nothing of the steps before, and none of what the window told.
  std::ranges::copy_if(store_.alerts(), std::back_inserter(more),
                       [&](const snapshot::Alert& alert) { return comesBack ? alert.step() >= 0 : again && !came(alert); });
  // What a person has cleared stays away.
  if (again) std::erase_if(alerts, [&](const snapshot::Alert& alert) { return came(alert) && !told(alert); });
  store_.clearAlerts();
  if (!again) came_.clear();
  for (const snapshot::Alert& alert : alerts) {
    came_.insert(alert.SerializeAsString());
    store_.addAlert(alert);
  }
  for (const snapshot::Alert& alert : more)
    if (!told(alert)) store_.addAlert(alert);
}

void SessionAnswers::absorbStep(const snapshot::StepRecord& record) {
  if (parts_.rewind.replaying()) return;  // shown and recorded the first time
  auto step = std::make_shared<const snapshot::StepRecord>(record);
  store_.addStep(step);
  emit session_.stepRecorded(step, !run_.fullSpeed);
  parts_.edits.tellOfHand(step->step());
}

void SessionAnswers::absorbAlert(const snapshot::Alert& alert) {
  if (parts_.model.opening()) return parts_.model.read(alert);
  came_.insert(alert.SerializeAsString());
  if ((parts_.rewind.replaying() && told(alert)) || toldWithItsPlace(alert)) return;
  store_.addAlert(alert);
  emit session_.alertRaised(alert);
}

void SessionAnswers::absorbProgress(const snapshot::Progress& progress) {
  const QString what = QString::fromStdString(progress.what());
  Findings& found = store_.findings();
  for (Study* study : std::initializer_list<Study*>{&found.trials(), &found.ledger(), &found.capacity(), &found.bisect(),
                                                    &found.recomputeStudy()})
    if (study->running()) study->setProgress(what, progress.done(), progress.total());
  emit session_.progress(format::visible(progress.what()), progress.done(), progress.total());
}

bool SessionAnswers::told(const snapshot::Alert& alert) const {
  const auto same = [&alert](const snapshot::Alert& other) {
    return other.step() == alert.step() && other.code() == alert.code() && other.node() == alert.node() &&
           other.message() == alert.message();
  };
  return std::any_of(store_.alerts().begin(), store_.alerts().end(), same);
}

// A step that ends tells of its loss alone; where the number came from is known of a walk.
bool SessionAnswers::toldWithItsPlace(const snapshot::Alert& alert) const {
  if (alert.instruction() >= 0 || (alert.code() != "nan" && alert.code() != "inf")) return false;
  return std::ranges::any_of(store_.alerts(), [&alert](const snapshot::Alert& other) {
    return other.step() == alert.step() && other.code() == alert.code() && other.instruction() >= 0;
  });
}

void SessionAnswers::tellAgain(const std::vector<snapshot::Alert>& alerts) {
  for (const snapshot::Alert& alert : alerts) {
    if (told(alert)) continue;
    store_.addAlert(alert);
    emit session_.alertStands(alert);
  }
}

void SessionAnswers::reached(const snapshot::Position& position) {
  store_.setPosition(position);
  if (parts_.rewind.replaying()) return;
  for (const auto& value : position.watched()) {
    // What a step changes of the state is compared as the step left it.
    const auto* known = store_.graph() ? store_.graph()->value(value.value()) : nullptr;
    const bool state = known && (known->role() == snapshot::INITIALIZER || known->role() == snapshot::STATE);
    // Those of an earlier step are in its record.
    if (value.step() != store_.presentStep() || !value.has_statistics()) continue;
    if (!(state && position.in_step())) emit session_.watchedRead(value);
  }
}

}  // namespace stepscope
