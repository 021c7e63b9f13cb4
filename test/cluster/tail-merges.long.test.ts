import { afterEach, describe, expect, test } from "vitest";
import { rowsOf } from "../support/client.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { start, stopAll } from "./edge.test-kit.ts";
import { numbers, put, tail } from "./tail.test-kit.ts";

/** Live tails while merges move the rows, and after what they moved is deleted. */

afterEach(stopAll);

describe("merges", () => {
  test("show no row again, and rows that were merged meanwhile come in the order of their commits", async () => {
    const engine = await start({
      ENGINE_COMPACTION_POLL_SECS: "1",
      ENGINE_COMPACTION_MIN_EXTENTS: "2",
      ENGINE_COMPACTION_IDLE_SLEEP_MS: "0",
      ENGINE_STAGING_DISABLED: "true",
    });
    const first = await put(engine.url, numbers(0, 3));
    const client = await tail(engine.url, { query: { from: String(first - 1) } });
    await client.until(3);
    const middle = client.rows[1]?.id ?? "";
    for (let n = 3; n < 12; n += 3) await put(engine.url, numbers(n, 3));
    await client.until(12);
    await eventually(async () => {
      const [left] = await rowsOf(engine.url, "SELECT count(*) AS n FROM system.extents WHERE format = 'tlm'");
      return Number(left?.["n"]) <= 1;
    });
    await put(engine.url, numbers(12, 3));
    await client.until(15);
    const all = numbers(0, 15).map(({ n }) => String(n));
    expect(client.values("n")).toEqual(all);
    const again = await tail(engine.url, { headers: { "Last-Event-ID": middle } });
    await again.until(13);
    expect(again.values("n")).toEqual(all.slice(2));
    expect(again.rows.map(({ id }) => id)).toEqual(client.rows.slice(2).map(({ id }) => id));
  }, 120_000);
});

describe("what is gone for good", () => {
  test("ends a tail that would need it with 410; one that was told where it is goes on", async () => {
    const engine = await start({
      ENGINE_COMPACTION_POLL_SECS: "1",
      ENGINE_COMPACTION_MIN_EXTENTS: "2",
      ENGINE_COMPACTION_IDLE_SLEEP_MS: "0",
      ENGINE_STAGING_DISABLED: "true",
      ENGINE_PHYSICAL_GC_GRACE_SECS: "1",
      ENGINE_PHYSICAL_GC_POLL_SECS: "1",
    });
    const first = await put(engine.url, numbers(0, 1));
    const idle = await tail(engine.url, { query: { filter: "n = 'last'" } });
    for (let n = 1; n < 6; n++) await put(engine.url, numbers(n, 1));
    const refusal = async (headers: Record<string, string>) => {
      const answer = await fetch(`${engine.url}/v1/tail?table=t`, { headers, signal: AbortSignal.timeout(2_000) });
      const text = answer.status === 200 ? "" : await answer.text();
      return `${answer.status} ${/"code":"(\w+)"/.exec(text)?.[1]}`;
    };
    await eventually(
      async () => (await refusal({ "Last-Event-ID": `${first}.1` }).catch(() => "")) === "410 snapshot_expired",
      60_000,
    );
    // The rows that it left out moved its place on.
    await eventually(() => Number(idle.lastId.split(".")[0]) > first + 5);
    idle.leave();
    await put(engine.url, [{ n: "last" }, { n: "more" }]);
    const again = await tail(engine.url, {
      query: { filter: "n = 'last'" },
      headers: { "Last-Event-ID": idle.lastId },
    });
    await again.until(1);
    expect(again.values("n")).toEqual(["last"]);
  }, 180_000);
});
