// Runs the program as a user does.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace stepscope::testing {

struct Answer {
  int exitCode = -1;
  std::string text;  // both streams
};

// `folder` takes the log; `launcher` starts the program.
inline Answer runWith(const std::string& launcher, const std::string& arguments, const std::filesystem::path& folder) {
  const auto log = folder / "log.txt";
  const int status = std::system(fmt::format("{} {} {} > {} 2>&1", launcher, SS_PROGRAM, arguments, log.string()).c_str());
  std::ifstream file(log);
  std::ostringstream text;
  text << file.rdbuf();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text.str()};
}

inline Answer run(const std::string& arguments, const std::filesystem::path& folder) {
  return runWith("", arguments, folder);
}

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace stepscope::testing
