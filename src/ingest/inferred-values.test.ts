import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { foldName } from "../core/names.ts";
import { compact, fieldValues, isKept } from "../format/ndjson/inferred-values.test-kit.ts";
import { decodeTlm, type Value } from "../format/tlm-decode.ts";
import { DEFAULT_SHAPE, formatColumnType, type ColumnSpec } from "../format/types.ts";
import type { SealBody, SealedExtent } from "./seal.ts";
import { sealInCuts } from "./seal-cuts.ts";
import { seal } from "./seal-thread.ts";
import { sealAgreed } from "./seal-widening.ts";

/** Types that are inferred by flush after flush of one table, sealed as the service seals them. */

const FIELDS = ["a", "b", "c"] as const;

/** What is sent: a row by its name, with the JSON text of each field that it has. */
type Row = { name: string; fields: ReadonlyMap<string, string> };

/** Rows of one body: each field has values of its own, of one kind or of several. */
const body = fc.tuple(...FIELDS.map(() => fieldValues)).map((columns) => {
  const length = Math.max(...columns.map((values) => values.length));
  return Array.from({ length }, (_, row) => {
    return new Map(FIELDS.flatMap((name, i) => (columns[i]?.[row] === undefined ? [] : [[name, columns[i][row]]])));
  });
});

/** Bodies in groups that share a flush; a body that is alone is cut into pieces of some bytes, or is not. */
const flushes = fc.array(fc.tuple(fc.array(body, { minLength: 1, maxLength: 3 }), fc.option(fc.integer({ min: 1, max: 200 }))), {
  minLength: 1,
  maxLength: 4,
}); // oxfmt-ignore

function sealBody(rows: readonly Row[]): SealBody {
  const lines = rows.map(({ name, fields }) => {
    return `{${[...fields].map(([field, json]) => `"${field}":${json},`).join("")}"body":"${name}"}\n`;
  });
  return { bytes: Buffer.from(lines.join("")), evolve: true, inferTypes: true, arrivedAtNs: 7n };
}

async function sealFlush(columns: readonly ColumnSpec[], bodies: readonly SealBody[], cutBytes: number | null) {
  const task = { columns, bodies, format: "tlm" as const };
  if (bodies.length === 1 && cutBytes !== null) return sealInCuts(seal, task, cutBytes);
  return sealAgreed(seal, 1, task);
}

/** All rows of the extents, by their names, with the values that they have. */
function storedIn(extents: readonly SealedExtent[]): Map<string, Record<string, Value>> {
  const stored = new Map<string, Record<string, Value>>();
  for (const { bytes } of extents) {
    const { rows, columns } = decodeTlm(Uint8Array.from(bytes));
    for (let row = 0; row < rows; row++) {
      const present = columns.filter(({ values }) => (values[row] ?? null) !== null);
      const own = Object.fromEntries(present.map(({ spec, values }) => [spec.name, values[row] ?? null]));
      stored.set(String(own["body"]), own);
    }
  }
  return stored;
}

/** The values of a row that are neither in their column, nor in `props` digit for digit. */
function lostOf({ name, fields }: Row, stored: Record<string, Value> | undefined, columns: readonly ColumnSpec[]) {
  if (stored === undefined) return [`${name} is not there`];
  const inProps: string[] = [];
  const lost = [...fields].filter(([field, sent]) => {
    if (sent === "null") return stored[field] !== undefined;
    const value = stored[field];
    if (value === undefined) inProps.push(`"${field}":${compact(sent)}`);
    const type = columns.find((column) => foldName(column.name) === field)?.type;
    return value !== undefined && !isKept(sent, value, type === undefined ? "none" : formatColumnType(type));
  });
  const props = inProps.length === 0 ? undefined : `{${inProps.join()}}`;
  return [...lost, ...(stored["props"] === props ? [] : [`props ${String(stored["props"])}, not ${props}`])];
}

const namedRows = (flush: number, bodies: readonly Map<string, string>[][]): Row[][] =>
  bodies.map((rows, i) => rows.map((fields, row) => ({ name: `${flush}.${i}.${row}`, fields })));

describe("whatever the order, the groups and the cuts", () => {
  test("every value is found again in its column, or in props digit for digit, and misfits are counted", async () => {
    await fc.assert(
      fc.asyncProperty(flushes, async (all) => {
        const columns: ColumnSpec[] = [...DEFAULT_SHAPE];
        const extents: SealedExtent[] = [];
        const sent: Row[] = [];
        let misfits = 0;
        for (const [number, [bodies, cutBytes]] of all.entries()) {
          const named = namedRows(number, bodies).filter((rows) => rows.length > 0);
          if (named.length === 0) continue;
          const sealed = await sealFlush(columns, named.map(sealBody), cutBytes);
          for (const outcome of sealed.outcomes) {
            expect(outcome.ok).toBe(true);
            if (outcome.ok) for (const { count } of outcome.misfits ?? []) misfits += count;
          }
          columns.push(...sealed.newColumns);
          extents.push(...sealed.extents);
          sent.push(...named.flat());
        }
        const stored = storedIn(extents);
        expect(sent.flatMap((row) => lostOf(row, stored.get(row.name), columns))).toEqual([]);
        const counted = extents.flatMap(({ stats }) => stats.map((own) => own.misfits ?? 0));
        expect(counted.reduce((sum, count) => sum + count, 0)).toBe(misfits);
      }),
      { numRuns: 60 },
    );
  });

  test("a body in cuts has the types, rows and misfits of the whole", async () => {
    await fc.assert(
      fc.asyncProperty(body, fc.integer({ min: 1, max: 300 }), async (rows, cutBytes) => {
        if (rows.length === 0) return;
        const bodies = namedRows(0, [rows]).map(sealBody);
        const whole = await sealFlush(DEFAULT_SHAPE, bodies, null);
        const cut = await sealFlush(DEFAULT_SHAPE, bodies, cutBytes);
        expect(cut.newColumns).toEqual(whole.newColumns);
        expect(cut.outcomes).toEqual(whole.outcomes);
        expect(storedIn(cut.extents)).toEqual(storedIn(whole.extents));
      }),
      { numRuns: 100 },
    );
  });
});
