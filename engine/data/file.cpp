#include "engine/data/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "engine/data/shown_name.h"

namespace stepscope {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 30;  // one read or write call moves less than 2 GiB

}  // namespace

Result<InputFile> InputFile::open(const std::filesystem::path& path, std::int64_t limit, const std::string& what) {
  const std::string shown = what + " '" + shownName(path.filename().string()) + "'";
  const auto system = [&](ErrorCode code) {
    return fail(code, shown + ": " + std::strerror(errno) + "; expected a readable file");
  };
  // O_NONBLOCK: a pipe must not make us wait before it is refused.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return system(errno == ENOENT || errno == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo);
  struct stat info {};
  const bool known = ::fstat(descriptor, &info) == 0;
  InputFile file(shown, descriptor, known ? static_cast<std::int64_t>(info.st_size) : 0);
  if (!known) return system(ErrorCode::kIo);
  if (!S_ISREG(info.st_mode)) return invalid(shown + ": not a regular file; expected a file");
  if (info.st_size > limit)
    return fail(ErrorCode::kLimitExceeded, fmt::format("{}: {} bytes; at most {} are read", shown, info.st_size, limit));
  return file;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : shown_(std::move(other.shown_)), descriptor_(std::exchange(other.descriptor_, -1)), bytes_(other.bytes_) {}

Status InputFile::read(std::int64_t offset, void* to, std::size_t count) const {
  for (std::size_t done = 0; done < count;) {
    const ssize_t got = ::pread(descriptor_, static_cast<char*>(to) + done, std::min(kChunkBytes, count - done),
                                static_cast<off_t>(offset) + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorCode::kIo, shown_ + ": " + std::strerror(errno) + "; expected a readable file");
    if (got == 0) return fail(ErrorCode::kIo, shown_ + ": became shorter while it was read; expected a complete file");
    done += static_cast<std::size_t>(got);
  }
  return {};
}

Result<FileStamp> FileStamp::of(const std::filesystem::path& path, int descriptor) {
  FileStamp stamp;
  std::error_code error;
  stamp.path_ = std::filesystem::canonical(path, error);
  struct stat info {};
  if (error || (descriptor >= 0 ? ::fstat(descriptor, &info) : ::stat(stamp.path_.c_str(), &info)) != 0)
    return fail(ErrorCode::kIo, fmt::format("file '{}': {}; expected a readable file", shownName(path.filename().string()),
                                            error ? error.message() : std::strerror(errno)));
  stamp.device_ = info.st_dev;
  stamp.number_ = info.st_ino;
  stamp.bytes_ = info.st_size;
  stamp.changed_ = info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec;
  return stamp;
}

Result<FileStamp> FileStamp::of(const std::filesystem::path& path) { return of(path, -1); }

Status FileStamp::read(std::int64_t offset, void* to, std::size_t count) const {
  SS_ASSIGN(const InputFile file, InputFile::open(path_, std::numeric_limits<std::int64_t>::max(), "file"));
  SS_TRY(file.read(offset, to, count));
  // After reading: what was written meanwhile counts too.
  SS_ASSIGN(const FileStamp now, of(path_));
  if (now.device_ == device_ && now.number_ == number_ && now.bytes_ == bytes_ && now.changed_ == changed_) return {};
  return fail(ErrorCode::kIo, fmt::format("file '{}': changed since it was opened; expected it as it was",
                                          shownName(path_.filename().string())));
}

Result<std::vector<std::byte>> readWholeFile(const std::filesystem::path& path, std::int64_t limit,
                                             const std::string& what) {
  SS_ASSIGN(const InputFile file, InputFile::open(path, limit, what));
  try {
    std::vector<std::byte> bytes(static_cast<std::size_t>(file.bytes()));
    SS_TRY(file.read(0, bytes.data(), bytes.size()));
    return bytes;
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kOutOfMemory, fmt::format("{} '{}': {} bytes; expected that much free memory", what,
                                                     shownName(path.filename().string()), file.bytes()));
  }
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

tl::unexpected<Error> AtomicFile::failure() const {
  return fail(ErrorCode::kIo, "file '" + shownName(path_.filename().string()) + "': " + std::strerror(errno) +
                                  "; expected a writable folder with room");
}

Status AtomicFile::open() {
  // The last step is a rename over the path: a pipe or a device there would be gone.
  struct stat there {};
  if (::lstat(path_.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode))
    return invalid("file '" + shownName(path_.filename().string()) +
                   "': " + (S_ISDIR(there.st_mode) ? "is a folder" : "is a pipe, a socket or a device") +
                   "; expected a file or a new name");
  temporary_ = path_.parent_path() / fmt::format(".{}.{}.tmp", path_.filename().string(), ::getpid());
  ::unlink(temporary_.c_str());  // left behind by a process that had our number
  descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) return failure();
  return {};
}

Status AtomicFile::append(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t put = ::write(descriptor_, at + done, std::min(kChunkBytes, bytes - done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return failure();
    done += static_cast<std::size_t>(put);
  }
  size_ += static_cast<std::int64_t>(bytes);
  return {};
}

Result<std::int64_t> AtomicFile::appendAligned(const void* data, std::size_t bytes, std::int64_t alignment) {
  const std::vector<char> padding(static_cast<std::size_t>((alignment - size_ % alignment) % alignment), 0);
  SS_TRY(append(padding.data(), padding.size()));
  const std::int64_t offset = size_;
  SS_TRY(append(data, bytes));
  return offset;
}

Status AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) return failure();
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const auto error = failure();
    ::unlink(temporary_.c_str());
    return error;
  }
  // The new name itself must survive a power loss too.
  const auto folder = path_.parent_path().empty() ? std::filesystem::path(".") : path_.parent_path();
  if (const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); handle >= 0) {
    ::fsync(handle);
    ::close(handle);
  }
  return {};
}

Status writeTextFile(const std::filesystem::path& path, const std::string& text) {
  AtomicFile file(path);
  SS_TRY(file.open());
  SS_TRY(file.append(text.data(), text.size()));
  return file.commit();
}

Status createFolder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(ErrorCode::kIo, fmt::format("folder '{}': {}", path.string(), error.message()));
  return {};
}

}  // namespace stepscope
