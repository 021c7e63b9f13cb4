import type { HostileStatement } from "./corpus.test-kit.ts";

/**
 * Holes that were there once, by the statements that went through them. A corpus without one of these would not have
 * found the hole.
 */
export type KnownHole = { name: string; isIn: (statement: HostileStatement) => boolean };

const REWRITTEN = ["beside a cast", "before a condition on time", "beside rows of a century", "as a value"];

function has({ fill }: HostileStatement, kind: string, what: RegExp): boolean {
  return fill.some(({ text }) => text.kind === kind && what.test(text.what));
}

/** The star of a query that is written anew came out without its quotes, and brought a FROM of its own. */
const STARS = ["blobs", "a table", "a number", "names of files", "settings", "SQL in a text"].flatMap((what) =>
  REWRITTEN.map((frame): KnownHole => ({
    name: `a qualified star ${frame}: ${what}`,
    isIn: (statement) =>
      statement.frame === frame && /\.\*/.test(statement.sql) && has(statement, "rows", new RegExp(`^${what}$`)),
  })),
);

/** Constants, and the values of a PIVOT, were looked up with whatever statements stood in their text. */
const STATEMENTS = ["COPY over an extent", "COPY to a new file", "MACRO", "TABLE", "ATTACH", "SET", "EXPORT"].flatMap(
  (what) =>
    ["as a version", "as a moment", "under a PIVOT whose values are looked up"].map((frame): KnownHole => ({
      name: `several statements ${frame}: ${what}`,
      isIn: (statement) =>
        statement.frame === frame &&
        /\.\*/.test(statement.sql) &&
        has(statement, "statements", new RegExp(`^${what}$`)),
    })),
);

/** The anchor of a recursive CTE opened its own name: a file, or a view of DuckDB's. */
const ANCHORS = ["path", "glob", "path through /proc", "duckdb_views", "sqlite_master", "pragma_database_list"].map(
  (what): KnownHole => ({
    name: `the anchor of a recursive CTE: ${what}`,
    isIn: ({ sql, fill }) => {
      const text = fill[0]?.text;
      if (text?.what !== what) return false;
      const name = `"${text.text}"`;
      return sql.startsWith(`WITH RECURSIVE ${name} AS (FROM ${name} UNION ALL `);
    },
  }),
);

/** The same where the anchor has the name further down. */
const NESTED_ANCHORS = ["a union", "a sub-query", "a derived table", "a join"].flatMap((form) =>
  ["path", "glob"].map((what): KnownHole => ({
    name: `an anchor of ${form}: ${what}`,
    isIn: ({ seed, frame, fill }) =>
      seed.startsWith("an anchor") && seed.endsWith(form) && frame === "alone" && fill[0]?.text.what === what,
  })),
);

/** Evaluated before anybody looked at which tables it names. */
const SUBQUERIES = ["a number", "an error", "a view of DuckDB's", "a function that reads"].flatMap((what) =>
  ["VERSION", "TIMESTAMP"].map((unit): KnownHole => ({
    name: `a sub-query in AT (${unit}): ${what}`,
    isIn: (statement) =>
      new RegExp(`AT \\(${unit} => \\(SELECT`).test(statement.sql) &&
      has(statement, "expression", new RegExp(`^${what}$`)),
  })),
);

export const KNOWN_HOLES: readonly KnownHole[] = [
  ...STARS,
  ...STATEMENTS,
  ...ANCHORS,
  ...NESTED_ANCHORS,
  ...SUBQUERIES,
];
