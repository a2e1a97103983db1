#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "storage/pytorch/align.h"
#include "storage/pytorch/join.h"
#include "storage/pytorch/lineage.h"
#include "storage/pytorch/operator_kinds.h"
#include "storage/queries.h"
#include "storage/timing.h"

namespace stepscope::storage {
namespace {

using Shape = std::vector<std::int64_t>;
using OurNode = ImportedNode;

// Extents of a weight in one order: a product may read it transposed.
Shape sorted(Shape shape) {
  std::ranges::sort(shape);
  return shape;
}

std::string shapeText(const Shape& shape) {
  return shape.empty() ? std::string() : fmt::format(" [{}]", fmt::join(shape, ", "));
}

struct TheirOp {
  const OperatorKind* kind = nullptr;
  Shape weight;
};

bool fits(const TheirOp& theirs, const OurNode& ours) {
  return theirs.kind && std::ranges::find(theirs.kind->onnx, ours.op) != theirs.kind->onnx.end() &&
         (theirs.weight.empty() || ours.weight.empty() || theirs.weight == ours.weight);
}

class Joiner {
 public:
  Joiner(const KinetoTrace& trace, std::vector<OurNode> ours) : trace_(trace), ours_(std::move(ours)) {
    for (const TraceOp& op : trace_.ops) {
      TheirOp& one = theirs_.emplace_back();
      one.kind = operatorKind(op.name);
      if (one.kind && one.kind->weight >= 0 && one.kind->weight < std::ssize(op.shapes))
        one.weight = sorted(op.shapes[static_cast<std::size_t>(one.kind->weight)]);
    }
    theirPartner_.assign(theirs_.size(), -1);
    ourPartner_.assign(ours_.size(), -1);
  }

  Status pair(const std::string& file) {
    std::vector<int> a, b;
    for (int i = 0; i < std::ssize(theirs_); ++i)
      if (theirs_[static_cast<std::size_t>(i)].kind) a.push_back(i);
    for (int j = 0; j < std::ssize(ours_); ++j) b.push_back(j);
    SS_STORE_ASSIGN(const auto pairs, align(static_cast<int>(a.size()), static_cast<int>(b.size()), [&](int i, int j) {
                      const TheirOp& t = theirs_[static_cast<std::size_t>(a[static_cast<std::size_t>(i)])];
                      const OurNode& o = ours_[static_cast<std::size_t>(b[static_cast<std::size_t>(j)])];
                      if (!fits(t, o)) return 0;
                      return !t.weight.empty() && !o.weight.empty() ? 9 : t.kind->weight >= 0 || !o.weight.empty() ? 3 : 2;
                    }));
    for (const auto& [i, j] : pairs) join(a[static_cast<std::size_t>(i)], b[static_cast<std::size_t>(j)]);
    SS_STORE_TRY(checkFit(file));
    giveUpContradictions();
    spread();
    return {};
  }

  const std::vector<int>& theirPartner() const { return theirPartner_; }  // index of ours, -1 = none
  const std::vector<int>& ourPartner() const { return ourPartner_; }
  const std::vector<OurNode>& ours() const { return ours_; }

  // Elements of the first inputs of pairs with a weight: theirs, ours; zero where shapes are not known.
  std::pair<std::int64_t, std::int64_t> batch() const {
    for (std::size_t i = 0; i < theirs_.size(); ++i) {
      if (theirPartner_[i] < 0 || theirs_[i].kind == nullptr || theirs_[i].kind->weight != 1 || trace_.ops[i].shapes.empty())
        continue;
      const std::int64_t ours = ours_[static_cast<std::size_t>(theirPartner_[i])].inputElements;
      std::int64_t elements = 1;
      for (const std::int64_t extent : trace_.ops[i].shapes[0]) elements *= std::clamp<std::int64_t>(extent, 0, 1 << 20);
      if (ours > 0 && elements > 0) return {elements, ours};
    }
    return {};
  }

 private:
  void join(int i, int j) {
    theirPartner_[static_cast<std::size_t>(i)] = j;
    ourPartner_[static_cast<std::size_t>(j)] = i;
  }

  // Half of the operators with a weight, theirs or ours, whichever are more, have to be the same.
  Status checkFit(const std::string& file) const {
    std::int64_t theirs = 0, ours = 0, both = 0;
    std::string first;
    for (std::size_t i = 0; i < theirs_.size(); ++i) {
      if (!theirs_[i].kind || theirs_[i].kind->weight < 0) continue;
      ++theirs;
      if (theirPartner_[i] >= 0)
        ++both;
      else if (first.empty())
        first = trace_.ops[i].name + shapeText(theirs_[i].weight) +
                (trace_.ops[i].module.empty() ? "" : " of module " + trace_.ops[i].module);
    }
    for (std::size_t j = 0; j < ours_.size(); ++j) {
      if (ours_[j].weight.empty()) continue;
      ++ours;
      if (ourPartner_[j] < 0 && first.empty())
        first = fmt::format("{} '{}'{} of the model", ours_[j].op, ours_[j].name, shapeText(ours_[j].weight));
    }
    const std::int64_t all = std::max(theirs, ours);
    if (all > 0 && 2 * both >= all) return {};
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "trace '{}': {} of its {} operators with a weight are found, in order, among the {} of the model; expected at "
            "least half of {}; the first that is not: {}",
            file, both, theirs, ours, all, first.empty() ? "none, there is nothing to join" : first));
  }

