#include "engine/build/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "engine/build/build_cache.h"

namespace stepscope {
namespace {

constexpr std::string_view kPrefix = "STEPSCOPE_SET_";

}  // namespace

std::string environmentName(std::string_view option) {
  std::string name(kPrefix);
  for (const char c : option) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return name;
}

Status applyEnvironment(TrainOptions& options, const char* const* environment, const std::vector<OptionInfo>& table) {
  // Programs and libstepscope keep what they found; a Session by itself writes no files.
  if (!options.origins.contains("cache.dir")) options.cacheDir = userCacheFolder().string();
  for (; environment && *environment; ++environment) {
    const std::string_view entry(*environment);
    const auto equals = entry.find('=');
    if (!entry.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    const auto info = std::ranges::find_if(table, [&](const OptionInfo& o) { return environmentName(o.name) == name; });
    if (info == table.end())
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("environment variable {}: no such option; expected {} and the name of an option in capitals "
                              "(`stepscope options` lists them)",
                              name, kPrefix));
    if (Status set = applySetting(options, info->name, entry.substr(equals + 1), "environment", table); !set) {
      Error error = std::move(set.error());
      error.message = fmt::format("environment variable {}: {}", name, error.message);
      return tl::make_unexpected(std::move(error));
    }
  }
  return {};
}

Status applyEnvironment(TrainOptions& options, const std::vector<OptionInfo>& table) {
  return applyEnvironment(options, environ, table);
}

}  // namespace stepscope
