// A text of Python source that states many things: for questions whose answers come from the code itself.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "eval/code_facts.h"
#include "eval/tasks.h"
#include "needles/random.h"

namespace modeld {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kSmallest = 1000;
constexpr std::uintmax_t kLargest = 48'000;
/// Facts beyond this many make a file no better: constants of one table are all alike.
constexpr std::size_t kFactsCounted = 8;
/// Of source code, at most, so that what is read surely is long enough.
constexpr std::size_t kBytesPerToken = 5;

struct SourceFile {
  std::string name;
  std::string text;
  double density = 0.0;
};

Result<std::vector<SourceFile>> source_files(const fs::path& root) {
  std::vector<fs::path> paths;
  std::error_code error;
  fs::recursive_directory_iterator it(root, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error))
    if (it->path().extension() == ".py" && it->is_regular_file(error)) paths.push_back(it->path());
  std::sort(paths.begin(), paths.end());
  std::vector<SourceFile> files;
  for (const fs::path& path : paths) {
    const std::uintmax_t size = fs::file_size(path, error);
    if (error || size < kSmallest || size > kLargest) continue;
    auto text = read_corpus(path, size);
    if (!text) continue;
    const std::size_t facts = std::min(python_facts(*text).size(), kFactsCounted);
    if (facts == 0) continue;
    files.push_back({fs::relative(path, root, error).string(), std::move(*text),
                     static_cast<double>(facts) / static_cast<double>(size)});
  }
  if (files.empty())
    return fail(ErrorCode::text_empty,
                fmt::format("{} holds no Python source that states anything to ask about.", root.string()));
  return files;
}

/// Those that state most for their size, as many as it takes, in a seeded order.
std::string joined(std::vector<SourceFile> files, std::size_t bytes, SeededRandom& random) {
  std::stable_sort(files.begin(), files.end(),
                   [](const SourceFile& a, const SourceFile& b) { return a.density > b.density; });
  std::size_t count = 0;
  for (std::size_t sum = 0; count < files.size() && sum < bytes; ++count) sum += files[count].text.size();
  files.resize(count);
  random.shuffle(files);
  std::string text;
  for (const SourceFile& file : files) {
    text += fmt::format("# file: {}\n{}", file.name, file.text);
    if (text.back() != '\n') text += '\n';
  }
  return text;
}

std::vector<CodeFact> of_kind(const std::vector<CodeFact>& facts, std::string_view kind) {
  std::vector<CodeFact> all;
  std::copy_if(facts.begin(), facts.end(), std::back_inserter(all), [&](const CodeFact& f) { return f.kind == kind; });
  return all;
}

}  // namespace

Result<EvalText> make_code_text(const Engine& engine, std::string name, const fs::path& root, std::int64_t tokens,
                                std::size_t questions, std::uint64_t seed) {
  SeededRandom random(seed);
  MODELD_TRY(std::vector<SourceFile> files, source_files(root));
  const std::string all = joined(std::move(files), static_cast<std::size_t>(tokens) * kBytesPerToken, random);
  EvalText result;
  result.name = std::move(name);
  MODELD_TRY(result.text, cut_to_tokens(engine, all, tokens));
  MODELD_TRY(result.offsets, token_offsets(engine, result.text));
  const std::vector<CodeFact> facts = python_facts(result.text);
  for (const std::string_view kind : {"constant", "default"}) {
    for (const CodeFact& fact : spread(of_kind(facts, kind), questions)) {
      EvalItem item;
      item.kind = fact.kind;
      item.question = fact.question;
      item.answer_prefix = fact.answer_prefix;
      item.answers = {fact.answer};
      add_evidence(item, result, fact.begin, fact.end, fact.answer_at);
      result.items.push_back(std::move(item));
    }
  }
  std::stable_sort(result.items.begin(), result.items.end(), [](const EvalItem& a, const EvalItem& b) {
    return a.evidence.front().byte_begin < b.evidence.front().byte_begin;
  });
  return result;
}

}  // namespace modeld
