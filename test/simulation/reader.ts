import type { Catalog } from "../../src/catalog/catalog.ts";
import { sleep } from "../../src/core/clock.ts";
import { EngineError } from "../../src/core/errors.ts";
import { InjectedFault } from "../../src/io/objectstore/faulty.test-kit.ts";
import { ObjectNotFound } from "../../src/io/objectstore/objectstore.ts";
import { SnapshotHolds } from "../../src/catalog/snapshot-holds.ts";
import type { Parts } from "./machine.ts";
import { Broken, type Model } from "./model.ts";
import { decodeRows, type StoredRow } from "./rows.ts";
import type { Scheduler } from "./scheduler.ts";

type ReaderPorts = { scheduler: Scheduler; model: Model; parts: Parts; node: string };

/** Reads tables as queries do, each at one snapshot, slowly: an answer has all the rows of that, or there is none. */
export async function runReader(ports: ReaderPorts, queries: number): Promise<void> {
  const { scheduler, parts, node } = ports;
  const holds = new SnapshotHolds({ ...parts, node });
  for (let number = 0; number < queries; number++) {
    await sleep(parts.clock, scheduler.below(20_000));
    try {
      await query(ports, holds);
    } catch (error) {
      if (error instanceof Broken || !isExpected(error)) throw error;
    }
  }
}

/** A query may fail; it may not answer with a part. */
function isExpected(error: unknown): boolean {
  if (error instanceof InjectedFault || error instanceof ObjectNotFound) return true;
  return error instanceof EngineError && (error.code === "snapshot_expired" || error.code === "unavailable");
}

async function query({ scheduler, model, parts }: ReaderPorts, holds: SnapshotHolds): Promise<void> {
  const { catalog, store, clock } = parts;
  let lapse: EngineError | undefined;
  const reading = holds.open((reason) => (lapse = reason));
  try {
    const tables = await catalog.tables("default");
    if (tables.length === 0) return;
    const table = scheduler.pick(tables);
    const snapshot = await snapshotToRead(catalog, scheduler);
    reading.reads(snapshot);
    const plan = await catalog.planScan({
      tableId: table.id,
      atSnapshot: snapshot,
      filters: [{ range: {}, tests: [] }],
    });
    const rows: StoredRow[] = [];
    for (const { key } of plan.extents) {
      await sleep(clock, scheduler.below(scheduler.pick([10, 100, 3_000])));
      rows.push(...decodeRows(await store.get(key)));
    }
    if (lapse !== undefined) throw lapse;
    compare(rows, model.rowsAt(table.id, snapshot), `table ${table.name} at snapshot ${snapshot}`);
    model.tally.read++;
  } finally {
    reading.close();
  }
}

/** The head, or one before it. */
async function snapshotToRead(catalog: Catalog, scheduler: Scheduler): Promise<number> {
  const { id } = await catalog.head();
  return scheduler.chance(0.7) ? id : Math.max(0, id - scheduler.below(5));
}

function compare(found: readonly StoredRow[], expected: readonly StoredRow[], what: string): void {
  if (textsOf(found) === textsOf(expected)) return;
  throw new Broken("a query answers with all rows", `${what}: ${found.length} of ${expected.length}`);
}

function textsOf(rows: readonly StoredRow[]): string {
  const texts = rows.map(({ text }) => text);
  return texts.sort().join("\n");
}
