import { expect } from "vitest";
import { TailClient, type TailOptions } from "../api/tail.test-kit.ts";
import { ingest, ndjson } from "../support/client.ts";
import { defer } from "./edge.test-kit.ts";

/** Rows of table `t` for live tails of servers as processes of their own. */

/** `count` rows whose `n` goes up from `from`. */
export const numbers = (from: number, count: number) => Array.from({ length: count }, (_, i) => ({ n: from + i }));

/** Ingests `rows` and tells the snapshot that has them. */
export async function put(url: string, rows: readonly object[]): Promise<number> {
  const { status, text, json } = await ingest(url, "t", ndjson(rows));
  expect({ status, text }).toMatchObject({ status: 200 });
  return Number(json.snapshot_id);
}

/** A tail that `stopAll` ends. */
export async function tail(url: string, options: TailOptions = {}): Promise<TailClient> {
  const client = await TailClient.open(url, "t", options);
  defer(async () => client.leave());
  return client;
}
