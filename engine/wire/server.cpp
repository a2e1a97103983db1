#include "engine/wire/server.h"

#include <memory>
#include <thread>

#include "engine/wire/border.h"
#include "engine/wire/connection.h"
#include "engine/wire/session_service.h"

namespace stepscope {

Status serveWorker(int in, int out, const snapshot::MachineInfo& machine, std::uint32_t largestReply, GoldenReader goldens) {
  const auto connection = std::make_shared<Connection>(in, out, machine, largestReply);
  SessionService service(*connection, std::move(goldens));
  std::thread reader([connection] { connection->readLoop(); });
  Status told;
  while (told) {
    const auto request = connection->next(service.cancellable());
    if (!request) break;
    if (request->request_case() == snapshot::Request::kShutdown) {
      connection->acknowledge(request->id());
      connection->served();
      break;
    }
    if (reserveIsSpent()) holdReserve();
    told = service.serve(*request);
    connection->served();
    // The client has its answer, and the states of finished steps that it keeps; another process finds the device again.
    if (const auto lost = service.lost(); told && lost) told = tl::make_unexpected(*lost);
  }
  connection->leave();
  // Where the client could not even be told, it hears of it by the end of the stream.
  if (!told || !connection->ended()) {
    reader.detach();
    return told;
  }
  reader.join();
  return connection->broken();
}

}  // namespace stepscope
