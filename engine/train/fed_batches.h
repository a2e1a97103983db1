// Arrays that the program around a session gives, for one micro step after the other.
#pragma once

#include <map>
#include <memory>

#include "engine/train/data.h"

namespace stepscope {

// Shared by the one who feeds and the sources that a session makes of it (Session::feedWith).
class FedBatches {
 public:
  // By graph input. Replaces what was fed for that step before.
  void feed(std::int64_t step, std::map<std::string, Tensor> arrays);
  // Batches of steps below are not asked for again.
  void forgetBefore(std::int64_t step);
  // Null where none was fed.
  const std::map<std::string, Tensor>* find(std::int64_t step) const;

  // Its batches for the inputs of `graph`. Errors of a batch: kNotFound for a step that none was fed for, those of
  // batchOf().
  static std::unique_ptr<DataSource> source(std::shared_ptr<const FedBatches> batches, const Graph& graph);

 private:
  std::map<std::int64_t, std::map<std::string, Tensor>> steps_;
};

}  // namespace stepscope
