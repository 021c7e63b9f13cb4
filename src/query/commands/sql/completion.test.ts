import { describe, expect, test } from "vitest";
import { complete } from "./completion.ts";

const TREE = [
  {
    name: "default",
    tables: [
      {
        name: "requests",
        columns: ["at", "path", "Status", "my col", "group", "evil\u202e"].map((name) => ({ name, type: "string" })),
        clusterBy: [],
      },
      { name: "reports", columns: [{ name: "title", type: "string" }], clusterBy: [] },
    ],
  },
  { name: "logs", tables: [{ name: "lines", columns: [], clusterBy: [] }] },
];

const of = (text: string, before = "", database = "default") => complete(text, { before, tree: TREE, database });

describe("the last word is completed", () => {
  test.for([
    ["sel", ["select"], "sel"],
    ["SEL", ["SELECT"], "SEL"],
    ["SELECT * FROM re", ["requests", "reports"], "re"],
    ["select * from REP", ["reports"], "REP"],
    ["SELECT * FROM ", ["requests", "reports"], ""],
    ["SELECT * FROM requests JOIN rep", ["reports"], "rep"],
    ["SELECT * FROM requests WHERE pa", ["path", "partition"], "pa"],
    ["SELECT * FROM requests WHERE st", ["Status"], "st"],
    ['SELECT * FROM requests WHERE "my', ['"my col"'], '"my'],
    ["SELECT * FROM requests WHERE m", ['"my col"'], "m"],
    ["SELECT * FROM requests WHERE gr", ['"group"', "group"], "gr"],
    ["SELECT requests.pa", ["path"], "pa"],
    ["SELECT * FROM requests AS r WHERE r.", ["at", "path", "Status", '"my col"', '"group"'], ""],
    ["SELECT * FROM requests r JOIN reports s ON s.ti", ["title"], "ti"],
    ["SELECT * FROM logs.", ["lines"], ""],
    ["SELECT nothing.", [], ""],
    ["SELECT evi", [], "evi"],
    ["", ["requests", "reports"], ""],
  ] as const)("%j", ([text, found, word]) => {
    expect(of(text)).toEqual([found, word]);
  });

  test("with what stands on the lines above", () => {
    expect(of("ti", "SELECT * FROM reports\nWHERE")).toEqual([["title"], "ti"]);
    expect(of("re", "SELECT *\nFROM")).toEqual([["requests", "reports"], "re"]);
    expect(of("li", "", "LOGS")).toEqual([["lines", "like", "limit"], "li"]);
  });
});

test("commands, and what they take", () => {
  expect(of("\\ti")).toEqual([["\\timing"], "\\ti"]);
  expect(of("\\")[0]).toContain("\\d");
  expect(of("\\d re")).toEqual([["requests", "reports"], "re"]);
  expect(of("\\c l")).toEqual([["logs"], "l"]);
  expect(of("\\timing o")).toEqual([[], "o"]);
  // Within a statement it is none.
  expect(of("\\d re", "SELECT")[0]).toEqual(["requests", "reports", "recursive"]);
});
