// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/log_wiring.h"

#include "app/workbench/recording.h"
#include "app/workbench/session/model_session.h"
#include "views/common/format.h"

namespace stepscope {
namespace {
const QString kDebug = QStringLiteral("debug"), kInfo = QStringLiteral("info"), kWarning = QStringLiteral("warning"),
              kError = QStringLiteral("error");
}  // namespace

LogWiring::LogWiring(const WindowParts& parts) : parts_(parts) {
  const ModelSession* session = &parts.session;
  connect(session, &ModelSession::builtChanged, this, [this] {
    if (parts_.session.built()) tellPhases();
  });
  connect(session, &ModelSession::phasesTold, this, &LogWiring::tellPhases);
  connect(session, &ModelSession::alertRaised, this, &LogWiring::tellAlert);
  connect(session, &ModelSession::note, this, [this](const QString& text) { tell(kInfo, QStringLiteral("window"), text); });
  connect(session, &ModelSession::problem, this, [this](const QString& text, const QString& code) {
    tell(kError, QStringLiteral("worker"), code.isEmpty() ? text : QStringLiteral("%1: %2").arg(code, text));
  });
  connect(&parts.recording, &Recording::failed, this,
          [this](const QString& text) { tell(kError, QStringLiteral("recorder"), text); });
  connect(&parts.recording, &Recording::stateChanged, this, &LogWiring::tellRecorder);
}

void LogWiring::tell(const QString& level, const QString& who, const QString& text) {
  parts_.store.addLog({level, QStringLiteral("%1: %2").arg(who, text)});
}

void LogWiring::tellPhases() {
  for (const snapshot::PhaseSpan& span : parts_.store.phases()) {
    const QString name = format::visible(span.name()), took = format::time(span.ns());
    if (!span.error().empty()) {
      tell(kError, span.has_pass() ? QStringLiteral("pass") : QStringLiteral("phase"),
           QStringLiteral("%1: %2").arg(name, format::visible(span.error())));
    } else if (span.has_pass()) {
      tell(span.pass().matches() > 0 ? kInfo : kDebug, QStringLiteral("pass"),
           QStringLiteral("%1: %2 matches, %3 near misses, %4")
               .arg(name, format::count(span.pass().matches()), format::count(span.pass().near_misses_size()), took));
      for (const std::string& note : span.pass().notes())
        tell(kInfo, QStringLiteral("pass"), QStringLiteral("%1: %2").arg(name, format::visible(note)));
    } else if (span.depth() == 0) {
      tell(kDebug, QStringLiteral("phase"), QStringLiteral("%1: %2").arg(name, took));
    }
  }
}

void LogWiring::tellAlert(const snapshot::Alert& alert) {
  using A = snapshot::Alert;
  const QString level = alert.severity() == A::ERROR ? kError : alert.severity() == A::WARNING ? kWarning : kInfo;
  tell(level, QStringLiteral("worker"),
       QStringLiteral("%1: %2").arg(format::visible(alert.code()), format::visible(alert.message())));
}

// Told each second; logged when it is another.
void LogWiring::tellRecorder(const QString& text, const QString& role) {
  if (text == recorder_) return;
  recorder_ = text;
  if (text.isEmpty()) return;
  tell(role == u"error" ? kError : role == u"warn" ? kWarning : kInfo, QStringLiteral("recorder"), text);
}

}  // namespace stepscope
