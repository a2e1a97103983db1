// The tables of schema.h in their groups, one file each: schema_run.cpp, schema_build.cpp …
#pragma once

#include <string_view>
#include <vector>

#include "storage/schema.h"

namespace stepscope::storage {

// Types of columns.
inline constexpr std::string_view kId = "INTEGER PRIMARY KEY";
inline constexpr std::string_view kInt = "INTEGER NOT NULL";
inline constexpr std::string_view kIntOrZero = "INTEGER NOT NULL DEFAULT 0";  // columns that an older file has not
inline constexpr std::string_view kText = "TEXT NOT NULL";
inline constexpr std::string_view kReal = "REAL";
inline constexpr std::string_view kRealOrZero = "REAL NOT NULL DEFAULT 0";  // columns that an older file has not
inline constexpr std::string_view kBlob = "BLOB NOT NULL";

std::vector<Table> runTables();    // the file, its runs, the machine
std::vector<Table> buildTables();  // phases, passes, graphs, plans
std::vector<Table> stepTables();   // times, statistics, data, alerts
std::vector<Table> studyTables();  // trials, the ledger, PyTorch, ranks

}  // namespace stepscope::storage
