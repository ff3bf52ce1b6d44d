#include "eval/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>

#include "source/encoding.h"

namespace modeld {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 14> kSuffixes = {".py", ".c",  ".h",  ".cc", ".cpp", ".hpp", ".js",
                                                        ".ts", ".go", ".rs", ".md", ".txt", ".sh",  ".java"};

/// UTF-8 without NUL; the end may be inside a character, where the caller's limit cut it.
bool is_utf8_text(std::string_view text) {
  const std::optional<std::size_t> invalid = first_invalid_utf8(text);
  return text.find('\0') == std::string_view::npos && (!invalid || *invalid + 4 > text.size());
}

Result<std::string> read_file(const fs::path& path, std::size_t bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::file_missing, fmt::format("{} cannot be read; name another text.", path.string()));
  std::string text(bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::string_view comment_sign(const fs::path& path) {
  const std::string suffix = path.extension().string();
  return suffix == ".py" || suffix == ".sh" || suffix == ".md" || suffix == ".txt" ? "#" : "//";
}

Result<std::string> read_directory(const fs::path& path, std::size_t bytes) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const std::string suffix = it->path().extension().string();
    if (it->is_regular_file(error) && std::find(kSuffixes.begin(), kSuffixes.end(), suffix) != kSuffixes.end())
      files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  std::string text;
  for (const fs::path& file : files) {
    if (text.size() >= bytes) break;
    MODELD_TRY(const std::string content, read_file(file, bytes - text.size()));
    if (content.empty() || !is_utf8_text(content)) continue;
    text += fmt::format("{} file: {}\n", comment_sign(file), fs::relative(file, path, error).string());
    text += content;
    if (text.back() != '\n') text += '\n';
  }
  if (text.empty()) return fail(ErrorCode::text_empty, fmt::format("{} holds no text files.", path.string()));
  return text;
}

}  // namespace

Result<std::string> read_corpus(const fs::path& path, std::size_t bytes) {
  std::error_code error;
  if (fs::is_directory(path, error)) return read_directory(path, bytes);
  MODELD_TRY(std::string text, read_file(path, bytes));
  if (text.empty()) return fail(ErrorCode::text_empty, fmt::format("{} is empty.", path.string()));
  if (!is_utf8_text(text)) return fail(ErrorCode::text_binary, fmt::format("{} is not UTF-8 text.", path.string()));
  return text;
}

Result<TokenOffsets> token_offsets(const Engine& engine, std::string_view text) {
  TokenOffsets result;
  MODELD_TRY(result.tokens, engine.tokenize(text, false, false));
  std::size_t at = 0;
  std::string decoded;
  for (const Token token : result.tokens) {
    result.bytes.push_back(at);
    decoded += engine.piece(token);
    at = decoded.size();
  }
  // Tokenizers that put a space before the text, and no other difference, are allowed for.
  const std::size_t extra = decoded.size() - std::min(decoded.size(), text.size());
  if (extra > 1 || decoded.substr(extra) != text) {
    return fail(ErrorCode::internal, "The model's tokenizer does not give a text back as it was.",
                {{"text_bytes", static_cast<std::int64_t>(text.size())},
                 {"decoded_bytes", static_cast<std::int64_t>(decoded.size())}});
  }
  for (std::size_t& byte : result.bytes) byte -= std::min(byte, extra);
  result.bytes.push_back(text.size());
  return result;
}

std::int64_t token_at(const TokenOffsets& offsets, std::size_t byte) {
  const auto after = std::upper_bound(offsets.bytes.begin(), offsets.bytes.end(), byte);
  const auto last = static_cast<std::int64_t>(offsets.tokens.size()) - 1;
  return std::min<std::int64_t>(last, after - offsets.bytes.begin() - 1);
}

Result<std::string> cut_to_tokens(const Engine& engine, std::string_view text, std::int64_t tokens) {
  MODELD_TRY(const TokenOffsets offsets, token_offsets(engine, text));
  if (static_cast<std::int64_t>(offsets.tokens.size()) < tokens) {
    return fail(ErrorCode::bad_argument,
                fmt::format("The text has {} tokens; {} are needed. Name a longer text, or ask for fewer tokens.",
                            offsets.tokens.size(), tokens),
                {{"text_tokens", static_cast<std::int64_t>(offsets.tokens.size())}, {"needed_tokens", tokens}});
  }
  std::string_view cut = text.substr(0, offsets.bytes[static_cast<std::size_t>(tokens)]);
  if (const auto line = cut.rfind('\n'); line != std::string_view::npos) cut = cut.substr(0, line + 1);
  return std::string(cut);
}

}  // namespace modeld
