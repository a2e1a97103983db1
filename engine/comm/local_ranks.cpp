#include "engine/comm/local_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "engine/comm/socket_transport.h"

extern char** environ;

namespace stepscope {
namespace {

constexpr const char* kVariable = "STEPSCOPE_LOCAL_RANK";  // "1:-: 5:…": the rank, then its socket to each rank

// A mesh: sockets[a][b] is a's end of what connects it to b.
Result<std::vector<std::vector<int>>> makeMesh(int ranks) {
  std::vector<std::vector<int>> sockets(static_cast<std::size_t>(ranks),
                                        std::vector<int>(static_cast<std::size_t>(ranks), -1));
  for (std::size_t a = 0; a < sockets.size(); ++a)
    for (std::size_t b = a + 1; b < sockets.size(); ++b) {
      std::array<int, 2> ends{};
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        const int why = errno;
        for (const auto& row : sockets)
          for (const int socket : row)
            if (socket >= 0) close(socket);
        return fail(ErrorCode::kIo, fmt::format("ranks: sockets between {} ranks: {}; expected {}", ranks,
                                                std::strerror(why), ranks * (ranks - 1)));
      }
      sockets[a][b] = ends[0];
      sockets[b][a] = ends[1];
      for (const int end : ends) {
        const int large = 4 << 20;
        setsockopt(end, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
      }
    }
  return sockets;
}

std::vector<pid_t>& children() {
  static std::vector<pid_t> started;
  return started;
}

// The arguments of this process, as it was called.
std::vector<std::string> ownArguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> arguments;
  for (std::size_t first = 0; first < all.size();) {
    const std::size_t end = std::min(all.find('\0', first), all.size());
    arguments.push_back(all.substr(first, end - first));
    first = end + 1;
  }
  return arguments;
}

Status startRank(int rank, const std::vector<int>& sockets) {
  std::string variable = fmt::format("{}={}", kVariable, rank);
  for (const int socket : sockets) {
    variable += fmt::format(":{}", socket);
    if (socket >= 0) fcntl(socket, F_SETFD, 0);
  }
  std::vector<std::string> arguments = ownArguments(), variables{variable};
  for (char** entry = environ; *entry; ++entry) variables.emplace_back(*entry);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int why =
      posix_spawn(&child, "/proc/self/exe", &actions, nullptr, pointers(arguments).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  for (const int socket : sockets)
    if (socket >= 0) close(socket);  // the child's
  if (why != 0)
    return fail(ErrorCode::kIo,
                fmt::format("rank {}: {}; expected that the program starts again", rank, std::strerror(why)));
  children().push_back(child);
  return {};
}

Result<std::unique_ptr<Transport>> startedTransport(const char* text) {
  std::vector<int> numbers;
  for (const char *next = text, *end = text + std::strlen(text); next < end;) {
    int number = 0;
    const auto [stop, error] = std::from_chars(next, end, number);
    if (error != std::errc()) break;
    numbers.push_back(number);
    next = stop + 1;
  }
  const int ranks = static_cast<int>(numbers.size()) - 1;
  if (ranks < 2 || numbers[0] < 1 || numbers[0] >= ranks)
    return invalid(
        fmt::format("environment {}: found '{}'; expected what rank 0 sets for the ranks that it starts", kVariable, text));
  const std::vector<int> sockets(numbers.begin() + 1, numbers.end());
  for (const int socket : sockets)
    if (socket >= 0 && fcntl(socket, F_SETFD, FD_CLOEXEC) != 0)
      return fail(ErrorCode::kIo,
                  fmt::format("rank {}: socket {}: {}; expected one from rank 0", numbers[0], socket, std::strerror(errno)));
  return makeSocketTransport(numbers[0], sockets);
}

}  // namespace

Result<std::vector<std::unique_ptr<Transport>>> makeLocalTransports(int ranks) {
  SS_ASSIGN(const auto sockets, makeMesh(ranks));
  std::vector<std::unique_ptr<Transport>> transports;
  for (int r = 0; r < ranks; ++r) transports.push_back(makeSocketTransport(r, sockets[static_cast<std::size_t>(r)]));
  return transports;
}

bool LocalProcesses::started() { return std::getenv(kVariable) != nullptr; }

Result<std::unique_ptr<Transport>> LocalProcesses::join(int ranks) {
  if (const char* const text = std::getenv(kVariable)) return startedTransport(text);
  SS_ASSIGN(const auto sockets, makeMesh(ranks));
  Status all;
  for (int r = 1; r < ranks; ++r)
    if (Status one = startRank(r, sockets[static_cast<std::size_t>(r)]); !one && all) all = std::move(one);
  auto mine = makeSocketTransport(0, sockets[0]);
  if (!all) {
    mine->end();  // those that have started end with it
    wait();
    return tl::make_unexpected(all.error());
  }
  return mine;
}

int LocalProcesses::wait() {
  int first = 0;
  for (const pid_t child : children()) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (first == 0) first = code;
  }
  children().clear();
  return first;
}

}  // namespace stepscope
