// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures of the guide for scripts/guide-pictures: guide_pictures FOLDER [NAME…] writes FOLDER/light/NAME.png and
// FOLDER/dark/NAME.png. Each is a part of a real window that does what its page says.
#include <QElapsedTimer>
#include <QImageWriter>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <atomic>
#include <cstdio>
#include <thread>

#include "app/workbench/panel_group.h"
#include "app/workbench/sample_list.h"
#include "tests/workbench/window_driver.h"
#include "views/batch/batch_view.h"
#include "views/common/findings.h"
#include "views/common/pass_stages.h"
#include "views/common/tokens.h"
#include "views/graph/phase_strip.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

QString folder;
QStringList wanted;
bool dark = false;
int failures = 0;

bool wants(const char* name) { return wanted.isEmpty() || wanted.contains(QLatin1String(name)); }

void check(bool done, const char* what, const WindowDriver& w) {
  if (done) return;
  std::fprintf(stderr, "error: %s: %s\n", what, qPrintable(w.failure()));
  ++failures;
}

void write(const QImage& picture, const char* name) {
  const QString path = QStringLiteral("%1/%2/%3.png").arg(folder, dark ? "dark" : "light", QLatin1String(name));
  QImageWriter writer(path, "png");
  writer.setCompression(100);
  if (writer.write(picture.convertToFormat(QImage::Format_RGB888))) return;
  std::fprintf(stderr, "error: picture '%s': %s\n", qPrintable(path), qPrintable(writer.errorString()));
  ++failures;
}

// Threads that lay out, bin or search have no common end: the picture is taken when two in a row are equal.
void save(WindowDriver& w, QWidget& widget, QRect part, const char* name) {
  if (!wants(name)) return;
  if (QWidget* focus = QApplication::focusWidget()) focus->clearFocus();
  QImage before, now;
  for (int i = 0; i < 60; ++i) {
    QElapsedTimer timer;
    timer.start();
    w.loop().wait([&timer] { return timer.elapsed() > 150; });
    w.settled();
    now = widget.grab(part).toImage();
    if (i > 1 && now == before) break;
    before = now;
  }
  write(now, name);
}

// A view with the header of its panel, as large as the centre of the window.
void savePanel(WindowDriver& w, const char* id, const char* name, int height = 0) {
  const QString view = QLatin1String(id);
  w.view(view);
  w.loop().act([&] { w->board().move(view, Area::kCentre); });
  for (auto* group : w->findChildren<PanelGroup*>()) {
    if (group->frontId() != view) continue;
    const QSize size = group->size();
    save(w, *group, QRect(0, 0, size.width(), height > 0 ? std::min(height, size.height()) : size.height()), name);
  }
}

TestModel sample(const char* name, const char* data = "batches.npz") {
  const QString path = samplePath(QLatin1String(name));
  return {QLatin1String(name), path, path.section('/', 0, -2) + '/' + QLatin1String(data)};
}

void look() {
  if (!wants("look")) return;
  WindowDriver w({1180, 660});
  SetUpDialog* dialog = w.open(sample("language_model").model);
  check(dialog != nullptr, "look", w);
  save(w, *w, w->rect(), "look");
}

void nan() {
  if (!wants("nan-stop")) return;
  WindowDriver w({1180, 660});
  check(w.openBuilt(sample("nan")), "nan", w);
  w.loop().act([&] { w->session().train(50); });
  w.settled();
  w.view(QStringLiteral("batch"));
  static_cast<BatchView*>(w.view(QStringLiteral("batch")))->openPage(BatchView::kContents);
  save(w, *w, QRect(0, 0, 880, 430), "nan-stop");
}

