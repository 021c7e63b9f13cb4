import { seededRandom } from "../../core/random.ts";
import { selectBits } from "./bits.ts";

/**
 * How many different values a column has, estimated from a sample of them while an extent is sealed.
 *
 * Hashing every value would cost a tenth of scanning it, so at most `SAMPLE_VALUES` are looked at: a column of 3,700
 * rows takes a few microseconds. Up to that many values the count is exact but for collisions of their 32-bit hashes
 * (one column in 100,000 is off by one). Beyond, the estimator is Duj1 of Haas and Stokes ("Estimating the number of
 * classes in a finite population", JASA 93, 1998), which PostgreSQL's ANALYZE uses as well: with `d` different values
 * among `n` of `N`, `f1` of them seen once, n·d / (n − f1 + f1·n/N). It gives `d` when nothing was seen only once, and
 * `N` when everything was.
 *
 * The sampled places are random, not every k-th: a step would meet the period of values that go round, and would never
 * hit twice the runs of a column in which equal values follow each other. They are the same for every column of as many
 * values, so that equal rows give equal statistics.
 */
export const SAMPLE_VALUES = 256;

/** Ascending fractions of a column, which the sampled ranks are made from. */
const FRACTIONS = fractions();
const ranks = new Int32Array(SAMPLE_VALUES);
const hashes = new Int32Array(SAMPLE_VALUES);

/** What is estimated: a column, of whose rows some have values. */
export type Sampled = {
  rows: number;
  nullCount: number;
  /** Bits of the rows that have a value. */
  validity: Uint8Array;
  /** Puts the hash of the value in `rows[i]` into `hashes[i]`. Equal values have equal hashes; all 32 bits count. */
  hashRows(rows: Int32Array, hashes: Int32Array): void;
};

/** The number of different values; between one and the number of values, of which there must be one. */
export function estimateDistinct({ rows, nullCount, validity, hashRows }: Sampled): number {
  const values = rows - nullCount;
  const sampled = sampleRanks(values);
  if (nullCount > 0) selectBits(validity, sampled);
  const sampledHashes = hashes.subarray(0, sampled.length);
  hashRows(sampled, sampledHashes);
  const { distinct, once } = countDistinct(sampledHashes);
  return duj1(values, sampled.length, distinct, once);
}
