import { assert, integer, property } from "fast-check";
import { expect, test } from "vitest";
import { IdTable } from "./id-table.ts";
import { VectorIndex } from "./vector-index.ts";

/** Closeness by codes and rescoring against all cosines. Numbers are drawn from a seed, which fast-check prints. */

const keyOf = (n: number) => `00000000-0000-4000-8000-${n.toString(16).padStart(12, "0")}`;

/** mulberry32, and from it numbers of a normal distribution. */
function normalFrom(seed: number): () => number {
  let state = seed;
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

function unit(values: readonly number[]): Float32Array {
  const length = Math.hypot(...values);
  return Float32Array.from(values, (value) => value / length);
}

/** Vectors around some centres, as texts about some subjects have. */
function clustered(count: number, dimensions: number, normal: () => number): Float32Array[] {
  const draw = () => Array.from({ length: dimensions }, normal);
  const centres = Array.from({ length: Math.ceil(count / 50) }, draw);
  return Array.from({ length: count }, (_, i) => {
    const centre = centres[i % centres.length] ?? [];
    return unit(centre.map((value) => value + 0.7 * normal()));
  });
}

/** Node `n` has the one version `n`, whose vector is the n-th. */
function indexOf(vectors: readonly Float32Array[]): VectorIndex {
  const nodeIds = new IdTable();
  const index = new VectorIndex(nodeIds);
  for (const n of vectors.keys()) {
    nodeIds.numberOf(keyOf(n));
    index.setKey(n, keyOf(n));
  }
  index.apply(vectors.map((vector, n) => ({ key: keyOf(n), nodeId: keyOf(n), seq: n + 1, vector })));
  return index;
}

const cosineOf = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);

function exact(vectors: readonly Float32Array[], question: Float32Array, limit: number) {
  const all = vectors.map((vector, slot) => ({ slot, cosine: cosineOf(vector, question) }));
  return all.toSorted((a, b) => b.cosine - a.cosine || a.slot - b.slot).slice(0, limit);
}

const ALL = { slotOf: (node: number) => node, before: (a: number, b: number) => a - b };

test("with all rescored the closest are those of all cosines, whatever the dimensions", () => {
  assert(
    property(integer(), integer({ min: 1, max: 100 }), integer({ min: 0, max: 80 }), (seed, dimensions, count) => {
      const normal = normalFrom(seed);
      const vectors = Array.from({ length: count }, () => unit(Array.from({ length: dimensions }, normal)));
      const question = unit(Array.from({ length: dimensions }, normal));
      const found = indexOf(vectors).search(question, { ...ALL, rescored: 80, limit: 10 });
      expect(found).toEqual(exact(vectors, question, 10));
    }),
    { numRuns: 60 },
  );
});

test("of 5,000 vectors 500 rescored have nearly all of the ten closest, and their exact cosines", () => {
  const normal = normalFrom(7);
  const vectors = clustered(5_000, 384, normal);
  const index = indexOf(vectors);
  let agreed = 0;
  for (let n = 0; n < 20; n++) {
    const question = unit(Array.from(vectors[n * 37] ?? [], (value) => value + 0.02 * normal()));
    const wanted = exact(vectors, question, 10);
    const found = index.search(question, { ...ALL, rescored: 500, limit: 10 });
    agreed += found.filter(({ slot }) => wanted.some((each) => each.slot === slot)).length;
    for (const { slot, cosine } of found) expect(cosine).toBeCloseTo(cosineOf(vectors[slot] ?? question, question), 6);
  }
  expect(agreed / 200).toBeGreaterThan(0.98);
});

test("codes choose what is rescored: those with the fewest bits that differ, of equal ones the first", () => {
  const signs = (...bits: number[]) => unit(bits.map((bit) => (bit === 1 ? 1 : -1)));
  const vectors = [signs(0, 0, 0, 0), signs(1, 1, 0, 0), signs(1, 0, 1, 0), signs(1, 1, 1, 0), signs(0, 1, 1, 0)];
  const found = indexOf(vectors).search(signs(1, 1, 1, 1), { ...ALL, rescored: 3, limit: 10 });
  expect(found.map(({ slot }) => slot)).toEqual([3, 1, 2]);
});

test("only versions in view are found, and only by the vector of their own text", () => {
  const normal = normalFrom(3);
  const vectors = Array.from({ length: 40 }, () => unit(Array.from({ length: 33 }, normal)));
  const index = indexOf(vectors);
  const question = vectors[0] ?? new Float32Array();
  const isSeen = (n: number) => n % 3 === 1;
  const slotOf = (node: number) => (isSeen(node) ? node : -1);
  const found = index.search(question, { ...ALL, slotOf, rescored: 5, limit: 40 });
  expect(found).toHaveLength(5);
  expect(found.every(({ slot }) => isSeen(slot))).toBe(true);
  // Node 1 has another text now.
  index.setKey(40, keyOf(999));
  const changed = index.search(question, { ...ALL, slotOf: (n) => (n === 1 ? 40 : -1), rescored: 5, limit: 5 });
  expect(changed).toEqual([]);
  index.apply([{ key: keyOf(999), nodeId: keyOf(1), seq: 41, vector: question }]);
  const again = index.search(question, { ...ALL, slotOf: (n) => (n === 1 ? 40 : -1), rescored: 5, limit: 5 });
  expect(again).toEqual([{ slot: 40, cosine: expect.closeTo(1, 6) as number }]);
});

test("vectors of other dimensions are neither kept nor compared, and one that comes twice counts once", () => {
  const index = indexOf([unit([1, 0]), unit([0, 1])]);
  index.apply([
    { key: keyOf(7), nodeId: keyOf(1), seq: 8, vector: unit([1, 2, 3]) },
    { key: keyOf(0), nodeId: keyOf(0), seq: 9, vector: unit([1, 0]) },
  ]);
  expect([index.count, index.seq]).toEqual([2, 9]);
  expect(index.search(unit([1, 2, 3]), { ...ALL, rescored: 9, limit: 9 })).toEqual([]);
});
