#include "tests/engine/passes/small_step.h"

#include <google/protobuf/text_format.h>

#include <sstream>

#include "engine/step/stepper.h"
#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {

namespace {

std::vector<double> elementsOf(const TensorView& view) {
  std::vector<double> elements;
  for (std::int64_t i = 0; i < elementCount(view.dims); ++i) elements.push_back(elementAsDouble(view, i));
  return elements;
}

}  // namespace

Result<SmallStep> smallStep(const std::string& graph, int opset, const std::vector<std::string>& parameters,
                            const SmallStepOptions& wanted) {
  onnx::ModelProto model;
  const std::string text =
      "ir_version: 8 opset_import { version: " + std::to_string(opset) +
      " } opset_import { domain: \"stepscope\" version: 1 } opset_import { domain: \"com.microsoft\" version: 1 } graph { "
      "name: \"g\" " +
      graph +
      (wanted.settings.contains("loss-fn") ? ""
                                           : " output { name: \"loss\" type { tensor_type { elem_type: " +
                                                 std::to_string(wanted.lossType) + " shape { } } } }") +
      " }";
  if (!google::protobuf::TextFormat::ParseFromString(text, &model))
    return invalid("the text of the model is malformed: " + text);
  const TemporaryFolder folder;
  TrainOptions options;
  if (!wanted.settings.contains("loss-fn")) SS_TRY(applySetting(options, "loss", "loss", "test"));
  for (const auto& [name, value] : wanted.settings) SS_TRY(applySetting(options, name, value, "test"));
  SS_ASSIGN(const auto session, Session::open(folder.write("model.onnx", model.SerializeAsString()),
                                              {.loopIterations = options.loopIterations}, {}));
  session->keepGradients(true);
  session->keep(wanted.keep);
  SS_TRY(session->setOptions(options));
  SS_TRY(session->build());
  SS_ASSIGN(const snapshot::StepRecord record, session->step());
  SmallStep result;
  result.loss = record.loss();
  result.rows.assign(record.row_losses().values().begin(), record.row_losses().values().end());
  for (const std::string& name : parameters) {
    SS_ASSIGN(const Tensor gradient, session->trained().gradient(name));
    result.gradients[name] = elementsOf(gradient.view());
  }
  for (const auto& [name, view] : session->trained().named(false)) result.state[name] = elementsOf(view);
  for (const std::string& name : wanted.keep) {
    SS_ASSIGN(const TensorView view, session->stepper().value(session->findValue(name)));
    result.values[name] = elementsOf(view);
  }
  const ExecutionPlan& plan = session->stepper().plan();
  result.instructions = plan.instructions.size();
  for (const Instruction& instruction : plan.instructions) result.conditional += instruction.predicates.empty() ? 0 : 1;
  for (const Instruction& instruction : plan.instructions)
    if (!instruction.view && instruction.node) ++result.running[session->stepper().graph().node(instruction.node).op];
  for (const snapshot::Alert& alert : session->alerts()) result.warnings.push_back(alert.message());
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

std::string doubles(const std::string& name, const std::vector<std::int64_t>& dims, const std::vector<double>& values) {
  return initializer(name, 11, "double_data", dims, values);
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

std::string realAttribute(const std::string& name, double value) {
  return "attribute { name: \"" + name + "\" type: FLOAT f: " + std::to_string(value) + " } ";
}

std::string textAttribute(const std::string& name, const char* value) {
  return "attribute { name: \"" + name + "\" type: STRING s: \"" + value + "\" } ";
}

std::string attribute(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string text = "attribute { name: \"" + name + "\" type: INTS";
  for (const std::int64_t value : values) text += " ints: " + std::to_string(value);
  return text + " } ";
}

}  // namespace stepscope::testing
