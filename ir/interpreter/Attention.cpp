/// \file
/// Fused attention, over one sequence and over the cache.
#include "ir/interpreter/Frame.h"
#include "ir/lathe/CacheElement.h"
#include "runtime/support/Fp16.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace lathe;
using namespace lathe::ir;

namespace {

/// What both attentions say about scores.
struct Scores {
  double scale, softcap;

  double operator()(const float *q, const float *k, int64_t d) const {
    double sum = 0;
    for (int64_t i = 0; i < d; ++i)
      sum += static_cast<double>(q[i]) * k[i];
    sum *= scale;
    return softcap > 0 ? softcap * std::tanh(sum / softcap) : sum;
  }
};

/// softmax(scores) · values of one query head over visible keys.
void attend(const Scores &scores, const float *query,
            ArrayRef<const float *> keys, ArrayRef<const float *> values,
            int64_t d, float *out) {
  std::vector<double> weight;
  for (const float *key : keys)
    weight.push_back(scores(query, key, d));
  double largest = *std::max_element(weight.begin(), weight.end());
  double sum = 0;
  for (double &w : weight)
    sum += w = std::exp(w - largest);
  for (int64_t i = 0; i < d; ++i) {
    double value = 0;
    for (size_t j = 0; j < values.size(); ++j)
      value += weight[j] * values[j][i];
    out[i] = static_cast<float>(value / sum);
  }
}

bool visible(int64_t row, int64_t key, int64_t window) {
  return key <= row && (window == 0 || row - key < window);
}

/// numerics.md, "Rotary embedding and KV append": int8 with one scale.
void roundToInt8(MutableArrayRef<float> head) {
  float amax = 0;
  bool finite = true;
  for (float value : head) {
    finite &= std::isfinite(value);
    amax = std::max(amax, std::abs(value));
  }
  float d = amax / 127.0f, s = 127.0f / amax;
  for (float &value : head)
    if (!finite)
      value = std::numeric_limits<float>::quiet_NaN();
    else
      value = amax < 0x1p-100f ? 0.0f : d * std::nearbyint(value * s);
}

/// numerics.md's butterfly; returns how many values are turned together.
size_t butterfly(MutableArrayRef<float> head) {
  size_t run = head.size() & (~head.size() + 1);
  for (size_t h = 1; h < run; h *= 2)
    for (size_t i = 0; i < head.size(); ++i)
      if ((i & h) == 0) {
        float a = head[i], b = head[i + h];
        head[i] = a + b;
        head[i + h] = a - b;
      }
  return run;
}

/// A head's values as the cache keeps them; of int8 d·q, turned back.
void roundHead(KvType type, bool isKey, MutableArrayRef<float> head) {
  switch (type) {
  case KvType::F16:
    for (float &value : head)
      value = runtime::f16ToF32(runtime::f32ToF16(value));
    return;
  case KvType::BF16:
    for (float &value : head)
      value = runtime::bf16ToF32(runtime::f32ToBf16(value));
    return;
  case KvType::F32:
    return;
  case KvType::Int8: {
    if (!isKey)
      return roundToInt8(head);
    auto run = static_cast<float>(butterfly(head));
    roundToInt8(head);
    butterfly(head);
    for (float &value : head)
      value /= run;
    return;
  }
  }
}

} // namespace

LogicalResult lathe::ir::evaluate(AttentionOp op, Frame &frame) {
  const Tensor &q = frame[op.getQuery()], &k = frame[op.getKey()],
               &v = frame[op.getValue()], &at = frame[op.getPositions()];
  int64_t tokens = q.dim(0), heads = q.dim(1), d = q.dim(2), kvHeads = k.dim(1);
  if (failed(require(
          op,
          k.shape() == v.shape() && k.dim(0) == tokens && k.dim(2) == d &&
              at.dim(0) == tokens && kvHeads > 0 && heads % kvHeads == 0,
          "needs queries, keys, values and positions of one sequence", frame)))
    return failure();
  Scores scores = {op.getScale().convertToDouble(),
                   op.getSoftcap().convertToDouble()};
  Tensor y = Tensor::floats(q.shape());
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      SmallVector<const float *> keys, values;
      for (int64_t s = 0; s < tokens; ++s) {
        if (!visible(at.i32()[static_cast<size_t>(t)],
                     at.i32()[static_cast<size_t>(s)], op.getWindow()))
          continue;
        int64_t offset = (s * kvHeads + h / (heads / kvHeads)) * d;
        keys.push_back(k.f32().data() + offset);
        values.push_back(v.f32().data() + offset);
      }
      int64_t offset = (t * heads + h) * d;
      attend(scores, q.f32().data() + offset, keys, values, d,
             y.f32().data() + offset);
    }
  return frame.set(op, op.getResult(), std::move(y));
}

