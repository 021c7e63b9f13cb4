import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { jsonScanner } from "../format/ndjson/json-scanner.ts";
import { byteScanner } from "../format/ndjson/byte-scanner.ts";
import { countLines, cutAtNewlines, estimateLines } from "../format/ndjson/lines.ts";
import { ColumnSet } from "../format/columns/column-set.ts";
import { DEFAULT_SHAPE, type ColumnSpec } from "../format/types.ts";
import { sealInCuts } from "./seal-cuts.ts";
import { seal } from "./seal-thread.ts";
import { decodeTlm } from "../format/tlm-decode.ts";
import { send, StagedWorld } from "./staged/staged-world.test-kit.ts";

/** What a request may say of its body besides the bytes: times of arrival, and the shape of the table it creates. */
const encoder = new TextEncoder();
const LINES = ['{"body":"a"}', "", '{"body":"b","at":7000000000000000001}', '{"x":1}', '{"body":"c","at":"?"}', "{}"];
const ARRIVALS = BigInt64Array.of(10n, 20n, 30n, 40n, 50n);
/** Line 2 is blank, line 3 tells its own time, and line 6 is beyond the end. */
const TIMES = [10n, 7_000_000_000_000_000_001n, 40n, 50n, -1n];

function timesOf(bytes: Uint8Array): unknown[] {
  const { columns } = decodeTlm(bytes);
  return [...(columns.find(({ spec }) => spec.name === "at")?.values ?? [])];
}

describe("times of arrival by line", () => {
  test.each([
    ["the byte scanner", byteScanner],
    ["the line reader", jsonScanner],
  ])("%s takes them for rows that tell no time", (_name, scanner) => {
    for (const end of ["", "\n"]) {
      const set = new ColumnSet(DEFAULT_SHAPE);
      const bytes = encoder.encode(LINES.join("\n") + end);
      scanner.scan({ bytes, evolve: true, arrivedAtNs: -1n, arrivals: ARRIVALS }, set);
      expect([...set.time.values(0, set.rows)]).toEqual(TIMES);
    }
  });

  test("are cut with the body", async () => {
    const bytes = encoder.encode(LINES.join("\n"));
    const task = { columns: DEFAULT_SHAPE, format: "tlm" as const };
    for (let cutBytes = 1; cutBytes <= bytes.length; cutBytes++) {
      const body = { bytes, evolve: true, arrivedAtNs: -1n, arrivals: ARRIVALS };
      const { extents } = await sealInCuts(seal, { ...task, bodies: [body] }, cutBytes);
      expect(extents.flatMap((extent) => timesOf(extent.bytes))).toEqual(TIMES);
    }
  });
});

test("lines are counted as the cuts of a body add up to", () => {
  for (const text of ["", "a", "a\n", "\n", "a\n\nb", "\n\n\n", "a\nb\nc"]) {
    const bytes = encoder.encode(text);
    const lines = text === "" ? 0 : text.replace(/\n$/, "").split("\n").length;
    expect([text, countLines(bytes)]).toEqual([text, lines]);
    for (let size = 1; size < 6; size++) {
      const sum = cutAtNewlines(bytes, size).reduce((all, cut) => all + countLines(cut), 0);
      expect(sum).toBe(lines);
    }
  }
  expect(estimateLines(encoder.encode(`${"x".repeat(99)}\n`))).toBe(1);
  expect(estimateLines(encoder.encode("0123456\n".repeat(100_000)))).toBe(100_000);
});

describe("the shape of a table", () => {
  const SHAPE: ColumnSpec[] = [...DEFAULT_SHAPE, { name: "n", type: { kind: "long" } }];
  let world: StagedWorld;

  beforeEach(async () => {
    world = await StagedWorld.open();
  });

  afterEach(async () => {
    await world.catalog.verify();
    await world.close();
  });

  async function typeOf(column: string): Promise<string | undefined> {
    const table = await world.catalog.table("default", "t");
    return table?.columns.find(({ name }) => name === column)?.type.kind;
  }

  test.each(["sync", "staged"] as const)(
    "%s: is that of the request which creates it, and of no later one",
    async (mode) => {
      const node = world[mode]();
      await send(node, '{"n":9007199254740993}', { columns: SHAPE });
      await send(node, '{"n":2,"m":"x"}', { columns: [...SHAPE, { name: "m", type: { kind: "int" } }] });
      if (mode === "staged") await world.commit();
      expect([await typeOf("n"), await typeOf("m")]).toEqual(["long", "string"]);
      expect(await world.values("n")).toEqual(["2", "9007199254740993"]);
    },
  );

  test.each(["sync", "staged"] as const)("%s: a refused body creates nothing, and gives it no shape", async (mode) => {
    const node = world[mode]();
    const outcomes = await Promise.allSettled([
      send(node, '{"n":', { columns: SHAPE }),
      send(node, '{"n":1}'),
      send(node, '{"n":2}', { columns: SHAPE }),
    ]);
    if (mode === "staged") await world.commit();
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
    expect(await world.values("n")).toEqual(["1", "2"]);
    expect(["long", "string"]).toContain(await typeOf("n"));
  });

  test("bodies of two shapes that come at once are all stored", async () => {
    const node = world.sync();
    const other: ColumnSpec[] = [...DEFAULT_SHAPE, { name: "n", type: { kind: "string" } }];
    const sent = [undefined, SHAPE, other, SHAPE, undefined].map((columns, i) =>
      send(node, `{"n":${i}}`, columns === undefined ? {} : { columns }),
    );
    expect((await Promise.all(sent)).map(({ rows }) => rows)).toEqual([1, 1, 1, 1, 1]);
    expect(await world.values("n")).toEqual(["0", "1", "2", "3", "4"]);
    expect(await typeOf("n")).toBe("string");
  });

  test("staged: is kept for a table that is gone when its rows are committed", async () => {
    const node = world.staged({ clock: world.clock });
    await send(node, '{"n":1}', { columns: SHAPE });
    const table = await world.catalog.table("default", "t");
    await world.catalog.dropTable(table?.id ?? 0);
    world.clock.advance(1);
    // The node has not heard of the drop yet.
    await send(node, '{"n":2}', { columns: SHAPE });
    await world.commit();
    expect([await typeOf("n"), await world.values("n")]).toEqual(["long", ["2"]]);
  });

  test("staged: times of arrival travel with a body whose columns are not known yet", async () => {
    const node = world.staged();
    await send(node, "{}");
    const arrivals = BigInt64Array.of(1_000_000_001n, 1_000_000_002n);
    await send(node, '{"fresh":1}\n{"fresh":2}', { arrivals });
    await world.commit();
    const times = (await world.rows()).flatMap(({ fresh, at }) => (fresh === undefined ? [] : [at]));
    expect(times).toEqual([String(arrivals[0]), String(arrivals[1])]);
  });
});
