/** What a PromQL expression reads: each metric with the labels that are asked of it. */
export type Selector = { metric: string; labels: string[] };

const KEYWORDS = new Set(["and", "or", "unless", "bool", "offset", "by", "without", "on", "ignoring"]);
const GROUPINGS = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const TOKEN = /([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\}|\()?/g;

/**
 * Reads names by their place: a name before `(` is a function or an aggregation, one in a grouping or in braces is a
 * label, a keyword joins, and any other is a metric. Throws where braces, brackets or parentheses do not match.
 */
export function selectorsOf(expression: string): Selector[] {
  // Strings first: whatever stands in them is no name.
  const bare = expression.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
  checkPairs(bare);
  const rest = bare.replaceAll(GROUPINGS, " ").replaceAll(/\[[^\]]*\]/g, " ");
  const selectors: Selector[] = [];
  for (const [, name = "", after = ""] of rest.matchAll(TOKEN)) {
    if (after === "(" || KEYWORDS.has(name)) continue;
    const labels = [...after.matchAll(/([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label);
    selectors.push({ metric: name, labels });
  }
  return selectors;
}

/** Labels that an expression groups or matches by. */
export function groupingLabelsOf(expression: string): string[] {
  return [...expression.matchAll(GROUPINGS)].flatMap(([, list = ""]) =>
    list
      .split(",")
      .map((label) => label.trim())
      .filter((label) => label !== ""),
  );
}

const CLOSES: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };

function checkPairs(text: string): void {
  const open: string[] = [];
  for (const character of text) {
    if ("([{".includes(character)) open.push(character);
    else if (character in CLOSES && open.pop() !== CLOSES[character])
      throw new Error(`unmatched ${character}: ${text}`);
  }
  if (open.length > 0) throw new Error(`unmatched ${open.join("")}: ${text}`);
}
