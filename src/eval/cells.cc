#include "eval/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

namespace modeld {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFormat = 4;

/// Answers may end within a UTF-8 character; those bytes are replaced.
std::string dump(const json& value) { return value.dump(1, ' ', false, json::error_handler_t::replace) + "\n"; }

json to_json(const QuestionResult& r) {
  json value = {{"question", r.question},         {"expected", r.expected}, {"forced", r.forced},
                {"forced_right", r.forced_right}, {"depth", r.depth},       {"seconds", r.seconds}};
  if (r.free_asked) value.update({{"free", r.free}, {"free_right", r.free_right}});
  if (!r.ranks.empty()) value.update({{"ranks", r.ranks}, {"read", r.read}, {"returns", r.returns}});
  for (const SelectorRanks& rival : r.rivals)
    value["rivals"].push_back({{"selector", rival.selector}, {"ranks", rival.ranks}});
  return value;
}

QuestionResult result_from(const json& value) {
  QuestionResult r;
  value.at("question").get_to(r.question);
  value.at("expected").get_to(r.expected);
  value.at("forced").get_to(r.forced);
  value.at("forced_right").get_to(r.forced_right);
  value.at("depth").get_to(r.depth);
  value.at("seconds").get_to(r.seconds);
  r.free_asked = value.contains("free");
  if (r.free_asked) {
    value.at("free").get_to(r.free);
    value.at("free_right").get_to(r.free_right);
  }
  if (value.contains("ranks")) {
    value.at("ranks").get_to(r.ranks);
    value.at("read").get_to(r.read);
    value.at("returns").get_to(r.returns);
  }
  if (value.contains("rivals")) {
    for (const json& rival : value.at("rivals"))
      r.rivals.push_back({rival.at("selector").get<std::string>(), rival.at("ranks").get<std::vector<std::int32_t>>()});
  }
  return r;
}

/// Mean of `share` over the results for which it is something.
template <typename Share>
std::optional<double> mean_of(const std::vector<QuestionResult>& results, Share share) {
  std::int64_t counted = 0;
  double sum = 0.0;
  for (const QuestionResult& r : results) {
    const std::optional<double> value = share(r);
    if (!value) continue;
    ++counted;
    sum += *value;
  }
  if (counted == 0) return std::nullopt;
  return sum / static_cast<double>(counted);
}

std::optional<double> share_among_first(const std::vector<std::int32_t>& ranks, std::int32_t k) {
  if (ranks.empty()) return std::nullopt;
  const auto found =
      std::count_if(ranks.begin(), ranks.end(), [k](std::int32_t rank) { return rank >= 1 && rank <= k; });
  return static_cast<double>(found) / static_cast<double>(ranks.size());
}

template <typename Value>
double sum_of(const std::vector<QuestionResult>& results, Value value) {
  return std::accumulate(results.begin(), results.end(), 0.0,
                         [&](double sum, const QuestionResult& r) { return sum + value(r); });
}

}  // namespace

double Cell::forced_right() const {
  return sum_of(results, [](const QuestionResult& r) { return r.forced_right; });
}
double Cell::free_right() const {
  return sum_of(results, [](const QuestionResult& r) { return r.free_right; });
}
std::int64_t Cell::free_asked() const {
  return std::count_if(results.begin(), results.end(), [](const QuestionResult& r) { return r.free_asked; });
}

std::optional<double> Cell::recall(std::int32_t k) const {
  return mean_of(results, [k](const QuestionResult& r) { return share_among_first(r.ranks, k); });
}

std::optional<double> Cell::recall(std::int32_t k, std::string_view selector) const {
  return mean_of(results, [&](const QuestionResult& r) -> std::optional<double> {
    for (const SelectorRanks& rival : r.rivals)
      if (rival.selector == selector) return share_among_first(rival.ranks, k);
    return std::nullopt;
  });
}

std::vector<std::string> Cell::rivals() const {
  std::vector<std::string> names;
  for (const QuestionResult& r : results)
    for (const SelectorRanks& rival : r.rivals)
      if (std::find(names.begin(), names.end(), rival.selector) == names.end()) names.push_back(rival.selector);
  return names;
}

std::int64_t Cell::ranked() const {
  return std::count_if(results.begin(), results.end(), [](const QuestionResult& r) { return !r.ranks.empty(); });
}

std::optional<double> Cell::read_right() const {
  return mean_of(results, [](const QuestionResult& r) -> std::optional<double> {
    if (r.ranks.empty()) return std::nullopt;
    return r.read;
  });
}

fs::path CellFolder::path_of(const Cell& cell) const {
  return folder_ / fmt::format("{}-{}-{}.json", cell.task, cell.tokens, cell.mode);
}

std::optional<Cell> CellFolder::load(const Cell& wanted) const {
  const std::optional<std::string> content = read(path_of(wanted).filename().string());
  if (!content) return std::nullopt;
  try {
    const json value = json::parse(*content);
    if (value.at("format") != kFormat || value.at("parameters") != wanted.parameters) return std::nullopt;
    Cell cell = wanted;
    cell.results.clear();
    for (const json& result : value.at("results")) cell.results.push_back(result_from(result));
    value.at("prepare_seconds").get_to(cell.prepare_seconds);
    return cell;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

Status CellFolder::save(const Cell& cell) const {
  json value = {{"format", kFormat},
                {"task", cell.task},
                {"mode", cell.mode},
                {"tokens", cell.tokens},
                {"parameters", cell.parameters},
                {"prepare_seconds", cell.prepare_seconds}};
  value["results"] = json::array();
  for (const QuestionResult& result : cell.results) value["results"].push_back(to_json(result));
  return write(path_of(cell).filename().string(), dump(value));
}

std::optional<std::string> CellFolder::read(std::string_view name) const {
  const std::ifstream file(folder_ / name, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

Status CellFolder::write(std::string_view name, std::string_view content) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  const fs::path path = folder_ / name;
  const fs::path beside = folder_ / (std::string(name) + ".part");
  {
    std::ofstream file(beside, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    file.close();
    if (!file) {
      const bool full = errno == ENOSPC;
      fs::remove(beside, error);
      return fail(
          full ? ErrorCode::disk_full : ErrorCode::io_failed,
          fmt::format("{} could not be written; see that the folder can be written and has room.", path.string()));
    }
  }
  fs::rename(beside, path, error);
  if (error)
    return fail(ErrorCode::io_failed, fmt::format("{} could not be put in place: {}.", path.string(), error.message()));
  return {};
}

}  // namespace modeld
