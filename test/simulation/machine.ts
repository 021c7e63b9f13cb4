import type { Catalog } from "../../src/catalog/catalog.ts";
import type { Clock } from "../../src/core/clock.ts";
import { uuidV7Source, type IdSource } from "../../src/core/ids.ts";
import { silentLog, type Log } from "../../src/core/log.ts";
import type { Random } from "../../src/core/random.ts";
import type { ObjectStore } from "../../src/io/objectstore/objectstore.ts";
import { LaneClock, type Lane, type Scheduler } from "./scheduler.ts";

/** One life of a process: what it holds in memory is gone when it is cut off. */
export class Machine {
  readonly name: string;
  readonly lane: Lane;
  readonly clock: LaneClock;
  readonly newId: IdSource;
  readonly random: Random;
  readonly log: Log;
  readonly #onDeath = new Set<() => void>();

  constructor(scheduler: Scheduler, name: string, skewMs: number) {
    this.name = name;
    this.random = scheduler.random;
    this.lane = { name, frozenUntilMs: 0, isCut: false };
    this.clock = new LaneClock(scheduler, this.lane, skewMs);
    this.newId = uuidV7Source(this.clock, scheduler.random);
    this.log = tracedLog(scheduler, name);
  }

  /** Cuts it off at once. */
  die(): void {
    this.lane.isCut = true;
    for (const hear of this.#onDeath) hear();
    this.#onDeath.clear();
  }

  /** Tells those who wait for this process; returns what ends that. */
  whenDead(hear: () => void): () => void {
    if (this.lane.isCut) hear();
    else this.#onDeath.add(hear);
    return () => this.#onDeath.delete(hear);
  }
}

/** What services of a machine are built with. */
export type Parts = {
  catalog: Catalog;
  store: ObjectStore;
  clock: Clock;
  random: Random;
  newId: IdSource;
  log: Log;
};

/** Warnings and errors show in the trace. */
function tracedLog(scheduler: Scheduler, name: string): Log {
  const write =
    (level: string) =>
    (about: unknown, text?: string): void => {
      const error = typeof about === "object" && about !== null && "err" in about ? about.err : undefined;
      const reason = error instanceof Error ? `: ${error.message}` : "";
      scheduler.note(`${name} ${level}: ${text ?? String(about)}${reason}`);
    };
  return Object.assign(Object.create(silentLog) as Log, { warn: write("warning"), error: write("error") });
}
