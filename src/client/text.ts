/** Text on a terminal: what it may contain, how wide it is, and where to cut it. */

export { harmless, visible } from "../core/visible.ts";

const ASCII = /^[\x20-\x7e]*$/;
const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const EMOJI = /\p{Emoji_Presentation}|\u{fe0f}/u;
/** East Asian Wide and Fullwidth, in the blocks that hold nearly all of them (Unicode Annex 11). */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f900, 0x1faff],
  [0x20000, 0x3fffd],
];
let segmenter: Intl.Segmenter | undefined;

/** Made when a text first needs it: it takes 20 ms, which most commands do without. */
function graphemesOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter.segment(text);
}

function graphemeWidth(grapheme: string): number {
  const point = grapheme.codePointAt(0) ?? 0;
  if (EMOJI.test(grapheme) || WIDE.some(([first, last]) => point >= first && point <= last)) return 2;
  return ZERO_WIDTH.test(String.fromCodePoint(point)) ? 0 : 1;
}

/** Columns that the text takes on a terminal. */
export function displayWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemesOf(text)) width += graphemeWidth(segment);
  return width;
}

/** The text cut to at most `width` columns; what was cut off is marked by `…`. */
export function cutToWidth(text: string, width: number): string {
  // So long a text cannot fit unless it is mostly combining marks: it is not measured whole.
  const measured = text.slice(0, Math.max(width, 0) * 16 + 64);
  if (measured.length === text.length && displayWidth(text) <= width) return text;
  if (width <= 0) return "";
  let kept = "";
  let used = 0;
  for (const { segment } of graphemesOf(measured)) {
    const next = graphemeWidth(segment);
    if (used + next > width - 1) break;
    kept += segment;
    used += next;
  }
  return `${kept}…`;
}

/** The text filled with spaces to `width` columns. */
export function pad(text: string, width: number, side: "left" | "right" = "left"): string {
  const fill = " ".repeat(Math.max(0, width - displayWidth(text)));
  return side === "left" ? text + fill : fill + text;
}

export type Style = (code: "bold" | "dim" | "red" | "yellow", text: string) => string;

const SGR = { bold: [1, 22], dim: [2, 22], red: [31, 39], yellow: [33, 39] } as const;

/**
 * Colour where it helps: on a terminal, unless `NO_COLOR` is set (to anything but the empty string, no-color.org) or
 * the terminal is dumb.
 */
export function styleFor(stream: { isTTY?: boolean }, env: Readonly<Record<string, string | undefined>>): Style {
  const on = stream.isTTY === true && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";
  return (code, text) => (on ? `\u001b[${SGR[code][0]}m${text}\u001b[${SGR[code][1]}m` : text);
}
