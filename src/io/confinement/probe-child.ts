import "../../core/warnings.ts";
import { join } from "node:path";
import { loadDuckDb, runSql } from "../duckdb/duckdb.ts";
import { CANARY_VARIABLE, tryFence } from "./fence.ts";

/** Started under a confinement before any query process is: ends well when that keeps it in and DuckDB works. */
const canary = process.env[CANARY_VARIABLE];
if (canary === undefined) throw new Error("not started by the server");
const outside = process.cwd();
tryFence({ inside: join(outside, "..", "in"), outside, canary });
const duckdb = await loadDuckDb();
const connection = await duckdb.connect(await duckdb.open(":memory:"));
await runSql(duckdb, connection, "SELECT 'works'");
process.exit(0);
