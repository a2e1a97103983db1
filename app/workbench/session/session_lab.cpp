// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/session_lab.h"

#include <QFileInfo>
#include <utility>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_answers.h"
#include "app/workbench/session/session_model.h"
#include "views/common/format.h"

namespace stepscope {
namespace {

// Why a study has no answer; empty: it has.
QString problemOf(const Delivery& d, bool sound, const QString& what) {
  if (d.response->has_error()) return QString::fromStdString(d.response->error().message());
  return sound ? QString() : QObject::tr("%1: the worker answered something else; expected a report").arg(what);
}

}  // namespace

void SessionLab::studyPrecision(const QString& precision) {
  if (store_.findings().studiesPrecision() || link_.refuse()) return;
  store_.findings().beginPrecision();
  snapshot::Request request;
  request.mutable_precision()->set_precision(precision.toStdString());
  link_.study(std::move(request), tr("studying %1").arg(precision), [this](const Delivery& d) {
    if (!d.response->done()) return;
    const bool sound = d.response->has_precision();
    store_.findings().setPrecision(
        sound ? std::make_shared<const snapshot::PrecisionReport>(d.response->precision()) : nullptr,
        problemOf(d, sound, QStringLiteral("precision")));
  });
}

void SessionLab::tryOptions(const snapshot::GetTrials& question) {
  OptionTrials& trials = store_.findings().trials();
  if (trials.running() || link_.refuse()) return;
  trials.begin();
  snapshot::Request request;
  *request.mutable_trials() = question;
  link_.study(std::move(request), tr("trying options"), [this, &trials](const Delivery& d) {
    const bool sound = d.response->has_trials();
    if (!d.response->done()) {
      if (sound)
        for (const auto& trial : d.response->trials().trials()) trials.add(trial);
    } else if (sound) {
      trials.end(d.response->trials());
      emit session_.optionsTried();
    } else {
      trials.fail(problemOf(d, sound, QStringLiteral("trials")));
    }
  });
}

void SessionLab::compareWithCapture() {
  GoldenFinding& golden = store_.findings().golden();
  if (golden.comparing() || link_.refuse()) return;
  golden.begin();
  snapshot::Request request;
  request.mutable_golden()->set_folder(QFileInfo(parts_.model.path()).absolutePath().toStdString());
  link_.study(std::move(request), tr("comparing with PyTorch"), [this, &golden](const Delivery& d) {
    if (!d.response->done()) return;
    const bool sound = d.response->has_golden();
    const auto found = sound ? std::make_shared<const snapshot::GoldenComparison>(d.response->golden()) : nullptr;
    golden.end(found, problemOf(d, sound, QStringLiteral("verify")));
    if (!found || !found->captured()) return;
    emit session_.note(!found->unchecked().empty() ? tr("Not compared with PyTorch; see “Next to PyTorch”")
                       : found->alerts_size() > 0  ? tr("Not what PyTorch computed; see “Next to PyTorch”")
                                                   : tr("What PyTorch computed agrees"));
    for (const snapshot::Alert& alert : captureAlerts()) {
      if (parts_.answers.told(alert)) continue;
      store_.addAlert(alert);
      emit session_.alertRaised(alert);
    }
  });
}

std::vector<snapshot::Alert> SessionLab::captureAlerts() const {
  const auto& found = store_.findings().golden().comparison();
  if (!found) return {};
  std::vector<snapshot::Alert> all(found->alerts().begin(), found->alerts().end());
  if (found->captured() && !found->unchecked().empty()) {
    snapshot::Alert& alert = all.emplace_back();
    alert.set_severity(snapshot::Alert::INFO);
    alert.set_code("capture_unchecked");
    alert.set_message("not compared with what PyTorch computed: " + found->unchecked());
    alert.set_node(-1);
    alert.set_value(-1);
    alert.set_instruction(-1);
    alert.set_step(-1);
  }
  return all;
}

void SessionLab::recompute(bool whatIf, const QString& plan, qint64 budget) {
  if (!parts_.model.built() || !link_.client().alive()) return;
  const RecomputeAnswer question{whatIf, plan, budget, {}};
  // One at a time: of those that come meanwhile only the newest matters.
  if (askingRecompute_) {
    nextRecompute_ = question;
    return;
  }
  askingRecompute_ = true;
  snapshot::Request request;
  request.mutable_recompute()->set_what_if(whatIf);
  request.mutable_recompute()->set_plan(plan.toStdString());
  request.mutable_recompute()->set_budget(budget);
  link_.request(
      std::move(request), tr("judging what may be computed again"),
      [this, question](const Delivery& d) {
        if (!d.response->done()) return;
        askingRecompute_ = false;
        const std::optional<RecomputeAnswer> next = std::exchange(nextRecompute_, std::nullopt);
        RecomputeAnswer answer = question;
        const bool sound = d.response->has_recompute();
        if (d.response->has_error())
          answer.problem = QString::fromStdString(d.response->error().message());
        else if (!sound)
          answer.problem = tr("recompute: the worker answered something else; expected a report");
        if (parts_.model.built())
          store_.findings().setRecompute(
              sound ? std::make_shared<const snapshot::RecomputeReport>(d.response->recompute()) : nullptr,
              std::move(answer));
        if (next) parts_.lab.recompute(next->whatIf, next->plan, next->budget);
      },
      !whatIf && store_.findings().recompute());
}

void SessionLab::determinism() {
  if (!parts_.model.built()) return;
  snapshot::Request request;
  request.mutable_determinism();
  link_.ask(std::move(request), tr("checking determinism"), {}, false);
}

void SessionLab::compareBits() {
  if (link_.refuse()) return;
  snapshot::Request request;
  request.mutable_compare_bits();
  link_.move(std::move(request), tr("running the step twice"), [this] {
    const auto& result = store_.comparison();
    if (result)
      emit session_.note(result->equal() ? tr("Both runs are equal, bit for bit") : tr("The runs differ; see Determinism"));
  });
}

void SessionLab::leave() {
  askingRecompute_ = false;
  nextRecompute_.reset();
}

}  // namespace stepscope
