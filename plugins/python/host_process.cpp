// SPDX-License-Identifier: Apache-2.0
#include "plugins/python/host_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

extern char** environ;

namespace stepscope::python {
namespace {

constexpr std::size_t kMostMemory = std::size_t{1} << 38;  // of addresses, not of memory
constexpr std::size_t kAlignment = 64;
constexpr double kStartSeconds = 180;  // at least: a busy machine takes minutes to read torch

const char* const kScript =
#include "host_script.inc"
    ;

const char* interpreter() {
  const char* named = std::getenv("STEPSCOPE_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

double limitSeconds() {
  const char* text = std::getenv("STEPSCOPE_PYTHON_TIMEOUT");
  const double seconds = text != nullptr ? std::strtod(text, nullptr) : 0;
  return seconds > 0 ? seconds : 60;
}

void closeFile(int& file) {
  if (file >= 0) ::close(file);
  file = -1;
}

}  // namespace

HostProcess& HostProcess::instance() {
  static HostProcess host;
  return host;
}

HostProcess::~HostProcess() {
  const char* wanted = std::getenv("STEPSCOPE_PYTHON_LEAKS");
  if (std::string kept; running_ && wanted != nullptr && *wanted != '\0' && ask("L", 1, kept).empty())
    std::fprintf(stderr, "the Python host: %s\n", kept.c_str());
  stop();
  if (base_ != nullptr) ::munmap(base_, kMostMemory);
  closeFile(memory_);
}

bool HostProcess::share() {
  if (base_ != nullptr) return true;
  memory_ = ::memfd_create("stepscope python", MFD_CLOEXEC);
  void* const mapped = memory_ < 0
                           ? MAP_FAILED
                           : ::mmap(nullptr, kMostMemory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory_, 0);
  if (mapped == MAP_FAILED) {
    closeFile(memory_);
    return false;
  }
  base_ = static_cast<std::byte*>(mapped);
  return true;
}

std::size_t HostProcess::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t wanted = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  if (!share()) return SIZE_MAX;
  std::size_t offset = 0;
  for (const auto& [begin, taken] : blocks_) {
    if (begin - offset >= wanted) break;
    offset = begin + taken;
  }
  if (offset + wanted > size_) {
    if (offset + wanted > kMostMemory || ::ftruncate(memory_, static_cast<off_t>(offset + wanted)) != 0) return SIZE_MAX;
    size_ = offset + wanted;
  }
  blocks_[offset] = wanted;
  return offset;
}

void HostProcess::release(std::size_t offset) {
  const std::lock_guard lock(mutex_);
  blocks_.erase(offset);
}

void HostProcess::stop() {
  closeFile(socket_);
  closeFile(life_);
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  child_ = -1;
  running_ = false;
}

std::string HostProcess::ended() {
  int status = 0;
  std::string how = "ended";
  // It may be a moment between the end of its socket and its own.
  for (int tries = 0; child_ > 0 && tries < 200; ++tries, ::usleep(1000))
    if (::waitpid(child_, &status, WNOHANG) == child_) {
      if (WIFSIGNALED(status)) how = "was ended by signal " + std::to_string(WTERMSIG(status));
      if (WIFEXITED(status)) how = "ended with code " + std::to_string(WEXITSTATUS(status));
      child_ = -1;
      break;
    }
  stop();
  return "the Python host " + how + "; it is started again for the next step";
}

std::string HostProcess::ask(const void* request, std::size_t bytes, std::string& answer) {
  if (request != nullptr && ::send(socket_, request, bytes, MSG_NOSIGNAL) < 0)
    return errno == EMSGSIZE ? std::string("the node has too long a definition for the Python host") : ended();
  const double limit = request == nullptr ? std::max(limitSeconds(), kStartSeconds) : limitSeconds();
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd one{socket_, POLLIN, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::clamp<long long>(left, 0, 1 << 30)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready > 0) break;
    stop();
    return "the Python host took longer than " + std::to_string(static_cast<int>(limit)) +
           " s and was ended (environment variable STEPSCOPE_PYTHON_TIMEOUT); it is started again for the next step";
  }
  const ssize_t got = ::recv(socket_, received_.data(), received_.size(), 0);
  if (got <= 0) return ended();
  const std::string_view text(received_.data() + 1, static_cast<std::size_t>(got) - 1);
  if (received_[0] == '+') {
    answer = text;
    return "";
  }
  return text.empty() ? "the Python host refused without a word" : std::string(text);
}

std::string HostProcess::start() {
  if (running_) return "";
  if (!share()) return "no shared memory for the operands of Python";
  int ends[2], pipeEnds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return std::strerror(errno);
  if (::pipe2(pipeEnds, O_CLOEXEC) != 0) {
    ::close(ends[0]), ::close(ends[1]);
    return std::strerror(errno);
  }
  // Numbers above those that the child gets, so that no copy writes over one that is still to be copied.
  const int childs[] = {::fcntl(memory_, F_DUPFD_CLOEXEC, 16), ::fcntl(ends[1], F_DUPFD_CLOEXEC, 16),
                        ::fcntl(pipeEnds[0], F_DUPFD_CLOEXEC, 16)};
  ::close(ends[1]), ::close(pipeEnds[0]);
  socket_ = ends[0], life_ = pipeEnds[1];
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, 2, 1);  // what functions print must not get between results
  for (int i = 0; i < 3; ++i) ::posix_spawn_file_actions_adddup2(&actions, childs[i], 3 + i);
  const std::string name = interpreter();
  const std::vector<const char*> arguments{name.c_str(), "-c", kScript, nullptr};
  pid_t child = -1;
  const int failed =
      ::posix_spawnp(&child, name.c_str(), &actions, nullptr, const_cast<char* const*>(arguments.data()), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  for (const int file : childs) ::close(file);
  if (failed != 0) {
    stop();
    return "'" + name + "' cannot be started: " + std::strerror(failed) +
           "; expected a Python that has torch (environment variable STEPSCOPE_PYTHON)";
  }
  child_ = child;
  std::string hello;
  if (const std::string wrong = ask(nullptr, 0, hello); !wrong.empty()) {
    stop();
    return wrong;
  }
  running_ = true;
  ++process_;
  return "";
}

std::string HostProcess::defineLocked(Known& node, const std::string& definition) {
  if (std::string wrong = start(); !wrong.empty()) return wrong;
  const std::string request = "D" + definition + ",\"size\":" + std::to_string(size_) + "}";
  std::string answer;
  if (std::string wrong = ask(request.data(), request.size(), answer); !wrong.empty()) return wrong;
  node = {static_cast<std::uint32_t>(std::strtoul(answer.c_str(), nullptr, 10)), process_};
  return "";
}

std::string HostProcess::define(Known& node, const std::string& definition) {
  const std::lock_guard lock(mutex_);
  return defineLocked(node, definition);
}

std::string HostProcess::run(Known& node, const std::string& definition, std::uint64_t seed) {
  const std::lock_guard lock(mutex_);
  if (!running_ || node.process != process_)
    if (std::string wrong = defineLocked(node, definition); !wrong.empty()) return wrong;
  char request[13] = {'R'};
  std::memcpy(request + 1, &node.id, 4);
  std::memcpy(request + 5, &seed, 8);
  std::string answer;  // of a run that is well: empty
  return ask(request, sizeof(request), answer);
}

std::string HostProcess::shapes(const std::string& request, std::string& answer) {
  const std::lock_guard lock(mutex_);
  if (std::string wrong = start(); !wrong.empty()) return wrong;
  const std::string message = "S" + request;
  return ask(message.data(), message.size(), answer);
}

void HostProcess::forget(const Known& node) {
  const std::lock_guard lock(mutex_);
  if (!running_ || node.process != process_) return;
  char request[5] = {'F'};
  std::memcpy(request + 1, &node.id, 4);
  std::string answer;
  (void)ask(request, sizeof(request), answer);
}

}  // namespace stepscope::python
