// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/file_head.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/strings.h"

namespace epochmeter::ingest::log {
namespace {

using namespace std::string_view_literals;
using base::StartsWith;

struct Magic {
  std::string_view bytes;
  HeadKind kind;
};
constexpr std::array kMagics = {
    Magic{"\x1f\x8b\x08"sv, HeadKind::kGzip},
    Magic{"\x28\xb5\x2f\xfd"sv, HeadKind::kZstd},
    Magic{"\xfd"
          "7zXZ\0"sv,
          HeadKind::kXz},
    Magic{"BZh"sv, HeadKind::kBzip2},
    Magic{"\x89"
          "EMR\r\n\x1a\n"sv,
          HeadKind::kRunFile},
    Magic{"\x89PNG\r\n\x1a\n"sv, HeadKind::kPicture},
    Magic{"\xff\xd8\xff"sv, HeadKind::kPicture},
    Magic{"GIF8"sv, HeadKind::kPicture},
    Magic{"%PDF-"sv, HeadKind::kPicture},
    Magic{"PK\x03\x04"sv, HeadKind::kArchive},
    Magic{"7z\xbc\xaf\x27\x1c"sv, HeadKind::kArchive},
    Magic{"\x7f"
          "ELF"sv,
          HeadKind::kBinary},
    Magic{"SQLite format 3\0"sv, HeadKind::kBinary},
};

constexpr std::string_view kNoLogEndings[] = {
    // Checkpoints and data.
    ".pdparams", ".pdopt", ".pdmodel", ".pdiparams", ".pdstates", ".pt", ".pth", ".ckpt",
    ".safetensors", ".bin", ".h5", ".hdf5", ".npy", ".npz", ".pkl", ".pickle", ".onnx", ".pb",
    ".tflite", ".msgpack", ".gguf", ".parquet", ".arrow", ".tfrecord", ".index", ".db", ".sqlite",
    ".lmdb", ".emr", ".emr.tail",
    // Pictures and sound.
    ".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".svg", ".pdf", ".mp4", ".wav", ".flac",
    // Archives.
    ".zip", ".tar", ".tgz", ".7z", ".whl", ".so", ".pyc",
    // Sources, settings and documents.
    ".py", ".sh", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".md", ".rst", ".html", ".css", ".js",
    ".ipynb", ".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".patch", ".diff", ".lock", ".pid"};

// Little or big endian, mostly characters of one byte: every other byte is NUL.
bool LooksLikeUtf16(std::string_view bytes) {
  size_t nuls[2] = {0, 0};
  for (size_t i = 0; i < bytes.size(); ++i) nuls[i % 2] += bytes[i] == '\0' ? 1 : 0;
  const size_t pairs = bytes.size() / 2;
  const size_t most = std::max(nuls[0], nuls[1]), least = std::min(nuls[0], nuls[1]);
  return pairs >= 8 && most * 2 > pairs && least * 50 < pairs;
}

// Control bytes that no terminal is sent; escape sequences and bars are text.
bool IsNoText(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code < 0x20 && std::string_view("\t\n\r\b\f\v\a\x1b").find(c) == std::string_view::npos;
}

// Without runs of NULs that are no part of UTF-16: what a writer leaves who goes on at his old
// place in a file that was truncated, or a machine that went down.
std::string WithoutHoles(std::string_view bytes) {
  constexpr size_t kLeastHole = 32;
  std::string text;
  while (!bytes.empty()) {
    const size_t begin = std::min(bytes.find('\0'), bytes.size());
    const size_t end = std::min(bytes.find_first_not_of('\0', begin), bytes.size());
    text += bytes.substr(0, end - begin < kLeastHole ? end : begin);
    bytes.remove_prefix(end);
  }
  return text;
}

bool IsTextWithoutHoles(std::string_view bytes) {
  const auto strange = static_cast<size_t>(std::count_if(bytes.begin(), bytes.end(), IsNoText));
  return strange * 20 <= bytes.size() || LooksLikeUtf16(bytes);
}

// A tar begins with the name of a file and NULs behind it.
bool IsTar(std::string_view head) {
  constexpr size_t kMark = 257;
  return head.size() > kMark && StartsWith(head.substr(kMark), "ustar");
}

}  // namespace

HeadKind KindOfHead(std::string_view head) {
  for (const Magic& magic : kMagics) {
    if (StartsWith(head, magic.bytes)) return magic.kind;
  }
  if (IsTar(head)) return HeadKind::kArchive;
  if (StartsWith(head, "\xff\xfe") || StartsWith(head, "\xfe\xff") || IsText(head)) {
    return HeadKind::kText;
  }
  const bool nuls = std::all_of(head.begin(), head.end(), [](char c) { return c == '\0'; });
  return nuls ? HeadKind::kNuls : HeadKind::kBinary;
}

bool IsText(std::string_view bytes) {
  if (IsTextWithoutHoles(bytes)) return true;
  // What is left of a log has words or ends of lines; a mark of some format has not.
  constexpr size_t kLeastText = 16;
  const std::string rest = WithoutHoles(bytes);
  const bool told = rest.size() >= kLeastText || rest.find('\n') != std::string::npos;
  return told && rest.size() < bytes.size() && IsTextWithoutHoles(rest);
}

bool NamesNoLog(std::string_view name) {
  const std::string lower = base::ToLowerAscii(name);
  return std::any_of(std::begin(kNoLogEndings), std::end(kNoLogEndings),
                     [&](std::string_view ending) { return base::EndsWith(lower, ending); });
}

}  // namespace epochmeter::ingest::log
