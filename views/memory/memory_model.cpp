// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/memory/memory_model.h"

#include <algorithm>
#include <map>

#include "views/common/sharing.h"

namespace stepscope {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 50;
std::int64_t sane(std::int64_t bytes) { return std::clamp<std::int64_t>(bytes, 0, kMost); }

}  // namespace

std::shared_ptr<const MemoryModel> MemoryModel::make(std::shared_ptr<const PlanSnapshot> plan) {
  auto model = std::make_shared<MemoryModel>();
  model->plan_ = std::move(plan);
  const snapshot::Plan& p = model->plan_->plan();
  const int count = model->plan_->size();
  model->boxOf_.assign(static_cast<std::size_t>(p.buffers_size()), -1);

  std::map<int, std::vector<int>> persistent;
  for (int i = 0; i < p.buffers_size(); ++i) {
    if (!p.buffers(i).in_arena() && p.buffers(i).shares() < 0) persistent[p.buffers(i).buffer_class()].push_back(i);
  }
  std::int64_t low = 0;
  for (auto& [bufferClass, list] : persistent) {
    MemoryBand band{.bufferClass = bufferClass, .buffers = static_cast<int>(list.size()), .low = low};
    for (const int i : list) {
      const std::int64_t high = std::min(kMost, low + sane(p.buffers(i).bytes()));
      model->boxOf_[static_cast<std::size_t>(i)] = static_cast<int>(model->boxes_.size());
      model->boxes_.push_back(
          {.buffer = i, .bufferClass = bufferClass, .first = 0, .end = std::max(1, count), .low = low, .high = high});
      low = high;
    }
    band.high = low;
    model->bands_.push_back(band);
  }
  model->persistent_ = low;

  // Where memory goes on in another buffer, and until when views keep it.
  std::vector<int> end(model->boxOf_.size(), 0), cut(model->boxOf_.size(), count);
  for (int i = 0; i < p.buffers_size(); ++i)
    end[static_cast<std::size_t>(i)] = std::clamp(p.buffers(i).last() + 1, 0, std::max(1, count));
  const auto sharing = [&p](int i) { return p.buffers(i).shares() >= 0 && p.buffers(i).shares() < i; };
  std::vector<int> owner(model->boxOf_.size());  // whose box a view is part of; of others themselves
  for (int i = 0; i < p.buffers_size(); ++i)
    owner[static_cast<std::size_t>(i)] =
        sharing(i) && isView(*model->plan_, p.buffers(i)) ? owner[static_cast<std::size_t>(p.buffers(i).shares())] : i;
  for (int i = 0; i < p.buffers_size(); ++i) {
    if (!sharing(i)) continue;
    const int of = owner[static_cast<std::size_t>(p.buffers(i).shares())];
    auto& ofEnd = end[static_cast<std::size_t>(of)];
    auto& ofCut = cut[static_cast<std::size_t>(of)];
    if (isView(*model->plan_, p.buffers(i)))
      ofEnd = std::max(ofEnd, end[static_cast<std::size_t>(i)]);
    else
      ofCut = std::min(ofCut, std::max(p.buffers(i).first(), p.buffers(of).first() + 1));
  }
  std::vector<std::int64_t> change(static_cast<std::size_t>(count) + 2, 0);
  std::vector<int> order;
  for (int i = 0; i < p.buffers_size(); ++i) {
    if (p.buffers(i).in_arena() && !isView(*model->plan_, p.buffers(i)) && p.buffers(i).bytes() > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return p.buffers(a).first() < p.buffers(b).first(); });
  model->top_ = model->persistent_;
  for (const int i : order) {
    const snapshot::Buffer& b = p.buffers(i);
    const int first = std::clamp(b.first(), 0, std::max(0, count - 1));
    const int last = std::max(first + 1, std::min(end[static_cast<std::size_t>(i)], cut[static_cast<std::size_t>(i)]));
    const std::int64_t from = model->persistent_ + sane(b.offset()), to = std::min(2 * kMost, from + sane(b.bytes()));
    model->boxOf_[static_cast<std::size_t>(i)] = static_cast<int>(model->boxes_.size());
    model->boxes_.push_back({.buffer = i,
                             .bufferClass = b.buffer_class(),
                             .first = first,
                             .end = last,
                             .low = from,
                             .high = to,
                             .inPlace = b.shares() >= 0});
    model->top_ = std::max(model->top_, to);
    change[static_cast<std::size_t>(first)] += to - from;
    change[static_cast<std::size_t>(std::min(last, count))] -= to - from;
  }
  model->top_ = std::max<std::int64_t>(1, std::max(model->top_, model->persistent_ + sane(p.arena_bytes())));
  model->live_.resize(static_cast<std::size_t>(count));
  std::int64_t now = model->persistent_;
  for (int i = 0; i < count; ++i) {
    now += change[static_cast<std::size_t>(i)];
    model->live_[static_cast<std::size_t>(i)] = now;
  }
  return model;
}

int MemoryModel::boxOf(int buffer) const {
  return buffer < 0 || buffer >= static_cast<int>(boxOf_.size()) ? -1 : boxOf_[static_cast<std::size_t>(buffer)];
}

std::vector<std::pair<int, std::int64_t>> MemoryModel::ownersAt(int instruction) const {
  std::map<int, std::int64_t> sums;
  for (const MemoryBox& b : boxes_) {
    if (b.low >= persistent_ && b.first <= instruction && instruction < b.end) sums[b.bufferClass] += b.high - b.low;
  }
  std::vector<std::pair<int, std::int64_t>> list(sums.begin(), sums.end());
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return list;
}

}  // namespace stepscope
