import { beforeAll, describe, expect, test } from "vitest";
import { loadLibrary } from "../../src/query/kql/library.ts";
import { kqlReference } from "../../src/query/kql/reference.ts";
import { KqlAnalysis } from "../../src/web/client/editor/kql/kql-analysis.ts";
import { UNKNOWN_TABLES } from "../../src/web/client/editor/kql/kql-protocol.ts";
import { kqlColumnType } from "../../src/web/client/editor/kql/kql-types.ts";
import {
  REFUSED_AGGREGATES,
  REFUSED_FUNCTIONS,
  REFUSED_OPERATORS,
  REFUSED_PLUGINS,
} from "../../src/web/client/editor/kql/refused-names.ts";
import { CASE_FILES } from "../kql/all-cases.test-kit.ts";

/** What the editor says of texts in KQL, held against what the server accepts. The service is the same as the server's. */
const EVENTS = {
  name: "events",
  columns: [
    { name: "at", type: "timestamp" },
    { name: "n", type: "long" },
    { name: "label", type: "string" },
    { name: "body", type: "string" },
    { name: "props", type: "dynamic" },
    { name: "place", type: "vector(3)" },
  ],
};
const ODD = { name: "odd-name's", columns: [{ name: "two words", type: "int" }] };

let analysis: KqlAnalysis;

beforeAll(() => {
  loadLibrary();
  analysis = new KqlAnalysis();
  analysis.setTables(1, ["events", "odd-name's", "untold"]);
  analysis.addColumns(1, [EVENTS, ODD]);
});

/** Of a text with ^ where the cursor is. */
function complete(marked: string, isScript = false) {
  const at = marked.indexOf("^");
  return analysis.complete({ text: marked.replace("^", ""), schema: 1, isScript }, at);
}

const labels = (marked: string, kind: string) =>
  complete(marked)
    .options.filter((option) => option.kind === kind)
    .map(({ label }) => label);

/** The parts that are marked, with what is said of them. */
function marks(text: string, isScript = false): [string, number, string][] {
  return analysis
    .problems({ text, schema: 1, isScript })
    .map(({ from, to, message }) => [text.slice(from, to), from, message]);
}

describe("completion", () => {
  test("columns are those that the pipe has made", () => {
    const all = ["at", "body", "label", "n", "place", "props"];
    expect(labels("events | where ^", "column")).toEqual(all);
    expect(labels("events | extend twice = n * 2 | where ^", "column")).toEqual([...all, "twice"].toSorted());
    expect(labels("events | project label, m = n | where ^ | take 1", "column")).toEqual(["label", "m"]);
    expect(labels("events | summarize total = sum(n) by label | where t^", "column")).toEqual(["label", "total"]);
    expect(labels("let f = events | project n; f | where ^", "column")).toEqual(["n"]);
  });

  test("names that are no words are quoted as the language asks", () => {
    expect(complete("^").options.find(({ label }) => label === "odd-name's")?.before).toMatch(/^\["odd-name's"\]/);
    const [column] = complete("['odd-name\\'s'] | where ^").options;
    expect(column).toMatchObject({ label: "two words", before: "['two words']", after: "" });
  });

  test("a name is completed whose beginning is a word of the language", () => {
    analysis.setTables(2, ["t"]);
    analysis.addColumns(2, [{ name: "t", columns: [{ name: "inside", type: "long" }] }]);
    const found = analysis.complete({ text: "t | where in", schema: 2, isScript: false }, 12);
    expect(found).toMatchObject({ from: 10, to: 12 });
    expect(found.options.map(({ label }) => label)).toContain("inside");
    analysis.forget(2);
  });

  test("replaces the word at the cursor, in a script of several queries too", () => {
    expect(complete("events | where la^")).toMatchObject({ from: 15, to: 17 });
    const second = complete("events | count\n\nevents | where la^", true);
    expect([second.from, second.to]).toEqual([31, 33]);
    expect(second.options.map(({ label }) => label)).toContain("label");
  });

  test("functions open their brackets, operators have a space behind them", () => {
    const found = complete("events | where ^").options.find(({ label }) => label === "tolower");
    expect(found).toMatchObject({ kind: "function", before: "tolower(", after: ")", isContinued: true });
    const where = complete("events | ^").options.find(({ label }) => label === "where");
    expect(where).toMatchObject({ kind: "operator", before: "where ", isContinued: true });
    expect(complete("events | where ^").options.find(({ label }) => label === "n")).toMatchObject({
      before: "n",
      isContinued: false,
    });
  });

  test("what the server refuses is not offered", () => {
    const names = [
      ...complete("events | ^").options,
      ...complete("^").options,
      ...complete("events | where ^").options,
    ];
    const offered = new Set(names.map(({ label }) => label));
    for (const one of ["make-graph", "scan", "geo_angle", "cluster", "externaldata", "extent_id"]) {
      expect(offered).not.toContain(one);
    }
    for (const one of ["project-away", "mv-expand", "datatable", "strlen", "table"]) expect(offered).toContain(one);
    expect(labels("events | evaluate ^", "function")).toEqual(["bag_unpack", "narrow", "pivot"]);
  });

  test("nothing is offered in a text, in a comment or behind a command", () => {
    for (const text of ["events | where label == 'a^'", "// eve^", ".show ^"])
      expect(complete(text).options).toEqual([]);
  });
});

