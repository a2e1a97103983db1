// One subcommand of `stepscope`: declares its options on the CLI11 parser and returns what runs when it was chosen.
// Exit codes: 0 success, 1 the work failed, 2 wrong usage. Errors go to stderr as "error: <what> '<name>': …".
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/build/options.h"
#include "kernels/status.h"

namespace stepscope::cli {

inline constexpr int kSuccess = 0, kFailed = 1, kUsage = 2;

using Run = std::function<int()>;

Run addBuild(CLI::App& parent);
Run addTrain(CLI::App& parent);
Run addRun(CLI::App& parent);
Run addInspect(CLI::App& parent);
Run addReport(CLI::App& parent);
Run addCompare(CLI::App& parent);
Run addSql(CLI::App& parent);
Run addOptions(CLI::App& parent);
Run addDoctor(CLI::App& parent);
Run addWorker(CLI::App& parent);
Run addOpen(CLI::App& parent);

// Prints "error: …" and returns the exit code that fits it.
int report(const Error& error);

// --fetch VALUE=FILE.npy, split at the last '=': names of values may hold one.
Result<std::vector<std::pair<std::string, std::string>>> parseFetches(const std::vector<std::string>& items);

// The settings of DESIGN §8 that `build`, `train` and `run` share. add() declares the flags, apply() sets the options.
class SharedOptions {
 public:
  void add(CLI::App& app);
  Result<TrainOptions> apply() const;
  bool resume = false;
  std::string initFrom;
  bool mapWeights = false;

 private:
  std::vector<std::pair<std::string, std::shared_ptr<std::vector<std::string>>>> values_;
  std::shared_ptr<std::vector<std::string>> set_ = std::make_shared<std::vector<std::string>>();
  bool nesterov_ = false;
};

// Prints what is wrong with the flags and returns the exit code: wrong usage, or failed where this build lacks what was
// asked for.
std::optional<int> usageError(const SharedOptions& shared, const std::vector<std::string>& fetches = {});

}  // namespace stepscope::cli
