import { hostname } from "node:os";
import { expect, it } from "vitest";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../../core/clock.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { silentLog } from "../../../core/log.ts";
import { systemRandom } from "../../../core/random.ts";
import { advertisedUrl } from "../../../config/advertised-url.ts";
import { Gateways } from "./gateways.ts";

const settle = () => new Promise((resolve) => setImmediate(resolve));

it("every process finds the others, until they leave or have been silent for too long", async () => {
  const clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  const newId = uuidV7Source(clock, systemRandom);
  const { records } = catalog;
  const open = (url: string | undefined) => new Gateways({ records, url, clock, newId, log: silentLog });
  const [a, b, hidden] = [open("http://a"), open("http://b"), open(undefined)];
  for (const one of [a, b, hidden]) await one.run();
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      clock.advance(1_000);
      for (let i = 0; i < 5; i++) await settle();
    }
  };
  await pass(4_000);
  expect([a.urls, a.others]).toEqual([["http://a", "http://b"], ["http://b"]]);
  expect([hidden.urls, hidden.others]).toEqual([
    ["http://a", "http://b"],
    ["http://a", "http://b"],
  ]);
  // Another process at an address that is known is one gateway.
  const again = open("http://a");
  await again.run();
  await pass(4_000);
  expect(b.urls).toEqual(["http://b", "http://a"].toSorted());
  await a.stop();
  await again.stop();
  await pass(4_000);
  expect(b.urls).toEqual(["http://b"]);
  // What was killed leaves its row; it is not counted for long, and removed in the end.
  await records.write({
    sql: "INSERT INTO sandbox_gateways (id, url, seen_at_ms) VALUES ('dead', 'http://dead', ?)",
    values: [clock.nowMs()],
  });
  await pass(4_000);
  expect(b.urls).toContain("http://dead");
  await pass(12_000);
  expect(b.urls).toEqual(["http://b"]);
  await pass(60_000);
  expect(await records.rows("SELECT id FROM sandbox_gateways", [])).toHaveLength(1);
  await b.drain();
  await b.stop();
  await hidden.stop();
  expect(await records.rows("SELECT id FROM sandbox_gateways", [])).toEqual([]);
  await catalog.close();
});

it.each([
  [{ host: "10.0.0.7", port: 8080 }, false, "http://10.0.0.7:8080"],
  [{ host: "::1", port: 1 }, true, "https://[::1]:1"],
  [{ host: "0.0.0.0", port: 8080 }, true, `https://${hostname()}:8080`],
  [{ host: "127.0.0.1", port: 0 }, false, undefined],
])("the address of one that listens at %j", (listen, isTls, url) => {
  expect(advertisedUrl(listen, isTls)).toBe(url);
});
