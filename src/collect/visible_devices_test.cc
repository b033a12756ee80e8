// SPDX-License-Identifier: Apache-2.0
#include "collect/visible_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace epochmeter::collect {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Four of one model.
std::vector<GpuIdentity> FourAlike() {
  return {{.uuid = "GPU-aa11", .bus_id = "00000000:1A:00.0", .model = "H200"},
          {.uuid = "GPU-aa22", .bus_id = "00000000:3B:00.0", .model = "H200"},
          {.uuid = "GPU-bb33", .bus_id = "00000000:5C:00.0", .model = "H200"},
          {.uuid = "GPU-cc44", .bus_id = "00000000:AF:00.0", .model = "H200"}};
}

std::vector<GpuIdentity> WithMig() {
  auto gpus = FourAlike();
  gpus[1].mig = {{.uuid = "MIG-0001", .gpu_instance = 1, .compute_instance = 0},
                 {.uuid = "MIG-0002", .gpu_instance = 2, .compute_instance = 0}};
  gpus[3].mig = {{.uuid = "MIG-0003", .gpu_instance = 5, .compute_instance = 0}};
  return gpus;
}

VisibleGpus Cuda(const std::string& list) {
  return ResolveVisibleGpus({.cuda = list, .nvidia = {}, .selected = {}, .order = {}}, FourAlike());
}

struct CudaCase {
  const char* list;
  std::vector<size_t> gpus;
};

class CudaVisibleDevicesTest : public testing::TestWithParam<CudaCase> {};

TEST_P(CudaVisibleDevicesTest, ChoosesAsCudaDoes) {
  const VisibleGpus visible = Cuda(GetParam().list);
  EXPECT_TRUE(visible.restricted);
  EXPECT_EQ(visible.gpus, GetParam().gpus) << "CUDA_VISIBLE_DEVICES=" << GetParam().list;
}

INSTANTIATE_TEST_SUITE_P(
    Golden, CudaVisibleDevicesTest,
    testing::Values(
        // Numbers.
        CudaCase{"0", {0}}, CudaCase{"3", {3}}, CudaCase{"0,1", {0, 1}}, CudaCase{"2,0", {2, 0}},
        CudaCase{"0,1,2,3", {0, 1, 2, 3}}, CudaCase{" 1 , 2 ", {1, 2}}, CudaCase{"+1", {1}},
        // None.
        CudaCase{"", {}}, CudaCase{" ", {}}, CudaCase{"-1", {}}, CudaCase{"NoDevFiles", {}},
        // The first invalid token ends the list, earlier ones stay.
        CudaCase{"0,-1,2", {0}}, CudaCase{"1,7,2", {1}}, CudaCase{"4", {}}, CudaCase{"0,x,1", {0}},
        CudaCase{"0,,1", {0}}, CudaCase{",0", {}}, CudaCase{"99999999999999999999", {}},
        // As strtoul.
        CudaCase{"1gpu2", {1}}, CudaCase{"1gpu2,2ampere", {1, 2}}, CudaCase{"0x2", {0}},
        // Twice the same is none.
        CudaCase{"1,1", {}}, CudaCase{"0,1,0", {}}, CudaCase{"1,1gpu", {}},
        // Beginnings of UUIDs.
        CudaCase{"GPU-aa11", {0}}, CudaCase{"GPU-b", {2}}, CudaCase{"GPU-cc44,GPU-aa1", {3, 0}},
        CudaCase{"GPU-aa", {}}, CudaCase{"GPU-", {}}, CudaCase{"GPU-zz", {}},
        CudaCase{"GPU-b,GPU-zz,GPU-c", {2}}, CudaCase{"GPU-b,GPU-bb33", {}}, CudaCase{"gpu-b", {}},
        CudaCase{"GPU-bb33 , GPU-c", {2, 3}},
        // No mixing.
        CudaCase{"0,GPU-b", {0}}, CudaCase{"GPU-b,0", {2}}, CudaCase{"GPU-b,MIG-0001", {2}},
        CudaCase{"0,MIG-GPU-aa22/1/0", {0}},
        // MIG by its GPU needs no list of instances.
        CudaCase{"MIG-GPU-aa22/1/0", {1}}, CudaCase{"MIG-GPU-zz/1/0", {}},
        CudaCase{"MIG-GPU-aa22/1", {}}, CudaCase{"MIG-GPU-aa22/x/0", {}}));

