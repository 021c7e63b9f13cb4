import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { NO_FSYNC, startTestServer, type TestServer } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { seededRandom, type Random } from "../../src/core/random.ts";
import { startEngine, type Engine } from "../support/engine.ts";
import { checkJobs, type JobCheck } from "./jobs-check.ts";
import { JobsClient } from "./jobs-client.ts";
import { makeDaemon } from "./jobs-node.ts";
import { type Program } from "./program.ts";
import { freePort } from "../../src/core/waiting.test-kit.ts";

/**
 * A control plane and node daemons as processes of their own, with jobs short and long, while any of them are killed with
 * -9, frozen for longer than a lease, or restarted, by a plan that is drawn from a seed. Then what daemons did, and what
 * they were told, is compared with the jobs.
 */
export type JobChaosOptions = {
  daemons: number;
  shortJobs: number;
  longJobs: number;
  /** Beside the last one, which kills the control plane and a daemon at once. */
  events: number;
  /** Over how long jobs are enqueued. */
  enqueueMs: number;
  seed: number;
  /** Where PostgreSQL's programs are; without, the catalog is a file of the control plane. */
  postgres: string | undefined;
  /** Takes a line for each event. */
  say?: (line: string) => void;
};

export type JobChaosReport = JobCheck & {
  /** Events, by what they were. */
  events: Record<string, number>;
  /** From the last event until no job was left. */
  settledMs: number;
  /** Where the logs are, which are kept when there are problems. */
  folder: string;
};

const LEASE_SECS = 10;
const SWEEP_SECS = 1;
const LONG_MS = 3_000;
/** What is taken over last is run from the beginning. */
const SETTLED_WITHIN_MS = (LEASE_SECS + SWEEP_SECS) * 1_000 + 5_000 + LONG_MS;
const GIVE_UP_MS = 120_000;
const PAUSE_MS = { least: 300, spread: 1_500 };
const DOWN_SPREAD_MS = 1_500;
const FROZEN_MS = { least: LEASE_SECS * 1_000 + 1_000, spread: 2_000 };

/** What may happen, as often as it is here; every run begins with one of each. */
const KINDS = ["daemon killed", "daemon frozen", "server killed", "server restarted", "database killed"] as const;
const DRAWN: readonly EventKind[] = ["daemon killed", "daemon killed", "daemon killed", "daemon frozen", ...KINDS];
type EventKind = (typeof KINDS)[number] | "server and daemon killed";

/** Runs it all; what does not hold is in `problems`. Rejects when the processes cannot be started at all. */
export async function runJobChaos(options: JobChaosOptions): Promise<JobChaosReport> {
  const run = new ChaosRun(options, mkdtempSync(join(tmpdir(), "engine-jobs-")));
  let report: JobChaosReport | undefined;
  try {
    report = await run.run();
    return report;
  } finally {
    await run.end(report?.problems.length === 0);
  }
}

class ChaosRun {
  readonly #options: JobChaosOptions;
  readonly #folder: string;
  readonly #random: Random;
  readonly #daemons: Program[] = [];
  /** Daemons that nothing else befalls at this moment. */
  readonly #atEase = new Set<Program>();
  readonly #events: Record<string, number> = {};
  readonly #frozen: Promise<void>[] = [];
  #postgres: TestServer | undefined;
  #server: Engine | undefined;
  #start: (() => Promise<Engine>) | undefined;
  #lastEventAtMs = 0;

  constructor(options: JobChaosOptions, folder: string) {
    this.#options = options;
    this.#folder = folder;
    this.#random = seededRandom(options.seed);
  }

