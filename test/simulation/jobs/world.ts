import { z } from "zod";
import type { RecordStore } from "../../../src/db/records.ts";
import { openMemoryCatalog } from "../../../src/catalog/sqlite/memory.test-kit.ts";
import type { Clock } from "../../../src/core/clock.ts";
import { seededRandom } from "../../../src/core/random.ts";
import { Fabric } from "../../../src/fabric/fabric.ts";
import { JobKinds, type JobKind } from "../../../src/fabric/kinds.ts";
import { Machine } from "../machine.ts";
import { Network } from "../network.ts";
import { LaneClock, Scheduler, type Lane } from "../scheduler.ts";
import { JobModel } from "./model.ts";
import { movesAfter, SQLITE_MOVES } from "./moves.ts";
import { remoteRecords } from "./remote-records.ts";
import { SimulatedSignals } from "./signals.ts";

/** What nodes are asked for. */
export type Verbs = Pick<
  Fabric,
  | "enqueue"
  | "claim"
  | "extend"
  | "progress"
  | "complete"
  | "fail"
  | "release"
  | "cancel"
  | "retry"
  | "sweep"
  | "forgetFinished"
>;

/** A node of the cluster, in one of its lives. */
export type FabricNode = { machine: Machine; verbs: Verbs };

/** A database with the triggers of `moves.ts`. */
export type JobDatabase = {
  records: RecordStore;
  /** Whether statements at once meet each other in it, as those of many connections do. */
  isShared: boolean;
  close: () => Promise<void>;
};

/** A planted mistake: what stands between the fabric and its records, or its callers. */
export type JobPlanted = {
  records?: (records: RecordStore, machine: Machine) => RecordStore;
  verbs?: (verbs: Verbs) => Partial<Verbs>;
  /** Statements that spoil the tables. */
  sql?: string;
};

export type JobWorldOptions = {
  seed: number;
  keepTrace?: boolean;
  planted?: JobPlanted;
  /** Where the jobs are; in memory unless given. */
  open?: (clock: Clock) => Promise<JobDatabase>;
};

export const KINDS: readonly JobKind[] = [
  { name: "sim.short", payload: z.json(), enqueue: "write", claim: "both", leaseMs: 12_000 },
  { name: "sim.long", payload: z.json(), enqueue: "write", claim: "both", backoffMs: 1_000 },
];
export const LEASE_MS = 40_000;

const START_MS = Date.UTC(2030, 0, 7);
const SKEWS_MS = [0, 0, 240_000, -240_000, 3_600_000, -11 * 3_600_000];

/** A place where a process runs, one life after the other. */
export type Slot = { name: string; machine: Machine | undefined; start: (machine: Machine) => void };

/** One cluster: a database, nodes with a fabric each, and holders that come and go. */
export class JobWorld {
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly signals: SimulatedSignals;
  readonly model = new JobModel();
  readonly slots: Slot[] = [];
  /** Those whose timers matter: holders, and who enqueues. */
  readonly users = new Set<Lane>();
  readonly nodes = new Map<Slot, FabricNode>();
  /** How far the database's clock is ahead of where it was. */
  databaseAheadMs = 0;
  /** No more trouble: holders do their best. */
  isCalm = false;
  readonly #options: JobWorldOptions;
  readonly #sweepEveryMs: number;
  #database: JobDatabase | undefined;
  #seenMoves = 0;
  #lives = 0;
  #bursts = 0;

  constructor(options: JobWorldOptions) {
    this.#options = options;
    const random = seededRandom(options.seed);
    this.scheduler = new Scheduler({ random, startMs: START_MS, keepTrace: options.keepTrace ?? false });
    this.network = new Network(this.scheduler);
    this.signals = new SimulatedSignals(this.scheduler);
    this.#sweepEveryMs = this.scheduler.pick([1_000, 1_000, 4_000]);
  }

  /** What the database says that the time is. */
  get nowMs(): number {
    return this.scheduler.nowMs + this.databaseAheadMs;
  }

  /** Whether several statements may be let into the database at once. */
  get isShared(): boolean {
    return this.#database?.isShared === true;
  }

