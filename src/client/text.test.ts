import { expect, test } from "vitest";
import { layoutTable, renderRow, type Cell } from "./table.ts";
import { cutToWidth, displayWidth, pad, visible } from "./text.ts";

test.for([
  ["", 0],
  ["abc", 3],
  ["größe", 5],
  ["e\u0301", 1],
  ["日本語", 6],
  ["한글", 4],
  ["ｆｕｌｌ", 8],
  ["👍", 2],
  ["👨‍👩‍👧‍👦", 2],
  ["🇨🇭", 2],
  ["✓", 1],
  ["❤\u{fe0f}", 2],
  ["a\u200bb", 2],
] as const)("%s takes %i columns", ([text, width]) => {
  expect(displayWidth(text)).toBe(width);
});

test.for([
  ["abcdef", 6, "abcdef"],
  ["abcdef", 5, "abcd…"],
  ["日本語", 6, "日本語"],
  ["日本語", 5, "日本…"],
  ["日本語", 4, "日…"],
  ["e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"],
  ["e\u0301e\u0301e\u0301", 2, "e\u0301…"],
  ["ab", 1, "…"],
  ["ab", 0, ""],
] as const)("%s cut to %i columns", ([text, width, cut]) => {
  expect(cutToWidth(text, width)).toBe(cut);
});

test("a megabyte is cut without being measured whole", () => {
  expect(cutToWidth("日".repeat(1_000_000), 10)).toBe("日日日日…");
});

test("fills to a width on either side", () => {
  expect([pad("日", 4), pad("日", 4, "right"), pad("abc", 2)]).toEqual(["日  ", "  日", "abc"]);
});

test("control characters and direction overrides are shown, not obeyed", () => {
  expect(visible("a\nb\tc\r")).toBe("a\\nb\\tc\\r");
  expect(visible("\u001b[2J\u0000\u007f\u009b")).toBe("\\u001b[2J\\u0000\\u007f\\u009b");
  expect(visible("\u202egnp.exe")).toBe("\\u202egnp.exe");
  expect(visible("größe 日本 👍 e\u0301")).toBe("größe 日本 👍 e\u0301");
});

const cells = (...texts: string[]): Cell[] => texts.map((text) => ({ text, align: "left" }));

test("the widest columns are squeezed first, and no line passes the terminal", () => {
  const header = cells("id", "text", "more");
  const row = cells("1", "x".repeat(500), "y".repeat(30));
  for (let width = 22; width <= 600; width += 7) {
    const layout = layoutTable(header, [row], width);
    const line = renderRow(row, layout);
    expect(line.length).toBeLessThanOrEqual(width);
    expect(layout.hiddenColumns).toBe(0);
    expect(layout.widths[0]).toBe(2);
  }
  expect(layoutTable(header, [row], 60).widths).toEqual([2, 27, 27]);
});

test("columns that fit nowhere are left out and counted; the first is always there", () => {
  const header = cells("a".repeat(9), "b".repeat(9), "c".repeat(9));
  expect(layoutTable(header, [], 14)).toMatchObject({ widths: [6, 6], hiddenColumns: 1 });
  expect(layoutTable(header, [], 3)).toMatchObject({ widths: [3], hiddenColumns: 2 });
});

test("without a terminal nothing is cut", () => {
  const row = cells("x".repeat(500));
  expect(renderRow(row, layoutTable(cells("a"), [row]))).toBe("x".repeat(500));
});
