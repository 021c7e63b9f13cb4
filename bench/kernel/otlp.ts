import { ColumnSet } from "../../src/format/columns/column-set.ts";
import { byteScanner } from "../../src/format/ndjson/byte-scanner.ts";
import type { BodyScanner } from "../../src/format/ndjson/scanner.ts";
import { logsScanner } from "../../src/format/otlp/scanner.ts";
import { OTLP_LOGS_SHAPE } from "../../src/format/otlp/shape.ts";
import { encodeTlm, storedColumns } from "../../src/format/tlm.ts";
import { tlmRowsAsNdjson } from "../../src/format/tlm-rows.ts";
import { readArguments } from "../support/arguments.ts";
import { decodeByProtobufjs, logsRequest } from "../support/otlp-request.ts";
import { machine, median, MIB, printTable, shown } from "../support/report.ts";

/**
 * Question: what does a log record cost by OTLP, against the same row as NDJSON, and against protobufjs, which only decodes?
 *
 * Requests of 10,000 records, and the rows that they become as bodies of NDJSON, each sealed into an extent: scanned into
 * columns, counted, encoded. protobufjs decodes the same requests into objects, which are dropped. The sides take turns.
 *
 *     node bench/kernel/otlp.ts [--records 10000] [--rounds 5] [--requests 10]
 */
const OPTIONS = {
  records: { type: "string", default: "10000" },
  rounds: { type: "string", default: "5" },
  requests: { type: "string", default: "10" },
} as const;

const SIDES = ["OTLP", "NDJSON", "OTLP scan", "NDJSON scan", "protobufjs"] as const;
type Side = (typeof SIDES)[number];

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const [records, rounds, requests] = [options.count("records"), options.count("rounds"), options.count("requests")];
  const request = logsRequest(records);
  const ndjson = asNdjson(request, records);
  const tasks: Readonly<Record<Side, () => number>> = {
    OTLP: () => seal(logsScanner, request),
    NDJSON: () => seal(byteScanner, ndjson),
    "OTLP scan": () => scan(logsScanner, request),
    "NDJSON scan": () => scan(byteScanner, ndjson),
    protobufjs: () => decodeByProtobufjs(request),
  };
  const runs: Record<Side, number>[] = [];
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    const entries = SIDES.map((side) => [side, rowsPerSecond(tasks[side], requests, records)] as const);
    if (round > 0) runs.push(Object.fromEntries(entries) as Record<Side, number>);
  }
  const of = (side: Side) => median(runs.map((run) => run[side]));
  const ratio = (side: Side, other: Side) => shown(median(runs.map((run) => run[side] / run[other])));
  const sizes = [request.length, ndjson.length].map((size) => shown(size / MIB));
  console.log(`${machine()}\nthousands of rows per CPU-second, medians of ${rounds} rounds\n`);
  printTable(
    ["records", "OTLP MiB", "NDJSON MiB", ...SIDES, "OTLP/NDJSON", "OTLP/protobufjs"],
    [
      [
        String(records),
        ...sizes,
        ...SIDES.map((side) => shown(of(side) / 1_000)),
        ratio("OTLP", "NDJSON"),
        ratio("OTLP", "protobufjs"),
      ],
    ],
  );
}

function asNdjson(request: Uint8Array, records: number): Uint8Array {
  const set = new ColumnSet(OTLP_LOGS_SHAPE);
  const { rows } = logsScanner.scan({ bytes: request, evolve: true, arrivedAtNs: 0n }, set);
  if (rows !== records) throw new Error(`${rows} of ${records} records were read`);
  return tlmRowsAsNdjson(encodeTlm(set), () => true);
}

function rowsPerSecond(task: () => number, times: number, records: number): number {
  const before = process.cpuUsage();
  for (let i = 0; i < times; i++) if (task() !== records) throw new Error("rows are missing");
  const { user, system } = process.cpuUsage(before);
  return (times * records) / ((user + system) / 1e6);
}

function scan(scanner: BodyScanner, bytes: Uint8Array): number {
  const set = new ColumnSet(OTLP_LOGS_SHAPE);
  const { rows } = scanner.scan({ bytes, evolve: true, arrivedAtNs: 0n }, set);
  set.release();
  return rows;
}

/** Seal threads write into shared memory that has been written before, unless that is too small. */
const extent = new SharedArrayBuffer(16 * MIB);

function seal(scanner: BodyScanner, bytes: Uint8Array): number {
  const set = new ColumnSet(OTLP_LOGS_SHAPE);
  const { rows } = scanner.scan({ bytes, evolve: true, arrivedAtNs: 0n }, set);
  for (const column of storedColumns(set)) column.stats(set.rows);
  encodeTlm(set, extent);
  set.release();
  return rows;
}

if (import.meta.main) await main(process.argv.slice(2));
