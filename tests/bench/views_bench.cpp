// SPDX-License-Identifier: GPL-3.0-or-later
// Layout and frame times of the graph view on generated training steps, everything opened: views_bench [MOST_NODES].
// Frames are painted into a 1920 × 1080 image; run with QT_QPA_PLATFORM=offscreen where there is no display.
#include <QApplication>
#include <QImage>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/views_drawing/generated_graph.h"
#include "views/graph/graph_painter.h"
#include "views/graph/layout.h"
#include "views/memory/memory_canvas.h"
#include "views/timeline/timeline_canvas.h"

using namespace stepscope;

namespace {

double milliseconds() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The median of seven frames, each a little further on.
template <typename Paint>
double frame(Paint paint) {
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    const double begin = milliseconds();
    paint(i);
    times.push_back(milliseconds() - begin);
  }
  std::nth_element(times.begin(), times.begin() + 3, times.end());
  return times[3];
}

}  // namespace

int main(int argc, char** argv) {
  QApplication app(argc, argv);
  applyTheme(app, Theme::kLight);
  const int most = argc > 1 ? std::atoi(argv[1]) : 100'000;
  std::printf("%9s %9s %9s %9s | frame: %7s %7s %7s %7s %7s | %7s %9s\n", "nodes", "model ms", "layout ms", "boxes", "100 %",
              "50 %", "30 %", "10 %", "fit", "memory", "timeline");
  for (const int wanted : {1'000, 10'000, 100'000}) {
    if (wanted > most) break;
    const auto snapshot = GraphSnapshot::make(generated::step({.blocks = generated::blocksFor(wanted)}));
    const std::atomic<bool> cancel{false};
    const double t0 = milliseconds();
    const auto model = GraphModel::make(snapshot, cancel);
    const double t1 = milliseconds();
    const auto scene = layoutGraph(model, allGroups(*model), {}, cancel);
    const double t2 = milliseconds();
    std::printf("%9d %9.1f %9.1f %9zu |", snapshot->nodeCount(), t1 - t0, t2 - t1, scene->boxes.size());

    GraphLabels labels(model);
    GraphMarks marks;
    marks.nodes.resize(static_cast<std::size_t>(model->size()));
    marks.groups.resize(model->groups().size());
    GraphPainter painter(*scene, labels, marks, Tokens::current());
    QImage image(1920, 1080, QImage::Format_ARGB32_Premultiplied);
    const double fit = std::min(1900.0 / scene->bounds.w, 1060.0 / scene->bounds.h);
    std::printf("       ");
    for (const double zoom : {1.0, 0.5, 0.3, 0.1, fit}) {
      std::printf(" %7.1f", frame([&](int i) {
                    Viewport view;
                    view.size = image.size();
                    view.scaleX = view.scaleY = zoom;
                    view.origin = zoom == fit ? QPointF(-5, -5) : QPointF(0, scene->bounds.h / 2 + i * 7 / zoom);
                    QPainter p(&image);
                    painter.paint(p, view, {});
                  }));
    }
    const auto plan = PlanSnapshot::make(generated::plan(snapshot->graph()));
    MemoryCanvas memory;
    memory.resize(1200, 400);
    memory.setModel(MemoryModel::make(plan));
    TimelineCanvas timeline;
    timeline.resize(1200, 400);
    timeline.setModel(TimelineModel::make({std::make_shared<snapshot::StepRecord>(generated::record(plan->plan(), 0, 0))},
                                          plan, snapshot));
    const auto paint = [&](auto& canvas) {
      return frame([&](int) {
        QPainter p(&image);
        canvas.paintOn(p);
      });
    };
    std::printf(" | %7.1f %9.1f\n", paint(memory), paint(timeline));
    std::fflush(stdout);
  }
  return 0;
}
