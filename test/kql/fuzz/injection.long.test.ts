import { beforeAll, describe, expect, test } from "vitest";
import { drawnSeed } from "../../../src/core/drawn-seed.test-kit.ts";
import { seededRandom, type Random } from "../../../src/core/random.ts";
import { Checker } from "./checked.test-kit.ts";
import { below, pick } from "./mutate.test-kit.ts";
import { TABLES } from "./tables.test-kit.ts";

/**
 * A text of the user's is data, wherever it stands: the SQL for a hostile one is, as DuckDB's own parser reads it, the
 * same tree as for a harmless one in its place, but for constants and names.
 */

/** A string of the language that means this text, in one of its ways of writing. */
function literalOf(text: string, random: Random): string {
  const escaped = (quote: string): string =>
    `${quote}${text
      .replaceAll("\\", "\\\\")
      .replaceAll(quote, `\\${quote}`)
      .replaceAll("\n", "\\n")
      .replaceAll("\r", "\\r")
      .replaceAll("\0", "\\0")}${quote}`;
  const ways = [escaped('"'), escaped("'")];
  if (!/[\n\r\0]/.test(text)) ways.push(`@"${text.replaceAll('"', '""')}"`, `h@'${text.replaceAll("'", "''")}'`);
  return pick(ways, random);
}

/** Where texts stand: `@` is the place of a string, `#` that of a name in brackets. */
const PLACES: readonly string[] = [
  "T | where label == @",
  "T | where label != @ and n > 1",
  "T | where label =~ @ or label !~ @",
  "T | where label in (@, 'b')",
  "T | where label !in~ (@, 'b')",
  "T | where label has @",
  "T | where label !contains @",
  "T | where label startswith_cs @",
  "T | where label hassuffix @",
  "T | where label has_any (@, 'b')",
  "T | extend x = strcat(@, label, @)",
  "T | extend x = iff(label == @, @, 'c')",
  "print x = dynamic([@, {@: @}])",
  "datatable(a: string)[@, 'b']",
  "let s = @; T | where label == s",
  "let f = (s: string) { T | where label == s }; f(@)",
  "T | summarize count() by x = strcat(label, @)",
  "T | sort by strcat(label, @)",
  "T | project # = n",
  "T | extend # = n | where # > 1",
  "T | project-rename # = n | sort by # asc",
  "T | summarize # = count() by label",
  "T | summarize count() by # = label",
  "T | distinct # = label",
  "let # = 5; T | where n > #",
  "let # = T | take 1; #",
  "datatable(#: long)[1] | project #",
  "print # = 1",
  "range # from 1 to 5 step 1 | extend # = # + 1",
  "T | as # | count",
  "T | render timechart with (title=@)",
];

/** Where a text is itself read while translating, as a pattern or a value: its signs may change the tree. */
const READ_PLACES: readonly string[] = [
  "T | where label matches regex @",
  "T | extend x = props.a[@].b",
  "T | extend x = props[@]",
  "T | extend x = replace_string(label, @, @)",
  "T | extend x = split(label, @)",
  "T | extend x = trim(@, label)",
  "T | extend x = extract(@, 0, label)",
  "T | extend x = indexof(label, @)",
  "T | extend x = format_datetime(at, @)",
  "T | extend x = bag_pack(@, n)",
  "T | extend x = parse_json(@)",
  "T | extend x = todatetime(@)",
  "T | extend x = array_index_of(props, @)",
  "T | extend x = extract_json(@, label)",
  "T | parse label with @ a: string @ b: long",
  "T | parse label with * 'a' # ",
  "T | parse-kv label as (#: string) with (pair_delimiter=@, kv_delimiter='=')",
  "T | summarize make_set_if(label, label == @)",
  "T | summarize x = take_any(#) by label",
  "union withsource=# T, U",
  "T | join kind=inner (U | project-rename # = k) on label | project #",
  "T | mv-expand # = props",
  "T | top-nested 2 of # = label by # = count()",
  "search in (T) @",
  "find in (T) where label == @ project label",
  "T | evaluate bag_unpack(props, @)",
];

/** Every hostile text has it. */
const MARK = "zq9x";

