import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { silentLog } from "../../../core/log.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { seededRandom } from "../../../core/random.ts";
import { PipelineRuns } from "../../dreaming/runs.ts";
import { importRecords } from "../../memory/import.ts";
import { erase, invalidate } from "../../memory/life.ts";
import { MEMORY_METRICS } from "../../memory/metrics.ts";
import type { NodeRecord } from "../../memory/model.ts";
import { ALL_REALMS } from "../../memory/realms.ts";
import { nodeKey } from "../../memory/save.ts";
import { MemoryStore } from "../../memory/store.ts";
import { MemoryWriter } from "../../memory/writer.ts";
import { PIPELINE_METRICS } from "../metrics.ts";
import { correlate, type CorrelationDeps, type EventReader } from "./correlation.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { learningId } from "./learning.ts";

const DATABASE = { id: 1, name: "d" };
const HOUR_MS = 3_600_000;

/** A table of rows that tests add to. */
class Rows implements EventReader {
  readonly all: { text: string }[] = [];

  async read({ position }: Parameters<EventReader["read"]>[0]) {
    const from = position !== undefined && "snapshot" in position.next ? position.next.snapshot : 0;
    const next = { snapshot: this.all.length, row: 0 };
    return await Promise.resolve({
      rows: this.all.slice(from),
      position: { tableId: 1, newestAt: undefined, next },
      isEnd: true,
    });
  }
}

