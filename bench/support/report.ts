/** How results are summed up and printed. */

export const MIB = 1024 * 1024;

/** A table of text: the first column to the left, the others to the right. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? "").length)));
  for (const row of all) {
    const cells = widths.map((width, column) => {
      const text = row[column] ?? "";
      return column === 0 ? text.padEnd(width) : text.padStart(width);
    });
    console.log(cells.join("  ").trimEnd());
  }
}

/** `value` with about three digits. */
export function shown(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 100) return value.toFixed(0);
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

/** A difference as a share of what was expected, in percent with its sign. */
export function signedPercent(share: number): string {
  const percent = Math.round(share * 100);
  return `${percent > 0 ? "+" : ""}${percent} %`;
}
