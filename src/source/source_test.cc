#include "source/source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace modeld {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

constexpr SourceLimits kLimits{.max_bytes = 1'000'000};

class Source : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "modeld_source_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::permissions(root_, fs::perms(0755));
  }
  void TearDown() override {
    std::error_code ec;
    fs::remove_all(root_, ec);
  }

  fs::path write(const std::string& name, std::string_view content) {
    const fs::path path = root_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static Result<Sources> read(std::vector<fs::path> paths, const SourceLimits& limits = kLimits,
                              const CancelFlag* cancel = nullptr) {
    return read_sources(paths, limits, cancel);
  }
  /// Names of the texts, below the test's folder.
  std::vector<std::string> names(const Sources& sources) const {
    std::vector<std::string> out;
    for (const SourceText& text : sources.texts) out.push_back(fs::path(text.name).lexically_relative(root_).string());
    return out;
  }

  fs::path root_;
};

void expect_error(const Result<Sources>& r, ErrorCode code, std::vector<ErrorNumber> numbers = {}) {
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, code) << r.error().message;
  if (!numbers.empty()) {
    EXPECT_EQ(r.error().numbers, numbers);
  }
  EXPECT_TRUE(r.error().message.ends_with('.')) << r.error().message;
}

/// Standard input comes from `fd` while it lives.
class StandardInput {
 public:
  explicit StandardInput(int fd) : saved_(dup(STDIN_FILENO)) {
    dup2(fd, STDIN_FILENO);
    close(fd);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;
  ~StandardInput() {
    dup2(saved_, STDIN_FILENO);
    close(saved_);
  }

 private:
  int saved_;
};

/// The permissions of a user who is not root, while it lives.
class Unprivileged {
 public:
  Unprivileged() { active_ = geteuid() == 0 && seteuid(65534) == 0; }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  ~Unprivileged() {
    if (active_) {
      EXPECT_EQ(seteuid(0), 0);
    }
  }

 private:
  bool active_ = false;
};

TEST_F(Source, ReadsNamedFilesInTheirOrder) {
  const auto b = write("b.txt", "first\nsecond\r\nthird");
  const auto a = write("a.txt",
                       "\xEF\xBB\xBF"
                       "A\n");
  const auto r = read({b, a, b});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(names(*r), (std::vector<std::string>{"b.txt", "a.txt", "b.txt"}));
  EXPECT_EQ(r->texts[0].name, b.string());
  EXPECT_EQ(r->texts[0].text, "first\nsecond\nthird");
  EXPECT_EQ(r->texts[0].lines.line_of(6), 2);
  EXPECT_EQ(r->texts[0].lines.lines(), 3);
  EXPECT_EQ(r->texts[1].text, "A\n");
  EXPECT_EQ(r->bytes(), 18U + 2U + 18U);
}

TEST_F(Source, ConvertsOtherEncodings) {
  const auto r = read({write("le.txt", "\xFF\xFEh\0i\0\n\0"s), write("de.txt",
                                                                     "Die G\xE4ste sa\xDF"
                                                                     "en fr\xFCh auf der gro\xDF"
                                                                     "en Stra\xDF"
                                                                     "e und h\xF6rten V\xF6gel.\n")});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->texts[0].text, "hi\n");
  EXPECT_EQ(r->texts[0].encoding, "UTF-16LE");
  EXPECT_EQ(r->texts[1].text, "Die Gäste saßen früh auf der großen Straße und hörten Vögel.\n");
}

TEST_F(Source, RefusesNamedFilesThatAreNoText) {
  expect_error(read({write("e", "")}), ErrorCode::text_empty);
  expect_error(read({write("w", " \n\t\n")}), ErrorCode::text_empty);
  expect_error(read({write("b", "some text\0and more\n"s)}), ErrorCode::text_binary);
  expect_error(read({write("u", "Привет \xFF мир")}), ErrorCode::text_encoding, {{"byte_offset", 13}});
  expect_error(read({write("good", "text"), root_ / "u"}), ErrorCode::text_encoding);
}

TEST_F(Source, RefusesWhatIsNotThere) {
  expect_error(read({root_ / "nowhere"}), ErrorCode::file_missing);
  expect_error(read({write("good", "text"), root_ / "good" / "below"}), ErrorCode::file_missing);
  expect_error(read({""}), ErrorCode::file_missing);
  expect_error(read({}), ErrorCode::bad_argument);
  expect_error(read({"-", "-"}), ErrorCode::bad_argument);
}

TEST_F(Source, RefusesDevicesAndSocketsWithoutReadingThem) {
  for (const char* device : {"/dev/zero", "/dev/full", "/dev/null"})
    expect_error(read({device}), ErrorCode::bad_argument);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const fs::path path = root_ / "socket";
  std::ranges::copy(path.string(), address.sun_path);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  expect_error(read({path}), ErrorCode::bad_argument);
  close(fd);
}

