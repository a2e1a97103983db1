// The ranges of a run for NVIDIA's tools: run, step, phase, module, node, each in the one before. Option record.nvtx; steps
// at full speed only, since somebody who walks stops between ranges.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/exec/executor.h"
#include "engine/profile/nvtx.h"

namespace stepscope {

// Of a plan; the run goes on from one plan to the next.
class NvtxRanges final : public InstructionMarks {
 public:
  NvtxRanges(const nvtx::Tool& tool, const Graph& graph, const ExecutionPlan& plan);

  void beginStep(std::int64_t number);
  void endStep();
  void begin(int instruction) override;
  void end() override;

 private:
  struct Place {
    std::string phase, module, node;
  };
  void leave();  // the module and the phase that are open

  const nvtx::Tool& tool_;
  std::vector<Place> places_;  // by instruction
  const Place* open_ = nullptr;
};

// The range of a run, which ends with it.
class NvtxRun {
 public:
  NvtxRun(const nvtx::Tool& tool, const std::string& name);
  ~NvtxRun();
  NvtxRun(const NvtxRun&) = delete;
  NvtxRun& operator=(const NvtxRun&) = delete;

 private:
  const nvtx::Tool& tool_;
  const std::uint64_t range_;
};

}  // namespace stepscope
