// SPDX-License-Identifier: GPL-3.0-or-later
// The Streams view with the real worker on the emulated device: nodes are dragged from stream to stream, applied, tried next
// to the automatic plan, and read from a file.
#include <QFile>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"
#include "views/streams/streams_view.h"

using namespace stepscope;

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

QString option(const SnapshotStore& store, const std::string& name) {
  for (const auto& o : store.options())
    if (o.name() == name) return QString::fromStdString(o.value());
  return {};
}

// The view in the middle of the window, as a person uses it.
struct Streams {
  explicit Streams(WindowDriver& driver) : w(driver) {
    w.loop().act([&] { w->board().move(QStringLiteral("streams"), Area::kCentre); });
    view = static_cast<StreamsView*>(w.view(QStringLiteral("streams")));
  }
  const StreamPicture& picture() const { return *view->canvas().picture(); }
  QString summary() const { return view->findChild<QLabel*>(QStringLiteral("streams_summary"))->text(); }
  QPushButton* button(const char* name) const { return view->findChild<QPushButton*>(QLatin1String(name)); }
  void click(const char* name) {
    w.loop().act([&] { button(name)->click(); });
  }
  // A node of the longest chain that can be dragged, and whose box is wide enough to be taken.
  int movable() const {
    int best = -1;
    for (const int i : picture().schedule.critical)
      if (picture().movable[at(i)] && view->canvas().instructionAt(view->canvas().rectOf(i).center()) == i &&
          (best < 0 || view->canvas().rectOf(i).width() > view->canvas().rectOf(best).width()))
        best = i;
    return best;
  }
  void drag(int instruction, int stream) {
    StreamsCanvas& canvas = view->canvas();
    const QPointF from = canvas.rectOf(instruction).center();
    QPoint to = from.toPoint();
    for (int y = 0; y < canvas.height(); ++y)
      if (canvas.streamAt(QPointF(from.x(), y)) == stream) to.setY(y);
    to.ry() -= 6;
    w.loop().act([&] {
      QTest::mousePress(&canvas, Qt::LeftButton, {}, from.toPoint());
      QTest::mouseMove(&canvas, (from.toPoint() + to) / 2);
      QTest::mouseMove(&canvas, to);
      QTest::mouseRelease(&canvas, Qt::LeftButton, {}, to);
    });
  }
  WindowDriver& w;
  StreamsView* view = nullptr;
};

