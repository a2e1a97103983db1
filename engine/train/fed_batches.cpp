#include "engine/train/fed_batches.h"

#include <fmt/format.h>

namespace stepscope {
namespace {

class FedSource final : public DataSource {
 public:
  FedSource(std::shared_ptr<const FedBatches> batches, const Graph& graph) : batches_(std::move(batches)), graph_(graph) {}
  std::int64_t entries() const override { return 0; }
  Result<Batch> batch(std::int64_t step) override {
    const auto* arrays = batches_->find(step);
    if (!arrays)
      return fail(ErrorCode::kNotFound, fmt::format("batch of step {}: none was fed; expected one before the step", step));
    return batchOf(graph_, fmt::format("fed for step {}", step), *arrays);
  }

 private:
  std::shared_ptr<const FedBatches> batches_;
  Graph graph_;  // for its inputs
};

}  // namespace

void FedBatches::feed(std::int64_t step, std::map<std::string, Tensor> arrays) {
  steps_.insert_or_assign(step, std::move(arrays));
}

void FedBatches::forgetBefore(std::int64_t step) { steps_.erase(steps_.begin(), steps_.lower_bound(step)); }

const std::map<std::string, Tensor>* FedBatches::find(std::int64_t step) const {
  const auto it = steps_.find(step);
  return it == steps_.end() ? nullptr : &it->second;
}

std::unique_ptr<DataSource> FedBatches::source(std::shared_ptr<const FedBatches> batches, const Graph& graph) {
  return std::make_unique<FedSource>(std::move(batches), graph);
}

}  // namespace stepscope
