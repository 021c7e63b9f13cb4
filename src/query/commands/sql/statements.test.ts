import { expect, test } from "vitest";
import { inPlace, splitStatements } from "./statements.ts";

const textsOf = (text: string) => {
  const { statements, rest } = splitStatements(text);
  return [statements.map((statement) => statement.text), rest?.text];
};

test.for([
  ["", [], undefined],
  [";;; ;", [], undefined],
  ["-- only; a comment", [], undefined],
  ["SELECT 1", [], "SELECT 1"],
  ["SELECT 1;", ["SELECT 1"], undefined],
  [" SELECT 1 ; SELECT 2 ", ["SELECT 1"], "SELECT 2"],
  [
    "SELECT ';', \";\", $$;$$, $a$;$$;$a$, E'\\';'; SELECT 2;",
    ["SELECT ';', \";\", $$;$$, $a$;$$;$a$, E'\\';'", "SELECT 2"],
    undefined,
  ],
  ["SELECT 1 -- ;\n; /* ; /* ; */ ; */ SELECT 2", ["SELECT 1 -- ;"], "SELECT 2"],
  ["SELECT 'open; SELECT 2;", [], "SELECT 'open; SELECT 2;"],
  ["SELECT 1; /* open ; SELECT 2;", ["SELECT 1"], undefined],
] as const)("%j", ([text, statements, rest]) => {
  expect(textsOf(text)).toEqual([statements, rest]);
});

test("a statement keeps its line and column", () => {
  const text = "SELECT 1;\r\n\n  SELECT\n 2; SELECT 3";
  const { statements, rest } = splitStatements(text);
  const sent = [...statements, ...(rest === undefined ? [] : [rest])].map((statement) => inPlace(text, statement));
  expect(sent).toEqual(["SELECT 1", "\n\n  SELECT\n 2", "\n\n\n    SELECT 3"]);
});
