#include "engine/onnx/external_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "engine/data/limits.h"
#include "engine/onnx/problem.h"

namespace stepscope {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kReadBytes = std::size_t{1} << 30;

std::string named(const std::string& location) { return "external data '" + shownName(location) + "'"; }

bool inside(const std::filesystem::path& file, const std::filesystem::path& folder) {
  const auto [folderEnd, fileAt] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return folderEnd == folder.end() && fileAt != file.end();
}

Status checkLocation(const std::string& location) {
  if (location.empty()) return invalid(named(location) + ": empty location; expected a file name inside the model's folder");
  if (location.find('\0') != std::string::npos)
    return invalid(named(location) + ": NUL in the location; expected a file name inside the model's folder");
  if (location.find('\\') != std::string::npos)
    return invalid(named(location) + ": backslash in the location; expected '/' between folders");
  const std::filesystem::path path(location);
  if (path.is_absolute()) return invalid(named(location) + ": absolute path; expected a file inside the model's folder");
  for (const auto& part : path)
    if (part == "..") return invalid(named(location) + ": '..' in the location; expected a file inside the model's folder");
  return {};
}

}  // namespace

ExternalFiles::ExternalFiles(std::vector<std::filesystem::path> folders, ExternalAccess access) : access_(access) {
  for (const auto& folder : folders) {
    std::error_code error;
    auto canonical = std::filesystem::canonical(folder.empty() ? "." : folder, error);
    if (!error && std::find(folders_.begin(), folders_.end(), canonical) == folders_.end())
      folders_.push_back(std::move(canonical));
  }
}

ExternalFiles::~ExternalFiles() {
  for (const auto& entry : files_)
    if (entry.second.descriptor >= 0) ::close(entry.second.descriptor);
}

Result<ExternalFiles::File*> ExternalFiles::open(const std::string& location) {
  if (const auto it = files_.find(location); it != files_.end()) return &it->second;
  if (const auto it = failed_.find(location); it != failed_.end()) return tl::make_unexpected(it->second);
  const auto attempt = [&]() -> Result<File*> {
    SS_TRY(checkLocation(location));
    if (static_cast<std::int64_t>(files_.size() + failed_.size()) >= limits::kExternalFiles)
      return fail(
          ErrorCode::kLimitExceeded,
          fmt::format("model: more than {} external data files; at most that many are read", limits::kExternalFiles));
    for (const auto& folder : folders_) {
      std::error_code error;
      const auto canonical = std::filesystem::canonical(folder / location, error);
      if (error) continue;
      const bool allowed =
          std::any_of(folders_.begin(), folders_.end(), [&](const auto& home) { return inside(canonical, home); });
      if (!allowed)
        return invalid(named(location) + ": links to a place outside the model's folder; expected a file inside it");
      // O_NONBLOCK: a pipe must not make us wait before it is refused.
      const int descriptor = ::open(canonical.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
      if (descriptor < 0)
        return fail(ErrorCode::kIo, named(location) + ": " + std::strerror(errno) + "; expected a readable file");
      struct stat info {};
      if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
        ::close(descriptor);
        return invalid(named(location) + ": not a regular file; expected a file of weights");
      }
      File& file = files_[location];
      file.descriptor = descriptor;
      file.size = static_cast<std::int64_t>(info.st_size);
      file.path = canonical;
      if (auto stamp = FileStamp::of(canonical, descriptor))
        file.stamp = std::make_shared<const FileStamp>(std::move(*stamp));
      return &file;
    }
    return fail(ErrorCode::kNotFound, named(location) + ": no such file; expected it in the model's folder");
  };
  auto result = attempt();
  if (!result) failed_.emplace(location, result.error());
  return result;
}

