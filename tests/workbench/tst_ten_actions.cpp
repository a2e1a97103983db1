// SPDX-License-Identifier: GPL-3.0-or-later
// The two ways of the optimisation laboratory, with the real worker: make it faster, make it fit. Each ends in a change that
// is proven, and takes at most ten actions of a person: a click, a key, a text with Enter.
#include <QComboBox>
#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QTest>

#include "app/workbench/sample_list.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/findings.h"
#include "views/common/row_table.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

constexpr int kMostActions = 10;

// A window whose actions are counted.
struct Person {
  WindowDriver w{{1600, 1000}};
  int actions = 0;

  template <typename Do>
  void does(Do&& what) {
    ++actions;
    w.loop().act(what);
  }
  void clicks(QWidget* of, const char* button) {
    does([&] { of->findChild<QPushButton*>(QLatin1String(button))->click(); });
  }
  // A file with its data beside it is opened and built: two actions.
  bool builds(const char* sample) {
    ++actions;
    SetUpDialog* dialog = w.open(samplePath(QLatin1String(sample)));
    if (!dialog || dialog->findChild<QLineEdit*>(QStringLiteral("set_up_data"))->text().isEmpty()) return false;
    clicks(dialog, "set_up_build");
    return w.loop().wait([&] { return w->session().built() && !w->session().busy(); }) && w.settled();
  }
  bool steps() {
    ++actions;
    return w.act("step_whole");
  }
  View* shows(const char* view) {
    ++actions;
    return w.view(QLatin1String(view));
  }
  void chooses(QTableView* table, int row) {
    does([&] { table->selectRow(row); });
  }
  std::int64_t planned() const {
    const auto& plan = const_cast<WindowDriver&>(w)->store().plan()->plan();
    return plan.persistent_bytes() + plan.arena_bytes();
  }
};

int rowOf(const QTableView* table, const QString& name) {
  for (int i = 0; i < table->model()->rowCount(); ++i)
    if (table->model()->index(i, 0).data().toString().startsWith(name)) return i;
  return -1;
}

}  // namespace

class TenActionsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    applyTheme(*qApp, Theme::kLight);
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
  }

  // The ledger advises, a trial confirms it, one click applies it.
  void makeItFaster() {
    Person p;
    WindowDriver& w = p.w;
    QVERIFY_DONE(p.builds("padding"), w);
    QVERIFY(p.steps());
    View* ledger = p.shows("ledger");
    p.clicks(ledger, "ledger_measure");
    const auto& study = w->store().findings().ledger();
    QVERIFY(w.loop().wait([&] { return !study.running(); }, 120'000) && w.settled());
    const auto report = study.report();
    QVERIFY2(report, qPrintable(study.problem()));
    const auto* advice = ledger->findChild<QTableView*>(QStringLiteral("ledger_advice"));
    int row = -1;
    QString option;
    for (int i = 0; i < advice->model()->rowCount() && row < 0; ++i) {
      const auto& told = report->advice(advice->model()->index(i, 0).data(RowTableModel::kKeyRole).toInt());
      if (told.option() != "pass.eliminate_padding") continue;
      row = i;
      option = QString::fromStdString(told.option());
    }
    QVERIFY2(row >= 0, "half of the sample is padding");
    p.chooses(const_cast<QTableView*>(advice), row);
    p.clicks(ledger, "ledger_confirm");
    const OptionTrials& trials = w->store().findings().trials();
    QVERIFY(w.loop().wait([&] { return !trials.running() && trials.report().trials_size() >= 2; }, 300'000));
    QVERIFY(w.settled());
    w.picture(QStringLiteral("faster-trial"));
    View* view = w->board().find(QStringLiteral("trials"));
    auto* list = view->findChild<QTableView*>(QStringLiteral("trials_list"));
    QVERIFY2(list->isVisible(), "confirming leads to the trials");
    double ratio = 1;
    for (const auto& trial : trials.report().trials())
      if (QString::fromStdString(trial.option()) == option) {
        ratio = trial.ratio();
        QVERIFY2(trial.verdict() == "faster", trial.verdict().c_str());
        QVERIFY(trial.parity().compared());
      }
    QVERIFY2(ratio < 1, qPrintable(QString::number(ratio)));
    p.chooses(list, rowOf(list, option));
    p.clicks(view, "trials_apply");
    QVERIFY(w.loop().wait([&] { return w->store().findings().optionProof() != nullptr; }, 60'000) && w.settled());
    const auto proof = w->store().findings().optionProof();
    QVERIFY2(proof->unavailable().empty() && proof->values() > 0, proof->unavailable().c_str());
    QVERIFY(proof->change().find("pass.eliminate_padding") != std::string::npos);
    w.picture(QStringLiteral("faster-proof"));
    QVERIFY(p.steps());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    qInfo("%d actions, %.3f of the time", p.actions, ratio);
    QVERIFY2(p.actions <= kMostActions, qPrintable(QString::number(p.actions)));
  }

  // A limit is set, the plan does not fit into it, one click makes it fit; no bit of the step changes.
  void makeItFit() {
    Person p;
    WindowDriver& w = p.w;
    QVERIFY_DONE(p.builds("too_large"), w);
    QVERIFY(p.steps());
    const std::int64_t before = p.planned(), limit = 10 * 1024 * 1024;
    QVERIFY(before > limit);
    View* options = p.shows("options");
    auto* table = options->findChild<QTableView*>();
    p.chooses(table, rowOf(table, QStringLiteral("memory.limit")));
    p.does([&] {
      QLineEdit* field = nullptr;
      for (auto* box : options->findChildren<QComboBox*>())
        if (box->accessibleName() == QStringLiteral("Value")) field = box->lineEdit();
      field->setText(QStringLiteral("10 MiB"));
      QTest::keyClick(field, Qt::Key_Return);
    });
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }) && w.settled());
    w.picture(QStringLiteral("fit-refused"));
    p.clicks(&w->notice(), "notice_action");
    QVERIFY(w.settled());
    QVERIFY2(p.planned() <= limit, qPrintable(QString::number(p.planned())));
    QVERIFY(w.loop().wait([&] { return w->store().findings().optionProof() != nullptr; }, 60'000));
    const auto proof = w->store().findings().optionProof();
    QVERIFY2(proof->equal() && proof->values() > 0, proof->unavailable().c_str());
    w.picture(QStringLiteral("fit-proof"));
    w.loop().act([&] { w->notice().clear(); });
    QVERIFY(p.steps());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    qInfo("%d actions, %lld of %lld bytes", p.actions, static_cast<long long>(p.planned()), static_cast<long long>(before));
    QVERIFY2(p.actions <= kMostActions, qPrintable(QString::number(p.actions)));
  }
};

SS_QT_CLASS(QApplication, TenActionsTest)
#include "tst_ten_actions.moc"
