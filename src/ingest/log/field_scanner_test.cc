// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/field_scanner.h"

#include <gtest/gtest.h>

#include <string>

namespace epochmeter::ingest::log {
namespace {

// "key=value/total{unit}", one behind the other. A name inside objects is "group>key", an average
// stands in parentheses, what is not the first of a list has a '+' in front.
std::string Fields(std::string_view text, size_t from = 0) {
  std::string all;
  for (const Field& field : ScanFields(text, from).fields) {
    std::string value(text.substr(field.begin, field.end - field.begin));
    if (field.form == FieldForm::kPair) {
      value +=
          "/" + std::string(text.substr(field.total_begin, field.total_end - field.total_begin));
    }
    if (!field.unit.empty()) value += "{" + std::string(field.unit) + "}";
    if (field.average) value = "(" + value + ")";
    if (field.listed) value = "+" + value;
    const std::string group = field.group.empty() ? "" : field.group + ">";
    all += (all.empty() ? "" : " | ") + group + field.key + "=" + value;
  }
  return all;
}

struct Case {
  std::string_view text, fields;
};
void Check(std::initializer_list<Case> cases) {
  for (const auto& [text, fields] : cases) EXPECT_EQ(Fields(text), fields) << text;
}

TEST(FieldScanner, NamesAreBoundByMarksBracketsAndSpaces) {
  Check({{"loss: 0.5, lr=1e-3", "loss=0.5 | lr=1e-3"},
         {"Epoch: [3][ 20/312]", "Epoch=3 | =20/312"},
         {"Epoch 1 Batch 50 Loss 4.5", "Epoch=1 | Batch=50 | Loss=4.5"},
         {"total loss is 48.5 , reg_loss is 0.25", "total loss=48.5 | reg_loss=0.25"},
         {"i = 100 / 3200", "i=100/3200"},
         {"[Loss] nan | [other] 4", "Loss=nan | =4"},
         {"train: epoch 0, iter 20", "epoch=0 | iter=20"}});
}

TEST(FieldScanner, DictsAndJson) {
  Check({{"{'loss': 0.5, 'epoch': 1.25}", "loss=0.5 | epoch=1.25"},
         {"{'loss': '0.5'}", "loss=0.5"},
         {R"({"a": {"b": 1, "c": [2, 3]}, "d": 4})", "a>b=1 | a>c=2 | a>=+3 | d=4"},
         {"{'step/total': '3/9'}", "step/total=3/9"},
         {"OrderedDict([('loss', 0.5)])", "loss=0.5"}});
}

TEST(FieldScanner, ValuesThatAreNoPlainNumbers) {
  Check({{"loss: nan, lr: inf", "loss=nan | lr=inf"},
         {"loss: nanxxx, b: infxxx", "loss=nanxxx | b=infxxx"},
         {"loss: nanny", ""},
         {"eta: 1 day, 2:03:04, n: 5", "eta=1 day, 2:03:04 | n=5"},
         {"tokens: 1,234,567", "tokens=1,234,567"},
         {"loss: tensor(0.5, device='cuda:0')", "loss=0.5"}});
}

TEST(FieldScanner, UnitsAndAverages) {
  Check({{"time: 12ms", "time=12{ms}"},
         {"ips: 126.5 samples/s, x: 1", "ips=126.5{samples/s} | x=1"},
         {"Loss 0.5 (0.25)", "Loss=0.5 | Loss=(0.25)"},
         {"acc: 81.5%", "acc=81.5{%}"}});
}

TEST(FieldScanner, WordsAndFormsAreTold) {
  const ScannedLine line = ScanFields("eval at 2031-05-06 07:08:09 took 3s", 0);
  ASSERT_FALSE(line.fields.empty());
  EXPECT_EQ(line.fields[0].form, FieldForm::kStamp);
  ASSERT_FALSE(line.words.empty());
  EXPECT_EQ(line.words[0].text, "eval");
  EXPECT_EQ(line.words[0].at, 0u);
  const ScannedLine bound = ScanFields("a: 1 b [2] c 3", 0);
  ASSERT_EQ(bound.fields.size(), 3u);
  EXPECT_EQ(bound.fields[0].binding, Binding::kSeparator);
  EXPECT_EQ(bound.fields[1].binding, Binding::kBracket);
  EXPECT_EQ(bound.fields[2].binding, Binding::kSpace);
}

TEST(FieldScanner, OffsetsAreThoseOfTheWholeText) {
  const std::string_view text = "INFO lr 1 loss: 0.5";
  const ScannedLine line = ScanFields(text, 10);
  ASSERT_EQ(line.fields.size(), 1u);
  EXPECT_EQ(line.fields[0].key_begin, 10u);
  EXPECT_EQ(text.substr(line.fields[0].begin), "0.5");
}

TEST(FieldScanner, AnythingEndsWithoutALoop) {
  const std::string deep(5000, '{');
  EXPECT_EQ(Fields(deep), "");
  EXPECT_EQ(Fields(std::string(5000, '[') + "1"), "=1");
  for (const std::string_view text : {"", ":", "=:=", "'", "\"", "(", "loss:", "a='", "1/", "%"}) {
    EXPECT_LE(ScanFields(text, 0).fields.size(), 1u) << text;
  }
}

}  // namespace
}  // namespace epochmeter::ingest::log
