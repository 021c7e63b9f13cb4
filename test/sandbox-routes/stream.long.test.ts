import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { drawnRandom } from "../../src/core/drawn-seed.test-kit.ts";
import { line } from "../../src/sandbox/control/events/log.test-kit.ts";
import { EventClient, startLiveWorld, type LiveServer, type LiveWorld, type SeenEvent } from "./live.test-kit.ts";

let world: LiveWorld;
let server: LiveServer;
beforeAll(async () => {
  world = await startLiveWorld();
  server = await world.startServer();
});
afterAll(() => world.close());

const path = (id: string, rest = "stream") => `${server.url}/api/v1/sandboxes/${id}/${rest}`;
const lines = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => line(`line ${from + i}`));
const get = (url: string, headers: Record<string, string> = {}, by = "t") =>
  fetch(url, { headers: { Authorization: `Bearer ${by}`, ...headers } });
const isNumber = (seq: number) => (seen: SeenEvent) => seen.id === String(seq);

describe("the stream of a sandbox", () => {
  it("has the events of the specification, exactly", async () => {
    const id = await world.newSandbox();
    const client = await EventClient.open(path(id));
    const [connected] = await client.until(() => true);
    await world.append(id, [
      { type: "sandbox_state_changed", atMs: 1_700_000_000_000, data: { from: "creating", to: "running" } },
    ]);
    const [changed] = await client.until(() => true);
    const envelope = { sandbox_id: id, session_id: null };
    expect(connected).toEqual({
      id: undefined,
      event: { ...envelope, id: "", event_type: "connected", data: {}, timestamp: expect.stringMatching(/Z$/) },
    });
    expect(changed).toEqual({
      id: "1",
      event: {
        ...envelope,
        id: "1",
        event_type: "sandbox_state_changed",
        data: { from: "creating", to: "running" },
        timestamp: "2023-11-14T22:13:20.000Z",
      },
    });
    client.leave();
    await expect.poll(() => server.events.following).toBe(0);
  });

  it("goes on after forced disconnects at any byte, with nothing lost and nothing twice", async () => {
    const random = drawnRandom();
    const id = await world.newSandbox();
    const seen: SeenEvent[] = [];
    let written = 0;
    for (let i = 0; i < 50; i++) {
      const count = 1 + Math.floor(random.next() * 30);
      await world.append(id, lines(written + 1, written + count));
      written += count;
      const last = seen.at(-1)?.id;
      const url = i % 2 === 0 ? path(id) : path(id, `stream?last_event_id=${last}`);
      const resumed = last === undefined ? { url: path(id, "stream?from=start") } : { url };
      const headers: Record<string, string> = last !== undefined && i % 2 === 0 ? { "Last-Event-ID": last } : {};
      const client = await EventClient.open(resumed.url, { headers });
      const writing = world.append(id, lines(written + 1, written + 5));
      written += 5;
      // As much as is certain to come.
      const part = await client.take(30 + Math.floor(random.next() * 150 * Math.min(count, 8)));
      await writing;
      seen.push(...part.filter((one) => one.id !== undefined));
    }
    const client = await EventClient.open(path(id), { headers: { "Last-Event-ID": seen.at(-1)?.id ?? "0" } });
    seen.push(...(await client.until(isNumber(written))).filter((one) => one.id !== undefined));
    client.leave();
    expect(seen.map(({ event }) => event.data["line"])).toEqual(lines(1, written).map(({ data }) => data["line"]));
  });

  it("says what retention has cut, and refuses what is no number", async () => {
    const id = await world.newSandbox();
    await world.append(id, lines(1, 3));
    await world.catalog.records.transact([
      { sql: "DELETE FROM sandbox_events WHERE sandbox_id = ? AND seq < 3", values: [id] },
      { sql: "UPDATE sandboxes SET first_seq = 3, cut_bytes = 600 WHERE id = ?", values: [id] },
    ]);
    const client = await EventClient.open(path(id), { headers: { "Last-Event-ID": "0" } });
    const seen = await client.until(isNumber(3));
    client.leave();
    expect(seen.map((one) => [one.id, one.event.event_type, one.event.data["code"]])).toEqual([
      [undefined, "connected", undefined],
      [undefined, "error", "events_lost"],
      ["3", "log_line", undefined],
    ]);
    expect(seen[1]?.event.data).toMatchObject({ dropped_events: 2, log_dropped_bytes: 600 });
    // Also who asks for everything from the start.
    const eager = await EventClient.open(path(id, "stream?from=start"));
    const all = await eager.until(isNumber(3));
    eager.leave();
    expect(all.map((one) => one.event.data["dropped_events"])).toEqual([undefined, 2, undefined]);
    expect((await get(path(id), { "Last-Event-ID": "x" })).status).toBe(400);
    expect((await get(path(id), {}, "other")).status).toBe(404);
    expect((await get(path("nothing"))).status).toBe(404);
  });

  it("ends with the sandbox, and with the server, which asks its clients to come again elsewhere", async () => {
    const id = await world.newSandbox();
    const second = await world.startServer();
    const client = await EventClient.open(`${second.url}/api/v1/sandboxes/${id}/stream`);
    await client.until(() => true);
    second.events.close();
    const [reconnect, ...more] = await client.all();
    expect(reconnect).toMatchObject({ id: undefined, event: { event_type: "reconnect", data: { after_ms: 1_000 } } });
    expect(more).toEqual([]);
    const other = await EventClient.open(path(id));
    await world.append(id, lines(1, 1));
    await world.catalog.records.transact([
      { sql: "UPDATE sandboxes SET deleted_at_ms = 1 WHERE id = ?", values: [id] },
    ]);
    await world.catalog.signals.send("sandbox_events", id);
    expect((await other.all()).map((one) => one.event.event_type)).toEqual(["connected", "log_line"]);
    expect((await get(path(id))).status).toBe(404);
  });

  it("lets go of a client that does not read, and holds no more for it than a page", async () => {
    const id = await world.newSandbox();
    await world.append(
      id,
      Array.from({ length: 2_000 }, () => line("x".repeat(8_000))),
    );
    const paused = request(path(id, "stream?from=start"), { headers: { Authorization: "Bearer t" } });
    paused.on("response", (response) => response.pause());
    paused.on("error", () => undefined);
    paused.end();
    await expect.poll(() => server.events.following).toBe(1);
    await expect.poll(() => server.events.following, { timeout: 27_000, interval: 500 }).toBe(0);
    paused.destroy();
  });
});

