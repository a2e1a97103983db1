// SPDX-License-Identifier: GPL-3.0-or-later
// What the laboratory finds out, in the window with the real worker: what a step is spent on and the trial that confirms
// its advice, what fits where, what makes a step compute other numbers.
#include <QComboBox>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QProcess>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>
#include <QTest>
#include <QTextBrowser>
#include <algorithm>

#include "app/workbench/sample_list.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/findings.h"
#include "views/common/row_table.h"
#include "views/common/tokens.h"
#include "views/ledger/spent_bars.h"

using namespace stepscope;

namespace {

// What the command line prints, an object for each line.
QList<QJsonObject> said(const QStringList& arguments) {
  QProcess process;
  process.start(QStringLiteral(REAL_WORKER), arguments);
  QList<QJsonObject> lines;
  if (!process.waitForFinished(300'000)) return lines;
  for (const QByteArray& line : process.readAllStandardOutput().split('\n'))
    if (!line.isEmpty()) lines << QJsonDocument::fromJson(line).object();
  return lines;
}

template <typename T>
T* find(View* view, const char* id) {
  return view->findChild<T*>(QLatin1String(id));
}

// The table of lines, not that of advice.
QTableView* lines(View* view) {
  for (auto* table : view->findChildren<QTableView*>())
    if (table->objectName() != QStringLiteral("ledger_advice")) return table;
  return nullptr;
}

qint64 sum(const QTableView* table, int column) {
  qint64 all = 0;
  for (int i = 0; i < table->model()->rowCount(); ++i)
    all += table->model()->index(i, column).data(RowTableModel::kSortRole).toLongLong();
  return all;
}

TestModel sample(const QString& name) {
  const QString model = samplePath(name), data = QFileInfo(model).absolutePath() + QStringLiteral("/batches.npz");
  return {name, model, QFileInfo::exists(data) ? data : QString()};
}

}  // namespace

class LaboratoryTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    applyTheme(*qApp, Theme::kLight);
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
  }

