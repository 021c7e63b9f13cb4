import type { Costs } from "../../src/capacity/costs/costs.ts";
import { systemClock } from "../../src/core/clock.ts";
import { Connection } from "../../src/db/postgres/connection.ts";
import { parsePostgresUrl } from "../../src/db/postgres/url.ts";

/** Tables of the catalog that grow by a row or more with each extent. */
const BY_EXTENT = ["extents", "extent_stats", "extent_filters", "snapshots", "commits", "added"];

/** What a catalog keeps for an extent and for a key, by the sizes of its tables with their indexes. */
export async function catalogSizeOf(url: string): Promise<NonNullable<Costs["catalog"]>> {
  const session = { clock: systemClock, connectTimeoutMs: 10_000, lockTimeoutMs: 10_000 };
  const sql = await Connection.open(parsePostgresUrl(url), session);
  try {
    const bytesOf = async (names: readonly string[]) => {
      const sizes =
        "SELECT sum(pg_total_relation_size(c.oid)) AS n FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace";
      const [row] = await sql.query(
        `${sizes} WHERE s.nspname = 'engine' AND c.relkind = 'r' AND c.relname = ANY(string_to_array($1, ','))`,
        [names.join(",")],
      );
      return Number(row?.["n"] ?? 0);
    };
    const rowsOf = async (name: "extents" | "ledger") => {
      const [row] = await sql.query(`SELECT count(*) AS n FROM engine.${name}`, []);
      return Math.max(1, Number(row?.["n"]));
    };
    return {
      bytesPerExtent: (await bytesOf(BY_EXTENT)) / (await rowsOf("extents")),
      bytesPerKey: (await bytesOf(["ledger"])) / (await rowsOf("ledger")),
    };
  } finally {
    await sql.close();
  }
}
