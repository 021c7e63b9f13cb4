import { createHash } from "node:crypto";
import { quoteIdentifier } from "../../src/io/duckdb/duckdb.ts";
import type { Checks, Dataset } from "./shapes.ts";

/**
 * What every side must answer about the data before its time counts: the number of rows, the sum of an integer column,
 * and the sum of the first 24 bits of the MD5 of every value of a text column, which any order of rows gives alike.
 */
export type Answers = { rows: number; sum: number; hash: number };

/** The answers as `JSON.parse` and Node's MD5 give them. */
export function expectedAnswers({ ndjson, checks }: Pick<Dataset, "ndjson" | "checks">): Answers {
  const answers: Answers = { rows: 0, sum: 0, hash: 0 };
  for (let start = 0; start < ndjson.length;) {
    const feed = ndjson.indexOf(10, start);
    const end = feed === -1 ? ndjson.length : feed;
    const row = JSON.parse(ndjson.toString("utf8", start, end)) as Record<string, unknown>;
    answers.rows++;
    answers.sum += Number(row[checks.sumColumn]);
    answers.hash += hash24(String(row[checks.hashColumn]));
    start = end + 1;
  }
  if (!Number.isSafeInteger(answers.sum)) throw new Error(`the sum of ${checks.sumColumn} is not exact`);
  return answers;
}

/** Few enough that sums over a billion rows are exact. */
const HASH_BYTES = 3;

/** What a text adds to the hash. */
export function hash24(text: string): number {
  return createHash("md5").update(text).digest().readUIntBE(0, HASH_BYTES);
}

/** The same in DuckDB's SQL, which is also the engine's. */
export function duckdbAnswersSql({ sumColumn, hashColumn }: Checks, from: string): string {
  const hash = `sum(('0x' || md5(${quoteIdentifier(hashColumn)})[1:6])::BIGINT)`;
  return `SELECT count(*)::BIGINT AS n, sum(${quoteIdentifier(sumColumn)}::BIGINT)::BIGINT AS s, ${hash}::BIGINT AS h FROM ${from}`;
}

/** Throws unless both are the same. */
export function mustAgree(side: string, actual: Answers, expected: Answers): void {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (got !== wanted) throw new Error(`${side} answers ${got}, the data says ${wanted}`);
}