  void aLedgerSumsToTheStepAndItsAdviceIsTried() {
    WindowDriver w;
    QVERIFY_DONE(w.build(sample(QStringLiteral("padding"))), w);
    QVERIFY(w.act("step_whole"));
    View* view = w.view(QStringLiteral("ledger"));
    QVERIFY(view->emptyText().isEmpty());
    auto* measure = find<QPushButton>(view, "ledger_measure");
    w.loop().act([&] { measure->click(); });
    const auto& study = w->store().findings().ledger();
    QVERIFY(study.running());
    QCOMPARE(measure->text(), QStringLiteral("Cancel"));
    QVERIFY(w.loop().wait([&] { return !study.running(); }, 120'000) && w.settled());
    QCOMPARE(study.problem(), QString());
    const auto report = study.report();
    QVERIFY(report);
    QCOMPARE(report->step(), 1);
    QVERIFY(!w->store().position().in_step());

    // Whatever the lines are summed by, they are the step: its time, and the operations of the plan.
    qint64 flops = 0;
    for (const auto& in : w->store().plan()->plan().instructions())
      if (!in.view()) flops += static_cast<qint64>(in.flops());
    auto* by = find<QComboBox>(view, "ledger_by");
    for (int i = 0; i < by->count(); ++i) {
      w.loop().act([&] { by->setCurrentIndex(i); });
      QVERIFY(w.loop().wait(
          [&] { return lines(view)->model()->headerData(0, Qt::Horizontal).toString() == by->currentText(); }));
      QCOMPARE(sum(lines(view), 1), report->ns());
      QCOMPARE(sum(lines(view), 4) + sum(lines(view), 5) + sum(lines(view), 6) + sum(lines(view), 7), flops);
      QVERIFY2(sum(lines(view), 5) > 0, "the sample is padded");
    }
    const QString words = view->findChild<SpentBars*>()->words();
    QVERIFY2(words.contains(QStringLiteral("padding")), qPrintable(words));

    // The project has the same numbers.
    QVERIFY(w.recorded());
    qint64 ns = 0, padding = -1;
    for (int attempt = 0; attempt < 60 && ns == 0; ++attempt) {  // it is written beside the run
      QTest::qWait(100);
      for (const QJsonObject& row :
           said({QStringLiteral("sql"), QStringLiteral("--json"), w->store().project().projectPath(),
                 QStringLiteral("SELECT sum(ns_kernel + ns_gap + ns_waiting) AS ns, sum(flops_padding) AS padding "
                                "FROM ledger")})) {
        if (row[QStringLiteral("event")] != QStringLiteral("row")) continue;
        const QJsonArray values = row[QStringLiteral("values")].toArray();
        ns = values[0].toInteger();
        padding = values[1].toInteger();
      }
    }
    QCOMPARE(ns, report->ns());
    QCOMPARE(padding, sum(lines(view), 5));
    w.picture(QStringLiteral("ledger"));

    // An advice is tried with a button.
    auto* advice = find<QTableView>(view, "ledger_advice");
    int row = -1;
    for (int i = 0; i < advice->model()->rowCount() && row < 0; ++i)
      if (!advice->model()->index(i, 4).data().toString().isEmpty()) row = i;
    QVERIFY2(row >= 0, "padding and ignored labels can be left out by an option");
    const auto& told = report->advice(advice->model()->index(row, 0).data(RowTableModel::kKeyRole).toInt());
    w.loop().act([&] { advice->selectRow(row); });
    auto* confirm = find<QPushButton>(view, "ledger_confirm");
    QVERIFY(confirm->isEnabled());
    w.loop().act([&] { confirm->click(); });
    const OptionTrials& trials = w->store().findings().trials();
    QVERIFY(w.loop().wait([&] { return !trials.running() && trials.report().trials_size() >= 2; }, 180'000));
    QVERIFY(w.settled());
    QCOMPARE(trials.problem(), QString());
    bool found = false;
    for (const auto& trial : trials.report().trials())
      found = found || (trial.option() == told.option() && trial.to() == told.value());
    QVERIFY2(found, told.option().c_str());
    QVERIFY_LOOP(w);
  }

  void aRecordedLedgerIsShownWithItsRun() {
    QTemporaryDir place;
    const QString project = place.filePath(QStringLiteral("run.stepscope"));
    qint64 ns = 0;
    {
      WindowDriver w;
      w->setProjectPath(project);
      QVERIFY_DONE(w.build(bundledModels()[0]), w);
      View* view = w.view(QStringLiteral("ledger"));
      w.loop().act([&] { find<QPushButton>(view, "ledger_measure")->click(); });
      QVERIFY(w.loop().wait([&] { return w->store().findings().ledger().report() != nullptr; }, 120'000) && w.settled());
      ns = w->store().findings().ledger().report()->ns();
      QVERIFY(w.recorded());
    }
    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(project), w);
    View* view = w.view(QStringLiteral("ledger"));
    QVERIFY2(view->emptyText().isEmpty(), qPrintable(view->emptyText()));
    QVERIFY(w.loop().wait([&] { return lines(view)->model()->rowCount() > 0; }));
    QCOMPARE(sum(lines(view), 1), ns);
    QVERIFY(find<QPushButton>(view, "ledger_measure")->isHidden());
  }

  void whatFitsAgreesWithTheCommandLine() {
    const TestModel model = sample(QStringLiteral("language_model"));
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(model), w);
    View* view = w.view(QStringLiteral("capacity"));
    QVERIFY(view->emptyText().isEmpty());
    auto* memory = find<QLineEdit>(view, "capacity_memory");
    auto* plan = find<QPushButton>(view, "capacity_plan");
    w.loop().act([&] { memory->setText(QStringLiteral("much")); });
    QVERIFY(!plan->isEnabled());
    QVERIFY(find<QLabel>(view, "capacity_problem")->text().contains(QStringLiteral("expected")));
    const auto batch = w->store().plan();
    w.loop().act([&] {
      memory->setText(QStringLiteral("256 MiB"));
      find<QSpinBox>(view, "capacity_most")->setValue(64);
      plan->click();
    });
    const auto& study = w->store().findings().capacity();
    QVERIFY(w.loop().wait([&] { return !study.running(); }, 300'000) && w.settled());
    QCOMPARE(study.problem(), QString());
    const auto report = study.report();
    QVERIFY(report && report->points_size() > 0);
    QCOMPARE(w->store().plan(), batch);  // nothing was built in the session
    auto* table = view->findChild<QTableView*>();
    QVERIFY(w.loop().wait([&] { return table->model()->rowCount() == report->points_size(); }));
    QVERIFY(!find<QLabel>(view, "capacity_summary")->text().isEmpty());
    w.picture(QStringLiteral("capacity"));

    QStringList asked = {QStringLiteral("capacity"), model.model,
                         QStringLiteral("--json"),   QStringLiteral("--memory"),
                         QStringLiteral("256MiB"),   QStringLiteral("--recompute")};
    if (!report->dimension().empty())
      asked << QStringLiteral("--vary") << QStringLiteral("%1=1..64").arg(QString::fromStdString(report->dimension()));
    if (!model.data.isEmpty()) asked << QStringLiteral("--data") << model.data;
    QMap<QPair<qint64, QString>, qint64> peaks;
    for (const QJsonObject& line : said(asked))
      if (line[QStringLiteral("event")] == QStringLiteral("capacity"))
        peaks[{line[QStringLiteral("extent")].toInteger(), line[QStringLiteral("recompute")].toString()}] =
            line[QStringLiteral("peak_bytes")].toInteger();
    QCOMPARE(peaks.size(), report->points_size());
    for (const auto& p : report->points()) {
      const QPair<qint64, QString> key{p.extent(), QString::fromStdString(p.recompute())};
      QVERIFY2(peaks.contains(key), qPrintable(key.second));
      QCOMPARE(peaks[key], p.peak_bytes());
    }
    QVERIFY_LOOP(w);
  }

  // A precision that is toggled changes numbers: its proof says so, one click finds the cause, and undo takes it back.
  void aProofThatFailsLeadsToItsCauseAndUndoTakesItBack() {
    QTemporaryDir place;
    const TestModel digits = bundledModels()[0];
    const TestModel model{digits.name, place.filePath(QStringLiteral("model.onnx")), digits.data};
    QVERIFY(QFile::copy(digits.model, model.model));
    WindowDriver w;
    QVERIFY_DONE(w.build(model), w);
    QVERIFY(w.act("step_whole"));
    View* options = w.view(QStringLiteral("options"));
    auto* cause = find<QPushButton>(options, "options_cause");
    QVERIFY(cause->isHidden());
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("precision"), QStringLiteral("bf16")); });
    const auto proof = [&] { return w->store().findings().optionProof(); };
    QVERIFY(w.loop().wait([&] { return proof() && proof()->change().find("bf16") != std::string::npos; }, 60'000));
    QVERIFY(w.settled());
    QVERIFY(!proof()->equal());
    QVERIFY2(proof()->worst().find("MaxPool_out1") == std::string::npos && proof()->max_abs() < 1,
             "an index moved, where two values tied: no number differs by that");
    QVERIFY2(!cause->isHidden(), "values differ: a click finds out why");
    w.loop().act([&] { cause->click(); });
    const auto& study = w->store().findings().bisect();
    QVERIFY(study.running());
    QVERIFY(w.loop().wait([&] { return !study.running(); }, 300'000) && w.settled());
    QCOMPARE(study.problem(), QString());
    const auto finding = study.report();
    QVERIFY(finding && finding->differs());
    bool named = false;
    for (const auto& option : finding->options()) named = named || option.name() == "precision";
    QVERIFY2(named, "the option that was toggled is among them");
    QVERIFY2(finding->nodes_size() > 0, finding->note().c_str());
    const QString file = QString::fromStdString(finding->file());
    QCOMPARE(QFileInfo(file).absolutePath(), place.path());
    QVERIFY(QFileInfo::exists(file) && QFileInfo::exists(QString::fromStdString(finding->data())));
    View* view = w.view(QStringLiteral("bisect"));
    const QString page = find<QTextBrowser>(view, "bisect_finding")->toPlainText();
    QVERIFY2(page.contains(QStringLiteral("precision")) && page.contains(QFileInfo(file).fileName()), qPrintable(page));
    w.picture(QStringLiteral("bisect"));
    QVERIFY2(page.contains(QStringLiteral("computes other numbers")) && !page.contains(QStringLiteral("Changed since")),
             qPrintable(page));
    QVERIFY(w.act("undo"));
    QVERIFY(w.loop().wait([&] {
      for (const auto& o : w->store().options())
        if (o.name() == "precision") return o.value() == "fp32";
      return false;
    }));
    QVERIFY(w.settled());
    const QString dated = find<QTextBrowser>(view, "bisect_finding")->toPlainText();
    QVERIFY2(dated.contains(QStringLiteral("computed other numbers")) &&
                 dated.contains(QStringLiteral("precision was bf16, is fp32 now")),
             qPrintable(dated));
    w.picture(QStringLiteral("bisect-undone"));
    QVERIFY(w.act("step_whole"));
    QVERIFY_LOOP(w);
  }
};

SS_QT_CLASS(QApplication, LaboratoryTest)
#include "tst_laboratory.moc"
