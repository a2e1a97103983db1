// The file of --save, written at the end of a run and on the way, so that a run that is killed loses minutes and not days.
#pragma once

#include <cstdint>
#include <filesystem>

#include "engine/train/session.h"

namespace stepscope::cli {

// FILE is the newest checkpoint at any moment, also while the next one is written; before it came "FILE stem.1.ext",
// "FILE stem.2.ext" … up to options checkpoint.keep. `--init-from FILE --resume` goes on from one bit for bit.
class Checkpoints {
 public:
  // `seconds` 0: nothing on the way. An empty file: nothing at all.
  Checkpoints(std::filesystem::path file, double seconds, std::int64_t keep);

  // Whether it is time for one on the way.
  bool due() const;
  // Writes one when it is time. Errors: those of Session::saveState; the one before is there still.
  Status onTheWay(const Session& session);
  Status atTheEnd(const Session& session) { return file_.empty() ? Status{} : write(session); }

 private:
  Status write(const Session& session);
  std::filesystem::path numbered(std::int64_t number) const;

  std::filesystem::path file_;
  double seconds_;
  std::int64_t keep_, writtenAt_ = 0;  // ns
  bool wrote_ = false;
};

}  // namespace stepscope::cli
