import { releaseShared } from "../../core/buffer-pool.ts";
import type { ErrorRecord } from "../../core/errors.ts";
import { encodingOf } from "../../format/encodings.ts";
import type { ColumnSpec, ExtentFormat } from "../../format/types.ts";
import type { BodyReading } from "../ingest.ts";
import type { SealBody, SealColumn, SealedExtent, Sealer } from "../seal.ts";
import { sealInCuts } from "../seal-cuts.ts";
import { sealAgreed, widenableBy } from "../seal-widening.ts";

/** A body of a staged object, and how many rows were acknowledged of it. */
export type AcknowledgedBody = BodyReading &
  Pick<SealBody, "bytes" | "evolve" | "inferTypes" | "arrivedAtNs"> & { rows: number };

export type SealedBodies = {
  extents: SealedExtent[];
  newColumns: readonly ColumnSpec[];
  /** Of the columns that were given, those that should be widened: see `seal-widening.ts`. */
  widenable: readonly string[];
};

/** A body that was sealed when it was acknowledged cannot be sealed any more. */
export class Unsealable extends Error {
  readonly record: ErrorRecord | undefined;
  constructor(reason: string, record?: ErrorRecord) {
    super(reason);
    this.name = "Unsealable";
    this.record = record;
  }
}

type Sealing = { seal: Sealer; sealThreads: number; format: ExtentFormat };

/**
 * Seals bodies that were acknowledged, under the columns given: what they are cast by is the scanner, as at any other
 * time, but for the leniency with vectors. Bodies that have become too much for one extent, which depends on the
 * columns, become several. Throws `Unsealable`.
 */
export async function sealAcknowledged(
  sealing: Sealing,
  columns: readonly SealColumn[],
  bodies: readonly AcknowledgedBody[],
): Promise<SealedBodies> {
  const { seal, sealThreads, format } = sealing;
  const lenient = bodies.map(({ rows: _rows, ...body }) => Object.assign({}, body, { lenient: true }));
  const sealed = await sealAgreed(seal, sealThreads, { columns, bodies: lenient, format });
  const { extents, newColumns, outcomes } = sealed;
  for (const [index, { rows }] of bodies.entries()) {
    const outcome = outcomes[index];
    if (outcome?.ok === true && outcome.rows === rows) continue;
    release(extents);
    if (outcome === undefined) throw new Unsealable("the sealer gave no outcome");
    if (outcome.ok) throw new Unsealable(`a body of it has ${outcome.rows} rows; ${rows} were acknowledged`);
    if (!isTooMuch(outcome.error)) throw new Unsealable(`a body of it: ${outcome.error.message}`, outcome.error);
    return sealInParts(sealing, columns, bodies);
  }
  return { extents, newColumns, widenable: widenableBy(sealed, columns) };
}

/** The first half, then the second under the columns that the first has brought. */
async function sealInParts(
  sealing: Sealing,
  columns: readonly SealColumn[],
  bodies: readonly AcknowledgedBody[],
): Promise<SealedBodies> {
  const [only] = bodies;
  if (bodies.length === 1 && only !== undefined) return sealInSmallerCuts(sealing, columns, only);
  const half = Math.ceil(bodies.length / 2);
  const first = await sealAcknowledged(sealing, columns, bodies.slice(0, half));
  const second = await sealAcknowledged(sealing, [...columns, ...first.newColumns], bodies.slice(half));
  return {
    extents: [...first.extents, ...second.extents],
    newColumns: [...first.newColumns, ...second.newColumns],
    // A fraction of the second half for a column that the first has brought stays in `props`: nobody knows it yet.
    widenable: [...first.widenable, ...second.widenable].filter((name) => columns.some((of) => of.name === name)),
  };
}

async function sealInSmallerCuts(
  { seal, format }: Sealing,
  columns: readonly SealColumn[],
  { rows, ...body }: AcknowledgedBody,
): Promise<SealedBodies> {
  const task = { columns, bodies: [{ ...body, lenient: true }], format };
  if (encodingOf(body.encoding).parts === undefined) throw new Unsealable("a body of it is too much for one extent");
  for (let cutBytes = Math.ceil(body.bytes.byteLength / 2); ; cutBytes = Math.ceil(cutBytes / 2)) {
    const sealed = await sealInCuts(seal, task, cutBytes);
    const { extents, newColumns, outcomes } = sealed;
    const [outcome] = outcomes;
    if (outcome?.ok === true && outcome.rows === rows) {
      return { extents, newColumns, widenable: widenableBy(sealed, columns) };
    }
    release(extents);
    // Cuts of one byte are single lines.
    const mayFit = outcome?.ok === false && isTooMuch(outcome.error) && cutBytes > 1;
    if (!mayFit) throw new Unsealable("a body of it cannot be sealed in parts either");
  }
}

function isTooMuch({ code }: ErrorRecord): boolean {
  return code === "body_too_large" || code === "too_many_requests";
}

function release(extents: readonly SealedExtent[]): void {
  for (const { bytes } of extents) releaseShared(bytes);
}
