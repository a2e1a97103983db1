#include "engine/train/proposed_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/build/attach_loss.h"
#include "engine/data/npy.h"
#include "engine/data/shown_name.h"
#include "engine/train/data.h"

namespace stepscope {
namespace {

constexpr std::size_t kMostEntries = 4096, kMostArchives = 16;
constexpr std::string_view kCaptured = "batches.npz", kLabels = "labels";

// `batches.npz` first, then the others by name.
std::vector<std::filesystem::path> archivesIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  std::size_t seen = 0;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end && seen < kMostEntries;
       it.increment(error), ++seen)
    if (it->path().extension() == ".npz" && it->is_regular_file(error)) found.push_back(it->path());
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(a.filename() != kCaptured, a.filename()) < std::pair(b.filename() != kCaptured, b.filename());
  });
  if (found.size() > kMostArchives) found.resize(kMostArchives);
  return found;
}

}  // namespace

ProposedData proposeData(const std::filesystem::path& model, const Graph& graph) {
  if (graph.inputs().empty()) return {};
  const std::filesystem::path folder = model.has_parent_path() ? model.parent_path() : ".";
  std::string why;
  for (const std::filesystem::path& path : archivesIn(folder)) {
    const std::string name = shownName(path.filename().string());
    const auto refuse = [&](const std::string& reason) {
      if (why.empty()) why = fmt::format("'{}' beside the model is not proposed: {}", name, reason);
    };
    const auto headers = readNpzHeaders(path);
    if (!headers) {
      refuse(headers.error().message);
      continue;
    }
    std::map<std::string, ArrayType> arrays;
    for (const auto& [array, header] : *headers) arrays[array] = {header.dtype, header.dims};
    const auto layout = layOut(graph, name, arrays);
    if (!layout) {
      refuse(layout.error().message);
      continue;
    }
    if (!proposeLoss(graph).loss && !arrays.contains(std::string(kLabels))) {
      refuse(fmt::format("the model has no loss of its own, and no array '{}' is there for one that is attached", kLabels));
      continue;
    }
    const std::string where =
        path.filename() == kCaptured ? "lies beside the model, as captures have it" : "lies beside the model";
    const std::string entries =
        layout->entries == 0 ? "one batch" : fmt::format("{} batch{}", layout->entries, layout->entries == 1 ? "" : "es");
    const std::size_t inputs = layout->perStep.size();
    return {path.string(), fmt::format("'{}' {}; its arrays feed {}: {}", name, where,
                                       inputs == 1 ? "the input" : fmt::format("all {} inputs", inputs), entries)};
  }
  return {{}, std::move(why)};
}

}  // namespace stepscope
