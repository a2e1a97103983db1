// What stands behind the handles of stepscope.h, and how errors cross its border.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/api/stepscope.h"
#include "engine/train/fed_batches.h"
#include "engine/train/model_function.h"
#include "engine/train/session.h"
#include "engine/wire/attached_loop.h"

struct ss_error {
  stepscope::Error error;
};

namespace stepscope::api {

// Memory of what a call gives out, given back all at once. Addresses stay.
class Given {
 public:
  void clear() { *this = Given(); }
  const char* text(std::string_view text) { return texts_.emplace_back(text).c_str(); }
  const std::int64_t* numbers(std::vector<std::int64_t> numbers) { return numbers_.emplace_back(std::move(numbers)).data(); }
  const char* const* list(const std::vector<const char*>& texts) { return lists_.emplace_back(texts).data(); }
  Tensor& tensor(Tensor tensor) { return tensors_.emplace_back(std::move(tensor)); }
  const ss_tensor* keep(const ss_tensor& tensor) { return &structs_.emplace_back(tensor); }

 private:
  std::deque<std::string> texts_;
  std::deque<std::vector<std::int64_t>> numbers_;
  std::deque<std::vector<const char*>> lists_;
  std::deque<Tensor> tensors_;
  std::deque<ss_tensor> structs_;
};

// Structs of one kind and the pointers to them, which is what a list is for the caller.
template <typename Info>
class InfoList {
 public:
  void clear() {
    infos_.clear();
    pointers_.clear();
    given.clear();
  }
  Info& add() {
    Info& info = infos_.emplace_back();
    info.size = sizeof(Info);
    pointers_.push_back(&info);
    return info;
  }
  void giveOut(const Info* const** list, std::size_t* count) const {
    *list = pointers_.data();
    *count = pointers_.size();
  }

  Given given;  // what the structs point at

 private:
  std::deque<Info> infos_;
  std::vector<const Info*> pointers_;
};

// Copies a struct into one of the caller's, which may be shorter or longer than the library's: as much as both have. `size`
// stays what the caller wrote. Error: kInvalidArgument where that is smaller than `size` itself.
template <typename Struct>
Status giveOut(const char* what, const Struct& from, Struct* to) {
  if (!to) return invalid(std::string(what) + ": the struct to fill is NULL; expected one");
  const std::uint32_t size = to->size;
  if (size < sizeof(std::uint32_t) * 2 || size > 4096)
    return invalid(std::string(what) + ": .size is " + std::to_string(size) + "; expected sizeof of the struct");
  std::memcpy(to, &from, std::min<std::size_t>(size, sizeof(Struct)));
  to->size = size;
  return {};
}

// Runs `work`, which returns a Status. What it throws becomes an error too.
ss_error* guarded(const char* what, const std::function<Status()>& work);

// The name of a thing that a caller gave. Errors: NULL, not UTF-8.
Result<std::string> nameOf(const char* what, const char* text);
Result<std::vector<std::string>> namesOf(const char* what, const char* const* texts, std::size_t count);

}  // namespace stepscope::api

struct ss_session {
  std::unique_ptr<stepscope::Session> session;
  std::shared_ptr<stepscope::AttachedSession> attached;  // null: no window may look at it
  std::shared_ptr<stepscope::FedBatches> fed;            // null: nothing was fed
  stepscope::api::InfoList<ss_value_info> inputs, parameters;
  stepscope::api::InfoList<ss_option_info> options;
  stepscope::api::InfoList<ss_instruction_info> instructions;
  stepscope::api::InfoList<ss_property> properties;
  stepscope::api::Given given;                         // by the newest call
  std::unique_ptr<stepscope::ModelFunction> function;  // null: ss_differentiate was not called
};

struct ss_call {
  std::shared_ptr<stepscope::AttachedSession> attached;  // of its session, and before the call: it is told of its passes
  std::unique_ptr<stepscope::ModelCall> call;
  stepscope::api::Given given;
};

namespace stepscope::api {

// A call into what a window may look at, for its duration. `attached`: null where none may.
inline AttachedLoop* loopOf(const std::shared_ptr<AttachedSession>& attached) {
  return attached ? &attached->loop() : nullptr;
}

// guarded(), for a session that is not NULL; what the call before gave out is given back first.
ss_error* guarded(const char* what, ss_session* session, const std::function<Status(Session&)>& work);

// A view that the caller may read until the next call. Error: those of giveOut().
Status giveOutTensor(const char* what, Given& given, const TensorView& view, ss_tensor* to);
Status giveOutTensor(const char* what, ss_session& session, const TensorView& view, ss_tensor* to);
// Borrows what the caller gave. Errors: a struct of another size, contents that are not as long as dtype and extents say.
Result<TensorView> viewOf(const std::string& what, const ss_tensor* tensor);
// As many arrays as there are names: copies, or with `borrow` the caller's memory. Errors: a name that is given twice, those
// of viewOf().
Result<std::map<std::string, Tensor>> arraysOf(const char* what, const std::vector<std::string>& names,
                                               const ss_tensor* const* tensors, bool borrow = false);

}  // namespace stepscope::api
