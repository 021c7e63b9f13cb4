import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { sleep, systemClock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { Catalog, TableRecord } from "../catalog.ts";
import { aFlush, aLedgerEntry, anExtent, column, committed } from "../contract-fixtures.test-kit.ts";
import { findPostgresPrograms } from "../../db/postgres/server-programs.ts";
import { openTestCatalog, startTestServer, type TestServer } from "./postgres.test-kit.ts";

const programs = findPostgresPrograms()?.folder;

describe.skipIf(lacks("PostgreSQL"))("a server that goes away", () => {
  let server: TestServer;
  beforeAll(async () => {
    // As it comes: what it acknowledged must be there after a crash.
    server = await startTestServer(programs ?? "", {});
  });
  afterAll(() => server.stop());

  const sessions = async (url: string) => {
    const sql =
      "SELECT count(*)::integer AS n FROM pg_stat_activity " +
      "WHERE datname = current_database() AND application_name = 'engine'";
    const [row] = await server.query(`${url}?application_name=operator`, sql);
    return Number(row?.["n"]);
  };

  const aTable = async (catalog: Catalog) => {
    const columns = [column("at", "timestamp")];
    return (await catalog.createTable({ database: "d", name: "t", columns })).table;
  };

  /** Commits until told to stop; notes what was acknowledged, and what was said not to have been stored. */
  class Load {
    readonly acknowledged: string[] = [];
    readonly refused: string[] = [];
    readonly unknown: string[] = [];
    readonly #over = new AbortController();
    readonly #running: Promise<void>[];

    constructor(catalogs: readonly Catalog[], table: TableRecord) {
      this.#running = catalogs.flatMap((catalog) => [1, 2, 3].map(() => this.#write(catalog, table)));
    }

    async stop(): Promise<void> {
      this.#over.abort();
      await Promise.all(this.#running);
    }

    async #write(catalog: Catalog, table: TableRecord): Promise<void> {
      while (!this.#over.signal.aborted) {
        const extent = anExtent();
        try {
          const [outcome] = await catalog.commit([
            aFlush(table, { extents: [extent], ledger: [aLedgerEntry(extent.id)] }),
          ]);
          committed(outcome);
          this.acknowledged.push(extent.id);
        } catch (error) {
          if (error instanceof EngineError) this.refused.push(extent.id);
          else this.unknown.push(extent.id);
        }
      }
    }
  }

  it.each(["kill", "shutDown"] as const)(
    "loses nothing acknowledged and leaks no session through two restarts by %s under load",
    async (end) => {
      const url = await server.createDatabase();
      const catalogs = [await openTestCatalog(url), await openTestCatalog(url)];
      const [first] = catalogs;
      if (first === undefined) throw new Error("there is no catalog");
      const table = await aTable(first);
      const load = new Load(catalogs, table);
      const seen: number[] = [];
      for (let i = 0; i < 2; i++) {
        await sleep(systemClock, 300);
        await server[end]();
        const reading = first.head();
        await server.start();
        // It waited for the server.
        seen.push((await reading).id);
        const before = load.acknowledged.length;
        while (load.acknowledged.length < before + 10) await sleep(systemClock, 10);
      }
      await load.stop();
      const { id } = await first.head();
      const live = (await first.extents(table.id, id, {}, [])).map((extent) => extent.id);
      expect(new Set(live).size).toBe(live.length);
      expect(live).toEqual(expect.arrayContaining(load.acknowledged));
      for (const refused of load.refused) expect(live).not.toContain(refused);
      expect(live.length).toBeLessThanOrEqual(load.acknowledged.length + load.unknown.length);
      expect(id).toBe(live.length);
      expect(seen[0]).toBeLessThanOrEqual(seen[1] ?? 0);
      await first.verify();
      expect(await sessions(url)).toBeLessThanOrEqual(2 * 8);
      await Promise.all(catalogs.map((catalog) => catalog.close()));
      expect(await sessions(url)).toBe(0);
    },
  );

  it("fails calls in time while the server is away, and serves them when it is back", async () => {
    const url = await server.createDatabase();
    const catalog = await openTestCatalog(url, { acquireTimeoutMs: 300 });
    const table = await aTable(catalog);
    await server.shutDown();
    const startedMs = systemClock.monotonicMs();
    await expect(catalog.head()).rejects.toMatchObject({ code: "unavailable" });
    await expect(catalog.commit([aFlush(table)])).rejects.toMatchObject({ code: "unavailable" });
    expect(systemClock.monotonicMs() - startedMs).toBeLessThan(10_000);
    await server.start();
    expect(committed((await catalog.commit([aFlush(table)]))[0]).snapshot.id).toBe(1);
    await catalog.close();
  });

  it("fails a call that gets no connection in time, and gives connections back whatever becomes of calls", async () => {
    const url = await server.createDatabase();
    const catalog = await openTestCatalog(url, { acquireTimeoutMs: 400, maxConnections: 4 });
    const table = await aTable(catalog);
    const holder = server.query(
      url,
      "WITH head AS MATERIALIZED (SELECT FROM engine.head FOR UPDATE) SELECT pg_sleep(1.5) FROM head",
    );
    await sleep(systemClock, 200);
    const commits = Array.from({ length: 6 }, () => catalog.commit([aFlush(table)]).then(() => "done", String));
    // Two of four connections are for writers, so two commits wait for the lock and four for a connection.
    const reads = await Promise.all(Array.from({ length: 20 }, () => catalog.head()));
    expect(reads.map(({ id }) => id)).toEqual(Array.from({ length: 20 }, () => 0));
    const answers = await Promise.all(commits);
    expect(answers.filter((answer) => answer === "done")).toHaveLength(2);
    expect(answers.filter((answer) => /connections of this node are in use/.test(answer))).toHaveLength(4);
    await holder;
    const failing = Array.from({ length: 50 }, () => catalog.addColumns(4711, [column("a")]).catch(() => "failed"));
    expect(new Set(await Promise.all(failing))).toEqual(new Set(["failed"]));
    expect(await sessions(url)).toBeLessThanOrEqual(4);
    await catalog.close();
    expect(await sessions(url)).toBe(0);
  });
});
