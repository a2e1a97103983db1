#include "engine/comm/socket_transport.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

namespace stepscope {

std::int64_t rankClockNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

namespace {

class SocketTransport final : public Transport {
 public:
  SocketTransport(int rank, std::vector<int> sockets) : rank_(rank), peers_(sockets.size()) {
    for (std::size_t r = 0; r < sockets.size(); ++r) peers_[r].socket = sockets[r];
  }
  ~SocketTransport() override { end(); }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  std::string name() const override { return "local"; }

  Status begin(std::span<Transfer> sends, std::span<Transfer> receives) override {
    for (Peer& peer : peers_) {
      peer.out.clear();
      peer.in.clear();
    }
    for (Transfer& transfer : sends)
      if (transfer.bytes > 0) peerOf(transfer).out.add(transfer);
    for (Transfer& transfer : receives)
      if (transfer.bytes > 0) peerOf(transfer).in.add(transfer);
    return {};
  }

  Result<bool> advance(int waitMs, int* lost) override {
    polled_.clear();
    who_.clear();
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      Peer& peer = peers_[r];
      if (peer.idle()) continue;
      if (peer.socket < 0) return gone({static_cast<int>(r)}, lost);
      const auto events = static_cast<short>((peer.out.empty() ? 0 : POLLOUT) | (peer.in.empty() ? 0 : POLLIN));
      polled_.push_back({peer.socket, events, 0});
      who_.push_back(static_cast<int>(r));
    }
    if (polled_.empty()) return true;
    const int ready = poll(polled_.data(), polled_.size(), waitMs);
    if (ready < 0 && errno != EINTR) return fail(ErrorCode::kIo, fmt::format("poll: {}", std::strerror(errno)));
    // A rank that ends tells the others and goes. So where several are gone, one from which something was still to come is
    // named before those to which something was to be sent.
    std::vector<int> silent, deaf;
    for (std::size_t i = 0; ready > 0 && i < polled_.size(); ++i) {
      Peer& peer = peers_[static_cast<std::size_t>(who_[i])];
      if (polled_[i].revents == 0) continue;
      if (!peer.in.empty() && !receive(peer)) silent.push_back(who_[i]);
      if (!peer.out.empty() && !send(peer)) {
        if (peer.in.empty()) deaf.push_back(who_[i]);
        peer.out.clear();
      }
    }
    if (!silent.empty() || !deaf.empty()) return gone(silent.empty() ? deaf : silent, lost);
    for (const Peer& peer : peers_)
      if (!peer.idle()) return false;
    return true;
  }

  int lostRank() const override {
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      pollfd one{peers_[r].socket, POLLRDHUP, 0};
      if (one.fd >= 0 && poll(&one, 1, 0) > 0 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR))) return static_cast<int>(r);
    }
    return -1;
  }

  void end() override {
    for (Peer& peer : peers_) {
      if (peer.socket >= 0) close(peer.socket);
      peer.socket = -1;
    }
  }

 private:
  struct Queue {
    std::vector<Transfer*> transfers;
    std::size_t first = 0, done = 0;  // bytes of the first
    bool empty() const { return first == transfers.size(); }
    void clear() { transfers.clear(), first = done = 0; }
    void add(Transfer& transfer) { transfers.push_back(&transfer); }
    void moved(std::size_t bytes) {
      done += bytes;
      if (done < transfers[first]->bytes) return;
      transfers[first++]->doneNs = rankClockNs();
      done = 0;
    }
  };
  struct Peer {
    int socket = -1;
    Queue out, in;
    bool idle() const { return out.empty() && in.empty(); }
  };

  Peer& peerOf(const Transfer& transfer) { return peers_[static_cast<std::size_t>(transfer.rank)]; }

  // As much as goes without waiting; false: the other end is gone.
  static bool receive(Peer& peer) {
    while (!peer.in.empty()) {
      const Transfer& transfer = *peer.in.transfers[peer.in.first];
      const ssize_t got = recv(peer.socket, transfer.data + peer.in.done, transfer.bytes - peer.in.done, MSG_DONTWAIT);
      if (got > 0)
        peer.in.moved(static_cast<std::size_t>(got));
      else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return true;
      else
        return false;
    }
    return true;
  }
  static bool send(Peer& peer) {
    while (!peer.out.empty()) {
      const Transfer& transfer = *peer.out.transfers[peer.out.first];
      const ssize_t sent =
          ::send(peer.socket, transfer.data + peer.out.done, transfer.bytes - peer.out.done, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0)
        peer.out.moved(static_cast<std::size_t>(sent));
      else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS))
        return true;
      else
        return false;
    }
    return true;
  }

  static tl::unexpected<Error> gone(const std::vector<int>& ranks, int* lost) {
    *lost = ranks.front();
    std::string why = "its connection was closed";
    for (std::size_t i = 1; i < ranks.size(); ++i)
      why += fmt::format("{} rank {}'s", i == 1 ? ", and so was" : ",", ranks[i]);
    return fail(ErrorCode::kIo, why);
  }

  const int rank_;
  std::vector<Peer> peers_;
  std::vector<pollfd> polled_;
  std::vector<int> who_;  // by entry of polled_: the rank
};

}  // namespace

std::unique_ptr<Transport> makeSocketTransport(int rank, std::vector<int> sockets) {
  return std::make_unique<SocketTransport>(rank, std::move(sockets));
}

}  // namespace stepscope
