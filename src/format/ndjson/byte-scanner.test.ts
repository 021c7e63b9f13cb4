import { describe, expect, test } from "vitest";
import { seededRandom } from "../../core/random.ts";
import { difference, randomBody, specs } from "./differential.test-kit.ts";

const TABLES = [
  "at:timestamp, label:string, body:string, props:dynamic",
  "at:timestamp, i:int, l:long, r:real, b:bool, s:string, t:timestamp, d:dynamic, props:dynamic",
  "at:timestamp, v:vector(2), i:int, props:dynamic",
  "at:timestamp, i:int, l:long",
  "S:string, at:timestamp, timestamp:timestamp, props:string",
].map(specs);

const DOCUMENTS = 10_000;

describe("the byte scanner agrees with the reference", () => {
  test(`on ${DOCUMENTS} generated and mutated bodies`, { timeout: 120_000 }, () => {
    const seed = Number(process.env.ENGINE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
    const random = seededRandom(seed);
    for (let i = 0; i < DOCUMENTS; i += 3) {
      const columns = TABLES[i % TABLES.length] ?? [];
      const bodies = [randomBody(random), randomBody(random), randomBody(random)];
      expect(difference(columns, bodies), `seed ${seed}, document ${i}`).toBeUndefined();
    }
  });
});
