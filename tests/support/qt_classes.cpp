#include "tests/support/qt_classes.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace stepscope::testing {
namespace {

std::map<std::string, RunClass>& classes() {
  static std::map<std::string, RunClass> all;
  return all;
}

std::string nameOf(const char* path) { return QFileInfo(QString::fromLocal8Bit(path)).completeBaseName().toStdString(); }

}  // namespace

RegisteredClass::RegisteredClass(const char* file, RunClass run) {
  if (classes().emplace(nameOf(file), run).second) return;
  std::fprintf(stderr, "two classes of tests in files called %s\n", nameOf(file).c_str());
  std::abort();
}

}  // namespace stepscope::testing

int main(int argc, char** argv) {
  using namespace stepscope::testing;
  const std::string name = nameOf(argv[0]);
  const auto found = classes().find(name);
  if (found == classes().end()) {
    std::fprintf(stderr, "no class of tests is called %s; found:\n", name.c_str());
    for (const auto& [known, run] : classes()) std::fprintf(stderr, "  %s\n", known.c_str());
    return 2;
  }
  // Settings and folders of an application are those of the class, not of the program: classes run at the same time.
  QCoreApplication::setApplicationName(QString::fromStdString(name));
  QCoreApplication::setAttribute(Qt::AA_Use96Dpi);
  return found->second(argc, argv);
}
