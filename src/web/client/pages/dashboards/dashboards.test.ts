import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { differences, exportedText, importedFile, type Panel, type Variable } from "./document.ts";
import { COLUMNS, freePlace, grown, overlap, placeAfterKey, placedAt, withRoom, type Placed } from "./layout.ts";
import { inlines, markdownBlocks, safeAddress } from "./markdown.ts";
import { autoInterval, bound, intervalText, parametersIn } from "./parameters.ts";
import { logLinesOf } from "./rows.ts";
import { boundsOf, momentOf, problemOf, rangeInWords, writtenMoment } from "./time-range.ts";
import { inOrderOfUse, problemOfVariable, readChosen, valueOf } from "./variables.ts";

const places = fc
  .record({
    x: fc.integer({ min: 0, max: 22 }),
    y: fc.nat(60),
    w: fc.integer({ min: 2, max: 24 }),
    h: fc.integer({ min: 2, max: 12 }),
  })
  .map(({ x, y, w, h }) => ({ x, y, w: Math.min(w, COLUMNS - x), h }));
const layouts = fc
  .array(places, { minLength: 1, maxLength: 12 })
  .map((all) => all.map((grid, i): Placed => ({ id: String(i), grid })));

const coverEachOther = (panels: readonly Placed[]) =>
  panels.some((a, i) => panels.slice(i + 1).some((b) => overlap(a.grid, b.grid)));

describe("the layout", () => {
  test("a panel that is moved is where it was put, no two cover each other, and their order stays", () => {
    fc.assert(
      fc.property(layouts, places, fc.nat(), (panels, to, which) => {
        const id = String(which % panels.length);
        const moved = placedAt(panels, id, to);
        expect(moved.find((panel) => panel.id === id)?.grid).toEqual(to);
        expect(moved.map((panel) => panel.id)).toEqual(panels.map((panel) => panel.id));
        expect(coverEachOther(moved)).toBe(false);
        expect(moved.every(({ grid }) => grid.x >= 0 && grid.x + grid.w <= COLUMNS)).toBe(true);
      }),
    );
  });

  test("panels that have room are left as they are", () => {
    fc.assert(
      fc.property(layouts, (panels) => {
        const once = withRoom(panels);
        expect(coverEachOther(once)).toBe(false);
        expect(withRoom(once)).toEqual(once);
      }),
    );
  });

  test("a new panel covers none, and comes into the first gap", () => {
    fc.assert(
      fc.property(layouts, (panels) => {
        const placed = withRoom(panels);
        const place = freePlace(placed, { w: 12, h: 8 });
        expect(placed.some(({ grid }) => overlap(grid, place))).toBe(false);
      }),
    );
    const left = [{ id: "a", grid: { x: 0, y: 0, w: 12, h: 8 } }];
    expect(freePlace(left, { w: 12, h: 8 })).toEqual({ x: 12, y: 0, w: 12, h: 8 });
    expect(freePlace(left, { w: 13, h: 8 })).toEqual({ x: 0, y: 8, w: 13, h: 8 });
  });

  test("keys move and resize within the grid", () => {
    const place = { x: 22, y: 0, w: 2, h: 2 };
    expect(placeAfterKey(place, "ArrowRight", false)).toEqual(place);
    expect(placeAfterKey(place, "ArrowLeft", false)).toEqual({ ...place, x: 21 });
    expect(placeAfterKey(place, "ArrowUp", false)).toEqual(place);
    expect(placeAfterKey(place, "ArrowDown", true)).toEqual({ ...place, h: 3 });
    expect(placeAfterKey(place, "ArrowRight", true)).toEqual(place);
    expect(placeAfterKey(place, "a", false)).toBeUndefined();
    expect(grown({ x: 20, y: 0, w: 2, h: 2 }, 50, 2_000)).toEqual({ x: 20, y: 0, w: 4, h: 1_000 });
  });
});

