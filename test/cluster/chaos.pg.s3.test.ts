import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { seededRandom } from "../../src/core/random.ts";
import { findVersitygw } from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { startLocalCluster, type LocalCluster } from "./local-cluster.ts";

const canRun = (await findVersitygw()) !== undefined;

let cluster: LocalCluster | undefined;
let folder: string | undefined;
afterEach(async () => {
  await cluster?.stop();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

/** Sends rows with keys to any edge, each until it is acknowledged. */
class Client {
  acknowledged = 0;
  retries = 0;
  readonly #name: string;
  readonly #edges: readonly string[];

  constructor(name: string, edges: readonly string[]) {
    this.#name = name;
    this.#edges = edges;
  }

  async run(until: AbortSignal): Promise<void> {
    for (let n = 0; !until.aborted; n++) await this.#send(`${this.#name}-${n}`);
  }

  async #send(id: string): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      const edge = this.#edges[attempt % this.#edges.length] ?? "";
      try {
        const headers = {
          "Content-Type": "application/x-ndjson",
          "X-Table": "events",
          "X-Idempotency-Key": id,
        };
        const body = [0, 1, 2].map((i) => `${JSON.stringify({ body: `${id}/${i}` })}\n`).join("");
        const signal = AbortSignal.timeout(20_000);
        const answer = await fetch(`${edge}/v1/ingest`, { method: "POST", headers, body, signal });
        const text = await answer.text();
        if (answer.status === 200) break;
        if (answer.status < 429) throw new Refused(`${answer.status} ${text}`);
      } catch (error) {
        if (error instanceof Refused) throw error;
        // The edge is down, or cut the connection: the same again.
      }
      this.retries++;
      await delay(100);
    }
    this.acknowledged++;
  }
}

class Refused extends Error {}

async function countOf(edge: string): Promise<{ rows: number; ids: number }> {
  const sql = "SELECT count(*) AS rows, count(DISTINCT body) AS ids FROM events";
  const answer = await fetch(`${edge}/v1/query`, { method: "POST", body: sql });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`);
  return JSON.parse(text) as { rows: number; ids: number };
}

describe.skipIf(!canRun)("a cluster whose parts are killed in random order", () => {
  test.each(["sync", "staged"])(
    "loses nothing that it acknowledged and doubles nothing (%s)",
    async (mode) => {
      const random = seededRandom(11);
      folder = mkdtempSync(join(tmpdir(), "engine-chaos-"));
      const env = { ENGINE_INGEST_MODE: mode, ENGINE_DRAIN_NOTICE_SECS: "0", ENGINE_COMPACTION_POLL_SECS: "1" };
      cluster = await startLocalCluster({ folder, env, counts: { worker: 0 } });
      const { edges, programs } = cluster;
      const ended = new AbortController();
      const clients = ["a", "b", "c", "d"].map((name) => new Client(name, name < "c" ? edges : edges.toReversed()));
      const running = clients.map((client) => client.run(ended.signal));
      const victims = [...programs.keys()];
      for (let event = 0; event < 8; event++) {
        const name = victims[Math.floor(random.next() * victims.length)] ?? "";
        const victim = programs.get(name);
        await delay(500 + random.next() * 500);
        await victim?.kill();
        await delay(random.next() * 1_000);
        await victim?.start();
      }
      ended.abort();
      await Promise.all(running);
      const expected = clients.reduce((sum, { acknowledged }) => sum + acknowledged * 3, 0);
      expect(expected).toBeGreaterThan(100);
      for (const edge of edges) {
        let found = { rows: -1, ids: -1 };
        // Staged rows become visible within moments; a query may meet a server that is still coming back.
        for (let i = 0; i < 200 && found.rows !== expected; i++) {
          found = await countOf(edge).catch(() => found);
          if (found.rows !== expected) await delay(100);
        }
        expect({ ...found, seed: 11 }).toEqual({ rows: expected, ids: expected, seed: 11 });
      }
    },
    180_000,
  );
});
