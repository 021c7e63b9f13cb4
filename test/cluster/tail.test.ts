import { readFileSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import type { TailClient } from "../api/tail.test-kit.ts";
import { rowsOf } from "../support/client.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { portOf, start, startEdge, stopAll } from "./edge.test-kit.ts";
import { numbers, put, tail } from "./tail.test-kit.ts";

/** Live tails of servers as processes of their own: through an edge, over a stop, and for clients that do not read. */

afterEach(stopAll);

describe("through an edge", () => {
  test("rows come as they are committed; a stop ends the tail, and the id goes on at the next server", async () => {
    const first = await start({ ENGINE_DRAIN_TIMEOUT_SECS: "20" });
    const edge = await startEdge([first.url]);
    await put(edge.url, numbers(0, 1));
    const client = await tail(edge.url);
    await put(edge.url, numbers(1, 2));
    await client.until(2);
    const stopped = first.stop();
    expect(await client.end()).toMatchObject({ event: "end", data: { code: "unavailable", reconnect: true } });
    expect(await stopped).toEqual({ code: 0, signal: null });
    const second = await start({}, portOf(first), first.home);
    await put(second.url, numbers(3, 2));
    let again: TailClient | undefined;
    await eventually(async () => {
      again = await tail(edge.url, { headers: { "Last-Event-ID": client.lastId } }).catch(() => undefined);
      return again !== undefined;
    });
    await again?.until(2);
    expect([...client.values("n"), ...(again?.values("n") ?? [])]).toEqual(["1", "2", "3", "4"]);
  }, 120_000);
});

const residentBytes = (pid: number) => Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096;
const MIB = 1024 * 1024;

describe("a client that does not read", () => {
  test("costs the server little, holds up nobody, and has all rows once it reads", async () => {
    const engine = await start({ ENGINE_COMPACTION_POLL_SECS: "0" });
    await put(engine.url, numbers(0, 1));
    const slow = await Promise.all(Array.from({ length: 16 }, () => tail(engine.url, { isPaused: true })));
    const quick = await tail(engine.url);
    const beforeBytes = residentBytes(engine.pid);
    const [batches, rows, text] = [40, 1_000, "x".repeat(1_000)];
    for (let batch = 0; batch < batches; batch++) {
      await put(
        engine.url,
        numbers(1 + batch * rows, rows).map(({ n }) => ({ n, text })),
      );
    }
    await quick.until(batches * rows, 60_000);
    // Each has some of the 40 MB in its sockets and one scan's rows; a server that kept what they did not read would
    // have 16 times 40 MB.
    expect(residentBytes(engine.pid) - beforeBytes).toBeLessThan(300 * MIB);
    const [reader, ...others] = slow;
    for (const client of others) client.leave();
    reader?.resume();
    await reader?.until(batches * rows, 60_000);
    expect(reader?.values("n")).toEqual(numbers(1, batches * rows).map(({ n }) => String(n)));
    expect(quick.rows.map(({ id }) => id)).toEqual(reader?.rows.map(({ id }) => id));
  }, 180_000);
});

describe("staged mode", () => {
  test("shows rows when they are committed, once", async () => {
    const engine = await start({ ENGINE_INGEST_MODE: "staged" });
    await put(engine.url, numbers(0, 1));
    await eventually(async () => (await rowsOf(engine.url, "SELECT 1 AS one FROM system.tables")).length > 0);
    await eventually(async () => (await fetch(`${engine.url}/v1/tail?table=t&from=999999999`)).status === 400);
    const client = await tail(engine.url, { query: { from: "0" } });
    for (let n = 1; n < 30; n++) await put(engine.url, numbers(n, 1));
    await client.until(30);
    expect(
      client
        .values("n")
        .map(Number)
        .toSorted((a, b) => a - b),
    ).toEqual(numbers(0, 30).map(({ n }) => n));
  }, 120_000);
});
