// SPDX-License-Identifier: GPL-3.0-or-later
// Renders every drawn view with made-up data in both themes: views_shots FOLDER [light|dark] [graph|memory|…]. Run with QT_QPA_PLATFORM=offscreen.
#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QEventLoop>

#include "tests/views_drawing/generated_graph.h"
#include "views/common/tokens.h"
#include "views/flame/flame_view.h"
#include "views/graph/graph_view.h"
#include "views/memory/memory_view.h"
#include "views/startup_chart/startup_chart_view.h"
#include "views/timeline/timeline_view.h"

using namespace stepscope;

namespace {

struct Window {
  SnapshotStore store;
  SelectionModel selection;
  Wishes wishes;
  ViewContext context() { return {store, selection, wishes}; }
};

void wait(GraphView& view) {
  QEventLoop loop;
  QObject::connect(&view, &GraphView::laidOut, &loop, &QEventLoop::quit);
  if (view.busy()) loop.exec();
  QApplication::processEvents();
}

template <typename T>
void waitFor(T& view, void (T::*signal)()) {
  QEventLoop loop;
  QObject::connect(&view, signal, &loop, &QEventLoop::quit);
  loop.exec();
}

void save(QWidget& widget, const QString& folder, const QString& name, QSize size, const Tokens& t) {
  widget.resize(size);
  QApplication::processEvents();
  widget.grab().save(QStringLiteral("%1/%2-%3.png").arg(folder, name, t.theme == Theme::kLight ? "light" : "dark"));
}

}  // namespace

int main(int argc, char** argv) {
  QApplication app(argc, argv);
  const QString folder = argc > 1 ? QString::fromLocal8Bit(argv[1]) : QStringLiteral(".");
  const QString only = argc > 3 ? QString::fromLocal8Bit(argv[3]) : QString();
  QDir().mkpath(folder);
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    if (argc > 2 && QString::fromLocal8Bit(argv[2]) != (theme == Theme::kLight ? "light" : "dark")) continue;
    applyTheme(app, theme);
    const Tokens& t = Tokens::current();
    Window w;
    snapshot::Graph graph = generated::step();
    snapshot::Graph before = generated::step({.fused = false});
    before.set_phase("gradient");
    auto plan = PlanSnapshot::make(generated::plan(graph));
    w.store.setStages({"load", "infer", "pre-grad", "gradient", "optimizer"});
    w.store.addStage("gradient", GraphSnapshot::make(before));
    w.store.setGraph(GraphSnapshot::make(graph));
    w.store.setPlan(plan);
    w.store.setPhases(generated::phases());
    for (int s = 0; s < 3; ++s) w.store.addStep(std::make_shared<snapshot::StepRecord>(generated::record(plan->plan(), s, 1'000'000'000 + s * 60'000'000)));
    snapshot::Position position;
    position.set_in_step(true);
    position.set_step(3);
    position.set_instruction(plan->plan().first_backward() + 5);
    w.store.setPosition(position);
    snapshot::Breakpoint b;
    b.set_id(1);
    b.set_enabled(true);
    b.set_instruction(plan->plan().first_backward() - 2);
    w.store.setBreakpoints({b});

    if (only.isEmpty() || only == "graph") {
      GraphView view(w.context());
      view.resize(904, 680);
      view.show();
      wait(view);
      save(view, folder, "graph-closed", {904, 680}, t);
      int gelu = -1, forwardGelu = -1;
      for (const auto& n : graph.nodes()) {
        if (n.op() == "BiasGeluGrad" && gelu < 0) gelu = n.id();
        if (n.op() == "BiasGelu") forwardGelu = n.id();
      }
      w.selection.select(Selection::ofNode(gelu));
      wait(view);
      save(view, folder, "graph-selected", {904, 680}, t);
      save(view, folder, "graph-wide", {1600, 1000}, t);
      view.focusSelection();
      save(view, folder, "graph-focus", {904, 680}, t);
      w.selection.select(Selection::ofNode(forwardGelu));
      view.focusSelection();
      save(view, folder, "graph-forward", {904, 680}, t);
      w.selection.clear();
      view.showStage("optimizer", "gradient");
      wait(view);
      view.fitAll();
      save(view, folder, "graph-diff", {904, 680}, t);
      view.exportTo(folder + "/graph.svg");
      view.exportTo(folder + "/graph.pdf");
      view.exportTo(folder + "/graph.png");
    }
    if (only.isEmpty() || only == "memory") {
      MemoryView view(w.context());
      w.selection.setCurrentInstruction(position.instruction());
      view.show();
      save(view, folder, "memory-strip", {904, 226}, t);
      int stash = -1;
      for (const auto& buffer : plan->plan().buffers()) {
        if (buffer.buffer_class() == snapshot::CLASS_STASH && buffer.first() > 200 && buffer.bytes() > 500000) stash = buffer.index();
      }
      w.selection.select(Selection::ofBuffer(stash));
      save(view, folder, "memory", {1200, 560}, t);
      view.focusSelection();
      save(view, folder, "memory-zoom", {1200, 560}, t);
    }
    if (only.isEmpty() || only == "timeline") {
      TimelineView view(w.context());
      view.show();
      waitFor(view, &TimelineView::modelReady);
      save(view, folder, "timeline-strip", {904, 226}, t);
      int softmax = -1;
      for (const auto& n : graph.nodes()) {
        if (n.op() == "Softmax") softmax = n.id();
      }
      w.selection.select(Selection::ofNode(softmax));
      w.selection.setRange(1'075'000'000, 1'090'000'000);
      save(view, folder, "timeline", {1200, 400}, t);
      view.focusSelection();
      save(view, folder, "timeline-zoom", {1200, 400}, t);
      FlameView flame(w.context());
      flame.show();
      waitFor(flame, &FlameView::modelReady);
      save(flame, folder, "flame-range", {1200, 320}, t);
      w.selection.setRange(0, 0);
      waitFor(flame, &FlameView::modelReady);
      save(flame, folder, "flame", {1200, 320}, t);
      StartupChartView startup(w.context());
      startup.show();
      save(startup, folder, "startup", {1000, 200}, t);
    }
  }
  return 0;
}