  void giveUpContradictions() {
    std::map<std::string, std::map<std::string, int>> votes;
    for (std::size_t i = 0; i < theirs_.size(); ++i)
      if (theirPartner_[i] >= 0 && !trace_.ops[i].module.empty())
        votes[trace_.ops[i].module][ours_[static_cast<std::size_t>(theirPartner_[i])].module] +=
            !theirs_[i].weight.empty() ? 10 : 1;
    for (std::size_t i = 0; i < theirs_.size(); ++i) {
      const auto found = votes.find(trace_.ops[i].module);
      if (theirPartner_[i] < 0 || found == votes.end()) continue;
      const auto most = std::ranges::max_element(found->second, {}, [](const auto& vote) { return vote.second; });
      if (ours_[static_cast<std::size_t>(theirPartner_[i])].module == most->first) continue;
      ourPartner_[static_cast<std::size_t>(theirPartner_[i])] = -1;
      theirPartner_[i] = -1;
    }
  }

  // What has no partner belongs to its neighbour in the same module: a bias's Add to the MatMul, a view to the operator
  // before.
  void spread() {
    const auto module = [&](std::size_t i) {
      return theirPartner_[i] >= 0 && trace_.ops[i].module.empty() ? ours_[static_cast<std::size_t>(theirPartner_[i])].module
                                                                   : trace_.ops[i].module;
    };
    const std::vector<int> theirs = theirPartner_, ours = ourPartner_;
    const auto fill = [](std::vector<int>& partner, const std::vector<int>& fixed, const auto& same) {
      for (std::size_t i = 0; i < fixed.size(); ++i) {
        if (fixed[i] >= 0) continue;
        std::ptrdiff_t before = static_cast<std::ptrdiff_t>(i) - 1;
        while (before >= 0 && fixed[static_cast<std::size_t>(before)] < 0) --before;
        std::size_t after = i + 1;
        while (after < fixed.size() && fixed[after] < 0) ++after;
        const bool left = before >= 0, right = after < fixed.size();
        if (left && same(i, static_cast<std::size_t>(before), right ? after : fixed.size()))
          partner[i] = fixed[static_cast<std::size_t>(before)];
        else if (right && same(i, after, left ? static_cast<std::size_t>(before) : fixed.size()))
          partner[i] = fixed[after];
      }
    };
    fill(theirPartner_, theirs, [&](std::size_t i, std::size_t neighbour, std::size_t other) {
      if (!trace_.ops[i].module.empty()) return trace_.ops[i].module == trace_.ops[neighbour].module;
      return other < theirs.size() && module(neighbour) == module(other);  // modules were not recorded
    });
    fill(ourPartner_, ours,
         [&](std::size_t j, std::size_t neighbour, std::size_t) { return ours_[j].module == ours_[neighbour].module; });
  }

  const KinetoTrace& trace_;
  std::vector<OurNode> ours_;
  std::vector<TheirOp> theirs_;
  std::vector<int> theirPartner_, ourPartner_;
};

// Operators and nodes that belong together, by union.
class Groups {
 public:
  explicit Groups(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }
  std::size_t of(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void unite(std::size_t a, std::size_t b) { parent_[std::max(of(a), of(b))] = std::min(of(a), of(b)); }

 private:
  std::vector<std::size_t> parent_;
};

void addText(std::string& text, std::string_view more) {
  constexpr std::size_t kLongest = 200;
  if (text.size() > kLongest) {
    if (!text.ends_with("…")) text += " + …";
  } else {
    text += (text.empty() ? "" : " + ") + std::string(more);
  }
}

}  // namespace

