import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { availableCores } from "../../../src/core/available-cores.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { cutBySize } from "../../support/bodies.ts";
import type { Cut } from "../../support/load-plan.ts";
import { MIB } from "../../support/report.ts";
import { synthetic } from "../../support/shapes.ts";
import type { Profile } from "../profiles/profile.ts";
import { Driver } from "./driver.ts";
import { mergeResults, type LoadRun } from "./load-run.ts";
import type { DrivePlan, DriveResult, Pace, RequestPlan } from "./plan.ts";
import { connectTo, headOf, targetOf, withLength, type Target } from "./target.ts";

/** Drives a load: data, generator processes, and one result of all of them. */

export type DriveOptions = {
  /** Of the server; `https:` with a `ca` (PEM) that has signed its certificate. */
  url: string;
  ca?: string | undefined;
  profile: Profile;
  /** Rows and arrivals are drawn from it. */
  seed: number;
  signal: AbortSignal;
  /** Generators; half of the cores unless given, and never more than clients. */
  processes?: number | undefined;
};

/** What one run does otherwise than the profile says. */
export type RunOptions = {
  rate?: { perSecond: number } | "closed";
  durationMs?: number;
  clients?: number;
  /** Called when all generators are ready, just before the first request is sent: counts of CPU begin here. */
  onStart?: () => void;
};

/** A load whose data is made and whose tables have their rows; it can be run more than once. */
export type Load = {
  run(options?: RunOptions): Promise<LoadRun>;
  /** Removes the data. */
  close(): Promise<void>;
};

/** Runs the profile once. Rejects with the signal's reason when it is aborted, its processes and files being gone. */
export async function driveLoad({ onStart, ...options }: DriveOptions & Pick<RunOptions, "onStart">): Promise<LoadRun> {
  const load = await openLoad(options);
  try {
    return await load.run(onStart === undefined ? {} : { onStart });
  } finally {
    await load.close();
  }
}

