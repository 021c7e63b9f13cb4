import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import type { Catalog } from "../catalog.ts";
import { aFlush, aLedgerEntry, anExtent, column, committed } from "../contract-fixtures.test-kit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "./postgres.test-kit.ts";

describe.skipIf(lacks("PostgreSQL"))("several nodes on one catalog", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
  });
  afterAll(() => server.stop());

  const withNodes = async (count: number, test: (nodes: readonly Catalog[]) => Promise<void>) => {
    const url = await server.createDatabase();
    const nodes = await Promise.all(Array.from({ length: count }, () => openTestCatalog(url, { maxConnections: 4 })));
    try {
      await test(nodes);
      await nodes[0]?.verify();
    } finally {
      await Promise.all(nodes.map((node) => node.close()));
    }
  };

  const REQUEST = { database: "d", name: "t", columns: [column("at", "timestamp")] };

  it("makes one catalog when ten start together on an empty database, and one table", async () => {
    await withNodes(10, async (nodes) => {
      const made = await Promise.all(nodes.map((node) => node.createTable(REQUEST)));
      expect(made.filter(({ created }) => created)).toHaveLength(1);
      expect(new Set(made.map(({ table }) => table.id)).size).toBe(1);
      const heads = await Promise.all(nodes.map((node) => node.head()));
      expect(new Set(heads.map(({ id, committedAtMs }) => `${id} ${committedAtMs}`)).size).toBe(1);
    });
  });

  it("shows on every node at once what one acknowledged, in numbers without a gap and times that never decrease", async () => {
    await withNodes(3, async (nodes) => {
      const { table } = (await nodes[0]?.createTable(REQUEST)) ?? {};
      if (table === undefined) throw new Error("there is no node");
      const writer = async (node: Catalog, reader: Catalog) => {
        for (let i = 0; i < 20; i++) {
          const extent = anExtent();
          const { snapshot } = committed((await node.commit([aFlush(table, { extents: [extent] })]))[0]);
          const head = await reader.head();
          expect(head.id).toBeGreaterThanOrEqual(snapshot.id);
          const request = { tableId: table.id, atSnapshot: head.id, filters: [{ range: {}, tests: [] }] };
          const { extents } = await reader.planScan(request);
          expect(extents.map(({ id }) => id)).toContain(extent.id);
          // A snapshot is the same on every node, for ever.
          expect(extents).toHaveLength(head.id);
        }
      };
      await Promise.all(nodes.map((node, i) => writer(node, nodes[(i + 1) % nodes.length] ?? node)));
      const snapshots = ((await nodes[0]?.snapshots(1_000)) ?? []).toReversed();
      expect(snapshots.map(({ id }) => id)).toEqual(Array.from({ length: 61 }, (_, i) => i));
      const times = snapshots.map(({ committedAtMs }) => committedAtMs);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
    });
  });

  it("commits everything of nodes that add columns to one table against each other", async () => {
    await withNodes(8, async (nodes) => {
      const { table } = (await nodes[0]?.createTable(REQUEST)) ?? {};
      if (table === undefined) throw new Error("there is no node");
      const writer = async (node: Catalog, name: string) => {
        for (let i = 0; i < 8; i++) {
          const own = column(`${name}${i}`);
          const shared = column(`shared${i}`);
          const stats = [own, shared].map((c) => ({ name: c.name, nullCount: 3 }));
          const flush = aFlush(table, { newColumns: [shared, own], extents: [anExtent({ stats })] });
          committed((await node.commit([flush]))[0]);
        }
      };
      await Promise.all(nodes.map((node, i) => writer(node, `own${i}_`)));
      const after = await nodes[1]?.table("d", "t");
      expect(after?.columns.map(({ id }) => id)).toEqual(Array.from({ length: 1 + 8 + 64 }, (_, i) => i + 1));
      expect(await nodes[2]?.extents(table.id, 64)).toHaveLength(64);
    });
  });

  it("lets one of many nodes have a key, a lease and a merge", async () => {
    await withNodes(4, async (nodes) => {
      const { table } = (await nodes[0]?.createTable(REQUEST)) ?? {};
      if (table === undefined) throw new Error("there is no node");
      const commits = nodes.map((node) => node.commit([aFlush(table, { ledger: [aLedgerEntry("k")] })]));
      const kinds = Object.groupBy(await Promise.all(commits), ([outcome]) => outcome?.kind ?? "none");
      expect([kinds.committed?.length, kinds.key_conflict?.length]).toEqual([1, 3]);
      const leases = await Promise.all(nodes.map((node, i) => node.acquireLease("duty", `node ${i}`, 60_000)));
      expect(leases.filter((lease) => lease !== undefined)).toHaveLength(1);
      const [input] = (await nodes[0]?.extents(table.id, 1)) ?? [];
      const merges = nodes.map((node) =>
        node.mergeExtents({ tableId: table.id, schemaVersion: 1, inputs: [input?.id ?? ""], outputs: [anExtent()] }),
      );
      expect((await Promise.all(merges)).filter((snapshot) => snapshot !== undefined)).toHaveLength(1);
    });
  });

  it("plans on one node what was forgotten on another as if it had never been", async () => {
    await withNodes(2, async ([writer, reader]) => {
      if (writer === undefined || reader === undefined) throw new Error("there are no nodes");
      const { table } = await writer.createTable(REQUEST);
      const plan = async () => {
        const { id: atSnapshot } = await reader.head();
        const { extents, total } = await reader.planScan({
          tableId: table.id,
          atSnapshot,
          filters: [{ range: {}, tests: [] }],
        });
        return { ids: extents.map(({ id }) => id), total: total.extents };
      };
      const old = Array.from({ length: 100 }, () => anExtent());
      await writer.commit([aFlush(table, { extents: old })]);
      expect((await plan()).total).toBe(100);
      // Two rounds: in the first most of what the reader knows is forgotten, in the second a little.
      for (const gone of [old.slice(0, 80), old.slice(80, 85)]) {
        const ids = gone.map(({ id }) => id);
        await writer.endExtents(table.id, ids);
        await writer.expireSnapshots((await writer.head()).id);
        expect(await writer.forgetExtents(ids)).toEqual(ids);
        const { ids: planned, total } = await plan();
        expect(total).toBe(planned.length);
        for (const id of ids) expect(planned).not.toContain(id);
      }
      expect((await plan()).ids).toEqual(old.slice(85).map(({ id }) => id));
      const before = { tableId: table.id, atSnapshot: 1, filters: [{ range: {}, tests: [] }] };
      await expect(reader.planScan(before)).rejects.toMatchObject({ code: "snapshot_expired" });
    });
  });
});
