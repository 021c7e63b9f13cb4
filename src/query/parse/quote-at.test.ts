import { describe, expect, test } from "vitest";
import { quoteAt } from "./quote-at.ts";

describe("quoteAt", () => {
  test.each([
    ["SELECT at FROM t", 'SELECT "at" FROM t'],
    ["select AT, At from t", 'select "AT", "At" from t'],
    ["SELECT t.at FROM t", 'SELECT t."at" FROM t'],
    ["SELECT max(at)::date, at+1,at-1", 'SELECT max("at")::date, "at"+1,"at"-1'],
    ["SELECT at AT TIME ZONE 'UTC'", "SELECT \"at\" AT TIME ZONE 'UTC'"],
    ["SELECT at at /* c */ time -- x\n zone 'UTC'", "SELECT \"at\" at /* c */ time -- x\n zone 'UTC'"],
    ["FROM t AT (VERSION => 3)", "FROM t AT (VERSION => 3)"],
    ["FROM t at(timestamp=>now())", "FROM t at(timestamp=>now())"],
    ["SELECT count(*) FILTER (WHERE at (version))", 'SELECT count(*) FILTER (WHERE "at" (version))'],
    ["SELECT at time", 'SELECT "at" time'],
    ["SELECT 'at', 'it''s at', \"at\", \"a\"\"at\"", "SELECT 'at', 'it''s at', \"at\", \"a\"\"at\""],
    ["SELECT E'\\' at', e'\\\\', at", "SELECT E'\\' at', e'\\\\', \"at\""],
    ["SELECT $$ at $$, $x$ at $$ at $x$, at", 'SELECT $$ at $$, $x$ at $$ at $x$, "at"'],
    ["-- at\nSELECT at", '-- at\nSELECT "at"'],
    ["/* at /* at */ at */ SELECT at", '/* at /* at */ at */ SELECT "at"'],
    ["SELECT _at, at_, at1, ätat, at$", "SELECT _at, at_, at1, ätat, at$"],
    ["SELECT 1at", 'SELECT 1"at"'],
    ["SELECT at\u00a0FROM\u2003t", 'SELECT "at" FROM t'],
    ["SELECT 'at", "SELECT 'at"],
    ["SELECT /* at", "SELECT /* at"],
    ["at", '"at"'],
    ["", ""],
  ])("%s", (text, quoted) => {
    expect(quoteAt(text).text).toBe(quoted);
  });

  test("positions map back over inserted quotes, lines and characters of several bytes", () => {
    const text = "SELECT at, '😀ü', at\r\nFROM ä WHERE at > nosuch";
    const quoted = quoteAt(text);
    const offset = Buffer.byteLength(quoted.text.slice(0, quoted.text.indexOf("nosuch")));
    expect(quoted.place(offset)).toEqual({ line: 2, column: 19 });
    const second = Buffer.byteLength(quoted.text.slice(0, quoted.text.lastIndexOf(', "at"') + 2));
    expect(quoted.place(second)).toEqual({ line: 1, column: 18 });
    expect(quoted.place(0)).toEqual({ line: 1, column: 1 });
    expect(quoted.place(10_000)).toEqual({ line: 2, column: 25 });
  });
});
