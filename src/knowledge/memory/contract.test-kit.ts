import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AuditLog } from "../../auth/audit.ts";
import type { Caller } from "../../auth/caller.ts";
import type { OpenedCatalog } from "../../catalog/contract.test-kit.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { createMetrics } from "../../core/metrics.ts";
import { systemRandom } from "../../core/random.ts";
import { nextTurn, systemClock } from "../../core/clock.ts";
import { drawnRandom } from "../../core/drawn-seed.test-kit.ts";
import type { RecordValue } from "../../db/records.ts";
import type { NodeRecord } from "./model.ts";
import { openMemory } from "./open.ts";
import { IndexFeed } from "./recall/index-feed.ts";
import type { MemoryScope, MemoryService } from "./service.ts";
import { wireEdge, wireNode, wireTombstone } from "./wire.ts";
import { nodeKey } from "./save.ts";

const SECOND_US = 1_000_000;

const callerOf = (subject: string, role: Caller["role"] = "write"): Caller => ({
  subject,
  kind: "session",
  role,
  databases: undefined,
});
const ORIGIN = { caller: callerOf("admin"), address: "", requestId: "r" };

/** Another process on the same catalog. */
export function memoryOn({ catalog, clock }: OpenedCatalog): MemoryService {
  const newId = uuidV7Source(systemClock, systemRandom);
  return openMemory({
    catalog,
    records: catalog.records,
    // Time stands still; pauses are real.
    clock: {
      ...systemClock,
      nowMs: () => clock.nowMs(),
      after: (delayMs, run) => systemClock.after(delayMs, run),
      monotonicMs: () => systemClock.monotonicMs(),
    },
    random: systemRandom,
    newId,
    metrics: createMetrics(),
    audit: new AuditLog(catalog.records, newId),
  });
}

async function exportOf(memory: MemoryService, scope: MemoryScope) {
  const all = { memory_nodes: [] as unknown[], memory_edges: [] as unknown[] };
  for (const kind of ["node", "edge"] as const) {
    for await (const page of memory.export(scope, kind)) {
      for (const version of page) {
        if (kind === "node") all.memory_nodes.push(wireOf(version));
        else all.memory_edges.push(wireOf(version));
      }
    }
  }
  return all;
}

function wireOf(version: Awaited<ReturnType<MemoryService["changes"]>>["versions"][number]) {
  if (version.erased) return wireTombstone(version.record);
  return version.kind === "node" ? wireNode(version.record) : wireEdge(version.record);
}

/** What all replicas must agree about. */
function shared(all: Awaited<ReturnType<typeof exportOf>>): unknown[] {
  return [...all.memory_nodes, ...all.memory_edges].map((record) => {
    const { version: _, updated_at: __, ...rest } = record as Record<string, unknown>;
    return rest;
  });
}