LogicalResult lathe::ir::evaluate(KvAppendOp op, Frame &frame) {
  auto group =
      frame.symbols.lookupNearestSymbolFrom<KvGroupOp>(op, op.getGroupAttr());
  const Tensor &k = frame[op.getKey()], &v = frame[op.getValue()];
  const std::vector<StepRow> &rows = *frame.stepRows();
  if (failed(require(op,
                     k.shape() == v.shape() &&
                         k.dim(0) == static_cast<int64_t>(rows.size()),
                     "needs a key and a value per row of the step", frame)))
    return failure();
  auto written = std::make_shared<std::map<KvPlace, KvEntry>>();
  auto headDim = static_cast<size_t>(k.dim(2));
  size_t width = static_cast<size_t>(k.dim(1)) * headDim;
  KvType type = *cacheType(group.getElement());
  for (size_t t = 0; t < rows.size(); ++t) {
    auto rounded = [&](const Tensor &rows, bool isKey) {
      const float *row = rows.f32().data() + t * width;
      std::vector<float> values(row, row + width);
      for (size_t at = 0; at < width; at += headDim)
        roundHead(type, isKey,
                  MutableArrayRef<float>(values).slice(at, headDim));
      return values;
    };
    KvEntry entry = {rounded(k, true), rounded(v, false)};
    written->insert_or_assign(KvPlace{op.getGroup().str(), op.getLayer(),
                                      rows[t].sequence, rows[t].position},
                              std::move(entry));
  }
  frame.appends.push_back(written);
  frame.setBatch(op.getResult(), frame.batch(op.getBatch()).with(written));
  return success();
}

LogicalResult lathe::ir::evaluate(PagedAttentionOp op, Frame &frame) {
  auto group =
      frame.symbols.lookupNearestSymbolFrom<KvGroupOp>(op, op.getGroupAttr());
  const BatchValue &batch = frame.batch(op.getBatch());
  const Tensor &q = frame[op.getQuery()];
  const std::vector<StepRow> &rows = *frame.stepRows();
  int64_t heads = q.dim(1), d = q.dim(2), kvHeads = group.getKvHeads();
  if (failed(require(op,
                     q.dim(0) == static_cast<int64_t>(rows.size()) &&
                         d == group.getHeadDim() && heads % kvHeads == 0,
                     "needs a query per row of the step", frame)))
    return failure();
  Scores scores = {op.getScale().convertToDouble(),
                   op.getSoftcap().convertToDouble()};
  Tensor y = Tensor::floats(q.shape());
  for (size_t t = 0; t < rows.size(); ++t) {
    std::vector<const KvEntry *> entries;
    for (int32_t p = 0; p <= rows[t].position; ++p) {
      if (!visible(rows[t].position, p, op.getWindow()))
        continue;
      const KvEntry *entry =
          batch.find({op.getGroup().str(), op.getLayer(), rows[t].sequence, p});
      if (!entry)
        return op.emitOpError("reads position ")
               << p << " of sequence " << rows[t].sequence
               << ", which has not been appended to the batch it reads";
      entries.push_back(entry);
    }
    if (entries.empty())
      return op.emitOpError("has a row at position ") << rows[t].position;
    for (int64_t h = 0; h < heads; ++h) {
      SmallVector<const float *> keys, values;
      for (const KvEntry *entry : entries) {
        keys.push_back(entry->key.data() + h / (heads / kvHeads) * d);
        values.push_back(entry->value.data() + h / (heads / kvHeads) * d);
      }
      int64_t offset = (static_cast<int64_t>(t) * heads + h) * d;
      attend(scores, q.f32().data() + offset, keys, values, d,
             y.f32().data() + offset);
    }
  }
  return frame.set(op, op.getResult(), std::move(y));
}
