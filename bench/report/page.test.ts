import { expect, test } from "vitest";
import type { Goal } from "./goals.ts";
import { growthCharts } from "./growth-chart.ts";
import type { Growth } from "./growth.ts";
import { html } from "./html.ts";
import { reportPage } from "./page.ts";
import { ratioChart } from "./ratio-chart.ts";
import { summaryOf as linesOf, type Report } from "./report.ts";
import { resultOf, summaryOf } from "./report.test-kit.ts";

const HOSTILE = `</script><script src="https://evil.example/x.js"></script><!-- " ' &`;

const GOAL: Goal = {
  name: "fast",
  chapter: "Speed",
  title: `Fast ${HOSTILE}`,
  program: "bench/fast.ts",
  options: {},
  measure: "time",
  unit: "ms",
  better: "less",
  wanted: 5,
  basis: "the test",
  result: { value: 9, date: "2026-11-28", commit: "c0ffee", processor: "p", release: "3.0.0" },
};

const CURVE: Growth = {
  kind: "growth",
  schema: 1,
  name: "made/growth",
  question: `How does it grow? ${HOSTILE}`,
  x: { unit: "rows" },
  series: [
    seriesOf("commit", "ms", [pointOf(10, 3), pointOf(100, 5), pointOf(1_000, 9)]),
    seriesOf("plan", "ms", [pointOf(10, 2), pointOf(100, 20), pointOf(1_000, 30)]),
    seriesOf("idle", "MiB", [pointOf(10, 2), pointOf(100, 20), pointOf(1_000, 21)]),
  ],
  problems: [HOSTILE],
  startedAt: "2026-11-28T12:00:00.000Z",
  commit: null,
  machine: resultOf().machine,
};

function seriesOf(name: string, unit: string, points: Growth["series"][number]["points"]): Growth["series"][number] {
  return { name, unit, doc: HOSTILE, promise: "flat", because: HOSTILE, points, exponent: 0.24, verdict: "exceeds" };
}

function pointOf(x: number, y: number) {
  return { x, y, interval: { low: y * 0.9, high: y * 1.1 } };
}

const REPORT: Report = {
  release: "3.0.0",
  goals: [GOAL],
  results: [resultOf({ question: HOSTILE, summary: [summaryOf("ours", 200, null), summaryOf(HOSTILE, 100, 2)] })],
  growth: [CURVE],
  plan: html`<p>Two servers</p>`,
  heldOut: [{ load: HOSTILE, measure: "cpu", unit: "s", predicted: { value: 10, low: 9, high: 11 }, measured: 12 }],
};

const page = reportPage(REPORT);

test("the page needs nothing of elsewhere, and runs nothing", () => {
  const tags = [...page.matchAll(/<([a-z]+)((?:\s+[\w:-]+(?:="[^"]*")?)*)\s*\/?>/gi)];
  expect(tags.length).toBeGreaterThan(100);
  const attributes = tags.flatMap(([, tag, text = ""]) =>
    tag === "a" ? [] : [...text.matchAll(/\s([\w:-]+)="[^"]*"/g)].map(([, name]) => name),
  );
  for (const name of ["src", "srcset", "href", "xlink:href", "data", "action", "style"]) {
    expect(attributes).not.toContain(name);
  }
  expect(page).not.toMatch(/@import|url\(|<link|<iframe|<img|<object|<embed/i);
  expect(attributes.filter((name) => name?.startsWith("on"))).toEqual([]);
  expect(page.match(/<script[^>]*>/g)).toEqual(['<script type="application/json" id="report">']);
});

test("data cannot break out of where it stands, and is read again as it was", () => {
  expect(page.match(/<\/script>/g)).toHaveLength(1);
  expect(page).not.toContain("<!--");
  const json = /<script type="application\/json" id="report">(.*?)<\/script>/s.exec(page)?.[1] ?? "";
  const { plan: _plan, ...data } = REPORT;
  expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(data)));
});

test("the page has light and dark colours, a form for paper, and words where it has colours", () => {
  expect(page).toContain("prefers-color-scheme: dark");
  expect(page).toContain("@media print");
  expect(page).toMatch(/<span class="missed">\s*✗ missed\s*<\/span>/);
  for (const id of ["machine", "plan", "held-out", "goals", "results", "growth"]) expect(page).toContain(`id="${id}"`);
  expect(page).toContain("+20 %, outside");
});

test("elements are closed in the order in which they were opened", () => {
  const open: string[] = [];
  const mismatched: string[] = [];
  for (const [, slash, name = "", rest = ""] of page.matchAll(/<(\/?)([a-zA-Z][a-zA-Z0-9]*)([^<>]*)>/g)) {
    if (name === "meta" || rest.endsWith("/")) continue;
    if (slash === "") open.push(name);
    else if (open.pop() !== name) mismatched.push(name);
  }
  expect([open, mismatched]).toEqual([[], []]);
});

test("a chart of ratios tells better, worse and neither apart by shape and by words", () => {
  const less = { better: "less" } as const;
  const chart = ratioChart("made/up", [
    summaryOf("ours", 1, null),
    summaryOf("slower", 1, 2),
    summaryOf("faster", 1, 2, less),
    summaryOf("same", 1, 1),
  ])?.text;
  expect(chart?.match(/class="(better|worse|either)"/g)).toEqual(['class="better"', 'class="worse"', 'class="either"']);
  expect(chart).toContain("seal, slower 2× (1.8–2.2)");
  expect(chart).toContain("seal, faster 0.5× (0.45–0.56)");
  expect(ratioChart("made/up", [summaryOf("ours", 1, null)])).toBeUndefined();
});

test("a curve stands on axes of logarithms, with dashes and marks of its own", () => {
  const { text } = growthCharts(CURVE);
  const xs = /<polyline[^>]*points="([^"]*)"/
    .exec(text)?.[1]
    ?.split(" ")
    .map((pair) => Number(pair.split(",")[0]));
  expect(xs?.[1]).toBeCloseTo(((xs?.[0] ?? 0) + (xs?.[2] ?? 0)) / 2, 0);
  expect(new Set(text.match(/stroke-dasharray="[^"]*"/g)).size).toBe(2);
  expect(text).toContain("● commit, x^0.24");
  expect(text).toContain("■ plan, x^0.24");
  // Milliseconds and memory are on different ones.
  expect(text.match(/<svg/g)).toHaveLength(2);
});

test("the summary has at most ten lines", () => {
  const goals = Array.from({ length: 30 }, (_, i) => ({ ...GOAL, name: `fast-${i}` }));
  const noisy = resultOf({ noise: { byMeasure: {}, foreignShare: 1, clockStepMs: 0, problems: ["noise"] } });
  const lines = linesOf({ ...REPORT, goals, results: [noisy] });
  expect(lines.length).toBeLessThanOrEqual(10);
  expect(lines[0]).toContain("of 30 goals 0 hold, 30 are missed");
  expect(lines.at(-1)).toBe("Beside other work, and no result: made/up.");
});
