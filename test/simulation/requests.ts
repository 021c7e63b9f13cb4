import type { Random } from "../../src/core/random.ts";

/** A request as a client makes it; it says its own name in each of its rows. */
export type SimulatedRequest = {
  id: string;
  table: string;
  key: string | undefined;
  evolve: boolean;
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
  if (below(3) === 0) row["body"] = `body ${below(5)}`;
  return row;
}
