export const KEYWORDS =
  "SELECT FROM WHERE GROUP BY ORDER LIMIT OFFSET HAVING JOIN LEFT RIGHT FULL INNER CROSS ON USING UNION ALL EXCEPT INTERSECT " +
  "WITH AS DISTINCT CASE WHEN THEN ELSE END AND OR NOT IN IS NULL LIKE ILIKE BETWEEN EXISTS INTERVAL DESC ASC NULLS FIRST LAST " +
  "QUALIFY WINDOW PARTITION OVER FILTER EXPLAIN DESCRIBE PIVOT UNPIVOT CAST AT VERSION TIMESTAMP";

const RESERVED: ReadonlySet<string> = new Set(KEYWORDS.split(" "));

/** An identifier as it is written in SQL. */
export function quotedIfNeeded(name: string): string {
  const isPlain = /^[A-Za-z_][\w$]*$/.test(name) && !RESERVED.has(name.toUpperCase());
  return isPlain ? name : `"${name.replaceAll('"', '""')}"`;
}
