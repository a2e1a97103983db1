// The contents that a value begins with. They stay as they are; graphs share them, kept stages among them.
//
// Whoever trains takes their memory over, so that weights are never held twice: lend() gives it to one borrower at a time,
// and giveUp() says that the borrower writes over it from now on. Then the contents are read again, when somebody asks for
// them, from the place they came from. Small ones, and those that come from no such place, are copied instead. Copies of an
// InitialContents are the same contents. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "kernels/status.h"
#include "kernels/tensor.h"

namespace stepscope {

class InitialContents {
 public:
  // Reads or makes the contents anew, always the same ones. Errors name what was looked for, and why it is not there.
  using Source = std::function<Result<Tensor>()>;

  InitialContents(std::nullptr_t = nullptr) {}                          // NOLINT: implicit, as of a pointer
  InitialContents(std::shared_ptr<const Tensor> contents);              // NOLINT: likewise. Of no place; null: none
  InitialContents(Tensor contents, Source source);                      // that `source` gives again
  static InitialContents later(DType dtype, Dims dims, Source source);  // not in memory before somebody asks

  explicit operator bool() const { return held_ != nullptr; }  // whether there are any
  friend bool operator==(const InitialContents&, const InitialContents&) = default;

  // Known wherever the elements are.
  DType dtype() const { return header().dtype(); }
  const Dims& dims() const { return header().dims(); }
  std::int64_t elements() const { return header().elements(); }
  std::size_t bytes() const { return header().bytes(); }

  // Those in memory; null where they are not, or where there are none. Never what was trained.
  std::shared_ptr<const Tensor> inMemory() const { return held_ ? held_->contents : nullptr; }
  // In memory: checked. Of constants, which nobody borrows, and right after a file was read.
  const Tensor& operator*() const;
  const Tensor* operator->() const { return &**this; }
  // From memory, where the tensor is borrowed, else read again. Error kNotFound: they were trained since and are not
  // available any more, with the reason of the source.
  Result<Tensor> read() const;

  // Held by who has the memory; when the last copy goes, somebody else may have it.
  using Loan = std::shared_ptr<const InitialContents>;
  struct Lent {
    Tensor tensor;
    Loan loan;  // null: the tensor is a copy, the caller's own
  };
  // Errors are those of read().
  Result<Lent> lend() const;
  // Before the borrower writes for the first time. What inMemory() gave before is the borrower's.
  void giveUp() const;

 private:
  struct Held {
    std::shared_ptr<const Tensor> contents;  // null: not in memory
    Tensor header;                           // type and extents, where they are not
    Source source;                           // null: of no place
    std::weak_ptr<const InitialContents> loan;
  };
  const Tensor& header() const { return held_->contents ? *held_->contents : held_->header; }

  std::shared_ptr<Held> held_;
};

}  // namespace stepscope
