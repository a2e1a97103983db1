// Reading and writing whole files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/status.h"

namespace stepscope {

// The bytes of a regular file of at most `limit` bytes. `what` names the kind in messages ("model").
// Errors: kNotFound, kIo, kInvalidArgument (a folder, pipe or device), kLimitExceeded, kOutOfMemory.
Result<std::vector<std::byte>> readWholeFile(const std::filesystem::path& path, std::int64_t limit, const std::string& what);

// A regular file of at most `limit` bytes that is read in parts. Errors as readWholeFile's.
class InputFile {
 public:
  static Result<InputFile> open(const std::filesystem::path& path, std::int64_t limit, const std::string& what);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  std::int64_t bytes() const { return bytes_; }
  // [offset, offset + count) of the file. Errors: kIo, also when it has become shorter.
  Status read(std::int64_t offset, void* to, std::size_t count) const;

 private:
  InputFile(std::string shown, int descriptor, std::int64_t bytes)
      : shown_(std::move(shown)), descriptor_(descriptor), bytes_(bytes) {}

  std::string shown_;  // how messages name it
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;
};

// A file as it was at some time, so that parts of it can be read later and are those of that time.
class FileStamp {
 public:
  // Of the file that the descriptor is open on, or that the path leads to. Error: kIo.
  static Result<FileStamp> of(const std::filesystem::path& path, int descriptor);
  static Result<FileStamp> of(const std::filesystem::path& path);
  // [offset, offset + count) of it. Errors: kNotFound: it is gone; kIo: another one is in its place, somebody wrote to it,
  // or it cannot be read.
  Status read(std::int64_t offset, void* to, std::size_t count) const;

 private:
  std::filesystem::path path_;  // absolute, without links
  std::uint64_t device_ = 0, number_ = 0;
  std::int64_t bytes_ = 0, changed_ = 0;  // time of the last write in nanoseconds
};

// A file that appears under its name whole or not at all: written next to it, synced, renamed. A link at the path is
// replaced, not followed; a folder, pipe, socket or device there is left alone (kInvalidArgument). Without commit() nothing
// stays.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  Status open();
  int descriptor() const { return descriptor_; }
  Status append(const void* data, std::size_t bytes);
  // Pads with zeros to a multiple of `alignment`, appends, returns the offset of the data.
  Result<std::int64_t> appendAligned(const void* data, std::size_t bytes, std::int64_t alignment);
  Status commit();
  // The error for a write that failed just now (reads errno).
  tl::unexpected<Error> failure() const;

 private:
  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

// A file of this text, whole or not at all. Errors as AtomicFile's.
Status writeTextFile(const std::filesystem::path& path, const std::string& text);
// With those above it; nothing where it is there. Error: kIo.
Status createFolder(const std::filesystem::path& path);

}  // namespace stepscope