  async run(): Promise<JobChaosReport> {
    const { shortJobs, longJobs, enqueueMs, events } = this.#options;
    const url = await this.#startServer();
    const client = new JobsClient(url);
    await this.#startDaemons(client);
    const lastJobs = Math.ceil(longJobs / 2);
    const enqueued = client.enqueueAll({ "x.short": shortJobs, "x.long": longJobs - lastJobs }, enqueueMs);
    // Whoever waits for it later hears of its failure.
    enqueued.catch(() => undefined);
    for (let n = 0; n < events; n++) {
      await delay(PAUSE_MS.least + this.#random.next() * PAUSE_MS.spread);
      const drawn = DRAWN[Math.floor(this.#random.next() * DRAWN.length)] ?? "daemon killed";
      await this.#strike(KINDS[n] ?? drawn);
    }
    await Promise.all([enqueued, ...this.#frozen]);
    // The last event finds every node at work.
    const last = await client.enqueueAll({ "x.long": lastJobs }, LONG_MS / 6);
    await delay(LONG_MS / 6);
    await this.#strike("server and daemon killed");
    const acknowledged = new Set([...(await enqueued), ...last]);
    const settledMs = await this.#settle(client);
    // Whoever was told something has written it down when it has ended.
    for (const daemon of this.#daemons) await daemon.stop();
    const check = checkJobs(await client.allJobs(), acknowledged, this.#files());
    if (settledMs > SETTLED_WITHIN_MS) check.problems.push(`jobs were settled ${settledMs} ms after the last event`);
    return { ...check, events: this.#events, settledMs, folder: this.#folder };
  }

  async end(isWell: boolean): Promise<void> {
    for (const daemon of this.#daemons) await daemon.kill();
    await this.#server?.stop("SIGKILL");
    await this.#postgres?.stop();
    if (isWell) rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }

  async #startServer(): Promise<string> {
    const { postgres } = this.#options;
    const port = await freePort();
    const env: Record<string, string> = {
      ENGINE_FABRIC_LEASE_SECS: String(LEASE_SECS),
      ENGINE_FABRIC_SWEEP_SECS: String(SWEEP_SECS),
      ENGINE_DRAIN_NOTICE_SECS: "0",
    };
    if (postgres !== undefined) {
      this.#postgres = await startTestServer(postgres, NO_FSYNC);
      env["ENGINE_CATALOG_URL"] = await this.#postgres.createDatabase();
    }
    this.#start = () => startEngine({ home: join(this.#folder, "home"), port, env });
    this.#server = await this.#start();
    return this.#server.url;
  }

  async #startDaemons(client: JobsClient): Promise<void> {
    for (let n = 1; n <= this.#options.daemons; n++) {
      const name = `daemon-${n}`;
      const token = await client.admit(name);
      const daemon = makeDaemon({ name, token, url: client.url, folder: this.#folder, longMs: LONG_MS });
      this.#daemons.push(daemon);
      this.#atEase.add(daemon);
      await daemon.start();
    }
  }

  #files(): string[] {
    return this.#daemons.map(({ name }) => join(this.#folder, `${name}.done`));
  }

  /** Resolves when it is over, but for a freeze, which goes on beside others. */
  async #strike(kind: EventKind): Promise<void> {
    this.#events[kind] = (this.#events[kind] ?? 0) + 1;
    const victim = kind.includes("daemon") ? this.#victim() : undefined;
    this.#options.say?.(`${kind}${victim === undefined ? "" : `: ${victim.name}`}`);
    if (kind === "daemon frozen") {
      if (victim !== undefined) this.#frozen.push(this.#freeze(victim));
      return;
    }
    const downMs = this.#random.next() * DOWN_SPREAD_MS;
    const isServer = kind.startsWith("server");
    await Promise.all([
      victim?.kill(),
      isServer ? this.#server?.stop(kind === "server restarted" ? "SIGTERM" : "SIGKILL") : undefined,
      kind === "database killed" ? this.#postgres?.kill() : undefined,
    ]);
    await delay(downMs);
    if (kind === "database killed") await this.#postgres?.start();
    if (isServer) this.#server = await this.#start?.();
    await victim?.start();
    if (victim !== undefined) this.#atEase.add(victim);
    this.#lastEventAtMs = performance.now();
  }

  async #freeze(daemon: Program): Promise<void> {
    daemon.pause();
    await delay(FROZEN_MS.least + this.#random.next() * FROZEN_MS.spread);
    daemon.resume();
    this.#atEase.add(daemon);
    this.#lastEventAtMs = Math.max(this.#lastEventAtMs, performance.now());
  }

  /** One that nothing befalls until it is back; undefined when there is none. */
  #victim(): Program | undefined {
    const all = [...this.#atEase];
    const victim = all[Math.floor(this.#random.next() * all.length)];
    if (victim !== undefined) this.#atEase.delete(victim);
    return victim;
  }

  async #settle(client: JobsClient): Promise<number> {
    for (;;) {
      const settledMs = Math.round(performance.now() - this.#lastEventAtMs);
      if ((await client.unfinished()) === 0 || settledMs > GIVE_UP_MS) return settledMs;
      await delay(100);
    }
  }
}

/** What a report says in one line. */
export function describeReport({ events, jobs, effects, repeated, takenOver, settledMs }: JobChaosReport): string {
  const happened = Object.entries(events).map(([kind, times]) => `${times} × ${kind}`);
  return (
    `${jobs} jobs, ${effects} effects, ${repeated} of them repeated, ${takenOver} jobs taken over; ` +
    `settled ${settledMs} ms after the last event; ${happened.join(", ")}`
  );
}