describe("parameters", () => {
  test.each([
    ["SELECT * FROM t WHERE at >= $from AND a = $Region", ["from", "region"]],
    ["SELECT '$no', \"$no\", 'it''s $no', e'\\'$no' -- $no\n, $kept", ["kept"]],
    ["SELECT /* $no /* $no */ $no */ $kept, $$ $no $$, $tag$ $no $no$ $tag$", ["kept"]],
    ["SELECT a$no, $1, ?, 1$no, $", []],
    ["SELECT 'open $no", []],
    ["SELECT '\\' || $kept || '$no'", ["kept"]],
  ])("of %j", (text, names) => {
    expect([...parametersIn(text)].toSorted()).toEqual(names);
  });

  test("any text is read to its end", () => {
    const parts = fc.constantFrom("'", '"', "--", "/*", "*/", "\n", "$", "$$", "$a", "e'", "\\", "a", " ", "é", "🙂");
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 60 }), (all) => {
        expect([...parametersIn(all.join(""))].every((name) => /^[a-z_]\w*$/.test(name))).toBe(true);
      }),
    );
  });

  const all = new Map([
    ["from", { value: "2026-01-01T00:00:00Z" }],
    ["region", { value: ["eu", "' OR 1=1 --"] }],
    ["late", { waitsFor: "Late" }],
    ["bad", { problem: "it failed" }],
  ]);

  test("only those that are named are sent, beside the text", () => {
    expect(bound({ language: "sql", text: "SELECT $REGION, $other" }, all)).toEqual({
      kind: "ready",
      params: { region: ["eu", "' OR 1=1 --"] },
    });
    expect(bound({ language: "sql", text: "SELECT $late, $from" }, all)).toEqual({ kind: "waiting", for: ["Late"] });
    expect(bound({ language: "sql", text: "SELECT $bad" }, all)).toEqual({ kind: "refused", problem: "it failed" });
  });

  test("KQL that names one is told so, and never gets it as text", () => {
    const kql = (text: string) => bound({ language: "kql", text }, all).kind;
    expect(kql("t | where at > $from")).toBe("refused");
    expect(kql("t | join (u) on $left.a == $right.a | where b == '$from' // $from")).toBe("ready");
    expect(kql('t | where a == @"c:\\" and b == "$from"')).toBe("ready");
  });

  test("intervals are text that SQL casts", () => {
    expect([intervalText("5m", 0), intervalText("250ms", 0), intervalText("1w", 0)]).toEqual([
      "5 minutes",
      "250 milliseconds",
      "1 weeks",
    ]);
    expect(intervalText("auto", 6 * 3_600_000)).toBe("5 minutes");
    expect(intervalText("1m'; DROP", 0)).toBe("1m'; DROP");
    expect([autoInterval(0), autoInterval(1e15)]).toEqual(["1s", "30d"]);
  });
});

describe("variables", () => {
  const list: Variable = { name: "region", type: "list", values: ["eu", "us"] };

  test("the address comes first, then the default, then the first value", () => {
    const options = { values: list.type === "list" ? list.values : [] };
    expect(valueOf(list, {}, options)).toBe("eu");
    expect(valueOf({ ...list, default: "us" }, {}, options)).toBe("us");
    expect(valueOf({ ...list, default: "us" }, { region: "mars" }, options)).toBe("mars");
    expect(valueOf({ ...list, multi: true }, { region: "us" }, options)).toEqual(["us"]);
    expect(valueOf({ ...list, multi: true }, { region: [] }, options)).toEqual([]);
    expect(valueOf(list, { region: ["us", "eu"] }, options)).toBe("us");
    expect(valueOf(list, {}, { isWaiting: true })).toBeUndefined();
  });

  test("what an address brings is texts, or nothing", () => {
    expect(readChosen('{"a":"b","c":["d"],"e":1,"f":[1],"g":{"h":1}}')).toEqual({ a: "b", c: ["d"] });
    for (const text of ["", "[]", "null", "1", "{", '"a"']) expect(readChosen(text)).toEqual({});
  });

  test("a query comes after those that it names, and a circle is found", () => {
    const query = (name: string, text: string): Variable => ({
      name,
      type: "query",
      query: { language: "sql", text, database: "default" },
    });
    const [city, land, a, b, own] = [
      query("city", "SELECT c FROM t WHERE l = $Land AND r = $region"),
      query("land", "SELECT 1"),
      query("a", "SELECT $b"),
      query("b", "SELECT $a"),
      query("own", "SELECT $own"),
    ];
    const { ordered, circular } = inOrderOfUse([city, land, list, a, b, own]);
    expect(ordered.map(({ name }) => name)).toEqual(["land", "region", "city", "b", "a", "own"]);
    expect([...circular].map(({ name }) => name)).toEqual(["a", "b", "own"]);
  });

  test("what the server would refuse is said before", () => {
    expect(problemOfVariable(list, ["region"])).toBeUndefined();
    expect(problemOfVariable(list, ["region", "Region"])).toContain("this name");
    expect(problemOfVariable({ ...list, name: "to" }, ["to"])).toContain("time range");
    expect(problemOfVariable({ ...list, name: "a b" }, ["a b"])).toContain("letters");
    expect(problemOfVariable({ name: "i", type: "interval", values: ["1x"] }, ["i"])).toContain("1x");
  });
});

