#include "app/cli/checkpoints.h"

#include <fmt/format.h>

#include "engine/exec/executor.h"

namespace stepscope::cli {

Checkpoints::Checkpoints(std::filesystem::path file, double seconds, std::int64_t keep)
    : file_(std::move(file)), seconds_(seconds), keep_(keep), writtenAt_(monotonicNs()) {}

std::filesystem::path Checkpoints::numbered(std::int64_t number) const {
  if (number == 0) return file_;
  return file_.parent_path() / fmt::format("{}.{}{}", file_.stem().string(), number, file_.extension().string());
}

bool Checkpoints::due() const {
  return !file_.empty() && seconds_ > 0 && static_cast<double>(monotonicNs() - writtenAt_) >= seconds_ * 1e9;
}

Status Checkpoints::onTheWay(const Session& session) {
  if (!due()) return {};
  const Status written = write(session);
  writtenAt_ = monotonicNs();
  return written;
}

// A second name for the newest one first: a file under FILE is there whenever the process is killed. What stood under these
// names before this run is of another one, and only FILE itself was promised to be replaced.
Status Checkpoints::write(const Session& session) {
  std::error_code error;
  if (wrote_ && keep_ > 1) {
    for (std::int64_t n = keep_ - 1; n > 1; --n)
      if (std::filesystem::exists(numbered(n - 1), error)) std::filesystem::rename(numbered(n - 1), numbered(n), error);
    std::filesystem::remove(numbered(1), error);
    std::filesystem::create_hard_link(file_, numbered(1), error);
    if (error) std::filesystem::copy_file(file_, numbered(1), error);  // a file system without links
  }
  SS_TRY(session.trained().save(file_));
  wrote_ = true;
  return {};
}

}  // namespace stepscope::cli
