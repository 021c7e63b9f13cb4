import { expect, test } from "vitest";
import { Tail, type ReadRow, type TailEnd, type TailItem } from "./tail.ts";

function aTail() {
  const seen = { drained: 0, ended: [] as (TailEnd | undefined)[] };
  const tail = new Tail({
    filter: "true",
    position: { snapshot: 5, row: 0 },
    onDrained: () => seen.drained++,
    onEnd: (last) => seen.ended.push(last),
  });
  return { tail, seen };
}

const rows = (...numbers: number[]): ReadRow[] =>
  numbers.map((row) => ({ position: { snapshot: 5, row }, text: `{"n":${row}}` }));

const LEAVING: TailEnd = { code: "unavailable", message: "stops", reconnect: true };

async function take(tail: Tail): Promise<TailItem | "over"> {
  const { done, value } = await tail.next();
  return done === true ? "over" : value;
}

test("hands over what was found, one by one, and is ready again when it has", async () => {
  const { tail, seen } = aTail();
  expect(tail.isReady).toBe(true);
  tail.push(rows(1, 2), { snapshot: 6, row: 0 });
  expect([tail.isReady, tail.position]).toEqual([false, { snapshot: 6, row: 0 }]);
  expect(await take(tail)).toEqual({ kind: "row", id: "5.1", text: '{"n":1}' });
  expect(seen.drained).toBe(0);
  expect(await take(tail)).toEqual({ kind: "row", id: "5.2", text: '{"n":2}' });
  expect([seen.drained, tail.isReady]).toEqual([1, true]);
});

test("tells where it is only to a reader that waits and has all before", async () => {
  const { tail } = aTail();
  tail.push(rows(1), { snapshot: 6, row: 0 });
  tail.tellPosition();
  expect(await take(tail)).toMatchObject({ kind: "row" });
  tail.tellPosition();
  const waiting = take(tail);
  tail.tellPosition();
  expect(await waiting).toEqual({ kind: "position", id: "6.0" });
  // Once.
  const next = take(tail);
  tail.tellPosition();
  tail.push(rows(3), { snapshot: 6, row: 0 });
  expect(await next).toMatchObject({ id: "5.3" });
});

test("ends with its last item, and leaves out what was not handed over", async () => {
  const { tail, seen } = aTail();
  tail.push(rows(1, 2), { snapshot: 6, row: 0 });
  await take(tail);
  tail.end(LEAVING);
  tail.end({ ...LEAVING, code: "forbidden" });
  expect(await take(tail)).toEqual({ kind: "end", ...LEAVING });
  expect([await take(tail), await take(tail)]).toEqual(["over", "over"]);
  expect(seen.ended).toEqual([LEAVING]);
  tail.push(rows(3), { snapshot: 9, row: 0 });
  expect(await take(tail)).toBe("over");
});

test("ends for a reader that waits, or that gives it up", async () => {
  const { tail } = aTail();
  const waiting = take(tail);
  tail.end(LEAVING);
  expect(await waiting).toMatchObject({ kind: "end" });
  const other = aTail();
  const open = take(other.tail);
  await other.tail.return();
  expect(await open).toBe("over");
  expect([other.seen.ended, other.tail.isEnded]).toEqual([[undefined], true]);
});
