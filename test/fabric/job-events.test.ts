import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { FABRIC_LIMITS } from "../../src/fabric/limits.ts";
import type { Hold } from "../../src/fabric/job.ts";
import { startJobsApi, type JobsApi } from "./jobs.test-kit.ts";

type Event = { event: string; id: string | undefined; data: Record<string, unknown> };

let api: JobsApi;
let worker: { id: string; token: string };
let streams: Stream[] = [];
beforeEach(async () => {
  api = await startJobsApi();
  worker = await api.newWorker();
});
afterEach(async () => {
  for (const stream of streams.splice(0)) stream.leave();
  await api.close();
});

/** A client of the stream; time goes on while it waits. */
class Stream {
  readonly #leaving = new AbortController();
  #text = "";
  #isOver = false;
  headers = new Headers();

  static async open(
    id: string,
    { headers = {}, query = "" }: { headers?: Record<string, string>; query?: string } = {},
  ) {
    const stream = new Stream();
    streams.push(stream);
    const response = await fetch(`${api.url}/v1/jobs/${id}/events${query}`, {
      headers: { Authorization: "Bearer ops", ...headers },
      signal: stream.#leaving.signal,
    });
    if (response.status !== 200) throw new Error(`the stream was answered with ${response.status}`);
    stream.headers = response.headers;
    void stream.#read(response);
    return stream;
  }

  async #read(response: Response): Promise<void> {
    try {
      for await (const piece of response.body ?? []) this.#text += Buffer.from(piece).toString("utf8");
      this.#isOver = true;
    } catch {
      // The client left, or the server tore the connection; then it is not over.
    }
  }

  get text(): string {
    return this.#text;
  }

  get events(): Event[] {
    return [...this.#text.matchAll(/^event: (\w+)\n(?:id: (\w+)\n)?data: (.*)\n\n/gm)].map(
      ([, event = "", id, data]) => ({
        event,
        id,
        data: JSON.parse(data ?? "") as Record<string, unknown>,
      }),
    );
  }

  /** Until there are so many events; none comes by itself while the clock stands. */
  async until(count: number): Promise<Event[]> {
    await eventually(() => {
      api.clock.advance(100);
      return this.events.length >= count;
    });
    return this.events;
  }

  async end(): Promise<Event[]> {
    await eventually(() => {
      api.clock.advance(100);
      return this.#isOver;
    });
    return this.events;
  }

  leave(): void {
    this.#leaving.abort();
  }
}

async function running(): Promise<Hold> {
  const jobId = await api.newJob();
  const [job] = await api.claim(worker.token);
  if (job === undefined) throw new Error("there was no job");
  return { jobId, holder: worker.id, fence: job.fence };
}
const say = (hold: Hold, ...messages: string[]) =>
  api.logs.append(
    hold,
    messages.map((message) => ({ level: "info", message })),
  );
const namesOf = (events: readonly Event[]) =>
  events.map(({ event, id }) => (id === undefined ? event : `${event} ${id}`));

