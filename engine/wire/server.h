// The worker: a Session behind the protocol of engine/snapshot/worker.proto.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "engine/build/options.h"
#include "engine/lab/golden_check.h"
#include "engine/snapshot/run.pb.h"
#include "engine/wire/framing.h"
#include "kernels/status.h"

namespace stepscope {

// What PyTorch computed of the model in a folder of stepscope_capture; nothing where it holds none of it. Errors: files that
// are damaged.
using GoldenReader =
    std::function<Result<std::optional<Golden>>(const std::filesystem::path& folder, const TrainOptions& options)>;

// Serves requests from `in` until the stream ends or Shutdown comes; answers go to `out`. A second thread reads, so that
// Cancel takes effect, and Hello is answered, while another request runs. A malformed message is answered with an error; a
// broken stream ends the worker with that error; so does a device that is lost for this process, when the request that found
// it out is answered. Requests are served in the order in which they came. A reply above
// `largestReply` bytes is answered with kLimitExceeded, an event with the alert `event_lost`. Without `goldens` no model
// counts as captured.
Status serveWorker(int in, int out, const snapshot::MachineInfo& machine, std::uint32_t largestReply = kLargestMessage,
                   GoldenReader goldens = {});

}  // namespace stepscope
