// Sends and receives what the collectives of a step say.
#pragma once

#include "engine/exec/executor.h"
#include "engine/step/step_context.h"

namespace stepscope {

class RankCollectives final : public CollectiveRunner {
 public:
  // It must outlive this; its ranks have to be there when something is run.
  explicit RankCollectives(const StepContext& context) : context_(context) {}
  // Errors: those of Ranks, and a node that is another op, or was made for another rank.
  Status run(const Node& node, const KernelCall& call) override;

 private:
  const StepContext& context_;
};

}  // namespace stepscope
