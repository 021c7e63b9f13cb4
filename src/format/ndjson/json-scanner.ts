import type { ColumnSet } from "../columns/column-set.ts";
import { BodyLines } from "./body-lines.ts";
import { allOrNothing, type BodyScanner, type NdjsonBody, type Scanned } from "./scanner.ts";

/** The scanner on JSON.parse: the reference for what every scanner has to make of a body. */
export const jsonScanner: BodyScanner = {
  scan: (body, into) => allOrNothing(into, () => scanLines(body, into)),
};

function scanLines(body: NdjsonBody, into: ColumnSet): Scanned {
  const lines = new BodyLines(body, into);
  return lines.finish(lines.readFrom(0, 1));
}
