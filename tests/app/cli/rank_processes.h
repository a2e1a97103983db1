// Runs of several processes: what they wrote, and processes that a test ends.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <vector>

#include "engine/data/safetensors.h"
#include "tests/app/cli/program.h"

namespace stepscope::testing {

inline std::map<std::string, std::vector<double>> tensorsOf(const std::filesystem::path& file) {
  std::map<std::string, std::vector<double>> all;
  const auto reader = SafetensorsReader::open(file);
  EXPECT_TRUE(reader.has_value()) << file;
  if (!reader) return all;
  for (const auto& [name, entry] : reader->entries()) {
    const Tensor tensor(entry.dtype, entry.dims);
    EXPECT_TRUE(reader->read(entry, tensor.view()).has_value());
    for (std::int64_t i = 0; i < tensor.elements(); ++i) all[name].push_back(elementAsDouble(tensor.view(), i));
  }
  return all;
}

/// The largest difference of any tensor, as a share of the largest element of it.
inline double distance(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto left = tensorsOf(a), right = tensorsOf(b);
  EXPECT_EQ(left.size(), right.size());
  double worst = 0;
  for (const auto& [name, values] : left) {
    const auto other = right.find(name);
    EXPECT_NE(other, right.end()) << name;
    if (other == right.end()) continue;
    double largest = 1e-6, difference = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(values[i]));
      difference = std::max(difference, std::abs(values[i] - other->second[i]));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

inline std::vector<nlohmann::json> eventsOf(const std::string& text, const std::string& kind) {
  std::vector<nlohmann::json> events;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with('{'))
      if (auto event = nlohmann::json::parse(line); event["event"] == kind) events.push_back(std::move(event));
  return events;
}

/// Processes that have this one as their parent, or one of them.
inline std::set<pid_t> childrenOf(pid_t parent) {
  std::set<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stat(entry.path() / "stat");
    std::string text;
    std::getline(stat, text);
    const auto close = text.rfind(')');
    if (close == std::string::npos) continue;
    if (std::atoi(text.c_str() + close + 4) == parent) found.insert(std::atoi(name.c_str()));
  }
  return found;
}

struct Started {
  pid_t pid = -1;
  std::filesystem::path log;
};

inline Started start(const std::string& arguments, const std::filesystem::path& folder, const std::string& launcher = "") {
  const Started started{.log = folder / "started.txt"};
  const std::string command = fmt::format("exec {} {} {} > {} 2>&1", launcher, SS_PROGRAM, arguments, started.log.string());
  std::string shell = "/bin/sh", flag = "-c", text = command;
  char* const arguments_[] = {shell.data(), flag.data(), text.data(), nullptr};
  Started running = started;
  EXPECT_EQ(posix_spawn(&running.pid, "/bin/sh", nullptr, nullptr, arguments_, environ), 0);
  return running;
}

/// Waits until the text is in the log.
inline bool comes(const Started& started, const std::string& text) {
  for (int i = 0; i < 1200; ++i) {
    if (contents(started.log).find(text) != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

/// The exit code; -1 where it does not end.
inline int endOf(pid_t pid) {
  for (int i = 0; i < 1200; ++i) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  kill(pid, SIGKILL);
  return -1;
}

}  // namespace stepscope::testing
