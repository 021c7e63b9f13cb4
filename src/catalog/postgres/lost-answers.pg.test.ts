import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { sleep, systemClock } from "../../core/clock.ts";
import type { CatalogDatabase } from "../catalog-database.ts";
import type { Catalog, TableRecord } from "../catalog.ts";
import { readInputPosition } from "../input-positions.ts";
import { aFlush, aLedgerEntry, anExtent, column, committed } from "../contract-fixtures.test-kit.ts";
import { findPostgresPrograms } from "../../db/postgres/server-programs.ts";
import { NO_FSYNC, openTestCatalog, startTestServer, type TestServer } from "./postgres.test-kit.ts";
import { CuttingProxy, type Cut } from "./proxy.test-kit.ts";

const programs = findPostgresPrograms()?.folder;

describe.skipIf(lacks("PostgreSQL"))("a connection that breaks", () => {
  let server: TestServer;
  let proxy: CuttingProxy;
  let url: string;
  let catalog: Catalog;
  /** Beside the wire that is cut. */
  let witness: CatalogDatabase;
  let events: TableRecord;

  beforeAll(async () => {
    server = await startTestServer(programs ?? "", NO_FSYNC);
  });
  afterAll(() => server.stop());

  beforeEach(async () => {
    url = await server.createDatabase();
    proxy = await CuttingProxy.start(server.port);
    witness = await openTestCatalog(url);
    catalog = await openTestCatalog(proxy.urlOf(url));
    const columns = [column("at", "timestamp"), column("body")];
    ({ table: events } = await catalog.createTable({ database: "d", name: "t", columns }));
    await catalog.commit([aFlush(events, { ledger: [aLedgerEntry("first")] })]);
  });
  afterEach(async () => {
    await witness.verify();
    await witness.close();
    await catalog.close();
    await proxy.stop();
  });

  const liveIds = async () => {
    const { id } = await witness.head();
    return (await witness.extents(events.id, id, {}, [])).map((extent) => extent.id);
  };

  const CUTS: readonly Cut[] = ["request", "answer"];

  it.each(CUTS)("commits once when the %s of a commit is lost, and says what a commit says", async (cut) => {
    const extent = anExtent();
    const flushes = [
      aFlush(events, { ledger: [aLedgerEntry("first")] }),
      aFlush(events, {
        extents: [extent],
        ledger: [aLedgerEntry("k")],
        newColumns: [column("fresh")],
        sources: [{ name: "input", to: "1" }],
      }),
    ];
    proxy.cutAt(extent.id, cut);
    const outcomes = await catalog.commit(flushes);
    expect(proxy.cuts).toBe(1);
    expect(outcomes[0]).toMatchObject({ kind: "key_conflict", entries: [{ key: "first", snapshotId: 1 }] });
    expect(committed(outcomes[1])).toEqual({ snapshot: await witness.head(), schemaVersion: 2 });
    expect((await witness.head()).id).toBe(2);
    expect((await liveIds()).filter((id) => id === extent.id)).toHaveLength(1);
    expect((await witness.lookUpKey(events.id, "k")).entry).toMatchObject({ snapshotId: 2 });
    expect(await readInputPosition(witness.records, "input")).toMatchObject({ position: "1", snapshotId: 2 });
    expect((await witness.table("d", "t"))?.columns.map(({ name }) => name)).toEqual(["at", "body", "fresh"]);
  });

  it("keeps a commit that arrives late from happening a second time", async () => {
    const extent = anExtent();
    proxy.cutAt(extent.id, "late");
    const [outcome] = await catalog.commit([aFlush(events, { extents: [extent] })]);
    expect(committed(outcome).snapshot.id).toBe(2);
    // Forgotten by now, the extent's id alone would not keep the first message from storing it again.
    await witness.endExtents(events.id, [extent.id]);
    await witness.expireSnapshots(3);
    await witness.forgetExtents([extent.id]);
    await proxy.deliver();
    expect((await witness.head()).id).toBe(3);
    expect(await liveIds()).not.toContain(extent.id);
  });

  it.each(CUTS)("ends and merges extents once when the %s is lost", async (cut) => {
    const extents = [anExtent(), anExtent(), anExtent()];
    const [a, b, c] = extents.map(({ id }) => id);
    await catalog.commit([aFlush(events, { extents })]);
    proxy.cutAt(a ?? "", cut);
    const ended = await catalog.endExtents(events.id, [a ?? ""]);
    expect(ended).toMatchObject([{ id: a, endSnapshot: 3 }]);
    const output = anExtent({ rows: 20 });
    proxy.cutAt(output.id, cut);
    const merge = { tableId: events.id, schemaVersion: 1, inputs: [b ?? "", c ?? ""], outputs: [output] };
    expect(await catalog.mergeExtents(merge)).toEqual(await witness.head());
    expect(proxy.cuts).toBe(2);
    expect((await witness.head()).id).toBe(4);
    expect(await liveIds()).toHaveLength(2);
  });

  it.each(CUTS)("repeats reads, and writes that may be repeated, when the %s is lost", async (cut) => {
    proxy.cutAt("d", cut);
    expect(await catalog.table("d", "t")).toEqual(events);
    proxy.cutAt("fresh", cut);
    expect((await catalog.addColumns(events.id, [column("fresh")])).columns).toHaveLength(3);
    proxy.cutAt("duty", cut);
    expect(await catalog.acquireLease("duty", "me", 10_000)).toEqual({ name: "duty", holder: "me", fence: 1 });
    expect(proxy.cuts).toBe(3);
  });

  it("loses and repeats nothing that was acknowledged while sessions are ended under load", async () => {
    const acknowledged: string[] = [];
    const over = new AbortController();
    const writer = async (of: Catalog, name: string) => {
      for (let i = 0; !over.signal.aborted; i++) {
        const extent = anExtent();
        const flush = aFlush(events, { extents: [extent], ledger: [aLedgerEntry(`${name} ${i}`)] });
        expect(committed((await of.commit([flush]))[0]).snapshot.id).toBeGreaterThan(1);
        acknowledged.push(extent.id);
      }
    };
    const second = await openTestCatalog(url);
    const writers = [catalog, second].flatMap((of, i) => ["a", "b", "c"].map((name) => writer(of, `${name}${i}`)));
    const everySession =
      "SELECT count(pg_terminate_backend(pid)) AS ended FROM pg_stat_activity WHERE application_name = 'engine'";
    for (let i = 0; i < 8; i++) {
      await sleep(systemClock, 200);
      await server.query(`${url}?application_name=operator`, everySession);
    }
    over.abort();
    await Promise.all(writers);
    await second.close();
    expect(acknowledged.length).toBeGreaterThan(20);
    const live = await liveIds();
    expect(new Set(live).size).toBe(live.length);
    expect(live).toHaveLength(acknowledged.length + 1);
    expect(live).toEqual(expect.arrayContaining(acknowledged));
    // Snapshots without a gap: none was made for a commit that was told it had failed.
    expect((await witness.head()).id).toBe(acknowledged.length + 1);
  });
});
