import type { Random } from "../../src/core/random.ts";

/** A request as a client makes it; it says its own name in each of its rows. */
export type SimulatedRequest = {
  id: string;
  table: string;
  key: string | undefined;
  evolve: boolean;
  /** Whether new columns get types by their values; undefined leaves it to the table. */
  inferTypes: boolean | undefined;
  /** Whether a line of it is no JSON. */
  isPoison: boolean;
  rows: readonly Record<string, unknown>[];
  bytes: Uint8Array;
};

/** `kept` keeps rows for a day, `plain` has no `props`; the other is made by the first who writes to it. */
export const TABLES = { made: "made", kept: "kept", plain: "plain" } as const;
export const RETENTION_DAYS = 1;

/** Fields that come and go, some of them in two spellings; `number` may become a column of numbers by hand. */
export const FIELDS = ["alpha", "Beta", "beta", "gamma", "number", "delta"] as const;

const DAY_MS = 86_400_000;

export function makeRequest(
  random: Random,
  { id, isKeyed, nowMs }: { id: string; isKeyed: boolean; nowMs: number },
): SimulatedRequest {
  const below = (bound: number): number => Math.floor(random.next() * bound);
  const isPoison = below(12) === 0;
  const table = Object.values(TABLES)[below(3)] ?? TABLES.made;
  const rows = Array.from({ length: 1 + below(4) }, (_, index) => makeRow(below, `${id}#${index}`, nowMs));
  const lines = rows.map((row) => JSON.stringify(row));
  if (isPoison) lines.splice(below(lines.length + 1), 0, '{"label": broken');
  return {
    id,
    table,
    key: isKeyed ? `key ${id}` : undefined,
    evolve: below(5) > 0,
    inferTypes: [true, true, false, undefined][below(4)],
    isPoison,
    rows,
    bytes: new TextEncoder().encode(lines.join("\n")),
  };
}

function makeRow(below: (bound: number) => number, label: string, nowMs: number): Record<string, unknown> {
  const row: Record<string, unknown> = { label };
  // Up to three days old, some of the next day, some without a time.
  if (below(4) > 0) row["at"] = new Date(nowMs - below(3 * DAY_MS) + (below(8) === 0 ? DAY_MS : 0)).toISOString();
  if (below(3) === 0) return row;
  const field = FIELDS[below(FIELDS.length)] ?? "alpha";
  row[field] = [below(100), `text ${below(10)}`, { nested: [below(3), true] }][below(3)];
  // Mostly integers, now and then a fraction: such a column is widened.
  if (below(2) === 0) row["measure"] = below(6) === 0 ? below(100) + 0.25 : below(100) - 50;
  if (below(6) === 0) row["big"] = [below(1_000), 2 ** 53, 2 ** 60, 0.5][below(4)];
  if (below(6) === 0) row["flag"] = below(10) === 0 ? "no" : below(2) === 0;
  if (below(6) === 0) row["seen"] = new Date(nowMs - below(DAY_MS)).toISOString();
  if (below(3) === 0) row["body"] = `body ${below(5)}`;
  return row;
}
