#include "engine/ir/shared_text.h"

#include <cstring>
#include <new>

namespace stepscope {

SharedText::SharedText(std::string_view text) {
  if (text.empty()) return;
  held_ = new (::operator new(sizeof(Held) + text.size())) Held{1, static_cast<std::uint32_t>(text.size())};
  std::memcpy(static_cast<void*>(held_ + 1), text.data(), text.size());
}

SharedText::~SharedText() {
  if (!held_ || held_->copies.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  held_->~Held();
  ::operator delete(held_);
}

}  // namespace stepscope