TEST_F(Source, SaysWhatMayNotBeRead) {
  const auto file = write("secret.txt", "text");
  const auto inner = write("tree/locked/a.txt", "text").parent_path();
  write("tree/open.txt", "text");
  write("tree/secret.txt", "text");
  fs::permissions(file, fs::perms::none);
  fs::permissions(root_ / "tree/secret.txt", fs::perms::none);
  fs::permissions(inner, fs::perms::none);
  {
    const Unprivileged user;
    ASSERT_NE(geteuid(), 0U) << "cannot become another user";
    expect_error(read({file}), ErrorCode::file_missing);
    expect_error(read({inner}), ErrorCode::file_missing);
    const auto r = read({root_ / "tree"});
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(names(*r), (std::vector<std::string>{"tree/open.txt"}));
    ASSERT_EQ(r->skipped.size(), 2U);
    EXPECT_EQ(r->skipped[0].name, inner.string());
    EXPECT_EQ(r->skipped[0].reason, ErrorCode::file_missing);
    EXPECT_EQ(r->skipped[1].reason, ErrorCode::file_missing);
  }
  fs::permissions(inner, fs::perms::owner_all);
}

TEST_F(Source, SaysWhenReadingFails) {
  // Reading one's own memory at address 0 is an input/output error on every Linux.
  expect_error(read({"/proc/self/mem"}), ErrorCode::io_failed);
}

TEST_F(Source, ReadsFilesThatDoNotKnowTheirSize) {
  const auto r = read({"/proc/self/status"});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_NE(r->texts[0].text.find("source_test"), std::string::npos);
}

TEST_F(Source, ReadsADirectoryByNameAndSaysWhatItSkipped) {
  write("tree/b.txt", "b");
  write("tree/a/z.txt", "z");
  write("tree/a.txt", "a");
  write("tree/B.txt", "B");
  write("tree/a/image.png", "\x89PNG\r\n\x1A\n\0\0"s);
  write("tree/empty.txt", "");
  write("tree/broken.txt", "Привет \xFF мир");
  write("tree/.hidden", "no");
  write("tree/.git/config", "no");
  write("tree/CVS/Root", "no");
  ASSERT_EQ(mkfifo((root_ / "tree/pipe").c_str(), 0600), 0);
  const auto r = read({root_ / "tree"});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(names(*r), (std::vector<std::string>{"tree/B.txt", "tree/a/z.txt", "tree/a.txt", "tree/b.txt"}));
  std::vector<std::pair<std::string, ErrorCode>> skipped;
  for (const auto& s : r->skipped) skipped.emplace_back(fs::path(s.name).lexically_relative(root_ / "tree"), s.reason);
  EXPECT_EQ(skipped, (std::vector<std::pair<std::string, ErrorCode>>{{"a/image.png", ErrorCode::text_binary},
                                                                     {"broken.txt", ErrorCode::text_encoding},
                                                                     {"empty.txt", ErrorCode::text_empty},
                                                                     {"pipe", ErrorCode::bad_argument}}));
}

TEST_F(Source, LinksDoNotLoopAndEachFileIsReadOnce) {
  write("tree/a/file.txt", "text");
  write("outside.txt", "outside");
  fs::create_directory_symlink("..", root_ / "tree/a/up");
  fs::create_directory_symlink(root_ / "tree", root_ / "tree/self");
  fs::create_symlink("loop", root_ / "tree/loop");
  fs::create_symlink("gone", root_ / "tree/dangling");
  fs::create_symlink("a/file.txt", root_ / "tree/z.txt");
  fs::create_symlink("../outside.txt", root_ / "tree/linked.txt");
  const auto r = read({root_ / "tree"});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(names(*r), (std::vector<std::string>{"tree/a/file.txt", "tree/linked.txt"}));
  ASSERT_EQ(r->skipped.size(), 2U);
  EXPECT_EQ(r->skipped[0].reason, ErrorCode::file_missing);
  fs::create_directory_symlink("tree", root_ / "named");
  EXPECT_EQ(read({root_ / "named"})->texts.size(), 2U);
}

TEST_F(Source, ADirectoryWithoutTextIsAnError) {
  fs::create_directories(root_ / "none/below");
  expect_error(read({root_ / "none"}), ErrorCode::text_empty, {{"skipped_files", 0}});
  write("images/a.png", "\0\0"s);
  write("images/b.txt", "\n");
  expect_error(read({write("good", "text"), root_ / "images"}), ErrorCode::text_empty, {{"skipped_files", 2}});
}

