import { expect, it } from "vitest";
import type { ColumnFilter, FilterProbe } from "../format/filter/filter.ts";
import { textsOf } from "../format/filter/filter.test-kit.ts";
import { buildGramFilter } from "../format/filter/gram-filter.ts";
import { probeNeedles, probeValues } from "../format/filter/probes.ts";
import { buildValueFilter } from "../format/filter/value-filter.ts";
import type { ColumnProbe } from "./catalog.ts";
import { aFlush, anExtent, column, failureOf, type Subject } from "./contract-fixtures.test-kit.ts";

function values(name: string, ...of: string[]): ColumnFilter {
  return { name, kind: "values", bytes: buildValueFilter(textsOf(of), of.length, of.length) };
}

function grams(name: string, ...of: string[]): ColumnFilter {
  return { name, kind: "grams", bytes: buildGramFilter(textsOf(of)) ?? Uint8Array.of() };
}

function asked(columnName: string, probe: FilterProbe | undefined): ColumnProbe {
  if (probe === undefined) throw new Error("nothing is asked");
  return { column: columnName, ...probe };
}

const equal = (columnName: string, ...of: string[]) => asked(columnName, probeValues(of));
const holding = (columnName: string, ...needles: string[]) => asked(columnName, probeNeedles(needles));

export function filtersContract({ catalog, table }: Subject): void {
  const commitFilters = async (lists: readonly (readonly ColumnFilter[] | undefined)[]) => {
    const events = await table([column("at", "timestamp"), column("id"), column("Body")]);
    const extents = lists.map((filters) => anExtent(filters === undefined ? {} : { filters }));
    await catalog().commit([aFlush(events, { extents })]);
    const ids = extents.map((extent) => extent.id);
    const without = async (...probes: ColumnProbe[]) =>
      (await catalog().extentsWithout(events.id, ids, probes)).map((id) => ids.indexOf(id));
    return { events, ids, without };
  };

  it("tells which extents cannot hold a value, and keeps filters out of what else it says", async () => {
    const { events, without } = await commitFilters([[values("id", "a", "b")], [values("id", "c")], undefined, []]);
    expect(await without(equal("id", "a"))).toEqual([1]);
    expect(await without(equal("ID", "c", "x"))).toEqual([0]);
    expect(await without(equal("id", "x"))).toEqual([0, 1]);
    expect(await without()).toEqual([]);
    for (const extent of await catalog().extents(events.id, 1)) expect(extent).not.toHaveProperty("filters");
  });

  it("asks the filters of the column and kind that the probe names", async () => {
    const both = [values("id", "a"), grams("body", "hello world"), values("body", "hello world")];
    const { without } = await commitFilters([both, [values("body", "b")], [grams("id", "something else")]]);
    expect(await without(holding("body", "o wor"))).toEqual([]);
    expect(await without(holding("BODY", "moon"))).toEqual([0]);
    expect(await without(equal("body", "hello"))).toEqual([0, 1]);
    expect(await without(equal("id", "a"), holding("body", "moon"))).toEqual([0]);
    expect(await without(equal("id", "x"), equal("body", "b"))).toEqual([0]);
    expect(await without(holding("id", "some"), equal("at", "x"), equal("unknown", "x"))).toEqual([]);
  });

  it("asks the extents that are named, of that table", async () => {
    const { events, ids } = await commitFilters([[values("id", "a")], [values("id", "a")]]);
    const probes = [equal("id", "x")];
    expect(await catalog().extentsWithout(events.id, ["unknown", ids[1] ?? ""], probes)).toEqual([ids[1]]);
    expect(await catalog().extentsWithout(events.id, [], probes)).toEqual([]);
    expect(await catalog().extentsWithout(events.id + 1, ids, probes)).toEqual([]);
  });

  it("answers about more extents than one message takes, in their order", async () => {
    const lists = Array.from({ length: 1_203 }, (_, i) => [values("id", `of ${i % 2}`)]);
    const { without } = await commitFilters(lists);
    expect(await without(equal("id", "of 0"))).toEqual(Array.from({ length: 601 }, (_, i) => i * 2 + 1));
  });

  it("takes filters of a column that the same flush adds", async () => {
    const events = await table();
    const extent = anExtent({ filters: [values("Fresh", "a")] });
    await catalog().commit([aFlush(events, { newColumns: [column("fresh")], extents: [extent] })]);
    expect(await catalog().extentsWithout(events.id, [extent.id], [equal("fresh", "b")])).toEqual([extent.id]);
  });

  it("lets damaged filters exclude nothing", async () => {
    const { bytes } = values("id", "a");
    const damaged = bytes.slice();
    damaged[9] = 0xff;
    const broken = [bytes.subarray(0, 30), damaged, Uint8Array.of(1), new Uint8Array(1_000)];
    const { without } = await commitFilters(broken.map((part) => [{ name: "id", kind: "values", bytes: part }]));
    expect(await without(equal("id", "x"))).toEqual([]);
  });

  it("refuses filters of unknown columns, and two of one kind for a column", async () => {
    const events = await table();
    for (const filters of [[values("nope", "a")], [values("body", "a"), values("BODY", "b")]]) {
      const committing = catalog().commit([aFlush(events, { extents: [anExtent({ filters })] })]);
      expect(await failureOf(committing)).toMatch(/filtersAreOneToAColumn/);
    }
    expect((await catalog().head()).id).toBe(0);
  });

  it("forgets the filters of extents that it forgets", async () => {
    const { events, ids, without } = await commitFilters([[values("id", "a")], [values("id", "a")]]);
    await catalog().endExtents(events.id, ids.slice(0, 1));
    // Older snapshots still read it.
    expect(await without(equal("id", "x"))).toEqual([0, 1]);
    await catalog().expireSnapshots(2);
    await catalog().forgetExtents(ids.slice(0, 1));
    expect(await without(equal("id", "x"))).toEqual([1]);
  });
}
