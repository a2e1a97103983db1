// SPDX-License-Identifier: GPL-3.0-or-later
// Trials of options in the window, with the real worker: two passes are tried, one is applied, another session is cancelled,
// and a recorded project shows what was found.
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>
#include <QTest>
#include <QToolButton>
#include <set>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"

using namespace stepscope;

namespace {

// Both change the plan of the digits.
const QString kTwoPasses = QStringLiteral("^pass\\.(fuse_relu_gradient|group_updates)=");

QString option(const SnapshotStore& store, const std::string& name) {
  for (const auto& o : store.options())
    if (o.name() == name) return QString::fromStdString(o.value());
  return {};
}

// The view, as a person uses it.
struct Bench {
  explicit Bench(WindowDriver& driver) : w(driver), view(w.view(QStringLiteral("trials"))) {}

  template <typename T>
  T* find(const char* id) const {
    return view->findChild<T*>(QLatin1String(id));
  }
  QTableView* list() const { return find<QTableView>("trials_list"); }
  QString said(const char* id) const {
    const auto* label = find<QLabel>(id);
    return label->isHidden() ? QString() : label->text();
  }
  const OptionTrials& trials() const { return w->store().findings().trials(); }
  int row(const QString& begin) const {
    for (int i = 0; i < list()->model()->rowCount(); ++i)
      if (list()->model()->index(i, 0).data().toString().startsWith(begin)) return i;
    return -1;
  }
  void start(const QString& only, int rounds) {
    w.loop().act([&] {
      find<QLineEdit>("trials_only")->setText(only);
      find<QSpinBox>("trials_rounds")->setValue(rounds);
      find<QPushButton>("trials_start")->click();
    });
  }
  bool ended(int ms = 120'000) {
    return w.loop().wait([&] { return !trials().running(); }, ms) && w.settled();
  }
  WindowDriver& w;
  View* view;
};

}  // namespace

class TrialsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    applyTheme(*qApp, Theme::kLight);
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
  }

  void twoPassesAreTriedAndOneIsApplied() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[0]));
    QVERIFY(w.act("step_whole"));
    for (int i = 0; i < 3; ++i) QVERIFY(w.act("step"));
    const int instruction = w.instruction();
    Bench b(w);
    QVERIFY(b.view->emptyText().isEmpty());
    QVERIFY(!b.find<QPushButton>("trials_apply")->isEnabled());
    b.start(kTwoPasses, 8);
    QVERIFY(b.trials().running());
    QCOMPARE(b.find<QPushButton>("trials_start")->text(), QStringLiteral("Cancel"));
    QVERIFY(b.ended());
    QCOMPARE(b.said("trials_problem"), QString());
    const auto& report = b.trials().report();
    QCOMPARE(report.trials_size(), 3);  // and the plan next to itself
    QCOMPARE(b.list()->model()->rowCount(), 3);
    QCOMPARE(b.row(QStringLiteral("(nothing)")), 2);
    for (const auto& t : report.trials()) {
      QCOMPARE(t.rounds(), 8);
      QVERIFY2(t.low() <= t.ratio() && t.ratio() <= t.high(), t.option().c_str());
      QVERIFY(t.parity().compared());
      QVERIFY(!t.verdict().empty());
    }
    QVERIFY(b.said("trials_summary").contains(QStringLiteral("called different")));
    QCOMPARE(w.instruction(), instruction);  // the run is where it was
    QVERIFY(w->store().position().in_step());

    // The interval is drawn: not the same as that of the panel alone.
    const int row = b.row(QStringLiteral("pass.group_updates"));
    QVERIFY(row >= 0);
    const QRect cell = b.list()->visualRect(b.list()->model()->index(row, 3));
    const QImage picture = b.list()->viewport()->grab(cell).toImage();
    std::set<QRgb> colours;
    for (int y = 0; y < picture.height(); ++y)
      for (int x = 0; x < picture.width(); ++x) colours.insert(picture.pixel(x, y));
    QVERIFY(colours.size() >= 3);

    // One click applies it, with a proof; Ctrl+Z takes it back.
    QCOMPARE(option(w->store(), "pass.group_updates"), QStringLiteral("on"));
    w.loop().act([&] { b.list()->selectRow(row); });
    QVERIFY(b.find<QPushButton>("trials_apply")->isEnabled());
    w.loop().act([&] { b.find<QPushButton>("trials_apply")->click(); });
    QVERIFY(w.loop().wait([&] { return option(w->store(), "pass.group_updates") == u"off"; }));
    QVERIFY(w.settled());
    const auto proof = w->store().findings().optionProof();
    QVERIFY(proof && proof->values() > 0);
    QVERIFY(!b.find<QPushButton>("trials_apply")->isEnabled());
    QVERIFY(b.said("trials_stale").contains(QStringLiteral("pass.group_updates")));
    QVERIFY(!b.said("trials_proof").isEmpty());
    QVERIFY(w.act("undo"));
    QVERIFY(w.loop().wait([&] { return option(w->store(), "pass.group_updates") == u"on"; }));
    QVERIFY(w.settled());
    QVERIFY(b.said("trials_stale").isEmpty());
    QVERIFY_LOOP(w);
  }

  void whyLeadsIntoTheGraph() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[0]));
    Bench b(w);
    b.start(kTwoPasses, 6);
    QVERIFY(b.ended());
    w.loop().act([&] {
      b.list()->selectRow(b.row(QStringLiteral("pass.group_updates")));
      b.find<QToolButton>("trials_show_why")->click();
    });
    QVERIFY(b.said("trials_why_words").contains(QStringLiteral("applied in")));
    auto* places = b.find<QTableView>("trials_why");
    QVERIFY(places->isVisible());
    int made = -1;
    for (int i = 0; i < places->model()->rowCount() && made < 0; ++i)
      if (places->model()->index(i, 0).data().toString() == u"made by it") made = i;
    QVERIFY(made >= 0);
    w.loop().act([&] { places->scrollTo(places->model()->index(made, 0)); });
    QVERIFY(w.settled());
    w.loop().act([&] {
      QTest::mouseClick(places->viewport(), Qt::LeftButton, {},
                        places->visualRect(places->model()->index(made, 0)).center());
    });
    QVERIFY(w.loop().wait([&] { return w->selection().selection().node >= 0; }, 5'000));
    const auto* node = w->store().graph()->node(w->selection().selection().node);
    QVERIFY(node);
    QCOMPARE(QString::fromStdString(node->provenance().pass()), QStringLiteral("group_updates"));
  }

  void cancelledItShowsWhatItHas_data() {
    QTest::addColumn<QString>("how");
    for (const char* how : {"Escape in the window", "Escape in the list", "button", "action"}) QTest::newRow(how) << how;
  }
  void cancelledItShowsWhatItHas() {
    QFETCH(const QString, how);
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[0]));
    Bench b(w);
    b.start(QStringLiteral("^(pass|threads)"), 150);
    QVERIFY(b.trials().running());
    QVERIFY(w->session().busy());
    QVERIFY(w.loop().wait([&] { return b.trials().report().trials_size() >= 2 || !b.trials().running(); }, 120'000));
    QVERIFY2(b.trials().running(), "it has to be under way");
    QVERIFY(b.list()->model()->rowCount() >= 1);
    w.loop().act([&] {
      if (how == u"button") return b.find<QPushButton>("trials_start")->click();
      if (how == u"action") return (*w).actions()[QStringLiteral("stop")]->trigger();
      if (how == u"Escape in the list") return QTest::keyClick(b.list(), Qt::Key_Escape);
      QTest::keyClick(&*w, Qt::Key_Escape);
    });
    QVERIFY2(b.ended(20'000), "cancelling ends it");
    QVERIFY(!w->session().busy());
    QCOMPARE(b.said("trials_problem"), QString());
    const auto& report = b.trials().report();
    QVERIFY(report.cancelled());
    QVERIFY(report.trials_size() >= 2);
    QCOMPARE(b.list()->model()->rowCount(), report.trials_size());
    for (const auto& t : report.trials()) QVERIFY(!t.verdict().empty());
    QVERIFY2(b.said("trials_summary").startsWith(QStringLiteral("Cancelled")), qPrintable(b.said("trials_summary")));
    // The session goes on as if nothing had been.
    QVERIFY(w.act("step_whole"));
    QVERIFY(!w->notice().isProblem());
  }

  void aWrongPatternIsSaidAndTheTrialsBeforeStay() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[0]));
    Bench b(w);
    b.start(kTwoPasses, 6);
    QVERIFY(b.ended());
    b.start(QStringLiteral("pass.("), 6);
    QVERIFY(b.ended());
    QVERIFY(b.said("trials_problem").contains(QStringLiteral("only")));
    QCOMPARE(b.list()->model()->rowCount(), 3);
    b.start(QStringLiteral("no such option"), 6);
    QVERIFY(b.ended());
    QVERIFY(b.said("trials_problem").contains(QStringLiteral("matches none")));
  }

  void aRecordedProjectShowsThem() {
    QTemporaryDir place;
    const QString project = place.filePath(QStringLiteral("run.stepscope"));
    {
      WindowDriver w;
      w->setProjectPath(project);
      QVERIFY(w.build(bundledModels()[0]));
      Bench b(w);
      b.start(kTwoPasses, 6);
      QVERIFY(b.ended());
      QVERIFY(w.recorded());
    }
    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(project), w);
    Bench b(w);
    QCOMPARE(b.list()->model()->rowCount(), 3);
    QVERIFY(b.said("trials_summary").contains(QStringLiteral("called different")));
    QVERIFY(b.find<QPushButton>("trials_start")->isHidden());
    QVERIFY(b.find<QPushButton>("trials_apply")->isHidden());
    w.loop().act([&] { w->session().close(); });
    QCOMPARE(b.list()->model()->rowCount(), 0);
  }
};

SS_QT_CLASS(QApplication, TrialsTest)
#include "tst_trials.moc"
