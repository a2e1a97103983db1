// A model as a function with a backward pass, for a program that computes the loss itself: forward, then the gradients of
// its outputs in and those of parameters and inputs out. Several forward passes may be open at once; each has the
// activations of a plan of its own, which the next one takes over when it ends.
//
// Parameters and statistics are the session's, which outlives the function and its calls. A signature of inputs is a plan,
// made when it first comes; the sixteen that were used last are kept. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/build/builder.h"
#include "engine/step/stepper.h"
#include "engine/train/pass_watcher.h"

namespace stepscope {

struct FunctionRequest {
  std::vector<std::string> outputs;  // floats whose gradients are fed; none: there is no backward pass
  std::vector<std::string> inputs;   // floats whose gradients are wanted; parameters too (outer_gradients.h)
};

// Plans of one signature, those that no call uses now.
struct FunctionPlans {
  std::shared_ptr<const Variant> variant;
  std::vector<std::unique_ptr<Stepper>> idle;
  std::size_t made = 0;
};

struct CallGradient {
  Tensor contents;
  bool alone = false;  // nothing else reads its memory any more: until the call ends it may be written to
};

// One forward pass, whose backward pass may follow once.
class ModelCall {
 public:
  ModelCall(StepContext& context, std::shared_ptr<FunctionPlans> plans, std::unique_ptr<Stepper> stepper, std::uint64_t seed,
            PassWatcher* watcher);
  ~ModelCall();  // gives the plan back
  ModelCall(const ModelCall&) = delete;
  ModelCall& operator=(const ModelCall&) = delete;

  // On the host, until the call ends. Error kNotFound: no output of the model has this name.
  Result<Tensor> output(const std::string& name) const;
  // Of outputs that the function was made for, in their types and extents; what is not given is zero. Errors: there is no
  // backward pass, or it ran already; an output of another name, type or extents.
  Status backward(const std::map<std::string, Tensor>& gradients);
  // Of a trained parameter or a wanted input, until the call ends; nothing where no output with a gradient depends on it.
  // Errors: backward() did not run; another name.
  Result<std::optional<CallGradient>> gradient(const std::string& name) const;

 private:
  friend class ModelFunction;
  const OuterStep* outer() const;
  Executor::RunOptions runOptions() const;
  int firstSeedReader() const;
  Status forward(const Batch& batch);
  Status run(int begin, int end);  // told to the watcher, where there is one that listens
  bool isReadBackward(const std::string& state) const;
  bool isAlone(ValueId gradient) const;
  Status writeUpdates();
  Status feed(const OuterStep::Seed& seed, const Tensor& gradient);

  StepContext& context_;
  std::shared_ptr<FunctionPlans> plans_;
  std::unique_ptr<Stepper> stepper_;
  const std::uint64_t seed_;
  PassWatcher* const watcher_;
  std::uint64_t number_ = 0;  // for the watcher; 0: none was told of it
  bool wentBack_ = false;
  std::map<std::string, Tensor> outputs_;  // those that were a state as it was before this forward pass changed it
  // By name: contents, from before this forward pass, of state that it has changed and the backward pass reads.
  std::map<std::string, Tensor> before_;
  // Fed gradients that are those of a parameter or an input as they are: nothing reads them, so the plan has no memory for
  // them.
  std::map<ValueId, Tensor> handedOn_;
};

class ModelFunction {
 public:
  // `request`: of a build of the session (its options decide what is trained).
  ModelFunction(StepContext& context, std::shared_ptr<const ImportedModel> model, BuildRequest request, FunctionRequest of);

  // `arrays` by graph input, borrowed for the call; `seed` keys what is random in both passes. Errors: those of batchOf()
  // and of building.
  Result<std::unique_ptr<ModelCall>> forward(const std::map<std::string, Tensor>& arrays, std::uint64_t seed);
  std::size_t plans() const { return plans_.size(); }  // that are kept
  // Of all calls from now on; null: nobody. It outlives them.
  void setWatcher(PassWatcher* watcher) { watcher_ = watcher; }

 private:
  Result<std::shared_ptr<FunctionPlans>> plansFor(const Batch& batch);

  StepContext& context_;
  std::shared_ptr<const ImportedModel> model_;
  BuildRequest request_;
  FunctionRequest of_;
  PassWatcher* watcher_ = nullptr;
  std::shared_ptr<const SymbolicStep> step_;           // null: nothing came yet
  std::vector<std::shared_ptr<FunctionPlans>> plans_;  // the one that was used last comes last
};

}  // namespace stepscope
