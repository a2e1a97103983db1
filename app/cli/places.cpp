#include "app/cli/places.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

namespace stepscope::cli {

Status checkPlace(std::string_view option, const std::string& file) {
  if (file.empty()) return {};
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(file).parent_path(), folder = parent.empty() ? "." : parent;
  if (std::filesystem::is_directory(file, error))
    return fail(ErrorCode::kIo, fmt::format("{} '{}': is a folder; expected a file", option, file));
  if (const auto status = std::filesystem::symlink_status(file, error);
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) && !std::filesystem::is_symlink(status))
    return fail(ErrorCode::kIo,
                fmt::format("{} '{}': is a pipe, a socket or a device; expected a file or a new name", option, file));
  if (!std::filesystem::is_directory(folder, error))
    return fail(ErrorCode::kIo,
                fmt::format("{} '{}': no folder '{}'; expected one that exists", option, file, folder.string()));
  if (access(folder.c_str(), W_OK) != 0)
    return fail(ErrorCode::kIo,
                fmt::format("{} '{}': folder '{}' is read-only; expected a writable one", option, file, folder.string()));
  return {};
}

}  // namespace stepscope::cli