TEST_F(Source, RefusesAGigabyteAtOnceWithoutReadingIt) {
  const auto file = write("big.txt", "");
  fs::resize_file(file, std::uintmax_t{1} << 30U);
  const auto start = std::chrono::steady_clock::now();
  expect_error(read({file}), ErrorCode::text_too_large,
               {{"bytes", std::int64_t{1} << 30U}, {"limit_bytes", 1'000'000}});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
}

TEST_F(Source, CountsAllTextsTogetherButNoBinaries) {
  const auto a = write("tree/a.txt", std::string(600, 'a'));
  const auto b = write("tree/b.txt", std::string(600, 'b'));
  const SourceLimits limits{.max_bytes = 1'000};
  expect_error(read({a, b}, limits), ErrorCode::text_too_large, {{"bytes", 1'200}, {"limit_bytes", 1'000}});
  expect_error(read({root_ / "tree"}, limits), ErrorCode::text_too_large, {{"bytes", 1'200}, {"limit_bytes", 1'000}});
  fs::remove(b);
  write("tree/film.bin", "");
  fs::resize_file(root_ / "tree/film.bin", std::uintmax_t{1} << 40U);
  const auto r = read({root_ / "tree"}, limits);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->texts.size(), 1U);
  ASSERT_EQ(r->skipped.size(), 1U);
  EXPECT_EQ(r->skipped[0].reason, ErrorCode::text_binary);
  EXPECT_TRUE(read({a}, {.max_bytes = 600}));
  EXPECT_FALSE(read({a}, {.max_bytes = 599}));
}

TEST_F(Source, CountsTextAfterItsConversionToo) {
  std::string greek;
  for (int i = 0; i < 100; ++i)
    greek += "\xCA\xE1\xEB\xE7\xEC\xDD\xF1\xE1 \xEA\xFC\xF3\xEC\xE5, \xF4\xE9 \xEA\xDC\xED\xE5\xE9\xF2;\n";
  const auto file = write("greek.txt", greek);
  expect_error(read({file}, {.max_bytes = greek.size() + 10}), ErrorCode::text_too_large);
  EXPECT_TRUE(read({file}, {.max_bytes = greek.size() * 2}));
}

TEST_F(Source, BoundsFilesAndDepth) {
  for (int i = 0; i < 5; ++i) write("tree/" + std::to_string(i), "x");
  EXPECT_TRUE(read({root_ / "tree"}, {.max_bytes = 100, .max_files = 5}));
  expect_error(read({root_ / "tree"}, {.max_bytes = 100, .max_files = 4}), ErrorCode::text_too_large,
               {{"files", 5}, {"limit_files", 4}});
  write("deep/1/2/3/x", "x");
  EXPECT_TRUE(read({root_ / "deep"}, {.max_bytes = 100, .max_depth = 3}));
  expect_error(read({root_ / "deep"}, {.max_bytes = 100, .max_depth = 2}), ErrorCode::bad_argument);
}

TEST_F(Source, ReadsStandardInputFromAPipeAndFromAFile) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&] {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(::write(ends[1], "piped\n", 6), 6);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    close(ends[1]);
  });
  {
    const StandardInput from(ends[0]);
    const auto r = read({"-"});
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(r->texts[0].name, "standard input");
    EXPECT_EQ(r->texts[0].text, "piped\npiped\npiped\n");
  }
  writer.join();
  const int fd = open(write("file", "skip, then this").c_str(), O_RDONLY);
  lseek(fd, 6, SEEK_SET);
  const StandardInput from(fd);
  EXPECT_EQ(read({"-"})->texts[0].text, "then this");
}

TEST_F(Source, BoundsStandardInput) {
  const StandardInput from(open("/dev/zero", O_RDONLY));
  const auto r = read({"-"});
  expect_error(r, ErrorCode::text_too_large);
  EXPECT_EQ(r.error().numbers[0].second, 1'000'001);
}

TEST_F(Source, ANamedPipeWaitsForItsWriter) {
  const fs::path path = root_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::ofstream(path) << "from a pipe";
  });
  const auto r = read({path});
  writer.join();
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->texts[0].text, "from a pipe");
}

TEST_F(Source, CancelEndsTheWaitForAPipe) {
  const fs::path path = root_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  CancelFlag cancel;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancel.request();
  });
  const auto start = std::chrono::steady_clock::now();
  expect_error(read({path}, kLimits, &cancel), ErrorCode::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  canceller.join();
}

TEST_F(Source, NamesAreValidUtf8) {
  const auto r = read({write("odd\xFF.txt", "x")});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(fs::path(r->texts[0].name).filename(), "odd\xEF\xBF\xBD.txt");
}

}  // namespace
}  // namespace modeld
