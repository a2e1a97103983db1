#include "engine/onnx/module_path.h"

#include <charconv>
#include <optional>

namespace stepscope {
namespace {

constexpr int kInferenceRounds = 8;

std::string commonPrefix(const std::string& a, const std::string& b) {
  std::size_t end = 0;
  for (std::size_t i = 0;; ++i) {
    const bool aEnds = i == a.size() || a[i] == '.';
    const bool bEnds = i == b.size() || b[i] == '.';
    if (aEnds && bEnds) end = i;
    if (i == a.size() || i == b.size() || a[i] != b[i]) return a.substr(0, end);
  }
}

// The strings of a Python list literal such as "['', 'model', 'model.h.0']".
std::vector<std::string> pythonStrings(std::string_view text) {
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char quote = text[i];
    if (quote != '\'' && quote != '"') continue;
    std::string item;
    for (++i; i < text.size() && text[i] != quote; ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      item += text[i];
    }
    strings.push_back(std::move(item));
  }
  return strings;
}

// "": cls/model: cls/model.h.0: cls/op: aten.op" → "model.h.0": the scope before the operator's own.
std::string pathFromNamespace(std::string_view text) {
  std::vector<std::string> scopes;
  while (!text.empty()) {
    const auto slash = text.find('/');
    const auto part = text.substr(0, slash);
    scopes.emplace_back(part.substr(0, part.find(':')));
    text = slash == std::string_view::npos ? std::string_view{} : text.substr(slash + 1);
  }
  return scopes.size() >= 2 ? scopes[scopes.size() - 2] : "";
}

struct Frame {
  std::string file;
  int line = 0;
  std::string code;
};

// Lines of the form `File "x.py", line 22, in forward`, each followed by the line of code.
std::vector<Frame> stackFrames(std::string_view trace) {
  std::vector<Frame> frames;
  while (!trace.empty()) {
    const auto end = trace.find('\n');
    auto line = trace.substr(0, end);
    trace = end == std::string_view::npos ? std::string_view{} : trace.substr(end + 1);
    line = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    if (line.starts_with("File \"")) {
      const auto close = line.find('"', 6);
      if (close == std::string_view::npos) continue;
      Frame frame{std::string(line.substr(6, close - 6)), 0, ""};
      if (const auto number = line.find("line ", close); number != std::string_view::npos)
        std::from_chars(line.data() + number + 5, line.data() + line.size(), frame.line);
      if (frame.line < 0) frame.line = 0;
      frames.push_back(std::move(frame));
    } else if (!frames.empty() && frames.back().code.empty()) {
      frames.back().code = std::string(line);
    }
  }
  return frames;
}

bool insideTorch(const std::string& file) { return file.starts_with("torch/") || file.find("/torch/") != std::string::npos; }

// One sweep: every node without a path of its own takes the common prefix of its neighbours that have one. Constants take
// it from their consumers alone, which are all they have.
bool inferOnce(Graph& graph, const UseTable& uses) {
  bool changed = false;
  for (const NodeId id : graph.order()) {
    if (!graph.node(id).provenance.modulePath.empty()) continue;
    std::optional<std::string> path;
    const auto meet = [&](NodeId other) {
      if (!other) return;
      const std::string_view theirs = graph.node(other).provenance.modulePath;
      if (!theirs.empty()) path = path ? commonPrefix(*path, std::string(theirs)) : std::string(theirs);
    };
    for (const ValueId in : graph.node(id).inputs)
      if (in) meet(graph.value(in).producer);
    for (const ValueId out : graph.node(id).outputs)
      if (out)
        for (const Use& use : uses[static_cast<std::size_t>(out.index)]) meet(use.node);
    if (!path || path->empty()) continue;
    Provenance& provenance = graph.mutableNode(id).provenance;
    provenance.modulePath = InternedText(*path);
    provenance.modulePathInferred = true;
    changed = true;
  }
  return changed;
}

// The scopes of "a/b/Op" from `begin` on, without the last part, joined by dots.
std::string scopesOf(std::string_view nodeName, std::size_t first) {
  std::vector<std::string_view> scopes;
  for (std::size_t begin = first, slash = nodeName.find('/', first); slash != std::string_view::npos;
       begin = slash + 1, slash = nodeName.find('/', begin)) {
    const auto scope = nodeName.substr(begin, slash - begin);
    if (!scopes.empty() && scope.size() > scopes.back().size() && scope.starts_with(scopes.back()) &&
        scope[scopes.back().size()] == '.')
      scopes.back() = scope;
    else if (!scope.empty())
      scopes.push_back(scope);
  }
  std::string path;
  for (const auto scope : scopes) path += (path.empty() ? "" : ".") + std::string(scope);
  return path;
}

}  // namespace

std::string modulePathFromName(std::string_view nodeName) {
  if (nodeName.starts_with('/')) return scopesOf(nodeName, 1);
  if (nodeName.find(';') == std::string_view::npos) return "";
  std::optional<std::string> path;  // what is common to all that TensorFlow Lite fused
  for (std::size_t begin = 0; begin <= nodeName.size();) {
    const std::size_t end = std::min(nodeName.find(';', begin), nodeName.size());
    const std::string scopes = scopesOf(nodeName.substr(begin, end - begin), 0);
    path = path ? commonPrefix(*path, scopes) : scopes;
    begin = end + 1;
  }
  return *path;
}

void readTorchProvenance(const Metadata& metadata, std::string_view nodeName, Provenance& provenance) {
  if (const auto it = metadata.find("pkg.torch.onnx.name_scopes"); it != metadata.end()) {
    const auto scopes = pythonStrings(it->second);
    if (scopes.size() >= 2) provenance.modulePath = InternedText(scopes[scopes.size() - 2]);
  } else if (const auto space = metadata.find("namespace"); space != metadata.end()) {
    provenance.modulePath = InternedText(pathFromNamespace(space->second));
  } else {
    provenance.modulePath = InternedText(modulePathFromName(nodeName));
  }
  const auto trace = metadata.find("pkg.torch.onnx.stack_trace");
  if (trace == metadata.end()) return;
  const auto frames = stackFrames(trace->second);
  if (frames.empty()) return;
  const Frame* chosen = &frames.back();
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    if (!insideTorch(frame->file)) {
      chosen = &*frame;
      break;
    }
  provenance.sourceFile = InternedText(chosen->file);
  provenance.sourceLine = chosen->line;
  provenance.sourceCode = InternedText(chosen->code);
}

void inferModulePaths(Graph& graph) {
  const auto uses = graph.uses();
  for (int round = 0; round < kInferenceRounds && inferOnce(graph, uses); ++round) {
  }
}

}  // namespace stepscope
