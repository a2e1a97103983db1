// Several classes of QtTest in one program: their templates are compiled and their libraries linked once. A link to the
// program is called like the file of each class and runs that class, in a process of its own: bin/tst_rewound is
// tests/workbench/tst_rewound.cpp.
#pragma once

#include <QTest>

namespace stepscope::testing {

// Takes what the command line of QtTest takes; returns the exit code, the number of failures.
using RunClass = int (*)(int argc, char** argv);

// `file` is a path; its name without the ending is what the link is called. Ends the program where two files are called
// alike.
struct RegisteredClass {
  RegisteredClass(const char* file, RunClass run);
};

template <typename Application, typename Class>
int runClass(int argc, char** argv) {
  Application app(argc, argv);
  Class test;
  return QTest::qExec(&test, argc, argv);
}

}  // namespace stepscope::testing

// At the end of a file, in place of QTEST_MAIN.
#define SS_QT_CLASS(application, type)                                          \
  static const ::stepscope::testing::RegisteredClass registered##type(__FILE__, \
                                                                      &::stepscope::testing::runClass<application, type>);
