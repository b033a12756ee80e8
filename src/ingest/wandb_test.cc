// SPDX-License-Identifier: Apache-2.0
// Imports of W&B's offline runs, written here record by record.
#include <zlib.h>

#include "ingest/foreign_import_test_util.h"

namespace epochmeter::ingest {
namespace {

std::string Little(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

// Fields of a message: a number, or bytes.
std::string Field(int number, uint64_t value) {
  return Varint(static_cast<uint64_t>(number) << 3) + Varint(value);
}
std::string Field(int number, const std::string& bytes) {
  return Varint(static_cast<uint64_t>(number) << 3 | 2) + Varint(bytes.size()) + bytes;
}

class WandbImport : public ForeignImport {
 protected:
  using Item = std::pair<std::string, std::string>;

  // A record of system metrics `t_s` after the begin.
  void Stats(int64_t t_s, const std::vector<Item>& items) {
    std::string stats = Field(2, Field(1, static_cast<uint64_t>(kWall / kSecond + t_s)));
    for (const auto& [key, json] : items) stats += Field(3, Field(1, key) + Field(16, json));
    const std::string checked = '\1' + Field(7, stats);
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
    file_ += Little(crc, 4) + Little(checked.size() - 1, 2) + checked;
  }
  void ImportFile() { Import(file_); }

  std::string file_ = std::string(":W&B\xE1\xBE", 6) + '\0';
};

TEST_F(WandbImport, ActivityInPercentAndRates) {
  Stats(0, {{"gpu.0.smActive", "40.5"},
            {"gpu.0.pipeTensorActive", "0.9"},
            {"gpu.0.nvlinkTxBytes", "1048576"},
            {"gpu.0.fanSpeed", "30"},
            {"gpu.0.pcieLinkGen", "5"}});
  Stats(15, {{"gpu.0.smActive", "0.5"}});
  ImportFile();
  EXPECT_EQ(format_, "wandb");
  EXPECT_EQ(Values("gpu:0", "sm_active_ratio"), (Doubles{0.405, 0.005}));
  EXPECT_EQ(Values("gpu:0", "tensor_active_ratio"), (Doubles{0.9 / 100}));
  EXPECT_EQ(Values("gpu:0", "nvlink_transmit_bytes_per_s"), (Doubles{1048576}));
  EXPECT_EQ(Values("gpu:0", "fan_speed_ratio"), (Doubles{0.3}));
  EXPECT_EQ(Values("gpu:0", "pcie_link_generation"), (Doubles{5}));
  EXPECT_EQ(Loss("import.unknown_scale"), nullptr);
}

TEST_F(WandbImport, ActivityThatMayBePartsOrPercentsIsLeftOutAndTold) {
  Stats(0, {{"gpu.0.gpu", "90"}, {"gpu.0.smActive", "0.41"}});
  Stats(15, {{"gpu.0.gpu", "91"}, {"gpu.0.smActive", "0"}});
  ImportFile();
  EXPECT_EQ(Values("gpu:0", "utilization_ratio"), (Doubles{0.9, 0.91}));
  EXPECT_TRUE(Values("gpu:0", "sm_active_ratio").empty());
  ASSERT_NE(Loss("import.unknown_scale"), nullptr);
  EXPECT_EQ(Loss("import.unknown_scale")->count, 2U);
}

TEST_F(WandbImport, ActivityOfAnIdleGpuIsZeroInAnyScale) {
  Stats(0, {{"gpu.0.smActive", "0"}});
  Stats(15, {{"gpu.0.smActive", "0.0"}});
  ImportFile();
  EXPECT_EQ(Values("gpu:0", "sm_active_ratio"), (Doubles{0, 0}));
  EXPECT_EQ(Loss("import.unknown_scale"), nullptr);
}

TEST_F(WandbImport, ErrorCountersOfUnknownLifetimeAreToldAsUnknown) {
  Stats(0, {{"gpu.0.gpu", "90"}, {"gpu.0.correctedMemoryErrors", "7"}});
  ImportFile();
  EXPECT_TRUE(Values("gpu:0", "ecc_corrected_volatile_errors").empty());
  EXPECT_EQ(Loss("import.unknown_column")->detail, "columns: gpu.0.correctedMemoryErrors");
}

}  // namespace
}  // namespace epochmeter::ingest
