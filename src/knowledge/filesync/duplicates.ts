import { nextTurn } from "../../core/clock.ts";
import { foldedWords } from "../memory/index/terms/fold.ts";
import type { NodeRecord } from "../memory/model.ts";
import type { Band } from "./options.ts";
import { CONFLICTS, isOfFile, nodeHash } from "./project-memory.ts";

/**
 * Which memories say the same as another one: those with the same text, and those whose vectors are more alike than the
 * band. Within the band a model decides. Of memories that say the same, one stands for all; the others are duplicates of it.
 */
export type Duplicate = { node: NodeRecord; of: NodeRecord; cosine: number | undefined; is: "same" | "possible" };

/** What a language model says of two memories that may say the same. */
export type DuplicateVerdict = "same" | "different" | "undecided";
export type DecideDuplicate = (pair: { node: NodeRecord; of: NodeRecord; cosine: number }) => Promise<DuplicateVerdict>;

/** Without a language model nobody decides: such pairs are reported. */
export const leaveUndecided: DecideDuplicate = async () => "undecided";

type Standing = { node: NodeRecord; numbers: string; vector: Measured | undefined };

/** A vector of length 1, and how long it is from each of its parts on. */
type Measured = { numbers: Float32Array; tails: readonly number[] };

const PARTS = 8;
/** Numbers of vectors that may be compared before others have their turn: some milliseconds. */
const PER_TURN = 2_000_000;
/** Folding a character costs about as much as comparing so many numbers. */
const PER_CHAR = 50;

/** Why a link of duplicates was ended that somebody may make again. Any other end says that the two differ. */
export const NOT_ANY_MORE = "they do not say the same any more";

/** Whether it is a memory that holds. */
export function isHolding(node: NodeRecord | undefined, nowUs: number): node is NodeRecord {
  if (node?.kind !== "memory" || nodeHash(node) === "") return false;
  return node.validToUs === undefined || node.validToUs > nowUs;
}

/**
 * `vectors`: of length 1, by the memory's id; those of one model. `nodes` hold. With `among` only pairs with one of those
 * ids are looked for: the others were compared before.
 */
export async function findDuplicates(
  nodes: readonly NodeRecord[],
  vectors: ReadonlyMap<string, Float32Array>,
  { band, decide, among }: { band: Band; decide: DecideDuplicate; among?: ReadonlySet<string> },
): Promise<Duplicate[]> {
  const found: Duplicate[] = [];
  const standing: Standing[] = [];
  const isAmong = ({ id }: NodeRecord): boolean => among === undefined || among.has(id);
  /** Of those that stand. */
  const standingAmong: Standing[] = [];
  const byText = new Map<string, NodeRecord>();
  let compared = 0;
  for (const node of nodes.toSorted(byStanding)) {
    const text = comparableText(node);
    const twin = byText.get(text);
    compared += node.content.length * PER_CHAR;
    if (twin !== undefined) {
      if (isAmong(node) || isAmong(twin)) found.push({ node, of: twin, cosine: undefined, is: "same" });
      continue;
    }
    const one: Standing = { node, numbers: numbersIn(node), vector: measured(vectors.get(node.id)) };
    const others = isAmong(node) ? standing : standingAmong;
    const near = nearest(one, others, band.min);
    const verdict = near === undefined ? "different" : await verdictOf(one, near, band, decide);
    if (near !== undefined && verdict !== "different") {
      const is = verdict === "same" ? "same" : "possible";
      found.push({ node, of: near.other.node, cosine: near.cosine, is });
    }
    if (verdict !== "same") {
      standing.push(one);
      if (isAmong(node)) standingAmong.push(one);
    }
    byText.set(text, verdict === "same" && near !== undefined ? near.other.node : node);
    compared += others.length * (one.vector?.numbers.length ?? 0);
    if (compared > PER_TURN) {
      compared = 0;
      await nextTurn();
    }
  }
  return found;
}

/** What its user wrote into a file stands before what was saved, then what was there first: alike on every replica. */
function byStanding(a: NodeRecord, b: NodeRecord): number {
  return Number(isOfFile(b)) - Number(isOfFile(a)) || a.createdAtUs - b.createdAtUs || (a.id < b.id ? -1 : 1);
}

/** Differences of case, of blanks and between compatible spellings say nothing. */
function comparableText({ content }: NodeRecord): string {
  return content.normalize("NFKC").toLowerCase().replaceAll(/\s+/gu, " ").trim();
}

/** `port 8080` and `port 8081` are two facts, however alike a model finds them. */
function numbersIn({ name, content }: NodeRecord): string {
  const words = foldedWords(`${name ?? ""} ${content}`).filter((word) => /\p{N}/u.test(word));
  return [...new Set(words)].toSorted().join(" ");
}

type Near = { other: Standing; cosine: number };

/** The one that is most alike, of those that are as alike as `least`. */
function nearest({ vector }: Standing, standing: readonly Standing[], least: number): Near | undefined {
  if (vector === undefined) return undefined;
  let best: Near | undefined;
  for (const other of standing) {
    if (other.vector?.numbers.length !== vector.numbers.length) continue;
    const cosine = product(vector, other.vector, best?.cosine ?? least);
    if (cosine !== undefined && (best === undefined || cosine > best.cosine)) best = { other, cosine };
  }
  return best;
}

function measured(numbers: Float32Array | undefined): Measured | undefined {
  if (numbers === undefined) return undefined;
  const size = partSize(numbers);
  const tails = Array.from({ length: PARTS }, (_, part) => Math.hypot(...numbers.subarray(part * size)));
  return { numbers, tails };
}

function partSize({ length }: Float32Array): number {
  return Math.ceil(length / PARTS);
}

/** Undefined where it is below `least`: mostly that shows after some parts, as the rest adds no more than its lengths. */
function product(a: Measured, b: Measured, least: number): number | undefined {
  const [x, y] = [a.numbers, b.numbers];
  const size = partSize(x);
  let sum = 0;
  for (let part = 0; part < PARTS; part++) {
    if (sum + (a.tails[part] ?? 0) * (b.tails[part] ?? 0) < least - ROUNDING) return undefined;
    const end = Math.min(x.length, (part + 1) * size);
    for (let i = part * size; i < end; i++) sum += (x[i] ?? 0) * (y[i] ?? 0);
  }
  return sum < least ? undefined : sum;
}

/** More than sums of 32-bit numbers are off. */
const ROUNDING = 1e-5;

async function verdictOf(
  { node, numbers }: Standing,
  { other, cosine }: Near,
  { max }: Band,
  decide: DecideDuplicate,
): Promise<DuplicateVerdict> {
  const isConflict = [node, other.node].some(({ props }) => props[CONFLICTS] !== undefined);
  // What was kept since it said something else is told of already; other numbers make another fact likely.
  if (cosine > max && numbers === other.numbers && !isConflict) return "same";
  return await decide({ node, of: other.node, cosine });
}
