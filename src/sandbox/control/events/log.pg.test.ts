import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../core/gates.test-kit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "../../../catalog/postgres/postgres.test-kit.ts";
import { systemClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import { drawnRandom } from "../../../core/drawn-seed.test-kit.ts";
import { SandboxSignals } from "../signals.ts";
import { SandboxEvents } from "./log.ts";
import { addSandboxRow, appendEvents, line } from "./log.test-kit.ts";
import { createEventRetention } from "./retention.ts";

const ID = "0198a000-0000-7000-8000-000000000001";

type Process = Awaited<ReturnType<typeof startProcess>>;

/** A process of a cluster, as far as logs go. */
async function startProcess(url: string) {
  const catalog = await openTestCatalog(url);
  const { records } = catalog;
  const signals = new SandboxSignals({ signals: catalog.signals, log: silentLog });
  const events = new SandboxEvents({ records, signals, clock: systemClock, log: silentLog });
  const append = async (count: number, from: number) => {
    await appendEvents(
      records,
      ID,
      Array.from({ length: count }, (_, i) => line(`line ${from + i}`, systemClock.nowMs())),
    );
    signals.eventsAdded(ID);
  };
  const close = async () => {
    events.close();
    await catalog.close();
  };
  return { records, events, append, close };
}

describe.skipIf(lacks("PostgreSQL"))("PostgreSQL", () => {
  let server: TestDatabases;
  let processes: [Process, Process];
  beforeAll(async () => {
    server = await sharedTestServer();
    const url = await server.createDatabase();
    processes = [await startProcess(url), await startProcess(url)];
    await addSandboxRow(processes[0].records, ID);
  });
  afterAll(async () => {
    for (const one of processes) await one.close();
    await server.stop();
  }, 120_000);

  it("one who goes from process to process while events come loses none and gets none twice", async () => {
    const [writer, other] = processes;
    const random = drawnRandom();
    const seqs: number[] = [];
    let written = 0;
    for (let i = 0; i < 50; i++) {
      const writing = writer.append(10, written + 1);
      written += 10;
      const at = i % 2 === 0 ? other : writer;
      const follower = await at.events.follow(ID, { afterSeq: seqs.at(-1) ?? 0 });
      for (let wanted = 1 + Math.floor(random.next() * 10); wanted > 0; wanted--) {
        const { value } = await follower.next();
        if (value?.type !== "event") throw new Error(`got ${value?.type}`);
        seqs.push(value.event.seq);
      }
      await follower.return();
      await writing;
    }
    const rest = await other.events.follow(ID, { afterSeq: seqs.at(-1) ?? 0 });
    while (seqs.at(-1) !== written) {
      const { value } = await rest.next();
      if (value?.type === "event") seqs.push(value.event.seq);
    }
    await rest.return();
    expect(seqs).toEqual(Array.from({ length: written }, (_, i) => i + 1));
  });

  it("what retention cuts is told by every process", async () => {
    const [writer, other] = processes;
    const retain = createEventRetention(writer.records, { mostEvents: 7, quotaBytes: 1e9, maxAgeMs: 3_600_000 });
    await retain({ signal: new AbortController().signal });
    const follower = await other.events.follow(ID, { afterSeq: 1 });
    expect(await follower.next()).toMatchObject({ value: { type: "lost", nextSeq: 494 } });
    expect(await follower.next()).toMatchObject({ value: { event: { seq: 494 } } });
    await follower.return();
  });
});
