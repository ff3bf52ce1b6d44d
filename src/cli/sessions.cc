// modeld sessions: what is kept between runs, without a model.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/interrupt.h"
#include "cli/state_choice.h"
#include "cli/terminal.h"
#include "store/copy_session.h"

namespace modeld {
namespace {

struct SessionsOptions {
  StateChoice state;
  std::string name;
  std::string other;
  std::string as;
  bool json = false;
};

using Action = Status (*)(State&, const SessionsOptions&);

std::string time_text(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(static_cast<std::time_t>(seconds)));
}

/// Where a block's KV is, and when it would be given up.
struct Kept {
  std::int64_t bytes = 0;
  std::size_t rank = 0;
};

Result<std::unordered_map<BlockKey, Kept>> kept_payloads(const State& state) {
  MODELD_TRY(const std::vector<PayloadRow> rows, state.books().by_worth());
  std::unordered_map<BlockKey, Kept> kept;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (state.holds(rows[i].key)) kept.emplace(rows[i].key, Kept{rows[i].bytes, i + 1});
  return kept;
}

struct Size {
  std::size_t blocks = 0;
  std::size_t dropped = 0;
  std::int64_t bytes = 0;
};

Size size_of(const std::vector<BlockRow>& blocks, const std::unordered_map<BlockKey, Kept>& kept) {
  Size size;
  size.blocks = blocks.size();
  for (const BlockRow& block : blocks) {
    const auto there = kept.find(block.key);
    if (there == kept.end()) {
      ++size.dropped;
    } else {
      size.bytes += there->second.bytes;
    }
  }
  return size;
}

nlohmann::json to_json(const SessionRow& session, const Size& size) {
  return {{"name", session.name},
          {"model", session.identity.model},
          {"kv_type", session.identity.kv_type},
          {"tokens", session.tokens},
          {"computed_tokens", session.indexed},
          {"blocks", size.blocks},
          {"dropped_blocks", size.dropped},
          {"kv_bytes", size.bytes},
          {"created", session.created},
          {"used", session.used},
          {"turns", session.turn}};
}

void print_disk(const State& state) {
  const DiskUsage usage = state.usage();
  fmt::print("{}: {} of {} used: {} of KV, {} of index, {} of books.\n", state.directory().string(),
             bytes_text(usage.used_bytes()), bytes_text(usage.budget_bytes), bytes_text(usage.payload_bytes),
             bytes_text(usage.index_bytes), bytes_text(usage.book_bytes));
}

Status list(State& state, const SessionsOptions& options) {
  MODELD_TRY(const std::vector<SessionRow> sessions, state.books().sessions());
  MODELD_TRY(const auto kept, kept_payloads(state));
  nlohmann::json all = nlohmann::json::array();
  if (!options.json && !sessions.empty())
    fmt::print("{:<24} {:>12} {:>12} {:>8} {:>10}  {}\n", "name", "tokens", "computed", "blocks", "KV", "last used");
  for (const SessionRow& session : sessions) {
    MODELD_TRY(const std::vector<BlockRow> blocks, state.books().blocks(session.id));
    const Size size = size_of(blocks, kept);
    if (options.json) {
      all.push_back(to_json(session, size));
      continue;
    }
    fmt::print("{:<24} {:>12} {:>12} {:>8} {:>10}  {}\n", session.name, count_text(session.tokens),
               count_text(session.indexed), count_text(static_cast<std::int64_t>(size.blocks)), bytes_text(size.bytes),
               time_text(session.used));
  }
  if (options.json) {
    const DiskUsage usage = state.usage();
    fmt::print("{}\n", nlohmann::json{{"sessions", all},
                                      {"directory", state.directory().string()},
                                      {"used_bytes", usage.used_bytes()},
                                      {"budget_bytes", usage.budget_bytes},
                                      {"kv_bytes", usage.payload_bytes},
                                      {"index_bytes", usage.index_bytes},
                                      {"book_bytes", usage.book_bytes},
                                      {"drops", usage.drops}}
                           .dump());
    return {};
  }
  if (sessions.empty()) fmt::print("There is no session. \"modeld ask --session NAME\" begins one.\n");
  print_disk(state);
  return {};
}

std::string why(const BlockRow& block, bool kept) {
  std::string used = block.fetches == 0
                         ? "never fetched"
                         : fmt::format("fetched {} times, last in turn {}", block.fetches, block.last_use);
  if (!kept) return "given up for room, computed again when it is needed; " + used;
  if (block.cls != CacheClass::volatile_) return "kept before all volatile ones; " + used;
  return used;
}

Status show(State& state, const SessionsOptions& options) {
  MODELD_TRY(const SessionRow session, state.books().session(options.name));
  MODELD_TRY(const std::vector<PartRow> parts, state.books().parts(session.id));
  MODELD_TRY(const std::vector<BlockRow> blocks, state.books().blocks(session.id));
  MODELD_TRY(const auto kept, kept_payloads(state));
  const auto source_of = [&](const BlockRow& block) -> std::string {
    for (const PartRow& part : parts)
      if (part.range.contains(block.range.begin)) return part.name;
    return "";
  };
  nlohmann::json json = to_json(session, size_of(blocks, kept));
  json["parts"] = nlohmann::json::array();
  for (const PartRow& part : parts) {
    json["parts"].push_back({{"name", part.name},
                             {"kind", to_text(part.kind)},
                             {"first", part.range.begin.get()},
                             {"tokens", part.range.size()},
                             {"text_bytes", part.text.size() - part.header_bytes}});
  }
  if (!options.json) {
    fmt::print("Session \"{}\": {} tokens, {} of them computed; made {}, used {}, {} turns.\n", session.name,
               count_text(session.tokens), count_text(session.indexed), time_text(session.created),
               time_text(session.used), session.turn);
    fmt::print("Model {:.12}, KV {}, {}.\n\n", session.identity.model, session.identity.kv_type,
               session.identity.engine);
    fmt::print("{:>10} {:>7}  {:<10} {:<12} {:<8} {:>9} {:>8}  {}\n", "first", "tokens", "class", "origin", "tier",
               "KV", "next out", "source; why");
  }
  json["block_list"] = nlohmann::json::array();
  for (const BlockRow& block : blocks) {
    const auto there = kept.find(block.key);
    const bool has = there != kept.end();
    if (options.json) {
      json["block_list"].push_back({{"first", block.range.begin.get()},
                                    {"tokens", block.range.size()},
                                    {"source", source_of(block)},
                                    {"class", to_text(block.cls)},
                                    {"origin", to_text(block.origin)},
                                    {"key", block.key.hex()},
                                    {"tier", has ? "disk" : "dropped"},
                                    {"kv_bytes", has ? there->second.bytes : 0},
                                    {"next_out", has ? there->second.rank : 0},
                                    {"last_use", block.last_use},
                                    {"fetches", block.fetches},
                                    {"why", why(block, has)}});
      continue;
    }
    fmt::print("{:>10} {:>7}  {:<10} {:<12} {:<8} {:>9} {:>8}  {}; {}\n", block.range.begin.get(), block.range.size(),
               to_text(block.cls), to_text(block.origin), has ? "disk" : "dropped",
               has ? bytes_text(there->second.bytes) : "", has ? std::to_string(there->second.rank) : "",
               source_of(block), why(block, has));
  }
  if (options.json) fmt::print("{}\n", json.dump());
  return {};
}

void say(const SessionsOptions& options, const std::string& sentence) {
  fmt::print("{}\n", options.json ? nlohmann::json{{"done", sentence}}.dump() : sentence);
}

Status branch(State& state, const SessionsOptions& options) {
  MODELD_TRY_VOID(check_session_name(options.other));
  MODELD_TRY(const SessionRow from, state.books().session(options.name));
  MODELD_TRY(const SessionRow copy, state.branch(from, options.other));
  say(options, fmt::format("\"{}\" begins as \"{}\" stands: {} tokens, none of them computed or copied.", copy.name,
                           from.name, count_text(copy.tokens)));
  return {};
}

Status remove(State& state, const SessionsOptions& options) {
  MODELD_TRY(const SessionRow session, state.books().session(options.name));
  const std::int64_t before = state.usage().used_bytes();
  MODELD_TRY_VOID(state.remove_session(session));
  say(options, fmt::format("\"{}\" is gone, and {} with it.", session.name,
                           bytes_text(std::max<std::int64_t>(0, before - state.usage().used_bytes()))));
  return {};
}

Status purge(State& state, const SessionsOptions& options) {
  MODELD_TRY(const std::vector<SessionRow> sessions, state.books().sessions());
  for (const SessionRow& session : sessions) MODELD_TRY_VOID(state.remove_session(session));
  say(options, fmt::format("{} sessions are gone, with all their text, KV and index.", sessions.size()));
  return {};
}

Status verify(State& state, const SessionsOptions& options) {
  MODELD_TRY(const std::vector<Damage> damages, state.verify());
  if (options.json && damages.empty()) fmt::print("{}\n", nlohmann::json{{"damages", nlohmann::json::array()}}.dump());
  if (damages.empty()) {
    if (!options.json) fmt::print("All is as it was written.\n");
    return {};
  }
  for (const Damage& damage : damages)
    fmt::print(stderr, "{}{}\n", damage.session.empty() ? "" : fmt::format("Session \"{}\": ", damage.session),
               damage.what);
  return fail(ErrorCode::state_damaged,
              fmt::format("{} things are not as they were written. What is damaged is computed again from the text "
                          "when its session goes on.",
                          damages.size()),
              {{"damages", static_cast<std::int64_t>(damages.size())}});
}

Status copy(State& from, const SessionRow& session, State& to, const std::string& as) {
  ProgressDisplay display(progress_style(false));
  return copy_session(from, session, to, as, display.sink(), &interrupt_flag());
}

Status export_session(State& state, const SessionsOptions& options) {
  // Not made for a session that is not there.
  MODELD_TRY(const SessionRow session, state.books().session(options.name));
  MODELD_TRY(const std::unique_ptr<State> to, State::open(options.other, 0));
  MODELD_TRY_VOID(copy(state, session, *to, session.name));
  say(options, fmt::format("\"{}\" is in {}: a state directory of its own, for --state or \"modeld sessions import\".",
                           session.name, options.other));
  return {};
}

Status import_session(State& state, const SessionsOptions& options) {
  const std::string& as = options.as.empty() ? options.name : options.as;
  MODELD_TRY_VOID(check_session_name(as));
  std::error_code ignored;
  if (!std::filesystem::is_directory(options.other, ignored))
    return fail(ErrorCode::file_missing,
                fmt::format("{} is no directory. Name one that \"modeld sessions export\" has made.", options.other));
  MODELD_TRY(const std::unique_ptr<State> from, State::open(options.other, 0));
  MODELD_TRY(const SessionRow session, from->books().session(options.name));
  MODELD_TRY_VOID(copy(*from, session, state, as));
  say(options, fmt::format("\"{}\" is here as \"{}\".", options.name, as));
  return {};
}

struct Verb {
  const char* name;
  const char* description;
  /// Names of what stands behind the session's name; nullptr: the verb takes none.
  const char* session;
  const char* other;
  Action action;
};
constexpr Verb kVerbs[] = {
    {"list", "All sessions, and the disk that they take", nullptr, nullptr, list},
    {"show", "A session's parts and blocks: where each is, and what would be given up next", "NAME", nullptr, show},
    {"branch", "Begin a session as a copy of another, without computing anything", "NAME", "NEW", branch},
    {"export", "Copy a session into a directory of its own", "NAME", "DIR", export_session},
    {"import", "Copy a session from such a directory", "NAME", "DIR", import_session},
    {"rm", "Forget a session, with what no other one has of it", "NAME", nullptr, remove},
    {"purge", "Forget all sessions", nullptr, nullptr, purge},
    {"verify", "Read everything and tell what is not as it was written", nullptr, nullptr, verify},
};

}  // namespace

Command add_sessions(CLI::App& app) {
  auto options = std::make_shared<SessionsOptions>();
  auto chosen = std::make_shared<Action>(nullptr);
  CLI::App* command = app.add_subcommand("sessions", "List, show, branch, copy and remove what is kept between runs");
  command->require_subcommand(1);
  for (const Verb& verb : kVerbs) {
    CLI::App* sub = command->add_subcommand(verb.name, verb.description);
    add_state_flags(*sub, options->state);
    sub->add_flag("--json", options->json, "Print one JSON object instead of text");
    if (verb.session != nullptr) sub->add_option(verb.session, options->name, "The session")->required();
    if (verb.other != nullptr) sub->add_option(verb.other, options->other, "Where to, or from")->required();
    if (verb.action == import_session) sub->add_option("--as", options->as, "Its name here (default: as it is there)");
    sub->callback([chosen, action = verb.action] { *chosen = action; });
  }
  return {command, [options, chosen](const Invocation&) {
            auto state = open_state(options->state);
            if (!state) return end_with(state.error(), options->json);
            const Status done = (*chosen)(**state, *options);
            return done ? kExitSuccess : end_with(done.error(), options->json);
          }};
}

}  // namespace modeld