// Through the action and its dialog.
bool load(WindowDriver& w, const QString& path) {
  w.loop().act([&] { w->actions()[QStringLiteral("load_streams")]->trigger(); });
  QFileDialog* dialog = nullptr;
  if (!w.loop().wait(
          [&] {
            for (auto* one : w->findChildren<QFileDialog*>())
              if (one->isVisible() && one->windowTitle() == QStringLiteral("Streams")) dialog = one;
            return dialog != nullptr;
          },
          5'000))
    return false;
  dialog->findChild<QLineEdit*>()->setText(path);
  w.loop().act([dialog] { QMetaObject::invokeMethod(dialog, "accept"); });
  return true;
}

// Instruction i of the plan reads buffers `in` and writes `out`.
void add(snapshot::Plan& plan, std::vector<int> in, int out) {
  auto* instruction = plan.add_instructions();
  for (const int b : in) instruction->add_inputs()->set_buffer(b);
  instruction->add_outputs()->set_buffer(out);
}

}  // namespace

class StreamsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    applyTheme(*qApp, Theme::kLight);
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
  }

  // 0 → 1 and 0 → 2, both → 3; then 4 writes what 1 read.
  void aScheduleOrdersWhatTouchesTheSameMemory() {
    snapshot::Plan plan;
    for (int b = 0; b < 5; ++b) {
      plan.add_buffers()->set_index(b);
      plan.mutable_buffers(b)->set_shares(-1);
    }
    add(plan, {}, 0);
    add(plan, {0}, 1);
    add(plan, {0}, 2);
    add(plan, {1, 2}, 3);
    add(plan, {}, 0);
    const auto snapshot = PlanSnapshot::make(plan);
    const std::vector<std::int64_t> ns{10, 20, 50, 5, 1};
    const auto one = StreamSchedule::of(*snapshot, {0, 0, 0, 0, 0}, 2, ns);
    QCOMPARE(one.totalNs, 86);
    QCOMPARE(one.waits.size(), 0U);
    QCOMPARE(one.critical.size(), 5U);
    const auto two = StreamSchedule::of(*snapshot, {0, 0, 1, 0, 0}, 2, ns);
    QCOMPARE(two.totalNs, 66);       // 10 + 50 + 5 + 1
    QCOMPARE(two.waits.size(), 2U);  // 2 waits for 0, and 3 for 2, by which 4 comes behind 2
    QCOMPARE(two.waits[1].from, 2);
    QCOMPARE(two.waits[1].to, 3);
    QCOMPARE(two.critical, (std::vector<int>{0, 2, 3, 4}));
    const auto late = StreamSchedule::of(*snapshot, {0, 0, 1, 1, 0}, 2, ns);
    QCOMPARE(late.waits.size(), 3U);  // 2 for 0, 3 for 1, and 4 for 2, which reads what it writes
    QCOMPARE(late.waits[2].from, 2);
    QCOMPARE(late.waits[2].to, 4);
  }

  void aPlanOfTheCpuSaysWhatWouldFillTheView() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY(w.view(QStringLiteral("streams"))->emptyText().contains(QStringLiteral("option device = cuda, or emulated")));
  }

  void nodesAreDraggedAppliedAndTriedNextToTheAutomaticPlan() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0], {{"device", "emulated"}, {"cuda.streams", "3"}}), w);
    w.loop().act([&] { w->session().train(1); });  // a step that is walked tells no times of the device
    QVERIFY(w.settled());
    Streams s(w);
    QVERIFY(s.view->emptyText().isEmpty());
    QCOMPARE(s.picture().streams, 3);
    QVERIFY2(s.summary().contains(QStringLiteral("times of step 0")), qPrintable(s.summary()));
    QVERIFY(!s.button("streams_apply")->isEnabled());
    QVERIFY(!s.button("streams_try")->isEnabled());

    const int moved = s.movable();
    QVERIFY(moved >= 0);
    const int node = w->store().plan()->instruction(moved)->node();
    const std::string name = w->store().graph()->node(node)->name();
    const int before = s.picture().schedule.places[at(moved)].lane, target = before == 0 ? 1 : 0;
    const std::size_t waits = s.picture().schedule.waits.size();
    s.drag(moved, target);
    QCOMPARE(s.picture().schedule.places[at(moved)].lane, target);
    QVERIFY(s.picture().schedule.waits.size() != waits);
    QVERIFY2(s.summary().contains(QStringLiteral("moved: 1; the plan takes")), qPrintable(s.summary()));
    QCOMPARE(w->selection().selection().instruction, moved);

    // The keyboard does the same, and back.
    const int other = target == 0 ? 1 : 0;
    w.loop().act([&] { QTest::keyClick(&s.view->canvas(), target == 0 ? Qt::Key_Down : Qt::Key_Up, Qt::AltModifier); });
    QCOMPARE(s.picture().schedule.places[at(moved)].lane, other);
    w.loop().act([&] { QTest::keyClick(&s.view->canvas(), target == 0 ? Qt::Key_Up : Qt::Key_Down, Qt::AltModifier); });
    QCOMPARE(s.picture().schedule.places[at(moved)].lane, target);
    w.picture(QStringLiteral("streams-moved"));

    s.click("streams_apply");
    QVERIFY(w.settled());
    QVERIFY(!option(w->store(), "streams.partition").isEmpty());
    const auto streamOfIt = [&]() -> int {
      for (const auto& in : w->store().plan()->plan().instructions())
        if (const auto* of = w->store().graph()->node(in.node());
            of && of->name() == name && in.kind() == snapshot::KIND_KERNEL)
          return in.stream();
      return -1;
    };
    QCOMPARE(streamOfIt(), target);
    const auto* proof = s.view->findChild<QLabel*>(QStringLiteral("streams_proof"));
    QVERIFY(w.loop().wait([&] { return proof->text().contains(QStringLiteral("bit")); }, 20'000));
    QVERIFY(!s.button("streams_apply")->isEnabled());
    QVERIFY(w.act("step_whole"));

    s.click("streams_try");
    const OptionTrials& trials = w->store().findings().trials();
    QVERIFY(w.loop().wait([&] { return trials.report().trials_size() > 0 && !trials.running(); }, 120'000));
    QVERIFY(w.settled());
    const auto& tried = trials.report().trials();
    QVERIFY(
        std::any_of(tried.begin(), tried.end(), [](const auto& trial) { return trial.option() == "streams.partition"; }));

    QVERIFY(w.act("undo"));
    QVERIFY(w.settled());
    QVERIFY(option(w->store(), "streams.partition").isEmpty());
    QCOMPARE(streamOfIt(), before);
    QVERIFY_LOOP(w);
  }

  void aFileIsReadAndAWrongOneIsRefused() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0], {{"device", "emulated"}, {"cuda.streams", "3"}}), w);
    Streams s(w);
    const int moved = s.movable();
    QVERIFY(moved >= 0);
    const int target = s.picture().schedule.places[at(moved)].lane == 0 ? 1 : 0;
    s.drag(moved, target);
    QTemporaryDir place;
    const QString path = place.filePath(QStringLiteral("streams.json")),
                  wrong = place.filePath(QStringLiteral("wrong.json"));
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(s.view->partitionText().toUtf8()) > 0);
    file.close();
    s.click("streams_reset");
    QVERIFY(!s.summary().contains(QStringLiteral("moved")));
    QVERIFY(load(w, path));
    QVERIFY(w.settled());
    QCOMPARE(w->store().plan()->instruction(moved)->stream(), target);
    QFile bad(wrong);
    QVERIFY(bad.open(QIODevice::WriteOnly) && bad.write("{\"streams\": 99, \"nodes\": {}}") > 0);
    bad.close();
    QVERIFY(load(w, wrong));
    QVERIFY(w.loop().wait([&] { return w->notice().text().contains(QStringLiteral("expected a whole number from 1 to 8")); },
                          20'000));
    QCOMPARE(w->store().plan()->instruction(moved)->stream(), target);
    s.click("streams_automatic");
    QVERIFY(w.settled());
    QVERIFY(option(w->store(), "streams.partition").isEmpty());
    QVERIFY_LOOP(w);
  }
};

SS_QT_CLASS(QApplication, StreamsTest)
#include "tst_streams.moc"
