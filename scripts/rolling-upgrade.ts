import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/core/clock.ts";
import { delay } from "../src/core/waiting.test-kit.ts";
import { Balancer } from "../test/cluster/balancer.ts";
import { startLocalCluster, TODAY, type LocalCluster } from "../test/cluster/local-cluster.ts";
import { ingest, query } from "../test/support/client.ts";
import { checkOut } from "../test/upgrade/check-out.ts";
import { EARLIER } from "../test/upgrade/earlier.ts";

/**
 * A rolling upgrade under load: `node scripts/rolling-upgrade.ts [commit] [quiet seconds]`.
 *
 * A cluster of that commit (the newest of `test/upgrade/earlier.ts` unless named) is replaced by this checkout, one server
 * after the other, edges last, while clients write and read through two edges. A client asks the edges that `/health` says
 * are healthy, as behind a load balancer, and sends nothing twice. Fails unless every request succeeded, p99 stayed within
 * three times that of the quiet time before, and every acknowledged row is there once.
 */
const [commit = EARLIER.at(-1)?.commit ?? "HEAD", quietSecs = "20"] = process.argv.slice(2);
const WRITERS = 4;
const READERS = 2;
const P99_FACTOR = 3;

type Phase = { name: string; latenciesMs: number[]; failures: string[] };

const folder = mkdtempSync(join(tmpdir(), "engine-rolling-"));
let cluster: LocalCluster | undefined;

async function main(): Promise<number> {
  const earlier = checkOut(commit, join(folder, "earlier"));
  const replaced = new Set<string>();
  cluster = await startLocalCluster({
    env: { ENGINE_SANDBOX_RUNTIME: "off" },
    counts: { edge: 2, query: 2, ingest: 2, committer: 1, compaction: 1, worker: 0 },
    entryOf: (name) => (replaced.has(name) ? TODAY : earlier),
  });
  const { edges, programs, urls } = cluster;
  const balancer = new Balancer(edges);
  await balancer.start();
  const load = new Load(balancer);
  await load.for("warm-up", 5);
  const quiet = await load.for("quiet", Number(quietSecs));
  const upgrade = load.begin("upgrade");
  for (const name of urls.keys()) {
    replaced.add(name);
    await programs.get(name)?.stop();
    await programs.get(name)?.start();
    console.log(`${name} replaced`);
    await delay(2_000);
  }
  const rows = await load.end();
  await balancer.stop();
  const [before, during] = [quiet, upgrade].map(tell);
  const [edge = ""] = edges;
  const there = await query(edge, "SELECT count(*) AS n, count(DISTINCT id) AS ids FROM t");
  console.log(`acknowledged ${rows}, there ${there.text.trim()}`);
  const isWhole = there.text === `{"n":${rows},"ids":${rows}}\n`;
  const failures = quiet.failures.length + upgrade.failures.length;
  return isWhole && failures === 0 && (during ?? Infinity) <= P99_FACTOR * (before ?? 0) ? 0 : 1;
}

class Load {
  #phase: Phase = { name: "before", latenciesMs: [], failures: [] };
  readonly #balancer: Balancer;
  #acknowledged = 0;
  #isRunning = true;
  readonly #working: Promise<unknown>;

  constructor(balancer: Balancer) {
    this.#balancer = balancer;
    const writers = Array.from({ length: WRITERS }, (_, i) => this.#write(`writer-${i}`));
    const readers = Array.from({ length: READERS }, () => this.#read());
    this.#working = Promise.all([...writers, ...readers]);
  }

  begin(name: string): Phase {
    this.#phase = { name, latenciesMs: [], failures: [] };
    return this.#phase;
  }

  async for(name: string, secs: number): Promise<Phase> {
    const phase = this.begin(name);
    await delay(secs * 1000);
    return phase;
  }

  /** Resolves to how many rows were acknowledged. */
  async end(): Promise<number> {
    this.#isRunning = false;
    await this.#working;
    return this.#acknowledged;
  }

  async #write(name: string): Promise<void> {
    for (let n = 0; this.#isRunning; n++) {
      const body = `${JSON.stringify({ id: `${name}-${n}` })}\n`;
      if (await this.#timed((url) => ingest(url, "t", body))) this.#acknowledged++;
    }
  }

  async #read(): Promise<void> {
    while (this.#isRunning) {
      // The table comes with the first row.
      if (this.#acknowledged > 0) await this.#timed((url) => query(url, "SELECT count(*) AS n FROM t"));
      await delay(20);
    }
  }

  /** One request to an edge that is healthy; whether it succeeded. */
  async #timed(send: (url: string) => Promise<{ status: number; text: string }>): Promise<boolean> {
    const phase = this.#phase;
    const startedMs = systemClock.monotonicMs();
    const problem = await problemOf(async () => send(this.#balancer.next()));
    phase.latenciesMs.push(systemClock.monotonicMs() - startedMs);
    if (problem === undefined) return true;
    phase.failures.push(problem);
    await delay(100);
    return false;
  }
}

async function problemOf(send: () => Promise<{ status: number; text: string }>): Promise<string | undefined> {
  try {
    const { status, text } = await send();
    return status === 200 ? undefined : `${status} ${text}`;
  } catch (error) {
    return String(error);
  }
}

/** Prints the phase and gives its p99 in ms. */
function tell({ name, latenciesMs, failures }: Phase): number {
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? Infinity;
  const [p50, p99, most] = [at(0.5), at(0.99), at(1)].map((ms) => ms.toFixed(1));
  console.log(`${name}: ${sorted.length} requests, ${failures.length} failed; ms: p50 ${p50}, p99 ${p99}, max ${most}`);
  for (const failure of new Set(failures.slice(0, 20))) console.log(`  ${failure}`);
  return at(0.99);
}

try {
  process.exitCode = await main();
} finally {
  await cluster?.giveUp();
  rmSync(folder, { recursive: true, force: true });
}
