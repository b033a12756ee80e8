// SPDX-License-Identifier: Apache-2.0
#include "runfile/record_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "model/steps.h"
#include "runfile/record_fields.h"

namespace epochmeter::runfile {
namespace {

// How a double stands in the bytes: most samples are whole numbers or have four decimals.
enum class NumberForm : uint8_t { kBits, kWhole, kTenThousandths };
constexpr double kExactBelow = 9e15;  // whole doubles below 2^53 have one integer only

bool SameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

NumberForm FormOf(double value, int64_t* integer) {
  if (!(std::fabs(value) < kExactBelow / 1e4)) return NumberForm::kBits;
  *integer = static_cast<int64_t>(value);
  if (SameBits(static_cast<double>(*integer), value)) return NumberForm::kWhole;
  *integer = model::RoundToInt(value * 1e4);
  if (SameBits(static_cast<double>(*integer) / 1e4, value)) return NumberForm::kTenThousandths;
  return NumberForm::kBits;
}

class Encoder {
 public:
  explicit Encoder(base::ByteWriter& out) : out_(out) {}

  void operator()(const char*, int64_t v) { out_.Signed(v); }
  void operator()(const char*, uint32_t v) { out_.Varint(v); }
  void operator()(const char*, uint64_t v) { out_.Varint(v); }
  void operator()(const char*, uint8_t v) { out_.U8(v); }
  void operator()(const char*, double v) { out_.F64(v); }
  void operator()(const char*, const std::string& v) { out_.Text(v); }
  template <typename E>
  requires std::is_enum_v<E>
  void operator()(const char*, E v) { out_.U8(static_cast<uint8_t>(v)); }
  template <typename T>
  void operator()(const char*, const std::optional<T>& v) {
    out_.U8(v ? 1 : 0);
    if (v) out_.Signed(*v);
  }
  void operator()(const char*, const model::Labels& labels) {
    out_.Varint(labels.size());
    for (const auto& [key, value] : labels) {
      out_.Text(key);
      out_.Text(value);
    }
  }
  // A sample's head is its id's distance from the one before, and the form of its number.
  void operator()(const char*, const std::vector<model::SampleValue>& values) {
    out_.Varint(values.size());
    out_.AtMost(values.size() * 2 * base::kMaxVarintBytes,
                [&values](char* to) { return PutSamples(values, to); });
  }
  void operator()(const char*, const std::vector<model::EventField>& fields) {
    out_.Varint(fields.size());
    for (const model::EventField& field : fields) {
      out_.Text(field.key);
      out_.U8(static_cast<uint8_t>(field.value.index()));
      if (const auto* integer = std::get_if<int64_t>(&field.value)) out_.Signed(*integer);
      if (const auto* real = std::get_if<double>(&field.value)) out_.F64(*real);
      if (const auto* text = std::get_if<std::string>(&field.value)) out_.Text(*text);
    }
  }

 private:
  static char* PutSamples(const std::vector<model::SampleValue>& values, char* to) {
    int64_t previous = -1;
    for (const model::SampleValue& sample : values) {
      const int64_t id = sample.series;
      int64_t integer = 0;
      const NumberForm form = FormOf(sample.value, &integer);
      to = base::PutVarint(base::ZigZag(id - previous - 1) << 2 | static_cast<uint64_t>(form), to);
      previous = id;
      if (form == NumberForm::kBits) {
        std::memcpy(to, &sample.value, sizeof sample.value);
        to += sizeof sample.value;
      } else {
        to = base::PutVarint(base::ZigZag(integer), to);
      }
    }
    return to;
  }

  base::ByteWriter& out_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view body) : in_(body) {}
  bool ok() const { return ok_; }

