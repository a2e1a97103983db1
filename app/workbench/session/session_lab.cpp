// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/session_lab.h"

#include <QFileInfo>
#include <utility>

#include "app/workbench/capture_settings.h"
#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_answers.h"
#include "app/workbench/session/session_model.h"
#include "engine/snapshot/alert.h"
#include "views/common/format.h"

namespace stepscope {
namespace {

// Why a study has no answer; empty: it has.
QString problemOf(const Delivery& d, bool sound, const QString& what) {
  if (d.response->has_error()) return QString::fromStdString(d.response->error().message());
  return sound ? QString() : QStringLiteral("%1: the worker answered something else; expected a report").arg(what);
}

constexpr int kTakesLongMs = 300;

}  // namespace

SessionLab::SessionLab(const SessionParts& parts) : SessionPart(parts) {
  recomputeTakesLong_.setSingleShot(true);
  connect(&recomputeTakesLong_, &QTimer::timeout, this, [this] { store_.findings().recomputeStudy().begin(); });
}

void SessionLab::studyPrecision(const QString& precision) {
  if (store_.findings().studiesPrecision() || link_.refuse()) return;
  store_.findings().beginPrecision();
  snapshot::Request request;
  request.mutable_precision()->set_precision(precision.toStdString());
  link_.study(std::move(request), QStringLiteral("studying %1").arg(precision), [this](const Delivery& d) {
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
  link_.study(std::move(request), QStringLiteral("trying options"), [this, &trials](const Delivery& d) {
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

template <typename Report, typename Get>
void SessionLab::find(StudyOf<Report>& study, snapshot::Request request, const QString& what, Get get, const Then& then) {
  if (study.running() || link_.refuse()) return;
  study.begin();
  link_.study(std::move(request), what, [this, &study, what, get, then](const Delivery& d) {
    if (!d.response->done()) return;
    const Report* const found = get(*d.response);
    const bool cancelled = d.response->has_error() && d.response->error().code() == "cancelled";
    study.end(found ? std::make_shared<const Report>(*found) : nullptr,
              cancelled ? QString() : problemOf(d, found != nullptr, what));
    if (cancelled) emit session_.note(QStringLiteral("Cancelled"));  // by a person, who knows
    if (found && then) then();
  });
}

void SessionLab::measureLedger() {
  snapshot::Request request;
  request.mutable_ledger();
  find(
      store_.findings().ledger(), std::move(request), QStringLiteral("measuring what a step is spent on"),
      [](const snapshot::Response& r) { return r.has_ledger() ? &r.ledger() : nullptr; },
      [this] { emit session_.ledgerMeasured(); });
}

void SessionLab::planCapacity(const snapshot::GetCapacity& question) {
  snapshot::Request request;
  *request.mutable_capacity() = question;
  find(store_.findings().capacity(), std::move(request), QStringLiteral("planning what fits"),
       [](const snapshot::Response& r) { return r.has_capacity() ? &r.capacity() : nullptr; });
}

void SessionLab::bisect(const QString& file) {
  snapshot::Request request;
  request.mutable_bisect()->set_file(file.toStdString());
  find(
      store_.findings().bisect(), std::move(request), QStringLiteral("looking for what makes numbers differ"),
      [](const snapshot::Response& r) { return r.has_bisect() ? &r.bisect() : nullptr; },
      [this, options = store_.options()] {
        store_.findings().setBisectedOptions(options);
        emit session_.note(store_.findings().bisect().report()->differs()
                               ? QStringLiteral("Found what makes numbers differ; see “Cause of a difference”")
                               : QStringLiteral("The step computes what the reference computes"));
      });
}

void SessionLab::compareWithCapture() {
  GoldenFinding& golden = store_.findings().golden();
  if (golden.comparing() || link_.refuse()) return;
  golden.begin();
  snapshot::Request request;
  request.mutable_golden()->set_folder(QFileInfo(parts_.model.path()).absolutePath().toStdString());
  link_.study(std::move(request), QStringLiteral("comparing with PyTorch"), [this, &golden](const Delivery& d) {
    if (!d.response->done()) return;
    const bool sound = d.response->has_golden();
    const auto found = sound ? std::make_shared<const snapshot::GoldenComparison>(d.response->golden()) : nullptr;
    golden.end(found, problemOf(d, sound, QStringLiteral("verify")));
    if (!found || !found->captured()) return;
    emit session_.note(!found->unchecked().empty() ? QStringLiteral("Not compared with PyTorch; see “Next to PyTorch”")
                       : found->alerts_size() > 0  ? QStringLiteral("Not what PyTorch computed; see “Next to PyTorch”")
                                                   : QStringLiteral("What PyTorch computed in float32 agrees"));
    tellCapture();
  });
}

void SessionLab::tellCaptureNotes() {
  captureNotes_ = captureNotes(parts_.model.path());
  tellCapture();
}

void SessionLab::tellCapture() {
  for (const snapshot::Alert& alert : captureAlerts()) {
    if (parts_.answers.told(alert)) continue;
    store_.addAlert(alert);
    emit session_.alertRaised(alert);
  }
}

std::vector<snapshot::Alert> SessionLab::captureAlerts() const {
  const auto& found = store_.findings().golden().comparison();
  std::vector<snapshot::Alert> all;
  if (found) all.assign(found->alerts().begin(), found->alerts().end());
  const auto say = [&all](snapshot::Alert::Severity severity, const char* code, std::string message) {
    all.push_back(makeAlert(severity, code, std::move(message)));
  };
  if (found && found->captured() && !found->unchecked().empty())
    say(snapshot::Alert::INFO, "capture_unchecked", "not compared with what PyTorch computed: " + found->unchecked());
  const auto note = [&say](const std::string& text) {
    say(snapshot::Alert::WARNING, "capture_note", "the capture does not keep all: " + text);
  };
  for (const QString& text : captureNotes_) note(text.toStdString());
  if (found && captureNotes_.isEmpty())  // the capture lies on another machine
    for (const std::string& text : found->notes()) note(text);
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
  // Most questions are answered before anybody could read that they run.
  recomputeTakesLong_.start(kTakesLongMs);
  snapshot::Request request;
  request.mutable_recompute()->set_what_if(whatIf);
  request.mutable_recompute()->set_plan(plan.toStdString());
  request.mutable_recompute()->set_budget(budget);
  link_.request(
      std::move(request), QStringLiteral("judging what may be computed again"),
      [this, question](const Delivery& d) {
        if (!d.response->done()) return;
        recomputeAnswered();
        const std::optional<RecomputeAnswer> next = std::exchange(nextRecompute_, std::nullopt);
        RecomputeAnswer answer = question;
        const bool sound = d.response->has_recompute();
        if (d.response->has_error())
          answer.problem = QString::fromStdString(d.response->error().message());
        else if (!sound)
          answer.problem = QStringLiteral("recompute: the worker answered something else; expected a report");
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
  link_.ask(std::move(request), QStringLiteral("checking determinism"), {}, false);
}

void SessionLab::compareBits() {
  if (link_.refuse()) return;
  snapshot::Request request;
  request.mutable_compare_bits();
  link_.move(std::move(request), QStringLiteral("running the step twice"), [this] {
    const auto& result = store_.comparison();
    if (result)
      emit session_.note(result->equal() ? QStringLiteral("Both runs are equal, bit for bit")
                                         : QStringLiteral("The runs differ; see Determinism"));
  });
}

void SessionLab::recomputeAnswered() {
  askingRecompute_ = false;
  recomputeTakesLong_.stop();
  if (store_.findings().recomputeStudy().running()) store_.findings().recomputeStudy().finish({});
}

void SessionLab::leave() {
  recomputeAnswered();
  nextRecompute_.reset();
  captureNotes_.clear();
}

}  // namespace stepscope
