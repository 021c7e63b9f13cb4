import { nextTurn } from "../../core/clock.ts";
import { foldedWords } from "../memory/index/terms/fold.ts";
import type { NodeRecord } from "../memory/model.ts";
import type { KnownVerdicts, Verdict } from "../memory/verdicts.ts";
import type { Band } from "./options.ts";
import { CONFLICTS, isOfFile, nodeHash } from "./project-memory.ts";

/**
 * Which memories say the same as another one: those with the same text, and those whose vectors are more alike than the
 * band. Within the band, and where numbers differ, a language model decides, if there is one. Of memories that say the same, one stands for all; the others are duplicates of it.
 */
export type Duplicate = { node: NodeRecord; of: NodeRecord; cosine: number | undefined; is: "same" | "possible" };

/** What is known to be said of two memories that may say the same. */
export type DecideDuplicate = (pair: { node: NodeRecord; of: NodeRecord }) => Verdict;

/** Where nobody has decided, such pairs are reported. */
export const leaveUndecided: DecideDuplicate = () => "undecided";

/** As a language model has decided; pairs that it has not judged are reported. */
export function asJudged(verdicts: KnownVerdicts): DecideDuplicate {
  return ({ node, of }) => verdicts.of(node, of) ?? "undecided";
}

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
    const { near, tries } = nearestAlike(one, others, band, decide);
    if (near !== undefined) found.push({ node, of: near.other.node, cosine: near.cosine, is: near.is });
    if (near?.is !== "same") {
      standing.push(one);
      if (isAmong(node)) standingAmong.push(one);
    }
    byText.set(text, near?.is === "same" ? near.other.node : node);
    compared += tries * others.length * (one.vector?.numbers.length ?? 0);
    if (compared > PER_TURN) {
      compared = 0;
      await nextTurn();
    }
  }
  return found;
}

/** Of two memories that say the same, the one that stands for both. */
export function standingOf(a: NodeRecord, b: NodeRecord): NodeRecord {
  return byStanding(a, b) <= 0 ? a : b;
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

/** Those that are most alike but differ: the next one is looked at, so many times. */
const TRIES = 4;

/** The one that is most alike, without those that are known to differ. */
function nearestAlike(
  one: Standing,
  standing: readonly Standing[],
  band: Band,
  decide: DecideDuplicate,
): { near: (Near & Pick<Duplicate, "is">) | undefined; tries: number } {
  const differing = new Set<Standing>();
  for (let tries = 1; tries <= TRIES; tries++) {
    const near = nearest(one, standing, { least: band.min, differing });
    if (near === undefined) return { near, tries };
    const verdict = verdictOf(one, near, band, decide);
    if (verdict !== "different") return { near: { ...near, is: verdict === "same" ? "same" : "possible" }, tries };
    differing.add(near.other);
  }
  return { near: undefined, tries: TRIES };
}

/** The one that is most alike, of those that are as alike as `least`. */
function nearest(
  { vector }: Standing,
  standing: readonly Standing[],
  { least, differing }: { least: number; differing: ReadonlySet<Standing> },
): Near | undefined {
  if (vector === undefined) return undefined;
  let best: Near | undefined;
  for (const other of standing) {
    if (other.vector?.numbers.length !== vector.numbers.length || differing.has(other)) continue;
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

function verdictOf(one: Standing, { other, cosine }: Near, { max }: Band, decide: DecideDuplicate): Verdict {
  const mayBe = one.numbers === other.numbers && !isOfConflict(one.node, other.node);
  if (cosine > max && mayBe) return "same";
  const verdict = decide({ node: one.node, of: other.node });
  return verdict === "same" && !mayBe ? "undecided" : verdict;
}

/** Other numbers make another fact likely, and no model may say otherwise. */
export function mayBeSame(a: NodeRecord, b: NodeRecord): boolean {
  return numbersIn(a) === numbersIn(b) && !isOfConflict(a, b);
}

/** What was kept since it said something else is told of already: people decide between the two. */
export function isOfConflict(a: NodeRecord, b: NodeRecord): boolean {
  return [a, b].some(({ props }) => props[CONFLICTS] !== undefined);
}
