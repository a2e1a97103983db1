// SPDX-License-Identifier: GPL-3.0-or-later
// Renders every drawn view in both themes, with made-up data: views_shots FOLDER [light|dark] [graph|memory|timeline], or
// with a model that a worker builds: views_shots FOLDER light|dark STEPSCOPE MODEL [SETTING=VALUE …]. Run with
// QT_QPA_PLATFORM=offscreen.
#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QProcess>
#include <QtEndian>

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

// The worker protocol, one request after the other.
class Worker {
 public:
  explicit Worker(const QString& program) {
    process_.setProcessChannelMode(QProcess::ForwardedErrorChannel);
    process_.start(program, {"worker"});
  }
  ~Worker() {
    process_.kill();
    process_.waitForFinished();
  }

  // The answer that carries the wanted content, or the last one; exits with the worker's error.
  std::vector<snapshot::Response> ask(snapshot::Request request) {
    request.set_id(++id_);
    const std::string bytes = request.SerializeAsString();
    const quint32 length = qToLittleEndian(static_cast<quint32>(bytes.size()));
    process_.write(reinterpret_cast<const char*>(&length), 4);
    process_.write(bytes.data(), static_cast<qint64>(bytes.size()));
    std::vector<snapshot::Response> answers;
    for (;;) {
      quint32 size = 0;
      read(reinterpret_cast<char*>(&size), 4);
      std::string body(qFromLittleEndian(size), '\0');
      read(body.data(), static_cast<qint64>(body.size()));
      snapshot::Response response;
      if (!response.ParseFromString(body)) qFatal("the worker's answer cannot be read");
      if (response.id() != id_) continue;
      if (response.has_error()) qFatal("worker: %s", response.error().message().c_str());
      answers.push_back(response);
      if (response.done()) return answers;
    }
  }

 private:
  void read(char* to, qint64 count) {
    while (count > 0) {
      if (process_.bytesAvailable() == 0 && !process_.waitForReadyRead(60'000)) qFatal("the worker is silent");
      const qint64 got = process_.read(to, count);
      to += got;
      count -= got;
    }
  }

  QProcess process_;
  quint64 id_ = 0;
};

void shootModel(const QString& program, const QString& model, const QStringList& settings, const QString& folder,
                const Tokens& t) {
  Worker worker(program);
  Window w;
  snapshot::Request request;
  request.mutable_hello()->set_protocol(1);
  worker.ask(request);
  request.mutable_open()->set_path(model.toStdString());
  worker.ask(request);
  request.mutable_configure();
  for (const QString& setting : settings) {
    auto* s = request.mutable_configure()->add_settings();
    s->set_name(setting.section('=', 0, 0).toStdString());
    s->set_value(setting.section('=', 1).toStdString());
  }
  worker.ask(request);
  request.mutable_build();
  const snapshot::BuildReply build = worker.ask(request).back().build();
  QStringList stages;
  for (const std::string& stage : build.stages()) stages << QString::fromStdString(stage);
  w.store.setStages(stages);
  w.store.setPhases({build.phases().begin(), build.phases().end()});
  for (const QString& stage : stages) {
    request.mutable_graph()->set_phase(stage.toStdString());
    for (const auto& answer : worker.ask(request)) {
      if (answer.has_graph()) w.store.addStage(stage, GraphSnapshot::make(answer.graph()));
    }
  }
  request.mutable_graph()->clear_phase();
  for (const auto& answer : worker.ask(request)) {
    if (answer.has_graph()) w.store.setGraph(GraphSnapshot::make(answer.graph()));
  }
  request.mutable_plan();
  for (const auto& answer : worker.ask(request)) {
    if (answer.has_plan()) w.store.setPlan(PlanSnapshot::make(answer.plan()));
  }
  request.mutable_train()->set_steps(3);
  request.mutable_train()->set_record(true);
  for (const auto& answer : worker.ask(request)) {
    if (answer.has_step()) w.store.addStep(std::make_shared<snapshot::StepRecord>(answer.step()));
  }
  GraphView graph(w.context());
  graph.resize(1200, 900);
  graph.show();
  wait(graph);
  save(graph, folder, "real-graph", {1200, 900}, t);
  const auto& nodes = w.store.graph()->graph().nodes();
  for (const auto& n : nodes) {
    if (n.phase() == snapshot::BACKWARD && w.store.graph()->forwardOf(n.id()) >= 0 && n.category() == "activation") {
      w.selection.select(Selection::ofNode(n.id()));
      break;
    }
  }
  wait(graph);
  save(graph, folder, "real-graph-selected", {1200, 900}, t);
  graph.fitAll();
  save(graph, folder, "real-graph-fit", {1200, 900}, t);
  if (stages.size() > 2) {
    graph.showStage(stages.back(), stages[stages.size() / 2]);
    wait(graph);
    graph.fitAll();
    save(graph, folder, "real-graph-diff", {1200, 900}, t);
  }
  MemoryView memory(w.context());
  memory.show();
  save(memory, folder, "real-memory", {1200, 500}, t);
  TimelineView timeline(w.context());
  timeline.show();
  waitFor(timeline, &TimelineView::modelReady);
  save(timeline, folder, "real-timeline", {1200, 260}, t);
  FlameView flame(w.context());
  flame.show();
  waitFor(flame, &FlameView::modelReady);
  save(flame, folder, "real-flame", {1200, 320}, t);
  StartupChartView startup(w.context());
  startup.show();
  save(startup, folder, "real-startup", {1200, 160}, t);
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
    if (argc > 4) {
      shootModel(QString::fromLocal8Bit(argv[3]), QString::fromLocal8Bit(argv[4]), app.arguments().mid(5), folder, t);
      continue;
    }
    Window w;
    snapshot::Graph graph = generated::step();
    // As if the last passes had made the optimizer, dropped a few nodes and rewritten some.
    snapshot::Graph before = graph;
    before.set_phase("gradient");
    before.clear_nodes();
    for (const auto& node : graph.nodes()) {
      if (node.phase() == snapshot::OPTIMIZER) continue;
      *before.add_nodes() = node;
      if (node.op() == "BiasGelu") {
        before.mutable_nodes(before.nodes_size() - 1)->set_op("Gelu");
        *before.add_nodes() = node;
        before.mutable_nodes(before.nodes_size() - 1)->set_op("Add");
        before.mutable_nodes(before.nodes_size() - 1)->set_id(2'000'000 + node.id());
        before.mutable_nodes(before.nodes_size() - 1)->clear_outputs();
      }
    }
    auto plan = PlanSnapshot::make(generated::plan(graph));
    w.store.setStages({"load", "infer", "pre-grad", "gradient", "optimizer"});
    w.store.addStage("gradient", GraphSnapshot::make(before));
    w.store.setGraph(GraphSnapshot::make(graph));
    w.store.setPlan(plan);
    w.store.setPhases(generated::phases());
    for (int s = 0; s < 3; ++s)
      w.store.addStep(
          std::make_shared<snapshot::StepRecord>(generated::record(plan->plan(), s, 1'000'000'000 + s * 400'000'000)));
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
        if (buffer.buffer_class() == snapshot::CLASS_STASH && buffer.first() > 200 && buffer.bytes() > 500000)
          stash = buffer.index();
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
      w.selection.setRange(1'475'000'000, 1'560'000'000);
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
