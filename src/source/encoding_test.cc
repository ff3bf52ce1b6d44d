#include "source/encoding.h"

#include <gtest/gtest.h>
#include <iconv.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace modeld {
namespace {

using namespace std::string_literals;

std::string encode(std::string_view utf8, const char* charset) {
  const iconv_t cd = iconv_open(charset, "UTF-8");
  std::string out(utf8.size() * 5 + 16, '\0');
  char* in = const_cast<char*>(utf8.data());
  std::size_t in_left = utf8.size();
  char* to = out.data();
  std::size_t room = out.size();
  EXPECT_EQ(iconv(cd, &in, &in_left, &to, &room), 0U) << charset << " cannot write the sample";
  EXPECT_EQ(iconv(cd, nullptr, nullptr, &to, &room), 0U);
  iconv_close(cd);
  out.resize(out.size() - room);
  return out;
}

void expect_error(const Result<DecodedText>& r, ErrorCode code, std::optional<std::int64_t> offset = std::nullopt) {
  ASSERT_FALSE(r) << "taken for " << r->encoding << ": " << r->text;
  EXPECT_EQ(r.error().code, code) << r.error().message;
  if (!offset) return;
  ASSERT_EQ(r.error().numbers.size(), 1U);
  EXPECT_EQ(r.error().numbers[0], (ErrorNumber{"byte_offset", *offset}));
}

constexpr const char* kGerman =
    "Die Gäste saßen früh am Morgen auf der großen Straße und hörten die Vögel. Später fuhren sie über die Brücke, "
    "wo Käse, Öl und süße Äpfel verkauft wurden. Niemand wußte, daß es abends regnen würde.\n";
constexpr const char* kFrench =
    "L'été dernier, nous avons dîné près de la forêt où l'élève avait oublié son cahier. Ça n'a gêné personne : la "
    "fenêtre était fermée, et le garçon préférait déjà la soirée à la matinée.\n";
constexpr const char* kEuro =
    "Le café coûte 3 €, le dîner 25 €, et la nuit à l’hôtel 90 €. Après l’été, l’œuvre « complète » sera vendue moins "
    "cher – c’est déjà décidé, même à Besançon. L’élève préfère le théâtre, où l’on paie 12 €.\n";
constexpr const char* kPolish =
    "Wczoraj wieczorem zażółciła się gęś, a źdźbła trawy błyszczały w świetle księżyca. Chłopiec poszedł szybko przez "
    "łąkę, żeby znaleźć swoją książkę, którą zgubił w środę.\n";
constexpr const char* kRussian =
    "Вчера вечером мы долго гуляли по набережной и говорили о новой книге. Потом пошёл дождь, и все вернулись домой, "
    "где их ждал горячий чай с вареньем и старый кот у окна.\n";
constexpr const char* kGreek =
    "Χθες το βράδυ περπατήσαμε στην παραλία και μιλήσαμε για το καινούργιο βιβλίο. Μετά άρχισε να βρέχει και όλοι "
    "γύρισαν στο σπίτι, όπου τους περίμενε ζεστό τσάι.\n";
constexpr const char* kTurkish =
    "Dün akşam uzun süre deniz kıyısında yürüdük ve yeni kitap hakkında konuştuk. Sonra yağmur başladı, herkes eve "
    "döndü; güzel bir çay içtik ve kış için ağaç kestiğimizi anlattık. Işıklar söndü, gece oldu, şehir uyudu.\n";
constexpr const char* kHebrew =
    "אתמול בערב הלכנו זמן רב לאורך החוף ודיברנו על הספר החדש. אחר כך התחיל לרדת גשם וכולם חזרו הביתה, שם חיכה להם תה "
    "חם.\n";
constexpr const char* kArabic =
    "مشينا مساء أمس طويلا على الشاطئ وتحدثنا عن الكتاب الجديد. ثم بدأ المطر وعاد الجميع إلى البيت حيث كان الشاي الساخن "
    "في انتظارهم.\n";
constexpr const char* kThai = "เมื่อวานตอนเย็นเราเดินเล่นริมทะเลและพูดคุยเกี่ยวกับหนังสือเล่มใหม่ แล้วฝนก็ตก ทุกคนจึงกลับบ้านไปดื่มชาร้อน\n";
constexpr const char* kJapanese =
    "昨日の夜、私たちは海岸を長い間歩いて、新しい本について話しました。それから雨が降り始めたので、みんな家に帰って、"
    "熱いお茶を飲みました。窓のそばには古い猫がいました。\n";
constexpr const char* kChinese =
    "昨天晚上我们在海边走了很久，谈论那本新书。后来下起了雨，大家都回家了，家里有热茶在等着他们，窗边还有一只老猫。\n";
constexpr const char* kTaiwan =
    "昨天晚上我們在海邊走了很久，談論那本新書。後來下起了雨，大家都回家了，家裡有熱茶在等著他們，窗邊還有一隻老貓。\n";
constexpr const char* kKorean =
    "어제 저녁에 우리는 바닷가를 오랫동안 걸으면서 새로 나온 책에 대해 이야기했습니다. 그러다가 비가 내리기 시작해서 "
    "모두 집으로 "
    "돌아가 따뜻한 차를 마셨습니다.\n";

struct Sample {
  const char* charset;
  const char* text;
};

class Legacy : public ::testing::TestWithParam<Sample> {};

TEST_P(Legacy, BecomesTheUtf8ThatItWasWrittenFrom) {
  const auto& [charset, text] = GetParam();
  const auto decoded = decode_text(encode(text, charset), "sample");
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->text, text) << "taken for " << decoded->encoding;
}

