import { printTable, shown } from "../support/report.ts";
import type { Proof } from "./prove.ts";

/** A figure of a case, as it was predicted and as it was measured. */
export type Compared = { load: string; measure: string; unit: string; predicted: number; measured: number };

/** Measures below this share of a core are not compared: they are what a process does without a load. */
const LEAST_CORES = 0.03;

export function comparedIn({ cases }: Pick<Proof, "cases">): Compared[] {
  return cases.flatMap(({ name, predicted, measured }) => {
    const cores = Object.entries(predicted.cores)
      .filter(([role, busy]) => Math.max(busy, measured.cores[role] ?? 0) >= LEAST_CORES)
      .map(([role, busy]) => ({
        measure: `CPU of ${role}`,
        unit: "cores",
        predicted: busy,
        measured: measured.cores[role] ?? 0,
      }));
    const others = [
      {
        measure: "saturation",
        unit: "/s",
        predicted: predicted.saturation.perSecond,
        measured: measured.saturationPerSecond,
      },
      { measure: "p99", unit: "ms", predicted: predicted.p99Ms, measured: measured.p99Ms },
      {
        measure: "at rest",
        unit: "per raw byte",
        predicted: predicted.storedPerRawByte,
        measured: measured.storedPerRawByte,
      },
    ];
    const puts =
      predicted.putsPerSecond === null || measured.putsPerSecond === null
        ? []
        : [{ measure: "PUTs", unit: "/s", predicted: predicted.putsPerSecond, measured: measured.putsPerSecond }];
    return [...cores, ...others, ...puts].map((each) => ({ load: name, ...each }));
  });
}

/** By how much what was measured differs from what was predicted, as a share of what was predicted. */
export function missOf({ predicted, measured }: Pick<Compared, "predicted" | "measured">): number {
  return measured / predicted - 1;
}

export function printProof(proof: Proof): void {
  const rows = comparedIn(proof).map((each) => [
    `${each.load} ${each.measure}`,
    shown(each.predicted),
    shown(each.measured),
    each.unit,
    `${missOf(each) >= 0 ? "+" : ""}${(missOf(each) * 100).toFixed(0)} %`,
  ]);
  console.log("");
  printTable(["held out", "predicted", "measured", "unit", "miss"], rows);
}
