// SPDX-License-Identifier: GPL-3.0-or-later
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/views_drawing/generated_graph.h"
#include "views/graph/layout.h"

using namespace stepscope;
int main(int argc, char** argv) {
  const auto now = [] { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  for (int nodes : {1000, 10000, 100000}) {
    if (argc > 1 && nodes > atoi(argv[1])) break;
    generated::StepOptions o;
    o.blocks = generated::blocksFor(nodes);
    auto t0 = now();
    auto snap = GraphSnapshot::make(generated::step(o));
    auto t1 = now();
    std::atomic<bool> cancel{false};
    auto model = GraphModel::make(snap, cancel);
    auto t2 = now();
    auto scene = layoutGraph(model, allGroups(*model), {}, cancel);
    auto t3 = now();
    int flow = 0, stash = 0, lng = 0;
    for (auto& e : scene->edges) (e.kind == EdgeKind::kFlow ? flow : e.kind == EdgeKind::kStash ? stash : lng)++;
    printf("%d nodes: gen %.0f model %.1f ms layout %.1f ms; boxes %zu edges %zu flow %d stash %d long %d  %.0f x %.0f\n", snap->nodeCount(), t1 - t0, t2 - t1, t3 - t2,
           scene->boxes.size(), scene->edges.size(), flow, stash, lng, scene->bounds.w, scene->bounds.h);
  }
}
