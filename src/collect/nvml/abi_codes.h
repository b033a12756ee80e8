// SPDX-License-Identifier: Apache-2.0
// Numbers of NVML's binary interface: return codes, selectors, field and GPM ids. Valid C11 and
// C++20; abi.h holds the types.
#pragma once

enum NvmlReturnCode {
  kNvmlSuccess = 0,
  kNvmlUninitialized = 1,
  kNvmlInvalidArgument = 2,
  kNvmlNotSupported = 3,
  kNvmlNoPermission = 4,
  kNvmlNotFound = 6,
  kNvmlInsufficientSize = 7,
  kNvmlDriverNotLoaded = 9,
  kNvmlTimeout = 10,
  kNvmlLibraryNotFound = 12,
  kNvmlFunctionNotFound = 13,
  kNvmlGpuIsLost = 15,
  kNvmlResetRequired = 16,
  kNvmlOperatingSystem = 17,
  kNvmlLibRmVersionMismatch = 18,
  kNvmlNoData = 21,
  kNvmlArgumentVersionMismatch = 25,
  kNvmlNotReady = 27,
  kNvmlGpuNotFound = 28,
  kNvmlInvalidState = 29,
  kNvmlUnknown = 999
};

// kNvmlInitNoGpus: initialisation succeeds on a machine whose GPUs are all gone or absent.
enum NvmlInitFlag { kNvmlInitNoGpus = 1 };
enum NvmlTemperatureSensor { kNvmlTemperatureGpu = 0 };
enum NvmlClock { kNvmlClockGraphics = 0, kNvmlClockSm = 1, kNvmlClockMem = 2, kNvmlClockVideo = 3 };
enum NvmlThreshold { kNvmlThresholdShutdown = 0, kNvmlThresholdSlowdown = 1 };
enum NvmlPcieCounter { kNvmlPcieTx = 0, kNvmlPcieRx = 1 };

enum NvmlSamplingType {
  kNvmlSamplesTotalPower = 0,
  kNvmlSamplesGpuUtil = 1,
  kNvmlSamplesMemUtil = 2
};

enum NvmlValueType {
  kNvmlValueDouble = 0,
  kNvmlValueUint = 1,
  kNvmlValueUlong = 2,
  kNvmlValueUlonglong = 3,
  kNvmlValueSignedLonglong = 4,
  kNvmlValueSignedInt = 5,
  kNvmlValueUshort = 6
};

// Field ids whose meaning is the same in every published header. Ids from 251 on were renumbered
// inside one driver branch and are therefore not listed.
enum NvmlField {
  kNvmlFieldPerfPolicyPower = 74,
  kNvmlFieldPerfPolicyThermal = 75,
  kNvmlFieldPerfPolicyBoardLimit = 77,
  kNvmlFieldPerfPolicyLowUtilization = 78,
  kNvmlFieldPerfPolicyReliability = 79,
  kNvmlFieldMemoryTemp = 82,
  kNvmlFieldTotalEnergy = 83,
  kNvmlFieldPcieReplayCounter = 94,
  kNvmlFieldNvlinkThroughputTx = 138,
  kNvmlFieldNvlinkThroughputRx = 139,
  kNvmlFieldPowerAverage = 185,
  kNvmlFieldPowerInstant = 186,
  kNvmlFieldPowerMinLimit = 187,
  kNvmlFieldPowerMaxLimit = 188,
  kNvmlFieldPowerDefaultLimit = 189,
  kNvmlFieldPowerCurrentLimit = 190,
  kNvmlFieldPowerRequestedLimit = 192,
  kNvmlFieldPcieTxBytes = 197,
  kNvmlFieldPcieRxBytes = 198
};

// GPM metric ids; 1..13 are percent, 20/21 and 60/61 MiB per second.
enum NvmlGpmId {
  kNvmlGpmGraphicsUtil = 1,
  kNvmlGpmSmUtil = 2,
  kNvmlGpmSmOccupancy = 3,
  kNvmlGpmIntegerUtil = 4,
  kNvmlGpmAnyTensorUtil = 5,
  kNvmlGpmHmmaTensorUtil = 7,
  kNvmlGpmDramBwUtil = 10,
  kNvmlGpmFp64Util = 11,
  kNvmlGpmFp32Util = 12,
  kNvmlGpmFp16Util = 13,
  kNvmlGpmPcieTx = 20,
  kNvmlGpmPcieRx = 21,
  kNvmlGpmNvlinkRx = 60,
  kNvmlGpmNvlinkTx = 61
};

// Array bound of the newest published header. Existing ids never moved; the driver reads only
// num_metrics entries, so the largest bound serves every driver.
enum { kNvmlGpmMetricMax = 333, kNvmlGpmVersion = 1, kNvmlUuidBufferSize = 96 };
enum { kNvmlVersionBufferSize = 96, kNvmlNameBufferSize = 96, kNvmlSerialBufferSize = 32 };
