import type { Catalog } from "../../src/catalog/catalog.ts";
import type { Machine } from "./machine.ts";
import { unavailable, type Network } from "./network.ts";
import type { Scheduler } from "./scheduler.ts";

/** Calls that change nothing: nobody can tell whether one of them was done that nobody waits for. */
const READS: ReadonlySet<string> = new Set<keyof Catalog>([
  "database",
  "databases",
  "table",
  "tables",
  "allTables",
  "schemaGeneration",
  "head",
  "snapshots",
  "snapshotAt",
  "oldestSnapshot",
  "oldestKeptSnapshot",
  "droppedTables",
  "droppedAt",
  "lookUpKey",
  "committedStaged",
  "extents",
  "extentsWithout",
  "planScan",
  "additions",
  "tableStats",
  "misfits",
  "goneExtents",
  "deadExtents",
  "expiredExtents",
  "crowdedDays",
  "nowMs",
]);

type Method = (...args: unknown[]) => Promise<unknown>;

/** Hears of every call that may have changed something, when it has. */
export type CatalogWatcher = (method: string) => void;

/** The catalog as one machine has it: every call goes over the network, and is one transaction of the real driver. */
export function remoteCatalog(
  ports: { catalog: Catalog; network: Network; scheduler: Scheduler; watcher: CatalogWatcher },
  machine: Machine,
): Catalog {
  const { network, scheduler, watcher } = ports;
  return new Proxy(ports.catalog, {
    get(target, name) {
      const method = Reflect.get(target, name) as Method;
      const label = String(name);
      const isWrite = !READS.has(label);
      return (...args: unknown[]): Promise<unknown> =>
        network.call(machine, {
          label,
          isWrite,
          // Half of the time the driver does not know either.
          ...(scheduler.chance(0.5) ? { refusal: unavailable } : {}),
          async effect() {
            try {
              return await method.apply(target, args);
            } finally {
              if (isWrite) watcher(label);
            }
          },
        });
    },
  });
}
