// SPDX-License-Identifier: GPL-3.0-or-later
// Two runs recorded by the window with the real worker, then set beside each other, and their start-ups.
#include <QComboBox>
#include <QJsonArray>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QTest>
#include <cmath>

#include "app/workbench/layouts.h"
#include "storage/comparison.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/row_table.h"
#include "views/common/startup_history.h"
#include "views/common/tokens.h"

using namespace stepscope;

namespace {

using Fields = std::vector<std::pair<QString, QString>>;

// A run of four steps. Its first parameter is watched.
bool train(WindowDriver& w, const Fields& fields) {
  if (!w.build(bundledModels()[0], fields)) return false;
  for (const auto& v : w->store().graph()->graph().values()) {
    if (v.trained()) {
      w.loop().act([&] { w->session().watch(v.id(), true); });
      break;
    }
  }
  for (int step = 0; step < 4; ++step) {
    if (!w.act("step_whole")) return false;
  }
  return true;
}

bool compared(WindowDriver& w, std::int64_t a, std::int64_t b) {
  return w.loop().wait([&] {
    const auto& facts = w->store().project();
    return !facts.comparing() && facts.runComparison() && facts.runComparison()->a.run.id == a &&
           facts.runComparison()->b.run.id == b && facts.runComparison()->both == 4;
  });
}

QAbstractItemModel* tableOf(WindowDriver& w, const char* view) {
  return w.view(QLatin1String(view))->findChild<QTableView*>()->model();
}

// A page of Compare, brought to the front by its command.
View* pageOf(WindowDriver& w, const char* id) {
  return w.act(id) ? w->board().find(QStringLiteral("compare"))->findChild<View*>(QLatin1String(id)) : nullptr;
}

int rowWith(const QAbstractItemModel* model, int column, const QString& text) {
  for (int r = 0; r < model->rowCount(); ++r) {
    if (model->index(r, column).data().toString() == text) return r;
  }
  return -1;
}

}  // namespace

class TwoRunsTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // A layout that an older version kept has the one view where the first of the four stood.
  void aLayoutOfFourViewsHasOne() {
    const auto views = [](const QStringList& ids) { return QJsonObject{{"views", QJsonArray::fromStringList(ids)}}; };
    QJsonObject right = views({"compare_options", "node"});
    right["front"] = "compare_options";
    const ViewLayout layout = ViewLayout::fromJson(
        {{"name", "mine"},
         {"areas",
          QJsonObject{{"left", views({"runs"})}, {"right", right}, {"bottom", views({"divergence", "compare_times"})}}},
         {"windows", QJsonArray{QJsonObject{{"view", "compare_times"}, {"home", "bottom"}}}}});
    QStringList all;
    for (const QStringList& area : layout.views) all << area;
    QCOMPARE(all, (QStringList{"runs", "compare", "node"}));
    QCOMPARE(layout.front[static_cast<std::size_t>(Area::kRight)], QStringLiteral("compare"));
    QVERIFY(layout.floating.empty());
  }

  // What is read can be cancelled: what was there before stays, and a report is not written.
  void whatIsReadCanBeCancelled() {
    const QString project = folder_.filePath(QStringLiteral("cancelled.stepscope"));
    WindowDriver w;
    w->setProjectPath(project);
    for (const char* lr : {"0.1", "0.2", "0.3"})
      QVERIFY_DONE(train(w, {{QStringLiteral("lr"), QString::fromLatin1(lr)}}), w);
    w.loop().act([&] { w->applyLayout(QStringLiteral("Compare")); });
    QVERIFY(compared(w, 2, 3) && w.recorded());
    const auto& facts = w->store().project();
    const auto ask = [&](std::int64_t a, std::int64_t b) {
      CompareRequest request = facts.compareRequest();
      request.a = a;
      request.b = b;
      w.loop().act([&] { emit w->wishes().compareRuns(request); });
    };
    CancellableReads& reads = w->recording().reads();
    ask(1, 2);
    QVERIFY(facts.comparing());
    w.loop().act([&] { reads.cancel(); });
    QVERIFY(!facts.comparing());
    QVERIFY(w.recorded());
    QCOMPARE(facts.compareRequest().a, 2);
    QCOMPARE(facts.runComparison()->a.run.id, 2);
    QCOMPARE(w->findChild<QLabel*>(QStringLiteral("status_note"))->toolTip(),
             QStringLiteral("The comparison was cancelled; the one before is shown"));
    ask(1, 2);
    QVERIFY(compared(w, 1, 2));
    for (const char* ending : {"html", "pdf", "json"}) {
      const QString path = folder_.filePath(QStringLiteral("r.") + QLatin1String(ending));
      w.loop().act([&] {
        w->recording().queries().report(path);
        reads.cancel();
      });
      QVERIFY(w.recorded());
      QVERIFY2(!QFileInfo::exists(path) && !w->notice().isVisible(), ending);
    }
    // By Esc, by Pause and by the button, once it takes longer than a moment; after a second it stands above the views.
    int cancelled = 0;
    w.view(QStringLiteral("compare"));
    auto* cancel = w->findChild<QPushButton*>(QStringLiteral("compare_cancel"));
    const auto slow = [&] {
      const auto stop =
          reads.begin(ProjectReads::What::kComparison, QStringLiteral("Reading what takes long"), [&] { ++cancelled; });
      return w.loop().wait([&] { return w->actions()[QStringLiteral("cancel_reads")]->isEnabled() && cancel->isVisible(); },
                           5'000)
                 ? stop
                 : nullptr;
    };
    QVERIFY(slow());
    w.picture(QStringLiteral("compare-reading"));
    w.loop().act([&] { QTest::keyClick(&*w, Qt::Key_Escape); });
    QCOMPARE(cancelled, 1);
    QVERIFY(slow() && w.act("stop"));
    QCOMPARE(cancelled, 2);
    const auto stop = slow();
    QVERIFY(stop);
    w.loop().act([&] { cancel->click(); });
    QVERIFY(cancelled == 3 && *stop && !w->actions()[QStringLiteral("cancel_reads")]->isEnabled());
    QVERIFY(slow());
    QVERIFY(w.loop().wait([&] { return w->notice().isVisible(); }, 5'000));
    QVERIFY2(w->notice().text().startsWith(QStringLiteral("Reading what takes long")), qPrintable(w->notice().text()));
    w.loop().act([&] { w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"))->click(); });
    QCOMPARE(cancelled, 4);
    // The list of runs, which says that it is of before.
    const auto list = reads.begin(ProjectReads::What::kRuns, {});
    auto* leave = w->findChild<QPushButton*>(QStringLiteral("runs_cancel"));
    QVERIFY(w.loop().wait([&] { return leave->isVisible(); }, 5'000));
    w.picture(QStringLiteral("runs-reading"));
    w.loop().act([&] { leave->click(); });
    QVERIFY(*list && !leave->isVisible());
    QCOMPARE(w.view(QStringLiteral("runs"))->headerText(), QStringLiteral("as before: cancelled"));
    const auto texts = w->board().findChildren<QLabel*>();
    QVERIFY2(
        std::ranges::any_of(texts, [](const QLabel* l) { return l->isVisible() && l->text() == u"as before: cancelled"; }),
        "it has room in a narrow panel");
    w.picture(QStringLiteral("runs-left-off"));
    // Opening a project as well: what is open stays.
    w.loop().act([&] {
      w->openPath(project);
      reads.cancel();
    });
    QVERIFY(w.recorded() && !w->store().readOnly() && w->session().built());
    QVERIFY_LOOP(w);
  }

  // The sentence of `stepscope compare`.
  void otherThreadsExplainOtherBits() {
    const QString project = folder_.filePath(QStringLiteral("threads.stepscope"));
    WindowDriver w;
    w->setProjectPath(project);
    for (const char* threads : {"1", "2"})
      QVERIFY_DONE(train(w, {{QStringLiteral("threads"), QString::fromLatin1(threads)}}), w);
    w.loop().act([&] { w->applyLayout(QStringLiteral("Compare")); });
    QVERIFY(compared(w, 1, 2));
    auto* note = w.view(QStringLiteral("compare"))->findChild<QLabel*>(QStringLiteral("compare_note"));
    QVERIFY(note->isVisible());
    const auto file = storage::Project::openReadOnly(project.toStdString());
    QVERIFY(file.has_value());
    const auto said = storage::compareRuns(*file, 1, 2);
    QVERIFY(said.has_value() && !said->threads.empty());
    QVERIFY2(note->text().split('\n').contains(QString::fromStdString(said->threads)), qPrintable(note->text()));
  }

  void twoRunsWithOtherRatesPartAfterTheFirstUpdate() {
    const QString project = folder_.filePath(QStringLiteral("two.stepscope"));
    {
      WindowDriver w;
      w->setProjectPath(project);
      w.loop().act([&] { w->applyLayout(QStringLiteral("Compare")); });
      QVERIFY_DONE(train(w, {{"lr", "0.01"}, {"clip-grad-norm", "1"}, {"threads", "1"}}), w);
      auto* compare = w.view(QStringLiteral("compare"));
      QVERIFY(w.loop().wait([&] { return compare->emptyText().contains(QStringLiteral("New run from step 0")); }));
      QVERIFY_DONE(train(w, {{"lr", "0.5"}, {"clip-grad-norm", "1"}, {"threads", "1"}}), w);
      w.loop().act([&] { w->applyLayout(QStringLiteral("Compare")); });

      // Nobody picked a pair: the two newest runs.
      QVERIFY(compared(w, 1, 2));
      const RunComparison& c = *w->store().project().runComparison();
      QCOMPARE(c.a.run.steps, 4);
      QVERIFY(c.a.step.n > 0 && c.b.step.median > 0);
      QVERIFY(!c.ops.empty() && !c.stepPhases.empty() && !c.buildPhases.empty());

      // What was set otherwise.
      const auto* options = pageOf(w, "compare_settings")->findChild<QTableView*>()->model();
      QVERIFY(w.loop().wait([&] { return options->rowCount() > 0; }));
      const int rate = rowWith(options, 0, QStringLiteral("lr"));
      QVERIFY(rate >= 0);
      QCOMPARE(options->index(rate, 1).data().toString().toDouble(), 0.01);
      QCOMPARE(options->index(rate, 2).data().toString().toDouble(), 0.5);

      // The first loss comes before the first update. Its row selects the loss in every view.
      QVERIFY(c.first && c.statistics > 0);
      auto* divergence = pageOf(w, "compare_numbers");
      auto* table = divergence->findChild<QTableView*>();
      QVERIFY(w.loop().wait([&] { return table->model()->rowCount() > 0; }));
      const int loss = rowWith(table->model(), 2, QStringLiteral("loss"));
      QVERIFY(loss >= 0);
      QCOMPARE(table->model()->index(loss, 0).data().toString(), QStringLiteral("1"));
      w.loop().act([&] { table->setCurrentIndex(table->model()->index(loss, 0)); });
      QVERIFY(w.settled());
      const Selection selected = w->selection().selection();
      QCOMPARE(selected.value, w->store().graph()->graph().loss());
      QVERIFY(selected.node >= 0 && selected.instruction >= 0);
      // The watched parameter parts with the first update.
      const int norm = rowWith(table->model(), 0, QStringLiteral("0"));
      QVERIFY(norm >= 0);
      w.loop().act([&] { table->setCurrentIndex(table->model()->index(norm, 0)); });
      QVERIFY(w->store().graph()->value(w->selection().selection().value)->trained());

      // An operator of the table selects its first instruction.
      auto* times = pageOf(w, "compare_operators")->findChild<QTableView*>();
      QVERIFY(w.loop().wait([&] { return times->model()->rowCount() > 5; }));
      QString clicked;  // the rows may be sorted anew when more of the run arrives
      w.loop().act([&] {
        const QModelIndex row = times->model()->index(0, 0);
        clicked = row.data().toString();
        times->setCurrentIndex(row);
      });
      const auto* instruction = w->store().plan()->instruction(w->selection().selection().instruction);
      QVERIFY2(instruction && clicked.startsWith(QString::fromStdString(instruction->op())), qPrintable(clicked));

      // A tolerance that forgives everything.
      auto* rtol = compare->findChild<QLineEdit*>(QStringLiteral("compare_rtol"));
      w.loop().act([&] {
        rtol->setText(QStringLiteral("1e9"));
        emit rtol->editingFinished();
      });
      QVERIFY(w.loop().wait(
          [&] { return !w->store().project().comparing() && w->store().project().runComparison()->request.rtol == 1e9; }));
      QVERIFY(!w->store().project().runComparison()->first);
      QVERIFY(divergence->emptyText().contains(QStringLiteral("No divergence")));

      // The other way round.
      auto* swap = compare->findChild<QAbstractButton*>(QStringLiteral("compare_swap"));
      w.loop().act([&] { swap->click(); });
      QVERIFY(compared(w, 2, 1));

      // The second start-up beside the first.
      QVERIFY(w.loop().wait([&] { return w->store().project().startupHistory().startups.size() == 2; }));
      const auto* startup = tableOf(w, "startup_table");
      QVERIFY(w.loop().wait([&] { return startup->headerData(3, Qt::Horizontal).toString() == QStringLiteral("Change"); }));
      const int load = rowWith(startup, 0, QStringLiteral("load"));
      QVERIFY(load >= 0);
      QCOMPARE(startup->index(load, 9).data().toString(), QStringLiteral("1"));
      QVERIFY(!startup->index(load, 7).data().toString().isEmpty());
      QVERIFY2(w.loop().free(), qPrintable(w.loop().text()));
    }

    // The project, opened to look at.
    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(project), w);
    w.loop().act([&] { w->applyLayout(QStringLiteral("Compare")); });
    QVERIFY(compared(w, 1, 2));
    QCOMPARE(w->store().project().runComparison()->first->step, 0);
    QCOMPARE(w->store().project().startupHistory().startups.size(), std::size_t{2});

    // A run of another project.
    const QString copy = folder_.filePath(QStringLiteral("copy.stepscope"));
    QVERIFY(QFile::copy(project, copy));
    w.loop().act([&] { w->recording().queries().listOtherRuns(copy); });
    QVERIFY(w.loop().wait([&] {
      const auto& facts = w->store().project();
      return facts.runComparison() && facts.runComparison()->request.otherProject == copy;
    }));
    QCOMPARE(w->store().project().runComparison()->b.run.id, 2);
    w.loop().act([&] { w->recording().queries().listOtherRuns(folder_.filePath(QStringLiteral("none.stepscope"))); });
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }));
    QVERIFY2(w.loop().free(), qPrintable(w.loop().text()));
  }
};

SS_QT_CLASS(WatchedApplication, TwoRunsTest)
#include "tst_two_runs.moc"