describe("completion in large tables", () => {
  const columns = Array.from({ length: 2_000 }, (_, i) => ({
    name: `column_${i}`,
    type: i % 2 === 0 ? "long" : "string",
  }));
  const WIDE = { name: "wide", columns: [...columns, { name: "two words", type: "int" }] };
  const OTHER = { name: "other", columns: [...columns.slice(0, 20), { name: "elsewhere", type: "int" }] };

  beforeAll(() => {
    analysis.setTables(3, ["wide", "other"]);
    analysis.addColumns(3, [WIDE, OTHER]);
  });

  const columnsOf = (text: string) => {
    const { options, typed, isWhole } = analysis.complete({ text, schema: 3, isScript: false }, text.length);
    return { typed, isWhole, names: options.filter(({ kind }) => kind === "column").map(({ label }) => label) };
  };

  test("columns that fit what is typed are offered, and all of them if it says so", () => {
    const some = columnsOf("wide | where column_5 == 1 and column_199");
    expect(some).toMatchObject({ typed: "column_199", isWhole: true });
    const expected = ["column_199", ...Array.from({ length: 10 }, (_, i) => `column_199${i}`)];
    expect(some.names).toEqual(expect.arrayContaining(expected));
    expect(some.names.length).toBeLessThan(200);
    expect(columnsOf("wide | where ").isWhole).toBe(false);
    expect(columnsOf("wide | where tw")).toMatchObject({ isWhole: true, names: ["two words"] });
    // Functions are narrowed like them, and those of the text are known.
    const functions = (text: string) =>
      analysis
        .complete({ text, schema: 3, isScript: false }, text.length)
        .options.filter(({ kind }) => kind === "function" || kind === "aggregate")
        .map(({ label }) => label);
    const found = functions("wide | extend x = toupper(column_1) | where strl");
    expect([found.includes("strlen"), found.length < 10]).toEqual([true, true]);
    expect(functions("wide | where ")).toContain("strlen");
    expect(columnsOf("wide | extend x = toupper(column_1) | where x == 'a' and x").names).toContain("x");
    expect(functions("wide | summarize n = dcount(column_1), ma")).toEqual(
      expect.arrayContaining(["max", "make_list"]),
    );
  });

  test.each([
    ["wide | extend twice = column_7 * 2 | where tw", ["twice"]],
    ["wide | project column_7, column_8 | where column_", ["column_7", "column_8"]],
    ["wide | project-away column_1* | where column_19", []],
    ["wide | project-rename other_7 = column_7 | where other", ["other_7"]],
    ["wide | summarize count() by column_1234 | where c", ["column_1234", "count_"]],
    ["wide | join kind=inner other on column_3 | where column_42", ["column_42"]],
    ["wide | join kind=inner other on column_3 | where column_1_", []],
    ["wide | join kind=inner other on column_3 | where column_121", ["column_121"]],
    ["wide | join kind=inner other on column_3 | where elsew", ["elsewhere"]],
    ["union wide, other | where elsew", ["elsewhere"]],
    ["wide | where ['two words'] > 1 | project ['two words'] | where two", ["two words"]],
  ])("%s: as in a table of few", (text, expected) => {
    const { names, typed = "" } = columnsOf(text);
    const fits = names.filter((name) => name.startsWith(typed));
    const meant = expected.length === 0 ? fits : fits.filter((name) => expected.includes(name));
    expect(meant.toSorted()).toEqual(expected.toSorted());
  });

  test("what is wrong is found among all of them", () => {
    expect(
      analysis.problems({ text: "wide | where column_1999 == 'a' and column_2000 == 1", schema: 3, isScript: false }),
    ).toMatchObject([
      { message: "The name 'column_2000' does not refer to any known column, table, variable or function." },
    ]);
  });
});

