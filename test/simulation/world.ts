import type { Catalog } from "../../src/catalog/catalog.ts";
import type { Connection } from "../../src/db/sqlite/connection.ts";
import { openMemoryCatalog } from "../../src/catalog/sqlite/memory.test-kit.ts";
import { createMetrics, type Metrics } from "../../src/core/metrics.ts";
import { seededRandom } from "../../src/core/random.ts";
import { DEFAULT_SHAPE } from "../../src/format/types.ts";
import type { Service } from "../../src/core/lifecycle.ts";
import type { ObjectStore } from "../../src/io/objectstore/objectstore.ts";
import type { IngestNode } from "./client.ts";
import { Machine, type Parts } from "./machine.ts";
import { Model } from "./model.ts";
import { Network } from "./network.ts";
import { remoteCatalog } from "./remote-catalog.ts";
import { RETENTION_DAYS, TABLES } from "./requests.ts";
import { LaneClock, Scheduler, type Lane } from "./scheduler.ts";
import { dutyServices, ingestService, type DutyName } from "./services.ts";
import { RemoteStore, StoredObjects, type ListOptions } from "./store.ts";

/** What may be put between a machine and what it calls: a planted mistake. */
export type Planted = {
  catalog?: (catalog: Catalog, machine: Machine) => Catalog;
  store?: (store: ObjectStore, ports: { objects: StoredObjects; machine: Machine }) => ObjectStore;
};

/** What is drawn with the seed unless it is given. */
export type Given = {
  mode?: "sync" | "staged";
  /** How many requests have a key. */
  keyedShare?: number;
  /** How often a process stands still for days just when it has written an extent. */
  stallRate?: number;
  /** What a process stands still for days before; by default any answer to a write of its own. */
  stallAt?: RegExp;
  /** How many of the writes are refused at first that the driver may send again. */
  repeatedRate?: number;
  /** How many calls are done while their callers hear of a failure. */
  unheardRate?: number;
};

export type WorldOptions = { seed: number; keepTrace?: boolean; planted?: Planted; given?: Given };

const START_MS = Date.UTC(2030, 0, 7);
const HOUR_MS = 3_600_000;
/** As far as clocks of nodes may be wrong: hardly ahead, far behind. */
const SKEWS_MS = [0, 0, 0, 240_000, -240_000, -HOUR_MS, -11 * HOUR_MS];

/** A place where a process runs, one life after the other. */
export type Slot = {
  name: string;
  start: (machine: Machine) => Promise<void>;
  machine: Machine | undefined;
  stop: Service[];
};

/** One cluster: a catalog, a store, and processes that come and go. */
export class World {
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly objects: StoredObjects;
  readonly catalog: Catalog;
  readonly model: Model;
  readonly metrics: Metrics;
  readonly slots: Slot[] = [];
  /** Those who use the cluster, and are no part of it. */
  readonly users = new Set<Lane>();
  /** By slot. */
  readonly ingest = new Map<Slot, IngestNode>();
  /** Runs of duties that ended well. */
  readonly runs = new Map<DutyName, number>();
  readonly graceMs: number;
  readonly given: Given;
  readonly #connection: Connection;
  readonly #list: ListOptions;
  readonly #planted: Planted;
  #lives = 0;

  constructor({ seed, keepTrace = false, planted = {}, given = {} }: WorldOptions) {
    const random = seededRandom(seed);
    this.scheduler = new Scheduler({ random, startMs: START_MS, keepTrace });
    this.network = new Network(this.scheduler);
    this.objects = new StoredObjects(this.scheduler);
    const clock = new LaneClock(this.scheduler, { name: "catalog", frozenUntilMs: 0, isCut: false }, 0);
    const { catalog, connection } = openMemoryCatalog(clock);
    this.catalog = catalog;
    this.#connection = connection;
    this.graceMs = this.scheduler.pick([60_000, HOUR_MS]);
    const { scheduler, objects, graceMs } = this;
    this.model = new Model({ scheduler, objects, connection, graceMs });
    this.metrics = createMetrics();
    this.#list = { pageKeys: 1 + scheduler.below(20), isShuffled: scheduler.chance(0.3) };
    this.#planted = planted;
    this.given = given;
  }

  /** Tables that are there from the start; one with columns that are made by hand, one whose rows end. */
  async createTables(): Promise<void> {
    const shape = DEFAULT_SHAPE;
    const database = "default";
    const retentionDays = RETENTION_DAYS;
    await this.catalog.createTable({ database, name: TABLES.kept, columns: shape, retentionDays });
    await this.catalog.createTable({
      database,
      name: TABLES.plain,
      columns: shape.filter(({ name }) => name !== "props"),
    });
  }

  /** A machine's own way to the catalog and the store. */
  parts(machine: Machine): Parts & { metrics: Metrics } {
    const { scheduler, network, objects, metrics } = this;
    const { clock, random, newId, log } = machine;
    const watcher = (method: string): void => this.model.look(method);
    const catalog = remoteCatalog({ catalog: this.catalog, network, scheduler, watcher }, machine);
    const store = new RemoteStore({ objects, network, scheduler, list: this.#list }, machine);
    return {
      catalog: this.#planted.catalog?.(catalog, machine) ?? catalog,
      store: this.#planted.store?.(store, { objects, machine }) ?? store,
      clock,
      random,
      newId,
      log,
      metrics,
    };
  }

  addIngest(name: string, mode: "sync" | "staged"): void {
    const slot: Slot = { name, start: async (machine) => start(machine), machine: undefined, stop: [] };
    const start = (machine: Machine): void => {
      const service = ingestService(this.parts(machine), mode);
      this.ingest.set(slot, { machine, service, inHand: 0 });
    };
    this.slots.push(slot);
  }

  addDuties(name: string, names: readonly DutyName[]): void {
    const slot: Slot = { name, start: (machine) => start(machine), machine: undefined, stop: [] };
    const start = async (machine: Machine): Promise<void> => {
      const onRun = (duty: DutyName): void => void this.runs.set(duty, (this.runs.get(duty) ?? 0) + 1);
      slot.stop = dutyServices(this.parts(machine), { names, graceMs: this.graceMs, onRun });
      for (const service of slot.stop) await service.run();
    };
    this.slots.push(slot);
  }

  /** A process starts where none runs. */
  async start(slot: Slot): Promise<void> {
    if (slot.machine !== undefined) return;
    const machine = new Machine(this.scheduler, `${slot.name}.${++this.#lives}`, this.scheduler.pick(SKEWS_MS));
    slot.machine = machine;
    await slot.start(machine);
  }

  /** The process ends without notice. What it has sent may still be done. */
  crash(slot: Slot): void {
    const { machine } = slot;
    if (machine === undefined) return;
    slot.machine = undefined;
    slot.stop = [];
    this.ingest.delete(slot);
    machine.die();
    this.network.lose(machine);
    this.scheduler.note(`${machine.name} dies`);
  }

  close(): void {
    this.#connection.close();
  }
}
