import { Counter } from "prom-client";
import { metricSet } from "../core/metric-set.ts";

/** How other programs read tables in place. */
export const OPEN_TABLES_METRICS = metricSet((registers) => ({
  loads: new Counter({
    name: "engine_open_tables_loads_total",
    help: "Tables that Iceberg clients have loaded, by client: `pyiceberg`, `duckdb`, `clickhouse`, `trino`, `java` (Spark and others with Iceberg's own library), `other`.",
    labelNames: ["client"],
    registers,
  }),
  snapshotsWritten: new Counter({
    name: "engine_open_tables_snapshots_written_total",
    help: "Snapshots of tables that were listed in the store for Iceberg clients.",
    registers,
  }),
  sessions: new Counter({
    name: "engine_open_tables_sessions_total",
    help: "Sessions of a role that were asked for so that Iceberg clients can read a table, by outcome: `ok`, `failed`.",
    labelNames: ["outcome"],
    registers,
  }),
  reports: new Counter({
    name: "engine_open_tables_reports_total",
    help: "Reports of Iceberg clients on the scans that they planned, by client and table; beyond 100 tables the table is `other`.",
    labelNames: ["client", "table"],
    registers,
  }),
}));
