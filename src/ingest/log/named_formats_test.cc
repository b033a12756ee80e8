// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/named_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/log/line_prefix.h"

namespace epochmeter::ingest::log {
namespace {

using ::testing::HasSubstr;

struct ReadLine {
  std::vector<Field> fields;
  std::vector<std::string> names;
  std::vector<std::string_view> keys;
};

ReadLine Read(std::string_view text) {
  ReadLine line;
  line.fields = ScanFields(text, ReadLinePrefix(text).message).fields;
  for (const Field& field : line.fields) line.names.push_back(NameOfField(field));
  line.keys.assign(line.names.begin(), line.names.end());
  return line;
}

// Whether a value of the line has this role and text; roles that the format leaves to the
// vocabulary are not asked here.
bool Says(const NamedFormat& format, std::string_view text, Role role, std::string_view value) {
  const ReadLine line = Read(text);
  bool named = false;
  for (size_t i = 0; i < line.fields.size(); ++i) {
    const Field& field = line.fields[i];
    const auto* found = format.Find(line.keys[i], i);
    if (found == nullptr) continue;
    named |= found->role == role || found->total == role;
    if (found->role == role && text.substr(field.begin, field.end - field.begin) == value) {
      return true;
    }
    if (found->total == role && field.form == FieldForm::kPair &&
        text.substr(field.total_begin, field.total_end - field.total_begin) == value) {
      return true;
    }
  }
  return !named;
}

TEST(NamedFormats, EachSampleIsFoundAndHasTheRolesItPromises) {
  ASSERT_GE(NamedFormats().size(), 10U);
  for (const NamedFormat& format : NamedFormats()) {
    for (const auto& sample : format.samples) {
      const ReadLine line = Read(sample.text);
      EXPECT_EQ(FindNamedFormat(line.keys), &format) << format.name << ": " << sample.text;
      for (const auto& [role, value] : sample.expected) {
        EXPECT_TRUE(Says(format, sample.text, role, value))
            << format.name << ": " << RoleName(role) << " is not " << value;
      }
    }
  }
}

TEST(NamedFormats, NamesAreUnique) {
  for (const NamedFormat& format : NamedFormats()) {
    const auto same = [&format](const NamedFormat& other) { return other.name == format.name; };
    EXPECT_EQ(std::count_if(NamedFormats().begin(), NamedFormats().end(), same), 1) << format.name;
  }
}

TEST(NamedFormats, LinesOfOtherToolsFitNone) {
  for (const char* text :
       {"Epoch: [0][  1/79]\tTime  3.912 ( 3.912)\tLoss 6.9e+00 (6.9e+00)",
        "step 3 loss 2.5 lr 0.1", "s: 3", "Region 82 Avg IOU: 0.3, Class: 0.4, count: 5",
        "[12]\ttrain-rmse:0.5"}) {
    EXPECT_EQ(FindNamedFormat(Read(text).keys), nullptr) << text;
  }
}

TEST(NamedFormats, AMalformedFileIsRefusedByItsName) {
  constexpr std::string_view kGood =
      R"({"name":"x","summary":"X.","keys":["a","b"],"roles":{"a":"step"},)"
      R"("samples":[{"text":"a:1 b:2","expected":{"step":"1"}}]})";
  EXPECT_TRUE(ParseNamedFormat("good.json", kGood).ok());
  const std::pair<std::string_view, std::string_view> faults[] = {
      {R"("name":"x",)", ""},
      {R"("X.")", "7"},
      {R"(["a","b"])", R"(["a"])"},
      {R"(["a","b"])", R"(["a","B c"])"},
      {R"(["a","b"])", R"(["#x","b"])"},
      {R"("a":"step")", R"("a":"stride")"},
      {R"({"a":"step"})", "{}"},
      {R"({"step":"1"})", R"({"step":1})"},
      {R"({"step":"1"})", "{}"},
      {R"("keys")", R"("kind":"both","keys")"},
      {"]}", ""}};
  for (const auto& [from, to] : faults) {
    std::string text(kGood);
    text.replace(text.find(from), from.size(), to);
    const auto format = ParseNamedFormat("bad.json", text);
    ASSERT_FALSE(format.ok()) << text;
    EXPECT_THAT(format.error().Message(), HasSubstr("bad.json")) << text;
  }
}

}  // namespace
}  // namespace epochmeter::ingest::log
