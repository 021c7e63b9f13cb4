/**
 * The key `__proto__` in data from outside. Parsers make an own property of it; code after them that copies fields one by
 * one changes the prototype of its object instead, or loses the field without a word. No field, label, variable or column
 * of ours has that name, so whoever reads untrusted text refuses it.
 */

/** The place of the first such key, as `a.b.__proto__`; undefined where there is none. */
export function prototypeKeyIn(value: unknown): string | undefined {
  // By hand: nesting is the sender's choice, and the stack is not.
  const waiting: { value: object; place: string }[] = [];
  const visit = (inner: unknown, place: string): void => {
    if (typeof inner === "object" && inner !== null) waiting.push({ value: inner, place });
  };
  visit(value, "");
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value: holder, place } = next;
    for (const [key, inner] of Object.entries(holder)) {
      const at = place === "" ? key : `${place}.${key}`;
      if (key === "__proto__") return cut(at);
      visit(inner, at);
    }
  }
  return undefined;
}

/** Whether JSON or TOML text can have such a key at all, by name or in escapes: hardly any can, and to look is cheap. */
export function mayHavePrototypeKey(text: string): boolean {
  return text.includes("__proto__") || /\\[uUx]/.test(text);
}

const SHOWN_CHARS = 200;

function cut(place: string): string {
  return place.length > SHOWN_CHARS ? `…${place.slice(-SHOWN_CHARS)}` : place;
}
