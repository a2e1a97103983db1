#include "engine/wire/attach_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace stepscope {
namespace {

constexpr int kPatienceMs = 5000;
constexpr const char* kHint =
    "hint: the script calls stepscope.attach(), or is started with STEPSCOPE_ATTACH=1; its model is a stepscope.Module";

Result<sockaddr_un> addressOf(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.empty() || text.size() >= sizeof address.sun_path)
    return invalid(
        fmt::format("socket '{}': {} bytes; expected a path of 1 to {}", text, text.size(), sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  return address;
}

Result<int> connectAt(const std::filesystem::path& path) {
  SS_ASSIGN(const sockaddr_un address, addressOf(path));
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(ErrorCode::kIo, fmt::format("socket: {}", std::strerror(errno)));
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  const int why = errno;
  close(fd);
  return fail(why == ENOENT || why == ECONNREFUSED ? ErrorCode::kNotFound : ErrorCode::kIo,
              fmt::format("socket '{}': {}", path.string(), std::strerror(why)));
}

// Other users must not be able to put a socket of theirs there.
Status ownFolder(const std::filesystem::path& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(ErrorCode::kIo, fmt::format("folder '{}': {}", folder.string(), std::strerror(errno)));
  struct stat found {};
  if (lstat(folder.c_str(), &found) != 0)
    return fail(ErrorCode::kIo, fmt::format("folder '{}': {}", folder.string(), std::strerror(errno)));
  if (!S_ISDIR(found.st_mode) || found.st_uid != getuid() || (found.st_mode & 0077) != 0)
    return fail(ErrorCode::kIo, fmt::format("folder '{}': of user {} with mode {:o}; expected a folder of this user alone",
                                            folder.string(), found.st_uid, found.st_mode & 0777));
  return {};
}

// Everything up to the end, of what is no more than a message.
std::string textFrom(int fd) {
  std::string text;
  std::array<char, 512> some{};
  for (ssize_t n = 0; text.size() < 4096 && (n = ::read(fd, some.data(), some.size())) > 0;)
    text.append(some.data(), static_cast<std::size_t>(n));
  return text;
}

bool writeAll(int fd, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    ssize_t n = ::send(fd, data, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == ENOTSOCK) n = ::write(fd, data, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    data += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

std::filesystem::path attachSocketOf(int pid) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::filesystem::path folder = runtime && *runtime == '/'
                                           ? std::filesystem::path(runtime) / "stepscope"
                                           : std::filesystem::path(fmt::format("/tmp/stepscope-{}", getuid()));
  return folder / fmt::format("{}.sock", pid);
}

Result<int> listenForWindows(const std::filesystem::path& path) {
  SS_ASSIGN(const sockaddr_un address, addressOf(path));
  if (path == attachSocketOf(getpid())) SS_TRY(ownFolder(path.parent_path()));
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    if (!std::filesystem::is_socket(std::filesystem::symlink_status(path, error)))
      return invalid(fmt::format("socket '{}': another kind of file is there; expected none", path.string()));
    if (const auto other = connectAt(path)) {
      close(*other);
      return invalid(fmt::format("socket '{}': another program listens there; expected none", path.string()));
    }
    unlink(path.c_str());
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(ErrorCode::kIo, fmt::format("socket: {}", std::strerror(errno)));
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || chmod(path.c_str(), 0600) != 0 ||
      listen(fd, 8) != 0) {
    const int why = errno;
    close(fd);
    return fail(ErrorCode::kIo, fmt::format("socket '{}': {}", path.string(), std::strerror(why)));
  }
  return fd;
}

Result<int> connectToScript(const std::string& target) {
  int pid = 0;
  const char* const end = target.data() + target.size();
  const auto [behind, problem] = std::from_chars(target.data(), end, pid);
  const bool number = !target.empty() && problem == std::errc() && behind == end;
  if (number && (pid <= 0 || (kill(pid, 0) != 0 && errno == ESRCH)))
    return fail(ErrorCode::kNotFound, fmt::format("process {}: there is none; expected a script that runs", target));
  auto connection = connectAt(number ? attachSocketOf(pid) : std::filesystem::path(target));
  if (!connection && connection.error().code == ErrorCode::kNotFound)
    return fail(ErrorCode::kNotFound,
                fmt::format("{} '{}': no window can attach to it ({}); expected a script that offers its loop; {}",
                            number ? "process" : "socket", target, connection.error().message, kHint));
  if (!connection) return connection;
  pollfd wait{*connection, POLLIN, 0};
  char first = 0;
  if (poll(&wait, 1, kPatienceMs) <= 0) {
    close(*connection);
    return fail(ErrorCode::kIo, fmt::format("script '{}': it does not answer within {} s; expected a process that runs",
                                            target, kPatienceMs / 1000));
  }
  if (::read(*connection, &first, 1) == 1 && first == kLetIn) return connection;
  const std::string text = first == 0 ? std::string("it has ended") : first + textFrom(*connection);
  close(*connection);
  return fail(ErrorCode::kUnsupported, fmt::format("script '{}': {}", target, text));
}

bool relayBetween(int in, int out, int connection) {
  std::array<char, 1 << 16> bytes{};
  bool asked = false;
  pollfd both[] = {{in, POLLIN, 0}, {connection, POLLIN, 0}};
  while (true) {
    if (poll(both, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return asked;
    }
    if (both[1].revents != 0) {
      const ssize_t n = ::read(connection, bytes.data(), bytes.size());
      if (n <= 0 || !writeAll(out, bytes.data(), static_cast<std::size_t>(n))) return asked;
    }
    if (both[0].revents == 0) continue;
    const ssize_t n = ::read(in, bytes.data(), bytes.size());
    if (n > 0 && writeAll(connection, bytes.data(), static_cast<std::size_t>(n))) continue;
    if (n > 0) return asked;
    asked = true;
    shutdown(connection, SHUT_WR);
    both[0].fd = -1;  // poll leaves it out
  }
}

}  // namespace stepscope
