import { median } from "../../src/capacity/quantile.ts";
import { MIB } from "../support/report.ts";
import type { Result } from "../suite/result.ts";
import { counts } from "./evidence.ts";
import { amount } from "./figures.ts";

/** What the machine of a result could do at most, and how far from it the engine was in the same run. */
export type Distance = {
  limit: string;
  limitValue: number;
  figure: string;
  figureValue: number;
  unit: string;
  /** Of the limit that is reached where more is better; how often the limit fits into it where less is. */
  says: string;
  machine: string;
};

const MB_PER_MIB = MIB / 1e6;

/** Of the newest result of each benchmark that says something of a limit; those beside other work say nothing. */
export function distancesIn(results: readonly Result[]): Distance[] {
  const newest = new Map<string, Result>();
  for (const result of results.toSorted((a, b) => Date.parse(a.startedAt) - Date.parse(b.startedAt))) {
    if (counts(result) && (result.options["data"] ?? USUAL_ROWS) === USUAL_ROWS) newest.set(result.benchmark, result);
  }
  const [scanner, bodies] = [newest.get("kernel/scanner"), newest.get("load/bodies")];
  return [...(scanner === undefined ? [] : ofScanner(scanner)), ...(bodies === undefined ? [] : ofBodies(bodies))];
}

/** The rows that distances are told of. */
const USUAL_ROWS = "logs";

function ofScanner(result: Result): Distance[] {
  const scan = medianOf(result, "scanner", "scan");
  if (scan === undefined) return [];
  const figure = { figure: "NDJSON to columns, one core", figureValue: scan, unit: "MB/s", machine: nameOf(result) };
  const copy = result.machine.memoryCopyMiBPerSecond * MB_PER_MIB;
  const parser = medianOf(result, "JSON.parse", "scan");
  return [
    { limit: "memory, copied by one core", limitValue: copy, ...figure, says: share(scan, copy) },
    ...(parser === undefined
      ? []
      : [{ limit: "JSON.parse of each line", limitValue: parser, ...figure, says: share(scan, parser) }]),
  ];
}

function ofBodies(result: Result): Distance[] {
  const { machine, rounds } = result;
  const wait = medianOf(result, "engine", "wait");
  const name = nameOf(result);
  const written = rounds.flatMap(({ engine }) =>
    engine?.bytesToDisk["server"] === undefined ? [] : engine.bytesToDisk["server"] / engine.wallSeconds / 1e6,
  );
  const distances: Distance[] = [];
  if (wait !== undefined) {
    distances.push({
      limit: "one fsync of a page, median",
      limitValue: machine.fsyncMs.p50,
      figure: "wait for a body of 1 MiB, 4 clients, median",
      figureValue: wait,
      unit: "ms",
      says: `${times(wait / machine.fsyncMs.p50)} as long`,
      machine: name,
    });
  }
  if (written.length > 0) {
    const rate = median(written);
    const disk = machine.sequentialWriteMiBPerSecond * MB_PER_MIB;
    distances.push({
      limit: "disk, written in sequence",
      limitValue: disk,
      figure: "written by the server during ingest",
      figureValue: rate,
      unit: "MB/s",
      says: share(rate, disk),
      machine: name,
    });
  }
  return distances;
}

function medianOf({ summary }: Result, side: string, measure: string): number | undefined {
  return summary.find((row) => row.side === side && row.measure === measure)?.median;
}

function share(value: number, limit: number): string {
  const part = value / limit;
  return part > 1 ? `${times(part)} of it` : `${amount(part * 100)} % of it`;
}

function times(factor: number): string {
  return `${factor.toFixed(factor < 10 ? 1 : 0)}×`;
}

export function nameOf({ machine }: Pick<Result, "machine">): string {
  return `${machine.processor} × ${machine.cores}`;
}
