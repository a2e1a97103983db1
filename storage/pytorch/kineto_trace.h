// A trace of torch.profiler (`export_chrome_trace`), as the forward operators of one training step with what their backward
// took.
//
// A step is what ProfilerStep#N annotates; without a schedule, what lies between two calls of Optimizer.step; else the whole
// trace. Of several the one of median length counts. An operator is a call of the outermost level ("aten::linear" and not
// the "aten::addmm" in it). Its time is that of the kernels that it launched where the trace has kernels of a GPU, else its
// own. Its backward is what the autograd engine evaluated for it, by sequence number; accumulation of a gradient counts to
// the node before it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "storage/error.h"

namespace stepscope::storage {

struct TraceOp {
  std::string name;    // "aten::linear"
  std::string module;  // class and number of the innermost module, "Linear_3"; empty: not recorded
  std::vector<std::vector<std::int64_t>> shapes;  // of its arguments; empty: not recorded
  std::int64_t ns = 0, backwardNs = 0;
};

struct KinetoTrace {
  std::int64_t steps = 0;                                 // that the trace has
  bool kernels = false, shapes = false, modules = false;  // what it has: kernels of a GPU, record_shapes, with_stack
  std::int64_t stepNs = 0, optimizerNs = 0;               // of the step that counts
  std::int64_t otherBackwardNs = 0;                       // backward of no operator that is listed
  std::vector<TraceOp> ops;                               // in order of time
};

// Of a file that is read whole.
inline constexpr std::int64_t kMostTraceBytes = std::int64_t{1} << 30;

// Errors: kNotFound, kIo, kForeign (no JSON, no trace of torch.profiler, no operator in it), kLimitExceeded (file too
// large).
Result<KinetoTrace> readKinetoTrace(const std::filesystem::path& path);

// The contents of a file of at most `most` bytes.
Result<std::string> readForeignFile(const std::filesystem::path& path, std::int64_t most);

}  // namespace stepscope::storage
