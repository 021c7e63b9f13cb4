import { PAGE_ROWS, SAME_TIME_ROWS } from "./queries.ts";

export type Row = Readonly<Record<string, unknown>>;

/** Rows from the newest on, and how to go on. */
export type Page = {
  rows: readonly Row[];
  /** Where older ones begin: all newer rows are there. Undefined where there are no more. */
  older: string | undefined;
  /** A time with more rows than are shown, if there is one. */
  cutAt: string | undefined;
};

/** Asks for rows that are not newer than `upTo`, or of exactly the time `at`, newest first. */
export type ReadRows = (where: { upTo?: string; at?: string }, limit: number) => Promise<readonly Row[]>;

/**
 * The page that begins at `upTo`. Rows of one time have no order, so a page ends between two times: those of the last one
 * are left to the next page, which has all of them. Where a whole page is of one time, that time is a page of its own.
 */
export async function readPage(read: ReadRows, upTo?: string): Promise<Page> {
  const rows = await read(upTo === undefined ? {} : { upTo }, PAGE_ROWS);
  if (rows.length < PAGE_ROWS) return { rows, older: undefined, cutAt: undefined };
  const last = timeOf(rows.at(-1));
  const whole = rows.filter((row) => timeOf(row) !== last);
  if (whole.length > 0 || last === undefined) return { rows: whole, older: last, cutAt: undefined };
  const same = await read({ at: last }, SAME_TIME_ROWS);
  const before = before1ns(last);
  return { rows: same, older: before, cutAt: same.length === SAME_TIME_ROWS ? last : undefined };
}

function timeOf(row: Row | undefined): string | undefined {
  const at = row?.["at"];
  return typeof at === "string" ? at : undefined;
}

/** A nanosecond earlier: times have no more than nine digits of fraction. */
export function before1ns(at: string): string {
  const [whole = "", fraction = ""] = at.replace(/Z$/, "").split(".");
  const ns = Number(fraction.padEnd(9, "0"));
  if (ns > 0) return `${whole}.${String(ns - 1).padStart(9, "0")}Z`;
  return `${new Date(Date.parse(`${whole}Z`) - 1_000).toISOString().slice(0, 19)}.999999999Z`;
}
