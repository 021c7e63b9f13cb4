import { seededRandom, type Random } from "../../src/core/random.ts";

/**
 * The log shape: rows of about 340 bytes as a service writes them, seeded, so that every run and every peer has the
 * same bytes.
 */
const LEVELS = ["DEBUG", "INFO", "INFO", "INFO", "INFO", "WARN", "ERROR"];
const SERVICES = ["checkout", "cart", "search", "auth", "payments", "inventory", "shipping", "frontend"];
const PATHS = ["/api/cart", "/api/items", "/api/search", "/login", "/health", "/api/orders", "/static/app.js"];
const WORDS = "request handled in time for user with cache miss on shard retry after timeout upstream closed".split(
  " ",
);

const START_MS = Date.UTC(2026, 0, 1);

export function logRows(count: number, seed = 1): Buffer {
  const random = seededRandom(seed);
  const parts: string[] = [];
  for (let i = 0; i < count; i++) parts.push(logRow(random, i));
  return Buffer.from(parts.join(""));
}

function logRow(random: Random, index: number): string {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)] as T;
  const message = Array.from({ length: 12 }, () => pick(WORDS)).join(" ");
  return `${JSON.stringify({
    at: new Date(START_MS + index * 7).toISOString(),
    label: pick(LEVELS),
    body: message,
    service: pick(SERVICES),
    host: `node-${Math.floor(random.next() * 64)}`,
    path: pick(PATHS),
    status: pick([200, 200, 200, 201, 304, 404, 500]),
    duration_ms: Math.round(random.next() * 100_000) / 100,
    bytes: Math.floor(random.next() * 1_000_000),
    trace_id: hex(random, 32),
  })}\n`;
}

function hex(random: Random, digits: number): string {
  let text = "";
  while (text.length < digits) text += Math.floor(random.next() * 16).toString(16);
  return text;
}

/** Cuts NDJSON into bodies of about `sizeBytes`, at newlines. */
export function cutBodies(ndjson: Buffer, sizeBytes: number): Buffer[] {
  const bodies: Buffer[] = [];
  for (let start = 0; start < ndjson.length;) {
    const newline = ndjson.indexOf(10, Math.min(start + sizeBytes, ndjson.length - 1));
    const end = newline === -1 ? ndjson.length : newline + 1;
    bodies.push(ndjson.subarray(start, end));
    start = end;
  }
  return bodies;
}