describe("marks", () => {
  test("syntax is an error; what does not fit the tables is a warning, and nothing where they are not known", () => {
    const severities = (text: string, schema: number) =>
      analysis.problems({ text, schema, isScript: false }).map(({ severity }) => severity);
    expect(severities("events | where n >", 1)).toEqual(["error"]);
    expect(severities("events | where nn > 1", 1)).toEqual(["warning"]);
    expect(severities("elsewhere | where nn > 1", UNKNOWN_TABLES)).toEqual([]);
    expect(severities("elsewhere | where nn >", UNKNOWN_TABLES)).toEqual(["error"]);
  });

  test.each([
    ["events | where nn > 1", "nn", 15],
    ["event | take 1", "event", 0],
    ["events | where n > | take 1", "", 18],
    ["events | wher n > 1", "wher", 9],
    ["events | where label == geo_angle(1, 2, 3, 4)", "geo_angle", 24],
    [".show tables", ".", 0],
  ])("%s", (text, part, from) => {
    const found = marks(text);
    expect(found.map(([marked, at]) => [marked, at])).toEqual([[part, from]]);
    expect(found[0]?.[2]).not.toBe("");
  });

  test("each query of a script is read alone; one that is one text is read whole", () => {
    const text = "events | take 1\n\nevents | where nn > 1\n\n// done";
    expect(marks(text, true).map(([part, at]) => [part, at])).toEqual([["nn", text.indexOf("nn")]]);
    expect(marks("let m = 1;\n\nevents | where n > m")).toEqual([]);
  });

  test("a table whose columns are not told yet has any", () => {
    expect(marks("untold | where anything > 1 | project other")).toEqual([]);
  });

  test("brackets in thousands are left to the server", () => {
    expect(marks(`print x = ${"(".repeat(5_000)}1${")".repeat(5_000)}`)).toEqual([]);
  });

  test("nothing that the server answers is marked", () => {
    const cases = new KqlAnalysis();
    cases.setTables(1, ["events"]);
    const columns = Object.entries({ at: "timestamp", label: "string", body: "string", props: "dynamic" });
    cases.addColumns(1, [{ name: "events", columns: columns.map(([name, type]) => ({ name, type })) }]);
    const answered = Object.values(CASE_FILES).flatMap((lists) =>
      lists.flatMap((list) => Object.values(list).flatMap((all) => all.filter((one) => "rows" in one))),
    );
    expect(answered.length).toBeGreaterThan(500);
    const marked = answered.flatMap(({ query }) => {
      const found = cases.problems({ text: query, schema: 1, isScript: false });
      return found.length === 0 ? [] : [`${query}\n${found.map(({ message }) => message).join("\n")}`];
    });
    expect(marked.join("\n\n")).toBe("");
  }, 240_000);
});

test("what a name means is said with its type", () => {
  const text = { text: "events | where n > 1 and tolower(label) == 'a'", schema: 1, isScript: false };
  expect(analysis.describe(text, 15)).toEqual({ from: 15, to: 16, text: "n: long" });
  expect(analysis.describe(text, 26)?.text).toContain("tolower(");
  expect(analysis.describe(text, 18)).toBeUndefined();
});

test.each([
  ["timestamp", "datetime"],
  ["vector(3)", "dynamic"],
  ["long", "long"],
  ["dynamic", "dynamic"],
  ["a type of later", undefined],
])("a column of type %s is %s", (type, expected) => {
  expect(kqlColumnType(type)).toBe(expected);
});

test("the names that are left out are those that the server refuses", () => {
  const reference = kqlReference();
  const refused = (kind: keyof typeof reference) =>
    reference[kind].flatMap((state) => ("refused" in state ? state.name.split(", ") : [])).toSorted();
  expect([...REFUSED_OPERATORS].toSorted()).toEqual(refused("operators"));
  expect([...REFUSED_FUNCTIONS].toSorted()).toEqual(refused("functions"));
  expect([...REFUSED_AGGREGATES].toSorted()).toEqual(refused("aggregates"));
  expect([...REFUSED_PLUGINS].toSorted()).toEqual(refused("plugins"));
});
