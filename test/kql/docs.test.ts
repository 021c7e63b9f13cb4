import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ingest } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { kqlRows } from "./ask.test-kit.ts";

/** The examples of `docs/kql.md`, over a table as OTLP makes it. */
const TEXT = readFileSync(new URL("../../docs/kql.md", import.meta.url), "utf8");
const EXAMPLES = [...TEXT.matchAll(/```kql\n(.*?)```/gs)].map(([, text = ""]) => text.trim());

let engine: Engine;
let removeHome: () => Promise<void>;

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home });
  const now = Date.now();
  const rows = Array.from({ length: 60 }, (_, i) => {
    const isError = i % 3 === 0;
    return JSON.stringify({
      at: new Date(now - i * 50_000).toISOString(),
      body: isError ? `timeout of request ${i}` : `request ${i} of /api/${i % 4} took ${i}.5 ms in all`,
      severity_number: isError ? 17 : 9,
      severity_text: isError ? "ERROR" : "INFO",
      trace_id: i % 10 < 4 ? "4bf92f3577b34da6a3ce929d0e0e4736" : `trace ${i}`,
      service_name: ["shop", "auth"][i % 2],
      attributes: { "http.status_code": isError ? 500 : 200, duration_ms: i + 0.5 },
    });
  });
  const columns = { "X-Engine-Infer-Types": "true" };
  const { status, text } = await ingest(engine.url, "otel_logs", rows.join("\n"), columns);
  if (status !== 200) throw new Error(text);
});
afterAll(async () => {
  await engine?.stop();
  await removeHome();
});

test("there are ten", () => {
  expect(EXAMPLES).toHaveLength(10);
});

test.each(EXAMPLES)("%s", async (text) => {
  const rows = await kqlRows(engine.url, text);
  expect(rows.length).toBeGreaterThan(0);
  expect(rows.every((row) => Object.values(row).some((value) => value !== null && value !== ""))).toBe(true);
});
