import * as fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { changedDocument, databasesOf, documentOf, newDashboard } from "./document.ts";

let ids = 0;
const newId = () => `id-${++ids}`;

const grid = { x: 0, y: 0, w: 12, h: 6 };
const panel = { type: "bar", grid };
const query = { language: "sql", text: "SELECT 1" };
const withPanel = (more: object) => ({ name: "d", panels: [{ ...panel, ...more }] });
const withSettings = (settings: object) => ({ name: "d", settings });
const withVariable = (more: object) => withSettings({ variables: [{ name: "v", type: "text", ...more }] });

const NUL = String.fromCharCode(0);
const LONE = String.fromCharCode(0xd800);

/** The place and what is said of it, of what is refused. */
function refusalOf(content: unknown): string {
  const { error } = newDashboard.safeParse(content);
  const issue = error?.issues[0];
  return issue === undefined ? "accepted" : `${issue.path.map(String).join(".")}: ${issue.message}`;
}

describe("a dashboard", () => {
  it("of a name alone has everything by default", () => {
    const content = newDashboard.parse({ name: "d" });
    const settings = { variables: [], time: null, refresh_secs: null };
    expect(documentOf(content, newId)).toEqual({ name: "d", description: null, panels: [], settings });
  });

  it("keeps types and options that nobody knows, and ids; a panel without one gets one", () => {
    const options = { deep: [{ a: [1, "x", null, -0.5e-7] }], "": true, é: "\n" };
    const panels = [
      { ...panel, type: "my plug-in/v2", options, id: "cpu" },
      { ...panel, title: "b" },
    ];
    const document = documentOf(newDashboard.parse({ name: "d", panels }), () => "made");
    expect(document.panels).toEqual([
      { id: "cpu", title: "", type: "my plug-in/v2", grid, queries: [], options },
      { id: "made", title: "b", type: "bar", grid, queries: [], options: {} },
    ]);
  });

  it("takes variables of every type, and times", () => {
    const variables = [
      { name: "host", label: "Host", type: "query", query: { ...query, database: "Ops" }, multi: true, default: ["a"] },
      { name: "env", type: "list", values: ["prod", "test"], default: "prod" },
      { name: "needle", type: "text", default: "" },
      { name: "step", type: "interval", values: ["auto", "30s", "5m", "1d"], default: "auto" },
    ];
    for (const [from, to] of [
      ["now-6h", "now"],
      ["now-1d/d", "now/d"],
      ["now-1M/M", "now+5m"],
      ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00+02:00"],
      ["2026-01-01T00:00:00Z", "now"],
    ]) {
      const settings = { variables, time: { from, to }, refresh_secs: 5 };
      const document = documentOf(newDashboard.parse(withSettings(settings)), newId);
      expect(document.settings).toEqual(settings);
      expect(databasesOf(document)).toEqual(["ops"]);
    }
  });

  it.each([
    [[], /^: /],
    [{}, /^name: /],
    [{ name: "" }, /^name: /],
    [{ name: `a${NUL}` }, /^name: /],
    [{ name: "x".repeat(201) }, /^name: /],
    [{ name: "d", titel: "x" }, /"titel"/],
    [{ name: "d", description: `a${NUL}b` }, /^description: .*NUL/],
    [{ name: "d", description: LONE }, /^description: .*Unicode/],
    [{ name: "d", id: "1" }, /^id: is no UUID/],
    [{ name: "d", panels: Array.from({ length: 101 }, () => panel) }, /^panels: .*100/],
    [withPanel({ querys: [] }), /^panels\.0: .*"querys"/],
    [withPanel({ id: "" }), /^panels\.0\.id: /],
    [withPanel({ id: "a\nb" }), /^panels\.0\.id: /],
    [withPanel({ type: "x".repeat(101) }), /^panels\.0\.type: /],
    [withPanel({ type: 7 }), /^panels\.0\.type: /],
    [withPanel({ title: NUL }), /^panels\.0\.title: /],
    [withPanel({ grid: undefined }), /^panels\.0\.grid: /],
    [withPanel({ grid: { ...grid, x: 13 } }), /^panels\.0\.grid: .*24 columns/],
    [withPanel({ grid: { ...grid, x: -1 } }), /^panels\.0\.grid\.x: /],
    [withPanel({ grid: { ...grid, w: 0 } }), /^panels\.0\.grid\.w: /],
    [withPanel({ grid: { ...grid, y: 0.5 } }), /^panels\.0\.grid\.y: /],
    [withPanel({ grid: { ...grid, z: 1 } }), /^panels\.0\.grid: .*"z"/],
    [withPanel({ queries: Array.from({ length: 5 }, () => query) }), /^panels\.0\.queries: .*4/],
    [withPanel({ queries: [{ ...query, text: "" }] }), /^panels\.0\.queries\.0\.text: /],
    [withPanel({ queries: [{ ...query, text: `a${NUL}` }] }), /^panels\.0\.queries\.0\.text: /],
    [withPanel({ queries: [{ ...query, language: "promql" }] }), /^panels\.0\.queries\.0\.language: /],
    [withPanel({ queries: [{ ...query, database: "_own" }] }), /^panels\.0\.queries\.0\.database: /],
    [withPanel({ queries: [{ ...query, database: "system" }] }), /^panels\.0\.queries\.0\.database: /],
    [withPanel({ queries: [{ ...query, databse: "a" }] }), /^panels\.0\.queries\.0: .*"databse"/],
    [withPanel({ options: [] }), /^panels\.0\.options: /],
    [withPanel({ options: { a: [`x${NUL}`] } }), /^panels\.0\.options\.a: /],
    [withPanel({ options: { a: { [LONE]: 1 } } }), /^panels\.0\.options\.a: /],
    [withPanel({ options: { a: JSON.parse("[1e999]") } }), /^panels\.0\.options\.a: /],
    [withPanel({ options: { a: JSON.parse(`${"[".repeat(500_000)}${"]".repeat(500_000)}`) } }), /levels/],
    [{ name: "d", panels: [{ ...panel, id: "a" }, panel, { ...panel, id: "a" }] }, /^panels\.2\.id: another panel/],
    [withSettings({ theme: "dark" }), /^settings: .*"theme"/],
    [withSettings({ refresh_secs: 4 }), /^settings\.refresh_secs: /],
    [withSettings({ time: { from: "now" } }), /^settings\.time\.to: /],
    [withSettings({ time: { from: "yesterday", to: "now" } }), /^settings\.time\.from: accepted/],
    [withSettings({ time: { from: "now-0h", to: "now" } }), /^settings\.time\.from: accepted/],
    [
      withSettings({ time: { from: "2026-01-02T00:00:00Z", to: "2026-01-02T00:00:00Z" } }),
      /^settings\.time\.from: is not before/,
    ],
    [withVariable({ name: "1a" }), /^settings\.variables\.0\.name: /],
    [withVariable({ name: "a-b" }), /^settings\.variables\.0\.name: /],
    [withVariable({ type: "magic" }), /^settings\.variables\.0\.type: /],
    [withVariable({ values: ["a"] }), /^settings\.variables\.0: .*"values"/],
    [withVariable({ type: "list", values: [] }), /^settings\.variables\.0\.values: /],
    [withVariable({ type: "query" }), /^settings\.variables\.0\.query: /],
    [withVariable({ type: "interval", values: ["5 minutes"] }), /^settings\.variables\.0\.values\.0: /],
    [withVariable({ type: "list", values: ["a"], default: ["a"] }), /^settings\.variables\.0\.default: .*multi/],
    [
      withSettings({
        variables: [
          { name: "Host", type: "text" },
          { name: "host", type: "text" },
        ],
      }),
      /^settings\.variables\.1\.name: another variable/,
    ],
  ])("refuses a mistake at its place %#", (content, said) => {
    expect(refusalOf(content)).toMatch(said);
  });
});

