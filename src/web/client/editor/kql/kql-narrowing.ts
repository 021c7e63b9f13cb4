import type { KqlTable } from "./kql-protocol.ts";

/** As many columns take the service a moment; each further thousand takes it a tenth of a second for every list. */
const FEW_COLUMNS = 400;
/** Of the columns that fit what is typed; the list shows the first hundred of them. */
const MOST_MATCHES = 150;

/** Tables with those of their columns that matter for one list of completions. */
export type Narrowing = {
  tables: readonly KqlTable[];
  /** Whether all columns that fit are there: with more typed, the list needs no others. */
  isWhole: boolean;
  /** Whether a name of the language matters: one that fits what is typed, or that the text has. */
  isWanted: (name: string) => boolean;
};

/**
 * For one list of completions, the columns of large tables that fit what is typed, and those that the text has. An operator
 * of a pipe takes each column by its name, whatever others there are, so the list is the same as with all of them. Undefined
 * where the tables are small.
 */
export function narrow(tables: readonly KqlTable[], text: string, typed: string): Narrowing | undefined {
  if (tables.reduce((sum, { columns }) => sum + columns.length, 0) <= FEW_COLUMNS) return undefined;
  const words = new Set(text.match(/[\p{L}_][\p{L}\p{N}_]*/gu));
  const fits = fitting(typed);
  const found = new Map<string, number>();
  for (const { columns } of tables) for (const { name } of columns) found.set(name, fits(name));
  const matches = [...found].filter(([, rank]) => rank > 0).toSorted((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const kept = new Set(matches.slice(0, MOST_MATCHES).map(([name]) => name));
  const isNamed = (name: string): boolean => words.has(name) || (/\W/.test(name) && text.includes(name));
  return {
    tables: tables.map(({ name, columns }) => ({
      name,
      columns: columns.filter((column) => kept.has(column.name) || isNamed(column.name)),
    })),
    isWhole: matches.length <= MOST_MATCHES,
    isWanted: (name) => words.has(name) || fits(name) > 0,
  };
}

/**
 * How well a name fits what is typed: 2 where it begins so, 1 where it has these characters in this order, else 0. Where
 * tables are joined, a column that both have gets a number behind its name that no table knows.
 */
function fitting(typed: string): (name: string) => number {
  const wanted = typed.toLowerCase();
  const unnumbered = wanted.replace(/\d+$/, "");
  return (name) => {
    const own = name.toLowerCase();
    const isNumbered = own.startsWith(unnumbered) && wanted.startsWith(own);
    if (isNumbered || own.startsWith(wanted)) return 2;
    return hasInOrder(own, wanted) ? 1 : 0;
  };
}

function hasInOrder(name: string, wanted: string): boolean {
  let at = -1;
  for (const character of wanted) {
    at = name.indexOf(character, at + 1);
    if (at === -1) return false;
  }
  return true;
}
