import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "../../src/core/errors.ts";
import { seededRandom, type Random } from "../../src/core/random.ts";
import { checkAnswers, checkStorage } from "./chaos-check.ts";
import { ChaosLoad } from "./chaos-load.ts";
import { startLocalCluster, TODAY, type LocalCluster } from "./local-cluster.ts";
import type { Program } from "./program.ts";
import { startFaultyStore, type StoreFaults } from "./store-faults.ts";

/**
 * A cluster under the load of clients that retry, while its processes are killed with -9, frozen for longer than their
 * leases, and restarted in order: every role, PostgreSQL and the S3 server, several at a time, by a plan that is drawn
 * from a seed. Then what is there is compared with what the clients were told.
 */
export type ChaosOptions = {
  events: number;
  seed: number;
  mode: "sync" | "staged";
  /** Nothing is frozen for longer. Below 65 s not all leases end. */
  maxFreezeMs?: number;
  store?: StoreFaults;
  /** Two versions at once; without it all is of this checkout. */
  mixed?: Mixed;
  /** Takes a line for each event. */
  say?: (line: string) => void;
};

/** The cluster starts as an earlier version, and what ends comes back as this one: an upgrade amid faults. */
export type Mixed = {
  /** The earlier program. */
  entry: string;
  /** It runs on a catalog that this version has changed: half of what ends comes back as the earlier version then. */
  comesBack: boolean;
};

export type ChaosReport = {
  events: number;
  /** Of each kind. */
  kinds: Record<string, number>;
  requests: number;
  retries: number;
  queries: number;
  rows: number;
  /** Answers other than success, by status, code and what they say. */
  refusals: Record<string, number>;
  problems: string[];
  /** How often each version was started, those that did not serve included. */
  starts: { earlier: number; today: number };
  /** Where the logs and the data are, which are kept when there are problems. */
  folder: string;
};

type Event = { victim: string; kind: "kill" | "freeze" | "restart"; afterMs: number; downMs: number };

/** How long a part has to be frozen until others may take over: as long as the leases of its duties. */
const LEASE_MS: Readonly<Record<string, number>> = { committer: 10_000, compaction: 30_000 };
const USUAL_LEASE_MS = 10_000;
/** What a query server says that it reads is kept for so long; with both frozen nobody would read anything meanwhile. */
const HOLD_MS = 60_000;
const HOLD_SHARE = 0.2;
const LONGEST_FREEZE_MS = 65_000;
const PAUSE_MS = { least: 300, spread: 1_500 };
const DOWN_SPREAD_MS = 1_500;
/** Kills, and freezes; the rest are restarts. */
const SHARES = { kill: 0.5, freeze: 0.2 };
const FROZEN_LONGER_MS = { least: 500, spread: 1_500 };

const COUNTS = { query: 2, ingest: 2, committer: 2, compaction: 2, worker: 0, edge: 2 };
/** As much as can go on at once does: merges, deletion, drains that are noticed. */
const ENV = {
  ENGINE_DRAIN_NOTICE_SECS: "1",
  ENGINE_COMPACTION_POLL_SECS: "1",
  ENGINE_COMPACTION_MIN_EXTENTS: "8",
  ENGINE_PHYSICAL_GC_POLL_SECS: "2",
  ENGINE_PHYSICAL_GC_GRACE_SECS: "5",
};

/** Runs it all; what does not hold is in `problems`. Rejects when the cluster cannot be started at all. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { mode, seed, store, mixed } = options;
  const versions = new Versions(mixed, seed);
  const cluster = await startLocalCluster({
    env: { ...ENV, ENGINE_INGEST_MODE: mode },
    counts: COUNTS,
    entryOf: (name) => versions.entryOf(name),
    ...(store !== undefined && { proxy: (endpoint) => startFaultyStore(endpoint, store, seed) }),
  });
  let report: ChaosReport | undefined;
  try {
    report = { ...(await chaosIn(cluster, options)), starts: versions.starts };
    if (mixed !== undefined) report.problems.push(...versions.problems());
    return report;
  } finally {
    await cluster.giveUp(report?.problems.length === 0 ? undefined : "kept");
  }
}

async function chaosIn(cluster: LocalCluster, options: ChaosOptions): Promise<Omit<ChaosReport, "starts">> {
  const { seed, mode } = options;
  const load = new ChaosLoad({ edges: cluster.edges, seed, isSync: mode === "sync" });
  const plan = planOf([...cluster.programs.keys()], options);
  load.start();
  const say = options.say ?? (() => {});
  const problems = await carryOut(plan, cluster, say);
  say("all parts serve again");
  await load.stop();
  say("all requests are acknowledged");
  problems.push(...load.problems, ...(await checkAnswers(cluster, load)));
  say("all answers are checked");
  for (const [name, program] of cluster.programs) if (name.startsWith("compaction")) await program.stop();
  problems.push(...(await checkStorage(cluster)), ...(await orphansOf(cluster)));
  return {
    events: plan.length,
    kinds: Object.fromEntries([...Map.groupBy(plan, ({ kind }) => kind)].map(([kind, some]) => [kind, some.length])),
    requests: load.sent.size,
    retries: load.retries,
    queries: load.queries,
    rows: [...load.sent.values()].reduce((sum, { rows, acknowledged }) => sum + (acknowledged ? rows : 0), 0),
    refusals: load.refusals,
    problems,
    folder: cluster.folder,
  };
}

/** Which program each part runs at its next start. */
class Versions {
  readonly starts = { earlier: 0, today: 0 };
  readonly #mixed: Mixed | undefined;
  readonly #random: Random;
  readonly #begun = new Set<string>();

