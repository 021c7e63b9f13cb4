import { createHash, randomUUID } from "node:crypto";
import type { Costs } from "../../src/capacity/costs/costs.ts";
import { messageOf } from "../../src/core/errors.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import type { ColumnSpec } from "../../src/format/types.ts";
import { fillTable, openLoad, type Load } from "../load/drive/drive-load.ts";
import type { LoadRun } from "../load/drive/load-run.ts";
import { targetOf } from "../load/drive/target.ts";
import { BOUNDS, findSaturation } from "../load/drive/saturation.ts";
import type { Profile } from "../load/profiles/profile.ts";
import { withCatalog } from "../support/catalog.ts";
import { scrape } from "../support/scrape.ts";
import { startBenchServer } from "../support/server.ts";
import { SHAPES, synthetic } from "../support/shapes.ts";
import { HELD_OUT, type Case } from "./cases.ts";
import { predictionOf } from "./predict.ts";
import type { Measured, Prediction, Proof } from "./proof-file.ts";
import { quotaOf, type Quota } from "./quota.ts";

export type ProveOptions = {
  costs: Costs;
  /** Of each run at the case's rate; a trial of the search takes a third of it. */
  seconds: number;
  only?: string | undefined;
  seed: number;
  signal: AbortSignal;
  say: (line: string) => void;
  /** Takes the predictions before anything is run. */
  keep: (text: string) => Promise<void>;
};

