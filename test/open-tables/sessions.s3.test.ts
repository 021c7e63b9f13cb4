import { execFileSync } from "node:child_process";
import {
  GetObjectCommand,
  ListObjectsV2Command,
  PutBucketPolicyCommand,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { readPolicy } from "../../src/open-tables/sessions.ts";
import { freePort } from "../../src/core/waiting.test-kit.ts";
import { storeEnvironment } from "../../src/io/objectstore/s3/s3.test-kit.ts";
import {
  findVersitygw,
  sharedVersitygw,
  startVersitygw,
  type Versitygw,
} from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { CalledServices, type Json } from "../api/services.test-kit.ts";
import { ndjson } from "../support/client.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";
import { findReaders, startReaders } from "./readers.test-kit.ts";
import {
  findMoto,
  refusal,
  startMoto,
  startTokenService,
  type Moto,
  type TokenService,
} from "./token-service.test-kit.ts";

/** Clients of the Iceberg catalog that are given a session for the table that they load. */

const ROLE = "arn:aws:iam::123456789012:role/readers";
const ASKING = { "X-Iceberg-Access-Delegation": "vended-credentials" };
const CALLERS = [
  ["admin", "admin"],
  ["reader", "read"],
] as const;

type Services = CalledServices<"admin" | "reader" | "limited">;
type Given = {
  config: Record<string, string>;
  "storage-credentials"?: { prefix: string }[];
  metadata: { location: string };
};

async function startServices(env: Record<string, string>): Promise<Services> {
  const services: Services = await CalledServices.start(CALLERS, { ENGINE_WRITE_FORMAT: "parquet", ...env });
  await services.limit("limited", "read", ["seen"], "admin");
  // What makes a table is published with its first merge, so there are two.
  for (const [database, table] of [
    ["seen", "t"],
    ["seen", "u"],
    ["hidden", "t"],
  ] as const) {
    for (const body of ["a", "b"]) {
      const headers = { "X-Database": database, "X-Table": table, "Content-Type": "application/x-ndjson" };
      const answer = await services.send("admin", "POST", "/v1/ingest", ndjson([{ body }]), headers);
      expect(answer.status).toBe(200);
    }
  }
  return services;
}

const moto = findMoto();

describe.skipIf(lacks("S3 server") || moto === undefined)("as moto gives them", () => {
  let s3: Versitygw;
  let bucket: string;
  let behind: Moto;
  let tokens: TokenService;
  let services: Services;

  beforeAll(async () => {
    [s3, behind] = await Promise.all([sharedVersitygw(), startMoto(moto ?? "")]);
    bucket = await s3.makeBucket();
    tokens = await startTokenService(() => Promise.resolve(undefined), behind);
    services = await startServices({
      ...storeEnvironment(s3, bucket),
      ENGINE_ICEBERG_CREDENTIALS: "sts",
      ENGINE_ICEBERG_ROLE_ARN: ROLE,
      ENGINE_ICEBERG_STS_ENDPOINT: tokens.endpoint,
    });
  }, 120_000);
  beforeEach(() => void tokens.asked.splice(0));
  afterEach(() => void (tokens.answer = () => Promise.resolve(undefined)));
  afterAll(async () => {
    await services?.close();
    await Promise.all([tokens?.stop(), behind?.stop()]);
    await s3?.stop();
  });

  const load = (path: string, headers: Record<string, string> = ASKING, who: "reader" | "limited" = "reader") =>
    services.send(who, "GET", `/iceberg/v1/namespaces/${path}`, undefined, headers);
  const given = async (path: string) => (await (await load(path)).json()) as Given;

  test("whoever does not ask gets no keys, and the service is not asked for any", async () => {
    const answer = await load("seen/tables/t", {});
    const { config, ...rest } = (await answer.json()) as Given;
    expect(Object.keys(config).filter((name) => /key|token/.test(name))).toEqual([]);
    expect(rest).not.toHaveProperty("storage-credentials");
    await load("hidden/tables/t", ASKING, "limited");
    await services.send("reader", "HEAD", "/iceberg/v1/namespaces/seen/tables/t", undefined, ASKING);
    expect(tokens.asked).toEqual([]);
    const { defaults } = await services.json("reader", "GET", "/iceberg/v1/config");
    expect(defaults).toMatchObject({ "header.X-Iceberg-Access-Delegation": "vended-credentials" });
  });

  test("a session is for one table, for an hour, and asked for with the server's own keys", async () => {
    const answer = await load("seen/tables/t");
    expect([answer.status, answer.headers.get("cache-control")]).toEqual([200, "no-store"]);
    const { config, metadata, "storage-credentials": credentials } = (await answer.json()) as Given;
    expect(config).toMatchObject({
      "s3.access-key-id": expect.stringMatching(/^ASIA/) as string,
      "s3.secret-access-key": expect.stringMatching(/./) as string,
      "s3.session-token": expect.stringMatching(/./) as string,
      "s3.endpoint": s3.endpoint,
    });
    const leftMs = Number(config["s3.session-token-expires-at-ms"]) - Date.now();
    expect(leftMs).toBeGreaterThan(3_500_000);
    expect(leftMs).toBeLessThanOrEqual(3_600_000);
    const places = [`s3://${bucket}/engine/seen/t/`, `${metadata.location}/`];
    expect(credentials).toEqual(places.map((prefix) => ({ prefix, config })));
    const [{ params, signedBy } = { params: {}, signedBy: "" }] = tokens.asked;
    expect(tokens.asked).toHaveLength(1);
    expect(signedBy).toBe(s3.credentials.accessKeyId);
    expect(params).toMatchObject({ Action: "AssumeRole", RoleArn: ROLE, DurationSeconds: "3600" });
    expect(JSON.parse(String(params["Policy"]))).toEqual({
      Version: "2012-10-17",
      Statement: [
        {
          Effect: "Allow",
          Action: ["s3:GetObject"],
          Resource: places.map((place) => `arn:aws:s3:::${place.slice("s3://".length)}*`),
        },
      ],
    });
  });

  test("a session is shared by all who load the table, and the audit log says who had it", async () => {
    const first = await given("seen/tables/t");
    const asked = tokens.asked.length;
    const all = await Promise.all([given("seen/tables/t"), given("seen/tables/t"), given("hidden/tables/t")]);
    const keyOf = ({ config }: Given) => config["s3.access-key-id"];
    expect(all.slice(0, 2).map(keyOf)).toEqual([keyOf(first), keyOf(first)]);
    expect(keyOf(all[2] ?? first)).not.toBe(keyOf(first));
    expect(tokens.asked.length).toBeLessThanOrEqual(asked + 1);
    const { entries } = await services.json(
      "admin",
      "GET",
      "/v1/admin/audit?action=iceberg.credentials&target=hidden.t",
    );
    expect(entries).toMatchObject([
      {
        target: "hidden.t",
        outcome: "ok",
        details: { access_key_id: keyOf(all[2] ?? first), expires_at: expect.stringMatching(/^20/) as string },
      },
    ]);
    expect(JSON.stringify(entries)).not.toContain(all[2]?.config["s3.session-token"]);
  });

  test("a table that has not changed is not sent again to who has its keys, and is to who has none", async () => {
    const tag = (answer: Response) => answer.headers.get("etag") ?? "";
    const without = tag(await load("seen/tables/t", {}));
    const withKeys = tag(await load("seen/tables/t"));
    const status = async (etag: string) => (await load("seen/tables/t", { ...ASKING, "If-None-Match": etag })).status;
    expect([await status(withKeys), await status(without)]).toEqual([304, 200]);
  });

  test("a service that gives none is told in the protocol's own form, and asked again by the next one", async () => {
    for (const [said, brief] of [
      [refusal(403, "AccessDenied"), "AccessDenied, HTTP 403"],
      [{ status: 200, body: "<AssumeRoleResponse></AssumeRoleResponse>" }, ".*"],
      [{ status: 502, body: "<html>bad gateway</html>" }, ".*502.*"],
    ] as const) {
      tokens.answer = () => Promise.resolve(said);
      const answer = await load("seen/tables/u");
      const { error } = (await answer.json()) as { error: Json };
      expect([brief, answer.status, error]).toEqual([
        brief,
        503,
        {
          code: 503,
          type: "ServiceUnavailableException",
          message: expect.stringMatching(
            new RegExp(`^there are no keys for table "seen.u" now \\(${brief}\\); try again$`),
          ) as string,
        },
      ]);
      expect(JSON.stringify(error)).not.toContain("arn:");
    }
    // Those who bring their own keys do not need one.
    expect((await load("seen/tables/u", {})).status).toBe(200);
    tokens.answer = () => Promise.resolve(undefined);
    expect((await load("seen/tables/u")).status).toBe(200);
  });
});

test.skipIf(lacks("S3 server"))("the program itself has the client of the token service", async () => {
  const s3 = await sharedVersitygw();
  const { home, remove } = await temporaryHome();
  const env = {
    ...storeEnvironment(s3, await s3.makeBucket()),
    ENGINE_ICEBERG_CREDENTIALS: "sts",
    ENGINE_ICEBERG_ROLE_ARN: ROLE,
    ENGINE_ICEBERG_STS_ENDPOINT: `http://127.0.0.1:${await freePort()}`,
  };
  const engine = await startEngine({ home, env });
  try {
    expect((await fetch(`${engine.url}/v1/admin/databases/d/tables/t`, { method: "POST" })).status).toBe(200);
    const answer = await fetch(`${engine.url}/iceberg/v1/namespaces/d/tables/t`, { headers: ASKING });
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining("(ECONNREFUSED)")]);
  } finally {
    await engine.stop();
    await remove();
    await s3.stop();
  }
});

