#include "tests/engine/wire/live_worker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "engine/wire/framing.h"

namespace stepscope::testing {

LiveWorker::LiveWorker(GoldenReader goldens) {
  std::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(pipe(in_), 0);
  EXPECT_EQ(pipe(out_), 0);
  server_ = std::thread([this, goldens = std::move(goldens)] {
    static const snapshot::MachineInfo machine;
    EXPECT_TRUE(serveWorker(in_[0], out_[1], machine, kLargestMessage, goldens).has_value());
    close(out_[1]);
  });
}

LiveWorker::~LiveWorker() {
  close(in_[1]);
  while (readFrame(out_[0])) {
  }
  server_.join();
  close(in_[0]);
  close(out_[0]);
}

std::uint64_t LiveWorker::send(const std::function<void(snapshot::Request&)>& fill) {
  snapshot::Request request;
  request.set_id(++last_);
  fill(request);
  EXPECT_TRUE(writeFrame(in_[1], request.SerializeAsString()).has_value());
  return last_;
}

snapshot::Response LiveWorker::next() {
  const auto frame = readFrame(out_[0]);
  snapshot::Response response;
  if (frame && response.ParseFromString(*frame)) return response;
  ADD_FAILURE() << "no answer after request " << last_;
  ended_ = true;
  response.set_done(true);
  return response;
}

snapshot::Response LiveWorker::next(std::uint64_t id) {
  while (true) {
    snapshot::Response response = next();
    if (response.id() == id || ended_) return response;
  }
}

snapshot::Response LiveWorker::last(std::uint64_t id) {
  snapshot::Response response = next(id);
  while (!response.done()) response = next(id);
  return response;
}

snapshot::Response LiveWorker::open(const std::filesystem::path& model) {
  return ask([&](auto& r) { r.mutable_open()->set_path(model.string()); });
}

snapshot::Response LiveWorker::configure(const std::vector<std::pair<std::string, std::string>>& settings) {
  return ask([&](auto& r) {
    for (const auto& [name, value] : settings) {
      auto* setting = r.mutable_configure()->add_settings();
      setting->set_name(name);
      setting->set_value(value);
    }
  });
}

void LiveWorker::openDigits() {
  const TestModel model = digits();
  EXPECT_FALSE(open(model.model).has_error());
  EXPECT_FALSE(configure({{"data", model.data.string()}}).has_error());
  EXPECT_FALSE(ask([](auto& r) { r.mutable_build(); }).has_error());
}

}  // namespace stepscope::testing
