import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { seededRandom } from "../../../core/random.ts";
import { NOW } from "../../../db/records.ts";
import { PipelineRuns, type NewPipelineRun } from "../../dreaming/runs.ts";
import { StoredVectors } from "../../memory/embed/stored-vectors.ts";
import { importRecords } from "../../memory/import.ts";
import { erase } from "../../memory/life.ts";
import { MEMORY_METRICS } from "../../memory/metrics.ts";
import type { EdgeRecord } from "../../memory/model.ts";
import { ALL_REALMS } from "../../memory/realms.ts";
import { nodeKey } from "../../memory/save.ts";
import { MemoryStore } from "../../memory/store.ts";
import { MemoryWriter } from "../../memory/writer.ts";
import { PIPELINE_METRICS } from "../metrics.ts";
import { consolidate, Consolidations, type ConsolidationDeps } from "./consolidation.ts";
import { ConsolidationReader } from "./reader.ts";

const DATABASE = 1;

/** What consolidation must do on every driver of the catalog. */
export function consolidationContract(driver: string, open: () => Promise<OpenedCatalog>): void {
  describe(`consolidation on ${driver}`, () => {
    let opened: OpenedCatalog;
    let deps: ConsolidationDeps;

    beforeEach(async () => {
      opened = await open();
      const { clock, catalog } = opened;
      const { records } = catalog;
      const random = seededRandom(1);
      const newId = uuidV7Source(clock, random);
      const all = createMetrics();
      const store = new MemoryStore(records);
      const metrics = MEMORY_METRICS.of(all);
      deps = {
        records,
        runs: new PipelineRuns({ records, newId }),
        writer: new MemoryWriter({ records, store, clock, random, metrics, holder: newId() }),
        store,
        reader: new ConsolidationReader(records),
        clock,
        metrics: PIPELINE_METRICS.of(all),
        band: { min: 0.9, max: 0.97 },
        vectors: undefined,
        verdicts: undefined,
      };
    });
    afterEach(() => opened.close());

    async function save(...nodes: Record<string, unknown>[]): Promise<void> {
      opened.clock.advance(1_000);
      const newId = uuidV7Source(opened.clock, seededRandom(opened.clock.nowMs()));
      const operation = importRecords({ memory_nodes: nodes, memory_edges: [] }, ALL_REALMS, newId);
      await deps.writer.write(DATABASE, operation);
    }

    async function all(): Promise<void> {
      while (await consolidate(deps, DATABASE));
    }

    async function links(rel: string): Promise<string[]> {
      const read = { after: "", limit: 10_000, rights: ALL_REALMS };
      const nodes = await deps.store.page(DATABASE, "node", read);
      const edges = await deps.store.page(DATABASE, "edge", read);
      const said = new Map(nodes.flatMap((node) => ("content" in node.record ? [[node.record.id, node.record]] : [])));
      return edges
        .map(({ record }) => record as EdgeRecord)
        .filter((edge) => edge.rel === rel)
        .map(({ src, dst }) => `${said.get(src)?.content} > ${said.get(dst)?.content}`)
        .toSorted();
    }

    async function agentRun(id: string, sessionId: string | null): Promise<void> {
      const sql =
        "INSERT INTO agent_runs (id, session_id, owner, database, question, engine_kind, model, status, tool_calls, usage, " +
        "queries, holder, lease_until_ms, started_at_ms) " +
        "VALUES (?, ?, 'ann', 'd', 'q', 'openai', 'm', 'done', 0, '{}', '[]', 'h', 0, ?)";
      await deps.records.write({ sql, values: [id, sessionId, NOW] });
    }

    it("links memories of the runs of one session of the agent, and of no run without one", async () => {
      await agentRun("r1", "s1");
      await agentRun("r2", "s1");
      await agentRun("r3", null);
      for (const [content, run] of [
        ["one", "r1"],
        ["two", "r2"],
        ["three", "r3"],
        ["four", "r3"],
        ["five", "gone"],
      ]) {
        await save({ content, source: `agent run ${run}` });
      }
      await all();
      expect(await links("follows")).toEqual(["two > one"]);
    });

    it("works through more than one commit takes, and links conversations across them", async () => {
      for (let i = 0; i < 5; i++) {
        await save(...Array.from({ length: 500 }, (_, n) => ({ content: `${i} ${n}`, topic_key: `${i} ${n}` })), {
          content: `said ${i}`,
          source: "session s",
        });
      }
      await all();
      expect(await links("follows")).toEqual([
        "said 1 > said 0",
        "said 2 > said 1",
        "said 3 > said 2",
        "said 4 > said 3",
      ]);
      expect(await consolidate(deps, DATABASE)).toBe(false);
      const before = await deps.store.head(DATABASE);
      await all();
      expect((await deps.store.head(DATABASE)).seq).toBe(before.seq);
    });

    it("a memory that changes later follows what it did", async () => {
      await save({ content: "a", source: "session s", topic_key: "a" });
      await save({ content: "b", source: "session s", topic_key: "b" });
      await all();
      await save({ content: "a, but other", source: "session s", topic_key: "a" });
      await all();
      expect(await links("follows")).toEqual(["b > a, but other"]);
    });

    it("what follows an erased memory follows nothing, and no run is noted", async () => {
      await save({ content: "a", source: "session s" });
      await all();
      const [first] = await deps.store.page(DATABASE, "node", { after: "", limit: 1, rights: ALL_REALMS });
      await deps.writer.write(DATABASE, erase(nodeKey(first?.record.id ?? ""), ALL_REALMS, []));
      await save({ content: "b", source: "session s" });
      await all();
      await save({ content: "c", source: "session s" });
      await all();
      expect(await links("follows")).toEqual(["c > b"]);
      expect(await deps.runs.list(DATABASE, { limit: 10, offset: 0 })).toHaveLength(1);
    });

    it("looks again only at a database whose memory or vectors have changed", async () => {
      const consolidations = new Consolidations(deps);
      const look = async (): Promise<number[]> => {
        const ids = [...(await consolidations.changed())];
        for (const id of ids) while (await consolidations.consolidate(id));
        return ids;
      };
      expect(await look()).toEqual([]);
      await save({ content: "a", topic_key: "1" }, { content: "A", topic_key: "2" });
      // The first look makes a link, which is a change.
      expect([await look(), await look(), await look()]).toEqual([[DATABASE], [DATABASE], []]);
      await save({ content: "b" });
      // What is saved between the query and the look is looked at once more.
      await consolidations.changed();
      await save({ content: "B", topic_key: "3" });
      await consolidations.consolidate(DATABASE);
      expect([await look(), await links("duplicate_of")]).toEqual([[DATABASE], ["A > a", "B > b"]]);
      // Another process has looked at nothing yet.
      expect(await new Consolidations(deps).changed()).toEqual(new Set([DATABASE]));
      const embedded = new Consolidations({ ...deps, vectors: new StoredVectors(deps.records, "m") });
      await embedded.changed();
      await embedded.consolidate(DATABASE);
      expect(await embedded.changed()).toEqual(new Set());
      const sql =
        "INSERT INTO memory_vector_heads (database_id, model, seq, through_seq, held_until_ms) VALUES (?, 'm', 0, 1, 0)";
      await deps.records.write({ sql, values: [DATABASE] });
      expect(await embedded.changed()).toEqual(new Set([DATABASE]));
    });

    it("realms and sessions do not mix", async () => {
      await save({ content: "a", source: "session s" });
      await save({ content: "b", source: "session s", realm: "user:ann" });
      await save({ content: "a", source: "session t", realm: "user:ann" });
      await all();
      expect([await links("follows"), await links("duplicate_of")]).toEqual([[], []]);
    });

    it("finds a duplicate of a memory that was there long before", async () => {
      await save({ content: "Old and true", topic_key: "old" });
      await all();
      await save({ content: "OLD and  true", topic_key: "new" });
      await all();
      expect(await links("duplicate_of")).toEqual(["OLD and  true > Old and true"]);
    });

    it("whoever else advances first has the links, and what was found is found again", async () => {
      await save({ content: "a", topic_key: "1" }, { content: "A", topic_key: "2" });
      const { runs } = deps;
      class OvertakenRuns extends PipelineRuns {
        override async begin(run: NewPipelineRun): Promise<string> {
          await consolidate(deps, DATABASE);
          opened.clock.advance(1);
          return await super.begin(run);
        }
      }
      const newId = uuidV7Source(opened.clock, seededRandom(2));
      const overtaken = { ...deps, runs: new OvertakenRuns({ records: deps.records, newId }) };
      await expect(consolidate(overtaken, DATABASE)).rejects.toMatchObject({ code: "conflict" });
      expect(await links("duplicate_of")).toHaveLength(1);
      const found = await runs.list(DATABASE, { kind: "consolidation", limit: 10, offset: 0 });
      expect(found.map(({ status, error }) => [status, error?.code])).toEqual([
        ["failed", "conflict"],
        ["done", undefined],
      ]);
      const [, done] = found;
      expect(await runs.changes(done?.id ?? "")).toMatchObject([{ kind: "edge", versionBefore: undefined }]);
      await all();
      expect(await links("duplicate_of")).toHaveLength(1);
    });
  });
}
