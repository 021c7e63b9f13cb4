import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { runHere } from "../../src/cli/cli.test-kit.ts";
import { CLIENTS, configurationOf, type ServerFacts } from "../../src/open-tables/commands/client-texts.ts";
import { CalledServices } from "../api/services.test-kit.ts";

const DOCUMENT = await readFile(new URL("../../docs/open-tables.md", import.meta.url), "utf8");
const LOCAL: ServerFacts = { url: "http://127.0.0.1:7777", givesKeys: false };
const BUCKET = { endpoint: "http://127.0.0.1:9000", region: "us-east-1", pathStyle: true };

test.each(CLIENTS)("the configuration of %s is in the documents as the command prints it", (client) => {
  const facts = client === "clickhouse" ? { ...LOCAL, givesKeys: true, s3: BUCKET } : LOCAL;
  expect(DOCUMENT).toContain(configurationOf(client, facts));
});

test("what a bucket needs is said, and no secret", () => {
  const texts = CLIENTS.map((client) => configurationOf(client, { ...LOCAL, s3: BUCKET }));
  for (const text of texts) expect(text).toMatch(/KEY[\s\S]*SECRET/);
  const [spark = "", trino, duckdb] = texts;
  expect(spark).toContain("s3.access-key-id");
  expect(trino).toContain("s3.endpoint=http://127.0.0.1:9000");
  expect(duckdb).toContain("ENDPOINT '127.0.0.1:9000', USE_SSL false, URL_STYLE 'path'");
  const given = configurationOf("duckdb", { ...LOCAL, s3: BUCKET, givesKeys: true });
  expect(given).not.toContain("KEY");
  expect(given).not.toContain("ACCESS_DELEGATION_MODE");
});

test("the command asks the server what its store is", async () => {
  const services = await CalledServices.start([["reader", "read"]] as const);
  try {
    const to = ["--server", services.url, "--token", services.tokens.get("reader") ?? ""];
    const { code, stdout } = await runHere(["open", "pyiceberg", ...to]);
    expect([code, stdout]).toEqual([0, `${configurationOf("pyiceberg", { url: services.url, givesKeys: false })}\n`]);
    const refused = await runHere(["open", "clickhouse", ...to]);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("reads Iceberg tables from S3 alone")]);
    const unknown = await runHere(["open", "excel", ...to]);
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("Allowed choices are spark, trino")]);
  } finally {
    await services.close();
  }
}, 60_000);