TEST_P(Legacy, IsFoundBehindALongAsciiPart) {
  const auto& [charset, text] = GetParam();
  std::string ascii;
  for (int i = 0; i < 30'000; ++i) ascii += "for (int i = 0; i < n; ++i) sum += values[i];  // plain words here\n";
  const auto decoded = decode_text(ascii + encode(text, charset), "sample");
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_TRUE(decoded->text.ends_with(text)) << "taken for " << decoded->encoding;
}

INSTANTIATE_TEST_SUITE_P(
    Encoding, Legacy,
    ::testing::Values(Sample{"ISO-8859-1", kGerman}, Sample{"WINDOWS-1252", kGerman}, Sample{"ISO-8859-1", kFrench},
                      Sample{"WINDOWS-1252", kEuro}, Sample{"ISO-8859-2", kPolish}, Sample{"WINDOWS-1250", kPolish},
                      Sample{"WINDOWS-1251", kRussian}, Sample{"KOI8-R", kRussian}, Sample{"IBM866", kRussian},
                      Sample{"ISO-8859-5", kRussian}, Sample{"ISO-8859-7", kGreek}, Sample{"WINDOWS-1253", kGreek},
                      Sample{"ISO-8859-9", kTurkish}, Sample{"WINDOWS-1255", kHebrew}, Sample{"WINDOWS-1256", kArabic},
                      Sample{"TIS-620", kThai}, Sample{"SHIFT_JIS", kJapanese}, Sample{"EUC-JP", kJapanese},
                      Sample{"ISO-2022-JP", kJapanese}, Sample{"GB18030", kChinese}, Sample{"BIG5", kTaiwan},
                      Sample{"EUC-KR", kKorean}, Sample{"ISO-2022-KR", kKorean}),
    [](const auto& param) {
      std::string name = std::string(param.param.charset) + "_" + std::to_string(param.index);
      std::ranges::replace(name, '-', '_');
      return name;
    });

TEST(Encoding, WideTextIsReadWithAndWithoutItsMark) {
  const struct {
    const char* charset;
    std::string mark;
  } wides[] = {
      {"UTF-16LE", "\xFF\xFE"}, {"UTF-16BE", "\xFE\xFF"}, {"UTF-32LE", "\xFF\xFE\0\0"s}, {"UTF-32BE", "\0\0\xFE\xFF"s}};
  for (const auto& wide : wides) {
    for (const std::string& text : {std::string(kGerman), std::string(kRussian), std::string(kJapanese),
                                    std::string(kChinese), std::string(kKorean), "a 😀 b\n"s, "x"s}) {
      for (const std::string& mark : {wide.mark, ""s}) {
        SCOPED_TRACE(::testing::Message()
                     << wide.charset << (mark.empty() ? " without" : " with") << " mark: " << text);
        const auto decoded = decode_text(mark + encode(text, wide.charset), "sample");
        ASSERT_TRUE(decoded) << decoded.error().message;
        EXPECT_EQ(decoded->text, text);
        EXPECT_EQ(decoded->encoding, wide.charset);
      }
    }
  }
}

TEST(Encoding, BrokenWideTextIsRefusedAtItsByte) {
  expect_error(decode_text("\xFF\xFE"
                           "a\0\0\xD8"
                           "b\0"s,
                           "f"),
               ErrorCode::text_encoding, 4);
  expect_error(decode_text("\xFF\xFE"
                           "a\0b"s,
                           "f"),
               ErrorCode::text_encoding, 4);
  expect_error(decode_text("\xFF\xFE\0\0"
                           "a\0\0\0\0\0\x11\0"s,
                           "f"),
               ErrorCode::text_encoding, 8);
  expect_error(decode_text("h\0i\0!"s, "f"), ErrorCode::text_encoding, 4);
}

TEST(Encoding, TheMarkOfUtf8IsDropped) {
  const auto decoded = decode_text("\xEF\xBB\xBFGrüße", "f");
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->text, "Grüße");
  EXPECT_EQ(decoded->encoding, "UTF-8");
}

