/** Where a query stands in a larger statement. `□` is the query's place. */
export type Frame = {
  name: string;
  template: string;
  /** What closes the text before the query's place, so that a text which comes out unquoted can start a statement. */
  closers: readonly string[];
  /** No query is valid there: it takes constants. */
  takesConstants?: true;
};

/** The first one is the query itself. A cast to TIMESTAMPTZ, and time arithmetic, make the engine write text anew. */
export const FRAMES: readonly Frame[] = [
  { name: "alone", template: "□", closers: [""] },
  { name: "beside a cast", template: "SELECT now()::TIMESTAMPTZ AS z, q.* FROM (□) AS q", closers: [") AS q"] },
  {
    name: "before a condition on time",
    template: "FROM (□) AS q WHERE now()::TIMESTAMPTZ > TIMESTAMPTZ '2000-01-01'",
    closers: [") AS q"],
  },
  {
    name: "beside rows of a century",
    template: "SELECT * FROM logs, (□) AS q WHERE at > now() - INTERVAL 100 YEAR",
    closers: [") AS q"],
  },
  { name: "as a version", template: "FROM logs AT (VERSION => (□))", closers: [")) AS BIGINT)"], takesConstants: true },
  {
    name: "as a moment",
    template: "FROM logs AT (TIMESTAMP => (□))",
    closers: [")) AS bound(v)"],
    takesConstants: true,
  },
  {
    name: "as a bound of time",
    template: "SELECT label FROM logs WHERE at > (□)",
    closers: [")", ")) AS bound(v)"],
    takesConstants: true,
  },
  { name: "as a limit", template: "FROM logs LIMIT (□)", closers: [")"], takesConstants: true },
  { name: "as an offset", template: "FROM logs OFFSET (□)", closers: [")"], takesConstants: true },
  { name: "as a value", template: "SELECT (□) AS v, now()::TIMESTAMPTZ AS z", closers: [")"] },
  { name: "as a list of values", template: "SELECT label FROM logs WHERE label IN (□)", closers: [")"] },
  { name: "in EXISTS", template: "SELECT 1 AS one WHERE EXISTS (□)", closers: [")"] },
  { name: "as a CTE", template: "WITH c AS (□) SELECT c.*, now()::TIMESTAMPTZ AS z FROM c", closers: [") FROM c"] },
  { name: "as a materialized CTE", template: "WITH c AS MATERIALIZED (□) FROM c, c AS d", closers: [") FROM c"] },
  { name: "in a union", template: "SELECT 1 AS one UNION ALL BY NAME (□)", closers: [")"] },
  {
    name: "under a PIVOT whose values are looked up",
    template: "PIVOT (SELECT 1 AS one, now()::TIMESTAMPTZ AS z, q.* FROM (□) AS q) ON one USING count(*)",
    closers: [") AS q)"],
  },
  { name: "in a sub-query of SUMMARIZE", template: "FROM (SUMMARIZE □) AS q", closers: [") AS q"] },
  { name: "under EXPLAIN", template: "EXPLAIN □", closers: [""] },
  {
    name: "under EXPLAIN ANALYZE",
    template: "EXPLAIN ANALYZE SELECT now()::TIMESTAMPTZ AS z, q.* FROM (□) AS q",
    closers: [") AS q"],
  },
  { name: "under DESCRIBE", template: "DESCRIBE □", closers: [") AS q", ""] },
  { name: "under SUMMARIZE", template: "SUMMARIZE □", closers: [") AS q", ""] },
];

export function framed(frame: Frame, query: string): string {
  return frame.template.replace("□", () => query);
}
