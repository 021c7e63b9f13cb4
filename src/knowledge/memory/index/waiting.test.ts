import { expect, test } from "vitest";
import { seededRandom } from "../../../core/random.ts";
import { Lists } from "./block-pool.ts";
import { Waiting } from "./waiting.ts";

test("many values that wait come to their lists in the order in which they came, as few do", () => {
  const random = seededRandom(7);
  const lists = new Lists();
  const waiting = new Waiting();
  const expected = new Map<number, number[]>();
  for (const count of [10, 20_000, 1, 150_000, 5_000]) {
    for (let i = 0; i < count; i++) {
      const key = Math.floor(random.next() ** 3 * 700);
      const value = Math.floor(random.next() * 2 ** 32);
      waiting.add(key, value);
      const values = expected.get(key);
      if (values === undefined) expected.set(key, [value]);
      else values.push(value);
    }
    waiting.moveTo(lists, (key) => key + 1);
    expect(waiting.count).toBe(0);
  }
  for (const [key, values] of expected) expect([...lists.view(key + 1)]).toEqual(values);
});
