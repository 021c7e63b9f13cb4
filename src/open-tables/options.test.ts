import { expect, test } from "vitest";
import { integer } from "../config/load-samples.test-kit.ts";
import { checkDefaults, checkSamples, failure, load } from "../config/option-samples.test-kit.ts";
import { OPEN_TABLE_OPTIONS } from "./options.ts";

const ROLE = "arn:aws:iam::123456789012:role/readers";

checkSamples(OPEN_TABLE_OPTIONS, {
  icebergCredentials: { one: ["none", "none"], two: ["NONE", "none"], bad: ["vended"], badToml: ["1"] },
  icebergAccessKeyId: { one: ["AKIA123", "AKIA123"], two: ["a", "a"], bad: ["a/b", "a,b"], badToml: ["1"] },
  icebergSecretAccessKey: { one: ["abc/DEF+1=", "abc/DEF+1="], two: ["s", "s"], bad: ["a b"], badToml: ["7"] },
  icebergRoleArn: {
    one: [ROLE, ROLE],
    two: ["arn:aws-us-gov:iam::1:role/a/b", "arn:aws-us-gov:iam::1:role/a/b"],
    bad: ["readers", "arn:aws:iam::1:role", `${ROLE} x`, `${ROLE}${"x".repeat(2_048)}`],
    badToml: ["1"],
  },
  icebergStsEndpoint: {
    one: ["https://sts.eu-west-1.amazonaws.com/", "https://sts.eu-west-1.amazonaws.com"],
    two: ["http://127.0.0.1:9000", "http://127.0.0.1:9000"],
    bad: ["sts.amazonaws.com", "ftp://h"],
    badToml: ["1"],
  },
  icebergHoldSecs: integer(0, 60, 0, 86_400),
});

checkDefaults(OPEN_TABLE_OPTIONS, {
  icebergCredentials: "none",
  icebergAccessKeyId: undefined,
  icebergSecretAccessKey: undefined,
  icebergRoleArn: undefined,
  icebergStsEndpoint: undefined,
  icebergHoldSecs: 3_600,
});

test("what is handed out has to be there", () => {
  const problemOf = (env: Record<string, string>) => failure(() => load({ env })).message;
  const [sts, bucket] = [{ ENGINE_ICEBERG_CREDENTIALS: "sts" }, { ENGINE_OBJSTORE_BUCKET: "bucket" }];
  const role = { ENGINE_ICEBERG_ROLE_ARN: ROLE };
  expect(problemOf({ ENGINE_ICEBERG_CREDENTIALS: "static" })).toBe(
    "ENGINE_ICEBERG_CREDENTIALS (static, ENGINE_ICEBERG_CREDENTIALS) needs ENGINE_ICEBERG_ACCESS_KEY_ID and ENGINE_ICEBERG_SECRET_ACCESS_KEY",
  );
  const local =
    "ENGINE_ICEBERG_CREDENTIALS (sts, ENGINE_ICEBERG_CREDENTIALS) is for an S3 store, and this server keeps its objects on a local disk";
  expect(problemOf({ ...sts, ...role })).toBe(local);
  expect(problemOf({ ...sts, ...role, ...bucket, ENGINE_LOCAL_MODE: "1" })).toBe(local);
  expect(problemOf({ ...sts, ...bucket })).toMatch(/ needs ENGINE_ICEBERG_ROLE_ARN$/);
  const plain = { ENGINE_ICEBERG_STS_ENDPOINT: "http://sts", ENGINE_OBJSTORE_ALLOW_HTTP: "0" };
  expect(problemOf({ ...sts, ...role, ...bucket, ...plain })).toMatch(
    /^ENGINE_ICEBERG_STS_ENDPOINT .* is without TLS, which ENGINE_OBJSTORE_ALLOW_HTTP .* forbids$/,
  );
  const { config } = load({ env: { ...sts, ...role, ...bucket, ENGINE_ICEBERG_STS_ENDPOINT: "http://sts" } });
  expect(config["icebergCredentials"]).toBe("sts");
});
