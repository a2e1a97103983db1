// The plans of the newest build, one for each signature of batches: which of them runs, and the graphs that led to it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/build/stage.h"
#include "engine/step/pointed_places.h"
#include "engine/step/stepper.h"

namespace stepscope {

class PlanSet {
 public:
  explicit PlanSet(StepContext& context) : context_(context) {}

  // Plans are made of this model from now on. Its stages are those of the import.
  void open(std::shared_ptr<const ImportedModel> model);
  const std::shared_ptr<const ImportedModel>& model() const { return model_; }

  bool made() const { return running_ != nullptr; }
  // The plan that runs; only where one was made, and until the next call that makes one or picks another.
  Stepper& stepper() const;
  const Graph& graph() const { return made() ? stepper().graph() : model_->graph; }  // that runs; the imported one before
  const SymbolicStep* step() const { return step_.get(); }                           // of the newest build; null before it
  std::size_t build() const;  // which of the log's builds made the plan that runs
  const std::vector<Stage>& stages() const { return stages_; }
  PointedPlaces& pointed() { return pointed_; }  // breakpoints and watches, for every plan

  // Phases attach loss … bind for the batch that `batch` gives once the data is open. Plans of before give their memory back
  // before the new one takes any; on an error of the build they stay.
  Status make(BuildRequest request, const std::function<Result<Batch>()>& batch);
  // The plan that fits the batch runs. Where none does it is made, phases specialise … bind.
  Status useFor(const Batch& batch);

  // A build next to the one that runs, with a plan for the signature of `batch`.
  struct Beside {
    std::shared_ptr<const SymbolicStep> step;
    std::unique_ptr<Stepper> stepper;
    std::vector<Stage> stages;  // before a batch binds extents
  };
  Result<Beside> makeBeside(BuildRequest request, const Batch& batch, std::string why);
  void replaceBy(Beside beside);  // it runs; what ran before is gone

 private:
  struct Running {
    std::unique_ptr<Stepper> stepper;
    std::size_t build = 0;
  };
  Result<std::unique_ptr<Stepper>> bind(std::shared_ptr<const SymbolicStep> step, const Batch& batch, std::string why,
                                        std::vector<Stage>& stages) const;
  void add(std::unique_ptr<Stepper> stepper);
  void show(const Running& running);

  StepContext& context_;
  std::shared_ptr<const ImportedModel> model_;
  std::shared_ptr<const SymbolicStep> step_;
  std::vector<std::unique_ptr<Running>> variants_;
  const Running* running_ = nullptr;
  std::vector<Stage> stages_, symbolicStages_;  // that can be looked at; those before a batch binds extents
  PointedPlaces pointed_;
};

}  // namespace stepscope
