// The worker: a Session behind the protocol of engine/snapshot/worker.proto.
#pragma once

#include "engine/snapshot/run.pb.h"
#include "engine/wire/framing.h"
#include "kernels/status.h"

namespace stepscope {

// Serves requests from `in` until the stream ends or Shutdown comes; answers go to `out`. A second thread reads, so that
// Cancel takes effect, and Hello is answered, while another request runs. A malformed message is answered with an error; a
// broken stream ends the worker with that error. Requests are served in the order in which they came. A reply above
// `largestReply` bytes is answered with kLimitExceeded, an event with the alert `event_lost`.
Status serveWorker(int in, int out, const snapshot::MachineInfo& machine, std::uint32_t largestReply = kLargestMessage);

}  // namespace stepscope
