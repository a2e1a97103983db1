// Sends and receives what the collectives of a step say.
#pragma once

#include <deque>

#include "engine/exec/executor.h"
#include "engine/step/step_context.h"

namespace stepscope {

class RankCollectives final : public CollectiveRunner {
 public:
  // It must outlive this; its ranks have to be there when something is run.
  explicit RankCollectives(const StepContext& context) : context_(context) {}
  // Errors: those of Ranks, and a node that is another op, or was made for another rank.
  Status run(const Node& node, const KernelCall& call) override;
  bool beside() const override;
  void begin(const Node& node, const KernelCall& call) override;
  bool hasBegun(const Node& node) const override;
  Status wait(const Node& node) override;
  void settle() override;
  Status putOnDevice(const Node& node, const KernelCall& call) override;
  Status ended() override;
  // The step is taken back. What has begun and was not waited for is ended; what it brought stands where it was put, as
  // nothing ran from its place on, and is kept for when the step is run again.
  void leave();

 private:
  struct Begun {
    const Node* node;
    std::span<TensorView> outputs;
  };
  CollectivePlace placeOf(const Node& node) const;
  Status exchange(const Node& node, const CollectivePlace& place, std::span<const TensorView> inputs,
                  std::span<TensorView> outputs);

  std::deque<Begun> begun_;  // and not waited for, in their order
  const StepContext& context_;
};

}  // namespace stepscope
