// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/name_lists.h"

#include <gtest/gtest.h>

#include <string>

namespace epochmeter::ingest::log {
namespace {

std::string FieldsOf(std::string_view text) {
  ScannedLine line = ScanFields(text, 0);
  NameLists(text, &line);
  std::string fields;
  for (const Field& field : line.fields) {
    fields +=
        field.key + "=" + std::string(text.substr(field.begin, field.end - field.begin)) + ";";
  }
  return fields;
}

TEST(NameLists, EachNumberHasItsName) {
  EXPECT_EQ(FieldsOf("epoch, loss, acc: 1, 0.5, 0.9"), "epoch=1;loss=0.5;acc=0.9;");
  EXPECT_EQ(FieldsOf("(epoch, loss) = (1, 0.5)"), "epoch=1;loss=0.5;");
  EXPECT_EQ(FieldsOf("val, round, loss, acc, auc ===> 002, 0.88, 0.54, 0.55,"),
            "round=002;loss=0.88;acc=0.54;auc=0.55;");
  EXPECT_EQ(FieldsOf("epoch 1, train_loss, val_loss = 0.5, 0.6"),
            "epoch=1;train_loss=0.5;val_loss=0.6;");
  EXPECT_EQ(FieldsOf("epoch 3 loss/acc/lr: 0.5/0.9/0.1"), "epoch=3;loss=0.5;acc=0.9;lr=0.1;");
  EXPECT_EQ(FieldsOf("loss (train/val): 0.5 / 0.6"), "train loss=0.5;val loss=0.6;");
}

TEST(NameLists, OthersStayAsTheyAre) {
  EXPECT_EQ(FieldsOf("devices: 0, 1, 2"), "devices=0;=1;=2;");
  EXPECT_EQ(FieldsOf("iter 10, loss: 0.5, 0.6"), "iter=10;loss=0.5;=0.6;");
  EXPECT_EQ(FieldsOf("a, b, c: 0.5, 0.6"), "c=0.5;=0.6;");
  EXPECT_EQ(FieldsOf("epoch: 3/10, loss: 0.5"), "epoch=3;loss=0.5;");
}

}  // namespace
}  // namespace epochmeter::ingest::log
