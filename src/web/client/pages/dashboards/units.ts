import { formatBytes, formatDuration } from "../../base/format.ts";

const NUMBER = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });
const SHORT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 2 });

/** How values of a unit are written: `bytes`, `ms`, `s` and `%` are known, any other text stands behind the number. */
export function valueFormat(unit: string): (value: number) => string {
  switch (unit.trim().toLowerCase()) {
    case "bytes":
      return signed(formatBytes);
    case "ms":
      return signed(formatDuration);
    case "s":
      return signed((value) => formatDuration(value * 1_000));
    case "%":
    case "percent":
      return (value) => `${NUMBER.format(value)} %`;
    case "":
      return plainNumber;
    default:
      return (value) => `${plainNumber(value)} ${unit.trim()}`;
  }
}

function plainNumber(value: number): string {
  return Math.abs(value) < 1_000_000 ? NUMBER.format(value) : SHORT.format(value);
}

function signed(format: (value: number) => string): (value: number) => string {
  return (value) => (value < 0 ? `-${format(-value)}` : format(Number.isInteger(value) ? value : round(value)));
}

/** Bytes and milliseconds have no fraction below a unit worth showing. */
function round(value: number): number {
  return Number(value.toPrecision(4));
}
