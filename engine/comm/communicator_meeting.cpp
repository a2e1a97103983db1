// How ranks meet before data moves: each tells the others what it is at, waits for them, and ends when one of them does.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/comm/communicator.h"

namespace stepscope {
namespace {

constexpr int kWaitMs = 50;                          // between two looks at the clock
constexpr std::int64_t kFarewellNs = 1'000'000'000;  // for the last words to the others

std::size_t slot(int i) { return static_cast<std::size_t>(i); }

Transfer headerTransfer(int rank, CollectiveHeader& header) {
  return {rank, reinterpret_cast<std::byte*>(&header), sizeof header};
}

}  // namespace

// A rank that failed does not come back: the others are told at once, with the reason.
Status Communicator::failed(Error error) {
  error_ = std::move(error);
  if (watch_) watch_->giveUp();
  end(error_->message);
  return tl::make_unexpected(*error_);
}

void Communicator::end(const std::string& why) {
  if (ended_) return;
  ended_ = true;
  if (!why.empty() && peers()) {
    CollectiveHeader header;
    header.kind = CollectiveKind::kEnded;
    header.culprit = culprit_ >= 0 ? culprit_ : rank();
    header.setText(why);
    std::vector<Transfer> sends;
    for (int r = 0; r < size(); ++r)
      if (r != rank() && r != culprit_) sends.push_back(headerTransfer(r, header));
    const std::int64_t until = rankClockNs() + kFarewellNs;
    int lost = -1;
    if (transport_->begin(sends, {}))
      while (rankClockNs() < until) {
        const auto done = transport_->advance(kWaitMs, &lost);
        if (!done || *done) break;
      }
  }
  transport_->end();
}

Status Communicator::wait(std::span<Transfer> sends, std::span<Transfer> receives) {
  SS_TRY(transport_->begin(sends, receives));
  const std::int64_t until = rankClockNs() + timeoutNs_;
  for (int turn = 0;; ++turn) {
    int lost = -1;
    const auto done = transport_->advance(turn == 0 ? 0 : kWaitMs, &lost);
    if (!done) {
      if (lost < 0) return tl::make_unexpected(done.error());
      culprit_ = lost;
      return fail(ErrorCode::kIo, fmt::format("rank {}: {}; expected it at {}", lost, done.error().message, describe(now_)));
    }
    if (*done) {
      waited_ = turn > 0;
      return {};
    }
    if (watch_ && watch_->gaveUp()) return watch_->ended(&culprit_);
    const std::int64_t now = rankClockNs(), giveUp = giveUpAt_;
    const bool told = giveUp > 0 && now > giveUp;
    if (!told && now < until) continue;
    std::string missing;
    int count = 0;
    for (const Transfer& transfer : receives)
      if (transfer.doneNs == 0 && missing.find(fmt::format(" {},", transfer.rank)) == std::string::npos) {
        missing += fmt::format(" {},", transfer.rank);
        ++count;
      }
    if (!missing.empty()) missing.pop_back();
    const std::string who = missing.empty() ? "the others" : fmt::format("rank{}{}", count == 1 ? "" : "s", missing);
    if (told)
      return fail(ErrorCode::kIo,
                  fmt::format("{}: told to end while it waits for {}; expected that all ranks come", describe(now_), who));
    return fail(ErrorCode::kIo, fmt::format("{}: {} did not come within {} s; expected all ranks; hint: option "
                                            "ranks.timeout",
                                            describe(now_), who, timeoutNs_ / 1'000'000'000));
  }
}

// What `said`, a rank, has told instead of coming.
tl::unexpected<Error> Communicator::otherEnded(int said, const CollectiveHeader& theirs) {
  culprit_ = theirs.culprit;
  const std::string why(theirs.text.data(), strnlen(theirs.text.data(), theirs.text.size()));
  return fail(ErrorCode::kIo,
              culprit_ == said ? fmt::format("rank {}: it ended: {}; expected it at {}", said, why, describe(now_)) : why);
}

// All ranks tell each other which collective they are at.
Status Communicator::meet(CollectiveHeader header, const CollectivePlace& place, std::span<const TensorView> tensors) {
  if (error_) return tl::make_unexpected(*error_);
  SS_CHECK(!ended_);
  header.number = number_++;
  header.step = place.step;
  header.setNode(place.node);
  header.shape = shapeNumber(tensors);
  header.setText(shapeText(tensors));
  header.bytes = std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0}, [](std::int64_t sum, const auto& tensor) {
    return sum + static_cast<std::int64_t>(tensor.bytes());
  });
  now_ = header;
  newest_ = {.count = 1};
  std::vector<CollectiveHeader> theirs(slot(size()));
  std::vector<Transfer> sends, receives;
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    sends.push_back(headerTransfer(r, header));
    receives.push_back(headerTransfer(r, theirs[slot(r)]));
  }
  const std::int64_t begin = rankClockNs();
  const Status met = wait(sends, receives);
  // What has come is looked at even where not all did: it tells why.
  for (const Transfer& transfer : receives) {
    const CollectiveHeader& other = theirs[slot(transfer.rank)];
    if (transfer.doneNs == 0 || other.kind != CollectiveKind::kEnded || other.magic != CollectiveHeader::kMagic) continue;
    return failed(otherEnded(transfer.rank, other).value());
  }
  for (const Transfer& transfer : receives)
    if (transfer.doneNs != 0)
      if (Status same = checkSameCollective(header, rank(), theirs[slot(transfer.rank)], transfer.rank); !same)
        return failed(same.error());
  if (!met) return failed(met.error());
  metNs_ = rankClockNs();
  newest_.waitNs = metNs_ - begin;
  const auto last = std::max_element(receives.begin(), receives.end(),
                                     [](const Transfer& a, const Transfer& b) { return a.doneNs < b.doneNs; });
  if (last != receives.end()) newest_.last = waited_ ? last->rank : rank();
  return {};
}

