// SPDX-License-Identifier: GPL-3.0-or-later
// What takes a while to be found out about the present step: studies that leave state, plan and place as they are.
#include <QFileInfo>

#include "app/workbench/session.h"
#include "views/common/format.h"

namespace stepscope {

bool Session::working() const { return busy_ || running_ || client_.busy(); }

void Session::study(snapshot::Request request, const QString& what, std::function<void(const Delivery&)> answer) {
  setBusy(true);
  client_.request(std::move(request), what, [this, opened = opened_, answer = std::move(answer)](const Delivery& d) {
    if (d.response->done() && !restarting_) setBusy(false);
    if (opened == opened_) answer(d);
  });
}

namespace {

// Why a study has no answer; empty: it has.
QString problemOf(const Delivery& d, bool sound, const QString& what) {
  if (d.response->has_error()) return QString::fromStdString(d.response->error().message());
  return sound ? QString() : QObject::tr("%1: the worker answered something else; expected a report").arg(what);
}

}  // namespace

void Session::studyPrecision(const QString& precision) {
  if (store_.findings().studiesPrecision() || refuse()) return;
  store_.findings().beginPrecision();
  snapshot::Request request;
  request.mutable_precision()->set_precision(precision.toStdString());
  study(std::move(request), tr("studying %1").arg(precision), [this](const Delivery& d) {
    if (!d.response->done()) return;
    const bool sound = d.response->has_precision();
    store_.findings().setPrecision(
        sound ? std::make_shared<const snapshot::PrecisionReport>(d.response->precision()) : nullptr,
        problemOf(d, sound, QStringLiteral("precision")));
  });
}

void Session::tryOptions(const snapshot::GetTrials& question) {
  OptionTrials& trials = store_.findings().trials();
  if (trials.running() || refuse()) return;
  trials.begin();
  snapshot::Request request;
  *request.mutable_trials() = question;
  study(std::move(request), tr("trying options"), [this, &trials](const Delivery& d) {
    const bool sound = d.response->has_trials();
    if (!d.response->done()) {
      if (sound)
        for (const auto& trial : d.response->trials().trials()) trials.add(trial);
    } else if (sound) {
      trials.end(d.response->trials());
      emit optionsTried();
    } else {
      trials.fail(problemOf(d, sound, QStringLiteral("trials")));
    }
  });
}

void Session::compareWithCapture() {
  GoldenFinding& golden = store_.findings().golden();
  if (golden.comparing() || refuse()) return;
  golden.begin();
  snapshot::Request request;
  request.mutable_golden()->set_folder(QFileInfo(path_).absolutePath().toStdString());
  study(std::move(request), tr("comparing with PyTorch"), [this, &golden](const Delivery& d) {
    if (!d.response->done()) return;
    const bool sound = d.response->has_golden();
    const auto found = sound ? std::make_shared<const snapshot::GoldenComparison>(d.response->golden()) : nullptr;
    golden.end(found, problemOf(d, sound, QStringLiteral("verify")));
    if (!found || !found->captured()) return;
    emit note(!found->unchecked().empty() ? tr("Not compared with PyTorch; see “Next to PyTorch”")
              : found->alerts_size() > 0  ? tr("Not what PyTorch computed; see “Next to PyTorch”")
                                          : tr("What PyTorch computed agrees"));
    for (const snapshot::Alert& alert : captureAlerts()) {
      if (told(alert)) continue;
      store_.addAlert(alert);
      emit alertRaised(alert);
    }
  });
}

std::vector<snapshot::Alert> Session::captureAlerts() const {
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

}  // namespace stepscope
