// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/workbench/fuzz.h"

#include <cmath>
#include <limits>

namespace stepscope {
namespace {
constexpr int kSoundAnswers = 1;  // hello
}

std::string Fuzz::frame(const std::string& body) {
  const auto n = static_cast<std::uint32_t>(body.size());
  std::string head(4, '\0');
  for (int i = 0; i < 4; ++i) head[static_cast<std::size_t>(i)] = static_cast<char>(n >> (8 * i));
  return head + body;
}

void Fuzz::change(google::protobuf::Message& message, int depth) {
  const auto* reflection = message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  if (fields.empty()) return;
  const auto* field = fields[below(static_cast<unsigned>(fields.size()))];
  using Field = google::protobuf::FieldDescriptor;
  const std::int64_t numbers[] = {-1,
                                  0,
                                  1,
                                  7,
                                  -1000,
                                  std::numeric_limits<std::int32_t>::max(),
                                  std::numeric_limits<std::int32_t>::min(),
                                  std::numeric_limits<std::int64_t>::max(),
                                  std::numeric_limits<std::int64_t>::min()};
  const std::int64_t number = numbers[below(9)];
  const double reals[] = {0, -1, 1e308, std::nan(""), std::numeric_limits<double>::infinity()};
  const std::string texts[] = {"",         std::string(300, 'x'), "\xff\xfe broken", "<b>&amp;</b>", std::string(3, '\0'),
                               "\u202Eabc"};
  if (field->is_repeated()) {
    const int size = reflection->FieldSize(message, field);
    const int i = static_cast<int>(below(static_cast<unsigned>(size)));
    switch (below(4)) {
      case 0: reflection->RemoveLast(&message, field); return;
      case 1:
        if (size > 1) reflection->SwapElements(&message, field, i, 0);
        return;
      case 2: reflection->ClearField(&message, field); return;
      default: break;
    }
    switch (field->cpp_type()) {
      case Field::CPPTYPE_MESSAGE:
        if (depth > 0 && !field->is_map()) change(*reflection->MutableRepeatedMessage(&message, field, i), depth - 1);
        return;
      case Field::CPPTYPE_INT32: reflection->SetRepeatedInt32(&message, field, i, static_cast<std::int32_t>(number)); return;
      case Field::CPPTYPE_INT64: reflection->SetRepeatedInt64(&message, field, i, number); return;
      case Field::CPPTYPE_STRING:
        reflection->SetRepeatedString(&message, field, i, texts[field->type() == Field::TYPE_STRING ? below(2) : below(6)]);
        return;
      default: return;
    }
  }
  switch (field->cpp_type()) {
    case Field::CPPTYPE_MESSAGE:
      if (depth > 0) change(*reflection->MutableMessage(&message, field), depth - 1);
      return;
    case Field::CPPTYPE_INT32: reflection->SetInt32(&message, field, static_cast<std::int32_t>(number)); return;
    case Field::CPPTYPE_INT64: reflection->SetInt64(&message, field, number); return;
    case Field::CPPTYPE_DOUBLE: reflection->SetDouble(&message, field, reals[below(5)]); return;
    case Field::CPPTYPE_BOOL: reflection->SetBool(&message, field, below(2) == 0); return;
    case Field::CPPTYPE_ENUM: reflection->SetEnumValue(&message, field, static_cast<int>(below(40)) - 5); return;
    case Field::CPPTYPE_STRING:
      reflection->SetString(&message, field, texts[field->type() == Field::TYPE_STRING ? below(2) : below(6)]);
      return;
    default: return;
  }
}

std::string Fuzz::frames(const snapshot::Response& answer) {
  const std::string sound = frame(answer.SerializeAsString());
  if (!on_ || ++sent_ <= kSoundAnswers || below(3) == 0) return sound;
  snapshot::Response odd = answer;
  switch (below(16)) {
    case 0:
      return sound.substr(
          0, sound.size() - 1 - below(static_cast<unsigned>(sound.size() - 1)));  // the rest is read from the next answer
    case 1: return std::string("\xff\xff\xff\x7f", 4) + "rest";
    case 2: {
      std::string noise(5 + below(200), '\0');
      for (char& c : noise) c = static_cast<char>(below(256));
      return frame(noise);
    }
    case 3: return sound + sound;
    case 4: {
      odd.set_id(odd.id() + 1000);
      return frame(odd.SerializeAsString()) + sound;
    }
    case 5: {
      snapshot::Response other;
      other.set_id(answer.id());
      other.set_done(true);
      if (below(2))
        other.mutable_tensor()->set_value(-4);
      else
        other.mutable_plan()->add_instructions()->set_node(99);
      return frame(other.SerializeAsString());
    }
    case 6: held_.push_back(sound); return {};  // never, or behind a later one
    case 7: {
      std::string all = sound;
      for (const std::string& h : held_) all += h;
      held_.clear();
      return all;
    }
    default:
      for (unsigned i = 0; i <= below(30); ++i) change(odd, 4);
      odd.set_id(answer.id());
      odd.set_done(answer.done());
      return frame(odd.SerializeAsString());
  }
}

}  // namespace stepscope
