import type { NdjsonBody } from "./scanner.ts";

const LINE_FEED = 0x0a;
/** Trials that a minimisation may take; what is left then is small enough. */
const MAX_TRIALS = 20_000;

/** The bodies with everything left out that is not needed for `fails` to hold: bodies, then lines, then bytes. */
export function minimise(bodies: readonly NdjsonBody[], fails: (bodies: NdjsonBody[]) => boolean): NdjsonBody[] {
  let trials = 0;
  const stillFails = (candidate: NdjsonBody[]) => trials++ < MAX_TRIALS && fails(candidate);
  let left = shrink([...bodies], stillFails);
  for (let i = 0; i < left.length; i++) {
    const withBytes = (bytes: Uint8Array) => left.map((body, k) => (k === i ? { ...body, bytes } : body));
    const current = () => left[i]?.bytes ?? new Uint8Array(0);
    const lines = shrink(linesOf(current()), (some) => stillFails(withBytes(joined(some))));
    left = withBytes(joined(lines));
    const bytes = shrink([...current()], (some) => stillFails(withBytes(Uint8Array.from(some))));
    left = withBytes(Uint8Array.from(bytes));
  }
  return left;
}

/** Lists up to this length are tried with runs of every place and length. */
const SHORT = 300;

/** The items without ever smaller runs of them that are not needed (Zeller, "Simplifying failure-inducing input"). */
function shrink<T>(items: T[], fails: (items: T[]) => boolean): T[] {
  let left = items;
  for (let run = Math.ceil(left.length / 2); run >= 1; run = nextRun(run, left.length)) {
    for (let at = 0; at < left.length;) {
      const fewer = [...left.slice(0, at), ...left.slice(at + run)];
      if (fewer.length < left.length && fails(fewer)) left = fewer;
      else at += left.length > SHORT ? run : 1;
    }
  }
  return left;
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(pieces));
}

function linesOf(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (let start = 0; start < bytes.length;) {
    const feed = bytes.indexOf(LINE_FEED, start);
    const end = feed < 0 ? bytes.length : feed + 1;
    lines.push(bytes.subarray(start, end));
    start = end;
  }
  return lines;
}

function nextRun(run: number, length: number): number {
  if (run === 1) return 0;
  return length > SHORT ? Math.ceil(run / 2) : Math.min(run - 1, length);
}