/** What memories must do on every driver of the catalog. */
export function memoryContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`${name}: memories`, () => {
    let opened: OpenedCatalog;
    let memory: MemoryService;
    let scope: MemoryScope;
    beforeEach(async () => {
      opened = await open();
      memory = memoryOn(opened);
      scope = await memory.scope(callerOf("ann"), "default");
    });
    afterEach(() => opened.close());

    const idOf = async (fields: object): Promise<string> => (await memory.saveNode(scope, fields)).record.id;

    it("answers what held at a time, and what was known then", async () => {
      const fact = { content: "Deploys are on Monday", topic_key: "deploy-day" };
      const first = await memory.saveNode(scope, fact);
      expect(first.outcome).toBe("created");
      const monday = first.record.updatedAtUs;
      opened.clock.advance(10_000);
      expect(await memory.saveNode(scope, fact)).toEqual({ outcome: "confirmed", record: first.record });
      const second = await memory.saveNode(scope, { ...fact, content: "Deploys are on Tuesday" });
      expect(second).toMatchObject({ outcome: "updated", record: { id: first.record.id, version: 2 } });
      opened.clock.advance(10_000);
      const key = nodeKey(first.record.id);
      const gone = await memory.invalidate(scope, key, { reason: "no deploys any more" });
      expect(gone).toMatchObject({ version: 3, invalidatedBy: "ann", invalidationReason: "no deploys any more" });

      const contentAt = async (asOfUs: number, knownAtUs?: number) =>
        (await memory.get(scope, key, { asOfUs, knownAtUs }).catch(() => undefined)) as NodeRecord | undefined;
      expect((await contentAt(monday + SECOND_US))?.content).toBe("Deploys are on Monday");
      expect((await contentAt(monday + 11 * SECOND_US))?.content).toBe("Deploys are on Tuesday");
      expect(await contentAt(monday + 21 * SECOND_US)).toBeUndefined();
      expect(await contentAt(monday - 1)).toBeUndefined();
      // As was thought before anybody knew that the day would change.
      expect((await contentAt(monday + 21 * SECOND_US, monday))?.content).toBe("Deploys are on Monday");
      expect(await memory.get(scope, key, { knownAtUs: monday })).toEqual({ ...first.record });
      expect((await memory.history(scope, key)).map(({ record }) => record.version)).toEqual([3, 2, 1]);

      const restored = await memory.restore(scope, key);
      expect(restored).toMatchObject({ version: 4, invalidatedAtUs: undefined, validToUs: undefined });
      expect((await contentAt(monday + 21 * SECOND_US))?.content).toBe("Deploys are on Tuesday");
    });

    it("confirms what says the same, and keeps what was said besides", async () => {
      const id = await idOf({ content: "The cache is  warm", tags: ["a"], importance: 0.7 });
      const again = await memory.saveNode(scope, { content: "The cache is warm", tags: ["b"], importance: 0.2 });
      expect(again).toMatchObject({ outcome: "confirmed", record: { id, tags: ["a", "b"], importance: 0.7 } });
      expect(await idOf({ content: "The cache is warm", realm: "other" })).not.toBe(id);
      expect(await idOf({ content: "The cache is warm", memory_type: "fact" })).not.toBe(id);
      await memory.invalidate(scope, nodeKey(id));
      expect(await idOf({ content: "The cache is warm" })).not.toBe(id);
    });

    it("merges what is said of an entity, whatever the spelling of its name", async () => {
      const entity = { kind: "entity", entity_kind: "service", name: "Query Engine", props: { lang: "ts" } };
      const id = await idOf(entity);
      const more = { ...entity, name: "query  ENGINE", content: "Answers SQL", props: { team: "data" } };
      expect(await memory.saveNode(scope, more)).toMatchObject({
        outcome: "updated",
        record: { id, name: "Query Engine", content: "Answers SQL", props: { lang: "ts", team: "data" } },
      });
      const other = await idOf({ ...entity, name: "Ingest" });
      const edge = { src: id, dst: other, rel: "depends_on" };
      const saved = await memory.saveEdge(scope, edge);
      expect(saved).toMatchObject({ outcome: "created", record: { weight: 1, namespace: "memory", realm: "default" } });
      expect((await memory.saveEdge(scope, edge)).outcome).toBe("confirmed");
      expect((await memory.saveEdge(scope, { ...edge, weight: 2 })).outcome).toBe("updated");
      await expect(memory.saveEdge(scope, { src: id, dst: "nobody" })).rejects.toMatchObject({ code: "not_found" });
    });

    it("erases every version and the edges, and an older copy does not bring it back", async () => {
      const id = await idOf({ content: "A secret plan", topic_key: "plan" });
      const other = await idOf({ content: "Something else" });
      await memory.saveEdge(scope, { src: other, dst: id });
      const copy = await exportOf(memory, scope);
      await memory.saveNode(scope, { content: "A changed plan", topic_key: "plan" });
      expect(await memory.erase(scope, nodeKey(id), ORIGIN)).toBe(2);
      const rows = await opened.catalog.records.rows("SELECT body FROM memory_records");
      expect(JSON.stringify(rows)).not.toContain("plan");
      await expect(memory.get(scope, nodeKey(id))).rejects.toMatchObject({ code: "not_found" });
      await expect(memory.get(scope, nodeKey(id), { asOfUs: 1 })).rejects.toMatchObject({ code: "not_found" });

      expect(await memory.import(scope, copy)).toMatchObject({
        nodes: { superseded: 1, unchanged: 1 },
        edges: { superseded: 1 },
      });
      await memory.saveNode(scope, { content: "A new plan", topic_key: "plan" });
      await memory.import(scope, copy);
      expect((await memory.history(scope, nodeKey(id))).map(({ record }) => (record as NodeRecord).content)).toEqual([
        "A new plan",
      ]);
      const counts = (await memory.overview(scope, "default")).counts;
      expect(counts).toEqual([{ realm: "default", kind: "memory", current: 2, invalidated: 0 }]);
      const audit = await opened.catalog.records.rows("SELECT target FROM audit_log WHERE action = 'memory.erase'");
      expect(audit).toEqual([{ target: id }]);
    });

    it("keeps a user's realm to them and admins", async () => {
      const mine = await memory.saveNode(scope, { content: "I like tea", realm: "user:ann", topic_key: "drink" });
      const bob = await memory.scope(callerOf("bob"), "default");
      const admin = await memory.scope(callerOf("root", "admin"), "default");
      const key = nodeKey(mine.record.id);
      expect(await memory.get(admin, key)).toEqual(mine.record);
      const hidden = [
        () => memory.get(bob, key),
        () => memory.history(bob, key),
        () => memory.invalidate(bob, key),
        () => memory.restore(bob, key),
        () => memory.erase(bob, key, ORIGIN),
        () => memory.saveEdge(bob, { src: mine.record.id, dst: mine.record.id }),
      ];
      for (const attempt of hidden) await expect(attempt()).rejects.toMatchObject({ code: "not_found" });
      const all = await exportOf(memory, scope);
      const refused = [
        () => memory.saveNode(bob, { content: "He likes gin", realm: "user:ann", topic_key: "drink" }),
        () => memory.changes(bob, { realm: "user:ann" }),
        () => memory.import(bob, all),
      ];
      for (const attempt of refused) await expect(attempt()).rejects.toMatchObject({ code: "forbidden" });
      // Nor by the id alone.
      const taken = { id: "plain-1", content: "mine", realm: "user:ann", origin_updated_at: "2023-01-01T00:00:00Z" };
      await memory.import(scope, { memory_nodes: [taken], memory_edges: [] });
      const theft = [
        { ...taken, realm: "default", content: "stolen", origin_updated_at: "2023-02-01T00:00:00Z" },
        { id: "plain-1", realm: "default", erased_at: "2023-02-01T00:00:00Z" },
      ];
      for (const item of theft) {
        const attempt = memory.import(bob, { memory_nodes: [item], memory_edges: [] });
        await expect(attempt).rejects.toMatchObject({ message: "memory_nodes.0.id: is taken in another realm" });
      }
      expect(shared(await exportOf(memory, bob))).toEqual([]);
      expect((await memory.changes(bob, {})).versions).toEqual([]);
      expect((await memory.overview(bob, "default")).counts).toEqual([]);
    });

    it("applies an import whole or not at all, and says which item is wrong", async () => {
      const good = { content: "fine" };
      const bad: [object, string][] = [
        [{ content: " " }, "memory_nodes.1.content: is empty"],
        [{ content: "x".repeat(16_385) }, "memory_nodes.1.content: is longer than 16384 bytes"],
        [{ ...good, importance: 2 }, "memory_nodes.1.importance"],
        [{ ...good, id: "../etc" }, "memory_nodes.1.id"],
        [{ ...good, realm: " USER:ann" }, "memory_nodes.1.realm"],
        [{ ...good, topic_key: "k", id: "mine" }, "memory_nodes.1.id: is not the one that follows"],
        [{ ...good, valid_from: "2024-01-02T00:00:00Z", valid_to: "2024-01-01T00:00:00Z" }, "memory_nodes.1.valid_to"],
        [{ ...good, id: "x", origin_updated_at: "2200-01-01T00:00:00Z" }, "memory_nodes.1.origin_updated_at"],
        [{ kind: "entity", name: "n" }, "memory_nodes.1.entity_kind"],
      ];
      for (const [item, message] of bad) {
        const attempt = memory.import(scope, { memory_nodes: [good, item], memory_edges: [] });
        await expect(attempt).rejects.toThrow(message);
      }
      const many = Array.from({ length: 20_001 }, () => good);
      await expect(memory.import(scope, { memory_nodes: many, memory_edges: [] })).rejects.toThrow("at most 20000");
      expect(await exportOf(memory, scope)).toEqual({ memory_nodes: [], memory_edges: [] });
    });

    it("keeps what loses against a later change as a former version, once", async () => {
      const item = {
        id: "m1",
        content: "new",
        origin_updated_at: "2023-05-01T00:00:00Z",
        valid_from: "2023-05-01T00:00:00Z",
      };
      const older = {
        ...item,
        content: "old",
        origin_updated_at: "2023-04-01T00:00:00Z",
        valid_from: "2023-04-01T00:00:00Z",
      };
      await memory.import(scope, { memory_nodes: [item], memory_edges: [] });
      for (let i = 0; i < 2; i++) {
        const result = await memory.import(scope, { memory_nodes: [older], memory_edges: [] });
        expect(result.nodes).toMatchObject({ superseded: 1, updated: 0 });
      }
      expect(await memory.history(scope, nodeKey("m1"))).toHaveLength(2);
      const april = Date.UTC(2023, 3, 15) * 1_000;
      expect(await memory.get(scope, nodeKey("m1"))).toMatchObject({ content: "new" });
      expect(await memory.get(scope, nodeKey("m1"), { asOfUs: april })).toMatchObject({ content: "old" });
    });

    it("has writers of two processes share topics and entities, and readers miss nothing", async () => {
      const writers = [memory, memoryOn(opened)];
      const { records } = opened.catalog;
      const rows = async (sql: string, given?: readonly RecordValue[]) => await records.rows(sql, given);
      const values = async (sql: string, given?: readonly RecordValue[]) =>
        (await rows(sql, given)).map((row) => Object.values(row));
      const feeder = new IndexFeed({ rows, values });
      const seen = new Map<string, number>();
      const fed = new Map<string, number>();
      const random = drawnRandom();
      let isDone = false;
      const read = async (): Promise<void> => {
        let sinceUs = 0;
        for (let last = false; !last;) {
          last = isDone;
          const page = await memory.changes(scope, { sinceUs, limit: 3 });
          for (const { record } of page.versions) {
            expect(seen.get(record.id) ?? 0, "a version that came before").toBeLessThan(record.version);
            seen.set(record.id, record.version);
          }
          expect(page.untilUs).toBeGreaterThanOrEqual(sinceUs);
          sinceUs = page.untilUs;
          if (page.hasMore) last = false;
          await nextTurn();
        }
      };
      const feed = async (): Promise<void> => {
        let seq = 0;
        for (let last = false; !last;) {
          last = isDone;
          const head = await feeder.head(scope.databaseId);
          const page = await feeder.changes(scope.databaseId, seq, head.seq, 4);
          for (const { record } of [...page.nodes, ...page.edges]) {
            const key = `${record.id} ${record.version}`;
            fed.set(key, (fed.get(key) ?? 0) + 1);
          }
          seq = page.seq;
          if (seq < head.seq) last = false;
          await nextTurn();
        }
      };
      const write = async (): Promise<void> => {
        await Promise.all(
          Array.from({ length: 40 }, async (_, i) => {
            for (let turns = i + random.next() * 10; turns > 1; turns--) await nextTurn();
            const writer = writers[i % 2];
            await writer?.saveNode(scope, { content: `said ${i}`, topic_key: "one" });
            await writer?.saveNode(scope, {
              kind: "entity",
              entity_kind: "thing",
              name: "One",
              props: { [`p${i}`]: i },
            });
            await writer?.saveNode(scope, { content: `memory ${i}` });
          }),
        );
      };
      const written = write().finally(() => (isDone = true));
      await Promise.all([written, read(), feed()]);
      const nodes = (await exportOf(memory, scope)).memory_nodes as ReturnType<typeof wireNode>[];
      expect(nodes).toHaveLength(42);
      expect(nodes.find(({ topic_key }) => topic_key === "one")?.version).toBe(40);
      expect(Object.keys(nodes.find(({ kind }) => kind === "entity")?.props ?? {})).toHaveLength(40);
      expect(new Map(nodes.map(({ id, version }) => [id, version]))).toEqual(seen);
      expect(fed.size).toBe(40 + 40 + 40);
      expect([...fed.values()].every((times) => times === 1)).toBe(true);
    });

    it("converges with replicas, in whatever order they exchange what they have", async () => {
      const [other, third] = await Promise.all(["other", "third"].map((each) => opened.catalog.createDatabase(each)));
      const scopes = [
        scope,
        { ...scope, databaseId: other?.database.id ?? 0 },
        { ...scope, databaseId: third?.database.id ?? 0 },
      ];
      for (const [i, replica] of scopes.entries()) {
        opened.clock.advance(i);
        await memory.saveNode(replica, { content: `topic by ${i}`, topic_key: "t", tags: [`${i}`] });
        const entity = { kind: "entity", entity_kind: "thing", name: `E${i % 2}` };
        const { record } = await memory.saveNode(replica, { ...entity, props: { i } });
        const { record: plain } = await memory.saveNode(replica, { content: `only ${i}` });
        await memory.saveEdge(replica, { src: record.id, dst: plain.id, weight: i });
        if (i === 1) await memory.invalidate(replica, nodeKey(plain.id));
        if (i === 2) await memory.erase(replica, nodeKey(record.id), ORIGIN);
      }
      const exports = await Promise.all(scopes.map((each) => exportOf(memory, each)));
      for (const [i, replica] of scopes.entries()) {
        // Each in an order of its own, and some twice.
        for (const step of [1, 2, 1]) {
          const from = exports[(i * 2 + step + (i % 2) * step) % 3];
          if (from !== undefined) await memory.import(replica, from);
        }
        for (const from of exports) await memory.import(replica, from);
      }
      const [first, ...others] = await Promise.all(scopes.map(async (each) => shared(await exportOf(memory, each))));
      expect(first).toHaveLength(9);
      for (const replica of others) expect(replica).toEqual(first);
    });

    it("leaves out of a commit what its own statements refuse, at once, and writes the rest", async () => {
      const change = { sql: "UPDATE memory_settings SET settings = '{}' RETURNING settings" };
      const asked = (mustReturn: number, said: string | undefined) =>
        memory.commit(scope.databaseId, {
          items: 1,
          needs: { keys: [] },
          plan: () => said,
          also: (value) => (value === undefined ? [] : [{ ...change, mustReturn }]),
          refused: () => new Error(`refused ${String(said)}`),
        });
      const startedMs = systemClock.monotonicMs();
      const outcomes = await Promise.allSettled([
        memory.saveNode(scope, { content: "One." }),
        asked(1, "the first"),
        memory.saveNode(scope, { content: "Two." }),
        asked(2, "the second"),
        // Nobody changes anything here.
        asked(0, "the third"),
        asked(3, undefined),
      ]);
      expect(systemClock.monotonicMs() - startedMs).toBeLessThan(10_000);
      expect(outcomes.map(({ status }) => status)).toEqual([
        "fulfilled",
        "rejected",
        "fulfilled",
        "rejected",
        "fulfilled",
        "fulfilled",
      ]);
      expect(outcomes[3]).toMatchObject({ reason: { message: "refused the second" } });
      const saved = (await exportOf(memory, scope)).memory_nodes as { content: string }[];
      expect(saved.map(({ content }) => content).toSorted()).toEqual(["One.", "Two."]);
      await expect(asked(1, "alone")).rejects.toThrow("refused alone");
    });

    it("masks secrets before it stores them", async () => {
      const token = `ghp_${"a1B2".repeat(9)}`;
      const { record } = await memory.saveNode(scope, {
        content: `The token is ${token}`,
        props: { nested: [{ url: "postgres://u:hunter22@h/db" }] },
        source: `chat Bearer ${token}`,
      });
      expect(record).toMatchObject({
        content: "The token is [masked token]",
        props: { nested: [{ url: "postgres://u:[masked]@h/db" }] },
      });
      const rows = JSON.stringify(await opened.catalog.records.rows("SELECT body FROM memory_records"));
      expect(rows).not.toMatch(/ghp_|hunter22/);
      // What was masked is what a replica has, too.
      const other = await opened.catalog.createDatabase("other");
      const replica = { ...scope, databaseId: other.database.id };
      await memory.import(replica, await exportOf(memory, scope));
      expect(shared(await exportOf(memory, replica))).toEqual(shared(await exportOf(memory, scope)));
    });
  });
}
