#include "tests/faults/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace stepscope::testing {
namespace {

int entries(const std::string& folder) {
  std::error_code error;
  int count = 0;
  for (auto it = std::filesystem::directory_iterator(folder, error); !error && it != std::filesystem::directory_iterator();
       it.increment(error))
    ++count;
  return count;
}

}  // namespace

Child::Child(const std::vector<std::string>& command, const std::filesystem::path& log) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  id_ = fork();
  if (id_ > 0) return;
  if (id_ < 0) std::abort();         // to signal process -1 would end all of them
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is ended leaves nothing behind
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  execv(arguments[0], arguments.data());
  std::fprintf(stderr, "%s: %s\n", arguments[0], std::strerror(errno));
  _exit(127);
}

Child::~Child() {
  if (!running()) return;
  signal(SIGKILL);
  wait();
}

bool Child::running() {
  if (!ended_ && waitpid(id_, &status_, WNOHANG) != 0) ended_ = true;
  return !ended_;
}

void Child::signal(int number) {
  if (!ended_) kill(id_, number);
}

int Child::wait() {
  while (!ended_ && waitpid(id_, &status_, 0) < 0 && errno == EINTR) {
  }
  ended_ = true;
  return status_;
}

std::int64_t Child::residentBytes() const {
  std::ifstream status(fmt::format("/proc/{}/status", id_));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::atoll(line.c_str() + 6) * 1024;
  return 0;
}

int Child::handles() const { return entries(fmt::format("/proc/{}/fd", id_)); }
int Child::threads() const { return entries(fmt::format("/proc/{}/task", id_)); }

}  // namespace stepscope::testing
