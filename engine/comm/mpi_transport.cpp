#include "engine/comm/mpi_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <thread>
#include <vector>

namespace stepscope {
namespace {

constexpr int kTag = 17;
constexpr int kThreadSerialized = 2;                 // MPI_THREAD_SERIALIZED in both interfaces
constexpr std::size_t kMostBytes = INT_MAX / 2 + 1;  // of one message: counts are int

const MpiLibrary*& begun() {
  static const MpiLibrary* library = nullptr;
  return library;
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(const MpiLibrary& mpi, int rank, int size, bool anyThread)
      : mpi_(mpi), rank_(rank), size_(size), anyThread_(anyThread) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return fmt::format("mpi ({})", mpi_.version()); }

  bool anyThread() const override { return anyThread_; }

  Status begin(std::span<Transfer> sends, std::span<Transfer> receives) override {
    pending_.clear();
    for (Transfer& transfer : receives) SS_TRY(add(transfer, false));
    for (Transfer& transfer : sends) SS_TRY(add(transfer, true));
    return {};
  }

  // MPI has no waiting with an end, so that it is asked again and again: without pause as long as something happens, because
  // then the next message is near, then less and less often.
  Result<bool> advance(int waitMs, int*) override {
    const std::int64_t until = rankClockNs() + std::int64_t{waitMs} * 1'000'000;
    for (int idle = 0; !pending_.empty(); ++idle) {
      const std::size_t before = pending_.size();
      for (Message& message : pending_) {
        int done = 0;
        if (const int error = mpi_.test(&message.request, &done, mpi_.statusIgnore()); error != 0)
          return fail(ErrorCode::kIo, fmt::format("MPI: a message with rank {}: error {}", message.transfer->rank, error));
        if (!done) continue;
        if (message.last) message.transfer->doneNs = rankClockNs();
        message.transfer = nullptr;
      }
      std::erase_if(pending_, [](const Message& message) { return message.transfer == nullptr; });
      if (pending_.size() < before) idle = 0;
      if (rankClockNs() > until) break;
      if (idle > 200)
        std::this_thread::sleep_for(std::chrono::microseconds(std::min(idle / 10, 500)));
      else if (idle > 20)
        std::this_thread::yield();
    }
    return pending_.empty();
  }

  void end() override {}

 private:
  struct Message {
    Transfer* transfer;
    bool last;  // of the transfer
    MpiLibrary::Handle request;
  };

  Status add(Transfer& transfer, bool sends) {
    for (std::size_t done = 0; done < transfer.bytes; done += kMostBytes) {
      const std::size_t bytes = std::min(kMostBytes, transfer.bytes - done);
      pending_.push_back({&transfer, done + bytes == transfer.bytes, nullptr});
      MpiLibrary::Handle* const request = &pending_.back().request;
      const int count = static_cast<int>(bytes);
      const int answer =
          sends ? mpi_.isend(transfer.data + done, count, mpi_.byte(), transfer.rank, kTag, mpi_.world(), request)
                : mpi_.irecv(transfer.data + done, count, mpi_.byte(), transfer.rank, kTag, mpi_.world(), request);
      if (answer != 0)
        return fail(ErrorCode::kIo, fmt::format("MPI: no message with rank {}: error {}", transfer.rank, answer));
    }
    return {};
  }

  const MpiLibrary& mpi_;
  const int rank_, size_;
  const bool anyThread_;
  std::vector<Message> pending_;
};

}  // namespace

Result<std::unique_ptr<Transport>> MpiRanks::join() {
  SS_ASSIGN(const MpiLibrary* const mpi, MpiLibrary::load());
  int already = 0, provided = 0;
  if (mpi->initialized(&already) != 0 || (!already && mpi->initThread(nullptr, nullptr, kThreadSerialized, &provided) != 0))
    return fail(ErrorCode::kIo, "MPI: MPI_Init_thread failed; expected that it begins");
  if (already && mpi->queryThread(&provided) != 0) provided = 0;
  begun() = mpi;
  mpi->setErrorHandler(mpi->world(), mpi->errorsReturn());
  int rank = 0, size = 1;
  if (mpi->commRank(mpi->world(), &rank) != 0 || mpi->commSize(mpi->world(), &size) != 0)
    return fail(ErrorCode::kIo, "MPI: it does not tell rank and size; expected both");
  return std::make_unique<MpiTransport>(*mpi, rank, size, provided >= kThreadSerialized);
}

void MpiRanks::finish() {
  if (begun()) begun()->finalize();
  begun() = nullptr;
}

}  // namespace stepscope
