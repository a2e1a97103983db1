// SPDX-License-Identifier: GPL-3.0-or-later
// Runs of one project beside each other: a new one from step 0, and what the list and Compare say of their times.
#include <QLabel>
#include <QTest>
#include <cmath>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/row_table.h"
#include "views/common/run_times.h"
#include "views/common/tokens.h"
#include "views/compare/compare_view.h"
#include "views/graph/graph_canvas.h"

using namespace stepscope;

class NewRunTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // A run of its own with the same settings, data and seed; named, and with what differs in the list.
  void aNewRunBeginsAtStepZeroWithTheSameSettings() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(3); });
    QVERIFY(w.recorded());
    const double first = w->store().steps().front()->loss(), last = w->store().steps().back()->loss();
    const int loss = w->store().graph()->graph().loss();
    w.loop().act([&] { w->session().watch(loss, true); });
    QVERIFY(w.settled());
    w.loop().act([&] { w->recording().nameRun(1, QStringLiteral("plain")); });
    Selection selected = Selection::ofInstruction(7);
    selected.value = w->store().plan()->instruction(7)->outputs(0).value();
    QVERIFY(w.select(selected));
    QVERIFY_DONE(w.act("new_run"), w);
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }));
    QCOMPARE(w->selection().selection().instruction, selected.instruction);  // the plan is the same
    QCOMPARE(w->selection().selection().value, selected.value);
    const QString note = w->findChild<QLabel*>(QStringLiteral("status_note"))->toolTip();
    QVERIFY2(note.contains(QStringLiteral("Name this run")) && note.contains(QStringLiteral("Options")), qPrintable(note));
    QVERIFY(w.recorded());
    QCOMPARE(w->store().position().step(), 0);
    QVERIFY(w->store().steps().empty() && w->store().series().empty());
    QCOMPARE(w->store().watched(), std::vector<int>{loss});
    QVERIFY(!w->store().breakpoints().empty());
    w.loop().act([&] { w->session().train(3); });
    QVERIFY(w.recorded());
    QCOMPARE(w->store().steps().front()->loss(), first);
    QCOMPARE(w->store().steps().back()->loss(), last);
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.inplace"), QStringLiteral("off")); });
    QVERIFY(w.settled());
    QVERIFY(w.loop().wait([&] { return w->store().project().runs().size() == 2 && w->recording().idle(); }));
    View* runs = w.view(QStringLiteral("runs"));
    QVERIFY(runs);
    w.loop().act([&] { w->recording().queries().refreshRuns(); });
    QVERIFY(w.loop().wait([&] {
      const QStringList cells = cellsOf(*runs);
      return cells.contains(QStringLiteral("1  plain")) && cells.contains(QStringLiteral("memory.inplace off")) &&
             cells.contains(QStringLiteral("memory.inplace on"));  // which is the default
    }));
    w.picture(QStringLiteral("runs"));

    // Nothing is said of a run beside itself but that it is one.
    w.loop().act([&] {
      CompareRequest request;
      request.a = request.b = 2;
      emit w->wishes().compareRuns(request);
      w->applyLayout(QStringLiteral("Compare"));
    });
    const View* compare = w.view(QStringLiteral("compare"));
    QVERIFY(w.loop().wait([&] { return w->store().project().runComparison() != nullptr; }) && w.settled());
    QStringList said;
    for (const auto* label : compare->findChildren<QLabel*>())
      if (label->isVisible()) said << label->text();
    QVERIFY2(!said.filter(QStringLiteral("A and B are the same run, 2")).isEmpty() &&
                 said.filter(QStringLiteral("equal in every bit")).isEmpty(),
             qPrintable(said.join('\n')));
    w.picture(QStringLiteral("compare-one-run"));
    QVERIFY_LOOP(w);
  }

  // What was looked at in the graph stays where it is and as large, whether a person moved there or nobody did.
  void theGraphStaysOverRebuilds() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0], {{"optimizer", "adam"}}), w);
    auto* canvas = w->findChild<GraphCanvas*>();
    QVERIFY(canvas && canvas->scene());
    const auto again = [&](const char* how) {
      const auto before = canvas->scene();
      if (how == QLatin1String("restart"))
        w.loop().act([&] { w->session().restart(); });
      else if (how == QLatin1String("new_run"))
        w.act("new_run");
      else
        w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("lr"), QLatin1String(how)); });
      return w.settled() && w.loop().wait([&] { return w->session().built() && canvas->scene() != before; }, 20'000) &&
             w.settled();
    };
    const auto place = [&](const char* op) {
      const auto& scene = *canvas->scene();
      for (const SceneBox& box : scene.boxes)
        if (const auto* node = box.node < 0 ? nullptr : scene.model->node(box.node); node && node->op() == op)
          return canvas->viewport().toPixel(QRectF(box.at.x, box.at.y, box.at.w, box.at.h));
      return QRectF();
    };
    const double zoom = canvas->zoomPercent();
    const QRectF gemm = place("Gemm");
    QVERIFY(!gemm.isEmpty());
    for (const char* how : {"restart", "new_run", "new_run", "restart"}) {
      QVERIFY2(again(how), how);
      QCOMPARE(canvas->zoomPercent(), zoom);
      QCOMPARE(place("Gemm"), gemm);
    }
    w.loop().act([&] { canvas->zoomBy(2); });
    const double closer = canvas->zoomPercent();
    const QRectF there = place("Gemm");
    for (const char* how : {"restart", "new_run"}) {
      QVERIFY2(again(how), how);
      QCOMPARE(canvas->zoomPercent(), closer);
      QVERIFY2((place("Gemm").center() - there.center()).manhattanLength() < 2, how);
    }

    // What feeds the optimizer alone stands beside it.
    const auto& scene = *canvas->scene();
    int inputs = 0;
    for (const SceneBox& box : scene.boxes) {
      if (box.kind != BoxKind::kInput || !box.gradient) continue;
      ++inputs;
      float nearest = 1e30F;
      for (const int* e = scene.model->outBegin(box.node); e != scene.model->outEnd(box.node); ++e) {
        const int reader = scene.model->edges()[static_cast<std::size_t>(*e)].to;
        const BoxF& at = scene.boxes[static_cast<std::size_t>(scene.boxOfNode[static_cast<std::size_t>(reader)])].at;
        nearest = std::min(nearest, std::hypot(at.centerX() - box.at.centerX(), at.centerY() - box.at.centerY()));
      }
      QVERIFY2(nearest < 200, qPrintable(QString::number(nearest)));
    }
    QCOMPARE(inputs, 2);  // the learning rate, and whether this step updates
  }

  // A run that was walked through, one at full speed and one that recorded every instruction: the list says which is which,
  // and no time of one is judged by that of another.
  void timesOfOtherSpeedsAreSaidToBeSo() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    const auto runs = [&](std::size_t count) {
      return w.loop().wait([&] {
        return w->store().project().runs().size() == count && w->store().project().runs().back().steps == 4 &&
               RunTimes::of(w->store().project()).step(static_cast<std::int64_t>(count)).n > 0;
      });
    };
    const auto shown = [&] {
      QVERIFY(w.recorded());
      w.loop().act([&] { w->recording().queries().refreshRuns(); });
    };
    w.loop().act([&] { w->session().train(4); });
    shown();
    QVERIFY(runs(1));
    QVERIFY_DONE(w.act("new_run"), w);
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }));
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("record"), QStringLiteral("steps")); });
    QVERIFY(w.settled());
    w.loop().act([&] { w->session().train(4); });
    shown();
    QVERIFY(runs(2));
    QVERIFY_DONE(w.act("new_run"), w);
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }));
    for (int i = 0; i < 4; ++i) QVERIFY_DONE(w.act("step_whole"), w);
    shown();
    QVERIFY(runs(3));
    auto& times = RunTimes::of(w->store().project());
    QCOMPARE(times.step(1).speed, QStringLiteral("recorded"));
    QCOMPARE(times.step(2).speed, QStringLiteral("full speed"));
    QCOMPARE(times.step(3).speed, QStringLiteral("walked"));
    QVERIFY(times.step(1).measured && times.step(1).processors > 0);
    const QStringList cells = cellsOf(*w.view(QStringLiteral("runs")));
    for (const char* speed : {"recorded", "full speed", "walked"})
      QVERIFY2(cells.filter(QLatin1String(speed)).size() == 1, speed);
    w.picture(QStringLiteral("speeds-runs"));
    w.loop().act([&] {
      CompareRequest request;
      request.a = 1;
      request.b = 3;
      emit w->wishes().compareRuns(request);
      w->applyLayout(QStringLiteral("Compare"));
    });
    const auto* note = w.view(QStringLiteral("compare"))->findChild<QLabel*>(QStringLiteral("compare_note"));
    QVERIFY(w.loop().wait([&] { return note->text().contains(QStringLiteral("A recorded, B walked")); }));
    QVERIFY(note->isVisible());
    for (const char* id : {"compare_both", "compare_operators"}) {
      auto* compare = qobject_cast<CompareView*>(w.view(QStringLiteral("compare")));
      w.loop().act([&] { compare->showPage(QLatin1String(id)); });
      QVERIFY(w.settled());
      const auto* model = compare->findChild<View*>(QLatin1String(id))->findChild<RowTableModel*>();
      QVERIFY(model && model->rowCount() > 4);
      for (int r = 0; r < model->rowCount(); ++r) {
        const auto& row = model->row(r).cells;
        if (row[0].text.startsWith(QStringLiteral("Peak"))) continue;
        for (const TableCell& cell : row) QVERIFY2(cell.role != u"ok", qPrintable(row[0].text));
      }
    }
    w.picture(QStringLiteral("speeds-compare"));
    QVERIFY_LOOP(w);
  }
};

SS_QT_CLASS(QApplication, NewRunTest)
#include "tst_new_run.moc"
