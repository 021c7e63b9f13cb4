/** What the header of a token may not have, whoever signed it: its text is read, not what a parser made of it. */

/**
 * - `crit`: extensions that must be understood, and none is here, not even those that the library knows.
 * - `b64`: whether the payload is encoded (RFC 7797), which in a token it always is (RFC 7519 §7.2).
 */
const REFUSED = new Set(["crit", "b64"]);

/**
 * What is wrong with the header of a signed token; undefined when nothing is. A name that comes twice is refused at any
 * depth (RFC 7515 §4): parsers differ in which of the two they take.
 */
export function headerProblem(token: string): string | undefined {
  const text = Buffer.from(token.slice(0, token.indexOf(".")), "base64url").toString("utf8");
  let depth = 0;
  const names: Set<string>[] = [];
  // Strings with what follows them, braces and brackets: all that is needed of JSON, which the library checks in full.
  for (const [piece, name] of text.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}[\]]/g)) {
    if (piece === "{" || piece === "[") names[depth++] = new Set();
    else if (piece === "}" || piece === "]") depth--;
    else if (name !== undefined) {
      const known = names[depth - 1];
      const plain = unquoted(name);
      if (known === undefined || plain === undefined) return "its header is no JSON object";
      if (known.has(plain)) return `its header has ${JSON.stringify(plain)} twice`;
      if (depth === 1 && REFUSED.has(plain)) return `its header has ${JSON.stringify(plain)}`;
      known.add(plain);
    }
  }
  return undefined;
}

function unquoted(text: string): string | undefined {
  try {
    return JSON.parse(text) as string;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
