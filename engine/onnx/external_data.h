// Weights kept in files next to the model. A model names them; it decides nothing about where they may lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "engine/data/file.h"
#include "kernels/status.h"

namespace stepscope {

struct ExternalRange {
  std::string location;  // relative path, '/' between parts
  std::int64_t offset = 0;
  std::optional<std::int64_t> length;  // absent: to the end of the file
};

// How the bytes of a range come into memory. kMap spares the copy of what is never written, and writes stay in memory; but a
// file that shrinks while it is mapped ends the process, so nobody gets it unasked. Ranges that do not start at a multiple
// of 64 bytes are read all the same.
enum class ExternalAccess : std::uint8_t { kRead, kMap };

// Opens the files of one model, each once, and reads ranges into memory of our own, or maps them.
//
// A location is refused (kInvalidArgument) when it is empty, absolute, has "..", NUL or a backslash, or when its canonical
// path leaves both the model's folder and the folder of the file that the model's path links to, or is no regular file.
// Exactly equal ranges share memory; ranges that overlap in part are refused. The file must be as long as the range says
// before anything is read. A file that is not there is kNotFound.
class ExternalFiles {
 public:
  // `folders`: where locations are resolved, in order; the first that has the file wins.
  explicit ExternalFiles(std::vector<std::filesystem::path> folders, ExternalAccess access = ExternalAccess::kRead);
  ~ExternalFiles();
  ExternalFiles(const ExternalFiles&) = delete;
  ExternalFiles& operator=(const ExternalFiles&) = delete;

  struct Block {
    std::shared_ptr<const void> owner;
    void* data = nullptr;
  };
  // Checks a range that must hold `bytes` bytes; call for all tensors before the first read.
  Status check(const ExternalRange& range, std::int64_t bytes);
  // The bytes of a checked range. Ranges equal to an earlier one share its memory.
  Result<Block> read(const ExternalRange& range, std::int64_t bytes);
  // The file of a checked range, to read from it later; null where the system does not tell which one it is.
  std::shared_ptr<const FileStamp> stampOf(const ExternalRange& range) const;
  // Of all files that were opened, without links, by their locations.
  std::vector<std::filesystem::path> paths() const;

 private:
  struct File {
    int descriptor = -1;
    std::int64_t size = 0;
    std::filesystem::path path;  // canonical
    std::shared_ptr<const FileStamp> stamp;
    std::map<std::int64_t, std::int64_t> ranges;  // checked: begin → end
    std::map<std::pair<std::int64_t, std::int64_t>, Block> blocks;
  };
  Result<File*> open(const std::string& location);

  Result<Block> map(const File& file, const ExternalRange& range, std::int64_t bytes) const;

  std::vector<std::filesystem::path> folders_;
  ExternalAccess access_;
  std::map<std::string, File> files_;
  std::map<std::string, Error> failed_;
};

}  // namespace stepscope
