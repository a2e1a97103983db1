// The settings of DESIGN §8 that `build`, `train`, `run`, `inspect` and `options` share.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/command.h"
#include "engine/build/options.h"

namespace stepscope {
class Registry;
struct PluginWish;
}  // namespace stepscope

namespace stepscope::cli {

// Declares the options, then makes TrainOptions of what was given. Must not move after addTo().
class SharedOptions {
 public:
  SharedOptions();
  ~SharedOptions();
  SharedOptions(const SharedOptions&) = delete;
  SharedOptions& operator=(const SharedOptions&) = delete;
  // `shown`: those that the help lists, empty for all; the others are taken as well, unless the command has an option of
  // that name already.
  void addTo(Command& command, const std::vector<std::string_view>& shown = {});
  // Loads the plugins that are asked for; they stay loaded as long as this lives. Errors: a value that an option does not
  // take; options that exclude each other; those of registryWith().
  Result<TrainOptions> apply() const;
  // What there is to be set: that of registry(), once apply() succeeded.
  const std::vector<OptionInfo>& table() const;
  bool resume = false;
  std::string initFrom;  // --init-from; empty: parameters of the model
  bool mapWeights = false;

 private:
  Result<PluginWish> wish() const;

  mutable std::shared_ptr<const Registry> registry_;
  std::list<std::pair<std::string, std::vector<std::string>>> values_;  // name of an option and what was given for it
  std::vector<std::string> set_;
  bool nesterov_ = false;
  const bool* json_ = nullptr;  // --json of the command
};

// --fetch VALUE=FILE.npy, split at the last '=': names of values may hold one.
Result<std::vector<std::pair<std::string, std::string>>> parseFetches(const std::vector<std::string>& items);

// Prints what is wrong with the flags and returns the exit code: wrong usage, or failed where this build lacks what was
// asked for.
std::optional<int> usageError(const SharedOptions& shared, const std::vector<std::string>& fetches = {});

}  // namespace stepscope::cli
