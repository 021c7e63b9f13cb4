import { INGEST_METRICS } from "../metrics.ts";
import type { FlushCommit, NewExtent, NewLedgerEntry, TableRecord } from "../../catalog/catalog.ts";
import { releaseShared } from "../../core/buffer-pool.ts";
import { Semaphore } from "../../core/concurrency.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { Clock } from "../../core/clock.ts";
import { foldName } from "../../core/names.ts";
import type { ColumnSpec, ExtentFormat } from "../../format/types.ts";
import { columnToSeal, type SealColumn, type Sealer, type SealedExtent } from "../seal.ts";
import { discardExtents, shareOf, uploadExtent, type UploadPorts } from "../upload.ts";
import { contentOf, requestsOf, type Draft } from "./draft.ts";
import { firstKeyedAtMs } from "./lateness.ts";
import type { StagedObject } from "./object.ts";
import { sealAcknowledged } from "./seal-staged.ts";
import { CLOCK_TOLERANCE_MS } from "./sweep.ts";

export type PreparePorts = UploadPorts & {
  seal: Sealer;
  sealThreads: number;
  format: ExtentFormat;
  clock: Clock;
  metrics: Metrics;
};

/** A draft whose extents are in the store, ready to be committed. */
export type Prepared = {
  draft: Draft;
  flush: FlushCommit;
  /** Its extents are in the catalog, or may be: a commit of it failed without saying so. They are never deleted. */
  maybeLive: boolean;
};

/** What the table's columns come to while drafts bring new ones, and how a draft that fails is told. */
type Preparation = {
  table: TableRecord;
  uploads: Semaphore;
  failed: (draft: Draft, error: unknown) => void;
};

type Sealed = { draft: Draft; extents: SealedExtent[]; newColumns: readonly ColumnSpec[]; isCast: boolean };

/** A draft has fractions for columns that may be widened (`catalog/widening.ts`), which is to be asked for before. */
export class WidenFirst extends Error {
  readonly columns: readonly string[];

  constructor(columns: readonly string[]) {
    super(`it has fractions for ${columns.join(", ")}`);
    this.name = "WidenFirst";
    this.columns = columns;
  }
}

/** Extents of a table that are written at a time. */
const MAX_UPLOADS = 16;

/**
 * Seals and uploads drafts of one table, in order, each under the columns that it has once those before it are in:
 * several are sealed at a time, and those behind one that has brought columns once more. Extents get new ids on every
 * attempt, so that no key is ever written twice: what another attempt has left is its own, and can be deleted without a
 * look at this one.
 */
export async function prepareTable(
  ports: PreparePorts,
  table: TableRecord,
  drafts: readonly Draft[],
  failed: Preparation["failed"],
): Promise<Prepared[]> {
  const preparation = { table, uploads: new Semaphore(MAX_UPLOADS), failed };
  const columns: SealColumn[] = table.columns.map(columnToSeal);
  const uploading: Promise<Prepared | undefined>[] = [];
  try {
    for (let done = 0; done < drafts.length;) {
      const sealed = await sealSome(ports, columns, drafts.slice(done, done + ports.sealThreads), failed);
      const bringer = sealed.findIndex((one) => one !== undefined && one.newColumns.length > 0);
      const accepted = bringer === -1 ? sealed : sealed.slice(0, bringer + 1);
      release(sealed.slice(accepted.length));
      columns.push(...(sealed[bringer]?.newColumns ?? []));
      const added = columns.slice(table.columns.length);
      for (const one of accepted) if (one !== undefined) uploading.push(upload(ports, preparation, one, added));
      done += accepted.length;
    }
  } finally {
    // Nothing is written any more when this is over, whatever its end.
    await Promise.allSettled(uploading);
  }
  return (await Promise.all(uploading)).filter((one) => one !== undefined);
}

/** What all have prepared; when one fails, the extents of the others are deleted. */
export async function allOrDiscard(
  ports: PreparePorts,
  preparing: readonly Promise<Prepared[]>[],
): Promise<Prepared[]> {
  const settled = await Promise.allSettled(preparing);
  const prepared = settled.flatMap((outcome) => (outcome.status === "fulfilled" ? outcome.value : []));
  const failure = settled.find((outcome) => outcome.status === "rejected");
  if (failure === undefined) return prepared;
  await discardExtents(ports, prepared.flatMap(({ flush }) => flush.extents)); // oxfmt-ignore
  throw failure.reason;
}

function sealSome(
  ports: PreparePorts,
  columns: readonly SealColumn[],
  drafts: readonly Draft[],
  failed: Preparation["failed"],
): Promise<(Sealed | undefined)[]> {
  return Promise.all(
    drafts.map(async (draft) => {
      try {
        return await sealDraft(ports, columns, draft);
      } catch (error) {
        failed(draft, error);
        return undefined;
      }
    }),
  );
}

async function sealDraft(ports: PreparePorts, columns: readonly SealColumn[], draft: Draft): Promise<Sealed> {
  const { extents, bodies } = await contentOf(draft, columns);
  if (bodies.length === 0) return { draft, extents, newColumns: [], isCast: false };
  const startedMs = ports.clock.monotonicMs();
  const sealed = await sealAcknowledged(ports, columns, bodies);
  INGEST_METRICS.of(ports.metrics).sealDuration.observe((ports.clock.monotonicMs() - startedMs) / 1000);
  const toWiden = sealed.widenable.filter((name) => draft.askedToWiden?.includes(foldName(name)) !== true);
  if (toWiden.length > 0) {
    for (const { bytes } of sealed.extents) releaseShared(bytes);
    throw new WidenFirst(toWiden);
  }
  return { draft, extents: [...extents, ...sealed.extents], newColumns: sealed.newColumns, isCast: true };
}

function release(sealed: readonly (Sealed | undefined)[]): void {
  for (const one of sealed) for (const { bytes } of one?.extents ?? []) releaseShared(bytes);
}

/** `added` are the columns that this and the drafts before it bring: any of those may be sent back, and come later. */
async function upload(
  ports: PreparePorts,
  { table, uploads, failed }: Preparation,
  { draft, extents, isCast }: Sealed,
  added: readonly ColumnSpec[],
): Promise<Prepared | undefined> {
  const written = await Promise.allSettled(
    extents.map((extent) => uploads.run(() => uploadExtent(ports, table, extent))),
  );
  const kept = written.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  const failure = written.find((outcome) => outcome.status === "rejected");
  if (failure !== undefined) {
    await discardExtents(ports, kept);
    failed(draft, failure.reason);
    return undefined;
  }
  const flush = {
    staged: draft.object.id,
    tableId: table.id,
    schemaVersion: table.schemaVersion,
    newColumns: isCast ? added : [],
    extents: kept,
    ledger: ledgerOf(draft, kept),
    // Keys count as they did when the write was accepted: it may have waited for longer than an entry lives.
    acceptedAtMs: acceptedAtMs(draft.object) - CLOCK_TOLERANCE_MS,
  };
  return { draft, flush, maybeLive: false };
}

/** When the first of its keyed requests came, by the clock of its node. */
function acceptedAtMs({ acknowledgedAtMs, requests }: StagedObject): number {
  return Math.min(acknowledgedAtMs, firstKeyedAtMs(requests) ?? Infinity);
}

function ledgerOf(draft: Draft, extents: readonly NewExtent[]): NewLedgerEntry[] {
  return requestsOf(draft).flatMap(({ key, rows }) => (key === undefined ? [] : [{ key, ...shareOf(extents, rows) }]));
}
