// SPDX-License-Identifier: GPL-3.0-or-later
// What a person does with the window, with the real worker and real models; and the loop of the window is never held.
#include <signal.h>

#include <QPushButton>
#include <QTest>
#include <cstring>
#include <limits>
#include <map>

#include "app/workbench/project_reader.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/row_table.h"
#include "views/common/tokens.h"
#include "views/memory/memory_view.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

int instructionOf(const PlanSnapshot& plan, const std::function<bool(const snapshot::Instruction&)>& wanted) {
  for (int i = 0; i < plan.size(); ++i) {
    if (wanted(*plan.instruction(i))) return i;
  }
  return -1;
}

QString text(const TensorPtr& tensor) {
  return tensor ? QString::fromStdString(tensor->unavailable()) : QStringLiteral("nothing");
}

}  // namespace

class ScenarioTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  void stepsForthAndBackWithTheSameBits_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"digits", "language_model", "gpt2_lm", "bert_mlm", "resnet", "vit_classifier"})
      QTest::newRow(name) << QString::fromLatin1(name);
  }
  void stepsForthAndBackWithTheSameBits() {
    QFETCH(QString, name);
    std::optional<TestModel> model;
    for (const TestModel& m : bundledModels()) {
      if (m.name == name) model = m;
    }
    QString missing;
    if (!model) model = corpusModel(name, &missing);
    if (!model) QSKIP(qPrintable(missing));
    WindowDriver w;
    QVERIFY_DONE(w.build(*model), w);
    struct Shown {
      std::string bits;
      QStringList cells;
      QString unavailable;
    };
    std::map<int, Shown> forth;
    const auto look = [&w] {
      // The instruction that ran last: its output is what a step has just made.
      w.select(Selection::ofInstruction(w.instruction() - 1));
      const TensorPtr t = w.shownTensor();
      return Shown{t ? t->data() : std::string(), w.shownCells(), text(t)};
    };
    for (int i = 1; i <= 20; ++i) {
      QVERIFY_DONE(w.act("step"), w);
      QCOMPARE(w.instruction(), i);
      forth[i] = look();
      QVERIFY(forth[i].unavailable.isEmpty());
      QVERIFY(!forth[i].bits.empty());
    }
    QVERIFY(!forth[20].cells.isEmpty());
    for (int i = 19; i >= 1; --i) {
      QVERIFY_DONE(w.act("step_back"), w);
      QCOMPARE(w.instruction(), i);
      const Shown back = look();
      QVERIFY2(back.bits == forth[i].bits, qPrintable(QStringLiteral("bits of instruction %1 differ").arg(i - 1)));
      QCOMPARE(back.cells, forth[i].cells);
    }
    QVERIFY_DONE(w.act("step_back"), w);
    QCOMPARE(w.instruction(), 0);
    QVERIFY_LOOP(w);
  }

  void aPoisonedBatchStopsAtTheFirstNan() {
    const QString data = folder_.filePath(QStringLiteral("poisoned.safetensors"));
    QVERIFY(writeDigits(data, 4, 2));
    TestModel model = bundledModels()[0];
    model.data = data;
    WindowDriver w;
    QVERIFY_DONE(w.build(model), w);
    QVERIFY_DONE(w.act("run"), w);
    const auto& p = w->store().position();
    QCOMPARE(p.step(), 2);
    QVERIFY(p.in_step());
    QVERIFY2(QString::fromStdString(p.stopped_by()).contains(QStringLiteral("NaN")), p.stopped_by().c_str());
    QVERIFY(p.breakpoint() != 0);
    // What made it is shown with its NaN marked.
    QVERIFY(w.select(Selection::ofInstruction(p.instruction() - 1)));
    QVERIFY(w.shownTensor() && w.shownTensor()->statistics().nan() > 0);
    QVERIFY(w.shownCells().contains(QStringLiteral("NaN")) || w.shownTensor()->statistics().nan() > 0);
    QVERIFY_LOOP(w);
  }

  void theInfinityOfAnAttentionMaskStopsNobody() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[1]), w);
    // The mask is there, with its −∞.
    const auto& breakpoints = w->store().breakpoints();
    QVERIFY(std::any_of(breakpoints.begin(), breakpoints.end(), [](const auto& b) { return b.new_inf() && b.enabled(); }));
    w.loop().act([&] { w->actions()[QStringLiteral("run")]->trigger(); });
    QVERIFY(
        w.loop().wait([&] { return w->store().steps().size() >= 2 || (!w->session().running() && !w->session().busy()); }));
    QVERIFY(w->session().running());
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().breakpoint(), 0);
    // Passes may read it without writing it, so the inputs are looked at too.
    bool infinite = false;
    for (int i = 0; i < w->store().plan()->size() && !infinite; ++i) {
      const auto& in = *w->store().plan()->instruction(i);
      if (in.phase() != snapshot::FORWARD) continue;
      w->session().runTo(i + 1);
      if (!w.settled()) break;
      std::vector<int> values;
      for (const auto& o : in.inputs()) values.push_back(o.value());
      for (const auto& o : in.outputs()) values.push_back(o.value());
      for (const int value : values) {
        w.select(Selection::ofValue(value));
        infinite = infinite || (w.shownTensor() && w.shownTensor()->statistics().inf() > 0);
      }
    }
    QVERIFY2(infinite, "the sample's attention mask holds an infinity");
    QVERIFY_LOOP(w);
  }

  void fromTheLossToItsGradientItsMemoryAndBackToTheForwardNode_data() {
    QTest::addColumn<int>("bundled");
    QTest::newRow("digits") << 0;
    QTest::newRow("language_model") << 1;
  }
  void fromTheLossToItsGradientItsMemoryAndBackToTheForwardNode() {
    QFETCH(int, bundled);
    WindowDriver w;
    w->setProjectPath(folder_.filePath(QStringLiteral("loss_%1.stepscope").arg(bundled)));
    QVERIFY_DONE(w.build(bundledModels()[static_cast<std::size_t>(bundled)]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(w->store().steps().size(), std::size_t{1});
    const PlanPtr plan = w->store().plan();
    const GraphPtr graph = w->store().graph();
    const int loss = plan->producerOfValue(graph->graph().loss());
    QVERIFY(loss >= 0);
    QVERIFY(w.select(Selection::ofInstruction(loss + 1)));
    QVERIFY_DONE(w.act("run_here"), w);
    QCOMPARE(w.instruction(), loss + 1);
    QVERIFY(w->store().position().has_loss());
    QVERIFY(std::isfinite(w->store().position().loss()));

    // The gradient of a matrix product, or of a convolution, run to and looked at.
    const int forward = instructionOf(*plan, [](const auto& in) {
      return in.phase() == snapshot::FORWARD && (in.op() == "MatMul" || in.op() == "Conv" || in.op() == "Gemm");
    });
    QVERIFY(forward >= 0);
    const int forwardNode = plan->instruction(forward)->node();
    QVERIFY(w.select(Selection::ofInstruction(forward)));
    QVERIFY_DONE(w.act("select_gradient"), w);
    const Selection gradient = w->selection().selection();
    QVERIFY(gradient.instruction > loss && gradient.value >= 0 && gradient.buffer >= 0);
    QCOMPARE(graph->node(gradient.node)->phase(), snapshot::BACKWARD);
    QVERIFY_DONE(w.act("run_here"), w);
    QVERIFY_DONE(w.act("step"), w);
    QVERIFY(w.select(Selection::ofInstruction(gradient.instruction)));
    QVERIFY2(w.shownTensor() && !w.shownTensor()->data().empty(), qPrintable(text(w.shownTensor())));
    QVERIFY(w.shownTensor()->current());
    QVERIFY(w.shownTensor()->statistics().norm() > 0);

    // A click on its box in the memory map.
    w.loop().act([&] { w->applyLayout(QStringLiteral("Memory")); });
    QVERIFY(w.settled());
    MemoryCanvas& canvas = static_cast<MemoryView*>(w.view(QStringLiteral("memory")))->canvas();
    QVERIFY(w.select(Selection::ofNode(forwardNode)));  // something else
    int box = w->store().plan()->bufferOfValue(gradient.value);
    QVERIFY(box >= 0);
    while (canvas.model()->boxOf(box) < 0 && w->store().plan()->buffer(box)->shares() >= 0)
      box = w->store().plan()->buffer(box)->shares();
    w.loop().act([&] { canvas.showBuffer(box); });
    std::optional<QPoint> place;
    for (int y = 0; y < canvas.height() && !place; ++y) {
      for (int x = 0; x < canvas.width() && !place; x += 2) {
        if (canvas.bufferAt(QPointF(x, y)) == box) place = QPoint(x, y);
      }
    }
    QVERIFY2(place, "the gradient's box can be hit");
    w.loop().act([&] { QTest::mouseClick(&canvas, Qt::LeftButton, Qt::NoModifier, *place); });
    QVERIFY(w.settled());
    QCOMPARE(w->selection().selection().buffer, box);

    // And from the gradient along its lineage to the forward node.
    QVERIFY(w.select(gradient));
    QVERIFY_DONE(w.act("select_forward"), w);
    QCOMPARE(w->selection().selection().node, forwardNode);
    QVERIFY_DONE(w.act("back"), w);
    QCOMPARE(w->selection().selection().node, gradient.node);

    QVERIFY_DONE(w.act("step_whole"), w);
    for (const auto& [action, name, begins] :
         {std::tuple("report_html", "r.html", "<!doctype html"), std::tuple("report_pdf", "r.pdf", "%PDF-"),
          std::tuple("report_json", "r.json", "{"), std::tuple("report_csv", "r.csv", ""),
          std::tuple("report_trace", "r.trace.json", "{")}) {
      const QString path = folder_.filePath(QStringLiteral("%1_").arg(bundled) + QLatin1String(name));
      QVERIFY2(w.exportTo(action, path), qPrintable(path + ' ' + w->notice().text()));
      QFile file(path);
      QVERIFY(file.open(QIODevice::ReadOnly));
      QVERIFY2(file.readAll().toLower().startsWith(QByteArray(begins).toLower()), action);
    }
    // A name of one's own does not make another report of it.
    QFile own(folder_.filePath(QStringLiteral("%1_own.trace.json").arg(bundled)));
    QVERIFY(w.exportTo("report_trace", folder_.filePath(QStringLiteral("%1_own.json").arg(bundled)), own.fileName()));
    QVERIFY(own.open(QIODevice::ReadOnly));
    QVERIFY(own.readAll().contains("traceEvents"));
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY_LOOP(w);
  }

  void aWorkerKilledInMidStepComesBackToTheSameInstruction() {
    const TestModel model = bundledModels()[1];
    double undisturbed = 0;
    {
      WindowDriver w;
      QVERIFY_DONE(w.build(model, {{QStringLiteral("lr"), QStringLiteral("0.05")}}), w);
      for (int i = 0; i < 4; ++i) QVERIFY_DONE(w.act("step_whole"), w);
      undisturbed = w->store().steps().back()->loss();
    }
    WindowDriver w;
    QVERIFY_DONE(w.build(model, {{QStringLiteral("lr"), QStringLiteral("0.05")}}), w);
    for (int i = 0; i < 3; ++i) QVERIFY_DONE(w.act("step_whole"), w);
    w->session().runTo(100);
    QVERIFY(w.settled());
    QVERIFY(w.select(Selection::ofInstruction(99)));
    const std::string bits = w.shownTensor()->data();
    QVERIFY(!bits.empty());
    const auto pids = childProcesses();
    QCOMPARE(pids.size(), std::size_t{1});
    kill(pids[0], SIGKILL);
    QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kDead; }));
    QVERIFY(w->notice().isProblem());
    for (const char* id : {"run", "step", "step_back", "rewind"})
      QVERIFY2(!w->actions()[QLatin1String(id)]->isEnabled(), id);  // nobody is there to do it
    QVERIFY(w->store().plan() && w.shownTensor());                  // what was shown last stays
    auto* restart = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    QVERIFY(restart && restart->isVisible());
    w.loop().act([restart] { restart->click(); });
    QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kIdle && !w->session().busy(); }));
    QVERIFY(w.settled());
    QVERIFY(w->store().position().in_step());
    QCOMPARE(w.instruction(), 100);
    QCOMPARE(w->store().position().step(), 3);
    QVERIFY(w.select(Selection::ofInstruction(98)));
    QVERIFY(w.select(Selection::ofInstruction(99)));
    QVERIFY2(w.shownTensor()->data() == bits,
             qPrintable(QStringLiteral("the value differs after the restart: %1 bytes, %2 before; step %3, %4")
                            .arg(w.shownTensor()->data().size())
                            .arg(bits.size())
                            .arg(w.shownTensor()->step())
                            .arg(text(w.shownTensor()))));
    // Also to a step that only the dead worker had in its memory.
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(w->store().steps().back()->loss(), undisturbed);
    // It is one run, with the steps of both workers.
    std::size_t runs = 0, steps = 0;
    // What was told last is written a moment later.
    w.loop().wait([&] {
      if (const auto recorded = readProject(w->store().project().projectPath(), 0))
        runs = recorded->runs.size(), steps = recorded->steps.size();
      return steps == 4;
    });
    QCOMPARE(runs, std::size_t{1});
    QCOMPARE(steps, std::size_t{4});
    w.loop().act([&] { w->session().rewind(1); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().step(), 1);
    for (int i = 0; i < 3; ++i) QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(w->store().steps().back()->loss(), undisturbed);
    QVERIFY_LOOP(w);
  }

  void aHungWorkerIsToldAndReplaced() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    for (int i = 0; i < 5; ++i) QVERIFY_DONE(w.act("step"), w);
    const auto pids = childProcesses();
    QCOMPARE(pids.size(), std::size_t{1});
    kill(pids[0], SIGSTOP);
    w.loop().act([&] { w->actions()[QStringLiteral("step")]->trigger(); });
    QVERIFY(w.loop().wait([&] { return w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"))->isVisible(); },
                          10'000));  // progress, with cancel
    w.loop().act([&] { QTest::keyClick(&*w, Qt::Key_Escape); });
    QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kUnresponsive; }, 20'000));
    w.loop().act([&] { w->actions()[QStringLiteral("restart")]->trigger(); });
    QVERIFY(w.loop().wait(
        [&] { return childProcesses() != pids && w->store().workerState() == WorkerState::kIdle && !w->session().busy(); }));
    QVERIFY(w.settled());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY(w->store().position().in_step());
    QCOMPARE(w.instruction(), 5);
    QCOMPARE(w->store().position().step(), 1);
    QVERIFY_DONE(w.act("step"), w);
    QCOMPARE(w.instruction(), 6);
    QVERIFY_LOOP(w);
  }

  void aSecondWindowReadsWhatTheFirstRecords() {
    const QString project = folder_.filePath(QStringLiteral("shared.stepscope"));
    WindowDriver first;
    first->setProjectPath(project);
    QVERIFY_DONE(first.build(bundledModels()[0]), first);
    for (int i = 0; i < 3; ++i) QVERIFY_DONE(first.act("step_whole"), first);
    QVERIFY(first.loop().wait([&] {
      return first->recording().idle() && !first->store().project().runs().empty() &&
             first->store().project().runs()[0].steps >= 3;
    }));
    WindowDriver second;
    first.loop().act([&] { first->session().train(200); });
    second.loop().act([&] { second->openPath(project); });
    QVERIFY(second.loop().wait(
        [&] { return second->store().readOnly() && second->store().plan() && !second->store().steps().empty(); }));
    QVERIFY(second->store().steps().size() >= 3);
    QCOMPARE(second->store().graph()->nodeCount(), first->store().graph()->nodeCount());
    for (const char* action : {"run", "step", "step_back", "step_whole", "train"})
      QVERIFY2(!second->actions()[QLatin1String(action)]->isEnabled(), action);
    QVERIFY(first.settled());
    QCOMPARE(first->store().steps().size(), std::size_t{203});
    QVERIFY(first.loop().wait([&] { return first->recording().idle(); }));
    const auto count = [&](WindowDriver& w) {
      emit w->wishes().runSql(QStringLiteral("SELECT count(*) FROM steps"));
      const bool answered = w.loop().wait([&] { return !w->store().project().sqlRunning(); });
      const auto& rows = w->store().project().sql().rows;
      return answered && rows.size() == 1 ? rows[0][0].toInt() : -1;
    };
    // The writer flushes within a quarter of a second, and the reader sees it.
    int counted = 0;
    for (int i = 0; i < 100 && (counted = count(second)) != 203; ++i) QTest::qWait(50);
    QCOMPARE(counted, 203);
    QVERIFY_LOOP(first);
    QVERIFY_LOOP(second);
  }

  void brokenFilesAreListedWithTheirPlaces() {
    QFile good(bundledModels()[0].model);
    QVERIFY(good.open(QIODevice::ReadOnly));
    const QByteArray bytes = good.readAll();
    const auto write = [this](const char* name, const QByteArray& content) {
      const QString path = folder_.filePath(QLatin1String(name));
      QFile file(path);
      if (file.open(QIODevice::WriteOnly)) file.write(content);
      return path;
    };
    WindowDriver w;
    const auto refused = [&](const QString& path) {
      SetUpDialog* dialog = w.open(path);
      if (!dialog) return !w.failure().isEmpty();
      const bool shown = !dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->isEnabled();
      dialog->reject();
      return shown;
    };
    QVERIFY(refused(write("cut.onnx", bytes.left(bytes.size() / 2))));
    QVERIFY(refused(write("empty.onnx", {})));
    QVERIFY(refused(write("text.onnx", QByteArray(5000, 'x'))));
    QVERIFY(refused(folder_.path()));
    QVERIFY(refused(QStringLiteral("/nowhere/none.onnx")));
    QVERIFY(refused(write("not_a_database.stepscope", QByteArray(4096, '\x7f'))));
    QByteArray many = bytes;
    for (qsizetype i = 0; i < many.size(); i += 97) many[i] = static_cast<char>(many[i] ^ 0x55);
    QVERIFY(refused(write("noise.onnx", many)));

    // Names that lead nowhere: the file is read, its problems are listed, each with its place.
    QByteArray dangling = bytes;
    const qsizetype at = dangling.indexOf("image");
    QVERIFY(at > 0);
    dangling[at] = 'I';  // the first use; the input keeps its name
    ModelPtr refusedModel;
    const auto watch = QObject::connect(&w->session(), &ModelSession::notRead,
                                        [&refusedModel](const ModelPtr& model) { refusedModel = model; });
    SetUpDialog* dialog = w.open(write("dangling.onnx", dangling));
    QObject::disconnect(watch);
    QVERIFY2(dialog, qPrintable(w->notice().text()));
    QVERIFY(refusedModel && refusedModel->problems_size() > 0);
    QVERIFY2(!w->store().model(), "what was not read is not open");
    for (const auto& problem : refusedModel->problems()) {
      QVERIFY(!problem.message().empty());
      QVERIFY(!problem.where().empty());
    }
    QVERIFY(!dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->isEnabled());
    bool listed = false;
    for (const auto* view : dialog->findChildren<QAbstractItemView*>()) {
      for (int r = 0; view->isVisibleTo(dialog) && r < view->model()->rowCount(); ++r)
        listed = listed ||
                 view->model()->index(r, 0).data().toString() == QString::fromStdString(refusedModel->problems(0).where());
    }
    QVERIFY2(listed, "the problem stands in the visible list");
    dialog->reject();

    // And a sound one afterwards.
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY_LOOP(w);
  }
};

SS_QT_CLASS(WatchedApplication, ScenarioTest)
#include "tst_scenarios.moc"
