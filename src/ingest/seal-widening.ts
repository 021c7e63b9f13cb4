import { isBeyondReal } from "../catalog/widening.ts";
import { releaseShared } from "../core/buffer-pool.ts";
import { foldName } from "../core/names.ts";
import type { ColumnSpec } from "../format/types.ts";
import { sealWholeOrInCuts, type SealedFlush } from "./seal-cuts.ts";
import type { Sealer, SealTask } from "./seal.ts";

/**
 * Seals a task whose bodies may disagree about a new column: one has made it `long`, and another has a fraction for it.
 * Each goes by what it has itself, so the fraction would be kept in `props`; but a field of numbers is to end with the
 * same type whatever comes first. So the column is `real` from the start, as the catalog would make it one commit later
 * (`catalog/widening.ts`), and everything is sealed once more.
 */
export async function sealAgreed(seal: Sealer, sealThreads: number, task: SealTask): Promise<SealedFlush> {
  const sealed = await sealWholeOrInCuts(seal, sealThreads, task);
  const wider = new Set(widenableBy(sealed, sealed.newColumns));
  if (wider.size === 0) return sealed;
  for (const { bytes } of sealed.extents) releaseShared(bytes);
  const newColumns = sealed.newColumns.map((column) => (wider.has(column.name) ? asReal(column) : column));
  const again = await sealWholeOrInCuts(seal, sealThreads, {
    ...task,
    columns: [...task.columns, ...newColumns],
    bodies: task.bodies.map((body) => Object.assign({}, body, { maxNewColumns: 0 })),
  });
  return { ...again, newColumns };
}

function asReal(column: ColumnSpec): ColumnSpec {
  return { ...column, type: { kind: "real" } };
}

/**
 * Which of the columns should be widened: inferred `long` ones for which a body that is kept has a fraction, unless there
 * is a value beyond ±2^53 beside it, which would be lost to the column in its place.
 */
export function widenableBy({ outcomes, extents }: SealedFlush, columns: readonly ColumnSpec[]): string[] {
  const fractions = new Set(outcomes.flatMap((outcome) => (outcome.ok ? (outcome.fractions ?? []) : [])).map(foldName));
  if (fractions.size === 0) return [];
  const far = new Set(extents.flatMap(({ stats }) => stats.filter(isBeyondReal).map(({ name }) => foldName(name))));
  return columns.flatMap(({ name }) => (fractions.has(foldName(name)) && !far.has(foldName(name)) ? [name] : []));
}
