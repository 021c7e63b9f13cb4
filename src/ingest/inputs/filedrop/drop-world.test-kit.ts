import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CatalogDatabase } from "../../../catalog/catalog-database.ts";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { systemClock } from "../../../core/clock.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { silentLog } from "../../../core/log.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { systemRandom } from "../../../core/random.ts";
import type { RecordStore } from "../../../db/records.ts";
import type { Duty } from "../../../feature/lease-loop.ts";
import { decodeTlm } from "../../../format/tlm-decode.ts";
import type { Confinement } from "../../../io/confinement/confinement.ts";
import { openConfinement } from "../../../io/confinement/open-confinement.ts";
import type { ObjectStore } from "../../../io/objectstore/objectstore.ts";
import { ByteBudget } from "../../byte-budget.ts";
import { PieceRoom } from "../../piece-room.ts";
import { seal } from "../../seal-thread.ts";
import { createFileDrop, type FileDropOptions, type FileDropPorts } from "./file-drop.ts";

/** How long the leases of these worlds live; `DropWorld.pass` lets them end. */
const TTL_MS = 10_000;
const PREFIX = "drop";

export type OpenedStore = { store: ObjectStore; close: () => Promise<void> };

/** What may stand between a node and the world. */
export type NodeDeps = {
  catalog?: CatalogDatabase;
  records?: RecordStore;
  store?: ObjectStore;
  inferTypes?: boolean;
};

/** That of this machine, tried once. */
export const confinementHere: Confinement = await openConfinement({ log: silentLog, tempDir: tmpdir() });

/** A real catalog and a real store, and any number of nodes that look after the files dropped there. */
export class DropWorld {
  readonly catalog: CatalogDatabase;
  readonly store: ObjectStore;
  readonly metrics = createMetrics();
  readonly #opened: OpenedCatalog;
  readonly #openedStore: OpenedStore;
  readonly #folder: string;
  readonly #newId = uuidV7Source(systemClock, systemRandom);

  private constructor(opened: OpenedCatalog, openedStore: OpenedStore, folder: string) {
    this.#opened = opened;
    this.#openedStore = openedStore;
    this.#folder = folder;
    this.catalog = opened.catalog;
    this.store = openedStore.store;
  }

  static async open(opened: OpenedCatalog, openedStore: OpenedStore): Promise<DropWorld> {
    return new DropWorld(opened, openedStore, await mkdtemp(join(tmpdir(), "engine-drop-")));
  }

  async close(): Promise<void> {
    await this.#opened.close();
    await this.#openedStore.close();
    await rm(this.#folder, { recursive: true });
  }

  /** Puts a file under the prefix, with that path. */
  async drop(path: string, content: string | Uint8Array): Promise<void> {
    await this.store.put(`${PREFIX}/${path}`, typeof content === "string" ? Buffer.from(content) : content);
  }

  /** Time passes for the catalog: leases end that nobody renews. */
  pass(ms = TTL_MS + 1): void {
    this.#opened.clock.advance(ms);
  }

  node(options: Partial<FileDropOptions> = {}, deps: NodeDeps = {}): DropNode {
    const ports: FileDropPorts = {
      catalog: deps.catalog ?? this.catalog,
      records: deps.records ?? this.catalog.records,
      store: deps.store ?? this.store,
      seal,
      sealThreads: 2,
      clock: systemClock,
      random: systemRandom,
      newId: this.#newId,
      log: silentLog,
      metrics: this.metrics,
      format: "tlm",
      inferTypes: deps.inferTypes ?? false,
      keyPrefix: "engine",
      windowMs: 0,
      maxExtents: 128,
      room: new PieceRoom({ budget: new ByteBudget({ maxBytes: 2 ** 28, clock: systemClock }), clock: systemClock }),
      tempFolder: join(this.#folder, "tmp"),
      confinement: confinementHere,
    };
    const duty = createFileDrop(ports, {
      prefix: PREFIX,
      autoCreate: true,
      evolve: true,
      deleteAfterIngest: false,
      growsInPlace: false,
      ...options,
    });
    return new DropNode(this.catalog, this.#newId(), duty);
  }

  /** Values of a column over all live extents of `shop.orders`, sorted. */
  async values(column: string, table = "orders"): Promise<string[]> {
    const known = await this.catalog.table("shop", table);
    const extents = await this.catalog.extents(known?.id ?? 0, (await this.catalog.head()).id);
    const values: string[] = [];
    for (const { key } of extents) {
      const { rows, columns } = decodeTlm(await this.store.get(key));
      const found = columns.find(({ spec }) => spec.name === column);
      values.push(...Array.from({ length: rows }, (_, row) => String(found?.values[row] ?? null)));
    }
    return values.toSorted((a, b) => a.localeCompare(b));
  }

  /** What is known of files, by their paths below the prefix. */
  async files(): Promise<Record<string, unknown>> {
    const rows = await this.catalog.records.rows("SELECT * FROM filedrop_files ORDER BY key");
    return Object.fromEntries(rows.map((row) => [String(row["key"]).slice(PREFIX.length + 1), row["state"]]));
  }

  /** What became of each of these files of `shop.orders`, after two looks: its state, and why. */
  async outcomesOf(files: Readonly<Record<string, string | Uint8Array>>): Promise<Record<string, string>> {
    for (const [name, content] of Object.entries(files)) await this.drop(`shop/orders/${name}`, content);
    const node = this.node();
    await node.look();
    await node.look();
    const rows = await this.catalog.records.rows("SELECT key, state, reason FROM filedrop_files");
    return Object.fromEntries(
      rows.map(({ key, state, reason }) => [String(key).split("/").at(-1), `${String(state)}: ${String(reason)}`]),
    );
  }

  /** Objects whose keys begin so. */
  async keys(prefix: string): Promise<string[]> {
    return (await Array.fromAsync(this.store.list(prefix))).map(({ key }) => key);
  }

  /** Extents in the store that no commit knows. */
  async orphans(): Promise<string[]> {
    const known = new Set<string>();
    for (const table of await this.catalog.allTables()) {
      const extents = await this.catalog.extents(table.id, (await this.catalog.head()).id);
      for (const { key } of extents) known.add(key);
    }
    return (await this.keys("engine/")).filter((key) => !known.has(key));
  }
}

export class DropNode {
  readonly #catalog: CatalogDatabase;
  readonly #holder: string;
  readonly #duty: Duty;

  constructor(catalog: CatalogDatabase, holder: string, duty: Duty) {
    this.#catalog = catalog;
    this.#holder = holder;
    this.#duty = duty;
  }

  /** One look, if this node has the lease or gets it; false if another one has it. */
  async look(signal: AbortSignal = new AbortController().signal): Promise<boolean> {
    const lease = await this.#catalog.acquireLease(`filedrop ${PREFIX}`, this.#holder, TTL_MS);
    if (lease === undefined) return false;
    await this.#duty({ lease, signal });
    return true;
  }
}

type Call<T, K extends keyof T> = T[K] extends (...args: never[]) => infer R ? () => R : never;

/** The object, with the calls of one of its methods going through `around`. */
export function intercepted<T extends object, K extends keyof T>(
  target: T,
  method: K,
  around: (call: Call<T, K>) => ReturnType<Call<T, K>>,
): T {
  return new Proxy(target, {
    get: (inner, name) => {
      const value: unknown = Reflect.get(inner, name, inner);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        const call = (() => Reflect.apply(value, inner, args) as unknown) as Call<T, K>;
        return name === method ? around(call) : call();
      };
    },
  });
}