Status ExternalFiles::check(const ExternalRange& range, std::int64_t bytes) {
  SS_ASSIGN(File * file, open(range.location));
  if (range.offset < 0 || range.offset > file->size)
    return invalid(fmt::format("{}: offset {} outside the file of {} bytes; expected 0..{}", named(range.location),
                               range.offset, file->size, file->size));
  const std::int64_t rest = file->size - range.offset;
  const std::int64_t length = range.length.value_or(bytes);
  if (length != bytes)
    return invalid(
        fmt::format("{}: length {}; expected the {} bytes of its type and dims", named(range.location), length, bytes));
  if (length < 0 || length > rest)
    return invalid(fmt::format("{}: {} bytes at offset {} end after the file of {} bytes; expected a complete file",
                               named(range.location), length, range.offset, file->size));
  if (length == 0) return {};
  const std::int64_t end = range.offset + length;
  const auto next = file->ranges.lower_bound(range.offset);
  if (next != file->ranges.end() && next->first == range.offset && next->second == end) return {};
  const bool overlapsNext = next != file->ranges.end() && next->first < end;
  const bool overlapsBefore = next != file->ranges.begin() && std::prev(next)->second > range.offset;
  if (overlapsNext || overlapsBefore)
    return invalid(fmt::format("{}: bytes {}..{} overlap another tensor's in part; expected ranges that are equal or apart",
                               named(range.location), range.offset, end));
  file->ranges.emplace(range.offset, end);
  return {};
}

Result<ExternalFiles::Block> ExternalFiles::map(const File& file, const ExternalRange& range, std::int64_t bytes) const {
  const std::int64_t page = ::sysconf(_SC_PAGESIZE), begin = range.offset / page * page;
  const auto length = static_cast<std::size_t>(range.offset + bytes - begin);
  // Writable and private: an optimizer may write parameters, and the file stays as it is.
  void* memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.descriptor, begin);
  if (memory == MAP_FAILED)
    return fail(
        ErrorCode::kIo,
        fmt::format(
            "{}: {} bytes at offset {} cannot be mapped: {}; expected a file that can; hint: leave --map-weights out",
            named(range.location), bytes, range.offset, std::strerror(errno)));
  return Block{{memory, [length](const void* p) { ::munmap(const_cast<void*>(p), length); }},
               static_cast<char*>(memory) + (range.offset - begin)};
}

std::shared_ptr<const FileStamp> ExternalFiles::stampOf(const ExternalRange& range) const {
  const auto it = files_.find(range.location);
  return it == files_.end() ? nullptr : it->second.stamp;
}

std::vector<std::filesystem::path> ExternalFiles::paths() const {
  std::vector<std::filesystem::path> all;
  for (const auto& [location, file] : files_) all.push_back(file.path);
  return all;
}

Result<ExternalFiles::Block> ExternalFiles::read(const ExternalRange& range, std::int64_t bytes) {
  SS_ASSIGN(File * file, open(range.location));
  Block& block = file->blocks[{range.offset, bytes}];
  if (block.owner) return block;
  if (access_ == ExternalAccess::kMap && bytes > 0 && range.offset % static_cast<std::int64_t>(kAlignment) == 0) {
    SS_ASSIGN(block, map(*file, range, bytes));
    return block;
  }
  void* memory =
      ::operator new(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), std::align_val_t{kAlignment}, std::nothrow);
  if (!memory)
    return fail(ErrorCode::kOutOfMemory,
                fmt::format("{}: {} bytes; expected that much free memory", named(range.location), bytes));
  Block fresh{{memory, [](const void* p) { ::operator delete(const_cast<void*>(p), std::align_val_t{kAlignment}); }},
              memory};
  for (std::int64_t done = 0; done < bytes;) {
    const std::size_t wanted = std::min(kReadBytes, static_cast<std::size_t>(bytes - done));
    const ssize_t got = ::pread(file->descriptor, static_cast<char*>(memory) + done, wanted, range.offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return fail(ErrorCode::kIo, fmt::format("{}: {} at byte {}; expected {} bytes", named(range.location),
                                              got < 0 ? std::strerror(errno) : "the file ends", range.offset + done, bytes));
    done += got;
  }
  block = fresh;
  return block;
}

}  // namespace stepscope