// The two sides of a pair. Both tell, so that each of them finds out what the other one is at.
Status Communicator::meetRank(CollectiveHeader header, const CollectivePlace& place, const TensorView& tensor, int peer) {
  if (error_) return tl::make_unexpected(*error_);
  if (peer < 0 || peer >= size() || peer == rank())
    return invalid(
        fmt::format("{} '{}': rank {}; expected another one of {}", collectiveName(header.kind), place.node, peer, size()));
  header.step = place.step;
  header.setNode(place.node);
  header.shape = shapeNumber(std::span(&tensor, 1));
  header.setText(shapeText(std::span(&tensor, 1)));
  header.bytes = static_cast<std::int64_t>(tensor.bytes());
  now_ = header;
  newest_ = {.count = 1};
  const std::int64_t begin = rankClockNs();
  CollectiveHeader theirs;
  std::vector<Transfer> sends{headerTransfer(peer, header)}, receives{headerTransfer(peer, theirs)};
  const Status met = wait(sends, receives);
  if (receives[0].doneNs != 0) {
    if (theirs.kind == CollectiveKind::kEnded && theirs.magic == CollectiveHeader::kMagic)
      return failed(otherEnded(peer, theirs).value());
    if (Status same = checkSameCollective(header, rank(), theirs, peer); !same) return failed(same.error());
  }
  if (!met) return failed(met.error());
  metNs_ = rankClockNs();
  newest_.waitNs = metNs_ - begin;
  newest_.last = peer;
  return {};
}

Status Communicator::move(std::vector<Transfer>& sends, std::vector<Transfer>& receives) {
  if (Status moved = wait(sends, receives); !moved) return failed(moved.error());
  for (const Transfer& transfer : sends) newest_.sentBytes += static_cast<std::int64_t>(transfer.bytes);
  for (const Transfer& transfer : receives) newest_.receivedBytes += static_cast<std::int64_t>(transfer.bytes);
  return {};
}

void Communicator::count() {
  newest_.moveNs = rankClockNs() - metNs_;
  total_.waitNs += newest_.waitNs;
  total_.moveNs += newest_.moveNs;
  total_.sentBytes += newest_.sentBytes;
  total_.receivedBytes += newest_.receivedBytes;
  total_.count += newest_.count;
  total_.last = newest_.last;
}

}  // namespace stepscope
