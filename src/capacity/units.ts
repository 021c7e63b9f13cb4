/** Texts with units, as people write them into workload and profile files. */

const BYTES = new Map([
  ["B", 1],
  ["kB", 1e3],
  ["MB", 1e6],
  ["GB", 1e9],
  ["TB", 1e12],
  ["KiB", 2 ** 10],
  ["MiB", 2 ** 20],
  ["GiB", 2 ** 30],
  ["TiB", 2 ** 40],
]);
const SECONDS = new Map([
  ["ms", 1e-3],
  ["s", 1],
  ["min", 60],
  ["h", 3_600],
  ["d", 86_400],
]);

export const MIB = 2 ** 20;
export const GIB = 2 ** 30;
export const SECONDS_PER_DAY = 86_400;
/** Twelfth of a year of 365 days: what clouds bill by. */
export const SECONDS_PER_MONTH = (365 * SECONDS_PER_DAY) / 12;

/** Bytes of `1 MiB`, `340 B`, `50 MB`. Throws a sentence for anything else. */
export function parseBytes(text: string): number {
  return amountIn(text, BYTES, "a size such as 340 B, 64 KiB or 1 MB");
}

/** Seconds of `200 ms`, `30 s`, `1 h`, `90 d`. Throws a sentence for anything else. */
export function parseSeconds(text: string): number {
  return amountIn(text, SECONDS, "a time such as 200 ms, 30 s, 1 h or 90 d");
}

/** Times a second, of `200/s`, `5/min`, `1/d`. Throws a sentence for anything else. */
export function parsePerSecond(text: string): number {
  const [, number = "", unit = ""] = /^([0-9][0-9_]*(?:\.[0-9]+)?) ?\/ ?([a-z]+)$/.exec(text.trim()) ?? [];
  const seconds = unit === "ms" ? undefined : SECONDS.get(unit);
  if (seconds === undefined) throw new Error(`${JSON.stringify(text)} is not a rate such as 200/s, 5/min or 1/d`);
  return Number(number.replaceAll("_", "")) / seconds;
}

function amountIn(text: string, units: ReadonlyMap<string, number>, expected: string): number {
  const [, number = "", unit = ""] = /^([0-9][0-9_]*(?:\.[0-9]+)?) ?([A-Za-z]+)$/.exec(text.trim()) ?? [];
  const factor = units.get(unit);
  if (factor === undefined) throw new Error(`${JSON.stringify(text)} is not ${expected}`);
  return Number(number.replaceAll("_", "")) * factor;
}

const STEPS = [
  ["TB", 1e12],
  ["GB", 1e9],
  ["MB", 1e6],
  ["kB", 1e3],
] as const;

/** With three digits: `1.25 GB`. */
export function bytesText(bytes: number): string {
  const [unit, step] = STEPS.find(([, least]) => bytes >= least) ?? ["B", 1];
  return `${threeDigits(bytes / step)} ${unit}`;
}

/** With three digits: `12.5 ms`, `1.25 s`. */
export function secondsText(seconds: number): string {
  if (seconds < 1) return `${threeDigits(seconds * 1_000)} ms`;
  return seconds < 120 ? `${threeDigits(seconds)} s` : `${threeDigits(seconds / 60)} min`;
}

/** 1234567 as `1,230,000`: digits that a prediction does not have are not shown. */
export function threeDigits(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "–";
  const rounded = Number(value.toPrecision(3));
  return rounded.toLocaleString("en-US", { maximumFractionDigits: 6 });
}
