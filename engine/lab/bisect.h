// Which options, and which nodes, make a step compute other numbers than it should.
//
// The reference is the step with every optimisation off: no pass that can be switched off, float32, nothing computed again,
// no memory used twice, and what the question says besides. One micro step of it is compared with the step as it is: loss,
// gradients and new parameters, as relative L2 errors. What is rounding is measured first, for each of them: the reference
// with itself, under other numbers of threads and with every weight rounded once more (an A/A run, noise_bounds.h). Where
// they differ by more, delta debugging (Zeller, Hildebrandt 2002) looks
// for options that show it on top of the reference, and of which none can be left out. Then both plans run side by side,
// value by value: the first value that differs although everything it is made from agrees leads to a sub-graph, which is
// made smaller as long as it shows the difference alone, with the contents of that step as its data.
//
// State, plan and place of the session stay as they are. Costs a build and a step for each set of options that is tried.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/build/builder.h"
#include "engine/state/state.h"

namespace stepscope {

struct BisectQuestion {
  std::vector<std::pair<std::string, std::string>> reference{{"kernels", "reference"}};  // settings, on top of "all off"
  double tolerance = 0;        // largest relative L2 error that is rounding; 0: what the A/A run says
  std::filesystem::path file;  // .onnx of the sub-graph; its data stands beside it as .safetensors. Empty: not written
};

struct BisectSubject {
  std::shared_ptr<const ImportedModel> model;
  BuildRequest request;  // of the present plan
  Batch batch;
  StateSnapshot start;                     // of the step
  std::atomic<bool>* cancelled = nullptr;  // ends the search; taken back by it
  std::function<void(const std::string& what, std::int64_t done, std::int64_t total)> progress;  // may be null
};

// How far a step is from the reference: what is farthest beyond its bound, or nearest to it.
struct BisectDifference {
  double error = 0;  // relative L2; infinite where one of two numbers is not finite
  std::string what;  // "loss", "gradient of 'w'", "new value of 'w'"; empty: nothing differs
  double bound = 0;  // of it: below, it is rounding
  bool beyond() const { return error > bound; }
};

// An option of the set, in the reference and in the step as it is.
struct BisectOption {
  std::string name, reference, value;
};

struct BisectReport {
  std::int64_t step = 0;
  std::string batch;
  double tolerance = 0;               // of the question; 0: bounds are those of the A/A run
  int pairs = 0;                      // of the reference with itself
  double noise = 0;                   // median of the errors of the gradients among them
  std::size_t candidates = 0;         // options whose values differ between the step and the reference
  int tried = 0;                      // sets of options that a step was run with
  BisectDifference all;               // of the step as it is
  bool differs = false;               // by more than its bound
  std::vector<BisectOption> options;  // the set that was found
  BisectDifference found;             // of that set alone

  // Where it begins. Empty: see `note`.
  std::string value, label, module, source;  // the first value that differs and the node that makes it in the reference
  double valueError = 0;
  std::vector<std::string> nodes;  // of the sub-graph, "Op 'name'"
  std::vector<std::string> inputs;
  std::filesystem::path file, data;  // that were written
  bool shown = false;                // the sub-graph alone shows the difference
  double shownError = 0;
  std::string note;  // why there is no sub-graph, or why it does not show the difference
};

// Errors: an option of the reference that is none or takes no such value; those of building and running the reference and
// the step as it is; kOutOfMemory where the state does not fit into memory twice more; kIo for the files; kCancelled.
Result<BisectReport> bisect(const BisectSubject& subject, const BisectQuestion& question);

}  // namespace stepscope
