// The plans of the newest build, one for each signature of batches: which of them runs, and the graphs that led to it.
//
// Where a pass leaves out rows that do not count, every batch decides whether it does (engine/build/rows_choice.h): both
// steps are built once, when a batch first asks for them. Plans that do not run stay within option variants.bytes; above it
// those that ran longest ago are given back, with an alert that says so.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
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
  // The model with the plugins that are in their files now; null where none of these has changed. Errors: those of
  // registryWith() and import; kInvalidArgument where the nodes of its own file have changed too.
  Result<std::shared_ptr<const ImportedModel>> underChangedPlugins() const;
  // Plans that are made later are of this one, the same file with another registry; those that are there, and the graphs
  // that can be looked at, stay. Returns the one before.
  std::shared_ptr<const ImportedModel> exchange(std::shared_ptr<const ImportedModel> model) {
    return std::exchange(model_, std::move(model));
  }

  bool made() const { return running_ != nullptr; }
  // The plan that runs; only where one was made, and until the next call that makes one or picks another.
  Stepper& stepper() const;
  const Graph& graph() const { return made() ? stepper().graph() : model_->graph; }  // that runs; the imported one before
  const SymbolicStep* step() const { return made() ? &stepper().step() : nullptr; }  // of the plan that runs
  std::size_t build() const;  // which of the log's builds made the plan that runs
  std::string signature() const { return made() ? stepper().plan().signature : std::string(); }  // of its batches
  const std::vector<Stage>& stages() const { return stages_; }
  // What is trained and what is not, with the reason; empty before a build.
  const std::vector<ParameterChoice>& parameters() const;
  const Value& valueOf(const ParameterChoice& parameter) const;  // as the file has it, or the graph of option loss-graph
  PointedPlaces& pointed() { return pointed_; }                  // breakpoints and watches, for every plan

  // Phases attach loss … bind for the batch that `batch` gives once the data is open. Plans of before, and a step that is
  // begun, give way before the new one takes memory. After an error comeBack() has them as they were. Every call that makes
  // a plan looks at StepContext::cancelled: kCancelled.
  Status make(BuildRequest request, const std::function<Result<Batch>()>& batch);
  // Where it fails no plan is left.
  Status comeBack();
  // The plan that fits the batch runs. Where none does it is made: phases specialise … bind, and those before them where the
  // batch asks for another step.
  Status useFor(const Batch& batch);

  // A build next to the one that runs, with a plan for the signature of `batch`.
  struct Beside {
    std::shared_ptr<const SymbolicStep> step;
    std::unique_ptr<Stepper> stepper;
    std::vector<Stage> stages;  // before a batch binds extents
  };
  Result<Beside> makeBeside(BuildRequest request, const Batch& batch, std::string why);
  // The memory of the state is another one: every plan is bound anew. On an error no plan is left.
  Status bindAgain();
  void replaceBy(Beside beside);  // it runs; what ran before is gone

 private:
  // A step before a batch binds extents, and the graphs up to it.
  struct Symbolic {
    std::shared_ptr<const SymbolicStep> step;
    std::vector<Stage> stages;
  };
  struct Running {
    std::unique_ptr<Stepper> stepper;
    std::size_t build = 0;
    std::shared_ptr<const Symbolic> from;
    std::int64_t used = 0;  // the larger, the later it ran
  };
  Builder builder() const;
  Status makeFirst(BuildRequest request, const std::function<Result<Batch>()>& batch);
  Status makeVariant(const Batch& batch, RowsChoices rows, std::shared_ptr<const Symbolic> from);
  Result<std::unique_ptr<Stepper>> bind(std::shared_ptr<const SymbolicStep> step, const Batch& batch, std::string why,
                                        std::vector<Stage>& stages, const std::function<void()>& takesMemory = {}) const;
  RowsChoices choiceFor(const Batch& batch) const;
  std::shared_ptr<const Symbolic> madeFor(const RowsChoices& rows) const;  // null: none was made yet
  void begin(std::shared_ptr<const Symbolic> from, std::unique_ptr<Stepper> stepper);
  void remember(const std::shared_ptr<const Symbolic>& from);
  void add(std::unique_ptr<Stepper> stepper, std::shared_ptr<const Symbolic> from);
  void show(Running& running);
  void giveBack();

  StepContext& context_;
  std::shared_ptr<const ImportedModel> model_;
  std::vector<std::shared_ptr<const Symbolic>> steps_;  // of the newest build
  std::set<std::string> all_;                           // inputs whose rows no pass of this build can leave out
  std::vector<std::unique_ptr<Running>> variants_;
  Running* running_ = nullptr;
  std::vector<std::unique_ptr<Running>> aside_;  // gave way to the plan that is made; the one that ran is the last
  std::int64_t uses_ = 0;
  std::set<std::string> givenBack_;  // signatures of plans that were
  std::vector<Stage> stages_;        // that can be looked at
  PointedPlaces pointed_;
};

}  // namespace stepscope
