// How phases 1-13 grow with the graph: time per phase and pass, memory, and what the kept stages share.
//
//   scale_bench [--blocks N[,N…]] [--most R] [--most-per-node B]     default 900,3600,9100: the last has a step graph of
//   about 100,000 nodes
//
// Memory is what the heap holds at the end of a phase, of the whole process: the graphs of all kept stages, the plan, the
// kernels, the arena. The imported graph is what it holds after phase `check`: nodes, values, names and weights as they
// were read, nothing derived. With --most it fails where the former is more than R times the latter, with --most-per-node
// where it is more than B bytes for each node of the largest graph: what makes the imported graph smaller, too, makes R
// larger.
//
// The model is a chain (chain_model.h), so that what recurses or is quadratic shows. Numbers of a run belong into RESULTS.md
// with date, machine and command.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/train/session.h"
#include "tests/bench/chain_model.h"

namespace stepscope {
namespace {

std::size_t heapBytes() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

double mib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

struct Memory {
  std::size_t before = 0, imported = 0, largest = 0;
  std::map<std::string, std::size_t> after;  // by phase
};

int run(int blocks, double most, double mostPerNode) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("scale_bench.{}.onnx", blocks);
  writeChain(path, blocks);
  Memory memory;
  memory.before = heapBytes();
  std::vector<snapshot::PhaseSpan> spans;
  Observer observer;
  observer.phase = [&](const snapshot::PhaseSpan& span) {
    spans.push_back(span);
    if (span.depth() > 0) return;
    const std::size_t now = heapBytes() - memory.before;
    memory.after[span.name()] = now;
    if (span.name() == "check") memory.imported = now;
    memory.largest = std::max(memory.largest, now);
  };
  auto session = Session::open(path, {}, std::move(observer));
  std::filesystem::remove(path);
  if (!session) return fmt::print(stderr, "open: {}\n", session.error().message), EXIT_FAILURE;
  TrainOptions options;
  for (const auto& [name, value] : std::map<std::string, std::string>{{"optimizer", "sgd"}, {"threads", "1"}})
    if (Status set = applySetting(options, name, value, "bench"); !set)
      return fmt::print(stderr, "{}\n", set.error().message), EXIT_FAILURE;
  if (Status set = (*session)->setOptions(options); !set)
    return fmt::print(stderr, "{}\n", set.error().message), EXIT_FAILURE;
  if (Status built = (*session)->build(); !built)
    return fmt::print(stderr, "build: {}\n", built.error().message), EXIT_FAILURE;

  std::size_t nodes = 0;
  for (const Stage& stage : (*session)->plans().stages()) nodes = std::max(nodes, stage.graph->order().size());
  fmt::print("blocks {}: {} nodes in the largest graph\n", blocks, nodes);
  std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
    return a.begin_ns() != b.begin_ns() ? a.begin_ns() < b.begin_ns() : a.depth() < b.depth();
  });
  double total = 0;
  for (const snapshot::PhaseSpan& span : spans) {
    const double ms = static_cast<double>(span.ns()) / 1e6;
    if (span.depth() == 0) total += ms;
    fmt::print("  {:{}}{:<{}} {:>10.1f} ms", "", 2 * span.depth(), span.name(), 30 - 2 * span.depth(), ms);
    if (span.depth() == 0) fmt::print("{:>10.1f} MiB of heap", mib(memory.after[span.name()]));
    fmt::print("\n");
  }
  fmt::print("  {:<30} {:>10.1f} ms\n", "phases 1-13", total);
  const double times = static_cast<double>(memory.largest) / static_cast<double>(memory.imported);
  fmt::print("  heap: imported graph {:.1f} MiB, largest {:.1f} MiB, {:.2f} times; {} bytes a node of the largest graph\n",
             mib(memory.imported), mib(memory.largest), times, memory.largest / nodes);
  // A sanitizer has the malloc family for itself: nothing is counted then.
  if (most > 0 && memory.imported > 0 && times > most) {
    fmt::print(stderr, "heap: {:.2f} times the imported graph; expected at most {}\n", times, most);
    return EXIT_FAILURE;
  }
  const double perNode = static_cast<double>(memory.largest) / static_cast<double>(nodes);
  if (mostPerNode > 0 && perNode > mostPerNode) {
    fmt::print(stderr, "heap: {:.0f} bytes a node of the largest graph; expected at most {}\n", perNode, mostPerNode);
    return EXIT_FAILURE;
  }
  const Graph* before = nullptr;
  for (const Stage& stage : (*session)->plans().stages()) {
    const std::size_t all = stage.graph->nodeCapacity() + stage.graph->valueCapacity();
    fmt::print("  stage {:<20} {:>9} nodes and values, {:>9} shared with the stage before\n", stage.phase, all,
               before ? stage.graph->sharedWith(*before) : 0);
    before = stage.graph.get();
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace stepscope

int main(int argc, char** argv) {
  std::string list = "900,3600,9100";
  double most = 0, mostPerNode = 0;
  bool understood = argc % 2 == 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--blocks")
      list = argv[i + 1];
    else if (name == "--most")
      most = std::atof(argv[i + 1]);
    else if (name == "--most-per-node")
      mostPerNode = std::atof(argv[i + 1]);
    else
      understood = false;
  }
  for (; understood && !list.empty(); list.erase(0, std::min(list.find(',', 0), list.size() - 1) + 1)) {
    const int blocks = std::atoi(list.c_str());
    understood = blocks > 0;
    if (!understood) break;
    if (const int failed = stepscope::run(blocks, most, mostPerNode); failed != 0) return failed;
  }
  return understood ? EXIT_SUCCESS
                    : (fmt::print(stderr, "usage: scale_bench [--blocks N[,N…]] [--most R] [--most-per-node B]\n"), 2);
}