export async function openLoad(options: DriveOptions): Promise<Load> {
  options.signal.throwIfAborted();
  const folder = await mkdtemp(join(tmpdir(), "engine-bench-load-"));
  const close = () => rm(folder, { recursive: true, force: true });
  try {
    const target = targetOf(options.url, options.ca);
    await fillTables(options.profile, target, options);
    const requests = await requestPlans(options, folder);
    let runs = 0;
    const run = async (own: RunOptions = {}) => await runOnce(options, { target, requests, own, number: runs++ });
    return { run, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The names of the tables that a profile's rows go to. */
export function loadTables({ data, protocol }: Profile): string[] {
  return protocol === "otlp" ? ["otel_logs"] : Array.from({ length: data.tables }, (_, i) => `load_${i}`);
}

/** Gives every table the rows that it has before the load begins. */
async function fillTables({ data }: Profile, target: Target, { seed, signal }: DriveOptions): Promise<void> {
  if (data.rows_before === 0) return;
  const { ndjson } = synthetic(data.shape, data.rows_before, seed);
  for (let table = 0; table < data.tables; table++) await fillTable(target, `load_${table}`, ndjson, signal);
}

/** Sends rows to a table, in bodies of a MiB. */
export async function fillTable(target: Target, table: string, ndjson: Buffer, signal: AbortSignal): Promise<void> {
  const connection = await connectTo(target);
  try {
    for (const body of cutBySize(ndjson, MIB)) {
      signal.throwIfAborted();
      const headers = { "X-Table": table, "Content-Type": "application/x-ndjson" };
      const head = headOf(target, "POST", "/v1/ingest", headers);
      const answer = await connection.send(withLength(head, body), body);
      if (answer.status !== 200) throw new Error(`filling ${table} was answered ${answer.status}: ${answer.body}`);
    }
  } finally {
    connection.close();
  }
}

/** Enough rows that bodies differ. */
const LEAST_ROWS = 20_000;
const LEAST_BODIES = 4;
const SAMPLE_ROWS = 100;

async function requestPlans({ profile, seed }: DriveOptions, folder: string): Promise<RequestPlan[]> {
  const plans: RequestPlan[] = [];
  const { ingest, data, protocol } = profile;
  if (ingest !== undefined) {
    const { share, compression } = ingest;
    const body = { name: "ingest", share, compression, ...(ingest.keys ? { keyPrefix: "" } : {}) };
    if (protocol === "otlp") plans.push({ kind: "otlp", records: ingest.rows ?? 1, ...body });
    else {
      const cut: Cut = ingest.body === undefined ? { rows: ingest.rows ?? 1 } : { sizeBytes: ingest.body };
      const file = join(folder, "rows.ndjson");
      // Other rows than those that the tables have before.
      await writeFile(file, synthetic(data.shape, rowsFor(profile, cut), seed + 1).ndjson);
      plans.push({ kind: "ingest", file, cut, tables: loadTables(profile), ...body });
    }
  }
  for (const [index, { share, name, sql }] of profile.queries.entries()) {
    plans.push({ kind: "query", name: name ?? `query_${index}`, share, sql });
  }
  if (profile.health !== undefined) plans.push({ kind: "health", name: "health", share: profile.health.share });
  return plans;
}

function rowsFor({ data }: Profile, cut: Cut): number {
  const rowBytes = synthetic(data.shape, SAMPLE_ROWS).ndjson.length / SAMPLE_ROWS;
  const rowsOfBody = "rows" in cut ? cut.rows : Math.ceil(cut.sizeBytes / rowBytes);
  // The last body is perhaps short, and not sent.
  return Math.max(LEAST_ROWS, (LEAST_BODIES + 1) * rowsOfBody);
}

/** Between the word to begin and the beginning, so that every generator has heard of it. */
const HEAD_START_MS = 100;

type Once = { target: Target; requests: readonly RequestPlan[]; own: RunOptions; number: number };

async function runOnce(options: DriveOptions, once: Once): Promise<LoadRun> {
  const { signal, profile } = options;
  signal.throwIfAborted();
  const plans = plansOf(options, once);
  const drivers = plans.map(() => new Driver());
  const endAll = async () => void (await Promise.all(drivers.map((driver) => driver.end())));
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const working = drive(drivers, plans, once.own.onStart);
    const { results, wallSeconds } = await Promise.race([working, aborted.promise]);
    const names = once.requests.map(({ name }) => name);
    const durationMs = once.own.durationMs ?? profile.duration;
    return mergeResults(results, names, { wallSeconds, cores: availableCores(), durationMs });
  } catch (error) {
    // A terminal's Ctrl-C may end a generator before this process has heard of it.
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
    await endAll();
  }
}

async function drive(
  drivers: readonly Driver[],
  plans: readonly DrivePlan[],
  onStart: RunOptions["onStart"],
): Promise<{ results: DriveResult[]; wallSeconds: number }> {
  await Promise.all(drivers.map(async (driver, index) => await driver.prepare(planAt(plans, index))));
  onStart?.();
  const startMs = systemClock.monotonicMs() + HEAD_START_MS;
  const startAtMs = systemClock.nowMs() + HEAD_START_MS;
  const results = await Promise.all(drivers.map(async (driver) => await driver.run(startAtMs)));
  return { results, wallSeconds: (systemClock.monotonicMs() - startMs) / 1_000 };
}

function planAt(plans: readonly DrivePlan[], index: number): DrivePlan {
  const plan = plans[index];
  if (plan === undefined) throw new Error(`generator ${index} has no plan`);
  return plan;
}

/** A plan for each generator: its part of the clients and of the rate. */
function plansOf(options: DriveOptions, { target, requests, own, number }: Once): DrivePlan[] {
  const { profile, seed } = options;
  const clients = own.clients ?? profile.clients;
  const processes = Math.min(clients, options.processes ?? Math.max(1, availableCores() >> 1));
  const run = randomUUID();
  return Array.from({ length: processes }, (_, index) => ({
    target,
    requests: requests.map((request) => withKeys(request, `${run}-${index}`)),
    connections: Math.floor(clients / processes) + (index < clients % processes ? 1 : 0),
    pace: paceOf(profile, own.rate ?? profile.rate, { index, processes, seed: seed + number }),
    durationMs: own.durationMs ?? profile.duration,
  }));
}

/** The same key would be an answer from before. */
function withKeys(request: RequestPlan, keyPrefix: string): RequestPlan {
  return "keyPrefix" in request ? { ...request, keyPrefix } : request;
}

function paceOf(
  { arrivals }: Profile,
  rate: Profile["rate"],
  { index, processes, seed }: { index: number; processes: number; seed: number },
): Pace | undefined {
  if (rate === "closed") return undefined;
  if (rate === "saturation")
    throw new Error("the profile asks for the saturation: search for it with a rate for each run");
  const perSecond = rate.perSecond / processes;
  if (arrivals === "even") return { perSecond, phase: index / processes };
  return { perSecond, poissonSeed: seed * processes + index };
}
