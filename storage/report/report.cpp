#include "storage/report/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "storage/report/csv_report.h"
#include "storage/report/data.h"
#include "storage/report/html_writer.h"
#include "storage/report/json_report.h"
#include "storage/report/run_document.h"
#include "storage/report/text_writer.h"
#include "storage/report/trace_report.h"

namespace stepscope::storage {
namespace {

Result<std::string> contents(const Project& project, std::int64_t run, const std::string& path) {
  const auto endsWith = [&](std::string_view ending) { return path.ends_with(ending); };
  const bool known = endsWith(".html") || endsWith(".txt") || endsWith(".json") || endsWith(".csv");
  if (!known)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("report '{}': unknown ending; expected .html, .txt, .json, .csv, "
                            ".ops.csv, .instructions.csv, .roofline.csv, .phases.csv or .trace.json",
                            path));
  SS_STORE_ASSIGN(const ReportData data, readReportData(project, run));
  if (endsWith(".trace.json")) return traceReport(project, data);
  if (endsWith(".html")) return htmlOf(runDocument(data));
  if (endsWith(".txt")) return plainTextOf(runDocument(data));
  if (endsWith(".json")) return jsonReport(data);
  if (endsWith(".ops.csv")) return opsCsv(data);
  if (endsWith(".instructions.csv")) return instructionsCsv(data);
  if (endsWith(".roofline.csv")) return rooflineCsv(data);
  if (endsWith(".phases.csv")) return phasesCsv(data);
  return stepsCsv(data);
}

Status checkPlace(const std::filesystem::path& path) {
  std::error_code error;
  const auto there = std::filesystem::symlink_status(path, error);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there) && !std::filesystem::is_symlink(there))
    return fail(ErrorCode::kIo,
                fmt::format("report '{}': is no regular file; expected a file or a new name", path.string()));
  return {};
}

// Under a temporary name first.
Status writeWhole(const std::string& text, const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  temporary += fmt::format(".{}.tmp", getpid());
  {
    std::ofstream out(temporary, std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.flush();
    if (!out) {
      const int reason = errno;
      std::error_code ignored;
      std::filesystem::remove(temporary, ignored);
      return fail(ErrorCode::kIo,
                  fmt::format("report '{}': {}; expected a writable folder", path.string(), std::strerror(reason)));
    }
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (!error) return {};
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  return fail(ErrorCode::kIo, fmt::format("report '{}': {}; expected a writable place", path.string(), error.message()));
}

}  // namespace

Status writeReport(const Project& project, std::int64_t run, const std::filesystem::path& path) {
  SS_STORE_TRY(checkPlace(path));
  SS_STORE_ASSIGN(const std::string text, contents(project, run, path.string()));
  if (project.stopped()) return fail(ErrorCode::kCancelled, fmt::format("report '{}': cancelled", path.string()));
  return writeWhole(text, path);
}

Status writeReport(const doc::Document& document, const std::filesystem::path& path) {
  SS_STORE_TRY(checkPlace(path));
  if (path.extension() == ".html") return writeWhole(htmlOf(document), path);
  if (path.extension() == ".txt") return writeWhole(plainTextOf(document), path);
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("report '{}': unknown ending; expected .html or .txt", path.string()));
}

}  // namespace stepscope::storage
