// What a session knows: ops, kernels, passes, options. Built once from explicit lists, then immutable and shared; two
// sessions with different registries can exist side by side.
//
//   RegistryBuilder builder;              // holds all that is built in
//   SS_TRY(builder.addOps(mine));         // entries may carry `void* user`: a shared library can add some
//   SS_TRY(builder.addKernels("cpu", myKernels));
//   auto session = Session::open(path, load, observer, nullptr, std::move(builder).build());
//
// Whatever entries point at (names, rules, `user`) must outlive the registry.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/build/options.h"
#include "engine/ops/operators.h"
#include "engine/passes/pipeline.h"

namespace stepscope {

class Registry {
 public:
  // Of the built-in lists only.
  static const std::shared_ptr<const Registry>& builtIn();

  const Operators& operators() const { return operators_; }
  const std::vector<PassList>& pipeline() const { return pipeline_; }
  // The list of a phase of that name; it must be one of them.
  const PassList& passesOf(std::string_view phase) const;
  // The switches of the passes stand at the end.
  const std::vector<OptionInfo>& options() const { return options_; }

 private:
  friend class RegistryBuilder;
  Operators operators_;
  std::vector<PassList> pipeline_;
  std::vector<OptionInfo> options_;
  std::deque<std::string> names_;  // what views in options_ point at
};

class RegistryBuilder {
 public:
  RegistryBuilder();

  // Errors: those of OpRegistry::add and KernelRegistry::add.
  Status addOps(std::span<const OpDef* const> ops);
  Status addKernels(std::string_view device, std::span<const KernelEntry> entries);
  // Behind the passes of its phase; with the option "pass.<name>" unless it is mandatory. Errors: a phase that has no
  // passes, a name that the phase has already.
  Status addPass(std::string_view phase, const Pass& pass);
  // Its setting is kept as text in TrainOptions::added. Error: a name that is taken.
  Status addOption(const OptionInfo& option);

  std::shared_ptr<const Registry> build() &&;

 private:
  std::shared_ptr<Registry> registry_;
};

}  // namespace stepscope
