#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "storage/names.h"
#include "storage/pytorch/align.h"
#include "storage/pytorch/join.h"
#include "storage/queries.h"

namespace stepscope::storage {
namespace {

constexpr std::int64_t kRounding = 512;  // of PyTorch's allocator
std::int64_t rounded(std::int64_t bytes) { return (bytes + kRounding - 1) / kRounding * kRounding; }

struct OurBuffer {
  std::string text, module, file;
  int line = 0;
  std::int64_t bytes = 0;
};

std::vector<OurBuffer> liveAtPeak(const snapshot::Plan& plan, const snapshot::Graph& graph) {
  std::map<std::int32_t, const snapshot::Node*> producer;
  for (const snapshot::Node& node : graph.nodes())
    for (const std::int32_t value : node.outputs()) producer[value] = &node;
  std::vector<const snapshot::Buffer*> live;
  for (const snapshot::Buffer& b : plan.buffers())
    if (b.in_arena() && b.shares() < 0 && b.first() <= plan.peak_instruction() && b.last() >= plan.peak_instruction() &&
        b.bytes() > 0)
      live.push_back(&b);
  std::ranges::stable_sort(live, {}, [](const snapshot::Buffer* b) { return b->first(); });
  std::vector<OurBuffer> out;
  for (const snapshot::Buffer* b : live) {
    OurBuffer& one = out.emplace_back();
    one.text = b->name();
    one.bytes = b->bytes();
    const auto found = producer.find(b->value());
    if (found == producer.end()) continue;
    const snapshot::Provenance& from = found->second->provenance();
    one.module = from.module_path();
    one.file = from.source_file().substr(from.source_file().find_last_of("/\\") + 1);
    one.line = from.source_line();
  }
  return out;
}

}  // namespace

Result<PyTorchJoin> joinMemory(const Project& project, std::int64_t run, const MemorySnapshot& snapshot,
                               const std::string& file) {
  SS_STORE_ASSIGN(const snapshot::Plan plan, readPlan(project, run));
  SS_STORE_ASSIGN(const snapshot::Graph graph, readGraph(project, run));
  const std::vector<OurBuffer> ours = liveAtPeak(plan, graph);
  const std::vector<Allocation>& theirs = snapshot.live;
  SS_STORE_ASSIGN(const auto pairs, align(static_cast<int>(theirs.size()), static_cast<int>(ours.size()), [&](int i, int j) {
                    const Allocation& t = theirs[static_cast<std::size_t>(i)];
                    const OurBuffer& o = ours[static_cast<std::size_t>(j)];
                    if (rounded(t.bytes) != rounded(o.bytes)) return 0;
                    // A buffer that was fused, or is of the backward phase, has another line than what PyTorch allocated for
                    // it.
                    if (t.python.empty() || o.line == 0) return 2;
                    return std::ranges::find(t.python, std::pair(o.file, o.line)) != t.python.end() ? 5 : 2;
                  }));
  std::int64_t ourBytes = 0, bothBytes = 0;
  for (const OurBuffer& o : ours) ourBytes += o.bytes;
  std::vector<int> partner(theirs.size(), -1), ourPartner(ours.size(), -1);
  for (const auto& [i, j] : pairs) {
    partner[static_cast<std::size_t>(i)] = j;
    ourPartner[static_cast<std::size_t>(j)] = i;
    bothBytes += ours[static_cast<std::size_t>(j)].bytes;
  }
  if (ours.empty() || 2 * bothBytes < ourBytes) {
    const auto missing = std::ranges::find(ourPartner, -1);
    std::string first = "the plan has no buffer at its peak";
    if (missing != ourPartner.end()) {
      const OurBuffer& o = ours[static_cast<std::size_t>(missing - ourPartner.begin())];
      first = fmt::format("'{}' of {} bytes{}", o.text, o.bytes,
                          o.line > 0 ? fmt::format(" ({}:{})", o.file, o.line) : std::string());
    }
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "memory snapshot '{}': {} of the {} bytes that the plan keeps at its peak are found, in order, among its {} "
            "allocations; expected at least half (the same model, batch and types); the first that is not: {}",
            file, bothBytes, ourBytes, theirs.size(), first));
  }

  PyTorchJoin out;
  out.kind = "memory";
  std::string module;
  const auto theirText = [](const Allocation& a) { return a.where.empty() ? std::string("(no Python frame)") : a.where; };
  std::size_t j = 0;
  for (std::size_t i = 0; i <= theirs.size(); ++i) {
    const bool end = i == theirs.size();
    if (!end && partner[i] < 0) {
      // Between two of one module it is of that module.
      std::size_t next = i + 1;
      while (next < theirs.size() && partner[next] < 0) ++next;
      const bool inside = next < theirs.size() && ours[static_cast<std::size_t>(partner[next])].module == module;
      out.rows.push_back(
          {"activations", inside ? module : "", theirText(theirs[i]), "", static_cast<double>(theirs[i].bytes), 0});
      ++out.theirsAlone;
      continue;
    }
    const std::size_t until = end ? ours.size() : static_cast<std::size_t>(partner[i]);
    for (; j < until; ++j) {
      out.rows.push_back({"activations", ours[j].module, "", ours[j].text, 0, static_cast<double>(ours[j].bytes)});
      ++out.oursAlone;
    }
    if (end) break;
    module = ours[j].module;
    out.rows.push_back({"activations", module, theirText(theirs[i]), ours[j].text, static_cast<double>(theirs[i].bytes),
                        static_cast<double>(ours[j].bytes)});
    ++out.joined;
    ++j;
  }
  out.rows.push_back({"persistent", "", "allocated before the history", "parameters, state, constants, batch",
                      static_cast<double>(snapshot.beforeBytes), static_cast<double>(plan.persistent_bytes())});
  out.rows.push_back({"peak", "", "peak", "peak", static_cast<double>(snapshot.peakBytes),
                      static_cast<double>(plan.arena_bytes() + plan.persistent_bytes())});
  out.notes.push_back(
      fmt::format("theirs: what was allocated at the largest sum of {} events, rounded to {} bytes; ours: what the plan "
                  "keeps at instruction {}",
                  snapshot.events, kRounding, plan.peak_instruction()));
  if (std::ranges::none_of(ours, [](const OurBuffer& o) { return o.line > 0; }))
    out.notes.push_back("the model has no Python lines (exported by dynamo it has): joined by order and bytes alone");
  else if (std::ranges::all_of(theirs, [](const Allocation& a) { return a.python.empty(); }))
    out.notes.push_back("the snapshot has no Python frames: joined by order and bytes alone");
  return out;
}

}  // namespace stepscope::storage
