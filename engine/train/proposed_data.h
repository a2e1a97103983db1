// Data that lies next to a model: `batches.npz`, as captures have it, or another .npz whose arrays fit the inputs.
#pragma once

#include <filesystem>
#include <string>

#include "engine/ir/graph.h"

namespace stepscope {

struct ProposedData {
  std::string path;    // empty: nothing that fits
  std::string reason;  // why it is proposed, or why what lies there is not; empty when nothing lies there
};

// Reads names, types and shapes only. A file that cannot be read is none that fits. A model without a loss of its own needs
// an array of labels too, because its loss reads them.
ProposedData proposeData(const std::filesystem::path& model, const Graph& graph);

}  // namespace stepscope
