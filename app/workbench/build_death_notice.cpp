// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/build_death_notice.h"

#include <QCoreApplication>
#include <QStandardPaths>
#include <algorithm>
#include <utility>

#include "app/workbench/bug_bundle.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/session/model_session.h"
#include "views/common/format.h"

namespace stepscope {

BuildDeathNotice::BuildDeathNotice(const WindowParts& parts) : parts_(parts) {
  connect(&parts_.session, &ModelSession::buildDied, this, &BuildDeathNotice::tell);
}

// What a person can do about it stands in the notice; what a bug report needs is written beside.
void BuildDeathNotice::tell(const BuildDeath& death) {
  QString where = QStringLiteral("phase '%1'").arg(death.phase);
  if (!death.pass.isEmpty()) where += QStringLiteral(", pass '%1'").arg(death.pass);
  QString text = QStringLiteral("%1, while building: %2.").arg(death.reason, where);
  const QString last = death.graphs.empty() ? QString() : format::visible(death.graphs.back()->graph().phase());
  if (death.besidePlan) text += ' ' + QStringLiteral("What is shown is the plan before it; Restart worker returns to that.");
  if (!last.isEmpty())
    text += ' ' + (death.besidePlan ? QStringLiteral("The graphs of the new build up to '%1' can be opened.")
                                    : QStringLiteral("The graphs up to '%1' are open."))
                      .arg(last);
  show(death, text);
  writeBundle(death, text);
}

void BuildDeathNotice::show(const BuildDeath& death, const QString& text) {
  if (death.passCanBeOff)
    parts_.notice.showProblem(text, QStringLiteral("Build without %1").arg(death.pass),
                              [this, pass = death.pass] { parts_.session.buildWithout(pass); });
  else
    parts_.notice.showProblem(text, QStringLiteral("Restart worker"), [this] { parts_.session.restart(); });
}

void BuildDeathNotice::writeBundle(const BuildDeath& death, const QString& text) {
  const ModelSession& session = parts_.session;
  BugFacts facts{
      death, session.modelPath(), QCoreApplication::applicationVersion(), parts_.store.machine(), session.configuration(),
      {}};
  constexpr std::ptrdiff_t kLines = 1000;
  const auto& log = parts_.store.log();
  for (auto line = log.end() - std::min(std::ptrdiff_t(log.size()), kLines); line != log.end(); ++line)
    facts.log << line->level + ' ' + line->text;
  const QString among = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + QStringLiteral("/reports");
  bundles_.start([this, facts = std::move(facts), among, text] {
    const QString path = writeBugBundle(among, facts);
    QMetaObject::invokeMethod(
        this,
        [this, path, text, death = facts.death] {
          if (!parts_.notice.isProblem() || parts_.notice.text() != text) return;  // something else is shown by now
          show(death, text + ' ' +
                          (path.isEmpty() ? QStringLiteral("A bundle for a bug report could not be written.")
                                          : QStringLiteral("For a bug report: %1").arg(format::visible(path))));
        },
        Qt::QueuedConnection);
  });
}

}  // namespace stepscope