  constructor(mixed: Mixed | undefined, seed: number) {
    this.#mixed = mixed;
    this.#random = seededRandom(seed);
  }

  entryOf(name: string): string {
    if (this.#mixed === undefined || !this.#isEarlier(this.#mixed, name)) {
      this.starts.today++;
      return TODAY;
    }
    this.starts.earlier++;
    return this.#mixed.entry;
  }

  /** That both versions ran, and where the earlier one comes back, that it did. */
  problems(): string[] {
    const { earlier, today } = this.starts;
    const cameBack = this.#mixed?.comesBack === true ? earlier > this.#begun.size : true;
    if (today > 0 && earlier > 0 && cameBack) return [];
    return [`too few events to mix two versions: ${earlier} starts of the earlier, ${today} of this one`];
  }

  #isEarlier({ comesBack }: Mixed, name: string): boolean {
    const isFirstStart = !this.#begun.has(name);
    this.#begun.add(name);
    return isFirstStart || (comesBack && this.#random.next() < 0.5);
  }
}

/** The same seed gives the same events in the same order. */
function planOf(names: readonly string[], { events, seed, maxFreezeMs = LONGEST_FREEZE_MS }: ChaosOptions): Event[] {
  const random = seededRandom(seed);
  const plan: Event[] = [];
  while (plan.length < events) {
    const victim = names[Math.floor(random.next() * names.length)] ?? "";
    const kind = kindOf(random);
    const role = victim.replace(/-\d+$/, "");
    const isLong = random.next() < HOLD_SHARE;
    const leaseMs = role === "query" && isLong ? HOLD_MS : (LEASE_MS[role] ?? USUAL_LEASE_MS);
    const frozenMs = leaseMs + FROZEN_LONGER_MS.least + random.next() * FROZEN_LONGER_MS.spread;
    const downMs = kind === "freeze" ? Math.min(frozenMs, maxFreezeMs) : random.next() * DOWN_SPREAD_MS;
    plan.push({ victim, kind, downMs, afterMs: PAUSE_MS.least + random.next() * PAUSE_MS.spread });
  }
  return plan;
}

function kindOf(random: Random): Event["kind"] {
  const drawn = random.next();
  if (drawn < SHARES.kill) return "kill";
  return drawn < SHARES.kill + SHARES.freeze ? "freeze" : "restart";
}

/** Events do not wait for each other, unless they meet in one part; resolves when all parts serve again. */
async function carryOut(plan: readonly Event[], cluster: LocalCluster, say: (line: string) => void): Promise<string[]> {
  const problems: string[] = [];
  const busy = new Map<string, Promise<void>>();
  for (const [i, event] of plan.entries()) {
    const { victim, kind, afterMs, downMs } = event;
    await delay(afterMs);
    await busy.get(victim);
    const program = cluster.programs.get(victim);
    if (program === undefined) throw new Error(`there is no ${victim}`);
    if (!program.isRunning) problems.push(`${victim} had ended by itself:\n${program.logEnd()}`);
    say(`${i + 1}/${plan.length} ${kind} ${victim}, ${Math.round(downMs)} ms`);
    const done = happen(event, program).catch((error: unknown) => {
      problems.push(`${kind} of ${victim}: ${messageOf(error)}`);
    });
    busy.set(victim, done);
  }
  await Promise.all(busy.values());
  return problems;
}

async function happen({ kind, downMs }: Event, program: Program): Promise<void> {
  if (kind === "freeze") {
    program.pause();
    await delay(downMs);
    program.resume();
    return;
  }
  if (kind === "kill") await program.kill();
  else await program.stop();
  await delay(downMs);
  await restarted(program);
}

const STARTS = 20;
const BETWEEN_STARTS_MS = 500;

/** As a supervisor does it: a server that does not find its catalog ends, and is started again. */
async function restarted(program: Program): Promise<void> {
  for (let start = 1; ; start++) {
    try {
      return await program.start();
    } catch (error) {
      if (start === STARTS || program.isRunning) throw error;
      await delay(BETWEEN_STARTS_MS);
    }
  }
}

const ORPHANS_END_WITHIN_MS = 10_000;

/** Processes whose parent was killed, and that did not notice; looked for once no engine runs any more. */
async function orphansOf({ programs }: LocalCluster): Promise<string[]> {
  const engines = [...programs.values()].filter(({ name }) => name !== "postgres" && name !== "s3");
  for (const program of engines) await program.kill();
  for (let waitedMs = 0; ; waitedMs += 100) {
    const left = engines.flatMap((program) => program.survivors().map((pid) => `${program.name}: process ${pid}`));
    if (left.length === 0) return [];
    if (waitedMs >= ORPHANS_END_WITHIN_MS) return left.map((name) => `${name} is left over`);
    await delay(100);
  }
}