  void operator()(const char*, int64_t& v) { Check(in_.Signed(&v)); }
  void operator()(const char*, uint64_t& v) { Check(in_.Varint(&v)); }
  void operator()(const char*, uint8_t& v) { Check(in_.U8(&v)); }
  void operator()(const char*, double& v) { Check(in_.F64(&v)); }
  void operator()(const char*, std::string& v) { Check(in_.Text(&v)); }
  void operator()(const char*, uint32_t& v) {
    uint64_t wide = 0;
    Check(in_.Varint(&wide) && wide <= UINT32_MAX);
    if (ok_) v = static_cast<uint32_t>(wide);
  }
  template <typename E>
  requires std::is_enum_v<E>
  void operator()(const char*, E& v) {
    uint8_t raw = 0;
    Check(in_.U8(&raw) && raw < kEnumCount<E>);
    if (ok_) v = static_cast<E>(raw);
  }
  template <typename T>
  void operator()(const char*, std::optional<T>& v) {
    uint8_t there = 0;
    int64_t wide = 0;
    Check(in_.U8(&there) && there <= 1);
    if (!ok_ || there == 0) return;
    Check(in_.Signed(&wide) && wide >= std::numeric_limits<T>::min() &&
          wide <= std::numeric_limits<T>::max());
    if (ok_) v = static_cast<T>(wide);
  }
  void operator()(const char*, model::Labels& labels) {
    for (uint64_t left = Count(); ok_ && left > 0; --left) {
      auto& [key, value] = labels.emplace_back();
      Check(in_.Text(&key) && in_.Text(&value));
    }
  }
  void operator()(const char*, std::vector<model::SampleValue>& values) {
    const uint64_t count = Count();
    if (ok_) values.reserve(static_cast<size_t>(count));
    int64_t id = -1;
    for (uint64_t left = count; ok_ && left > 0; --left) {
      uint64_t head = 0;
      Check(in_.Varint(&head));
      // The sum of a hostile distance must not overflow.
      const int64_t distance = base::UnZigZag(head >> 2);
      Check(distance >= -int64_t{UINT32_MAX} - 1 && distance <= int64_t{UINT32_MAX});
      if (!ok_) return;
      id += distance + 1;
      Check(id >= 0 && id <= int64_t{UINT32_MAX});
      if (!ok_) return;
      values.push_back({.series = static_cast<uint32_t>(id), .value = Number(head & 3)});
    }
  }
  void operator()(const char*, std::vector<model::EventField>& fields) {
    for (uint64_t left = Count(); ok_ && left > 0; --left) {
      model::EventField& field = fields.emplace_back();
      uint8_t type = 0;
      Check(in_.Text(&field.key) && in_.U8(&type) && type < std::variant_size_v<model::FieldValue>);
      if (!ok_) return;
      if (type == 0) (*this)("", field.value.emplace<int64_t>());
      if (type == 1) (*this)("", field.value.emplace<double>());
      if (type == 2) (*this)("", field.value.emplace<std::string>());
    }
  }

 private:
  void Check(bool good) { ok_ = ok_ && good; }
  // A count of things of at least two bytes each.
  uint64_t Count() {
    uint64_t count = 0;
    Check(in_.Varint(&count) && count <= in_.remaining() / 2);
    return ok_ ? count : 0;
  }
  double Number(uint64_t form) {
    double value = 0;
    int64_t integer = 0;
    switch (static_cast<NumberForm>(form)) {
      case NumberForm::kBits:
        Check(in_.F64(&value));
        return value;
      case NumberForm::kWhole:
        Check(in_.Signed(&integer));
        return static_cast<double>(integer);
      case NumberForm::kTenThousandths:
        Check(in_.Signed(&integer));
        return static_cast<double>(integer) / 1e4;
    }
    ok_ = false;
    return 0;
  }

  base::ByteReader in_;
  bool ok_ = true;
};

template <size_t kIndex = 0>
bool DecodeBody(uint8_t type, std::string_view body, model::Record* record) {
  if constexpr (kIndex < std::variant_size_v<model::Record>) {
    if (type != kIndex) return DecodeBody<kIndex + 1>(type, body, record);
    Decoder decoder(body);
    Fields(decoder, record->emplace<kIndex>());
    return decoder.ok();
  }
  return false;
}

}  // namespace

void EncodeRecord(const model::Record& record, base::ByteWriter& out) {
  const size_t begin = out.size();
  out.U8(static_cast<uint8_t>(record.index()));
  Encoder encoder(out);
  std::visit([&encoder](const auto& typed) { Fields(encoder, typed); }, record);
  out.MakeText(begin);
}

DecodeStatus DecodeRecord(base::ByteReader& in, model::Record* record) {
  base::ByteReader ahead = in;
  uint64_t size = 0;
  if (!ahead.Varint(&size)) {
    if (in.remaining() < 10) return DecodeStatus::kIncomplete;
    size = UINT64_MAX;
  }
  std::string_view body;
  if (size == 0 || size > kMaxRecordBytes) {
    in = base::ByteReader({});
    return DecodeStatus::kDamaged;
  }
  if (!ahead.Raw(static_cast<size_t>(size), &body)) return DecodeStatus::kIncomplete;
  in = ahead;
  const auto type = static_cast<uint8_t>(body.front());
  if (type >= std::variant_size_v<model::Record>) return DecodeStatus::kUnknown;
  return DecodeBody(type, body.substr(1), record) ? DecodeStatus::kRecord : DecodeStatus::kDamaged;
}

}  // namespace epochmeter::runfile