const SIGNS: readonly string[] = [
  ..."' '' \" \"\" \\ \\' \\\" ; -- /* */ $$ $1 ? :x @ ` ~ % _ ( ) [ ] { } ] ') \") ']) \"] # // \u0000 \n \r \u2028 \ufeff".split(
    " ",
  ),
  "E'",
  "U&'\\0027",
  "$tag$",
  "'; DROP TABLE T; --",
  "' OR 1=1 --",
  "' UNION SELECT 1 --",
  '" FROM T; --',
  "\\' || 'x",
  "\u{1f600}",
  "ʼ＇’",
  "\u00a0",
  " ",
  "kql_has(1)",
  "let~1",
  "label~1",
  "NULL",
  "{0}",
  "\\1",
  "\\k<x>",
  "(?i)",
];

function hostile(random: Random): string {
  const parts = Array.from({ length: 1 + below(4, random) }, () => pick(SIGNS, random));
  return `${MARK}${parts.join(pick(["", "b", " "], random))}`;
}

/** The tree without constants, names and places in the text. */
function shapeOf(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(shapeOf);
  if (typeof node === "string" && node.includes("~")) return "name";
  if (typeof node !== "object" || node === null) return node;
  const own = Object.entries(node).filter(([key]) => key !== "query_location");
  return Object.fromEntries(
    own.map(([key, value]) => {
      if (key === "alias") return [key, ""];
      if (key === "column_names" && Array.isArray(value)) return [key, value.length];
      return key === "value" && isConstant(node) ? [key, "constant"] : [key, shapeOf(value)];
    }),
  );
}

function isConstant(node: object): boolean {
  return "type" in node && "is_null" in node;
}

let checker: Checker;

beforeAll(async () => {
  checker = await Checker.open(TABLES);
});

/** The tree of the SQL; undefined where the text is refused. */
async function treeOf(
  place: string,
  text: string,
  random: Random,
): Promise<{ tree: unknown; sql: string } | undefined> {
  const query = place.replaceAll(/[@#]/g, (sign) =>
    sign === "@" ? literalOf(text, random) : `[${literalOf(text, random)}]`,
  );
  const checked = await checker.check(query);
  if (checked.kind === "refused") return undefined;
  expect({ query, kind: checked.kind }).toEqual({ query, kind: "translated" });
  const { sql } = checked as { sql: string };
  const { error, statements } = (await checker.treeOf(sql)) as { error: boolean; statements?: unknown[] };
  expect({ query, error, statements: statements?.length }).toEqual({ query, error: false, statements: 1 });
  return { tree: statements?.[0], sql };
}

/** Wherever the tree has the mark: the keys that lead there. */
function markedIn(node: unknown, path: readonly string[] = []): string[][] {
  if (typeof node === "string") return node.includes(MARK) ? [[...path]] : [];
  if (Array.isArray(node)) return node.flatMap((one) => markedIn(one, path));
  if (typeof node !== "object" || node === null) return [];
  return Object.entries(node).flatMap(([key, value]) => {
    const own = key.includes(MARK) ? [[...path, key, "key"]] : [];
    return own.concat(markedIn(value, [...path, key]));
  });
}

const DATA: ReadonlySet<string> = new Set(["alias", "column_names", "column_name_alias", "value", "key", "lambda"]);

describe("a hostile text leaves the SQL as it is, but for constants and names", () => {
  const seed = drawnSeed();

  test.each(PLACES)("%s", async (place) => {
    const random = seededRandom(seed);
    let translated = 0;
    for (let i = 0; i < 25; i++) {
      const text = hostile(random);
      // A NUL is written as chr(0), wherever it stands.
      const harmless = await treeOf(place, text.replaceAll(/[^\0]+/g, "zqx"), random);
      const found = await treeOf(place, text, random);
      expect(found === undefined, `${place} with ${JSON.stringify(text)}`).toBe(harmless === undefined);
      if (found === undefined || harmless === undefined) continue;
      translated++;
      const shape = JSON.stringify(shapeOf(found.tree));
      expect(shape, `${place} with ${JSON.stringify(text)}: ${found.sql}`).toBe(JSON.stringify(shapeOf(harmless.tree)));
    }
    // A name may not hold NUL: that alone is refused.
    expect(translated).toBeGreaterThan(10);
  });

  test.each(READ_PLACES)("%s", async (place) => {
    const random = seededRandom(seed);
    for (let i = 0; i < 25; i++) {
      const found = await treeOf(place, hostile(random), random);
      for (const path of markedIn(found?.tree)) expect(DATA, `${path.join(".")}: ${found?.sql}`).toContain(path.at(-1));
    }
  });
});
