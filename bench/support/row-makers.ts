import type { Random } from "../../src/core/random.ts";

/** One row of a synthetic shape, as an object whose keys are in the order they are written. */
export type RowMaker = (random: Random, index: number) => Record<string, unknown>;

const START_MS = Date.UTC(2026, 0, 1);
const LEVELS = ["DEBUG", "INFO", "INFO", "INFO", "INFO", "WARN", "ERROR"];
const SERVICES = ["checkout", "cart", "search", "auth", "payments", "inventory", "shipping", "frontend"];
const PATHS = ["/api/cart", "/api/items", "/api/search", "/login", "/health", "/api/orders", "/static/app.js"];
const WORDS = "request handled in time for user with cache miss on shard retry after timeout upstream closed".split(
  " ",
);
/** What long text has between its words now and then: escapes of JSON, and characters of two to four bytes. */
const SEASONING = ["\n", "\n\n", "\t", '"quoted"', "C:\\temp", "naïve", "Zürich", "東京", "–", "🚀", "€ 12"];

export const SYNTHETIC = {
  logs: (random, index) => ({
    at: timeOf(index),
    label: pick(random, LEVELS),
    body: words(random, 22),
    service: pick(random, SERVICES),
    host: `node-${below(random, 64)}`,
    path: pick(random, PATHS),
    status: pick(random, [200, 200, 200, 201, 304, 404, 500]),
    duration_ms: below(random, 100_000) / 100,
    bytes: below(random, 1_000_000),
    trace_id: hex(random, 32),
  }),
  wide: (random, index) => ({
    at: timeOf(index),
    id: hex(random, 16),
    label: pick(random, LEVELS),
    ...numbered(20, "tag_", (i) => `${pick(random, SERVICES)}-${i}`),
    ...numbered(20, "count_", () => below(random, 100_000)),
    ...numbered(12, "ratio_", () => below(random, 1_000_000) / 1_000_000),
    ...numbered(5, "flag_", () => random.next() < 0.5),
  }),
  nested: (random, index) => ({
    at: timeOf(index),
    id: hex(random, 16),
    label: pick(random, LEVELS),
    size: below(random, 100_000),
    request: {
      method: pick(random, ["GET", "POST", "PUT"]),
      path: pick(random, PATHS),
      headers: { accept: "application/json", "user-agent": words(random, 4), "x-trace": hex(random, 16) },
      timing: { dns_ms: below(random, 50), connect_ms: below(random, 90), total_ms: below(random, 10_000) / 10 },
    },
    user: {
      id: below(random, 100_000),
      name: words(random, 2),
      roles: [pick(random, SERVICES), pick(random, SERVICES)],
    },
    items: Array.from({ length: 1 + below(random, 5) }, () => ({
      sku: hex(random, 8),
      count: 1 + below(random, 9),
      price: { amount: below(random, 100_000) / 100, currency: "EUR" },
    })),
  }),
  numbers: (random, index) => ({
    at: timeOf(index),
    seq: String(index),
    ...numbered(8, "long_", () => below(random, Number.MAX_SAFE_INTEGER) - 2 ** 52),
    ...numbered(6, "real_", () => (random.next() - 0.5) * 10 ** below(random, 12)),
    ...numbered(4, "int_", () => below(random, 10_000)),
  }),
  text: (random, index) => {
    const count = 300 + below(random, 300);
    const parts = Array.from({ length: count }, (_, i) =>
      i % 9 === 8 ? pick(random, SEASONING) : pick(random, WORDS),
    );
    return { at: timeOf(index), label: pick(random, LEVELS), size: count, body: parts.join(" ") };
  },
} as const satisfies Record<string, RowMaker>;

function timeOf(index: number): string {
  return new Date(START_MS + index * 7).toISOString();
}

export function pick<T>(random: Random, list: readonly T[]): T {
  return list[below(random, list.length)] as T;
}

/** An integer in [0, bound). */
export function below(random: Random, bound: number): number {
  return Math.floor(random.next() * bound);
}

function words(random: Random, count: number): string {
  return Array.from({ length: count }, () => pick(random, WORDS)).join(" ");
}

function hex(random: Random, digits: number): string {
  let text = "";
  while (text.length < digits) text += below(random, 0x1_0000).toString(16).padStart(4, "0");
  return text.slice(0, digits);
}

function numbered<T>(count: number, prefix: string, make: (index: number) => T): Record<string, T> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}${i}`, make(i)]));
}
