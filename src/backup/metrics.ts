import { Counter, Gauge } from "prom-client";
import { metricSet } from "../core/metric-set.ts";

/** Backups that jobs make. */
export const BACKUP_METRICS = metricSet((registers) => ({
  lastSuccess: new Gauge({
    name: "engine_backup_last_success_timestamp_seconds",
    help:
      "When the newest backup job of those that are still known was done; 0 when none was and a schedule makes backups. " +
      "Of the server with the duty `backup watch`.",
    registers,
  }),
  copiedBytes: new Counter({
    name: "engine_backup_copied_bytes_total",
    help: "Bytes of objects that backups have copied: what their destinations lacked.",
    registers,
  }),
}));
