import { ColumnSet } from "../../src/format/columns/column-set.ts";
import { byteScanner } from "../../src/format/ndjson/byte-scanner.ts";
import type { BodyScanner } from "../../src/format/ndjson/scanner.ts";
import { logsScanner } from "../../src/format/otlp/scanner.ts";
import { OTLP_LOGS_SHAPE } from "../../src/format/otlp/shape.ts";
import { encodeTlm, storedColumns } from "../../src/format/tlm.ts";
import { tlmRowsAsNdjson } from "../../src/format/tlm-rows.ts";
import { z } from "zod";
import { defineBenchmark } from "../suite/benchmark.ts";
import { decodeByProtobufjs, logsRequest } from "../support/otlp-request.ts";
import { MIB } from "../support/report.ts";

export const benchmark = defineBenchmark({
  name: "kernel/otlp",
  question:
    "What does a log record cost by OTLP, against the same row as NDJSON, and against protobufjs, which only decodes?",
  notMeasured: "HTTP, checksums, storing. protobufjs decodes into objects, which are dropped; the others fill columns.",
  options: z.strictObject({
    records: z.coerce.number().int().positive().default(10_000).describe("in one request"),
    requests: z.coerce.number().int().positive().default(10).describe("in one round"),
  }),
  measures: {
    seal: { unit: "rows/CPU-s", better: "more", doc: "scanned into columns, counted and encoded" },
    scan: { unit: "rows/CPU-s", better: "more", doc: "scanned into columns, or decoded" },
  },
  rounds: 7,
  hasPeers: true,
  open: async ({ records, requests }) => {
    const request = logsRequest(records);
    const ndjson = asNdjson(request, records);
    const per = (task: () => number) => rowsPerSecond(task, requests, records);
    const sideOf = (name: string, scanner: BodyScanner, bytes: Uint8Array) => ({
      name,
      round: async () => ({ seal: per(() => seal(scanner, bytes)), scan: per(() => scan(scanner, bytes)) }),
    });
    return {
      sides: [
        sideOf("OTLP", logsScanner, request),
        sideOf("NDJSON", byteScanner, ndjson),
        { name: "protobufjs", round: async () => ({ scan: per(() => decodeByProtobufjs(request)) }) },
      ],
    };
  },
});

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
