#include "tests/engine/passes/small_step.h"

#include <google/protobuf/text_format.h>

#include <sstream>

#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {

Result<SmallStep> smallStep(const std::string& graph, int opset, const std::vector<std::string>& parameters) {
  onnx::ModelProto model;
  const std::string text = "ir_version: 8 opset_import { version: " + std::to_string(opset) + " } opset_import { domain: \"stepscope\" version: 1 } graph { name: \"g\" " +
                           graph + " output { name: \"loss\" type { tensor_type { elem_type: 1 shape { } } } } }";
  if (!google::protobuf::TextFormat::ParseFromString(text, &model))
    return invalid("the text of the model is malformed: " + text);
  const TemporaryFolder folder;
  SS_ASSIGN(const auto session, Session::open(folder.write("model.onnx", model.SerializeAsString()), {}, {}));
  TrainOptions options;
  SS_TRY(applySetting(options, "loss", "loss", "test"));
  session->keepGradients(true);
  SS_TRY(session->setOptions(options));
  SS_TRY(session->build());
  SS_ASSIGN(const snapshot::StepRecord record, session->step());
  SmallStep result{record.loss(), {}};
  for (const std::string& name : parameters) {
    SS_ASSIGN(const Tensor gradient, session->gradient(name));
    for (std::int64_t i = 0; i < gradient.elements(); ++i)
      result.gradients[name].push_back(elementAsDouble(gradient.view(), i));
  }
  return result;
}

namespace {

template <typename T>
std::string initializer(const std::string& name, int type, const char* field, const std::vector<std::int64_t>& dims,
                        const std::vector<T>& values) {
  std::ostringstream text;
  text << "initializer { name: \"" << name << "\" data_type: " << type;
  for (const std::int64_t dim : dims) text << " dims: " << dim;
  for (const T value : values) text << ' ' << field << ": " << value;
  text << " } ";
  return text.str();
}

}  // namespace

std::string floats(const std::string& name, const std::vector<std::int64_t>& dims, const std::vector<float>& values) {
  return initializer(name, 1, "float_data", dims, values);
}

std::string ints(const std::string& name, const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& values) {
  return initializer(name, 7, "int64_data", dims, values);
}

std::string node(const std::string& op, const std::string& inputs, const std::string& outputs, const std::string& more) {
  std::string text = "node { op_type: \"" + op + "\" name: \"" + op + "_" + outputs.substr(0, outputs.find(' ')) + "\"";
  const auto list = [&text](const char* field, const std::string& names) {
    std::istringstream stream(names);
    for (std::string name; stream >> name;) text += std::string(" ") + field + ": \"" + (name == "_" ? "" : name) + "\"";
  };
  list("input", inputs);
  list("output", outputs);
  return text + " " + more + " } ";
}

std::string attribute(const std::string& name, std::int64_t value) {
  return "attribute { name: \"" + name + "\" type: INT i: " + std::to_string(value) + " } ";
}

std::string attribute(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string text = "attribute { name: \"" + name + "\" type: INTS";
  for (const std::int64_t value : values) text += " ints: " + std::to_string(value);
  return text + " } ";
}

}  // namespace stepscope::testing
