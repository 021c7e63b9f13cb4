import type { ColumnSet } from "../columns/column-set.ts";
import { BodyLines } from "./body-lines.ts";
import type { Evidence } from "./infer-types.ts";
import { allOrNothing, type BodyScanner, type NdjsonBody, type Scanned } from "./scanner.ts";

/** The scanner on JSON.parse: the reference for what every scanner has to make of a body. */
export const jsonScanner: BodyScanner = {
  scan: (body, into) =>
    allOrNothing(into, () => scanLines(body.inferTypes === true ? withTypes(body, into) : body, into)),
};

/** The body with the types that all its values call for. Reads it once; leaves `into`, which has its savepoint, as it was. */
export function withTypes(body: NdjsonBody, into: ColumnSet): NdjsonBody {
  const evidence = new Map<string, Evidence>();
  const { misfits, ...plain } = body;
  misfits?.clear();
  scanLines({ ...plain, evidence }, into);
  into.rollback();
  const types = [...evidence].flatMap(([name, { type }]) => (type === undefined ? [] : [[name, type] as const]));
  return { ...body, types: new Map(types) };
}

function scanLines(body: NdjsonBody, into: ColumnSet): Scanned {
  const lines = new BodyLines(body, into);
  return lines.finish(lines.readFrom(0, 1));
}
