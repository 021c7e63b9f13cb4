/**
 * The value of a JSON text, or undefined if it is not JSON. It does not throw, because the messages of `JSON.parse` quote
 * the text, which may hold secrets.
 */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