const { python, isThere } = findReaders();

/**
 * The S3 server of the tests refuses session tokens, but enforces the policy of a bucket for one of its users: so the user's
 * keys are handed out, with what a session would be limited to.
 */
describe.skipIf(lacks("S3 server") || !isThere)("with a policy that is enforced", () => {
  const READER = { accessKeyId: "reader", secretAccessKey: "reader-secret" };
  let s3: Versitygw;
  let bucket: string;
  let services: Services;
  let root: S3Client;
  let reader: S3Client;

  beforeAll(async () => {
    const program = (await findVersitygw()) ?? "";
    s3 = await startVersitygw(program);
    bucket = await s3.makeBucket();
    const { accessKeyId, secretAccessKey } = s3.credentials;
    const admin = ["--access", accessKeyId, "--secret", secretAccessKey, "--endpoint-url", s3.endpoint];
    const user = ["--access", READER.accessKeyId, "--secret", READER.secretAccessKey, "--role", "user"];
    execFileSync(program, ["admin", ...admin, "create-user", ...user], { stdio: "pipe" });
    const of = { endpoint: s3.endpoint, region: s3.region, forcePathStyle: true };
    root = new S3Client({ ...of, credentials: s3.credentials });
    reader = new S3Client({ ...of, credentials: READER });
    services = await startServices({
      ...storeEnvironment(s3, bucket),
      ENGINE_ICEBERG_CREDENTIALS: "static",
      ENGINE_ICEBERG_ACCESS_KEY_ID: READER.accessKeyId,
      ENGINE_ICEBERG_SECRET_ACCESS_KEY: READER.secretAccessKey,
    });
  }, 120_000);
  afterAll(async () => {
    root?.destroy();
    reader?.destroy();
    await services?.close();
    await s3?.stop();
  });

  /** Limits the reader to what a session for the table would be limited to. */
  async function limitTo(path: string): Promise<void> {
    const loaded = await services.json("reader", "GET", `/iceberg/v1/namespaces/${path}`, undefined, ASKING);
    const places = (loaded as unknown as Given)["storage-credentials"] ?? [];
    const policy = JSON.parse(
      readPolicy(
        places.map(({ prefix }) => prefix),
        "aws",
      ),
    ) as { Statement: object[] };
    const Statement = policy.Statement.map((own) => ({ ...own, Principal: { AWS: [READER.accessKeyId] } }));
    await root.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy: JSON.stringify({ ...policy, Statement }) }));
  }

  const CASES = [
    { client: "pyiceberg", path: "seen/tables/t", table: "seen.t", other: "seen.u", own: "engine/seen/t/" },
    { client: "duckdb", path: "seen/tables/u", table: "seen.u", other: "hidden.t", own: "engine/seen/u/" },
  ] as const;

  test.for(CASES)(
    "$client reads the table, and the keys open no other",
    async ({ client, path, table, other, own }) => {
      const token = services.tokens.get("reader") ?? "";
      const readers = startReaders(python, services.url, token, { delegation: "vended_credentials" });
      const sql = "SELECT count(*) FROM t";
      await limitTo(path);
      try {
        expect(await readers.ask({ client, table, sql })).toEqual({ rows: [[1]] });
        expect(await readers.ask({ client, table: other, sql })).toHaveProperty("error");
      } finally {
        readers.close();
      }
      const keys: string[] = [];
      for (const Prefix of ["engine/seen/", "engine/hidden/"]) {
        const { Contents = [] } = await root.send(new ListObjectsV2Command({ Bucket: bucket, Prefix }));
        keys.push(...Contents.map(({ Key = "" }) => Key));
      }
      expect(keys.length).toBe(6);
      for (const Key of keys) {
        const reading = reader.send(new GetObjectCommand({ Bucket: bucket, Key }));
        const outcome = await reading.then(
          () => "read",
          (error: Error) => error.name,
        );
        expect([Key, outcome]).toEqual([Key, Key.startsWith(own) ? "read" : "AccessDenied"]);
      }
      const put = reader.send(new PutObjectCommand({ Bucket: bucket, Key: `${own}x.parquet`, Body: "x" }));
      await expect(put).rejects.toMatchObject({ name: "AccessDenied" });
      const list = reader.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: own }));
      await expect(list).rejects.toMatchObject({ name: "AccessDenied" });
    },
  );
});
