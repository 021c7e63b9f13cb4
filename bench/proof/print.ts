import { printTable, shown, signedPercent } from "../support/report.ts";
import { missOf } from "../report/report.ts";
import { comparedIn, type Proof } from "./proof-file.ts";

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
