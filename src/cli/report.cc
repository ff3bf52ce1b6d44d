#include "cli/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/terminal.h"

namespace modeld {
namespace {

using Json = nlohmann::ordered_json;

// File names may be any bytes: those that are no UTF-8 are replaced, for JSON has no other way to hold them.
std::string on_one_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string passage_line(const Passage& passage) {
  const std::string lines = passage.line_begin == passage.line_end
                                ? fmt::format("line {}", passage.line_begin)
                                : fmt::format("lines {}-{}", passage.line_begin, passage.line_end);
  return fmt::format("  {}, {}  (score {:.4f}, tokens {}-{}, {})\n", passage.source, lines, passage.score,
                     passage.range.begin.get(), passage.range.end.get(), to_text(passage.origin));
}

std::string map_lines(const MapReport& map) {
  std::string text = fmt::format("The whole text was read in {} parts, and each asked; their answers:\n",
                                 count_text(static_cast<std::int64_t>(map.parts.size())));
  for (const PartialAnswer& part : map.parts) {
    std::string line = part.text.substr(0, part.text.find('\n'));
    if (line.size() < part.text.size()) line += " …";
    text += fmt::format("  {}, lines {}-{}: {}\n", part.source, part.line_begin, part.line_end, line);
  }
  return text + fmt::format("Pass      {} tokens read, {} computed, {} written; {} of putting answers together\n",
                            count_text(map.read_tokens), count_text(map.computed_tokens),
                            count_text(map.written_tokens),
                            map.rounds == 1 ? "1 round" : fmt::format("{} rounds", map.rounds));
}

Json map_json(const MapReport& map) {
  Json parts = Json::array();
  for (const PartialAnswer& part : map.parts)
    parts.push_back({{"start", part.range.begin.get()},
                     {"end", part.range.end.get()},
                     {"source", part.source},
                     {"lines", {part.line_begin, part.line_end}},
                     {"answer", part.text}});
  return {{"parts", parts},
          {"rounds", map.rounds},
          {"read_tokens", map.read_tokens},
          {"computed_tokens", map.computed_tokens},
          {"written_tokens", map.written_tokens},
          {"partial_seconds", map.partial_seconds}};
}

}  // namespace

std::string answer_report(const Answer& answer) {
  std::string text;
  if (answer.exact) {
    text += "The whole text fits the window and was attended densely: no passages were chosen.\n";
  } else if (answer.map) {
    text += map_lines(*answer.map);
  } else if (answer.retrieved.empty()) {
    text += "No passage was read beside the start and the end of the text.\n";
  } else {
    text += "Passages used, best first:\n";
    for (const Passage& passage : answer.retrieved) text += passage_line(passage);
  }
  text += fmt::format("Prompt    {} tokens: {} computed, {} reused; {} computed more than once\n",
                      count_text(answer.prompt_tokens), count_text(answer.computed_tokens),
                      count_text(answer.reused_tokens), count_text(answer.recomputed_tokens));
  if (answer.reused_after_edit_tokens > 0)
    text += fmt::format("Edited    {} of the reused tokens had been computed before the text was changed\n",
                        count_text(answer.reused_after_edit_tokens));
  text += fmt::format("Attended  {} tokens; {} cold in memory, {} dropped ({} mode)\n",
                      count_text(answer.attended_tokens), count_text(answer.cold_tokens),
                      count_text(answer.dropped_tokens), answer.exact ? "exact" : "extended");
  if (answer.pinned_cold_tokens > 0)
    text += fmt::format("Pinned    {} tokens found no room in the hot set and are cold, first to come back\n",
                        count_text(answer.pinned_cold_tokens));
  text += fmt::format("Time      first token after {}", duration_text(answer.ttft_ms / 1000.0));
  if (answer.prefill_tokens_per_second > 0.0)
    text += fmt::format(", {:.0f} tokens/s read", answer.prefill_tokens_per_second);
  text += fmt::format(", {:.1f} ms a token written", answer.decode_ms_per_token);
  if (answer.predicted_seconds > 0.0) text += fmt::format("; predicted {}", duration_text(answer.predicted_seconds));
  text += "\n";
  text +=
      fmt::format("Memory    {} of KV on the device, {} in host memory, {} of index\n",
                  bytes_text(answer.kv_bytes_device), bytes_text(answer.kv_bytes_host), bytes_text(answer.index_bytes));
  return text;
}

std::string answer_json(const Answer& answer, std::string_view question) {
  Json json;
  if (!question.empty()) json["question"] = question;
  json["answer"] = answer.text;
  json["finished"] = answer.finished;
  json["mode"] = answer.exact ? "exact" : "extended";
  json["prompt_tokens"] = answer.prompt_tokens;
  json["reused_tokens"] = answer.reused_tokens;
  json["computed_tokens"] = answer.computed_tokens;
  json["attended_tokens"] = answer.attended_tokens;
  json["cold_tokens"] = answer.cold_tokens;
  json["dropped_tokens"] = answer.dropped_tokens;
  json["reused_after_edit_tokens"] = answer.reused_after_edit_tokens;
  json["recomputed_tokens"] = answer.recomputed_tokens;
  json["pinned_cold_tokens"] = answer.pinned_cold_tokens;
  json["answer_tokens"] = answer.tokens.size();
  json["returns"] = answer.returns;
  json["retrieved"] = Json::array();
  for (const Passage& passage : answer.retrieved)
    json["retrieved"].push_back({{"start", passage.range.begin.get()},
                                 {"end", passage.range.end.get()},
                                 {"score", passage.score},
                                 {"source", passage.source},
                                 {"lines", {passage.line_begin, passage.line_end}},
                                 {"origin", to_text(passage.origin)}});
  if (answer.map) json["map"] = map_json(*answer.map);
  json["ttft_ms"] = answer.ttft_ms;
  json["prefill_tokens_per_second"] = answer.prefill_tokens_per_second;
  json["decode_ms_per_token"] = answer.decode_ms_per_token;
  json["kv_bytes_device"] = answer.kv_bytes_device;
  json["kv_bytes_host"] = answer.kv_bytes_host;
  json["index_bytes"] = answer.index_bytes;
  const Seconds& s = answer.seconds;
  json["seconds"] = {{"ingest", s.ingest},       {"probe", s.probe},           {"scoring", s.scoring},
                     {"admission", s.admission}, {"question", s.question},     {"decode", s.decode},
                     {"looking", s.looking},     {"retrieval", s.retrieval()}, {"total", s.total()}};
  json["predicted_seconds"] = answer.predicted_seconds;
  return on_one_line(json);
}

std::string error_json(const Error& error, std::string_view question) {
  Json numbers = Json::object();
  for (const auto& [name, value] : error.numbers) numbers[name] = value;
  Json json;
  if (!question.empty()) json["question"] = question;
  json["error"] = {{"code", code_name(error.code)}, {"message", error.message}, {"numbers", numbers}};
  return on_one_line(json);
}

}  // namespace modeld