TEST(Encoding, BrokenUtf8IsRefusedAtItsByteAndNotTakenForSomethingElse) {
  const std::string good(kRussian);
  for (const std::size_t at : {std::size_t{0}, good.size() / 2, good.size() - 2}) {
    std::size_t i = at;
    while ((static_cast<unsigned char>(good[i]) & 0xC0U) != 0xC0U && i > 0) --i;
    std::string bad = good;
    bad.erase(i + 1, 1);
    SCOPED_TRACE(i);
    expect_error(decode_text(bad, "f"), ErrorCode::text_encoding, static_cast<std::int64_t>(i));
  }
  expect_error(decode_text(good.substr(0, 32), "f"), ErrorCode::text_encoding, 31);
  expect_error(decode_text("\xEF\xBB\xBFok \xFF", "f"), ErrorCode::text_encoding, 6);
  // Overlong, surrogate, beyond Unicode: in a text that is UTF-8 otherwise.
  for (const char* wrong : {"\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8"}) {
    expect_error(decode_text("Привет, мир! " + std::string(wrong), "f"), ErrorCode::text_encoding, 22);
  }
}

TEST(Encoding, BinaryIsRefused) {
  expect_error(decode_text("\x7F"
                           "ELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0"s,
                           "f"),
               ErrorCode::text_binary);
  expect_error(decode_text("text with one \0 inside"s, "f"), ErrorCode::text_binary);
  expect_error(decode_text(encode(kGerman, "WINDOWS-1252") + '\0' + encode(kFrench, "WINDOWS-1252"), "f"),
               ErrorCode::text_binary);
  expect_error(decode_text(std::string(kRussian) + "\0\n"s + kRussian, "f"), ErrorCode::text_binary);
  expect_error(decode_text(std::string(kJapanese) + "\0"s, "f"), ErrorCode::text_binary);
  expect_error(decode_text(std::string(4096, '\0'), "f"), ErrorCode::text_binary);
  expect_error(decode_text("%PDF-1.7 plain", "f"), ErrorCode::text_binary);
  std::string noise;
  std::uint32_t state = 1;
  for (int i = 0; i < 5'000; ++i) {
    state = state * 1664525U + 1013904223U;
    noise += static_cast<char>(1 + (state >> 24U) % 255);
  }
  expect_error(decode_text(noise, "f"), ErrorCode::text_binary);
  EXPECT_TRUE(looks_binary(noise));
  EXPECT_TRUE(looks_binary("\x89PNG\r\n\x1A\n\0\0\0\rIHDR"s));
  EXPECT_FALSE(looks_binary(encode(kJapanese, "UTF-16LE")));
  EXPECT_FALSE(looks_binary(encode(kRussian, "KOI8-R")));
  EXPECT_FALSE(looks_binary(std::string(kRussian).substr(0, 32)));
  EXPECT_FALSE(looks_binary(""));
}

