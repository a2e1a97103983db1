// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures of the window for scripts/screenshots: workbench_pictures FOLDER [light|dark] [NAME…]. At a scale of 1 every
// layout, every view, dialogs, empty and failed states at 1280×800; at any other scale (QT_SCALE_FACTOR), on a screen
// of 3840×2160, the layouts. Names choose pictures by their first letters ("layout", "view-graph", "dead"), at any scale.
#include <signal.h>

#include <QDialog>
#include <QElapsedTimer>
#include <QFile>
#include <QLineEdit>
#include <QProcess>
#include <QPushButton>
#include <QSlider>
#include <QSpinBox>
#include <QTableView>
#include <QTest>
#include <QToolButton>
#include <cstdio>

#include "app/workbench/exports.h"
#include "app/workbench/view_list.h"
#include "tests/workbench/window_driver.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"
#include "views/graph/graph_view.h"
#include "views/graph/phase_strip.h"
#include "views/open_dialog/set_up_dialog.h"
#include "views/streams/streams_view.h"
#include "views/timeline/timeline_canvas.h"

using namespace stepscope;

namespace {

QString folder;
QString theme;
QStringList wanted;
bool scaled = false;
QSize screen{1280, 800};
int failures = 0;

// Threads that lay out, bin or search have no common end: the picture is taken when two in a row are equal.
void rest(WindowDriver& w, QWidget& widget) {
  QImage before;
  for (int i = 0; i < 60; ++i) {
    QElapsedTimer timer;
    timer.start();
    w.loop().wait([&timer] { return timer.elapsed() > 120; });
    w.settled();
    QImage now = widget.grab().toImage();
    if (i > 1 && now == before) return;
    before = std::move(now);
  }
}

bool wants(const QString& name) {
  if (wanted.isEmpty()) return true;
  return std::any_of(wanted.begin(), wanted.end(), [&name](const QString& w) { return name.startsWith(w); });
}

void save(WindowDriver& w, QWidget& widget, const QString& name) {
  if (!wants(name)) return;
  rest(w, widget);
  const QString path = QStringLiteral("%1/%2-%3%4.png").arg(folder, name, theme, scaled ? QStringLiteral("-4k") : QString());
  if (!widget.grab().save(path)) {
    std::fprintf(stderr, "error: picture '%s': cannot be written\n", qPrintable(path));
    ++failures;
  }
}

void check(bool done, const char* what, const WindowDriver& w) {
  if (done) return;
  std::fprintf(stderr, "error: %s: %s\n", what, qPrintable(w.failure()));
  ++failures;
}

// A run of three steps.
bool trained(WindowDriver& w, const std::string& rate) {
  if (!w.openBuilt(bundledModels()[1], {{"optimizer", "adamw"}, {"lr", rate}})) return false;
  w.loop().act([&] { w->session().train(3); });
  return w.settled();
}

// Three steps trained, the fourth stopped in the middle of backward, with the gradient of an activation selected.
bool atWork(WindowDriver& w) {
  if (!trained(w, "0.003")) return false;
  const auto& plan = w->store().plan()->plan();
  int place = plan.first_backward() + 8;
  for (int i = plan.first_backward(); i < plan.instructions_size(); ++i) {
    const auto* node = w->store().graph()->node(plan.instructions(i).node());
    if (!node || node->category() != "activation") continue;
    place = i;
    break;
  }
  w.loop().act([&] { w->session().toggleBreakpoint(plan.first_backward() - 2); });
  w.settled();
  w.loop().act([&] { w->session().runTo(place + 1); });
  w.settled();
  w.select(Selection::ofInstruction(place));
  return w.settled();
}

void layouts(WindowDriver& w) {
  for (const ViewLayout& layout : shippedLayouts()) {
    const QString name = QStringLiteral("layout-") + layout.name.toLower();
    if (!wants(name)) continue;
    w.loop().act([&] { w->applyLayout(layout.name); });
    save(w, *w, name);
  }
}

// Every view alone, as wide as the centre of a layout.
void views(WindowDriver& w) {
  for (const ViewEntry& entry : viewList()) {
    const QString id = QLatin1String(entry.id), name = QStringLiteral("view-") + id;
    if (id == u"start" || !wants(name)) continue;
    View* view = w.view(id);
    w.loop().act([&] { w->board().move(id, Area::kCentre); });
    if (id == u"sql") emit w->wishes().sql(QStringLiteral("SELECT step, loss, ns, peak_bytes FROM steps"));
    // Where the keyboard happens to be is no part of the view.
    if (QWidget* focus = QApplication::focusWidget()) focus->clearFocus();
    if (view) save(w, *w, name);
    w.loop().act([&] { w->applyLayout(QStringLiteral("Step")); });
  }
}

void dialogs(WindowDriver& w) {
  if (wants(QStringLiteral("palette"))) {
    w.act("palette");
    save(w, *w, QStringLiteral("palette"));
    w.loop().act([&] { w->findChild<QWidget*>(QStringLiteral("palette"))->hide(); });
  }
  if (theme == u"light" && wants(QStringLiteral("report"))) {
    w->recording().queries().report(folder + QStringLiteral("/report.pdf"));
    w.loop().wait([&w] { return w->recording().idle(); });
  }
  if (wants(QStringLiteral("keys"))) {
    w.act("keys");
    if (auto* keys = w->findChild<QWidget*>(QStringLiteral("key_help"))) {
      save(w, *keys, QStringLiteral("keys"));
      keys->close();
    }
  }
}

void beforeAModel() {
  WindowDriver w(screen);
  std::vector<FileEntry> files;
  for (const TestModel& model : bundledModels()) files.push_back({model.model, {}, true});
  w->store().project().setFiles(std::move(files));
  save(w, *w, QStringLiteral("start"));
  if (wants(QStringLiteral("set-up"))) {
    if (SetUpDialog* dialog = w.open(bundledModels()[1].model)) {
      save(w, *dialog, QStringLiteral("set-up"));
      w.loop().act([dialog] { dialog->findChild<QLineEdit*>(QStringLiteral("set_up_data"))->clear(); });
      save(w, *dialog, QStringLiteral("set-up-synthetic"));
      dialog->reject();
      w.settled();
    }
  }
}

// Another set-up of a model that is at work: its panel takes the room of the views.
void setUpAgain() {
  if (!wants(QStringLiteral("again"))) return;
  WindowDriver w(screen);
  check(atWork(w), "again", w);
  w.act("configure");
  save(w, *w, QStringLiteral("again-set-up"));
}

// An element that is typed over, and a number that its type cannot hold.
void editing() {
  if (!wants(QStringLiteral("edit"))) return;
  WindowDriver w(screen);
  check(w.openBuilt(bundledModels()[0]) && w.act("step"), "edit", w);
  View* view = w.view(QStringLiteral("tensors"));
  auto* table = view->findChild<QTableView*>(QStringLiteral("tensor_elements"));
  const auto type = [&](const QString& name, const QString& text, bool enter) {
    for (const auto& v : w->store().graph()->graph().values())
      if (v.name() == name.toStdString()) w.select(Selection::ofValue(v.id()));
    w.loop().act([&] {
      table->setCurrentIndex(table->model()->index(0, std::min(1, table->model()->columnCount() - 1)));
      table->edit(table->currentIndex());
    });
    auto* field = table->findChild<QLineEdit*>(QStringLiteral("element_editor"));
    if (!field) return check(false, "edit", w);
    w.loop().act([&] {
      field->setText(text);
      if (enter) QTest::keyClick(field, Qt::Key_Return);
    });
    w.settled();
    save(w, *w, enter ? QStringLiteral("edit-refused") : QStringLiteral("edit"));
    if (!enter) w.loop().act([&] { QTest::keyClick(field, Qt::Key_Escape); });
  };
  type(QStringLiteral("image"), QStringLiteral("0.75"), false);
  type(QStringLiteral("label"), QStringLiteral("0.5"), true);
}

// A built model of which nothing ran yet: what stands in each view then.
void empty() {
  if (!wants(QStringLiteral("empty"))) return;
  WindowDriver w(screen);
  check(w.build(bundledModels()[0]), "empty", w);
  for (const ViewLayout& layout : shippedLayouts()) {
    w.loop().act([&] { w->applyLayout(layout.name); });
    save(w, *w, QStringLiteral("empty-") + layout.name.toLower());
  }
}

void broken() {
  if (!wants(QStringLiteral("broken"))) return;
  WindowDriver w(screen);
  QTemporaryDir place;
  const QString path = place.path() + QStringLiteral("/broken.onnx");
  QFile whole(bundledModels()[1].model), part(path);
  if (!whole.open(QIODevice::ReadOnly) || !part.open(QIODevice::WriteOnly)) return check(false, "broken", w);
  part.write(whole.read(whole.size() / 2));
  part.close();
  w.open(path);
  save(w, *w, QStringLiteral("broken"));
}

void dead() {
  if (!wants(QStringLiteral("dead"))) return;
  WindowDriver w(screen);
  check(atWork(w), "dead", w);
  for (const pid_t pid : childProcesses()) kill(pid, SIGKILL);
  w.loop().wait([&] { return w->notice().isProblem(); }, 10'000);
  save(w, *w, QStringLiteral("dead"));
}

// The picture of the README: larger than the others, so that the graph shows both columns.
void readme() {
  if (theme == u"dark" || !wants(QStringLiteral("readme"))) return;
  WindowDriver w(QSize(1600, 1000));
  check(atWork(w), "readme", w);
  save(w, *w, QStringLiteral("readme"));
}

// Two plans measured, and a third one chosen; both in the layout that it belongs to.
void recompute() {
  if (!wants(QStringLiteral("recompute"))) return;
  WindowDriver w(screen);
  check(trained(w, "0.001"), "recompute", w);
  w.loop().act([&] { w->applyLayout(QStringLiteral("Memory")); });
  View* view = w.view(QStringLiteral("recompute"));
  const auto judged = [&] {
    return w.loop().wait([&] { return w->store().findings().recompute() && w->session().client().openRequests() == 0; });
  };
  check(judged(), "recompute", w);
  auto* table = view->findChild<QTableView*>(QStringLiteral("recompute_table"));
  w.loop().act([&] { table->model()->setData(table->model()->index(0, 0), Qt::Checked, Qt::CheckStateRole); });
  rest(w, *w);
  w.loop().act([&] { view->findChild<QPushButton*>(QStringLiteral("recompute_apply"))->click(); });
  w.settled();
  w.loop().act([&] { w->session().train(4); });
  w.settled();
  rest(w, *w);
  save(w, *w, QStringLiteral("recompute-applied"));
  w.loop().act([&] { view->findChild<QSlider*>(QStringLiteral("recompute_budget"))->setValue(1); });
  save(w, *w, QStringLiteral("recompute-choice"));
}

// A study in the middle of a step, its override applied, and the exponents.
void precision() {
  if (!wants(QStringLiteral("precision"))) return;
  WindowDriver w(screen);
  check(trained(w, "0.001"), "precision", w);
  w.act("step");
  View* view = w.view(QStringLiteral("precision"));
  w.loop().act([&] { w->board().move(QStringLiteral("precision"), Area::kCentre); });
  save(w, *w, QStringLiteral("precision-empty"));
  w.loop().act([&] { view->findChild<QPushButton*>(QStringLiteral("precision_study"))->click(); });
  check(w.loop().wait([&] { return w->store().findings().precision() && !w->store().findings().studiesPrecision(); }),
        "precision", w);
  save(w, *w, QStringLiteral("precision-nodes"));
  w.loop().act([&] { view->findChild<QPushButton*>(QStringLiteral("precision_apply"))->click(); });
  w.settled();
  rest(w, *w);
  save(w, *w, QStringLiteral("precision-applied"));
  for (const char* page : {"Tensors", "Gradients"}) {
    for (auto* button : view->findChildren<QToolButton*>())
      if (button->text() == QLatin1String(page)) w.loop().act([&] { button->click(); });
    save(w, *w, QStringLiteral("precision-") + QString::fromLatin1(page).toLower());
  }
}

// Streams of the emulated device behind a step, a node dragged elsewhere.
void streams() {
  if (!wants(QStringLiteral("streams"))) return;
  WindowDriver w(screen);
  check(w.openBuilt(bundledModels()[0], {{"device", "emulated"}, {"cuda.streams", "3"}}), "streams", w);
  w.loop().act([&] { w->session().train(1); });
  check(w.settled(), "streams", w);
  auto* view = static_cast<StreamsView*>(w.view(QStringLiteral("streams")));
  w.loop().act([&] { w->board().move(QStringLiteral("streams"), Area::kCentre); });
  rest(w, *w);
  save(w, *w, QStringLiteral("streams-plan"));
  const auto& picture = view->canvas().picture();
  for (const int i : picture->schedule.critical)
    if (picture->movable[static_cast<std::size_t>(i)] && view->canvas().rectOf(i).width() > 20) {
      w.loop().act([&] { emit view->canvas().moved(i, 1); });
      break;
    }
  save(w, *w, QStringLiteral("streams-moved"));
}

// Every pass of the language model tried, why one gives what it gives, and a session that is under way.
void trials() {
  if (!wants(QStringLiteral("trials"))) return;
  WindowDriver w(screen);
  check(trained(w, "0.001"), "trials", w);
  View* view = w.view(QStringLiteral("trials"));
  w.loop().act([&] { w->board().move(QStringLiteral("trials"), Area::kCentre); });
  save(w, *w, QStringLiteral("trials-empty"));
  const OptionTrials& found = w->store().findings().trials();
  const auto start = [&](const char* only, int rounds) {
    w.loop().act([&] {
      view->findChild<QLineEdit*>(QStringLiteral("trials_only"))->setText(QLatin1String(only));
      view->findChild<QSpinBox*>(QStringLiteral("trials_rounds"))->setValue(rounds);
      view->findChild<QPushButton*>(QStringLiteral("trials_start"))->click();
    });
  };
  start("^(pass|threads|precision=bf16|recompute)", 12);
  check(w.loop().wait([&] { return !found.running(); }, 300'000), "trials", w);
  save(w, *w, QStringLiteral("trials-ranked"));
  w.loop().act([&] { view->findChild<QToolButton*>(QStringLiteral("trials_show_why"))->click(); });
  save(w, *w, QStringLiteral("trials-why"));
  w.loop().act([&] { view->findChild<QPushButton*>(QStringLiteral("trials_apply"))->click(); });
  w.settled();
  save(w, *w, QStringLiteral("trials-applied"));
  start("^pass", 60);
  w.loop().wait([&] { return found.report().trials_size() >= 3; });
  if (wants(QStringLiteral("trials-running"))) {
    const QString path = QStringLiteral("%1/trials-running-%2.png").arg(folder, theme);
    w->grab().save(path);
  }
  w.loop().act([&] { w->session().pause(); });
  check(w.settled(), "trials", w);
  save(w, *w, QStringLiteral("trials-cancelled"));
}

// A project that was recorded with a change of options, opened to look at: Start-up with its history, the difference of two
// phases, and the verdicts.
void recorded() {
  if (!wants(QStringLiteral("recorded"))) return;
  QTemporaryDir place;
  const QString project = place.filePath(QStringLiteral("run.stepscope"));
  {
    WindowDriver w(screen);
    w->setProjectPath(project);
    check(trained(w, "0.001"), "recorded", w);
    w.loop().act([&] { w->session().setOptions({{QStringLiteral("recompute.plan"), QStringLiteral("block:1:-1")}}); });
    check(w.settled() && w.act("step_whole"), "recorded", w);
    w.loop().act([&] { w->applyLayout(QStringLiteral("Profile")); });
    w.view(QStringLiteral("startup_table"));
    save(w, *w, QStringLiteral("recorded-live"));
    check(w.recorded(), "recorded", w);
  }
  WindowDriver w(screen);
  check(w.openRecorded(project), "recorded", w);
  const auto alone = [&](const char* id, const QString& name) {
    View* view = w.view(QLatin1String(id));
    w.loop().act([&] { w->board().move(QLatin1String(id), Area::kCentre); });
    save(w, *w, name);
    return view;
  };
  View* graph = w.view(QStringLiteral("graph"));
  w.loop().act(
      [&] { emit graph->findChild<PhaseStrip*>()->chosen(QStringLiteral("recompute"), QStringLiteral("specialise")); });
  alone("graph", QStringLiteral("recorded-graph"));
  View* startup = alone("startup_table", QStringLiteral("recorded-startup"));
  auto* phases = startup->findChild<QTableView*>(QStringLiteral("startup_table_table"));
  int row = 0;
  while (row + 1 < phases->model()->rowCount() && !w->store().phases()[std::size_t(row)].pass().near_misses_size()) ++row;
  w.loop().act([&] {
    phases->setCurrentIndex(phases->model()->index(row, 0));
    QTest::keyClick(phases, Qt::Key_Return);
  });
  save(w, *w, QStringLiteral("recorded-startup-places"));
  alone("determinism", QStringLiteral("recorded-determinism"));
}

// The layouts with the kernels of a GPU and what they moved, on the emulated device: behind a run, with the last step by
// node, and inside a step.
void emulated() {
  if (!wants(QStringLiteral("emulated"))) return;
  WindowDriver w(screen);
  check(w.openBuilt(bundledModels()[1], {{"optimizer", "adamw"},
                                         {"lr", "0.003"},
                                         {"device", "emulated"},
                                         {"record.rung", "counters"},
                                         {"cuda.streams", "2"}}),
        "emulated", w);
  w.loop().act([&] { w->session().train(3); });
  check(w.settled(), "emulated", w);
  const auto eachLayout = [&](const QString& name) {
    for (const ViewLayout& layout : shippedLayouts()) {
      w.loop().act([&] { w->applyLayout(layout.name); });
      save(w, *w, name + layout.name.toLower());
    }
  };
  eachLayout(QStringLiteral("emulated-"));
  // A kernel, whose arrow is drawn.
  const snapshot::Plan& plan = w->store().plan()->plan();
  int place = plan.first_backward() + 4;
  while (plan.instructions(place).view()) ++place;
  w.loop().act([&] { w->session().runTo(place); });
  check(w.settled(), "emulated", w);
  w.select(Selection::ofInstruction(place));
  w.settled();
  eachLayout(QStringLiteral("emulated-inside-"));
  w.loop().act([&] {
    w->board().move(QStringLiteral("timeline"), Area::kCentre);
    w.view(QStringLiteral("timeline"))->findChild<TimelineCanvas*>()->showInstruction(place);
  });
  save(w, *w, QStringLiteral("emulated-arrow"));
}

// Steps that were walked by hand, with the stops of their timeline.
void stops() {
  if (!wants(QStringLiteral("stops"))) return;
  WindowDriver w(screen);
  check(w.openBuilt(bundledModels()[0]), "stops", w);
  const auto look = [&w](int ms) {
    QElapsedTimer timer;
    timer.start();
    w.loop().wait([&timer, ms] { return timer.elapsed() > ms; }, 2 * ms);
  };
  for (const int places : {0, 2, 5}) {
    for (int place = 1; place <= places; ++place) {
      w.loop().act([&] { w->session().runTo(5 * place); });
      check(w.settled(), "stops", w);
      look(150 * place);
    }
    w.loop().act([&] { w->session().train(1); });
    check(w.settled(), "stops", w);
  }
  w.loop().act([&] { w->applyLayout(QStringLiteral("Profile")); });
  save(w, *w, QStringLiteral("stops"));
}

// The way back over steps, and what is left of the window after it.
void rewound() {
  if (!wants(QStringLiteral("rewound"))) return;
  WindowDriver w(screen);
  check(w.openBuilt(bundledModels()[0], {{"optimizer", "adam"}}), "rewound", w);
  w.loop().act([&] { w->session().train(8); });
  check(w.recorded() && w.act("rewind"), "rewound", w);
  if (auto* dialog = w->findChild<QDialog*>(QStringLiteral("rewind_dialog"))) {
    save(w, *dialog, QStringLiteral("rewound-dialog"));
    dialog->reject();
  }
  w.loop().act([&] { w->session().rewind(5); });
  check(w.settled(), "rewound", w);
  save(w, *w, QStringLiteral("rewound"));
}

// Conditions, an edit, and the keyboard in the graph.
void debugged() {
  if (!wants(QStringLiteral("debugged"))) return;
  WindowDriver w(screen);
  check(w.openBuilt(bundledModels()[0], {{"optimizer", "adam"}}), "debugged", w);
  snapshot::Breakpoint condition;
  condition.set_enabled(true);
  condition.set_predicate("head.weight max > 0.1");
  w.loop().act([&] {
    w->session().setBreakpoints({condition});
    w->session().run(false);
  });
  check(w.loop().wait([&] { return w->store().position().breakpoint() != 0; }) && w.settled(), "debugged", w);
  save(w, *w, QStringLiteral("debugged-condition"));
  condition.set_predicate("max(abs(head.weight)) > 0.5");
  w.view(QStringLiteral("breakpoints"));
  w.loop().act([&] { emit w->wishes().addBreakpoint(condition); });
  check(w.settled() && w.act("step_whole"), "debugged", w);
  for (const snapshot::Value& v : w->store().graph()->graph().values())
    if (v.name() == "head.weight") w.select(Selection::ofValue(v.id()));
  w.loop().act([&] { emit w->wishes().editElement(w->selection().selection().value, {0, 0}, 0.5, 0); });
  check(w.settled(), "debugged", w);
  w.loop().act([&] { w->findChild<QWidget*>(QStringLiteral("graph_canvas"))->setFocus(Qt::TabFocusReason); });
  save(w, *w, QStringLiteral("debugged-edited"));
  check(w.act("step_whole"), "debugged", w);
  w.view(QStringLiteral("training"));
  save(w, *w, QStringLiteral("debugged-curve"));
}

// What is written of graph and memory map: the whole graph, the map as it is on the screen.
void exported(WindowDriver& w) {
  if (!wants(QStringLiteral("exported"))) return;
  auto* graph = static_cast<GraphView*>(w.view(QStringLiteral("graph")));
  View* memory = w.view(QStringLiteral("memory"));
  rest(w, *w);
  for (const char* ending : {"png", "svg", "pdf"}) {
    const QString name = folder + QStringLiteral("/exported-%1-") + theme + '.' + QLatin1String(ending);
    const QString problem =
        graph->exportTo(name.arg(QStringLiteral("graph"))) + writePicture(*memory, name.arg(QStringLiteral("memory")));
    if (problem.isEmpty()) continue;
    std::fprintf(stderr, "error: %s\n", qPrintable(problem));
    ++failures;
  }
}

void all() {
  WindowDriver w(screen);
  check(trained(w, "0.001"), "the run to compare with", w);
  check(atWork(w), "model", w);
  layouts(w);
  if (scaled && wanted.isEmpty()) return;
  w.loop().act([&] { w->applyLayout(QStringLiteral("Step")); });
  views(w);
  dialogs(w);
  exported(w);
}

}  // namespace

int main(int argc, char** argv) {
  WatchedApplication app(argc, argv);
  const QStringList arguments = QApplication::arguments();
  if (arguments.size() < 2) {
    std::fprintf(stderr, "usage: workbench_pictures FOLDER [light|dark] [NAME…]\n");
    return 2;
  }
  folder = arguments[1];
  QDir().mkpath(folder);
  qputenv("STEPSCOPE_WORKER", REAL_WORKER);
  const double scale = qgetenv("QT_SCALE_FACTOR").toDouble();
  scaled = scale > 1;
  if (scaled) screen = QSize(qRound(3840 / scale), qRound(2160 / scale));
  QStringList themes{QStringLiteral("light"), QStringLiteral("dark")};
  wanted = arguments.mid(2);
  if (!wanted.isEmpty() && themes.contains(wanted.first())) themes = {wanted.takeFirst()};
  for (const QString& t : themes) {
    theme = t;
    applyTheme(app, t == u"dark" ? Theme::kDark : Theme::kLight);
    all();
    recompute();
    precision();
    trials();
    recorded();
    emulated();
    stops();
    rewound();
    debugged();
    streams();
    if (scaled && wanted.isEmpty()) continue;
    readme();
    beforeAModel();
    setUpAgain();
    editing();
    empty();
    broken();
    dead();
  }
  return failures > 0 ? 1 : 0;
}