describe("the log of a sandbox", () => {
  it("is text, NDJSON or events; the newest lines, then those that come", async () => {
    const id = await world.newSandbox();
    await world.append(id, [...lines(1, 150), { type: "stats", atMs: 1, data: {} }, line("a\nb\r\nc")]);
    const text = await (await get(path(id, "logs"))).text();
    expect(text.split("\n")).toEqual([...lines(52, 150).map(({ data }) => data["line"]), "a b c", ""]);
    const two = await get(path(id, "logs?tail=2"), { Accept: "application/x-ndjson" });
    expect(two.headers.get("content-type")).toBe("application/x-ndjson");
    expect(
      (await two.text())
        .trim()
        .split("\n")
        .map((one) => JSON.parse(one) as unknown),
    ).toEqual([
      { seq: 150, timestamp: "2023-11-14T22:13:20.000Z", stream: "stdout", line: "line 150" },
      { seq: 152, timestamp: "2023-11-14T22:13:20.000Z", stream: "stdout", line: "a\nb\r\nc" },
    ]);
    const followed = await get(path(id, "logs?tail=1&follow=true"));
    const reader = followed.body?.getReader();
    const next = async () => Buffer.from((await reader?.read())?.value ?? []).toString();
    expect(await next()).toBe("a b c\n");
    await world.append(id, [{ type: "stats", atMs: 1, data: {} }, line("later")]);
    expect(await next()).toBe("later\n");
    await reader?.cancel();
    const client = await EventClient.open(path(id, "logs?follow=true"), {
      headers: { Accept: "text/event-stream", "Last-Event-ID": "150" },
    });
    expect((await client.until(isNumber(154))).map((one) => one.id)).toEqual(["152", "154"]);
    client.leave();
    await expect.poll(() => server.events.following).toBe(0);
  });

  it("refuses what it does not know", async () => {
    const id = await world.newSandbox();
    expect((await get(path(id, "logs?tail=10001"))).status).toBe(400);
    expect((await get(path(id, "logs?follow=perhaps"))).status).toBe(400);
    expect((await get(path(id, "logs"), { Accept: "image/png" })).status).toBe(406);
    expect((await get(path(id, "logs"), {}, "other")).status).toBe(404);
    expect(await (await get(path(id, "logs?tail=0"))).text()).toBe("");
  });
});