TEST(VisibleDevicesTest, NothingSetMeansEveryGpuAndNoChoice) {
  const VisibleGpus visible = ResolveVisibleGpus({}, FourAlike());
  EXPECT_FALSE(visible.restricted);
  EXPECT_THAT(visible.gpus, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(visible.note, IsEmpty());
}

TEST(VisibleDevicesTest, SaysWhichWordEndedTheList) {
  EXPECT_THAT(Cuda("0,-1,2").note, HasSubstr("'-1' ends the list"));
  EXPECT_THAT(Cuda("1,1").note, HasSubstr("twice"));
  EXPECT_THAT(Cuda("").note, HasSubstr("empty"));
}

TEST(VisibleDevicesTest, NumbersCountByTheBusWhateverTheListsOrder) {
  auto gpus = FourAlike();
  std::swap(gpus[0], gpus[3]);  // place 0 is now the last on the bus
  const VisibleGpus visible =
      ResolveVisibleGpus({.cuda = "0", .nvidia = {}, .selected = {}, .order = "PCI_BUS_ID"}, gpus);
  EXPECT_THAT(visible.gpus, ElementsAre(3));
}

TEST(VisibleDevicesTest, NumbersAmongSeveralModelsAreAmbiguousUnlessCountedByTheBus) {
  auto gpus = FourAlike();
  gpus[2].model = "T400";
  VisibleVariables variables{.cuda = "1", .nvidia = {}, .selected = {}, .order = {}};
  VisibleGpus visible = ResolveVisibleGpus(variables, gpus);
  EXPECT_FALSE(visible.restricted);
  EXPECT_EQ(visible.gpus.size(), 4U);
  EXPECT_THAT(visible.note, HasSubstr("CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  variables.order = "FASTEST_FIRST";
  EXPECT_FALSE(ResolveVisibleGpus(variables, gpus).restricted);
  variables.order = "PCI_BUS_ID";
  EXPECT_THAT(ResolveVisibleGpus(variables, gpus).gpus, ElementsAre(1));
  variables = {.cuda = "GPU-bb", .nvidia = {}, .selected = {}, .order = {}};
  EXPECT_THAT(ResolveVisibleGpus(variables, gpus).gpus, ElementsAre(2));
  variables.cuda = "0,1,2,3";  // all of them, in whatever order
  EXPECT_THAT(ResolveVisibleGpus(variables, gpus).note, IsEmpty());
  variables.cuda = "-1";  // none, in any order
  EXPECT_THAT(ResolveVisibleGpus(variables, gpus).gpus, IsEmpty());
}

TEST(VisibleDevicesTest, FindsTheGpuOfAMigDevice) {
  VisibleVariables variables{
      .cuda = "MIG-0002,MIG-0003", .nvidia = {}, .selected = {}, .order = {}};
  VisibleGpus visible = ResolveVisibleGpus(variables, WithMig(), 580);
  EXPECT_THAT(visible.gpus, ElementsAre(1, 3));
  EXPECT_THAT(visible.mig, ElementsAre("MIG-0002", "MIG-0003"));
  variables.cuda = "MIG-0001,MIG-0002";  // two of one GPU
  visible = ResolveVisibleGpus(variables, WithMig(), 580);
  EXPECT_THAT(visible.gpus, ElementsAre(1));
  EXPECT_THAT(visible.mig, ElementsAre("MIG-0001", "MIG-0002"));
  variables.cuda = "MIG-0001,MIG-0001";
  EXPECT_THAT(ResolveVisibleGpus(variables, WithMig(), 580).gpus, IsEmpty());
}

TEST(VisibleDevicesTest, UpTo525AProcessGetsOneMigDevice) {
  const VisibleVariables variables{
      .cuda = "MIG-0002,MIG-0003", .nvidia = {}, .selected = {}, .order = {}};
  EXPECT_THAT(ResolveVisibleGpus(variables, WithMig(), 525).mig, ElementsAre("MIG-0002"));
  EXPECT_THAT(ResolveVisibleGpus(variables, WithMig(), 535).mig,
              ElementsAre("MIG-0002", "MIG-0003"));
}

TEST(VisibleDevicesTest, AMigDeviceWithoutAListOfInstancesLeavesAllAndSaysSo) {
  const VisibleGpus visible = Cuda("MIG-0001");
  EXPECT_FALSE(visible.restricted);
  EXPECT_EQ(visible.gpus.size(), 4U);
  EXPECT_THAT(visible.note, HasSubstr("MIG"));
}

TEST(VisibleDevicesTest, PaddlesNumbersCountInsideTheVisibleOnes) {
  VisibleVariables variables{.cuda = "2,3", .nvidia = {}, .selected = "1", .order = {}};
  EXPECT_THAT(ResolveVisibleGpus(variables, FourAlike()).gpus, ElementsAre(3));
  variables.cuda = "GPU-cc,GPU-aa1";
  EXPECT_THAT(ResolveVisibleGpus(variables, FourAlike()).gpus, ElementsAre(0));
  variables.cuda.reset();
  const VisibleGpus visible = ResolveVisibleGpus(variables, FourAlike());
  EXPECT_TRUE(visible.restricted);
  EXPECT_THAT(visible.gpus, ElementsAre(1));
}

TEST(VisibleDevicesTest, ASelectionOutsideTheVisibleOnesIsLeftOutAndSaid) {
  const VisibleGpus visible =
      ResolveVisibleGpus({.cuda = "2,3", .nvidia = {}, .selected = "2", .order = {}}, FourAlike());
  EXPECT_THAT(visible.gpus, ElementsAre(2, 3));
  EXPECT_THAT(visible.note, HasSubstr("FLAGS_selected_gpus: '2'"));
}

struct RuntimeCase {
  const char* list;
  bool restricted;
  std::vector<size_t> gpus;
};

class NvidiaVisibleDevicesTest : public testing::TestWithParam<RuntimeCase> {};

TEST_P(NvidiaVisibleDevicesTest, SaysWhatTheContainerWasMeantToHave) {
  const VisibleGpus visible = ResolveVisibleGpus(
      {.cuda = {}, .nvidia = GetParam().list, .selected = {}, .order = {}}, FourAlike());
  EXPECT_EQ(visible.restricted, GetParam().restricted) << GetParam().list;
  EXPECT_EQ(visible.gpus, GetParam().gpus) << GetParam().list;
}

INSTANTIATE_TEST_SUITE_P(
    Golden, NvidiaVisibleDevicesTest,
    testing::Values(RuntimeCase{"all", false, {0, 1, 2, 3}}, RuntimeCase{"", false, {0, 1, 2, 3}},
                    RuntimeCase{"void", false, {0, 1, 2, 3}}, RuntimeCase{"none", true, {}},
                    RuntimeCase{"1,2", true, {1, 2}}, RuntimeCase{"GPU-cc44", true, {3}},
                    RuntimeCase{"0:1", true, {0}},
                    // Host numbers that the runtime has applied already.
                    RuntimeCase{"4,5,6,7", false, {0, 1, 2, 3}},
                    RuntimeCase{"GPU-aa11,GPU-aa22,GPU-bb33,GPU-cc44", false, {0, 1, 2, 3}},
                    RuntimeCase{"nvidia.com/gpu=0", false, {0, 1, 2, 3}}));

TEST(VisibleDevicesTest, CudasListGoesBeforeTheRuntimes) {
  const VisibleGpus visible =
      ResolveVisibleGpus({.cuda = "3", .nvidia = "0,1", .selected = {}, .order = {}}, FourAlike());
  EXPECT_THAT(visible.gpus, ElementsAre(3));
}

TEST(VisibleDevicesTest, ReadsTheVariablesOfAnEnvironment) {
  using std::string_literals::operator""s;
  const VisibleVariables variables =
      VisibleVariablesOf("PATH=/bin\0CUDA_VISIBLE_DEVICES=\0CUDA_DEVICE_ORDER=PCI_BUS_ID\0"s);
  EXPECT_EQ(variables.cuda, "");
  EXPECT_EQ(variables.order, "PCI_BUS_ID");
  EXPECT_EQ(variables.selected, std::nullopt);
  EXPECT_EQ(variables.nvidia, std::nullopt);
}

TEST(VisibleDevicesTest, WithoutGpusThereIsNothingToChoose) {
  EXPECT_THAT(ResolveVisibleGpus({.cuda = "0", .nvidia = {}, .selected = {}, .order = {}}, {}).gpus,
              IsEmpty());
}

}  // namespace
}  // namespace epochmeter::collect