export async function prove(options: ProveOptions): Promise<Pick<Proof, "predictionsSha256" | "cases" | "seconds">> {
  const { costs, only, say, keep } = options;
  const cases = HELD_OUT.filter(({ name }) => only === undefined || name === only);
  if (cases.length === 0)
    throw new Error(`there is no case ${only}; there are ${HELD_OUT.map(({ name }) => name).join(", ")}`);
  const predicted = cases.map((each) => predictionOf(each, costs));
  const text = `${JSON.stringify(Object.fromEntries(cases.map(({ name }, i) => [name, predicted[i]])), undefined, 2)}\n`;
  await keep(text);
  const done: Proof["cases"] = [];
  for (const [i, each] of cases.entries()) {
    options.signal.throwIfAborted();
    const plan = predicted[i];
    if (plan === undefined) break;
    const startedMs = systemClock.monotonicMs();
    try {
      const seen = await runCase(each, plan, options);
      done.push({ name: each.name, mode: each.mode, predicted: plan, measured: seen });
      say(`${each.name}: ${((systemClock.monotonicMs() - startedMs) / 1_000).toFixed(0)} s`);
    } catch (error) {
      // What the other cases say has taken a quarter of an hour.
      options.signal.throwIfAborted();
      say(`${each.name}: no result: ${messageOf(error)}`);
    }
  }
  if (done.length === 0) throw new Error("no case has a result");
  return { predictionsSha256: sha256(text), cases: done, seconds: options.seconds };
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** What a case runs on. */
type Subject = {
  url: string;
  createTable: (name: string, columns: readonly ColumnSpec[]) => Promise<void>;
  /** By role. */
  pids: Readonly<Record<string, number>>;
  cpuSeconds: () => Readonly<Record<string, number>>;
  /** Bytes of extents committed, and PUTs to the object store so far. */
  counts: () => Promise<{ storedBytes: number; puts: number }>;
  stop: () => Promise<void>;
};

async function runCase(each: Case, plan: Prediction, options: ProveOptions): Promise<Measured> {
  const subject = each.mode === "single" ? await startSingle() : await startCluster(each.mode);
  const quotas: Quota[] = [];
  try {
    const id = randomUUID().slice(0, 8);
    for (const [role, pid] of Object.entries(subject.pids)) {
      const quota = await quotaOf(`engine-proof-${id}-${role}`, each.quota);
      quotas.push(quota);
      await quota.hold(pid);
    }
    // Declared, as in the runs that costs are fitted to.
    for (let i = 0; i < each.tables; i++) await subject.createTable(`load_${i}`, SHAPES[each.shape].columns);
    const { seed, signal } = options;
    if (each.queries !== undefined) {
      await subject.createTable(ASKED, SHAPES[each.shape].columns);
      const { ndjson } = synthetic(each.shape, each.queries.rowsBefore, seed);
      await fillTable(targetOf(subject.url, undefined), ASKED, ndjson, signal);
    }
    const load = await openLoad({ url: subject.url, profile: profileOf(each), seed, signal, processes: 1 });
    try {
      return await measureCase(each, { subject, load, plan, options });
    } finally {
      await load.close();
    }
  } finally {
    await subject.stop();
    for (const quota of quotas) await quota.remove();
  }
}

/**
 * Code becomes fast by running, and a load of thirty requests a second would take minutes for that: what a server costs
 * that has run for long is what is predicted. So it first takes half of what it should take at most, then the search, and
 * only then the case's own rate.
 */
const WARM_UP_SHARE = 0.6;
const WARM_UP_UTILISATION = 0.5;
const TRIAL_SHARE = 1 / 3;
/** The committer and a flush that waited are done by then. */
const SETTLE_MS = 1_500;

async function measureCase(
  each: Case,
  { subject, load, plan, options }: { subject: Subject; load: Load; plan: Prediction; options: ProveOptions },
): Promise<Measured> {
  const durationMs = options.seconds * 1_000;
  const rate = totalRate(each);
  const warm = Math.max(rate, rate * (plan.saturation.perSecond / each.requestsPerSecond) * WARM_UP_UTILISATION);
  await load.run({ rate: { perSecond: warm }, durationMs: durationMs * WARM_UP_SHARE });
  const found = await findSaturation({
    run: async (perSecond) => await load.run({ rate: { perSecond }, durationMs: durationMs * TRIAL_SHARE }),
    bounds: BOUNDS,
    startPerSecond: rate,
    precision: 0.05,
    signal: options.signal,
  });
  await sleep(systemClock, SETTLE_MS);
  const before = await subject.counts();
  const cpuBefore = subject.cpuSeconds();
  const startedMs = systemClock.monotonicMs();
  const run = await load.run({ rate: { perSecond: rate }, durationMs });
  mustHaveWorked(each, run);
  await sleep(systemClock, SETTLE_MS);
  const cpuAfter = subject.cpuSeconds();
  const seconds = (systemClock.monotonicMs() - startedMs) / 1_000;
  const after = await subject.counts();
  const cores = Object.entries(cpuAfter).map(([role, cpu]) => [
    role,
    // What a process does without a load is in the prediction for every second.
    (cpu - (cpuBefore[role] ?? 0)) / seconds,
  ]);
  const idleShare = options.seconds / seconds;
  return {
    cores: Object.fromEntries(cores.map(([role, busy]) => [role, Number(busy) / idleShare])),
    saturationPerSecond: found.perSecond * (each.requestsPerSecond / rate),
    p99Ms: (run.byRequest["ingest"] ?? run).latencyMs.p99,
    storedPerRawByte: (after.storedBytes - before.storedBytes) / run.bytesAcknowledged,
    putsPerSecond: plan.putsPerSecond === null ? null : (after.puts - before.puts) / options.seconds,
    generatorShare: run.generatorShare,
    marks: run.marks,
  };
}

function mustHaveWorked({ name }: Case, { failed, firstFailure, accepted }: LoadRun): void {
  if (failed > 0 || accepted === 0) throw new Error(`${name}: requests failed: ${firstFailure ?? "none was accepted"}`);
}

function totalRate({ requestsPerSecond, queries }: Case): number {
  return requestsPerSecond + (queries?.perSecond ?? 0);
}

function profileOf(each: Case): Profile {
  const rate = totalRate(each);
  return {
    role: "all_in_one",
    protocol: "http",
    tls: false,
    clients: each.clients,
    rate: { perSecond: rate },
    arrivals: "poisson",
    duration: 1_000,
    data: { shape: each.shape, tables: each.tables, rows_before: 1_000 },
    ingest: { share: each.requestsPerSecond / rate, rows: each.rowsPerRequest, keys: true, compression: "none" },
    queries: each.queries === undefined ? [] : [{ share: each.queries.perSecond / rate, name: "asked", sql: GROUPED }],
  };
}

/**
 * The table that queries read: the plan says of how many rows, and the others have more of them with every second of the
 * search for the rate that holds.
 */
const ASKED = "asked";
const GROUPED = `SELECT service, status, count(*) AS n, avg(duration_ms) AS d FROM ${ASKED} GROUP BY ALL ORDER BY ALL`;

async function startSingle(): Promise<Subject> {
  const server = await startBenchServer();
  return {
    url: server.url,
    createTable: async (name, columns) => {
      await withCatalog(server.home, (catalog) => catalog.createTable({ database: "default", name, columns }), "admin");
    },
    pids: { server: server.pid },
    cpuSeconds: () => ({ server: server.cpuSeconds() }),
    counts: async () => ({ storedBytes: await committedBytes(server.url), puts: 0 }),
    stop: () => server.stop(),
  };
}

async function startCluster(mode: "sync" | "staged"): Promise<Subject> {
  const { startBenchCluster } = await import("../support/bench-cluster.ts");
  const cluster = await startBenchCluster({ mode, compaction: false });
  const committers = [...cluster.local.urls.values()];
  const roles = ["edge", "ingest", "committer", "query"] as const;
  return {
    url: cluster.edgeUrl,
    createTable: (name, columns) => cluster.createTable(name, columns),
    pids: Object.fromEntries(
      roles.flatMap((role) => {
        const pid = cluster.pids.get(role);
        return pid === undefined ? [] : [[role, pid]];
      }),
    ),
    cpuSeconds: () => {
      const { edge, ingest, committer, query } = cluster.cpuSeconds();
      return { edge, ingest, committer, query };
    },
    counts: async () => {
      const { s3Requests } = await cluster.counts();
      const bytes = await Promise.all(committers.map((url) => committedBytes(url)));
      return { storedBytes: bytes.reduce((sum, one) => sum + one, 0), puts: s3Requests.get("put") ?? 0 };
    },
    stop: () => cluster.stop(),
  };
}

async function committedBytes(url: string): Promise<number> {
  const samples = await scrape(url);
  return samples
    .filter(({ name }) => name === "engine_extents_committed_bytes_total")
    .reduce((sum, { value }) => sum + value, 0);
}
