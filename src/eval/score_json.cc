#include "eval/score_json.h"

#include <nlohmann/json.hpp>

namespace modeld {
namespace {

using Json = nlohmann::ordered_json;

Json pair_of(const Interval& interval) { return Json::array({interval.low, interval.high}); }

Json to_json(const CellScores& scores) {
  Json json = {{"tokens", scores.tokens},
               {"n", scores.forced.asked},
               {"right", scores.forced.right},
               {"score", scores.forced.value},
               {"interval", pair_of(scores.forced.interval)}};
  if (scores.retention) {
    json["retention"] = {{"value", scores.retention->value}, {"interval", pair_of(scores.retention->interval)}};
  }
  if (scores.free) {
    json["free"] = {{"n", scores.free->asked},
                    {"right", scores.free->right},
                    {"score", scores.free->value},
                    {"interval", pair_of(scores.free->interval)}};
  }
  if (scores.recall) {
    for (std::size_t i = 0; i < kRecallAt.size(); ++i)
      json["recall"][std::to_string(kRecallAt[i])] = (*scores.recall)[i];
  }
  if (scores.read) json["read"] = *scores.read;
  json["question_seconds"] = scores.question_seconds;
  json["prepare_seconds"] = scores.prepare_seconds;
  json["parameters"] = scores.parameters;
  return json;
}

Json to_json(const PerplexityScore& score) {
  return {{"probes", score.probes},
          {"perplexity", score.perplexity.value},
          {"interval", pair_of(score.perplexity.interval)},
          {"attended_tokens", score.attended_tokens},
          {"prepare_seconds", score.prepare_seconds},
          {"seconds", score.seconds}};
}

}  // namespace

std::string eval_json(std::span<const CellScores> scores, std::span<const PerplexityScore> perplexity,
                      const MachineStamp& stamp, const EvalSetting& setting) {
  Json json = {
      {"machine", {{"cpu", stamp.cpu}, {"cores", stamp.cores}, {"memory_bytes", stamp.memory_bytes}}},
      {"date", stamp.date},
      {"commit", stamp.commit},
      {"command", stamp.command},
      {"model", {{"name", setting.model}, {"digest", setting.digest}, {"trained_window", setting.trained_window}}},
      {"tokens", setting.tokens},
      {"hot_tokens", setting.hot_tokens},
      {"kv_type", setting.kv_type},
      {"embedder", setting.embedder.empty() ? Json() : Json(setting.embedder)},
      {"seed", setting.seed},
      {"report", setting.report},
      {"picture", setting.picture.empty() ? Json() : Json(setting.picture)},
      {"tasks", Json::object()},
      {"perplexity", Json::object()}};
  for (const CellScores& cell : scores) json["tasks"][cell.task][cell.mode] = to_json(cell);
  for (const PerplexityScore& score : perplexity)
    json["perplexity"][std::to_string(score.tokens)][score.mode] = to_json(score);
  // Names of models and files may be any bytes; those that are no UTF-8 are replaced.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace modeld
