// SPDX-License-Identifier: Apache-2.0
#include "base/redact.h"

#include <gtest/gtest.h>

namespace epochmeter::base {
namespace {

std::string Text(std::string_view text) { return Redactor().Text(text); }

TEST(Redactor, TakesOutHomeFoldersOfAnybody) {
  EXPECT_EQ(Text("open /home/ann/data/x.bin and /Users/Bob, /root/y"),
            "open ~/data/x.bin and ~, ~/y");
  EXPECT_EQ(Text("/lustre/users/ann-2/run file:///home/ann/x"), "~/run file://~/x");
  EXPECT_EQ(Text("src/home/page.py /homes/ann /data/root/x http://a.b/home"),
            "src/home/page.py /homes/ann /data/root/x http://a.b/home");
}

TEST(Redactor, TakesOutValuesBehindNamesOfSecrets) {
  EXPECT_EQ(Text("WANDB_API_KEY=abc123 --hf-token xyz12345 password: \"hunter2222\" x"),
            "WANDB_API_KEY=*** --hf-token *** password: \"***\" x");
  EXPECT_EQ(Text("Authorization: Bearer abc.def-ghi, next"), "Authorization: Bearer ***, next");
  EXPECT_EQ(Text("https://ann:pw@host/x?y=1"), "https://***@host/x?y=1");
  EXPECT_EQ(Text("login with hf_abcdefghij0123456789 now"), "login with *** now");
}

TEST(Redactor, LeavesWhatATrainingSaysOfTokens) {
  for (const char* line :
       {"tokens/s: 12345.6", "tokenizer=bert-base-uncased", "eos_token=</s> pad_token: padding00",
        "max_token=512", "step 12 loss 3.4 token: the", "token=None", "sk-learn is not a key"}) {
    EXPECT_EQ(Text(line), line);
  }
}

TEST(Redactor, KeepsJsonValid) {
  Redactor redactor;
  EXPECT_EQ(redactor.Json(R"({"api_key":"a\"b","n":[1,2],"s":"x\n/home/ann/y token=\"q1\" z"})"),
            R"({"api_key":"***","n":[1,2],"s":"x\n~/y token=\"***\" z"})");
  EXPECT_EQ(redactor.found(), (std::set<std::string>{"home folder", "secret"}));
  EXPECT_EQ(redactor.Json(R"({"tokens":3,"a":"password=","b":"/home/"})"),
            R"({"tokens":3,"a":"password=","b":"/home/"})");
  for (const char* torn : {"{\"a", "\"", "\\", "{\"password\":\"", "\"/home/x\\"}) {
    redactor.Json(torn);
    redactor.Text(torn);
  }
}

}  // namespace
}  // namespace epochmeter::base