void steps() {
  WindowDriver w({1280, 760});
  check(w.openBuilt(sample("language_model"), {{"optimizer", "adamw"}, {"lr", "0.003"}}), "steps", w);
  w.loop().act([&] { w->session().train(6); });
  w.settled();
  const auto& plan = w->store().plan()->plan();
  const int loss = w->store().graph()->graph().loss();
  if (wants("rewind")) {
    w.loop().act([&] { w->session().rewind(3); });
    w.settled();
    w.select(Selection::ofValue(loss));
    savePanel(w, "tensors", "rewind", 300);
    w.loop().act([&] { w->applyLayout(QStringLiteral("Step")); });
  }
  w.loop().act([&] { w->session().runTo(plan.first_backward() + 12); });
  w.settled();
  w.select(Selection::ofInstruction(plan.first_backward() + 11));
  savePanel(w, "graph", "graph", 460);
  w.loop().act([&] { w->applyLayout(QStringLiteral("Step")); });
  savePanel(w, "tensors", "tensors");
  w.loop().act([&] { w->applyLayout(QStringLiteral("Step")); });
  savePanel(w, "instructions", "instructions", 420);
  w.loop().act([&] { w->applyLayout(QStringLiteral("Memory")); });
  savePanel(w, "memory", "memory");
  savePanel(w, "options", "options");
  if (wants("phases")) {
    w.loop().act([&] { w->applyLayout(QStringLiteral("Explore")); });
    View* graph = w.view(QStringLiteral("graph"));
    const QStringList stops = PassStages::of(w->store()).stops();
    const auto pass = std::find_if(stops.begin(), stops.end(), [](const QString& s) { return s.endsWith(u"/fuse_gelu"); });
    check(pass != stops.begin() && pass != stops.end(), "phases", w);
    if (pass == stops.begin() || pass == stops.end()) return;
    w.loop().act([&] { emit graph->findChild<PhaseStrip*>()->chosen(*pass, *(pass - 1)); });
    savePanel(w, "graph", "phases");
  }
  if (!wants("running")) return;
  w.loop().act([&] { w->session().train(100'000); });
  auto* where = w->findChild<QLabel*>(QStringLiteral("status_where"));
  const std::size_t steps = w->store().series().size();
  w.loop().wait([&] { return w->store().series().size() >= steps + 12 && where->text().contains(QStringLiteral("of 1")); });
  const QWidget* line = where->parentWidget();
  // The part that tells of the run: as wide as the text, the whole line would be too small to read.
  const QRect at(line->mapTo(&*w, QPoint()), QSize(line->width() * 11 / 20, line->height()));
  write(w->grab(at).toImage(), "running");  // it does not stand still: no second look
  w.loop().act([&] { w->session().pause(); });
  w.settled();
}

void tooLarge() {
  if (!wants("recompute")) return;
  WindowDriver w({1280, 760});
  check(w.openBuilt(sample("too_large")), "too_large", w);
  w.loop().act([&] { w->session().train(3); });
  w.settled();
  w.loop().act([&] { w->applyLayout(QStringLiteral("Memory")); });
  w.view(QStringLiteral("recompute"));
  const auto& plan = w->store().plan()->plan();
  w.loop().act(
      [&] { emit w->wishes().setOption(QStringLiteral("recompute.budget"), QString::number(plan.arena_bytes() * 3 / 5)); });
  w.settled();
  savePanel(w, "recompute", "recompute", 440);
}

void padding() {
  if (!wants("padding-density")) return;
  WindowDriver w({1280, 820});
  check(w.openBuilt(sample("padding")), "padding", w);
  w.loop().act([&] { w->session().train(12); });
  w.settled();
  static_cast<BatchView*>(w.view(QStringLiteral("batch")))->openPage(BatchView::kDensity);
  savePanel(w, "batch", "padding-density");
}

void runs() {
  if (!wants("compare") && !wants("runs")) return;
  WindowDriver w({1280, 800});
  check(w.openRecorded(sample("two_runs").model), "two_runs", w);
  w.loop().act([&] {
    CompareRequest request;
    request.a = 1;
    request.b = 2;
    emit w->wishes().compareRuns(request);
    w->applyLayout(QStringLiteral("Compare"));
  });
  w.settled();
  savePanel(w, "compare", "compare");
  savePanel(w, "runs", "runs", 200);
}

// What the laboratory finds: presses the button of a view that measures, and waits.
void measured(WindowDriver& w, const char* view, const char* button) {
  auto* press = w.view(QLatin1String(view))->findChild<QPushButton*>(QLatin1String(button));
  const QString before = press->text();
  w.loop().act([press] { press->click(); });
  check(w.loop().wait([&] { return press->text() == before; }, 300'000) && w.settled(), view, w);
}

void laboratory() {
  if (wants("capacity")) {
    WindowDriver w({1280, 820});
    check(w.openBuilt(sample("too_large")), "capacity", w);
    auto* memory = w.view(QStringLiteral("capacity"))->findChild<QLineEdit*>(QStringLiteral("capacity_memory"));
    w.loop().act([memory] { memory->setText(QStringLiteral("100 MiB")); });
    measured(w, "capacity", "capacity_plan");
    savePanel(w, "capacity", "capacity");
  }
  if (wants("ledger")) {
    WindowDriver w({1280, 820});
    check(w.openBuilt(sample("padding")), "ledger", w);
    w.loop().act([&] { w->session().train(3); });
    w.settled();
    measured(w, "ledger", "ledger_measure");
    savePanel(w, "ledger", "ledger");
  }
  if (wants("bisect")) {
    QTemporaryDir place;
    const TestModel digits = sample("digits");
    const TestModel model{digits.name, place.filePath(QStringLiteral("model.onnx")), digits.data};
    WindowDriver w({1280, 820});
    check(QFile::copy(digits.model, model.model) && w.openBuilt(model), "bisect", w);
    w.act("step_whole");
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("precision"), QStringLiteral("bf16")); });
    w.settled();
    w.view(QStringLiteral("bisect"));
    const auto& study = w->store().findings().bisect();
    w.loop().act([&] { emit w->wishes().bisect(); });
    check(w.loop().wait([&] { return !study.running(); }, 300'000) && w.settled(), "bisect", w);
    savePanel(w, "bisect", "bisect");
  }
}

// A run beside threads that want the processor too.
void busy() {
  if (!wants("busy")) return;
  WindowDriver w({1280, 800});
  check(w.openBuilt(sample("too_large")), "busy", w);
  std::atomic<bool> over = false;
  std::vector<std::thread> others;
  for (unsigned i = 0; i < 2 * std::max(1U, std::thread::hardware_concurrency()); ++i)
    others.emplace_back([&over] {
      while (!over) {
      }
    });
  w.loop().act([&] { w->session().train(8); });
  w.settled();
  over = true;
  for (std::thread& t : others) t.join();
  w.recorded();
  w.loop().act([&] {
    CompareRequest request;
    request.a = request.b = 1;
    emit w->wishes().compareRuns(request);
    w->applyLayout(QStringLiteral("Compare"));
  });
  w.settled();
  savePanel(w, "compare", "busy", 330);
}

}  // namespace

int main(int argc, char** argv) {
  WatchedApplication app(argc, argv);
  const QStringList arguments = QApplication::arguments();
  if (arguments.size() < 2) {
    std::fprintf(stderr, "usage: guide_pictures FOLDER [NAME…]\n");
    return 2;
  }
  folder = arguments[1];
  wanted = arguments.mid(2);
  qputenv("STEPSCOPE_WORKER", REAL_WORKER);
  for (const bool theme : {false, true}) {
    dark = theme;
    QDir().mkpath(folder + (dark ? "/dark" : "/light"));
    applyTheme(app, dark ? Theme::kDark : Theme::kLight);
    look();
    nan();
    steps();
    tooLarge();
    padding();
    runs();
    busy();
    laboratory();
  }
  return failures > 0 ? 1 : 0;
}
