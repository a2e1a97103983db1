// Sessions that tests run.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "engine/train/session.h"
#include "tests/support/models.h"

namespace stepscope::testing {

// Opens `model`, with two threads and AdamW unless the settings say otherwise; nothing is built.
inline Result<std::unique_ptr<Session>> openedSession(const TestModel& model,
                                                      const std::map<std::string, std::string>& settings = {},
                                                      Observer observer = {}) {
  SS_ASSIGN(auto session, Session::open(model.model, {}, std::move(observer)));
  std::map<std::string, std::string> all = settings;
  all.insert({{"data", model.data.string()}, {"loss", model.loss}, {"optimizer", "adamw"}, {"threads", "2"}});
  TrainOptions options;
  for (const auto& [name, value] : all) SS_TRY(applySetting(options, name, value, "test"));
  SS_TRY(session->setOptions(options));
  return session;
}

// The same, built. Null after a failed expectation.
inline std::unique_ptr<Session> openSession(const TestModel& model, const std::map<std::string, std::string>& settings = {},
                                            Observer observer = {}) {
  auto session = openedSession(model, settings, std::move(observer));
  EXPECT_TRUE(session.has_value()) << session.error().message;
  if (!session) return nullptr;
  const Status built = (*session)->build();
  EXPECT_TRUE(built.has_value()) << built.error().message;
  return built ? std::move(*session) : nullptr;
}

// Names and bytes of parameters and optimizer state.
inline std::string stateBits(const Session& session) {
  std::string bits;
  for (const auto& [name, view] : session.trained().named(true)) {
    bits += name;
    bits.append(static_cast<const char*>(view.data), view.bytes());
  }
  return bits;
}

}  // namespace stepscope::testing