describe("time ranges", () => {
  const now = Date.parse("2026-03-31T14:35:20.500Z");
  const at = (text: string, end: "from" | "to" = "from") => {
    const ms = momentOf(text, now, end);
    return ms === undefined ? undefined : new Date(ms).toISOString();
  };

  test.each([
    ["now", "2026-03-31T14:35:20.500Z"],
    ["now-90m", "2026-03-31T13:05:20.500Z"],
    ["now+1h", "2026-03-31T15:35:20.500Z"],
    ["now-1M", "2026-02-28T14:35:20.500Z"],
    ["now-1y/y", "2025-01-01T00:00:00.000Z"],
    ["now-1950y", "0076-03-31T14:35:20.500Z"],
    ["now/w", "2026-03-30T00:00:00.000Z"],
    ["now-1d/d", "2026-03-30T00:00:00.000Z"],
    ["2026-03-31T14:35:20.123456789+02:00", "2026-03-31T12:35:20.123Z"],
    ["now-999999999y", undefined],
    ["yesterday", undefined],
    ["now-6", undefined],
    ["2026-13-01T00:00:00Z", undefined],
    ["2026-02-28T00:00:00Z", "2026-02-28T00:00:00.000Z"],
    ["2026-02-30T00:00:00Z", undefined],
    ["2025-02-29T00:00:00Z", undefined],
  ])("%s", (text, expected) => {
    expect(at(text)).toBe(expected);
  });

  test("a rounded end is the end", () => {
    expect(at("now/d", "to")).toBe("2026-03-31T23:59:59.999Z");
    expect(at("now-1M/M", "to")).toBe("2026-02-28T23:59:59.999Z");
  });

  test("absolute ends go to queries with all their digits", () => {
    const from = "2026-03-31T14:35:20.123456789Z";
    expect(boundsOf({ from, to: "now" }, now)).toMatchObject({ from, to: "2026-03-31T14:35:20.500Z" });
    expect(boundsOf({ from: "now", to: "now-1h" }, now)).toBeUndefined();
  });

  test("what is typed is completed, and a mistake is named at its end", () => {
    expect(writtenMoment(" 2026-05-01 ")).toBe("2026-05-01T00:00:00Z");
    expect(writtenMoment("2026-05-01 12:30")).toBe("2026-05-01T12:30:00Z");
    expect(writtenMoment("2026-05-01T12:30:01.5+02:00")).toBe("2026-05-01T12:30:01.5+02:00");
    expect(Object.keys(problemOf({ from: "soon", to: "now" }, now) ?? {})).toEqual(["from"]);
    expect(Object.keys(problemOf({ from: "now", to: "now-1h" }, now) ?? {})).toEqual(["to"]);
    expect(problemOf({ from: "now-1h", to: "now" }, now)).toBeUndefined();
  });

  test("in words", () => {
    expect(rangeInWords({ from: "now-6h", to: "now" })).toBe("Last 6 hours");
    expect(rangeInWords({ from: "now-1d/d", to: "now-1d/d" })).toBe("Yesterday");
    expect(rangeInWords({ from: "now/w", to: "now/w" })).toBe("This week");
    expect(rangeInWords({ from: "2026-05-01T00:00:00Z", to: "now" })).toBe("2026-05-01 00:00 UTC to now");
  });
});

describe("lines of a log", () => {
  const line = (row: Readonly<Record<string, string>>) => {
    const columns = Object.keys(row).map((name) => ({ name, type: "string", kind: "text" as const }));
    const texts = Object.values(row).map((text) => [text]);
    const [first] = logLinesOf({ columns, count: 1, numbers: texts.map(() => [null]), texts, isTruncated: false }, 1);
    return { level: first?.level, message: first?.message, fields: first?.fields };
  };

  test.each([
    [
      { host: "a", Severity: "warn", line: "b" },
      { level: "warn", message: "b", fields: [["host", "a"]] },
    ],
    [
      { event: "a", loglevel: "info", msg: "b" },
      { level: "info", message: "b", fields: [["event", "a"]] },
    ],
    [
      { status: "500", path: "/", event: "a" },
      { level: "500", message: "a", fields: [["path", "/"]] },
    ],
    [
      { lvl: "error", host: "a", path: "/" },
      { level: "error", message: "a", fields: [["path", "/"]] },
    ],
    [{ host: "a" }, { level: "", message: "a", fields: [] }],
  ])("%j", (row, expected) => {
    expect(line(row)).toEqual(expected);
  });
});