  async open(): Promise<void> {
    const lane = { name: "database", frozenUntilMs: 0, isCut: false };
    const clock = Object.assign(new LaneClock(this.scheduler, lane, 0), { nowMs: () => this.nowMs });
    this.#database = await (this.#options.open ?? openInMemory(this.#options.planted?.sql))(clock);
  }

  async close(): Promise<void> {
    await this.#database?.close();
  }

  addNode(name: string): void {
    const slot: Slot = { name, machine: undefined, start: (machine) => this.#startNode(slot, machine) };
    this.slots.push(slot);
  }

  /** A process starts where none runs. */
  start(slot: Slot): void {
    if (slot.machine !== undefined) return;
    const machine = new Machine(this.scheduler, `${slot.name}.${++this.#lives}`, this.scheduler.pick(SKEWS_MS));
    slot.machine = machine;
    slot.start(machine);
  }

  /** The process ends without notice. What it has sent may still be done. */
  crash(slot: Slot): void {
    const { machine } = slot;
    if (machine === undefined) return;
    slot.machine = undefined;
    this.nodes.delete(slot);
    this.users.delete(machine.lane);
    machine.die();
    this.network.lose(machine);
    this.scheduler.note(`${machine.name} dies`);
  }

  /** Runs checks; what they find ends the run. */
  judge(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.scheduler.fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Lets events happen whose statements meet in the database, and looks when all are done. */
  async burst(steps: () => Promise<unknown>): Promise<void> {
    this.#bursts++;
    try {
      await steps();
    } finally {
      this.#bursts--;
      await this.#look();
    }
  }

  #startNode(slot: Slot, machine: Machine): void {
    const { clock, random, newId, log } = machine;
    const { planted } = this.#options;
    const records = this.#recordsOf(machine);
    const fabric = new Fabric({
      records: planted?.records?.(records, machine) ?? records,
      signals: this.signals.of(machine),
      kinds: new JobKinds(KINDS),
      clock,
      random,
      newId,
      log,
      leaseMs: LEASE_MS,
    });
    const verbs = { ...verbsOf(fabric), ...planted?.verbs?.(verbsOf(fabric)) };
    this.nodes.set(slot, { machine, verbs });
    let isSweeping = false;
    clock.every(this.#sweepEveryMs, () => {
      if (isSweeping) return;
      isSweeping = true;
      void verbs
        .sweep()
        .catch((error: Error) => this.scheduler.note(`${machine.name}: the sweep fails: ${error.message}`))
        .finally(() => (isSweeping = false));
    });
  }

  #recordsOf(machine: Machine): RecordStore {
    const { scheduler, network, model } = this;
    if (this.#database === undefined) throw new Error("the database is not open");
    const { records, isShared } = this.#database;
    const lockable = () => (isShared ? [] : model.unfinished.map(({ id }) => id));
    const look = async () => {
      if (this.#bursts === 0) await this.#look();
    };
    return remoteRecords({ records, network, scheduler, lockable, look }, machine);
  }

  async #look(): Promise<void> {
    if (this.#database === undefined) return;
    const { moves, seq } = await movesAfter(this.#database.records, this.#seenMoves);
    this.#seenMoves = seq;
    this.judge(() => this.model.moved(moves, this.nowMs));
  }
}

function verbsOf(fabric: Fabric): Verbs {
  return {
    enqueue: (request, owner) => fabric.enqueue(request, owner),
    claim: (claim) => fabric.claim(claim),
    extend: (hold, leaseMs) => fabric.extend(hold, leaseMs),
    progress: (hold, snapshot) => fabric.progress(hold, snapshot),
    complete: (hold, result) => fabric.complete(hold, result),
    fail: (hold, failure) => fabric.fail(hold, failure),
    release: (hold) => fabric.release(hold),
    cancel: (id) => fabric.cancel(id),
    retry: (id) => fabric.retry(id),
    sweep: () => fabric.sweep(),
    forgetFinished: (keepMs, maxJobs) => fabric.forgetFinished(keepMs, maxJobs),
  };
}

function openInMemory(sql = ""): (clock: Clock) => Promise<JobDatabase> {
  return async (clock) => {
    const { catalog, connection } = openMemoryCatalog(clock);
    connection.db.exec(SQLITE_MOVES + sql);
    return { records: catalog.records, isShared: false, close: async () => connection.close() };
  };
}
