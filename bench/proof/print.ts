import { printTable, shown, signedPercent } from "../support/report.ts";
import type { HeldOut } from "../report/report.ts";
import { comparedIn, type Proof } from "./proof-file.ts";

/** By how much what was measured differs from what was predicted, as a share of what was predicted. */
export function missOf({ predicted, measured }: Pick<HeldOut, "predicted" | "measured">): number {
  return measured / predicted.value - 1;
}

export function printProof(proof: Proof): void {
  const rows = comparedIn(proof).map((each) => [
    `${each.load} ${each.measure}`,
    shown(each.predicted.value),
    shown(each.measured),
    each.unit,
    signedPercent(missOf(each)),
  ]);
  console.log("");
  printTable(["held out", "predicted", "measured", "unit", "miss"], rows);
}
