import { Counter, Gauge } from "prom-client";
import { metricSet } from "../../../core/metric-set.ts";

export const FILEDROP_METRICS = metricSet((registers) => ({
  files: new Counter({
    name: "engine_filedrop_files_total",
    help: "Dropped files by what became of them (`ingested`, `rejected`, `deleted` after their commit, `failed` for the moment).",
    labelNames: ["outcome"],
    registers,
  }),
  rows: new Counter({
    name: "engine_filedrop_rows_total",
    help: "Rows of dropped files that were committed.",
    registers,
  }),
  bytes: new Counter({
    name: "engine_filedrop_bytes_total",
    help: "Bytes of dropped files that were committed, as they were dropped.",
    registers,
  }),
  waiting: new Gauge({
    name: "engine_filedrop_waiting_files",
    help: "Dropped files that the last look found and that are neither ingested nor rejected, by prefix; of this node.",
    labelNames: ["prefix"],
    registers,
  }),
  unreadableFolders: new Gauge({
    name: "engine_filedrop_unreadable_folders",
    help: "Folders that the last look could not read and left out, by prefix; of this node.",
    labelNames: ["prefix"],
    registers,
  }),
  oldestWaiting: new Gauge({
    name: "engine_filedrop_oldest_waiting_age_seconds",
    help: "Age of the oldest of these files, 0 without any, by prefix; of this node.",
    labelNames: ["prefix"],
    registers,
  }),
}));
