#include "engine/llama/describe.h"

#include <gtest/gtest.h>
#include <llama.h>

#include <fstream>

#include "engine/llama/devices.h"
#include "engine/llama/on_model/test_model.h"

namespace modeld {
namespace {

using on_model::expect_code;
using on_model::gemma3;
using on_model::smollm2;

struct FreeModel {
  void operator()(llama_model* model) const { llama_model_free(model); }
};

class Scratch {
 public:
  Scratch() : folder_(std::filesystem::temp_directory_path() / ("modeld-describe-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::filesystem::path file(const std::string& name, std::string_view content = {}) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

/// The first `bytes` bytes of a model.
std::filesystem::path cut(const Scratch& scratch, const std::filesystem::path& model, std::uintmax_t bytes) {
  const auto path = scratch.file("cut.gguf");
  std::filesystem::copy_file(model, path, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(path, bytes);
  return path;
}

TEST(Describe, SaysWhatLlamaCppSaysAfterLoading) {
  for (const auto& path : {smollm2(), gemma3()}) {
    const auto described = describe_llama(path);
    ASSERT_TRUE(described) << to_text(described.error());
    const ModelGeometry& g = *described;
    on_model::opened(path);  // takes llama.cpp's log over
    const std::unique_ptr<llama_model, FreeModel> model(
        llama_model_load_from_file(path.c_str(), llama_model_default_params()));
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(static_cast<int>(g.layers.size()), llama_model_n_layer(model.get()));
    EXPECT_EQ(g.layers[0].heads, llama_model_n_head(model.get()));
    EXPECT_EQ(g.layers[0].kv_heads, llama_model_n_head_kv(model.get()));
    EXPECT_EQ(g.embedding, llama_model_n_embd(model.get()));
    EXPECT_EQ(g.trained_window, llama_model_n_ctx_train(model.get()));
    EXPECT_EQ(g.vocabulary, llama_vocab_n_tokens(llama_model_get_vocab(model.get())));
    EXPECT_EQ(g.weight_bytes, llama_model_size(model.get()));
    EXPECT_EQ(g.has_chat_template, llama_model_chat_template(model.get(), nullptr) != nullptr);
    EXPECT_EQ(g, on_model::opened(path).geometry());
    EXPECT_TRUE(g.unsupported.empty());
  }
}

TEST(Describe, TheSmallTestModelHasTheGeometryItsCardNames) {
  const auto g = describe_llama(smollm2()).value();
  EXPECT_EQ(g.architecture, "llama");
  EXPECT_EQ(g.layers.size(), 30U);
  EXPECT_EQ(g.trained_window, 8192);
  EXPECT_TRUE(g.has_chat_template);
  for (const LayerGeometry& layer : g.layers) {
    EXPECT_EQ(layer.heads, 9);
    EXPECT_EQ(layer.kv_heads, 3);
    EXPECT_EQ(layer.key_dim, 64);
    EXPECT_EQ(layer.window, 0);
    EXPECT_EQ(layer.rope.style, RopeStyle::norm);
    EXPECT_EQ(layer.rope.dims, 64);
    EXPECT_EQ(layer.rope.freq_base, 1e5);
  }
  EXPECT_EQ(g.kv_bytes_per_token(KvType::f16), 23040);
}

TEST(Describe, WindowedLayersHaveTheirWindowAndTheirOwnRotation) {
  const auto g = describe_llama(gemma3()).value();
  ASSERT_EQ(g.layers.size(), 18U);
  EXPECT_FALSE(g.has_chat_template);
  for (std::size_t i = 0; i < g.layers.size(); ++i) {
    const bool global = i % 6 == 5;
    EXPECT_EQ(g.layers[i].window, global ? 0 : 512) << i;
    EXPECT_EQ(g.layers[i].rope.freq_base, global ? 1e6 : 1e4) << i;
    EXPECT_EQ(g.layers[i].key_dim, 256);
    EXPECT_EQ(g.layers[i].kv_heads, 1);
  }
}

TEST(Describe, AMissingFileAndADirectoryAreFileMissing) {
  const Scratch scratch;
  EXPECT_EQ(describe_llama(scratch.folder() / "absent.gguf").error().code, ErrorCode::file_missing);
  EXPECT_EQ(describe_llama(scratch.folder()).error().code, ErrorCode::file_missing);
}

TEST(Describe, WhatIsNotGgufIsRefused) {
  const Scratch scratch;
  EXPECT_EQ(describe_llama(scratch.file("text.gguf", "Once upon a time")).error().code, ErrorCode::model_not_gguf);
  EXPECT_EQ(describe_llama(scratch.file("empty.gguf")).error().code, ErrorCode::model_not_gguf);
  EXPECT_EQ(describe_llama(scratch.file("short.gguf", "GGU")).error().code, ErrorCode::model_not_gguf);
}

TEST(Describe, AFileCutShortAnywhereIsRefusedBeforeAnythingMapsIt) {
  const Scratch scratch;
  const auto whole = std::filesystem::file_size(smollm2());
  for (const std::uintmax_t bytes :
       {whole - 1, whole / 2, std::uintmax_t{1} << 16U, std::uintmax_t{30}, std::uintmax_t{4}}) {
    const auto path = cut(scratch, smollm2(), bytes);
    const auto described = describe_llama(path);
    ASSERT_FALSE(described) << bytes;
    EXPECT_EQ(described.error().code, ErrorCode::model_truncated) << bytes;
    const auto opened = open_llama(path);
    ASSERT_FALSE(opened) << bytes;
    EXPECT_EQ(opened.error().code, ErrorCode::model_truncated) << bytes;
  }
}

TEST(Devices, TheHostComesFirstAndHasMemory) {
  const auto devices = llama_devices();
  ASSERT_TRUE(devices) << to_text(devices.error());
  ASSERT_FALSE(devices->empty());
  EXPECT_FALSE(devices->front().accelerator);
  EXPECT_GT(devices->front().total_bytes, devices->front().free_bytes);
  EXPECT_GT(devices->front().free_bytes, 0);
}

}  // namespace
}  // namespace modeld
