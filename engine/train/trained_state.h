// What training changes, by name: parameters, statistics and optimizer state of a session, and their files.
//
// Parts of a session that it borrows outlive it. All functions belong to the session's thread; those that change contents
// belong between two steps.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "engine/state/state_file.h"
#include "engine/state/state_ring.h"
#include "engine/train/number_guard.h"
#include "engine/train/plan_set.h"

namespace stepscope {

class TrainedState {
 public:
  TrainedState(StepContext& context, PlanSet& plans, NumberGuard& numbers, StateRing& ring, const TrainOptions& options)
      : context_(context), plans_(plans), numbers_(numbers), ring_(ring), options_(options) {}

  // Parameters of floating types as they are now, with `optimizer` statistics and optimizer state too. The views are good
  // until a step runs or contents are placed.
  std::map<std::string, TensorView> named(bool optimizer) const;
  // Of a trained parameter, as accumulated, without loss scale and clipping, in the parameter's type; zeros where the loss
  // does not depend on it. Errors: nothing is built; no trained parameter of this name; gradients were not asked for.
  Result<Tensor> gradient(const std::string& parameter) const;

  // Other contents for a parameter, a statistic or optimizer state, converted where the floating type differs. Errors: a
  // step is begun; an unknown name; other extents.
  Status write(const std::string& name, const TensorView& contents);
  // These live in memory that a caller shares (State::place); all of them or, on an error of a name, none. Initializers may
  // be placed before the build. The plans are bound again. Errors: a step is begun; those of State::place.
  Status place(std::map<std::string, Tensor> memory, bool take);

  PropertyBag& properties() { return properties_; }  // kept by save(); what a file has replaces its like
  const PropertyBag& properties() const { return properties_; }
  Status save(const std::filesystem::path& path) const;  // safetensors: parameters, optimizer state, counters
  // Whether ranks have parts of state (option ranks.shard); whether of this.
  bool isPart(const std::string& name) const;
  // A call of all ranks, after the last step: named() of rank 0 then has whole parameters.
  Status bringTogether();
  // Whether ranks have parts of the optimizer state (option ranks.shard). save() is then a call of all of them: rank 0
  // writes the whole, one tensor at a time, and `path` is not looked at by the others.
  bool keepsParts() const;
  // A begun step is thrown away. With `resume` optimizer state and counters too. What the file lacks is a warning. Errors
  // are those of loadStateFile().
  Status load(const std::filesystem::path& path, bool resume);
  // Loads the file of option start-state where it is another one than before; a begun step gives way (Stepper::giveWay).
  // What is returned puts all of it back, for a build that does not come to its end; empty where nothing was loaded.
  Result<std::function<void()>> beginWhereAsked(bool resume);
  void tellWhatTheFileLacks();  // after a build, once for a file

 private:
  bool inStep() const { return plans_.made() && plans_.stepper().inStep(); }
  Status obtainInitializer(const std::string& name);
  Status read(const std::filesystem::path& path, bool resume);

  StepContext& context_;
  PlanSet& plans_;
  NumberGuard& numbers_;
  StateRing& ring_;
  const TrainOptions& options_;
  PropertyBag properties_;
  std::map<std::string, Tensor> whole_;              // of parameters of which this rank has a part
  mutable std::map<std::string, Tensor> readAgain_;  // that the file has and no plan of this session: what named() lends
  std::optional<StateNames> loaded_;                 // not compared with what is trained yet
  std::string begunWith_;                            // the file of start-state that was loaded
};

}  // namespace stepscope
