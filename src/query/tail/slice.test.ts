import { array, assert, infiniteStream, integer, nat, property, record, string } from "fast-check";
import { describe, expect, test } from "vitest";
import type { PlannedExtent } from "../../catalog/catalog.ts";
import { atPlace, placeOf } from "../scan/numbered-rows.ts";
import { afterSnapshot, formatPosition, parsePosition, type TailPosition } from "./position.ts";
import { sliceOf } from "./slice.ts";

function extentOf(beginSnapshot: number, rows: number): PlannedExtent {
  return {
    id: `${beginSnapshot}-${rows}`,
    key: "key",
    format: "tlm",
    formatVersion: 1,
    rows,
    sizeBytes: rows * 10,
    checksum: "",
    minAtNs: 0n,
    maxAtNs: 0n,
    tableId: 1,
    schemaVersion: 1,
    beginSnapshot,
    columns: [],
  };
}

const WIDE = { extents: 100, rows: 1e9, sizeBytes: 1e9 };

/** The places in the order of the commits that a slice has, as positions after each row. */
function positionsOf(slice: ReturnType<typeof sliceOf>): string[] {
  const { extents, from } = slice;
  const places = extents.flatMap(({ rows }, i) => Array.from({ length: rows }, (_, row) => placeOf(i, row)));
  return places.filter((place) => place >= from).map((place) => formatPosition(slice.after(place)));
}

describe("a slice", () => {
  const extents = [extentOf(3, 2), extentOf(3, 2), extentOf(5, 1), extentOf(9, 3)];

  test("has what comes after the position, whose rows count from the snapshot's first", () => {
    const slice = sliceOf({ extents, upTo: 9 }, { snapshot: 3, row: 3 }, WIDE);
    expect(positionsOf(slice)).toEqual(["3.4", "5.1", "9.1", "9.2", "9.3"]);
    expect(slice.end).toEqual(afterSnapshot(9));
    expect(positionsOf(sliceOf({ extents, upTo: 9 }, { snapshot: 3, row: 4 }, WIDE))[0]).toBe("5.1");
    expect(positionsOf(sliceOf({ extents, upTo: 9 }, { snapshot: 3, row: 99 }, WIDE))[0]).toBe("5.1");
  });

  test("is empty where nothing came", () => {
    const slice = sliceOf({ extents: [], upTo: 12 }, { snapshot: 7, row: 0 }, WIDE);
    expect([slice.extents, slice.end]).toEqual([[], afterSnapshot(12)]);
  });

  test("has one extent at least, and no more than its limits", () => {
    const first = sliceOf({ extents, upTo: 9 }, { snapshot: 3, row: 0 }, { ...WIDE, rows: 1 });
    expect([positionsOf(first), first.end]).toEqual([["3.1", "3.2"], { snapshot: 3, row: 2 }]);
    const second = sliceOf({ extents, upTo: 9 }, first.end, { ...WIDE, extents: 2 });
    expect([positionsOf(second), second.end]).toEqual([["3.3", "3.4", "5.1"], { snapshot: 5, row: 1 }]);
    expect(positionsOf(sliceOf({ extents, upTo: 9 }, second.end, { ...WIDE, sizeBytes: 1 }))).toEqual([
      "9.1",
      "9.2",
      "9.3",
    ]);
  });

  test("after slice has every row once, wherever each ends", () => {
    const commits = array(array(integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 }), {
      maxLength: 8,
    });
    const steps = infiniteStream(record({ extents: integer({ min: 1, max: 3 }), cut: integer({ min: 1, max: 12 }) }));
    assert(
      property(commits, steps, (sizes, choices) => {
        const all = sizes.flatMap((counts, i) => counts.map((rows) => extentOf(2 * i + 1, rows)));
        const upTo = 2 * sizes.length;
        const expected = positionsOf(sliceOf({ extents: all, upTo }, { snapshot: 0, row: 0 }, WIDE));
        const found: string[] = [];
        let position: TailPosition = { snapshot: 0, row: 0 };
        for (let step = 0; position.snapshot <= upTo && step < 1_000; step++) {
          const { extents: most, cut } = choices.next().value as { extents: number; cut: number };
          // As the catalog has it: whole snapshots, from that of the position on.
          const open = all.filter(({ beginSnapshot }) => beginSnapshot >= position.snapshot);
          const slice = sliceOf({ extents: open, upTo }, position, { ...WIDE, extents: most });
          const rows = positionsOf(slice);
          found.push(...rows.slice(0, cut));
          const last = rows[cut - 1];
          position = (rows.length > cut && last !== undefined && parsePosition(last)) || slice.end;
        }
        expect(found).toEqual(expected);
      }),
    );
  });
});

test("places name an extent and a row, and keep their order", () => {
  expect(atPlace(placeOf(7, 123))).toEqual({ extent: 7, row: 123 });
  expect(atPlace(placeOf(99, 2 ** 32 - 1))).toEqual({ extent: 99, row: 2 ** 32 - 1 });
  expect(placeOf(1, 0)).toBeGreaterThan(placeOf(0, 2 ** 32 - 1));
});

describe("a position", () => {
  test("is read as it is written", () => {
    assert(
      property(nat({ max: 999_999_999_999_999 }), nat(), (snapshot, row) => {
        expect(parsePosition(formatPosition({ snapshot, row }))).toEqual({ snapshot, row });
      }),
    );
  });

  test("is nothing else", () => {
    const patterns = [
      "",
      ".",
      "1",
      "1.",
      ".1",
      "-1.1",
      "1.-1",
      "1.1.1",
      "1e3.1",
      " 1.1",
      "1.1 ",
      "１.1",
      "1.1\n",
      "0x1.1",
    ];
    for (const text of [...patterns, `${"9".repeat(16)}.1`]) expect(parsePosition(text)).toBeUndefined();
    assert(
      property(string(), (text) => {
        expect(parsePosition(text) === undefined).toBe(!/^[0-9]{1,15}\.[0-9]{1,15}$/.test(text) || text.endsWith("\n"));
      }),
    );
  });
});
