// Where the batches of a session come from: the data that the options name, synthetic data, or what a program feeds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/build/import.h"
#include "engine/train/data.h"
#include "engine/train/synthetic_dims.h"

namespace stepscope {

class BatchFeed {
 public:
  using Open = std::function<Result<std::unique_ptr<DataSource>>(const Graph& graph)>;

  // Batches from here, until close(); they fit the graph as those of openData() do.
  void take(std::unique_ptr<DataSource> data) { data_ = std::move(data); }
  // Batches of the source that `open` makes, instead of where the options say.
  void openWith(Open open) { open_ = std::move(open); }
  std::unique_ptr<DataSource> giveBack() { return std::move(data_); }  // closed then
  bool opened() const { return data_ != nullptr; }
  void close() { data_.reset(); }  // it is opened again, as options and graph then are

  // Opens the data for the inputs of `graph` unless it is open. `notes`: what is worth telling of it.
  Status open(const ImportedModel& model, const Graph& graph, const TrainOptions& options, std::vector<std::string>* notes);
  Result<Batch> batch(std::int64_t step) const { return data_->batch(step); }  // of a micro step; opened()
  DataSource& source() const { return *data_; }

  // Of synthetic data: every symbol of the inputs that the options leave open, with the reason for its extent.
  const std::vector<DimChoice>& dimensions(const ImportedModel& model, const TrainOptions& options) const;
  void forgetDimensions() { dimensions_.reset(); }  // the model is another one

 private:
  std::unique_ptr<DataSource> data_;  // null: not opened yet, or options changed
  Open open_;                         // null: the options say where batches come from
  mutable std::optional<std::pair<std::map<std::string, std::int64_t>, std::vector<DimChoice>>> dimensions_;  // given, open
};

}  // namespace stepscope
