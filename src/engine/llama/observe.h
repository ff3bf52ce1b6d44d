// Records queries and keys of chosen heads while llama.cpp computes.
//
// How:       llama.cpp shows each node of its graph before and after computing it. The rotated vectors are the ROPE
// node
//            named "Qcur-N" or "Kcur-N". The un-rotated ones are that node's source, which carries biases and norms;
//            ggml lets the rotation overwrite it, so every earlier node of that name is copied as it is computed, and
//            the copy counts when the ROPE node turns out to read the very tensor that was copied.
// Thread:    the computing thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"

struct ggml_tensor;

namespace modeld {

class Observer {
 public:
  /// Errors: engine_misuse for heads that the model does not have; unsupported_operation for layers without rotation.
  Status set(const ObserveSpec& spec, const ModelGeometry& geometry);
  [[nodiscard]] bool active() const { return !targets_.empty(); }
  [[nodiscard]] const Observation& observation() const { return observation_; }

  /// A compute() call of `tokens` tokens begins; its pieces follow in order.
  void begin(std::int32_t tokens);
  void begin_piece(std::int32_t tokens);
  /// Errors: unsupported_operation if a head was not seen: the model's graph names its nodes otherwise.
  Status end_piece();
  void clear();

  /// Before a node is computed: whether its data must be shown.
  bool wants(const ggml_tensor* node);
  /// After it was computed.
  void take(const ggml_tensor* node);

 private:
  struct Row {
    std::int32_t head = 0;
    std::vector<float>* out = nullptr;
  };
  /// All heads wanted of one layer's queries, or of its keys.
  struct Target {
    std::int32_t heads = 0;
    std::int32_t dim = 0;
    std::vector<Row> rows;
    /// The node whose data is staged, and the data: rows.size() × piece tokens × dim.
    const ggml_tensor* staged_node = nullptr;
    std::vector<float> staged;
    bool done = false;
  };
  struct Key {
    std::int32_t layer = 0;
    bool query = false;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  Target* target_of(const ggml_tensor* node);
  bool stage(Target& target, const ggml_tensor* node);
  void commit(Target& target);

  ObserveSpec spec_;
  std::map<Key, Target> targets_;
  Observation observation_;
  std::int32_t piece_tokens_ = 0;
  std::vector<std::byte> fetched_;
};

}  // namespace modeld