/** What the correlation of failures must do on every driver of the catalog. */
export function correlationContract(driver: string, open: () => Promise<OpenedCatalog>): void {
  describe(`correlation of failures on ${driver}`, () => {
    let opened: OpenedCatalog;
    let deps: CorrelationDeps;
    let rows: Rows;

    beforeEach(async () => {
      opened = await open();
      const { clock, catalog } = opened;
      const { records } = catalog;
      const random = seededRandom(1);
      const newId = uuidV7Source(clock, random);
      const all = createMetrics();
      const store = new MemoryStore(records);
      rows = new Rows();
      deps = {
        records,
        runs: new PipelineRuns({ records, newId }),
        writer: new MemoryWriter({
          records,
          store,
          clock,
          random,
          metrics: MEMORY_METRICS.of(all),
          holder: newId(),
        }),
        store,
        arrivals: rows,
        newId,
        clock,
        log: silentLog,
        metrics: PIPELINE_METRICS.of(all),
      };
    });
    afterEach(() => opened.close());

    /** So many failures arrive, and the pipeline polls. */
    async function poll(count: number, message = "disk full", more: object = {}): Promise<void> {
      opened.clock.advance(1_000);
      const row = { label: "ci", status: "failed", message, ...more };
      for (let i = 0; i < count; i++) rows.all.push({ text: JSON.stringify(row) });
      await correlate(deps, DATABASE, new AbortController().signal);
    }

    const idOf = (message = "disk full"): string => learningId(fingerprintOf("", message));
    async function learning(message?: string): Promise<NodeRecord | undefined> {
      const [known] = await deps.store.known(DATABASE.id, "node", [idOf(message)]);
      return known?.current?.kind === "node" && !known.current.erased ? known.current.record : undefined;
    }
    const counted = async (message?: string) => (await learning(message))?.props["occurrences"];
    const versions = async () => (await learning())?.version;

    /** Somebody saves under the topic key of a failure, as an import does. */
    async function save(node: object, message = "disk full"): Promise<void> {
      opened.clock.advance(1_000);
      const newId = uuidV7Source(opened.clock, seededRandom(opened.clock.nowMs()));
      const saved = { topic_key: `ci:${fingerprintOf("", message)}`, ...node };
      const operation = importRecords({ memory_nodes: [saved], memory_edges: [] }, ALL_REALMS, newId);
      await deps.writer.write(DATABASE.id, operation);
    }

    const skipped = async (): Promise<number> =>
      (await deps.metrics.learnings.get()).values.find(({ labels }) => labels.outcome === "skipped")?.value ?? 0;

    it.each([
      ["are as large as they may be", { note: "x".repeat(16_250) }],
      ["count as far as numbers go", { occurrences: Number.MAX_SAFE_INTEGER }],
      ["name long commits", { commits: ["c".repeat(16_100)] }],
      ["name long files", { files: ["f".repeat(16_000)] }],
      ["say much", { message: "m".repeat(15_900), repository: "r".repeat(200) }],
    ])("goes on where the props of a learning %s", async (_what, more) => {
      const props = { occurrences: 2, first_seen: "", last_seen: "", commits: [], files: [], message: "m" };
      await save({ content: "own words", trust: "derived", props: { ...props, repository: "", ...more } });
      await poll(2, "disk full", { files: ["a".repeat(200), "b".repeat(200)] });
      await poll(3, "out of memory");
      opened.clock.advance(HOUR_MS);
      await poll(1);
      expect(await counted("out of memory")).toBe(3);
      const { props: kept, content } = (await learning()) ?? {};
      expect(content).toBe("own words");
      expect(JSON.stringify(kept).length).toBeLessThan(4_000);
      expect(Object.keys(kept ?? {}).toSorted()).toEqual([...Object.keys(props), "repository"].toSorted());
      expect(await skipped()).toBe(0);
    });

    it("skips a learning that cannot be saved, and saves the others", async () => {
      const { writer } = deps;
      class FailingWriter extends MemoryWriter {
        override async write<T>(databaseId: number, operation: Parameters<typeof writer.write<T>>[1]): Promise<T> {
          const plan: typeof operation.plan = (draft) => {
            const put = draft.putNode.bind(draft);
            draft.putNode = (content, ...rest) => {
              if (content.id === idOf()) throw new Error("refused");
              return put(content, ...rest);
            };
            return operation.plan(draft);
          };
          return await writer.write(databaseId, { ...operation, plan });
        }
      }
      const { records, store, clock, metrics } = deps;
      const more = { random: seededRandom(1), metrics: MEMORY_METRICS.of(createMetrics()), holder: "h" };
      deps = { ...deps, writer: new FailingWriter({ records, store, clock, ...more }), metrics };
      rows.all.push({ text: JSON.stringify({ label: "ci", status: "failed", message: "disk full" }) });
      rows.all.push({ text: JSON.stringify({ label: "ci", status: "failed", message: "disk full" }) });
      await poll(2, "out of memory");
      expect([await counted(), await counted("out of memory"), await skipped()]).toEqual([undefined, 2, 1]);
      await poll(0);
      const found = await deps.runs.list(DATABASE.id, { limit: 10, offset: 0 });
      expect(found).toMatchObject([
        { status: "done", memoriesWritten: 1, stats: { learnings: { skipped: 1, created: 1 } } },
      ]);
    });

    it("writes a version where the count has doubled, else once an hour, and never another text", async () => {
      await poll(1);
      expect(await learning()).toBeUndefined();
      await poll(1);
      const { content } = (await learning()) ?? {};
      expect(content).toBe("A failure repeats: disk full");
      const seen: unknown[] = [];
      for (let i = 0; i < 14; i++) {
        await poll(1, "disk full", { at: `2026-01-01T10:00:${10 + i}Z`, commit: `abcdef${10 + i}` });
        seen.push(await counted());
      }
      expect(seen).toEqual([2, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 16]);
      expect(await versions()).toBe(4);
      await poll(1);
      expect(await counted()).toBe(16);
      opened.clock.advance(HOUR_MS);
      // What waits is written without a further failure, once.
      await poll(0);
      await poll(0);
      expect(await learning()).toMatchObject({ version: 5, content, props: { occurrences: 17 } });
    });

    it("writes early what finds no place to wait", async () => {
      const messages = Array.from({ length: 510 }, (_, i) => `broke ${"x".repeat(i + 1)}`);
      const arrive = (): void => {
        for (const message of messages) {
          rows.all.push({ text: JSON.stringify({ label: "ci", status: "failed", message }) });
        }
      };
      arrive();
      arrive();
      arrive();
      await poll(0);
      arrive();
      await poll(0);
      const counts = await Promise.all(messages.map((message) => counted(message)));
      expect(counts.filter((count) => count === 4)).toHaveLength(10);
      expect(counts.filter((count) => count === 3)).toHaveLength(500);
    });

    it("leaves alone what somebody has erased", async () => {
      await poll(2);
      await deps.writer.write(DATABASE.id, erase(nodeKey(idOf()), ALL_REALMS, []));
      for (let i = 0; i < 3; i++) await poll(5);
      expect(await learning()).toBeUndefined();
      expect(await deps.runs.list(DATABASE.id, { limit: 10, offset: 0 })).toHaveLength(1);
    });

    it("leaves alone what somebody has invalidated", async () => {
      await poll(2);
      await poll(1);
      const ending = { key: nodeKey(idOf()), by: "ann", reason: "it is fixed", validToUs: undefined };
      await deps.writer.write(DATABASE.id, invalidate(ending, ALL_REALMS));
      const ended = await learning();
      opened.clock.advance(HOUR_MS);
      await poll(5);
      expect(await learning()).toEqual(ended);
    });

    it.each([
      ["states", { trust: "stated" }],
      ["has ended", { trust: "derived", valid_to: "2026-01-01T00:00:00Z" }],
    ])("leaves alone what somebody %s", async (_what, more) => {
      await poll(2);
      await save({ content: "Ask Ann for a larger disk", valid_from: "2025-01-01T00:00:00Z", ...more });
      const saved = await learning();
      opened.clock.advance(HOUR_MS);
      await poll(5);
      await poll(5);
      expect(await learning()).toEqual(saved);
    });
  });
}
