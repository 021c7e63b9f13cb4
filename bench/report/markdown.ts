/** A table as the formatter leaves it. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const escaped = [head, ...rows].map((cells) => cells.map((cell) => cell.replaceAll("|", String.raw`\|`)));
  const widths = head.map((_, i) => Math.max(3, ...escaped.map((cells) => (cells[i] ?? "").length)));
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, i) => (cells[i] ?? "").padEnd(width)).join(" | ")} |`;
  const [first = [], ...others] = escaped;
  return [line(first), line(widths.map((width) => "-".repeat(width))), ...others.map(line)].join("\n");
}
