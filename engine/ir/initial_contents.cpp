#include "engine/ir/initial_contents.h"

#include <fmt/format.h>

namespace stepscope {
namespace {

constexpr std::size_t kCopied = 4096;  // at most, of what could be read again as well

}  // namespace

InitialContents::InitialContents(std::shared_ptr<const Tensor> contents) {
  if (contents) held_ = std::make_shared<Held>(Held{std::move(contents), {}, nullptr, {}});
}

InitialContents::InitialContents(Tensor contents, Source source)
    : held_(std::make_shared<Held>(Held{std::make_shared<const Tensor>(std::move(contents)), {}, std::move(source), {}})) {}

InitialContents InitialContents::later(DType dtype, Dims dims, Source source) {
  InitialContents made;
  made.held_ =
      std::make_shared<Held>(Held{nullptr, Tensor(dtype, std::move(dims), nullptr, nullptr), std::move(source), {}});
  return made;
}

const Tensor& InitialContents::operator*() const {
  SS_CHECK(held_ && held_->contents);
  return *held_->contents;
}

Result<Tensor> InitialContents::read() const {
  SS_CHECK(held_ != nullptr);
  if (held_->contents) return *held_->contents;
  auto again = held_->source();
  if (again) return again;
  return fail(ErrorCode::kNotFound,
              fmt::format("the contents that it began with were trained since and are not available any more: {}",
                          again.error().message));
}

Result<InitialContents::Lent> InitialContents::lend() const {
  SS_ASSIGN(Tensor contents, read());
  if (!held_->contents) return Lent{std::move(contents), nullptr};
  if (!held_->loan.expired()) return Lent{contents.clone(), nullptr};
  Loan loan = std::make_shared<const InitialContents>(*this);
  held_->loan = loan;
  return Lent{std::move(contents), std::move(loan)};
}

void InitialContents::giveUp() const {
  if (!held_ || !held_->contents) return;
  const Tensor& contents = *held_->contents;
  if (!held_->source || contents.bytes() <= kCopied) {
    held_->contents = std::make_shared<const Tensor>(contents.clone());
    return;
  }
  held_->header = Tensor(contents.dtype(), contents.dims(), nullptr, nullptr);
  held_->contents.reset();
}

}  // namespace stepscope
