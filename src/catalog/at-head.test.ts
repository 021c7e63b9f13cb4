import { expect, test } from "vitest";
import { EngineError } from "../core/errors.ts";
import { LIMITS } from "../core/limits.ts";
import { atHead } from "./at-head.ts";
import { snapshotExpired } from "./refusals.ts";

/** A catalog whose head moves whenever it is asked for. */
function moving() {
  let id = 0;
  return { head: () => Promise.resolve({ id: ++id, committedAtMs: id }) };
}

const expired = (id: number) => snapshotExpired(id, { id: id + 1, committedAtMs: 0 });

test("asks again at the next head when that one cannot be read any more", async () => {
  const asked: number[] = [];
  const answer = await atHead(moving(), (head) => {
    asked.push(head);
    return head < 3 ? Promise.reject(expired(head)) : Promise.resolve(`at ${head}`);
  });
  expect([answer, asked]).toEqual(["at 3", [1, 2, 3]]);
});

test("gives up in the end, and at once for any other reason", async () => {
  let asked = 0;
  const always = atHead(moving(), (head) => {
    asked++;
    return Promise.reject(expired(head));
  });
  await expect(always).rejects.toMatchObject({ code: "snapshot_expired" });
  expect(asked).toBe(LIMITS.commitAttempts);
  const other = atHead(moving(), () => Promise.reject(new EngineError("unavailable", "away")));
  await expect(other).rejects.toMatchObject({ code: "unavailable" });
});
