import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  PutBucketPolicyCommand,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { findVersitygw, startVersitygw, type Versitygw } from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { ingest, ndjson, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";

/**
 * The rights that `terraform/modules/store` gives to servers are those of `docs/operations.md`; they are enough, and the
 * server lets them do no more.
 */

const USER = { accessKeyId: "engine", secretAccessKey: "engine-secret" };
const PREFIX = "here";

type Policy = { Version: string; Statement: Record<string, unknown>[] };

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8");

/** What the module writes for a bucket and a prefix. */
function givenPolicy(bucket: string, prefix: string): Policy {
  const text = read("terraform/modules/store/server-policy.json");
  const filled = text.replaceAll("${bucket_arn}", `arn:aws:s3:::${bucket}`).replaceAll("${prefix}", prefix);
  return JSON.parse(filled) as Policy;
}

/** The same for one user of the S3 server. */
function policyOfUser(bucket: string): Policy {
  const policy = givenPolicy(bucket, PREFIX);
  const Statement = policy.Statement.map((statement) => ({ ...statement, Principal: { AWS: [USER.accessKeyId] } }));
  return { ...policy, Statement };
}

test("the document shows the rights that Terraform gives", () => {
  const text = /^## Object store$.*?^```json\n(.*?)^```$/ms.exec(read("docs/operations.md"))?.[1] ?? "";
  expect(JSON.parse(text)).toEqual(givenPolicy("BUCKET", "PREFIX"));
});

describe.skipIf(lacks("S3 server"))("the policy", () => {
  let server: Versitygw;
  let bucket: string;
  const clients: S3Client[] = [];
  const clientOf = (credentials: typeof USER): S3Client => {
    const client = new S3Client({
      endpoint: server.endpoint,
      region: server.region,
      credentials,
      forcePathStyle: true,
    });
    clients.push(client);
    return client;
  };
  beforeAll(async () => {
    const program = (await findVersitygw()) ?? "";
    server = await startVersitygw(program);
    bucket = await server.makeBucket();
    const { accessKeyId, secretAccessKey } = server.credentials;
    const admin = ["--access", accessKeyId, "--secret", secretAccessKey, "--endpoint-url", server.endpoint];
    const user = ["--access", USER.accessKeyId, "--secret", USER.secretAccessKey, "--role", "user"];
    execFileSync(program, ["admin", ...admin, "create-user", ...user], { stdio: "pipe" });
    const root = clientOf(server.credentials);
    await root.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy: JSON.stringify(policyOfUser(bucket)) }));
    await root.send(new PutObjectCommand({ Bucket: bucket, Key: "elsewhere/secret", Body: "secret" }));
  });
  afterAll(async () => {
    for (const client of clients) client.destroy();
    await server.stop();
  });

  test("is enough to ingest, query, merge and delete", { timeout: 120_000 }, async () => {
    const { home, remove } = await temporaryHome();
    const engine = await startEngine({
      home,
      env: {
        ENGINE_OBJSTORE_ENDPOINT: server.endpoint,
        ENGINE_OBJSTORE_BUCKET: bucket,
        ENGINE_OBJSTORE_ACCESS_KEY_ID: USER.accessKeyId,
        ENGINE_OBJSTORE_SECRET_ACCESS_KEY: USER.secretAccessKey,
        ENGINE_PATH_PREFIX: PREFIX,
        ENGINE_COMPACTION_POLL_SECS: "1",
        ENGINE_COMPACTION_MIN_EXTENTS: "2",
        ENGINE_PHYSICAL_GC_POLL_SECS: "1",
        ENGINE_PHYSICAL_GC_GRACE_SECS: "0",
      },
    });
    for (let n = 0; n < 4; n++) {
      // Past what is kept inside of the catalog, so that each is an object.
      const rows = Array.from({ length: 2_000 }, (_, i) => ({ n, text: `${n} ${i} ${"x".repeat(100)}` }));
      expect((await ingest(engine.url, "t", ndjson(rows))).status).toBe(200);
    }
    const metric = async (name: string) => {
      const text = await (await fetch(`${engine.url}/metrics`)).text();
      return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
    };
    await eventually(async () => (await metric("engine_deleted_extents_total")) > 0);
    expect(await rowsOf(engine.url, "SELECT count(*) AS rows FROM t")).toEqual([{ rows: 8_000 }]);
    expect((await engine.stop()).code).toBe(0);
    await remove();
  });

  test.each([
    ["read", () => new GetObjectCommand({ Bucket: bucket, Key: "elsewhere/secret" })],
    ["write", () => new PutObjectCommand({ Bucket: bucket, Key: "elsewhere/new", Body: "x" })],
    ["delete", () => new DeleteObjectCommand({ Bucket: bucket, Key: "elsewhere/secret" })],
    ["change the policy", () => new PutBucketPolicyCommand({ Bucket: bucket, Policy: "{}" })],
  ])("does not let the engine's credentials %s outside of the prefix", async (_what, command) => {
    const refused = clientOf(USER).send(command() as GetObjectCommand);
    await expect(refused).rejects.toMatchObject({ name: "AccessDenied", $metadata: { httpStatusCode: 403 } });
  });
});
