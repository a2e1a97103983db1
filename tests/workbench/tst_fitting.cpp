// SPDX-License-Identifier: GPL-3.0-or-later
// A plan that is larger than memory.limit is offered a way to fit, or is said to have none.
#include <QLineEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QTest>

#include "tests/support/qt_classes.h"
#include "tests/workbench/set_up_form.h"
#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"

using namespace stepscope;

class FittingTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // What does not fit is offered a way to fit.
  void aPlanThatDoesNotFitIsOfferedToFitByRecompute() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[1]), w);
    const auto& plan = w->store().plan()->plan();
    const std::int64_t need = plan.persistent_bytes() + plan.arena_bytes(), limit = need - plan.arena_bytes() / 8;
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.limit"), QString::number(limit)); });
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }));
    QVERIFY(w.settled());
    auto* fit = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    w.picture(QStringLiteral("does-not-fit"));
    QVERIFY2(fit && fit->isVisible() && fit->text().contains(QStringLiteral("recompute")), qPrintable(w->notice().text()));
    w.loop().act([fit] { fit->click(); });
    QVERIFY(w.settled());
    w.loop().act([&] { w->notice().clear(); });
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QCOMPARE(w->store().steps().size(), std::size_t{1});
    const auto& fitted = w->store().plan()->plan();
    QVERIFY(fitted.persistent_bytes() + fitted.arena_bytes() <= limit);
    auto* field =
        w->board().find(QStringLiteral("recompute"))->findChild<QLineEdit*>(QStringLiteral("recompute_budget_text"));
    QVERIFY(field && !field->text().isEmpty());
    w.picture(QStringLiteral("fits"));
  }

  // Where recompute cannot reach the limit it says so, and is not offered again.
  void aLimitThatRecomputeCannotReachIsSaidToBeSo() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[1]), w);
    const std::int64_t limit = w->store().plan()->plan().persistent_bytes() + 100'000;
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.limit"), QString::number(limit)); });
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }));
    QVERIFY(w.settled());
    auto* action = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    QCOMPARE(action->text(), QStringLiteral("Fit by recompute"));
    w.loop().act([action] { action->click(); });
    QVERIFY(w.loop().wait([&] { return w->notice().text().startsWith(QStringLiteral("Recompute does not make it fit")); }));
    QVERIFY(w.settled());
    QVERIFY2(w->notice().text().endsWith(QStringLiteral("has no limit")), qPrintable(w->notice().text()));
    QCOMPARE(action->text(), QStringLiteral("Change the set-up"));
    w.picture(QStringLiteral("does-not-fit-at-all"));
    w.loop().act([action] { action->click(); });
    QVERIFY(w.loop().wait([&] { return shownSetUp(w) != nullptr; }));
  }

  // What a device has free is a limit too, of which the same is offered; the host has enough.
  void aDeviceThatIsTooSmallIsOfferedToFitByRecompute() {
    const auto problem = [](WindowDriver& w) { return w->notice().isProblem() ? w->notice().text() : QString(); };
    const auto openedWith = [](WindowDriver& w, std::int64_t memory) {
      return w.openBuilt(bundledModels()[1], {{"device", "emulated:memory=" + std::to_string(memory)}});
    };
    constexpr std::int64_t kMemory = 100'000'000;
    std::int64_t need = 0;
    {
      WindowDriver large;
      QVERIFY_DONE(openedWith(large, kMemory), large);
      QVERIFY2(problem(large).isEmpty(), qPrintable(problem(large)));
      const snapshot::Plan& plan = large->store().plan()->plan();
      QVERIFY(plan.has_arena_room_bytes());
      need = kMemory - plan.arena_room_bytes() + plan.arena_bytes() - plan.arena_bytes() / 20;
    }
    WindowDriver w;
    QVERIFY(!openedWith(w, need));
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }));
    QVERIFY(w.settled());
    QVERIFY2(problem(w).contains(QStringLiteral("device 'emulated:memory=")), qPrintable(problem(w)));
    w.picture(QStringLiteral("does-not-fit-the-device"));
    auto* fit = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    QVERIFY2(fit && fit->isVisible() && fit->text() == QStringLiteral("Fit by recompute"), qPrintable(problem(w)));
    w.loop().act([fit] { fit->click(); });
    QVERIFY(w.settled());
    w.loop().act([&] { w->notice().clear(); });
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY2(problem(w).isEmpty(), qPrintable(problem(w)));
    QCOMPARE(w->store().steps().size(), std::size_t{1});
    w.picture(QStringLiteral("fits-the-device"));
  }

  // The first build exceeds memory.limit: the set-up comes back with the error, and with a way to fit.
  void aFirstBuildThatDoesNotFitIsOfferedToFit() {
    WindowDriver w;
    SetUpDialog* dialog = w.open(bundledModels()[1].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    // What it needs, from a build without a limit.
    QVERIFY2(pressBuild(w, *dialog).isEmpty(), qPrintable(w->notice().text()));
    const auto need = [&] { return w->store().plan()->plan().persistent_bytes() + w->store().plan()->plan().arena_bytes(); };
    const std::int64_t limit = need() - w->store().plan()->plan().arena_bytes() / 8;
    WindowDriver again;
    dialog = again.open(bundledModels()[1].model);
    QVERIFY2(dialog, qPrintable(again.failure()));
    const auto fieldThere = [&] { return dialog->findChild<QLineEdit*>(QStringLiteral("set_up_more_memory.limit")); };
    QVERIFY(again.loop().wait([&] { return fieldThere() != nullptr; }));
    again.loop().act([&] { fieldThere()->setText(QString::number(limit)); });
    QVERIFY(!pressBuild(again, *dialog).isEmpty());
    const auto fitButton = [&] { return again->findChild<QPushButton*>(QStringLiteral("set_up_fit")); };
    QVERIFY(again.loop().wait([&] { return fitButton() && fitButton()->isVisible(); }));
    QVERIFY(again.settled());
    static const QRegularExpression manyBytes(QStringLiteral("\\d{5,} bytes"));
    QVERIFY2(again->notice().isProblem() && !again->notice().text().contains(manyBytes), qPrintable(again->notice().text()));
    again.picture(QStringLiteral("set-up-does-not-fit"));
    again.loop().act([&] { fitButton()->click(); });
    QVERIFY(again.loop().wait([&] {
      return again->session().built() && !again->session().busy() && again->store().plan() &&
             again->store().plan()->plan().persistent_bytes() + again->store().plan()->plan().arena_bytes() <= limit;
    }));
    QVERIFY(again.settled());
    QString kept;
    for (const auto& option : again->store().options())
      if (option.name() == "memory.limit") kept = QString::fromStdString(option.value());
    QCOMPARE(kept, QString::number(limit));
    QVERIFY_DONE(again.act("step_whole"), again);
    QVERIFY2(!again->notice().isProblem(), qPrintable(again->notice().text()));
    QCOMPARE(again->store().steps().size(), std::size_t{1});
    again.picture(QStringLiteral("set-up-fits"));
  }
};

SS_QT_CLASS(QApplication, FittingTest)
#include "tst_fitting.moc"
