#include "app/cli/save_graphs.h"

#include <fmt/format.h>

#include "engine/build/pass_stages.h"
#include "engine/onnx/writer.h"

namespace stepscope::cli {

Status saveGraphs(const Session& session, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(ErrorCode::kIo, fmt::format("folder '{}': {}", folder.string(), error.message()));
  int number = 1;
  for (const Stage& stage : session.plans().stages()) {
    if (isPassStage(stage)) continue;
    std::string name = stage.phase;
    for (char& c : name)
      if (c == ' ') c = '-';
    SS_TRY(writeModel(*stage.graph, folder / fmt::format("{:02}-{}.onnx", number++, name), {}));
  }
  return {};
}

}  // namespace stepscope::cli
