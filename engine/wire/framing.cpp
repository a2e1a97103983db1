#include "engine/wire/framing.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace stepscope {
namespace {

// Bytes read before the end of the stream; fewer than asked for only there.
Result<std::size_t> readFully(int fd, char* data, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::read(fd, data + done, bytes - done);
    if (n == 0) break;
    if (n < 0) {
      if (errno == EINTR) continue;
      return fail(ErrorCode::kIo, fmt::format("stream: {}", std::strerror(errno)));
    }
    done += static_cast<std::size_t>(n);
  }
  return done;
}

// A reader of a socket that is gone is an error, and no signal that ends the process.
ssize_t writeSome(int fd, const char* data, std::size_t bytes) {
  const ssize_t sent = ::send(fd, data, bytes, MSG_NOSIGNAL);
  return sent < 0 && errno == ENOTSOCK ? ::write(fd, data, bytes) : sent;
}

}  // namespace

Result<std::string> readFrame(int fd) {
  std::array<unsigned char, 4> prefix{};
  SS_ASSIGN(const std::size_t got, readFully(fd, reinterpret_cast<char*>(prefix.data()), prefix.size()));
  if (got == 0) return fail(ErrorCode::kNotFound, "stream: ended");
  if (got < prefix.size()) return fail(ErrorCode::kCorrupt, "stream: ended inside a length; expected 4 bytes");
  const std::uint32_t length = prefix[0] | static_cast<std::uint32_t>(prefix[1]) << 8 |
                               static_cast<std::uint32_t>(prefix[2]) << 16 | static_cast<std::uint32_t>(prefix[3]) << 24;
  if (length > kLargestMessage)
    return fail(ErrorCode::kCorrupt,
                fmt::format("message: {} bytes announced; expected at most {}", length, kLargestMessage));
  std::string bytes;
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  while (bytes.size() < length) {
    const std::size_t begin = bytes.size(), want = std::min<std::size_t>(kChunk, length - begin);
    bytes.resize(begin + want);
    SS_ASSIGN(const std::size_t part, readFully(fd, bytes.data() + begin, want));
    if (part < want)
      return fail(ErrorCode::kCorrupt, fmt::format("message: ended after {} of {} bytes", begin + part, length));
  }
  return bytes;
}

Status writeFrame(int fd, const std::string& bytes) {
  if (bytes.size() > kLargestMessage)
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("message: {} bytes; expected at most {}", bytes.size(), kLargestMessage));
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::string frame(4, '\0');
  for (int i = 0; i < 4; ++i) frame[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i) & 0xff);
  frame += bytes;
  std::size_t done = 0;
  while (done < frame.size()) {
    const ssize_t n = writeSome(fd, frame.data() + done, frame.size() - done);
    if (n < 0) {
      if (errno == EINTR) continue;
      return fail(ErrorCode::kIo, fmt::format("stream: {}", std::strerror(errno)));
    }
    done += static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace stepscope