describe("Markdown", () => {
  test("becomes nodes", () => {
    const text =
      "# Title\n\nSome **bold** and *soft* `code`,\n[a link](https://example.com/a).\n\n- one\n- two\n  1. deep\n\n```\n<b>\n```\n> said\n\n---";
    expect(markdownBlocks(text).map(({ kind }) => kind)).toEqual([
      "heading",
      "paragraph",
      "list",
      "code",
      "quote",
      "rule",
    ]);
    expect(inlines("**a _b_**")).toEqual([
      {
        kind: "strong",
        parts: [
          { kind: "text", text: "a " },
          { kind: "emphasis", parts: [{ kind: "text", text: "b" }] },
        ],
      },
    ]);
    expect(inlines("snake_case_name 2 * 3 \\*")).toEqual([{ kind: "text", text: "snake_case_name 2 * 3 *" }]);
  });

  test.each([
    "javascript:alert(1)",
    " JaVaScRiPt:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,<script>",
    "//example.com",
    "/ui/",
    "file:///etc/passwd",
    "http:example.com",
    "vbscript:x",
    "",
  ])("leads nowhere for %j", (address) => {
    expect(safeAddress(address)).toBeUndefined();
    expect(JSON.stringify(markdownBlocks(`[a](${address})`))).not.toContain('"link"');
  });

  test("images are links, and tags are text", () => {
    expect(inlines("![logo](https://example.com/a.png)")).toEqual([
      { kind: "link", href: "https://example.com/a.png", parts: [{ kind: "text", text: "logo" }] },
    ]);
    expect(inlines("<img src=x onerror=alert(1)>")).toEqual([{ kind: "text", text: "<img src=x onerror=alert(1)>" }]);
  });

  test("hostile texts take no time", () => {
    for (const part of ["[", "*", "_", "`", "**a ", "> ", "- ", "![", "](", "*a**b", "`a``b", "# ", "[a](b "]) {
      expect(markdownBlocks(part.repeat(20_000)).length).toBeGreaterThan(0);
    }
  }, 20_000);

  test("any text has a tree", () => {
    const parts = fc.constantFrom(
      "#",
      "*",
      "_",
      "`",
      "[",
      "](",
      ")",
      "\n",
      "> ",
      "- ",
      "1. ",
      "```",
      "a",
      " ",
      "  \n",
      "!",
    );
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 80 }), (all) => {
        expect(Array.isArray(markdownBlocks(all.join("")))).toBe(true);
      }),
    );
  });
});

describe("documents", () => {
  const panel = (id: string, more: Partial<Panel> = {}): Panel => ({
    id,
    title: id,
    type: "stat",
    grid: { x: 0, y: 0, w: 6, h: 4 },
    queries: [],
    options: {},
    ...more,
  });
  const content = {
    name: "Orders",
    description: null,
    panels: [panel("a"), panel("b")],
    settings: { variables: [], time: null, refresh_secs: null },
  };

  test("differences are told part by part", () => {
    expect(differences(content, content)).toEqual([]);
    const after = {
      ...content,
      name: "Sales",
      panels: [panel("a", { grid: { x: 1, y: 0, w: 6, h: 4 } }), panel("c", { type: "my-gauge", title: "" })],
    };
    expect(differences(content, after)).toEqual([
      "The name is “Sales” instead of “Orders”.",
      "The panel “a” has another place or size.",
      "The panel “my-gauge” was added.",
      "The panel “b” was deleted.",
    ]);
  });

  test("a file that was exported is imported as it was, and server's fields are left out", () => {
    const file = importedFile(exportedText({ ...content, id: "0195d1a2-7b1c-7c3e-9f2a-1d2b3c4d5e6f" }));
    expect(file).toEqual({ id: "0195d1a2-7b1c-7c3e-9f2a-1d2b3c4d5e6f", name: "Orders", content });
    expect(importedFile('{"name":"a","version":3,"other":1}').content).toEqual({ name: "a", other: 1 });
    for (const text of ["", "[]", "null", "{", "3"]) expect(() => importedFile(text)).toThrow("The file");
  });
});
