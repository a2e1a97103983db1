// Results that a second start need not find again, in files of one folder (option cache.dir).
//
// An entry answers one question: a kind ("roofs", "recompute") and named parts, the contents of all that the answer depends
// on: model, options, signature, version. Another content of any part is another question. A file bears the hash of its
// question and begins with the hash of the rest of it, so what is damaged, cut off or of another format is a miss.
//
// Files come by rename and nobody waits for anybody: several processes may share a folder. Beyond `limit` bytes the entries
// that were used longest ago go. Nothing here is ever an error of a build: what cannot be read is a miss that says why.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/status.h"

namespace stepscope {

struct CacheQuestion {
  std::string kind;                                        // letters; of all entries that one reader understands
  std::vector<std::pair<std::string, std::string>> parts;  // name and content, the coarsest first
  std::int64_t mostSeconds = 0;                            // an older entry is a miss; 0 = any age
};

// What was found, or why nothing was: for people, without a dot at its end.
struct CacheFound {
  std::optional<std::string> answer;
  std::string reason;
};

class BuildCache {
 public:
  static constexpr std::int64_t kBytes = std::int64_t{64} << 20;

  explicit BuildCache(std::filesystem::path folder, std::int64_t limit = kBytes)  // an empty folder: no cache
      : folder_(std::move(folder)), limit_(limit) {}
  bool on() const { return !folder_.empty(); }

  // A miss tells the first part in which the newest entry of the kind differs.
  CacheFound find(const CacheQuestion& question) const;
  // Makes the folder, readable by its owner alone. Errors name the file; an answer above `limit` is not kept.
  Status keep(const CacheQuestion& question, std::string_view answer) const;
  // Where the answer is or would be.
  std::filesystem::path fileOf(const CacheQuestion& question) const;

 private:
  void makeRoom() const;

  std::filesystem::path folder_;
  std::int64_t limit_;
};

// $XDG_CACHE_HOME/stepscope, else ~/.cache/stepscope; empty where there is neither.
std::filesystem::path userCacheFolder();

// What tells this build of the engine from another one: size and date of the file that its code lies in.
const std::string& engineBuild();

}  // namespace stepscope
