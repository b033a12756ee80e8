// SPDX-License-Identifier: Apache-2.0
#include "base/redact.h"

#include <gtest/gtest.h>

#include <vector>

namespace epochmeter::base {
namespace {

std::string Text(std::string_view text) { return Redactor().Text(text); }

TEST(Redactor, TakesOutHomeFoldersOfAnybody) {
  EXPECT_EQ(Text("open /home/ann/data/x.bin and /Users/Bob, /root/y"),
            "open ~/data/x.bin and ~, ~/y");
  EXPECT_EQ(Text("/lustre/users/ann-2/run file:///home/ann/x"), "~/run file://~/x");
  EXPECT_EQ(Text("src/home/page.py /homes/ann /data/root/x http://a.b/home/c"),
            "src/home/page.py /homes/ann /data/root/x http://a.b/home/c");
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

TEST(Redactor, KnowsTheShapesOfKeysOfServices) {
  const std::string letters = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2dF4hJ";  // 35
  for (const std::string& key : std::vector<std::string>{
           "AIza" + letters, "hf_" + letters, "ghp_" + letters, "ghu_" + letters, "sk-" + letters,
           "sk-proj-" + letters, "xoxb-1234-5678-abcd", "xoxa-1234-5678-abcd",
           "AKIAIOSFODNN7EXAMPL2", "ASIAIOSFODNN7EXAMPL2", "nvapi-" + letters,
           "wandb_v1_" + letters}) {
    EXPECT_EQ(Text("with " + key + " now"), "with *** now");
    EXPECT_EQ(Text("key:'" + key + "'."), "key:'***'.");
    EXPECT_EQ(Text("It is " + key + "."), "It is ***.");
  }
}

TEST(Redactor, TakesOutTheKeyOfALoginToWandb) {
  const std::string key = "0123456789abcdef0123456789abcdef01234567";
  EXPECT_EQ(Text("+ wandb login " + key), "+ wandb login ***");
  EXPECT_EQ(Text("wandb login --relogin " + key + " && x"), "wandb login --relogin *** && x");
  EXPECT_EQ(Text("wandb.login(key=\"" + key + "\")"), "wandb.login(key=\"***\")");
  EXPECT_EQ(Text("export WANDB_API_KEY=" + key), "export WANDB_API_KEY=***");
  EXPECT_EQ(Text("WANDB_API_KEY = " + key), "WANDB_API_KEY = ***");
  EXPECT_EQ(Text("wandb login ok\ncommit " + key), "wandb login ok\ncommit " + key);
}

TEST(Redactor, TakesOutWhatSignsAnUrlOrOpensAStorage) {
  EXPECT_EQ(Text("AccountName=a;AccountKey=Zm9v+/YmFy==;EndpointSuffix=core"),
            "AccountName=a;AccountKey=***;EndpointSuffix=core");
  EXPECT_EQ(Text("SharedAccessSignature=sv=2021&sig=abc%2Fd%3D&se=9"),
            "SharedAccessSignature=***&sig=***&se=9");
  EXPECT_EQ(Text("https://a.blob.core.windows.net/c/f?sv=2021-01&sig=abc%2Fd%3D&sp=r"),
            "https://a.blob.core.windows.net/c/f?sv=2021-01&sig=***&sp=r");
  EXPECT_EQ(Text("GET https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4&X-Amz-Credential="
                 "AK%2F2026&X-Amz-Security-Token=IQoJ%2B&X-Amz-Expires=60&X-Amz-Signature=0a1b2c"),
            "GET https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4&X-Amz-Credential=***"
            "&X-Amz-Security-Token=***&X-Amz-Expires=60&X-Amz-Signature=***");
  EXPECT_EQ(Text("https://b.oss-cn.aliyuncs.com/k?OSSAccessKeyId=LTx&Expires=1&Signature=v%3D"),
            "https://b.oss-cn.aliyuncs.com/k?OSSAccessKeyId=***&Expires=1&Signature=***");
  EXPECT_EQ(Text("https://storage.googleapis.com/b?X-Goog-Signature=8af0"),
            "https://storage.googleapis.com/b?X-Goog-Signature=***");
  EXPECT_EQ(Text("postgresql://ann:p&a'ss@db:5432/x redis://:pw@h"),
            "postgresql://***@db:5432/x redis://***@h");
}

TEST(Redactor, TakesOutTheBodyOfAPrivateKey) {
  const std::string body = "MIIEowIBAAKCAQEAx3/Zo+abcdefGHIJKLmnopqrstuvWXYZ0123456789+/abcd";
  EXPECT_EQ(Text("k:\n-----BEGIN RSA PRIVATE KEY-----\n" + body +
                 "\nab==\n"
                 "-----END RSA PRIVATE KEY-----\nstep 1"),
            "k:\n-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----\nstep 1");
  // Line by line, as a log has it.
  Redactor lines;
  EXPECT_EQ(lines.Text(body), body);
  EXPECT_EQ(lines.Text("[rank0]: -----BEGIN OPENSSH PRIVATE KEY-----"),
            "[rank0]: -----BEGIN OPENSSH PRIVATE KEY-----");
  EXPECT_EQ(lines.Text("[rank0]: " + body), "[rank0]: ***");
  EXPECT_EQ(lines.Text("[rank1]: step 3 loss 2.5"), "[rank1]: step 3 loss 2.5");
  EXPECT_EQ(lines.Text(body), "***");
  EXPECT_EQ(lines.Text("-----END OPENSSH PRIVATE KEY-----"), "-----END OPENSSH PRIVATE KEY-----");
  EXPECT_EQ(lines.Text(body), body);
  EXPECT_EQ(Redactor().Json("[{\"text\":\"-----BEGIN PRIVATE KEY-----\\n" + body + "\\n\"}," +
                            "{\"t\":1,\"text\":\"" + body + "\"}]"),
            "[{\"text\":\"-----BEGIN PRIVATE KEY-----\\n***\\n\"},{\"t\":1,\"text\":\"***\"}]");
}

TEST(Redactor, LeavesHashesNamesAndFigures) {
  const std::string sha1 = "03ed6f30123456789abcdef0123456789abcdef0";
  for (const std::string& line : std::vector<std::string>{
           "commit " + sha1, "HEAD is now at " + sha1, sha1,
           "sha256:" + sha1 + "0123456789abcdef01234567", "wandb: run commit " + sha1,
           "login node at commit " + sha1, "md5 = d41d8cd98f00b204e9800998ecf8427e",
           "checkpoint hf_llama2_7b_chat_step1000 saved",
           "ASIA_dataset_v2_resnet50_224 and AKIAGE-2.0-large-set-v10",
           "AIza is no key, sigma=0.5 sig=0.25, design: 12",
           "input_signature=TensorSpec(shape=(3,)) signature: forward(x)",
           "loss per token: 2.34567891, loss_per_token = 2.34567891e-05",
           "Epoch: [0][ 10/100] loss: 2.3456 (2.4567) lr: 1.0e-05 eta: 1:02:03",
           "max_token = 512, tokens_per_second=123456.75", "-----BEGIN CERTIFICATE-----",
           "----- epoch 3 -----", "begin http://127.0.0.1:8080/x?step=3&loss=0.25 done"}) {
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