describe("the events of a job", () => {
  it("begin with its state, then come as things happen, to the end", async () => {
    const jobId = await api.newJob();
    const stream = await Stream.open(jobId);
    expect(stream.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(stream.headers.get("cache-control")).toBe("no-store");
    expect(await stream.until(1)).toMatchObject([
      { event: "state", data: { status: "queued", attempt: 0, holder: null } },
    ]);
    const [job] = await api.claim(worker.token);
    const hold = { jobId, holder: worker.id, fence: job?.fence ?? 0 };
    await stream.until(2);
    await say(hold, "one", "two\nlines");
    await stream.until(4);
    await api.fabric.progress(hold, { done: 5 });
    await stream.until(5);
    await say(hold, "three");
    await api.fabric.complete(hold, { rows: 1 });
    const events = await stream.end();
    expect(namesOf(events)).toEqual(["state", "state", "log 1", "log 2", "state", "log 3", "state", "end"]);
    expect(events[1]?.data).toMatchObject({ status: "leased", attempt: 1, holder: worker.id });
    expect(events[3]?.data).toEqual({ at: expect.stringMatching(/^20.*Z$/), level: "info", message: "two\nlines" });
    expect(events[4]?.data).toMatchObject({ status: "leased", progress: { done: 5 } });
    expect(events[6]?.data).toMatchObject({ status: "done", error: null, finished_at: expect.any(String) });
    expect(events[7]?.data).toEqual({ status: "done" });
    expect(stream.text.startsWith("retry: 1000\n\n")).toBe(true);
  });

  it("of a finished job are all that there is, at once", async () => {
    const hold = await running();
    for (let i = 0; i < 7; i++) await say(hold, ...Array.from({ length: 100 }, () => "x"));
    await api.fabric.fail(hold, { error: "broken" });
    const stream = await Stream.open(hold.jobId);
    await expect.poll(() => stream.events.at(-1)).toMatchObject({ event: "end", data: { status: "failed" } });
    expect(stream.events[0]).toMatchObject({ event: "state", data: { status: "failed", error: "broken" } });
    expect(namesOf(stream.events.slice(1, -1))).toEqual(Array.from({ length: 700 }, (_, i) => `log ${i + 1}`));
  });

  it("go on where a client lost the connection, without loss or doubling", async () => {
    const hold = await running();
    await say(hold, "a", "b", "c");
    const first = await Stream.open(hold.jobId);
    await first.until(4);
    first.leave();
    await expect.poll(() => api.jobEvents.watching).toBe(0);
    await say(hold, "d");
    const again = await Stream.open(hold.jobId, { headers: { "Last-Event-ID": "3" }, query: "?after=1" });
    await again.until(2);
    await say(hold, "e");
    await api.fabric.complete(hold, null);
    expect(namesOf(await again.end())).toEqual(["state", "log 4", "log 5", "state", "end"]);
    const after = await Stream.open(hold.jobId, { query: "?after=4" });
    expect(namesOf(await after.end())).toEqual(["state", "log 5", "end"]);
  });

  it("come to all who watch, though a job is retried in between", async () => {
    const hold = await running();
    const all = await Promise.all([0, 1, 2].map(() => Stream.open(hold.jobId)));
    for (const stream of all) await stream.until(1);
    await api.fabric.fail(hold, { error: "again", retryable: true, retryAfterMs: 0 });
    for (const stream of all) await stream.until(2);
    await api.fabric.cancel(hold.jobId);
    for (const stream of all) {
      const events = await stream.end();
      expect(events.map(({ data }) => data["status"])).toEqual(["leased", "queued", "cancelled", "cancelled"]);
    }
    expect(api.jobEvents.watching).toBe(0);
  });

  it("are kept alive by comments while nothing happens", async () => {
    const hold = await running();
    const stream = await Stream.open(hold.jobId);
    await stream.until(1);
    await expect
      .poll(() => {
        api.clock.advance(5_000);
        return stream.text;
      })
      .toMatch(/\n\n: keep-alive\n\n: keep-alive\n\n/);
    expect(stream.events).toHaveLength(1);
  });

  it("end after an hour, and when the server stops, for clients to come again", async () => {
    const hold = await running();
    const old = await Stream.open(hold.jobId);
    await old.until(1);
    api.clock.advance(3_600_000);
    expect(namesOf(await old.end())).toEqual(["state"]);
    const young = await Stream.open(hold.jobId);
    await young.until(1);
    api.jobEvents.close();
    expect(namesOf(await young.end())).toEqual(["state"]);
    const { status } = await api.call("GET", `/v1/jobs/${hold.jobId}/events`, { by: "ops" });
    expect(status).toBe(503);
  });

  it("are only for those who may see the job, and for so many", async () => {
    const id = await api.newJob({ database: "b" });
    const ask = (by: string, path = id) => api.call("GET", `/v1/jobs/${path}/events`, { by });
    expect((await ask("limited")).status).toBe(404);
    expect((await ask("ops", "nothing")).status).toBe(404);
    expect((await ask("reader")).status).toBe(403);
    expect((await ask(worker.token)).status).toBe(401);
    const bad = await api.call("GET", `/v1/jobs/${id}/events`, { by: "ops", headers: { "Last-Event-ID": "x" } });
    expect([bad.status, bad.code]).toEqual([400, "invalid_header"]);
    const watched = Array.from({ length: FABRIC_LIMITS.watchers }, () => api.jobEvents.watch(id, 0));
    expect(await ask("ops")).toMatchObject({ status: 429, code: "too_many_requests" });
    for (const watcher of watched) await watcher.return?.();
    expect(api.jobEvents.watching).toBe(0);
    const head = await fetch(`${api.url}/v1/jobs/${id}/events`, {
      method: "HEAD",
      headers: { Authorization: "Bearer ops" },
    });
    expect(head.status).toBe(200);
    expect(api.jobEvents.watching).toBe(0);
  });
});