TEST(Encoding, NothingVisibleIsNoText) {
  for (const std::string& s : {""s, " "s, "\r\n\t \f\n"s, "\xEF\xBB\xBF"s, "\xC2\xA0\xE3\x80\x80\xE2\x80\x83\n"s,
                               "\xFF\xFE"s, "\xFF\xFE \0\n\0"s}) {
    expect_error(decode_text(s, "f"), ErrorCode::text_empty);
  }
}

TEST(Encoding, OnlyLineEndsOfTwoBytesChange) {
  EXPECT_EQ(decode_text("a\r\nb\r\n\r\nc\rd\n\re\r", "f")->text, "a\nb\n\nc\rd\n\re\r");
}

TEST(Encoding, TerminalLogsAreText) {
  const std::string log = "\x1B[31mred\x1B[0m \x1B(B ok\b\b\n";
  EXPECT_EQ(decode_text(log, "f")->text, log);
}

std::string utf8_of(const std::vector<std::uint32_t>& points) {
  std::string s;
  for (const std::uint32_t c : points) {
    if (c < 0x80) {
      s += static_cast<char>(c);
    } else if (c < 0x800) {
      s += static_cast<char>(0xC0U | c >> 6U);
      s += static_cast<char>(0x80U | (c & 0x3FU));
    } else if (c < 0x10000) {
      s += static_cast<char>(0xE0U | c >> 12U);
      s += static_cast<char>(0x80U | (c >> 6U & 0x3FU));
      s += static_cast<char>(0x80U | (c & 0x3FU));
    } else {
      s += static_cast<char>(0xF0U | c >> 18U);
      s += static_cast<char>(0x80U | (c >> 12U & 0x3FU));
      s += static_cast<char>(0x80U | (c >> 6U & 0x3FU));
      s += static_cast<char>(0x80U | (c & 0x3FU));
    }
  }
  return s;
}

rc::Gen<std::uint32_t> any_character() {
  return rc::gen::suchThat(
      rc::gen::weightedOneOf<std::uint32_t>({{4, rc::gen::inRange<std::uint32_t>(1, 0x80)},
                                             {2, rc::gen::inRange<std::uint32_t>(0x80, 0x800)},
                                             {2, rc::gen::inRange<std::uint32_t>(0x800, 0x10000)},
                                             {1, rc::gen::inRange<std::uint32_t>(0x10000, 0x110000)}}),
      [](std::uint32_t c) { return !(c >= 0xD800 && c < 0xE000) && c != '\r' && c != 0xFEFF; });
}

RC_GTEST_PROP(EncodingProperty, Utf8ComesOutAsItWentIn, ()) {
  const std::string text = "." + utf8_of(*rc::gen::container<std::vector<std::uint32_t>>(any_character()));
  RC_ASSERT(!first_invalid_utf8(text));
  const auto decoded = decode_text(text, "f");
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(decoded->text == text);
  const auto marked = decode_text("\xEF\xBB\xBF" + text, "f");
  RC_ASSERT(marked.has_value());
  RC_ASSERT(marked->text == text);
}

RC_GTEST_PROP(EncodingProperty, AnyBytesGiveValidUtf8OrAnErrorWithAnOffsetInside,
              (const std::vector<std::uint8_t>& bytes)) {
  const std::string raw(bytes.begin(), bytes.end());
  const auto decoded = decode_text(raw, "f");
  if (decoded) {
    RC_ASSERT(!first_invalid_utf8(decoded->text));
    RC_ASSERT(decoded->text.find('\0') == std::string::npos);
  } else if (decoded.error().code == ErrorCode::text_encoding) {
    const auto offset = decoded.error().numbers.at(0).second;
    RC_ASSERT(offset >= 0 && static_cast<std::size_t>(offset) < raw.size());
  }
}

}  // namespace
}  // namespace modeld
