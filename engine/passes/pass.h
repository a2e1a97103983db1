// What a pass is, what it is told, and what it reports. One pass = one .h + one .cpp with one exported function. Import,
// lowering and optimisation share the signature; pipeline.h lists all of them, run_passes.h runs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/onnx/function.h"
#include "engine/passes/graph_cost.h"
#include "engine/passes/infer.h"

namespace stepscope {

struct NearMiss {
  NodeId node;
  std::string condition;  // the first condition that failed, in words
};

// What a pass found and changed.
struct PassResult {
  std::size_t matches = 0;
  std::vector<NearMiss> nearMisses;
  std::vector<std::string> notes;
  std::vector<std::string> warnings;  // what a user should know without looking at the pass
  std::string blocked;                // why the first node that a lowering had to leave could not be lowered; empty: none
  std::optional<GraphCost> saved;     // what one run of the graph costs less; negative numbers are costs (run_passes.h)
};

// What the step will run on.
struct PassTarget {
  std::string device = "cpu";
  int threads = 0;  // 0: not known yet
  Roof roof;
};

// How much of an input of the batch at hand counts: labels that are not ignored, tokens that are no padding.
struct InputDensity {
  std::string input;
  std::int64_t valid = 0, elements = 0;
  std::string kind = {};     // "labels", "mask", "tokens"
  std::string mask = {};     // of tokens: the input of as many elements that is 0 where one does not count; else by value:
  std::int64_t ignored = 0;  // elements of this value do not count
  std::string dense = {};    // why all of its rows are computed; empty: those that count may be computed alone
};

// One setting of option precision.force.
struct ForcedPrecision {
  std::string setting;  // as the user wrote it
  DType dtype = DType::kF32;
  std::function<bool(std::string_view)> matches;  // an op, the name of a node, or its module
};

// What a pass is told, and where it leaves its report. The runner empties `result` before every pass.
struct PassContext {
  explicit PassContext(Inference& facts) : inference(facts) {}

  Inference& inference;  // of the graph that is passed with it; before the pass `infer` it knows nothing
  PassTarget target;
  std::map<std::string, std::string, std::less<>> options;  // name → value, of those that were set
  std::vector<InputDensity> batch;                          // empty before a batch is there
  std::optional<std::map<std::string, Dim>> extents;        // of the batch at hand, by symbol; absent before it is there
  int opset = kInternalOpset;                               // of nodes that do not tell theirs; import passes
  const std::vector<Function>* functions = nullptr;         // model-local functions; import passes
  void* user = nullptr;                                     // of the pass that runs
  Cancel cancel;                                            // looked at before every pass, and by long ones
  // The type that the user wants a node computed in, as the settings of option precision.force say; pass assign_precision.
  std::vector<ForcedPrecision> forced;
  PassResult result;

  void match(std::size_t count = 1) { result.matches += count; }
  void miss(NodeId node, std::string condition) { result.nearMisses.push_back({node, std::move(condition)}); }
  void note(std::string text) { result.notes.push_back(std::move(text)); }
  void warn(std::string text) { result.warnings.push_back(std::move(text)); }
  // Only the first reason is kept.
  void block(std::string reason) {
    if (result.blocked.empty()) result.blocked = std::move(reason);
  }
  // The value of an option, `fallback` where it was not set.
  std::string_view option(std::string_view name, std::string_view fallback) const {
    const auto it = options.find(name);
    return it == options.end() ? fallback : std::string_view(it->second);
  }
};

// A pass that changes nothing leaves the graph's version as it was. It never fails the build because it does not apply;
// its errors are those of a graph that contradicts itself or cannot be lowered.
using PassFunction = Status (*)(Graph& graph, PassContext& context);

enum class PassSwitch : std::uint8_t {
  kOn,         // the option "pass.<name>" switches it off
  kOff,        // a person switches it on, because results differ by more than their rounding
  kMandatory,  // import and lowering: what follows cannot do without it, so there is no option
};

struct Pass {
  std::string_view name;  // edits, spans and reports bear it
  std::string_view doc;
  PassFunction run;
  PassSwitch enabled = PassSwitch::kOn;
  void* user = nullptr;  // given to it as PassContext::user: for passes that a shared library adds
};

}  // namespace stepscope