const word = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_]{0,8}$/).filter((name) => name.toLowerCase() !== "system");
const unicode = (maxLength: number) =>
  fc.string({ unit: "grapheme", maxLength }).filter((value) => value.isWellFormed() && !value.includes(NUL));
const drawnQuery = fc.record({
  language: fc.constantFrom("sql", "kql"),
  text: unicode(30).filter((value) => value !== ""),
  database: word,
});
const drawnPanel = fc.record(
  {
    title: unicode(20),
    type: fc.constantFrom("bar", "text", "something else"),
    grid: fc
      .tuple(fc.nat(23), fc.nat(100), fc.integer({ min: 1, max: 24 }), fc.integer({ min: 1, max: 100 }))
      .map(([x, y, w, h]) => ({ x, y, w: Math.min(w, 24 - x), h })),
    queries: fc.array(drawnQuery, { maxLength: 4 }),
    options: fc
      .dictionary(word, fc.json({ maxDepth: 4 }))
      .map((texts) =>
        Object.fromEntries(Object.entries(texts).map(([key, json]) => [key, JSON.parse(json) as unknown])),
      )
      .filter((options) => !JSON.stringify(options).includes("__proto__")),
  },
  { requiredKeys: ["type", "grid"] },
);

test("what was accepted is accepted again, and changes nothing", () => {
  fc.assert(
    fc.property(fc.array(drawnPanel, { maxLength: 6 }), (panels) => {
      const parsed = newDashboard.safeParse({ name: "d", panels });
      // Options may hold what is refused: an unpaired surrogate, a NUL.
      fc.pre(parsed.success);
      const document = documentOf(newDashboard.parse({ name: "d", panels }), newId);
      const sent: unknown = JSON.parse(JSON.stringify(document));
      const again = newDashboard.parse(sent);
      expect(documentOf(again, () => "another")).toEqual(document);
      expect(JSON.stringify(changedDocument(document, again, newId))).toBe(JSON.stringify(document));
      expect(document.panels.map(({ options }) => options)).toEqual(panels.map(({ options = {} }) => options));
    }),
  );
});