Result<PyTorchJoin> joinTime(const Project& project, std::int64_t run, const KinetoTrace& trace, const std::string& file) {
  SS_STORE_ASSIGN(const Lineage lineage, Lineage::read(project, run));
  SS_STORE_ASSIGN(const Timing timing, readTiming(project, run));
  if (timing.sampledSteps == 0)
    return fail(ErrorCode::kNotFound,
                fmt::format("run '{}': no step with its instructions; expected one recorded with record=instructions", run));
  Joiner joiner(trace, lineage.importedNodes());
  SS_STORE_TRY(joiner.pair(file));
  const std::vector<OurNode>& ours = joiner.ours();
  const std::size_t theirCount = trace.ops.size();

  Groups groups(theirCount + ours.size());
  std::map<std::int32_t, std::size_t> index;
  for (std::size_t j = 0; j < ours.size(); ++j) {
    index[ours[j].id] = j;
    if (joiner.ourPartner()[j] >= 0) groups.unite(static_cast<std::size_t>(joiner.ourPartner()[j]), theirCount + j);
  }
  for (std::size_t i = 0; i < theirCount; ++i)
    if (joiner.theirPartner()[i] >= 0) groups.unite(i, theirCount + static_cast<std::size_t>(joiner.theirPartner()[i]));
  for (const InstructionTime& one : timing.instructions) {
    if (one.phase != "forward") continue;
    std::size_t first = groups.of(0);
    bool any = false;
    for (const std::int32_t root : lineage.roots(one.node)) {
      const auto found = index.find(root);
      if (found == index.end()) continue;
      if (any) groups.unite(first, theirCount + found->second);
      first = theirCount + found->second;
      any = true;
    }
  }

  struct Half {
    std::string theirs, ours, module;
    double theirNs = 0, ourNs = 0;
    std::size_t order = 0;
  };
  std::map<std::pair<std::string, std::size_t>, Half> rows;  // by phase and group
  PyTorchJoin out;
  out.kind = "time";
  double optimizer = 0, recompute = 0;
  std::size_t order = 0;
  for (const InstructionTime& one : timing.instructions) {
    if (one.phase == "optimizer") optimizer += static_cast<double>(one.time.median);
    if (one.phase == "recompute") recompute += static_cast<double>(one.time.median);
    if (one.phase != "forward" && one.phase != "backward") continue;
    std::int32_t root = lineage.imported(one.node);
    if (!index.contains(root))
      if (const auto roots = lineage.roots(one.node); !roots.empty()) root = *roots.begin();
    // What belongs to no imported node (a cast, a copy) is a row of its own.
    const bool known = index.contains(root);
    const std::size_t group = known ? groups.of(theirCount + index[root]) : theirCount + ours.size() + order;
    Half& half = rows[{one.phase, group}];
    if (half.ours.empty()) half.order = order;
    ++order;
    addText(half.ours, one.label);
    if (half.module.empty()) half.module = known ? ours[index[root]].module : one.modulePath;
    half.ourNs += static_cast<double>(one.time.median);
  }
  std::map<std::string, std::string> paths;  // module of theirs -> path
  for (std::size_t i = 0; i < theirCount; ++i)
    if (joiner.theirPartner()[i] >= 0)
      paths.emplace(trace.ops[i].module, ours[static_cast<std::size_t>(joiner.theirPartner()[i])].module);
  for (std::size_t i = 0; i < theirCount; ++i) {
    const TraceOp& op = trace.ops[i];
    for (const bool backward : {false, true}) {
      const std::int64_t ns = backward ? op.backwardNs : op.ns;
      if (ns == 0) continue;
      Half& half = rows[{backward ? "backward" : "forward", groups.of(i)}];
      if (half.ours.empty() && half.theirs.empty()) half.order = order + (backward ? theirCount - i : i);
      addText(half.theirs, op.name);
      if (half.module.empty() && !op.module.empty())
        half.module = paths.contains(op.module) ? paths[op.module] : "(" + op.module + ")";
      half.theirNs += static_cast<double>(ns);
    }
  }
  for (const std::string_view phase : {"forward", "backward"}) {
    std::vector<const Half*> halves;
    for (const auto& [key, half] : rows)
      if (key.first == phase) halves.push_back(&half);
    std::ranges::stable_sort(halves, {}, [](const Half* h) { return std::pair(h->ours.empty(), h->order); });
    for (const Half* half : halves) {
      out.rows.push_back({std::string(phase), half->module, half->theirs, half->ours, half->theirNs, half->ourNs});
      ++(half->theirs.empty() ? out.oursAlone : half->ours.empty() ? out.theirsAlone : out.joined);
    }
  }
  if (trace.otherBackwardNs > 0) {
    out.rows.push_back(
        {"backward", "", "autograd nodes of no listed operator", "", static_cast<double>(trace.otherBackwardNs), 0});
    ++out.theirsAlone;
  }
  if (recompute > 0) {
    out.rows.push_back({"recompute", "", "", "recomputed nodes", 0, recompute});
    ++out.oursAlone;
  }
  out.rows.push_back({"optimizer", "", trace.optimizerNs > 0 ? "Optimizer.step" : "", optimizer > 0 ? "optimizer" : "",
                      static_cast<double>(trace.optimizerNs), optimizer});
  out.rows.push_back(
      {"step", "", "step", "step", static_cast<double>(trace.stepNs), static_cast<double>(timing.step.median)});

  out.notes.push_back(fmt::format("theirs: {} of the step of median length of {}; ours: medians of {} recorded steps",
                                  trace.kernels ? "kernels of the GPU" : "operators", trace.steps, timing.sampledSteps));
  if (!trace.modules) out.notes.push_back("the trace has no modules (with_stack=True): joined by order alone");
  if (!trace.shapes)
    out.notes.push_back("the trace has no shapes (record_shapes=True): weights and batches were not compared");
  if (const auto [theirs, mine] = joiner.batch(); theirs != mine)
    out.notes.push_back(fmt::format(
        "not the same batch: an input of {} elements there, of {} here; ratios are not of equal work", theirs, mine));
  return out;
}

}  // namespace stepscope::storage
