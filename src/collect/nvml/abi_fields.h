// SPDX-License-Identifier: Apache-2.0
// Ids of nvmlDeviceGetFieldValues and of GPM. Valid C11 and C++20.
#pragma once

#include <stdint.h>

// Field ids whose meaning is the same in every published header. Ids from 251 on were renumbered
// inside one driver branch and are therefore not listed.
enum NvmlField {
  kNvmlFieldEccCurrent = 1,
  kNvmlFieldEccCorrectedVolatile = 3,
  kNvmlFieldEccUncorrectedVolatile = 4,
  kNvmlFieldEccCorrectedAggregate = 5,
  kNvmlFieldEccUncorrectedAggregate = 6,
  kNvmlFieldRetiredSingleBit = 29,
  kNvmlFieldRetiredDoubleBit = 30,
  kNvmlFieldRetiredPending = 31,
  kNvmlFieldNvlinkCrcFlitErrors = 38,  // sums over all links, up to Ampere
  kNvmlFieldNvlinkCrcDataErrors = 45,
  kNvmlFieldNvlinkReplayErrors = 52,
  kNvmlFieldNvlinkRecoveryErrors = 59,
  kNvmlFieldPerfPolicyPower = 74,
  kNvmlFieldPerfPolicyThermal = 75,
  kNvmlFieldPerfPolicySyncBoost = 76,
  kNvmlFieldPerfPolicyBoardLimit = 77,
  kNvmlFieldPerfPolicyLowUtilization = 78,
  kNvmlFieldPerfPolicyReliability = 79,
  kNvmlFieldPerfPolicyAppClocks = 80,
  kNvmlFieldPerfPolicyBaseClocks = 81,
  kNvmlFieldMemoryTemp = 82,
  kNvmlFieldTotalEnergy = 83,
  kNvmlFieldNvlinkSpeedCommon = 90,  // MB/s
  kNvmlFieldNvlinkLinkCount = 91,
  kNvmlFieldPcieReplayCounter = 94,
  kNvmlFieldNvlinkThroughputTx = 138,  // KiB of data; scope: a link or kNvmlAllLinks
  kNvmlFieldNvlinkThroughputRx = 139,
  kNvmlFieldNvlinkThroughputRawTx = 140,
  kNvmlFieldNvlinkThroughputRawRx = 141,
  kNvmlFieldRemappedCorrected = 142,
  kNvmlFieldRemappedUncorrected = 143,
  kNvmlFieldRemappedPending = 144,
  kNvmlFieldRemappedFailure = 145,
  kNvmlFieldNvlinkDlReplay = 161,  // scope: a link; gone with Blackwell
  kNvmlFieldNvlinkDlRecovery = 162,
  kNvmlFieldNvlinkDlCrc = 163,
  kNvmlFieldNvlinkSpeed = 164,  // MB/s; scope: a link
  kNvmlFieldNvlinkState = 165,
  kNvmlFieldPcieL0ToRecovery = 169,
  kNvmlFieldC2cLinkCount = 170,
  kNvmlFieldPcieCorrectableErrors = 173,
  kNvmlFieldPcieNaksReceived = 174,
  kNvmlFieldPcieReceiverErrors = 175,
  kNvmlFieldPcieBadTlp = 176,
  kNvmlFieldPcieNaksSent = 177,
  kNvmlFieldPcieBadDllp = 178,
  kNvmlFieldPcieNonFatalErrors = 179,
  kNvmlFieldPcieFatalErrors = 180,
  kNvmlFieldPowerAverage = 185,
  kNvmlFieldPowerInstant = 186,
  kNvmlFieldPowerMinLimit = 187,
  kNvmlFieldPowerMaxLimit = 188,
  kNvmlFieldPowerDefaultLimit = 189,
  kNvmlFieldPowerCurrentLimit = 190,
  kNvmlFieldPowerRequestedLimit = 192,
  kNvmlFieldShutdownTlimit = 193,  // signed; degrees of margin at which it happens
  kNvmlFieldSlowdownTlimit = 194,
  kNvmlFieldMemMaxTlimit = 195,
  kNvmlFieldGpuMaxTlimit = 196,
  kNvmlFieldPcieTxBytes = 197,  // 32 bits, wraps
  kNvmlFieldPcieRxBytes = 198,
  kNvmlFieldNvlink5TxBytes = 202,
  kNvmlFieldNvlink5RxBytes = 204,
  kNvmlFieldNvlink5MalformedPackets = 206,
  kNvmlFieldNvlink5BufferOverruns = 207,
  kNvmlFieldNvlink5RxErrors = 208,
  kNvmlFieldNvlink5RxRemoteErrors = 209,
  kNvmlFieldNvlink5RxGeneralErrors = 210,
  kNvmlFieldNvlink5IntegrityErrors = 211,
  kNvmlFieldNvlink5TxDiscards = 212,
  kNvmlFieldNvlink5RecoverySucceeded = 213,
  kNvmlFieldNvlink5RecoveryFailed = 214,
  kNvmlFieldNvlink5RecoveryEvents = 215,
  kNvmlFieldRecoveryAction = 230,
  kNvmlFieldFirstUnstable = 251
};

// Scope of an NVLink field: all links in one. A scope of 0 would be link 0 alone.
static const uint32_t kNvmlAllLinks = 0xFFFFFFFFU;

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
