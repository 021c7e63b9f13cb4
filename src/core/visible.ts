// oxlint-disable-next-line no-control-regex -- control characters are what it is about
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/**
 * Shows control characters and direction overrides as escapes, so that stored data can neither move the cursor of a
 * terminal nor rewrite what stands around it.
 */
export function visible(text: string): string {
  return text.replace(UNSAFE, (char) => SHORT[char] ?? escaped(char));
}

/** As `visible`, of lines and tabs as they are. Within JSON the escapes are its own. */
export function harmless(text: string): string {
  return text.replace(UNSAFE, (char) => (char === "\n" || char === "\t" ? char : escaped(char)));
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
