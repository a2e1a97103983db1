// SPDX-License-Identifier: GPL-3.0-or-later
// The window without a mouse: every key of the key table does what it says, layouts are kept, taken back and reset, and a
// dropped file opens.
#include <QAbstractItemView>
#include <QDropEvent>
#include <QElapsedTimer>
#include <QFileDialog>
#include <QInputDialog>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMimeData>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>
#include <map>
#include <set>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/graph/graph_view.h"
#include "views/key_help/key_help.h"
#include "views/open_dialog/set_up_dialog.h"
#include "views/timeline/timeline_view.h"

using namespace stepscope;

namespace {

constexpr Qt::KeyboardModifiers kCtrlShift = Qt::ControlModifier | Qt::ShiftModifier;

template <typename Dialog>
Dialog* shown(MainWindow& window) {
  for (auto* dialog : window.findChildren<Dialog*>()) {
    if (dialog->isVisible()) return dialog;
  }
  return nullptr;
}

}  // namespace

class KeysTest : public QObject {
  Q_OBJECT

  std::unique_ptr<WindowDriver> w_;

  MainWindow& window() { return **w_; }
  // What a person does: the key goes to whoever has the keyboard.
  bool press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QApplication::setActiveWindow(&window());
    w_->loop().act([&] {
      QWidget* focus = QApplication::focusWidget();
      QTest::keyClick(focus && window().isAncestorOf(focus) ? focus : &window(), key, modifiers);
    });
    return w_->settled();
  }
  GraphView& graph() { return *static_cast<GraphView*>(w_->view(QStringLiteral("graph"))); }
  bool laidOut() {
    return w_->loop().wait([this] { return !graph().busy(); }) && w_->settled();
  }
  template <typename Dialog>
  bool appears(Dialog** dialog) {
    return w_->loop().wait([&] { return (*dialog = shown<Dialog>(window())) != nullptr; }, 10'000);
  }

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }
  void init() {
    w_ = std::make_unique<WindowDriver>();
    QVERIFY_DONE(w_->build(bundledModels()[1]), *w_);
    QApplication::setActiveWindow(&window());
    w_->view(QStringLiteral("graph"));
    graph().canvas().setFocus();
    QVERIFY(laidOut());
  }
  void cleanup() { w_.reset(); }

  void stepping() {
    const auto& plan = window().store().plan()->plan();
    const auto at = [this] { return w_->instruction(); };
    QVERIFY(press(Qt::Key_F10));
    QCOMPARE(at(), 1);
    QVERIFY(press(Qt::Key_F10));
    QVERIFY(press(Qt::Key_F10, Qt::ShiftModifier));
    QCOMPARE(at(), 1);
    QVERIFY(press(Qt::Key_F7));
    QCOMPARE(at(), plan.first_backward());
    QVERIFY(press(Qt::Key_F7, Qt::ShiftModifier));
    QCOMPARE(at(), 0);
    QVERIFY(press(Qt::Key_F8));
    QCOMPARE(window().store().steps().size(), std::size_t{1});
    QVERIFY(!window().store().position().in_step());
    // A breakpoint on the selected instruction, from both sides.
    QVERIFY(w_->select(Selection::ofInstruction(5)));
    QVERIFY(press(Qt::Key_F9));
    QVERIFY(press(Qt::Key_F5));
    QCOMPARE(at(), 5);
    QVERIFY(w_->select(Selection::ofInstruction(20)));
    QVERIFY(press(Qt::Key_F10, Qt::ControlModifier));
    QCOMPARE(at(), 20);
    QVERIFY(press(Qt::Key_F5, Qt::ShiftModifier));
    QCOMPARE(at(), 5);
    QVERIFY(w_->select(Selection::ofInstruction(5)));
    QVERIFY(press(Qt::Key_F9));
    QVERIFY(press(Qt::Key_F5, Qt::ShiftModifier));
    QCOMPARE(at(), 0);
    QVERIFY_LOOP(*w_);
  }

  // Keys that come faster than the worker answers: each press is a step, in the order they were pressed.
  void noPressIsLost() {
    QApplication::setActiveWindow(&window());
    // The keys of one turn of the loop: what is sent through QTest lets the worker answer in between.
    const auto keys = [this](const char* action, int count, bool held = false) {
      QKeyEvent before(QEvent::ShortcutOverride, Qt::Key_F10, Qt::NoModifier, QString(), held);
      QCoreApplication::sendEvent(&graph().canvas(), &before);
      for (int i = 0; i < count; ++i) window().actions()[QLatin1String(action)]->trigger();
    };
    w_->loop().act([&] { keys("step", 10); });
    QVERIFY(w_->settled());
    QCOMPARE(w_->instruction(), 10);
    w_->loop().act([&] {
      keys("step", 1);
      keys("step_back", 4);
    });
    QVERIFY(w_->settled());
    QCOMPARE(w_->instruction(), 7);
    // More of them than there is way back; then on.
    w_->loop().act([&] {
      keys("step_back", 12);
      keys("step", 3);
    });
    QVERIFY(w_->settled());
    QCOMPARE(w_->instruction(), 3);
    // Whole steps, and into the next one.
    w_->loop().act([&] {
      keys("step_whole", 3);
      keys("step", 1);
    });
    QVERIFY(w_->settled());
    QCOMPARE(window().store().steps().size(), std::size_t{3});
    QCOMPARE(w_->instruction(), 1);
    // Esc drops those that wait.
    w_->loop().act([&] {
      keys("step", 20);
      QVERIFY(window().session().stepping());
      window().session().pause();
    });
    QVERIFY(w_->settled());
    QVERIFY2(w_->instruction() <= 2, qPrintable(QString::number(w_->instruction())));
    QVERIFY(!window().session().stepping());
    // A key that is held goes as fast as the worker, and stops when it is let go.
    const int at = w_->instruction();
    w_->loop().act([&] { keys("step", 10, true); });
    QVERIFY(w_->settled());
    QCOMPARE(w_->instruction(), at + 1);
    w_->loop().forget();  // nobody presses so many keys in one turn
  }

  void selecting() {
    QVERIFY(w_->select(Selection::ofInstruction(3)));
    QVERIFY(w_->select(Selection::ofInstruction(7)));
    const auto instruction = [this] { return window().selection().selection().instruction; };
    QVERIFY(press(Qt::Key_Left, Qt::AltModifier));
    QCOMPARE(instruction(), 3);
    QVERIFY(press(Qt::Key_Right, Qt::AltModifier));
    QCOMPARE(instruction(), 7);
    QVERIFY(press(Qt::Key_Right, Qt::ControlModifier));
    QCOMPARE(instruction(), 8);
    QVERIFY(press(Qt::Key_Left, Qt::ControlModifier));
    QCOMPARE(instruction(), 7);
    // By number.
    QVERIFY(press(Qt::Key_G, Qt::ControlModifier));
    QInputDialog* number = nullptr;
    QVERIFY(appears(&number));
    number->setIntValue(12);
    w_->loop().act([number] { QTest::keyClick(number->findChild<QSpinBox*>(), Qt::Key_Return); });
    QVERIFY(w_->settled());
    QCOMPARE(instruction(), 12);
    // One that is not there is not another one: what was typed stays, and cannot be confirmed.
    QVERIFY(press(Qt::Key_G, Qt::ControlModifier));
    QVERIFY(appears(&number));
    auto* typed = number->findChild<QSpinBox*>();
    w_->loop().act([typed] {
      typed->selectAll();
      QTest::keyClicks(typed, QStringLiteral("99999"));
    });
    QCOMPARE(number->intValue(), 99999);
    const QString last = format::count(window().store().plan()->size() - 1);
    QVERIFY2(number->labelText().contains(QStringLiteral("0 to ") + last), qPrintable(number->labelText()));
    w_->loop().act([typed] { QTest::keyClick(typed, Qt::Key_Return); });
    QVERIFY(number->isVisible());
    QVERIFY2(number->labelText().contains(QStringLiteral("not 99,999")), qPrintable(number->labelText()));
    QCOMPARE(instruction(), 12);
    w_->loop().act([typed] { QTest::keyClick(typed, Qt::Key_Escape); });
    // By name.
    QVERIFY(press(Qt::Key_P, Qt::ControlModifier));
    auto* palette = window().findChild<QWidget*>(QStringLiteral("palette"));
    auto* box = window().findChild<QLineEdit*>(QStringLiteral("palette_box"));
    QVERIFY(palette->isVisible() && box->hasFocus());
    w_->loop().act([box] { QTest::keyClicks(box, QStringLiteral("Gelu")); });
    auto* list = palette->findChild<QListWidget*>();
    QVERIFY(w_->loop().wait([list] { return list->count() > 0; }));
    QVERIFY(press(Qt::Key_Return));
    QVERIFY(!palette->isVisible());
    const auto* node = window().store().graph()->node(window().selection().selection().node);
    QVERIFY(node && QString::fromStdString(node->op()).startsWith(QStringLiteral("Gelu")));
    // Commands, and SQL.
    QVERIFY(press(Qt::Key_P, kCtrlShift));
    QCOMPARE(box->text(), QStringLiteral(">"));
    w_->loop().act([box] { QTest::keyClicks(box, QStringLiteral("runs")); });
    QCOMPARE(list->item(0)->text(), QStringLiteral("Runs"));  // not "Run", whose description has the word
    QVERIFY(list->count() > 1);
    QVERIFY(press(Qt::Key_Escape));
    QVERIFY(!palette->isVisible());
    QVERIFY(press(Qt::Key_P, Qt::ControlModifier));
    w_->loop().act([box] { QTest::keyClicks(box, QStringLiteral(":SELECT 1")); });
    QVERIFY(press(Qt::Key_Return));
    QVERIFY(window().board().find(QStringLiteral("sql"))->isVisible());
    // The filter of the view that has the keyboard.
    w_->view(QStringLiteral("instructions"))->setFocus();
    QVERIFY(press(Qt::Key_F, Qt::ControlModifier));
    QVERIFY(window().findChild<QLineEdit*>(QStringLiteral("instruction_filter"))->hasFocus());
    // And there a letter is a letter.
    QVERIFY(press(Qt::Key_F));
    QCOMPARE(window().findChild<QLineEdit*>(QStringLiteral("instruction_filter"))->text(), QStringLiteral("f"));
    QVERIFY_LOOP(*w_);
  }

  // The same key, pressed again, goes round the gradients of a node: of its input, of its weight, and back to the first.
  void theGradientsOfANodeOneAfterTheOther() {
    const GraphSnapshot& graph = *window().store().graph();
    int forward = -1;
    std::vector<int> gradients;
    for (const auto& node : graph.graph().nodes()) {
      std::vector<int> found;
      for (const int id : graph.mirrored(node.id()))
        if (graph.node(id)->phase() == snapshot::BACKWARD) found.push_back(id);
      if (node.phase() != snapshot::FORWARD || found.size() <= gradients.size()) continue;
      forward = node.id();
      gradients = found;
    }
    QVERIFY(gradients.size() >= 2);
    QVERIFY(w_->select(Selection::ofNode(forward)));
    const auto node = [this] { return window().selection().selection().node; };
    std::vector<int> seen;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      QVERIFY(press(Qt::Key_Down, Qt::ControlModifier));
      seen.push_back(node());
    }
    QCOMPARE(seen, gradients);
    const QString note = window().findChild<QLabel*>(QStringLiteral("status_note"))->toolTip();
    QVERIFY2(note.contains(QStringLiteral("Node %1 of the %1").arg(gradients.size())), qPrintable(note));
    QVERIFY(press(Qt::Key_Down, Qt::ControlModifier));
    QCOMPARE(node(), gradients.front());
    QVERIFY(press(Qt::Key_Up, Qt::ControlModifier));
    QCOMPARE(node(), forward);
  }

  void alertsOneAfterTheOther() {
    for (const int at : {4, 9}) {
      snapshot::Alert alert;
      alert.set_severity(snapshot::Alert::WARNING);
      alert.set_message("made up");
      alert.set_node(-1);
      alert.set_value(-1);
      alert.set_instruction(at);
      window().store().addAlert(alert);
    }
    std::set<int> seen;
    for (int i = 0; i < 2; ++i) {
      QVERIFY(press(Qt::Key_F6));
      seen.insert(window().selection().selection().instruction);
    }
    QCOMPARE(seen, (std::set<int>{4, 9}));
    QVERIFY(window().board().find(QStringLiteral("alerts"))->isVisible());
  }

  void intoAndOutOfGroups() {
    const auto kind = [this] {
      const auto& scene = *graph().canvas().scene();
      return scene.boxes[static_cast<std::size_t>(scene.boxOfNode[static_cast<std::size_t>(graph().canvas().selected())])]
          .kind;
    };
    const auto& plan = *window().store().plan();
    int deep = -1;
    for (int i = 0; i < plan.size() && deep < 0; ++i) {
      const auto* node = window().store().graph()->node(plan.instruction(i)->node());
      if (node && node->phase() == snapshot::FORWARD &&
          QString::fromStdString(node->provenance().module_path()).contains(QStringLiteral("h.1.mlp")))
        deep = i;
    }
    QVERIFY(deep >= 0);
    QVERIFY(w_->select(Selection::ofInstruction(deep)));
    QVERIFY(laidOut());
    QCOMPARE(kind(), BoxKind::kNode);
    graph().canvas().setFocus();
    QVERIFY(press(Qt::Key_F11, Qt::ShiftModifier));
    QVERIFY(laidOut());
    QCOMPARE(kind(), BoxKind::kClosedGroup);
    // Read at 100 %, it opens as a pair: the gradient beside it stays in the picture.
    GraphCanvas& canvas = graph().canvas();
    canvas.zoomBy(100 / canvas.zoomPercent());
    const auto openGroups = [&canvas] {
      std::multimap<int, QRectF> found;
      for (const int open : canvas.scene()->openGroups) {
        const SceneBox& box = canvas.scene()->boxes[static_cast<std::size_t>(open)];
        found.emplace(box.group, canvas.viewport().toPixel(QRectF(box.at.x, box.at.y, box.at.w, box.at.h)));
      }
      return found;
    };
    const auto before = openGroups();
    QVERIFY(press(Qt::Key_F11));
    QVERIFY(laidOut());
    int columns = 0;
    for (const auto& [group, at] : openGroups()) {
      if (before.contains(group)) continue;
      ++columns;
      QVERIFY2(at.left() >= 0 && at.right() <= canvas.width(),
               qPrintable(QStringLiteral("%1 to %2 of %3").arg(at.left()).arg(at.right()).arg(canvas.width())));
    }
    QCOMPARE(columns, 2);
    for (int i = 0; i < 3 && kind() != BoxKind::kNode; ++i) {
      QVERIFY(press(Qt::Key_F11));
      QVERIFY(laidOut());
    }
    QCOMPARE(kind(), BoxKind::kNode);
    // Whoever walks the list of instructions opens and closes what the graph shows of it.
    w_->view(QStringLiteral("instructions"))->findChild<QAbstractItemView*>()->setFocus();
    QVERIFY(press(Qt::Key_F11, Qt::ShiftModifier));
    QVERIFY(laidOut());
    QCOMPARE(kind(), BoxKind::kClosedGroup);
  }

  void lookingCloserAndAtAll() {
    QVERIFY(w_->select(Selection::ofInstruction(10)));
    QVERIFY(laidOut());
    graph().canvas().setFocus();
    QVERIFY(press(Qt::Key_Space));
    const double all = graph().canvas().zoomPercent();
    double close = 0, again = 0;
    for (int attempt = 0; attempt < 5; ++attempt) {
      QElapsedTimer timer;
      timer.start();
      w_->loop().act([&] {
        QTest::keyClick(&graph().canvas(), Qt::Key_F);
        close = graph().canvas().zoomPercent();
        QTest::keyClick(&graph().canvas(), Qt::Key_F);
        again = graph().canvas().zoomPercent();
      });
      // Two presses that a busy machine takes apart are no pair.
      if (timer.elapsed() < 500) break;
    }
    QVERIFY2(close > all, qPrintable(QStringLiteral("%1 %2").arg(close).arg(all)));
    QCOMPARE(again, all);
    // Space presses the button that has the keyboard.
    auto* edges = window().findChild<QToolButton*>(QStringLiteral("graph_all_edges"));
    edges->setFocusPolicy(Qt::StrongFocus);
    edges->setFocus();
    QVERIFY(edges->hasFocus() && !edges->isChecked());
    QVERIFY(press(Qt::Key_Space));
    QVERIFY(edges->isChecked());
    w_->loop().act([this] { graph().canvas().zoomBy(2); });
    edges->setFocus();
    QVERIFY(press(Qt::Key_Space));
    QVERIFY(graph().canvas().zoomPercent() > 1.5 * all);
  }

  void theTimeline() {
    QVERIFY(press(Qt::Key_F8));
    auto* timeline = static_cast<TimelineView*>(w_->view(QStringLiteral("timeline")));
    TimelineCanvas& canvas = timeline->canvas();
    QVERIFY(w_->loop().wait([&] { return canvas.model() && !canvas.model()->steps().empty() && canvas.isVisible(); }));
    canvas.setFocus();
    const auto span = [&] { return canvas.viewEnd() - canvas.viewBegin(); };
    const double whole = span();
    QVERIFY(press(Qt::Key_W));
    QVERIFY(span() < whole);
    const double begin = canvas.viewBegin();
    QVERIFY(press(Qt::Key_D));
    QVERIFY(canvas.viewBegin() > begin);
    QVERIFY(press(Qt::Key_A));
    QCOMPARE(canvas.viewBegin(), begin);
    QVERIFY(press(Qt::Key_S));
    QVERIFY(span() > whole * 0.9);
    // The mark is the time of the selected instruction, and goes with a second press.
    QVERIFY(w_->select(Selection::ofInstruction(4)));
    canvas.setFocus();
    QVERIFY(press(Qt::Key_M));
    const auto marked = [this] { return window().selection().rangeEnd() - window().selection().rangeBegin(); };
    QCOMPARE(marked(), window().store().timing(4).ns);
    QVERIFY(press(Qt::Key_M));
    QCOMPARE(marked(), 0);
  }

  void layoutsAreTakenBackKeptAndReset() {
    PanelBoard& board = window().board();
    const auto visible = [&](const char* id) {
      const View* view = board.find(QLatin1String(id));
      return view && view->isVisible();
    };
    QVERIFY(visible("instructions"));
    QVERIFY(press(Qt::Key_4, Qt::ControlModifier));
    QVERIFY(visible("buffers") && !visible("instructions"));
    QVERIFY(press(Qt::Key_Z, Qt::ControlModifier));
    QVERIFY(visible("instructions") && !visible("buffers"));
    QVERIFY(press(Qt::Key_Z, kCtrlShift));
    QVERIFY(visible("buffers"));
    // A view moved and closed.
    QVERIFY(press(Qt::Key_2, Qt::ControlModifier));
    w_->loop().act([&] { board.move(QStringLiteral("instructions"), Area::kRight); });
    w_->loop().act([&] { board.close(QStringLiteral("memory")); });
    QVERIFY(!board.isInLayout(QStringLiteral("memory")));
    QVERIFY(press(Qt::Key_Z, Qt::ControlModifier));
    QVERIFY(board.isInLayout(QStringLiteral("memory")));
    const ViewLayout moved = board.present({});
    QVERIFY(moved.views[static_cast<std::size_t>(Area::kRight)].contains(QStringLiteral("instructions")));
    // Saved under a name, and found again.
    w_->loop().act([&] { window().actions()[QStringLiteral("layout_save")]->trigger(); });
    QInputDialog* dialog = nullptr;
    QVERIFY(appears(&dialog));
    dialog->setTextValue(QStringLiteral("Mine"));
    w_->loop().act([&] { dialog->accept(); });
    QVERIFY(window().layoutNames().contains(QStringLiteral("Mine")));
    QVERIFY(press(Qt::Key_1, Qt::ControlModifier));
    w_->loop().act([&] { window().changeLayout(QStringLiteral("Mine")); });
    QCOMPARE(board.present({}).views, moved.views);
    // A shipped one that was kept in another shape is as it was shipped after a reset.
    QVERIFY(press(Qt::Key_2, Qt::ControlModifier));
    w_->loop().act([&] { board.close(QStringLiteral("memory")); });
    w_->loop().act([&] { window().actions()[QStringLiteral("layout_reset")]->trigger(); });
    QVERIFY(board.isInLayout(QStringLiteral("memory")));
    // A saved one is as it was saved, until it is deleted.
    const auto trigger = [this](const char* id) {
      w_->loop().act([this, id] { window().actions()[QLatin1String(id)]->trigger(); });
    };
    QVERIFY(!window().actions()[QStringLiteral("layout_delete")]->isEnabled());
    w_->loop().act([&] { window().changeLayout(QStringLiteral("Mine")); });
    w_->loop().act([&] { board.close(QStringLiteral("graph")); });
    trigger("layout_reset");
    QCOMPARE(board.present({}).views, moved.views);
    trigger("layout_delete");
    QVERIFY(!window().layoutNames().contains(QStringLiteral("Mine")));
    QCOMPARE(board.present({}).views, shippedLayouts()[1].views);
    QVERIFY_LOOP(*w_);
  }

  // Training no step at all cannot be asked for.
  void theNumberOfStepsBeginsWithOne() {
    QVERIFY(press(Qt::Key_F5, Qt::ControlModifier));
    QInputDialog* number = nullptr;
    QVERIFY(appears(&number));
    QVERIFY2(number->labelText().contains(QStringLiteral("1 to 1,000,000")), qPrintable(number->labelText()));
    number->setIntValue(0);
    auto* typed = number->findChild<QSpinBox*>();
    w_->loop().act([typed] { QTest::keyClick(typed, Qt::Key_Return); });
    QVERIFY(number->isVisible());
    QVERIFY2(number->labelText().contains(QStringLiteral("not 0")), qPrintable(number->labelText()));
    w_->loop().act([typed] { QTest::keyClick(typed, Qt::Key_Escape); });
  }

  void boxesOpenAndEscapeClosesThem() {
    QVERIFY(press(Qt::Key_O, Qt::ControlModifier));
    QFileDialog* files = nullptr;
    QVERIFY(appears(&files));
    w_->loop().act([files] { QTest::keyClick(files, Qt::Key_Escape); });
    QVERIFY(w_->loop().wait([this] { return shown<QFileDialog>(window()) == nullptr; }));
    QVERIFY(press(Qt::Key_E, Qt::ControlModifier));
    QVERIFY(appears(&files));
    QCOMPARE(files->objectName(), QStringLiteral("save_dialog"));
    w_->loop().act([files] { QTest::keyClick(files, Qt::Key_Escape); });
    QVERIFY(w_->loop().wait([this] { return shown<QFileDialog>(window()) == nullptr; }));
    // From the line that filters a view, too.
    View* instructions = w_->view(QStringLiteral("instructions"));
    QApplication::setActiveWindow(&window());
    instructions->find();
    QVERIFY(qobject_cast<QLineEdit*>(QApplication::focusWidget()) &&
            instructions->isAncestorOf(QApplication::focusWidget()));
    QVERIFY(press(Qt::Key_E, Qt::ControlModifier));
    QVERIFY(appears(&files));
    QVERIFY(files->windowTitle().contains(instructions->title()));
    w_->loop().act([files] { QTest::keyClick(files, Qt::Key_Escape); });
    QVERIFY(w_->loop().wait([this] { return shown<QFileDialog>(window()) == nullptr; }));
    graph().canvas().setFocus();
    QVERIFY(press(Qt::Key_Question));
    KeyHelp* keys = nullptr;
    QVERIFY(appears(&keys));
    QVERIFY(press(Qt::Key_F1));
    int open = 0;
    for (auto* help : window().findChildren<KeyHelp*>()) open += help->isVisible();
    QCOMPARE(open, 1);
    w_->loop().act([keys] { QTest::keyClick(keys, Qt::Key_Escape); });
    QVERIFY(w_->loop().wait([this] { return shown<KeyHelp>(window()) == nullptr; }));
    window().notice().showProblem(QStringLiteral("made up"), {}, {});
    graph().canvas().setFocus();
    window().selection().clear();
    QVERIFY(press(Qt::Key_Escape));
    QVERIFY(!window().notice().isVisible());
  }

  void aDroppedFileOpens() {
    const auto drop = [this](const QString& path) {
      QMimeData data;
      data.setUrls({QUrl::fromLocalFile(path)});
      QDragEnterEvent enter({100, 100}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
      QApplication::sendEvent(&window(), &enter);
      QDropEvent event({100, 100}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
      w_->loop().act([&] { QApplication::sendEvent(&window(), &event); });
      return enter.isAccepted();
    };
    QVERIFY(drop(bundledModels()[0].model));
    SetUpDialog* dialog = nullptr;
    QVERIFY(appears(&dialog));
    w_->loop().act([dialog] { dialog->reject(); });
    QVERIFY(w_->settled());
    // What is no model says so, and the window goes on.
    QTemporaryDir folder;
    const QString path = folder.filePath(QStringLiteral("notes.txt"));
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("no model\n");
    file.close();
    QVERIFY(drop(path));
    QVERIFY(w_->loop().wait([this] { return window().notice().isProblem(); }));
    QVERIFY2(window().notice().text().contains(QStringLiteral("notes.txt")), qPrintable(window().notice().text()));
    QVERIFY_DONE(w_->build(bundledModels()[0]), *w_);
    QVERIFY(press(Qt::Key_F10));
    QCOMPARE(w_->instruction(), 1);
  }
};

SS_QT_CLASS(WatchedApplication, KeysTest)
#include "tst_keys.moc"
