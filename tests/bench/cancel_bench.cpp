// How long a cancel waits while a model is read and built: by the phase or pass in which it came.
//
//   cancel_bench [--model FILE] [--blocks N] [--cancels N] [--set NAME=VALUE]…
//
// A model is opened and built twice; then so often again as --cancels says (default 40), each time cancelled a little later,
// over the whole time that the second one took. Weights that are not there are filled. Without a model it is a chain
// (chain_model.h) of so many blocks (default 9,100). Numbers of a run belong into RESULTS.md with date, machine and command.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/train/session.h"
#include "tests/bench/chain_model.h"

namespace stepscope {
namespace {

using Clock = std::chrono::steady_clock;

double ms(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

// What a person ends: whatever runs of one model.
class Ending {
 public:
  std::atomic<bool>& opening() { return opening_; }
  void begin() { opening_ = false; }
  void builds(Session* session) {  // null: no more
    const std::lock_guard lock(mutex_);
    session_ = session;
    if (session_ && opening_) session_->cancel();
  }
  void now() {
    const std::lock_guard lock(mutex_);
    opening_ = true;
    if (session_) session_->cancel();
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> opening_ = false;
  Session* session_ = nullptr;
};

struct Setting {
  std::filesystem::path model;
  std::vector<std::pair<std::string, std::string>> options{{"threads", "2"}};
};

// Opens and builds until the end or until it is cancelled; `phase` is what began last, `end` when it was over.
Status openAndBuild(const Setting& setting, Ending& ending, std::string& phase, Clock::time_point& end) {
  LoadOptions load;
  load.missingWeights = LoadOptions::MissingWeights::kRandom;
  load.cancel = Cancel(&ending.opening());
  Observer observer;
  observer.begins = [&](const snapshot::PhaseSpan& span) {
    phase = (span.depth() == 0 ? "" : phase.substr(0, phase.find('/')) + "/") + span.name();
  };
  auto opened = Session::open(setting.model, load, observer);
  end = Clock::now();
  SS_ASSIGN(auto session, std::move(opened));
  TrainOptions options;
  options.missingWeights = "random";
  for (const auto& [name, value] : setting.options) SS_TRY(applySetting(options, name, value, "bench"));
  SS_TRY(session->setOptions(options));
  ending.builds(session.get());
  Status status = session->build();
  end = Clock::now();
  ending.builds(nullptr);
  return status;
}

int run(const Setting& setting, int cancels) {
  Ending ending;
  std::string phase;
  Clock::time_point end;
  Clock::duration whole{};
  for (int warm = 0; warm < 2; ++warm) {
    const auto begin = Clock::now();
    if (Status built = openAndBuild(setting, ending, phase, end); !built)
      return fmt::print(stderr, "{}\n", built.error().message), EXIT_FAILURE;
    whole = end - begin;
  }
  std::map<std::string, std::vector<double>> waits;
  int ended = 0;
  for (int i = 0; i < cancels; ++i) {
    ending.begin();
    Clock::time_point cancelled;
    const auto start = Clock::now();
    std::thread person([&] {
      std::this_thread::sleep_until(start + whole * (2 * i + 1) / (2 * cancels));
      cancelled = Clock::now();
      ending.now();
    });
    const Status status = openAndBuild(setting, ending, phase, end);
    person.join();
    if (status || end < cancelled) {
      ++ended;
      continue;
    }
    if (status.error().code != ErrorCode::kCancelled)
      return fmt::print(stderr, "{}\n", status.error().message), EXIT_FAILURE;
    waits[phase].push_back(ms(end - cancelled));
  }
  fmt::print("{}: opened and built in {:.0f} ms; {} cancels, {} came too late\n", setting.model.filename().string(),
             ms(whole), cancels, ended);
  for (auto& [name, of] : waits) {
    std::sort(of.begin(), of.end());
    fmt::print("  {:<40} {:>4} cancels, median {:>8.1f} ms, longest {:>8.1f} ms\n", name, of.size(), of[of.size() / 2],
               of.back());
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace stepscope

int main(int argc, char** argv) {
  stepscope::Setting setting;
  int blocks = 9100, cancels = 40;
  bool understood = argc % 2 == 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i], value = argv[i + 1];
    if (name == "--model")
      setting.model = value;
    else if (name == "--blocks")
      blocks = std::atoi(argv[i + 1]);
    else if (name == "--cancels")
      cancels = std::atoi(argv[i + 1]);
    else if (name == "--set" && value.find('=') != std::string_view::npos)
      setting.options.emplace_back(value.substr(0, value.find('=')), value.substr(value.find('=') + 1));
    else
      understood = false;
  }
  if (!understood || blocks <= 0 || cancels <= 0) {
    fmt::print(stderr, "usage: cancel_bench [--model FILE] [--blocks N] [--cancels N] [--set NAME=VALUE]…\n");
    return 2;
  }
  const bool made = setting.model.empty();
  if (made) {
    setting.model = std::filesystem::temp_directory_path() / fmt::format("cancel_bench.{}.onnx", blocks);
    stepscope::writeChain(setting.model, blocks);
  }
  const int failed = stepscope::run(setting, cancels);
  if (made) std::filesystem::remove(setting.model);
  return failed;
}
